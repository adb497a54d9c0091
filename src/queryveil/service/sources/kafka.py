"""Events from a Kafka topic: a message is one line, or several.

The source reads all partitions itself, from where the store says; no group shares them out. Offsets are also committed
to a group, but only so that others can see how far the reading is. Only committed messages are read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec

from queryveil.errors import BadInput, BadParameter, QueryveilError
from queryveil.service.kafka_cluster import KafkaAddress, library
from queryveil.service.ports import Batch

_MOST_MESSAGES = 10_000
_BATCH_BYTES = 1 << 20
_LINGER = 0.005
_SLICE = 0.25
_SECONDS_BETWEEN_LOOKS = 30.0
_AWAY = {"_ALL_BROKERS_DOWN", "_RESOLVE"}


class KafkaSource:
    """A topic, named by kafka://HOST:PORT,HOST:PORT/TOPIC?group=G&gaps=error.

    Where messages were deleted before they were read, or the topic was made anew, the reading stops with an error;
    `gaps=skip` goes on with the first message that is there. USER:PASSWORD@ before the hosts and `sasl=PLAIN`, `tls=1`
    and `ca=FILE` say how to get in.
    """

    def __init__(self, url: str) -> None:
        self._address = KafkaAddress.from_url(url, what="source", options={"group": "queryveil", "gaps": "error"})
        if self._address.options["gaps"] not in ("error", "skip"):
            raise BadParameter("gaps in the source", self._address.options["gaps"], allowed="error or skip")
        self._lock = threading.Lock()
        self._is_closed = False
        self._consumer: Any = None
        self._next: dict[int, int] = {}
        self._assigned: set[int] = set()
        self._looked = 0.0
        self._is_away = False
        self._problem: QueryveilError | None = None
        self._n_messages = 500

    @property
    def name(self) -> str:
        """The address without user and password."""
        return self._address.name

    @property
    def is_finished(self) -> bool:
        """Never: somebody may always add a message."""
        return False

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:  # noqa: ARG002 - offsets say it all
        """Go on behind the offsets that were committed."""
        try:
            self._next = {} if position is None else msgspec.json.decode(position, type=dict[int, int])
        except msgspec.MsgspecError:
            raise BadInput("the state is of another source than a Kafka topic; name another --store") from None
        self._is_closed = False
        self._assigned, self._looked = set(), 0.0
        self._consumer = library().Consumer(
            self._address.settings(
                {
                    "group.id": self._address.options["group"],
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "error",
                    "queued.max.messages.kbytes": 16 << 10,
                    "error_cb": self._note,
                }
            )
        )

    def take(self, *, timeout: float) -> Batch | None:
        """Return what has come, up to about a megabyte."""
        end = monotonic() + timeout
        while not self._is_closed:
            with self._lock:
                if self._consumer is None:
                    break
                self._look_for_partitions()
                messages = self._consumer.consume(1, timeout=max(0.0, min(_SLICE, end - monotonic())))
                if messages:
                    messages += self._consumer.consume(self._n_messages - 1, timeout=_LINGER)
                batch = self._batch(messages)
            if batch is not None:
                return batch
            if self._problem is not None:
                problem, self._problem = self._problem, None
                raise problem
            if monotonic() >= end:
                break
        return None

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:  # noqa: ARG002 - nobody to tell
        """Tell the group how far we are; it does not matter whether that arrives."""
        kafka = library()
        offsets = msgspec.json.decode(batch.position, type=dict[int, int])
        with self._lock:
            if self._consumer is not None:
                found = [kafka.TopicPartition(self._address.topic, each, offset) for each, offset in offsets.items()]
                with suppress(kafka.KafkaException):
                    self._consumer.commit(offsets=found, asynchronous=True)

    def close(self) -> None:
        """End a `take` that waits, and let go."""
        self._is_closed = True
        with self._lock:
            consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _note(self, error: Any) -> None:
        if error.name() in _AWAY:
            self._is_away = True
        elif isinstance(found := self._address.explain(error), BadInput):
            self._problem = found

    def _look_for_partitions(self) -> None:
        """Assign partitions that are new, now and then; where the brokers were away, see whether they are back."""
        if not self._is_away and self._assigned and monotonic() < self._looked + _SECONDS_BETWEEN_LOOKS:
            return
        partitions = self._address.partitions(self._consumer)
        self._is_away, self._looked = False, monotonic()
        self._assign([each for each in partitions if each not in self._assigned])

    def _assign(self, partitions: list[int]) -> None:
        kafka = library()
        topic = self._address.topic
        if partitions:
            self._consumer.incremental_assign(
                [kafka.TopicPartition(topic, each, self._next.get(each, kafka.OFFSET_BEGINNING)) for each in partitions]
            )
            self._assigned |= set(partitions)

    def _batch(self, messages: list[Any]) -> Batch | None:
        lines = []
        for message in messages:
            if message.error() is not None:
                self._fail(message)
                continue
            self._next[message.partition()] = message.offset() + 1
            if value := message.value():
                lines.append(value if value.endswith(b"\n") else value + b"\n")
        if not lines:
            return None
        data = b"".join(lines)
        wanted = _BATCH_BYTES * len(lines) // len(data)
        self._n_messages = max(2, min(wanted, 4 * self._n_messages, _MOST_MESSAGES))
        return Batch(data=data, position=msgspec.json.encode(self._next).decode())

    def _fail(self, message: Any) -> None:
        error, partition = message.error(), message.partition()
        if error.name() != "_AUTO_OFFSET_RESET":
            self._problem = self._address.explain(error)
        elif self._address.options["gaps"] == "skip":
            kafka = library()
            self._next.pop(partition, None)
            self._consumer.incremental_unassign([kafka.TopicPartition(self._address.topic, partition)])
            self._assign([partition])
        else:
            self._problem = BadInput(
                f"{self._address.cluster} no longer has offset {self._next.get(partition, 0)} of partition {partition} "
                f"of the topic {self._address.topic}: messages were deleted before they were read; "
                "add gaps=skip to the source to go on without them"
            )
