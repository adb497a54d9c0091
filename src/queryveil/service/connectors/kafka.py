"""Kafka topics as source and sink."""

import hashlib
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from time import monotonic
from typing import Any, NamedTuple

import msgspec

from queryveil.errors import BadInput, BadParameter, QueryveilError, Unreachable
from queryveil.service.connectors._servers import LONGEST_WAIT, KafkaAddress, kafka_library
from queryveil.service.ports import Batch, Outgoing, Sink, Source

_MOST_MESSAGES = 10_000
_BATCH_BYTES = 1 << 20
_LINGER = 0.005
_SLICE = 0.25
_SECONDS_BETWEEN_LOOKS = 30.0
_AWAY = {"_ALL_BROKERS_DOWN", "_RESOLVE"}


class KafkaSource(Source):
    """Reads a Kafka topic: a message is one line, or several.

    The source reads all partitions itself, from the offsets in the store; no group shares them out. Offsets are also
    committed to a group, but only so that others can see the lag. Only committed messages are read.

    - `url`: kafka://HOST:PORT,HOST:PORT/TOPIC?group=G&gaps=error. Where messages were deleted before they were read, or
      the topic was created anew, the reading stops with an error; `gaps=skip` goes on with the first message that is
      there. USER:PASSWORD@ before the hosts and `sasl=PLAIN`, `tls=1` and `ca=FILE` are for authentication.
    """

    def __init__(self, url: str) -> None:
        self._address = KafkaAddress(url, what="source", options={"group": "queryveil", "gaps": "error"})
        self.name = self._address.name
        if self._address.options["gaps"] not in ("error", "skip"):
            raise BadParameter("gaps in the source", self._address.options["gaps"], allowed="error or skip")
        self._lock = threading.Lock()
        self._consumer: Any = None
        self._next: dict[int, int] = {}
        self._assigned: set[int] = set()
        self._looked, self._is_away, self._is_closed = 0.0, False, False
        self._problem: QueryveilError | None = None
        self._n_messages = 500

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:  # noqa: ARG002 - offsets say it all
        try:
            self._next = {} if position is None else msgspec.json.decode(position, type=dict[int, int])
        except msgspec.MsgspecError:
            raise BadInput("the state is of another source than a Kafka topic; name another --store") from None
        settings = {"auto.offset.reset": "error", "queued.max.messages.kbytes": 16 << 10, "error_cb": self._note}
        self._consumer = self._address.consumer(settings)

    def take(self, *, timeout: float) -> Batch | None:
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
            problem, self._problem = self._problem, None
            if problem is not None:
                raise problem
            if monotonic() >= end:
                break
        return None

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:  # noqa: ARG002 - nobody to tell
        """Commit the offsets to the group, for others to see; it does not matter whether that arrives."""
        kafka = kafka_library()
        offsets = msgspec.json.decode(batch.position, type=dict[int, int])
        found = [kafka.TopicPartition(self._address.topic, each, offset) for each, offset in offsets.items()]
        with self._lock, suppress(kafka.KafkaException):
            if self._consumer is not None:
                self._consumer.commit(offsets=found, asynchronous=True)

    def close(self) -> None:
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
        kafka = kafka_library()
        if partitions:
            starts = [(each, self._next.get(each, kafka.OFFSET_BEGINNING)) for each in partitions]
            self._consumer.incremental_assign([kafka.TopicPartition(self._address.topic, *start) for start in starts])
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
            kafka = kafka_library()
            self._next.pop(partition, None)
            self._consumer.incremental_unassign([kafka.TopicPartition(self._address.topic, partition)])
            self._assign([partition])
        else:
            self._problem = BadInput(
                f"{self._address.cluster} no longer has offset {self._next.get(partition, 0)} of partition {partition} "
                f"of the topic {self._address.topic}: messages were deleted before they were read; "
                "add gaps=skip to the source to go on without them"
            )


_NUMBER, _DIGEST, _RELEASE = "queryveil-number", "queryveil-digest", "queryveil-release"


class _LastBlock(NamedTuple):
    """The headers of a last message: its block, the digest of that, and the digest of the release's first block."""

    number: int = 0
    digest: bytes = b""
    release: bytes = b""


class KafkaSink(Sink):
    """Writes a Kafka topic: one message an event.

    A block is one transaction and goes to one partition, and its last message carries in headers which block it was.
    After a crash the last message of each partition says what has arrived: a consumer of committed messages sees a
    block whole or not at all, and once. Kafka forgets messages by age, so a topic without any is no sign of a loss.

    - `url`: kafka://HOST:PORT,HOST:PORT/TOPIC; no other release may be in the topic. USER:PASSWORD@ before the hosts
      and `sasl=PLAIN`, `tls=1` and `ca=FILE` are for authentication.
    """

    def __init__(self, url: str) -> None:
        self._address = KafkaAddress(url, what="sink", options={"group": "queryveil"})
        self.name = self._address.name
        self._lock = threading.Lock()
        self._producer: Any = None
        self._is_closed = self._must_be_new = False
        self._n_partitions = self._delivered = 0
        self._last_block = _LastBlock()

    def check_new(self) -> None:
        """Make `open` raise if there is a release in the topic; the brokers may be away just now."""
        self._must_be_new = True

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - numbers say it all
        """Shut out an earlier process, and see what has arrived."""
        self._delivered, self._is_closed = delivered, False
        self._connect()
        if self._last_block.number and self._must_be_new:
            raise self._other()
        self._must_be_new = False

    def deliver(self, outgoing: Outgoing) -> None:
        """Send the lines in one transaction, unless the topic has this number."""
        with self._lock:
            if self._is_closed:
                raise Unreachable(self._address.cluster, "the sink was closed")
            if self._producer is None:
                self._connect()
            digest = hashlib.blake2b(outgoing.data, digest_size=8).hexdigest().encode()
            last, number = self._last_block, outgoing.number
            if number <= max(last.number, self._delivered):
                if (number == 1 and digest != last.release) or (number == last.number and digest != last.digest):
                    raise self._other()
                return
            fresh = _LastBlock(number=number, digest=digest, release=last.release or digest)
            self._send(outgoing.data, last=fresh)
            self._last_block, self._delivered = fresh, number

    def _other(self) -> BadInput:
        return BadInput(
            f"the Kafka topic {self._address.topic} already holds another release; name another topic, "
            "or go on with the --store of that release"
        )

    def close(self) -> None:
        """Close the producer; a transaction under way is aborted."""
        self._is_closed = True
        # A delivery that does not end is left to the end of the process: the client must not be used by two at once.
        if self._lock.acquire(timeout=1.0):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _connect(self) -> None:
        self._last_block = _LastBlock()
        settings = {"transactional.id": f"queryveil-{self._address.topic}", "linger.ms": 5}
        settings |= {"queue.buffering.max.messages": 1_000_000, "queue.buffering.max.kbytes": 1 << 20}
        producer = kafka_library().Producer(self._address.settings(settings))
        partitions = self._address.partitions(producer)
        with self._address.errors():
            # What an earlier process left open is ended by this, so that the last messages say the truth.
            producer.init_transactions(6 * LONGEST_WAIT)
        self._last_block = self._read_back(partitions)
        self._n_partitions, self._producer = len(partitions), producer

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            # Not closed: that would try to end a transaction, and the next one with the same id does so anyway.
            producer.purge()

    def _send(self, data: bytes, *, last: _LastBlock) -> None:
        partition = last.number % self._n_partitions
        *lines, last_line = data.removesuffix(b"\n").split(b"\n")
        headers = [(_NUMBER, str(last.number).encode()), (_DIGEST, last.digest), (_RELEASE, last.release)]
        try:
            with self._address.errors():
                self._producer.begin_transaction()
                for line in lines:
                    self._produce(value=line, partition=partition)
                self._produce(value=last_line, partition=partition, headers=headers)
                self._producer.commit_transaction(6 * LONGEST_WAIT)
        except BaseException:
            # Whether it arrived is not known: the next attempt begins with reading back.
            self._drop()
            raise

    def _produce(self, **message: Any) -> None:
        while True:
            try:
                self._producer.produce(self._address.topic, **message)
            except BufferError:
                self._producer.poll(0.05)
            else:
                return

    def _read_back(self, partitions: list[int]) -> _LastBlock:
        settings = {"auto.offset.reset": "earliest", "enable.partition.eof": True, "fetch.wait.max.ms": 10}
        with self._address.errors(), closing(self._address.consumer(settings)) as consumer:
            found = [self._last(consumer, partition=each) for each in partitions]
        return max(found, key=lambda each: each.number, default=_LastBlock())

    def _last(self, consumer: Any, *, partition: int) -> _LastBlock:
        """Read a partition's end, from further back until there is a message of ours."""
        place = partial(kafka_library().TopicPartition, self._address.topic, partition)
        low, high = consumer.get_watermark_offsets(place(), timeout=LONGEST_WAIT)
        width, start, found = 8, high, None
        while start > low and found is None:
            start = max(low, high - width)
            consumer.assign([place(start)])
            found = self._last_of(consumer, end=high)
            width *= 16
        return found or _LastBlock()

    def _last_of(self, consumer: Any, *, end: int) -> _LastBlock | None:
        found, deadline = None, monotonic() + 6 * LONGEST_WAIT
        while monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().name() == "_PARTITION_EOF":
                    return found
                raise self._address.explain(message.error())
            headers = dict(message.headers() or ())
            if (number := headers.get(_NUMBER, b"")).isdigit():
                found = _LastBlock(int(number), headers.get(_DIGEST, b""), headers.get(_RELEASE, b""))
            if message.offset() >= end - 1:
                return found
        raise Unreachable(self._address.cluster, "no answer in time")
