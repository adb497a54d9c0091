"""Addresses and connections of Kafka topics, and the meaning of the client's errors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from queryveil.errors import BadInput, BadParameter, MissingExtra, QueryveilError, Unreachable

LONGEST_WAIT = 5.0
"""Seconds that the brokers may take to answer."""
_SECURITY = {"tls": "0", "sasl": "PLAIN", "ca": ""}
_DENIED = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAddress:
    """A topic of some brokers, as named by kafka://HOST:PORT,HOST:PORT/TOPIC; the password is in no text of it."""

    servers: str
    topic: str
    options: Mapping[str, str]
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def from_url(cls, url: str, *, what: str, options: Mapping[str, str]) -> Self:
        """Read a URL; `options` may follow ? in it, here with their defaults, beside those for security."""
        options = {**_SECURITY, **options}
        try:
            parts = urlsplit(url)
            given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError:
            parts, given = urlsplit(""), {}
        who, _, servers = parts.netloc.rpartition("@")
        topic = parts.path.strip("/")
        if parts.scheme != "kafka" or not servers or not topic or "/" in topic:
            # Privacy: the URL may hold a password.
            raise BadParameter(what, "another Kafka address", allowed="kafka://HOST:PORT/TOPIC")
        if unknown := sorted(given.keys() - options.keys()):
            names = ", ".join(sorted(options))
            raise BadParameter(f"what follows ? in the {what}", unknown[0], allowed=f"among {names}")
        user, _, password = who.partition(":")
        return cls(
            servers=",".join(each if ":" in each else f"{each}:9092" for each in servers.split(",")),
            topic=topic,
            options={**options, **given},
            user=unquote(user) or None,
            password=unquote(password) or None,
        )

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
        return library().Consumer(self.settings({**common, **more}))

    def partitions(self, client: Any) -> list[int]:
        """Ask the brokers for the numbers of the partitions."""
        with self.errors():
            found = client.list_topics(self.topic, timeout=LONGEST_WAIT).topics[self.topic]
        if found.error is not None:
            raise self.explain(found.error)
        return sorted(found.partitions)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what the client raises into our errors."""
        try:
            yield
        except library().KafkaException as error:
            raise self.explain(error.args[0]) from None

    def explain(self, error: Any) -> QueryveilError:
        """Return our error for one of the client's; its own text is not passed on."""
        name = error.name()
        if name in _DENIED:
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


def library() -> Any:
    """Import the client."""
    try:
        import confluent_kafka  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("Kafka", extra="service") from None
    return confluent_kafka
