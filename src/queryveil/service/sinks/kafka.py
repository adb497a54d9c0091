"""Released events into a Kafka topic: one message an event.

A block is one transaction and goes to one partition, and its last message carries in headers which block it was. After
a crash the last message of each partition says what has arrived: a consumer of committed messages sees a block whole or
not at all, and once. Kafka forgets messages by age, so a topic without any is no sign of a loss.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from time import monotonic
from typing import Any

from queryveil.errors import BadInput, QueryveilError, Unreachable
from queryveil.service.kafka_cluster import LONGEST_WAIT, KafkaAddress, library
from queryveil.service.ports import Outgoing

_NUMBER, _DIGEST, _RELEASE = "queryveil-number", "queryveil-digest", "queryveil-release"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """What a last message says: its block, the digest of that, and the digest of the release's first block."""

    number: int = 0
    digest: bytes = b""
    release: bytes = b""


class KafkaSink:
    """A topic, named by kafka://HOST:PORT,HOST:PORT/TOPIC; no other release may be in it.

    USER:PASSWORD@ before the hosts and `sasl=PLAIN`, `tls=1` and `ca=FILE` say how to get in.
    """

    def __init__(self, url: str) -> None:
        self._address = KafkaAddress.from_url(url, what="sink", options={"group": "queryveil"})
        self._lock = threading.Lock()
        self._producer: Any = None
        self._is_closed = self._must_be_new = False
        self._n_partitions = 0
        self._delivered = 0
        self._noted = _Noted()

    @property
    def name(self) -> str:
        """The address without user and password."""
        return self._address.name

    def check_new(self) -> None:
        """Have `open` raise if there is a release in the topic; the brokers may be away just now."""
        self._must_be_new = True

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - numbers say it all
        """Shut out an earlier process, and see what has arrived."""
        self._delivered, self._is_closed = delivered, False
        self._connect()
        if self._noted.number and self._must_be_new:
            raise self._other()
        self._must_be_new = False

    def deliver(self, outgoing: Outgoing) -> None:
        """Send the lines in one transaction, unless the topic has this number."""
        with self._lock:
            if self._is_closed:
                raise Unreachable(self._address.cluster, "the sink was closed")
            if self._producer is None:
                self._connect()
            self._deliver(outgoing)

    def _deliver(self, outgoing: Outgoing) -> None:
        digest = hashlib.blake2b(outgoing.data, digest_size=8).hexdigest().encode()
        noted, number = self._noted, outgoing.number
        if number <= max(noted.number, self._delivered):
            if (number == 1 and digest != noted.release) or (number == noted.number and digest != noted.digest):
                raise self._other()
            return
        fresh = _Noted(number=number, digest=digest, release=noted.release or digest)
        self._send(outgoing.data, noted=fresh)
        self._noted, self._delivered = fresh, number

    def _other(self) -> BadInput:
        return BadInput(
            f"the Kafka topic {self._address.topic} already holds another release; name another topic, "
            "or go on with the --store of that release"
        )

    def close(self) -> None:
        """Let go; a transaction under way is given up."""
        self._is_closed = True
        # A delivery that does not end is left to the end of the process: the client must not be used by two at once.
        if self._lock.acquire(timeout=1.0):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _connect(self) -> None:
        kafka = library()
        self._noted = _Noted()
        settings = {"transactional.id": f"queryveil-{self._address.topic}", "linger.ms": 5}
        settings |= {"queue.buffering.max.messages": 1_000_000, "queue.buffering.max.kbytes": 1 << 20}
        producer = kafka.Producer(self._address.settings(settings))
        try:
            partitions = self._address.partitions(producer)
            # What an earlier process left open is ended by this, so that the last messages say the truth.
            producer.init_transactions(6 * LONGEST_WAIT)
        except kafka.KafkaException as error:
            raise self._address.explain(error.args[0]) from None
        self._noted = self._read_back(partitions)
        self._n_partitions, self._producer = len(partitions), producer

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            # Not closed: that would try to end a transaction, and the next one with the same id does so anyway.
            producer.purge()

    def _send(self, data: bytes, *, noted: _Noted) -> None:
        kafka = library()
        producer, topic, partition = self._producer, self._address.topic, noted.number % self._n_partitions
        lines = data.removesuffix(b"\n").split(b"\n")
        headers = [(_NUMBER, str(noted.number).encode()), (_DIGEST, noted.digest), (_RELEASE, noted.release)]
        try:
            producer.begin_transaction()
            for line in lines[:-1]:
                _produce(producer, topic, value=line, partition=partition)
            _produce(producer, topic, value=lines[-1], partition=partition, headers=headers)
            producer.commit_transaction(6 * LONGEST_WAIT)
        except kafka.KafkaException as error:
            problem: QueryveilError = self._address.explain(error.args[0])
        except BaseException:
            self._drop()
            raise
        else:
            return
        # Whether it arrived is not known: the next attempt begins with reading back.
        self._drop()
        raise problem

    def _read_back(self, partitions: list[int]) -> _Noted:
        kafka = library()
        more = {"group.id": self._address.options["group"], "enable.auto.commit": False, "enable.partition.eof": True}
        more |= {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10}
        consumer = kafka.Consumer(self._address.settings(more))
        try:
            found = [self._last(consumer, partition=each) for each in partitions]
        except kafka.KafkaException as error:
            raise self._address.explain(error.args[0]) from None
        finally:
            consumer.close()
        return max(found, key=lambda each: each.number, default=_Noted())

    def _last(self, consumer: Any, *, partition: int) -> _Noted:
        """Read a partition's end, from further back until there is a message of ours."""
        kafka = library()
        place = kafka.TopicPartition(self._address.topic, partition)
        low, high = consumer.get_watermark_offsets(place, timeout=LONGEST_WAIT)
        width, start = 8, high
        while start > low:
            start = max(low, high - width)
            consumer.assign([kafka.TopicPartition(self._address.topic, partition, start)])
            if found := self._last_of(consumer, end=high):
                return found
            width *= 16
        return _Noted()

    def _last_of(self, consumer: Any, *, end: int) -> _Noted | None:
        found, deadline = None, monotonic() + 6 * LONGEST_WAIT
        while monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().name() == "_PARTITION_EOF":
                    return found
                raise self._address.explain(message.error())
            found = _noted(message) or found
            if message.offset() >= end - 1:
                return found
        raise Unreachable(self._address.cluster, "no answer in time")


def _noted(message: Any) -> _Noted | None:
    headers = dict(message.headers() or ())
    number = headers.get(_NUMBER, b"")
    if not number.isdigit():
        return None
    return _Noted(number=int(number), digest=headers.get(_DIGEST, b""), release=headers.get(_RELEASE, b""))


def _produce(producer: Any, topic: str, **message: Any) -> None:
    while True:
        try:
            producer.produce(topic, **message)
        except BufferError:
            producer.poll(0.05)
        else:
            return
