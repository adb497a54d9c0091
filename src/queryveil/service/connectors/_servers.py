"""Addresses and connections of Redis streams and Kafka topics, and the meaning of the servers' errors."""

import socket
import ssl
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from queryveil.errors import BadInput, BadParameter, MissingExtra, QueryveilError, Unreachable

LONGEST_WAIT = 5.0
"""Seconds that a server may take to accept a connection, or to answer that there is nothing."""


def _options(parts: SplitResult) -> dict[str, str]:
    return dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))


def _check_options(given: Collection[str], *, known: Collection[str], what: str) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise BadParameter(f"what follows ? in the {what}", unknown[0], allowed=f"among {', '.join(known)}")


def _library(module: str, what: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(what, extra="service") from None


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


class RedisAddress:
    """A stream on a server, as named by redis://HOST:PORT/DB?stream=NAME; the password is in no text of it."""

    def __init__(self, url: str, *, what: str, stream: str, options: Mapping[str, str]) -> None:
        """Read a URL; `stream` and `options` are the names that may stand in it and their defaults."""
        try:
            parts = urlsplit(url)
            host, port, db = parts.hostname, parts.port, int(parts.path.strip("/") or "0")
            given = _options(parts)
        except ValueError:
            parts, host, port, db, given = urlsplit(""), None, None, 0, {}
        self.stream, self.is_tls = given.pop("stream", stream), parts.scheme == "rediss"
        if parts.scheme not in ("redis", "rediss") or not host or not self.stream or db < 0:
            # Privacy: the URL may hold a password.
            raise BadParameter(what, "another Redis address", allowed="redis://HOST:PORT/DB?stream=NAME")
        tls = _TLS if self.is_tls else ()
        _check_options(given, known=["stream", *sorted([*options, *tls])], what=what)
        self.host, self.port, self.db = host, port or 6379, db
        self.options = {**options, **given}
        self.user, self.password = unquote(parts.username or "") or None, unquote(parts.password or "") or None

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
        redis = _library("redis", "Redis")
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
        try:
            yield
        except (_library("redis", "Redis").RedisError, OSError) as error:
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
        if isinstance(error, _library("redis", "Redis").TimeoutError | TimeoutError):
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
    redis = _library("redis", "Redis")
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


_SECURITY = {"tls": "0", "sasl": "PLAIN", "ca": ""}
_NO_ACCESS = {
    "_AUTHENTICATION",
    "_SSL",
    "SASL_AUTHENTICATION_FAILED",
    "UNSUPPORTED_SASL_MECHANISM",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}
_FENCED = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}
_MISSING = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}


class KafkaAddress:
    """A topic of some brokers, as named by kafka://HOST:PORT,HOST:PORT/TOPIC; the password is in no text of it."""

    def __init__(self, url: str, *, what: str, options: Mapping[str, str]) -> None:
        """Read a URL; `options` may follow ? in it, here with their defaults, beside those for security."""
        options = {**_SECURITY, **options}
        try:
            parts = urlsplit(url)
            given = _options(parts)
        except ValueError:
            parts, given = urlsplit(""), {}
        who, _, servers = parts.netloc.rpartition("@")
        self.topic = parts.path.strip("/")
        if parts.scheme != "kafka" or not servers or not self.topic or "/" in self.topic:
            # Privacy: the URL may hold a password.
            raise BadParameter(what, "another Kafka address", allowed="kafka://HOST:PORT/TOPIC")
        _check_options(given, known=sorted(options), what=what)
        user, _, password = who.partition(":")
        self.servers = ",".join(each if ":" in each else f"{each}:9092" for each in servers.split(","))
        self.options = {**options, **given}
        self.user, self.password = unquote(user) or None, unquote(password) or None

    @property
    def name(self) -> str:
        """The address without user and password."""
        return f"kafka://{self.servers}/{self.topic}"

    @property
    def cluster(self) -> str:
        """The brokers as errors call them."""
        return f"Kafka at {self.servers}"

    def settings(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the client's settings: how to get there, and `more`."""
        is_tls = self.options["tls"] not in ("", "0")
        found: dict[str, Any] = {"bootstrap.servers": self.servers, "log_level": 2, **more}
        if self.user is not None:
            found |= {"sasl.username": self.user, "sasl.password": self.password}
            found["sasl.mechanism"] = self.options["sasl"]
        if self.options["ca"]:
            found["ssl.ca.location"] = self.options["ca"]
        found["security.protocol"] = ("SASL_" if self.user is not None else "") + ("SSL" if is_tls else "PLAINTEXT")
        return found

    def consumer(self, more: Mapping[str, Any]) -> Any:
        """Return a consumer of committed messages; the group's offsets change only when it is told to."""
        common = {"group.id": self.options["group"], "enable.auto.commit": False, "isolation.level": "read_committed"}
        return kafka_library().Consumer(self.settings({**common, **more}))

    def partitions(self, client: Any) -> list[int]:
        with self.errors():
            found = client.list_topics(self.topic, timeout=LONGEST_WAIT).topics[self.topic]
        if found.error is not None:
            raise self.explain(found.error)
        return sorted(found.partitions)

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except kafka_library().KafkaException as error:
            raise self.explain(error.args[0]) from None

    def explain(self, error: Any) -> QueryveilError:
        """Return our error for one of the client's; its own text is not passed on."""
        name = error.name()
        if name in _NO_ACCESS:
            return BadInput(
                f"{self.cluster} does not let us in or not at the topic {self.topic}; "
                "give kafka://USER:PASSWORD@HOST:PORT with sasl= and tls=1 as the brokers ask for it"
            )
        if name in _MISSING:
            return Unreachable(self.cluster, f"there is no topic {self.topic} yet")
        if name in _FENCED:
            return Unreachable(self.cluster, f"another process writes to the topic {self.topic} in our place")
        if name == "MSG_SIZE_TOO_LARGE":
            return BadInput(f"{self.cluster}: a released line is longer than the topic {self.topic} allows")
        return Unreachable(self.cluster, f"no answer ({name.strip('_').lower().replace('_', ' ')})")


def kafka_library() -> Any:
    """Return the client of Kafka."""
    return _library("confluent_kafka", "Kafka")
