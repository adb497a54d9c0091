"""The state of a stream in a schema of a PostgreSQL database."""

import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import polars as pl

from queryveil.errors import BadFile, BadParameter, MissingExtra, QueryveilError, StoreBusy, Unreachable
from queryveil.service.stores._sql import COLUMNS, SqlStore

VERSION = 2
_SECONDS_FOR_LOCK = 3.0
_SECONDS_UNTIL_VACUUM = 60.0
_ALLOWED = "a URL such as postgresql://user:password@host/database?schema=queryveil"

# The column is called user_id: `user` without quotes is whoever asks, in PostgreSQL.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (
    id integer PRIMARY KEY CHECK (id = 1), version integer NOT NULL, settings text NOT NULL, number bigint NOT NULL,
    position text, generation bigint NOT NULL, delivered bigint NOT NULL, n_bytes_out bigint NOT NULL,
    counts text NOT NULL
);
CREATE TABLE IF NOT EXISTS pools (id integer PRIMARY KEY CHECK (id = 1), data bytea NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
    number bigint PRIMARY KEY, byte_offset bigint NOT NULL, data bytea NOT NULL, n_rows bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS issued (id bigint PRIMARY KEY, generation bigint NOT NULL, hashes bytea NOT NULL);
CREATE TABLE IF NOT EXISTS sent_keys (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL);
CREATE TABLE IF NOT EXISTS profiles (
    user_id text NOT NULL, category text NOT NULL, n bigint NOT NULL, PRIMARY KEY (user_id, category)
) WITH (fillfactor = 80);
CREATE OR REPLACE VIEW profile_shares AS
    SELECT user_id, category, n, round(100.0 * n / sum(n) OVER (PARTITION BY user_id), 2) AS percent FROM profiles;
"""
_ADD_CHECKSUMS = "".join(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS checksum bytea;" for table in COLUMNS)
"""From version 1 to 2; rows that are there already stay without one until they are written again."""


class PostgresAddress:
    """Where the server is, and the schema that the tables are in."""

    def __init__(self, url: str) -> None:
        """Take `?schema=` out of a URL; the rest is for the library."""
        parts = urlsplit(url)
        if parts.scheme not in ("postgresql", "postgres"):
            raise BadParameter("store", f"{parts.scheme}:", allowed=_ALLOWED)
        options = dict(parse_qsl(parts.query))
        self.schema = options.pop("schema", "queryveil")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self.schema):
            raise BadParameter("schema", self.schema, allowed="small letters, digits and _")
        self.url = urlunsplit(parts._replace(query=urlencode(options)))

    @property
    def name(self) -> str:
        """The server as errors call it, without user or password."""
        parts = urlsplit(self.url)
        try:
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            raise BadParameter("store", "another port", allowed="a URL with a port of digits") from None
        return f"the PostgreSQL server at {parts.hostname or 'the local socket'}{port}"

    def connect(self) -> Any:
        """Connect; a failure is one line."""
        try:
            import psycopg  # noqa: PLC0415 - it is an extra
        except ImportError:
            raise MissingExtra("PostgreSQL", extra="service") from None
        try:
            connection = psycopg.connect(
                self.url, autocommit=True, connect_timeout=10, keepalives_idle=10, application_name="queryveil"
            )
        except psycopg.ProgrammingError:
            # Privacy: the library's message quotes a part of the URL, and that may be the password.
            raise BadParameter("store", "one that cannot be read", allowed=_ALLOWED) from None
        except psycopg.Error as error:
            raise self._refused(str(error)) from None
        try:
            with self.errors():
                connection.execute(f"SET search_path TO {self.schema}")
        except BaseException:
            connection.close()
            raise
        return connection

    def has_table(self, connection: Any, table: str) -> bool:
        (found,) = connection.execute("SELECT to_regclass(%s)", (f"{self.schema}.{table}",)).fetchone()
        return found is not None

    def _refused(self, message: str) -> QueryveilError:
        wrong = {
            "password authentication failed": "a wrong user or password",
            "no password supplied": "no password",
            "does not exist": "a user or database that is not there",
            "pg_hba.conf": "a user whom the server does not let in from here",
        }
        for words, got in wrong.items():
            if words in message:
                return BadParameter("store", f"{got} ({self.name})", allowed="a PostgreSQL database that may be used")
        known = ("Connection refused", "failed to resolve host", "timeout", "starting up", "shutting down", "too many")
        reason = next((words for words in known if words.lower() in message.lower()), "it cannot be reached")
        return Unreachable(self.name, reason[0].lower() + reason[1:])

    @contextmanager
    def errors(self) -> Iterator[None]:
        import psycopg  # noqa: PLC0415 - it is an extra

        try:
            yield
        except psycopg.Error as error:
            # Privacy: a server's message may quote values, so only the kind is told.
            state = error.sqlstate or ""
            if state.startswith(("42501", "28")):
                got = f"a user without rights ({self.name})"
                allowed = "a PostgreSQL database in which its user may make tables"
                raise BadParameter("store", got, allowed=allowed) from None
            reasons = {"53100": "its disk is full", "25006": "it may only be read", "57P": "it is shutting down"}
            otherwise = f"error {state}" if state else "the connection was lost"
            known = (why for code, why in reasons.items() if state.startswith(code))
            raise Unreachable(self.name, next(known, otherwise)) from None


class PostgresStore(SqlStore):
    """Keeps the state on a PostgreSQL server, under a lock that lasts as long as the connection.

    A lost connection is made anew by the next commit; the number of the last commit on the server says whether the one
    that was under way has arrived. Privacy: what is deleted stays in the server's files until it uses the space again,
    so its disk is to be as safe as the log itself.

    - `url`: postgresql://USER:PASSWORD@HOST/DATABASE?schema=NAME; the schema is created if it is not there.
    """

    _insert_state = f"INSERT INTO state VALUES (1, {VERSION}, ?, 0, NULL, 0, 0, 0, '{{}}', ?)"
    _row_lock = "FOR UPDATE"
    _parameter = "%s"

    def __init__(self, url: str) -> None:
        self._address = PostgresAddress(url)
        super().__init__(f"schema {self._address.schema} of {self._address.name}", errors=self._address.errors)
        self._vacuumed_at = time.monotonic()

    def __repr__(self) -> str:
        return f"PostgresStore(schema={self._address.schema!r})"

    def has_begun(self) -> bool:
        connection = self._address.connect()
        with self._errors(), connection:
            if not self._address.has_table(connection, "state"):
                return False
            row = connection.execute("SELECT number FROM state").fetchone()
        return row is not None and row[0] > 0

    def _connect(self) -> None:
        connection = self._address.connect()
        try:
            with self._errors():
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _prepare(self, connection: Any) -> None:
        """Lock the tables for this connection alone, and create them if they are not there.

        The server may need a moment to see that the process before is gone.
        """
        schema = self._address.schema
        connection.execute("SET synchronous_commit TO on")
        end = time.monotonic() + _SECONDS_FOR_LOCK
        digest = hashlib.sha256(f"queryveil:{schema}".encode()).digest()
        lock = int.from_bytes(digest[:8], "big", signed=True)
        while not connection.execute("SELECT pg_try_advisory_lock(%s)", (lock,)).fetchone()[0]:
            if time.monotonic() > end:
                raise StoreBusy(self._label)
            time.sleep(0.02)
        if not self._address.has_table(connection, "state"):
            with connection.transaction():
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                connection.execute(_SCHEMA)
        row = connection.execute("SELECT version FROM state").fetchone()
        if row and row[0] > VERSION:
            raise BadFile(f"schema {schema}", "this store was written by a newer queryveil; update queryveil")
        if row is None or row[0] < VERSION:
            with connection.transaction():
                connection.execute(_ADD_CHECKSUMS)
                connection.execute(f"UPDATE state SET version = {VERSION}")
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS changes (user_id text, category text, n bigint)")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            if self._connection is None:
                try:
                    self._connect()
                except StoreBusy:
                    # The server may not have noticed yet that the earlier connection is gone.
                    raise Unreachable(self._address.name, "it still waits for the earlier connection to end") from None
            with self._errors(), self._connection.transaction():
                yield
        except BaseException:
            # What the server has is asked for anew: the commit may have arrived, and only the answer been lost.
            self._drop()
            raise

    def _add_to_profiles(self, profiles: pl.DataFrame) -> None:
        # PostgreSQL's texts hold every letter but this one.
        user = pl.col("user").cast(pl.String).str.replace_all("\0", "\ufffd", literal=True)
        rows = profiles.select(user, pl.col("category").cast(pl.String), pl.col("n").cast(pl.Int64))
        self._execute("TRUNCATE changes")
        with self._connection.cursor().copy("COPY changes FROM STDIN WITH (FORMAT csv)") as copy:
            copy.write(rows.write_csv(include_header=False, quote_style="non_numeric"))
        # In the order of the key, so that neighbours are written together.
        self._execute(
            "INSERT INTO profiles SELECT user_id, category, sum(n) FROM changes GROUP BY 1, 2 ORDER BY 1, 2 "
            "ON CONFLICT (user_id, category) DO UPDATE SET n = profiles.n + excluded.n"
        )

    def _after_commit(self) -> None:
        """Vacuum now and then, so that the server reuses the space of old rows: each commit writes them anew."""
        if time.monotonic() - self._vacuumed_at < _SECONDS_UNTIL_VACUUM:
            return
        self._vacuumed_at = time.monotonic()
        # The commit itself is safe; a lost connection is met again by the next one.
        with suppress(QueryveilError), self._errors():
            self._execute("VACUUM state, pools, outbox")

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        self._is_open = False
        if self._connection is not None:
            with suppress(QueryveilError), self._errors():
                self._execute("SELECT pg_advisory_unlock_all()")
        self._drop()
