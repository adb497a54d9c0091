"""The state of a stream in a schema of a PostgreSQL database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
import polars as pl

from queryveil.errors import BadFile, QueryveilError, StoreBusy, Unreachable
from queryveil.service.ports import Commit, Outgoing, Saved
from queryveil.service.settings import check_settings
from queryveil.service.stores.postgres_server import VERSION, Address, connect, take, telling

if TYPE_CHECKING:
    from queryveil.service.stores.postgres_server import Connection

N_KEYS: Final = 100_000
"""How many senders' keys are remembered."""
_PIECE: Final = 8192
_N_FORGOTTEN: Final = 4
_SECONDS_UNTIL_VACUUM: Final = 60.0


class PostgresStore:
    """Keep the state on a PostgreSQL server, under a lock that lasts as long as the connection.

    A lost connection is made anew by the next commit; the number of the last commit on the server says whether the one
    that was under way has arrived. Privacy: what is deleted stays in the server's files until it uses the space again,
    so its disk is to be as safe as the log itself.
    """

    def __init__(self, url: str) -> None:
        self._address = Address.parse(url)
        self._connection: Connection | None = None
        self._is_open = False
        self._number = 0
        self._vacuumed_at = time.monotonic()

    def __repr__(self) -> str:
        return f"PostgresStore(schema={self._address.schema!r})"

    def open(self, *, settings: str) -> Saved:
        """Take the schema for this process alone, and give what it has."""
        connection = self._connect()
        try:
            with telling(self._address):
                saved = self._read(connection, settings)
        except BaseException:
            self.close()
            raise
        self._number, self._is_open = saved.number, True
        return saved

    def _connect(self) -> Connection:
        connection = connect(self._address)
        try:
            with telling(self._address):
                take(connection, self._address)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _read(self, connection: Connection, settings: str) -> Saved:
        row = connection.execute(
            "SELECT settings, number, position, generation, delivered, n_bytes_out, counts FROM state"
        ).fetchone()
        if row is None:
            connection.execute(
                "INSERT INTO state VALUES (1, %s, %s, 0, NULL, 0, 0, 0, '{}')", (VERSION, settings.replace("\0", ""))
            )
            return Saved()
        if row[1] == 0:
            # Nothing was made with them yet: a first start may have failed over a mistake in them.
            connection.execute("UPDATE state SET settings = %s", (settings.replace("\0", ""),))
            return Saved()
        check_settings(settings, before=row[0])
        pools = connection.execute("SELECT data FROM pools").fetchone()
        outbox = connection.execute("SELECT number, byte_offset, data, n_rows FROM outbox ORDER BY number")
        return Saved(
            number=row[1],
            position=row[2],
            pools=pools[0] if pools else b"",
            keys=tuple(key for (key,) in connection.execute("SELECT key FROM sent_keys ORDER BY id")),
            issued=self._issued(row[3]),
            outgoing=tuple(Outgoing(number=n, offset=start, data=data, n_rows=m) for n, start, data, m in outbox),
            delivered=row[4],
            n_bytes_out=row[5],
            counts=msgspec.json.decode(row[6], type=dict[str, int]),
        )

    def _issued(self, generation: int) -> Iterator[tuple[int, bytes]]:
        """Return the hashes piece by piece: all of them together may be half a gigabyte."""
        after = 0
        while self._connection is not None:
            with telling(self._address):
                row = self._connection.execute(
                    "SELECT id, generation, hashes FROM issued WHERE id > %s AND generation >= %s ORDER BY id LIMIT 1",
                    (after, generation - 1),
                ).fetchone()
            if row is None:
                return
            after = row[0]
            yield row[1], row[2]

    def commit(self, commit: Commit) -> None:
        """Write everything or nothing, to disk. After a failure the same commit may be given again."""
        if not self._is_open:
            raise BadFile(f"schema {self._address.schema}", "the store is not open")
        try:
            connection = self._connection or self._connect_again()
            with telling(self._address), connection.transaction():
                self._write(connection, commit)
        except BaseException:
            # What the server has is asked for anew: the commit may have arrived, and only the answer been lost.
            self._drop()
            raise
        self._number = max(self._number, commit.number)
        self._vacuum(connection)

    def _connect_again(self) -> Connection:
        try:
            return self._connect()
        except StoreBusy:
            # The server may not have noticed yet that the earlier connection is gone.
            raise Unreachable(self._address.name, "it still waits for the earlier connection to end") from None

    def _write(self, connection: Connection, commit: Commit) -> None:
        row = connection.execute("SELECT number FROM state FOR UPDATE").fetchone()
        number = row[0] if row else -1
        if number not in (self._number, commit.number):
            raise StoreBusy(f"schema {self._address.schema} of {self._address.name}")
        if commit.number <= number:
            return
        if commit.number != number + 1:
            raise ValueError(f"commit {commit.number} does not follow {number}")
        _write_state(connection, commit)
        _write_hashes(connection, commit)
        if commit.profiles is not None and not commit.profiles.is_empty():
            _add_to_profiles(connection, commit.profiles)

    def _vacuum(self, connection: Connection) -> None:
        """Let the server use the space of what is gone again: a row is written anew with each commit."""
        if time.monotonic() - self._vacuumed_at < _SECONDS_UNTIL_VACUUM:
            return
        self._vacuumed_at = time.monotonic()
        # The commit itself is safe; a lost connection is met again by the next one.
        with suppress(QueryveilError), telling(self._address):
            connection.execute("VACUUM state, pools, outbox")

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Return the schema back."""
        self._is_open = False
        if self._connection is not None:
            with suppress(QueryveilError), telling(self._address):
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._drop()


def _write_state(connection: Connection, commit: Commit) -> None:
    def execute(text: Any, *values: Any) -> None:
        connection.execute(text, values)

    execute(
        "INSERT INTO pools VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET data = excluded.data",
        commit.pools,
    )
    if commit.outgoing is not None:
        out = commit.outgoing
        execute("INSERT INTO outbox VALUES (%s, %s, %s, %s)", out.number, out.offset, out.data, out.n_rows)
        execute("UPDATE state SET n_bytes_out = %s", out.offset + len(out.data))
    execute("DELETE FROM outbox WHERE number <= %s", commit.delivered)
    execute(
        "UPDATE state SET number = %s, position = %s, generation = %s, "
        "delivered = greatest(delivered, %s), counts = %s",
        commit.number,
        commit.position,
        commit.generation,
        commit.delivered,
        msgspec.json.encode(dict(commit.counts)).decode(),
    )
    if commit.keys:
        execute("INSERT INTO sent_keys (key) SELECT unnest(%s::text[])", list(commit.keys))
        execute("DELETE FROM sent_keys WHERE id <= (SELECT max(id) FROM sent_keys) - %s", N_KEYS)


def _write_hashes(connection: Connection, commit: Commit) -> None:
    """Add the hashes to the last piece while that is small, or small batches would make millions of rows."""
    # Some at a time: a whole generation at once would hold up the stream for seconds.
    connection.execute(
        "DELETE FROM issued WHERE generation < %s AND id IN (SELECT id FROM issued ORDER BY id LIMIT %s)",
        (commit.generation - 1, _N_FORGOTTEN),
    )
    if not commit.issued:
        return
    last = connection.execute("SELECT id, generation, length(hashes) FROM issued ORDER BY id DESC LIMIT 1").fetchone()
    piece, generation, n_bytes = last or (0, -1, 0)
    if generation == commit.generation and n_bytes < _PIECE:
        connection.execute("UPDATE issued SET hashes = hashes || %s WHERE id = %s", (commit.issued, piece))
    else:
        connection.execute("INSERT INTO issued VALUES (%s, %s, %s)", (piece + 1, commit.generation, commit.issued))


def _add_to_profiles(connection: Connection, profiles: pl.DataFrame) -> None:
    # PostgreSQL's texts hold every letter but this one.
    user = pl.col("user").cast(pl.String).str.replace_all("\0", "\ufffd", literal=True)
    rows = profiles.select(user, pl.col("category").cast(pl.String), pl.col("n").cast(pl.Int64))
    connection.execute("TRUNCATE changes")
    with connection.cursor().copy("COPY changes FROM STDIN WITH (FORMAT csv)") as copy:
        copy.write(rows.write_csv(include_header=False, quote_style="non_numeric"))
    # In the order of the key, so that neighbours are written together.
    connection.execute(
        "INSERT INTO profiles SELECT user_id, category, sum(n) FROM changes GROUP BY 1, 2 ORDER BY 1, 2 "
        "ON CONFLICT (user_id, category) DO UPDATE SET n = profiles.n + excluded.n"
    )
