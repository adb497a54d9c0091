"""Addresses and connections of Redis streams, and the meaning of the server's errors."""

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from queryveil.errors import BadInput, BadParameter, MissingExtra, QueryveilError, Unreachable

LONGEST_WAIT = 5.0
"""Seconds that the server may take to accept a connection, or to answer that there is nothing."""
_LONGEST_SILENCE = 60.0
_TLS = {"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"}
_LATER = {
    "OOM": "it is out of memory; raise its maxmemory, or read what is there",
    "MISCONF": "it cannot write to its disk",
    "LOADING": "it is still starting",
    "BUSY": "it is busy with a script",
    "READONLY": "it is a replica for reading only",
    "MASTERDOWN": "its primary is away",
    "CLUSTERDOWN": "its cluster is down",
    "TRYAGAIN": "its cluster is moving keys",
    "NOREPLICAS": "it has too few replicas",
    "NOGROUP": "the stream or its group was deleted; it is made again",
    "UNBLOCKED": "the stream was deleted; it is made again",
}
_DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """A stream on a server, as named by redis://HOST:PORT/DB?stream=NAME; the password is in no text of it."""

    host: str
    port: int
    db: int
    stream: str
    options: Mapping[str, str]
    is_tls: bool = False
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def from_url(cls, url: str, *, what: str, stream: str, options: Mapping[str, str]) -> Self:
        """Read a URL; `stream` and `options` are the names that may stand in it and their defaults."""
        try:
            parts = urlsplit(url)
            host, port, db = parts.hostname, parts.port, int(parts.path.strip("/") or "0")
            given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError:
            parts, host, port, db, given = urlsplit(""), None, None, 0, {}
        name = given.pop("stream", stream)
        if parts.scheme not in ("redis", "rediss") or not host or not name or db < 0:
            # Privacy: the URL may hold a password.
            raise BadParameter(what, "another Redis address", allowed="redis://HOST:PORT/DB?stream=NAME")
        known = {*options, *(_TLS if parts.scheme == "rediss" else ())}
        if unknown := sorted(given.keys() - known):
            names = ", ".join(["stream", *sorted(known)])
            raise BadParameter(f"what follows ? in the {what}", unknown[0], allowed=f"among {names}")
        return cls(
            host=host,
            port=port or 6379,
            db=db,
            stream=name,
            options={**options, **given},
            is_tls=parts.scheme == "rediss",
            user=unquote(parts.username or "") or None,
            password=unquote(parts.password or "") or None,
        )

    @property
    def name(self) -> str:
        """The address without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'rediss' if self.is_tls else 'redis'}://{host}:{self.port}/{self.db}?stream={self.stream}"

    @property
    def server(self) -> str:
        """The server as errors call it."""
        return f"the Redis server at {self.host}:{self.port}"

    def number(self, option: str, *, what: str) -> int:
        """Return an option that is a count, 0 or more."""
        text = self.options[option]
        if not (text.isascii() and text.isdigit()):
            raise BadParameter(f"{option} in the {what}", text, allowed="a whole number, 0 or more")
        return int(text)

    def connect(self) -> Any:
        """Return a client that connects when it is first used and never repeats a command by itself."""
        redis = library()
        return redis.Redis(
            host=self.host,
            port=self.port,
            db=self.db,
            username=self.user,
            password=self.password,
            protocol=2,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
            socket_connect_timeout=LONGEST_WAIT,
            socket_timeout=_LONGEST_SILENCE,
            socket_keepalive=True,
            ssl=self.is_tls,
            **{name: text for name, text in self.options.items() if name in _TLS},
        )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what the client raises into our errors."""
        try:
            yield
        except (library().RedisError, OSError) as error:
            # Privacy: the server's own text may quote what it was sent, so neither it nor the cause is passed on.
            raise self._explain(error) from None

    def _explain(self, error: Exception) -> QueryveilError:
        code = _code(error)
        if code in _DENIED:
            return BadInput(
                f"{self.server} does not let us in or not at the stream {self.stream}; "
                "give redis://USER:PASSWORD@HOST:PORT, and that user read and write of the stream and queryveil:* keys"
            )
        if code == "WRONGTYPE":
            return BadInput(f"{self.server}: the key {self.stream} is there and is no stream; name another stream")
        if code in _LATER:
            return Unreachable(self.server, _LATER[code])
        if code:
            return BadInput(f"{self.server} refused a command ({code}); Redis 5 or newer is needed, not as a cluster")
        if isinstance(error, library().TimeoutError | TimeoutError):
            return Unreachable(self.server, "no answer in time")
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, ssl.SSLCertVerificationError):
            return BadInput(f"{self.server}: its certificate is not trusted; add ssl_ca_certs=FILE to the address")
        if isinstance(cause, socket.gaierror):
            return Unreachable(self.server, "no such host")
        refused = isinstance(cause, ConnectionRefusedError)
        return Unreachable(self.server, "connection refused" if refused else "no connection")


def _code(error: Exception) -> str:
    """Return the word that a refusal begins with, empty for another error; the client's classes stand for some."""
    redis = library()
    classes = {
        redis.AuthenticationError: "NOAUTH",
        redis.exceptions.AuthorizationError: "NOAUTH",
        redis.BusyLoadingError: "LOADING",
        redis.OutOfMemoryError: "OOM",
        redis.ReadOnlyError: "READONLY",
        redis.exceptions.NoPermissionError: "NOPERM",
        redis.exceptions.MasterDownError: "MASTERDOWN",
        redis.exceptions.ClusterDownError: "CLUSTERDOWN",
        redis.exceptions.TryAgainError: "TRYAGAIN",
    }
    for each, code in classes.items():
        if isinstance(error, each):
            return code
    if not isinstance(error, redis.ResponseError):
        return ""
    first = str(error).partition(" ")[0]
    return first if first.isascii() and first.isalpha() and first.isupper() else "ERR"


def library() -> Any:
    """Import the client."""
    try:
        import redis.backoff  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("Redis", extra="service") from None
    return redis
