"""A PostgreSQL server: reached by one process at a time, with tables of a version that is understood."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, LiteralString
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from queryveil.errors import BadFile, BadParameter, MissingExtra, QueryveilError, StoreBusy, Unreachable

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

VERSION: Final = 1
_SECONDS_FOR_LOCK: Final = 3.0
_ALLOWED: Final = "a URL such as postgresql://user:password@host/database?schema=queryveil"

# The column is called user_id: `user` without quotes is whoever asks, in PostgreSQL.
_SCHEMA: Final = """
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the server is, and the schema that the tables are in."""

    url: str = field(repr=False)
    schema: str = "queryveil"

    @classmethod
    def parse(cls, url: str) -> Address:
        """Take `?schema=` out of a URL; all else is for the library."""
        parts = urlsplit(url)
        if parts.scheme not in ("postgresql", "postgres"):
            raise BadParameter("store", f"{parts.scheme}:", allowed=_ALLOWED)
        options = dict(parse_qsl(parts.query))
        schema = options.pop("schema", "queryveil")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise BadParameter("schema", schema, allowed="small letters, digits and _")
        return cls(url=urlunsplit(parts._replace(query=urlencode(options))), schema=schema)

    @property
    def name(self) -> str:
        """Return which server it is, without user or password."""
        parts = urlsplit(self.url)
        try:
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            raise BadParameter("store", "another port", allowed="a URL with a port of digits") from None
        return f"the PostgreSQL server at {parts.hostname or 'the local socket'}{port}"

    @property
    def lock(self) -> int:
        """The number that stands for this schema among the server's advisory locks."""
        digest = hashlib.sha256(f"queryveil:{self.schema}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def connect(address: Address) -> Connection:
    """Connect, and say in one line why not."""
    try:
        import psycopg  # noqa: PLC0415 - it is an extra
    except ImportError:
        raise MissingExtra("PostgreSQL", extra="service") from None
    try:
        connection = psycopg.connect(
            address.url, autocommit=True, connect_timeout=10, keepalives_idle=10, application_name="queryveil"
        )
    except psycopg.ProgrammingError:
        # Privacy: the library's message quotes a part of the URL, and that may be the password.
        raise BadParameter("store", "one that cannot be read", allowed=_ALLOWED) from None
    except psycopg.Error as error:
        raise _refused(str(error), address) from None
    try:
        with telling(address):
            connection.execute(f"SET search_path TO {address.schema}")
    except BaseException:
        connection.close()
        raise
    return connection


def _refused(message: str, address: Address) -> QueryveilError:
    wrong = {
        "password authentication failed": "a wrong user or password",
        "no password supplied": "no password",
        "does not exist": "a user or database that is not there",
        "pg_hba.conf": "a user whom the server does not let in from here",
    }
    for words, got in wrong.items():
        if words in message:
            return BadParameter("store", f"{got} ({address.name})", allowed="a PostgreSQL database that may be used")
    known = ("Connection refused", "failed to resolve host", "timeout", "starting up", "shutting down", "too many")
    reason = next((words for words in known if words.lower() in message.lower()), "it cannot be reached")
    return Unreachable(address.name, reason[0].lower() + reason[1:])


def take(connection: Connection, address: Address) -> None:
    """Lock the tables for this connection alone, and make them if they are not there.

    The server may need a moment to see that the process before is gone.
    """
    connection.execute("SET synchronous_commit TO on")
    end = time.monotonic() + _SECONDS_FOR_LOCK
    while not _asked(connection, "SELECT pg_try_advisory_lock(%s)", address.lock):
        if time.monotonic() > end:
            raise StoreBusy(f"schema {address.schema} of {address.name}")
        time.sleep(0.02)
    if not _asked(connection, "SELECT to_regclass(%s)", f"{address.schema}.state"):
        with connection.transaction():
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {address.schema}")
            connection.execute(_SCHEMA)
    row = connection.execute("SELECT version FROM state").fetchone()
    if row and row[0] > VERSION:
        raise BadFile(f"schema {address.schema}", "this store was written by a newer queryveil; update queryveil")
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS changes (user_id text, category text, n bigint)")


def _asked(connection: Connection, question: LiteralString, value: object) -> object:
    row = connection.execute(question, (value,)).fetchone()
    return row[0] if row else None


@contextmanager
def telling(address: Address) -> Iterator[None]:
    """Say in one line what the server did not do."""
    import psycopg  # noqa: PLC0415 - it is an extra

    try:
        yield
    except psycopg.Error as error:
        # Privacy: a server's message may quote values, so only the kind is told.
        raise _explained(error, address) from None


def _explained(error: psycopg.Error, address: Address) -> QueryveilError:
    state = error.sqlstate or ""
    if state.startswith(("42501", "28")):
        got = f"a user without rights ({address.name})"
        return BadParameter("store", got, allowed="a PostgreSQL database in which its user may make tables")
    reasons = {"53100": "its disk is full", "25006": "it may only be read", "57P": "it is shutting down"}
    otherwise = f"error {state}" if state else "the connection was lost"
    return Unreachable(address.name, next((why for code, why in reasons.items() if state.startswith(code)), otherwise))
