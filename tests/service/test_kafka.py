"""The broker that the Kafka client brings along for tests, on this machine, between a source and a sink.

It speaks the protocol over TCP, but it does not undo transactions: what becomes of half a block is left to Kafka.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as kafka
import pytest
from tests.support.redis_server import free_port
from tests.support.waiting import patience, until

from queryveil.errors import BadInput, BadParameter, Unreachable
from queryveil.service.connectors.kafka import KafkaSink, KafkaSource
from queryveil.service.ports import Outgoing

pytestmark = pytest.mark.slow

RELAY = Path(__file__).with_name("relay.py")


@pytest.fixture
def broker() -> Iterator[str]:
    settings: dict[str, Any] = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0}
    inside = kafka.Producer(settings)
    yield ",".join(f"{each.host}:{each.port}" for each in inside.list_topics(timeout=patience()).brokers.values())
    inside.close()


def fill(broker: str, *, start: int, stop: int, topic: str = "queries", partitions: int = 4) -> None:
    producer = kafka.Producer({"bootstrap.servers": broker, "log_level": 0})
    for number in range(start, stop):
        producer.produce(topic, value=b"line %d" % number, partition=number % partitions)
    assert producer.flush(patience()) == 0
    producer.close()


def everything(broker: str, *, topic: str = "released") -> list[bytes]:
    settings: dict[str, Any] = {"bootstrap.servers": broker, "group.id": "looking", "log_level": 0}
    settings |= {"enable.partition.eof": True, "enable.auto.commit": False}
    consumer = kafka.Consumer(settings)
    partitions = list(consumer.list_topics(topic, timeout=patience()).topics[topic].partitions)
    consumer.assign([kafka.TopicPartition(topic, each, kafka.OFFSET_BEGINNING) for each in partitions])
    found, n_ended = [], 0
    while n_ended < len(partitions):
        for message in consumer.consume(1000, timeout=0.05):
            error = message.error()
            if error is None:
                found.append(message.value() or b"")
            else:
                n_ended += error.code() == kafka.KafkaError._PARTITION_EOF
    consumer.close()
    return found


def source_at(broker: str, *, position: str | None = None, options: str = "") -> KafkaSource:
    source = KafkaSource(f"kafka://{broker}/queries{options}")
    source.open(position=position, keys=())
    return source


def sink_at(broker: str, *, delivered: int = 0) -> KafkaSink:
    sink = KafkaSink(f"kafka://{broker}/released")
    sink.open(delivered=delivered, n_bytes=0)
    return sink


def block(number: int, *, data: bytes | None = None) -> Outgoing:
    lines = b"block %d a\nblock %d b\n" % (number, number) if data is None else data
    return Outgoing(number=number, offset=0, data=lines, n_rows=lines.count(b"\n"))


def take(source: KafkaSource, *, n: int) -> tuple[list[bytes], str | None]:
    """Take so many lines, and look whether there are more."""
    lines: list[bytes] = []
    position = None
    while batch := source.take(timeout=patience() if len(lines) < n else 0.5):
        lines += batch.data.splitlines()
        position = batch.position
        source.acknowledge(batch, bad_lines=())
    return lines, position


def send(broker: str, lines: list[bytes]) -> None:
    producer = kafka.Producer({"bootstrap.servers": broker, "log_level": 0})
    for line in lines:
        producer.produce("queries", value=line)
    assert producer.flush(patience()) == 0
    producer.close()


def n_acknowledged(broker: str) -> int:
    """Ask the group how far the source is."""
    consumer = kafka.Consumer({"bootstrap.servers": broker, "group.id": "queryveil", "log_level": 0})
    places = [kafka.TopicPartition("queries", each) for each in range(4)]
    n = sum(max(0, each.offset) for each in consumer.committed(places, timeout=patience()))
    consumer.close()
    return n


def run_service(options: list[str], broker: str, *, n_lines: int) -> dict[str, Any]:
    """Run it until it has read so many lines, then stop it."""
    with subprocess.Popen([sys.executable, "-m", "queryveil", "stream", *options], stdout=subprocess.PIPE) as process:
        until(lambda: n_acknowledged(broker) >= n_lines, process=process)
        process.terminate()
        said, _ = process.communicate(timeout=patience())
    counts: dict[str, Any] = json.loads(said)
    return counts


def numbered(start: int, stop: int) -> list[bytes]:
    return sorted(b"line %d" % number for number in range(start, stop))


def test_messages_of_all_partitions_come_once_and_go_on_behind_the_position(broker: str) -> None:
    fill(broker, start=0, stop=1000)
    source = source_at(broker)
    lines, position = take(source, n=1000)
    assert sorted(lines) == numbered(0, 1000)
    source.close()
    fill(broker, start=1000, stop=1100)
    again = source_at(broker, position=position)
    lines, _ = take(again, n=100)
    again.close()
    assert sorted(lines) == numbered(1000, 1100)


def test_what_was_taken_and_not_committed_comes_again(broker: str) -> None:
    fill(broker, start=0, stop=20)
    for _ in range(2):
        source = source_at(broker)
        lines, _ = take(source, n=20)
        source.close()
        assert sorted(lines) == numbered(0, 20)


def test_messages_without_text_are_passed_over_and_several_lines_are_several_events(broker: str) -> None:
    producer = kafka.Producer({"bootstrap.servers": broker, "log_level": 0})
    for value in (None, b"", b"two\nlines\n", b"\xff\x00"):
        producer.produce("queries", value=value, partition=0)
    producer.flush(patience())
    producer.close()
    source = source_at(broker)
    lines, _ = take(source, n=3)
    source.close()
    assert lines == [b"two", b"lines", b"\xff\x00"]


def test_offsets_that_are_gone_are_an_error_unless_gaps_are_skipped(broker: str) -> None:
    fill(broker, start=0, stop=40)
    position = '{"0":1000,"1":0,"2":0,"3":0}'
    source = source_at(broker, position=position)
    with pytest.raises(BadInput, match=r"no longer has offset 1000 of partition 0 of the topic queries.*gaps=skip"):
        take(source, n=40)
    source.close()
    source = source_at(broker, position=position, options="?gaps=skip")
    lines, _ = take(source, n=40)
    source.close()
    assert sorted(lines) == numbered(0, 40)


def test_a_block_is_delivered_once_however_often_it_is_offered(broker: str) -> None:
    sink = sink_at(broker)
    for number in (1, 1, 2, 1, 2, 3, 4, 5):
        sink.deliver(block(number))
    sink.close()
    sink = sink_at(broker, delivered=3)
    for number in (4, 5, 6):
        sink.deliver(block(number))
    sink.close()
    expected = [b"block %d %s" % (number, letter) for number in range(1, 7) for letter in (b"a", b"b")]
    assert sorted(everything(broker)) == sorted(expected)


def test_what_has_arrived_is_found_behind_messages_of_others(broker: str) -> None:
    sink = sink_at(broker)
    sink.deliver(block(1))
    sink.close()
    fill(broker, start=0, stop=500, topic="released")
    sink = sink_at(broker)
    sink.deliver(block(1))
    sink.close()
    assert len(everything(broker)) == 502


def test_a_topic_with_another_release_is_not_taken_for_ours(broker: str) -> None:
    sink = sink_at(broker)
    for number in (1, 2, 3):
        sink.deliver(block(number))
    sink.close()
    fresh = sink_at(broker)
    for number in (1, 3):
        with pytest.raises(BadInput, match="already holds another release"):
            fresh.deliver(block(number, data=b"something else\n"))
    fresh.close()
    new = KafkaSink(f"kafka://{broker}/released")
    new.check_new()
    with pytest.raises(BadInput, match="already holds another release"):
        new.open(delivered=0, n_bytes=0)
    new.close()


@pytest.mark.parametrize("moment", ["take", "commit", "acknowledge", "deliver"])
def test_a_process_killed_at_any_moment_loses_nothing_and_repeats_nothing(
    broker: str, tmp_path: Path, moment: str
) -> None:
    def run(*dies_at: str) -> int:
        places = [f"kafka://{broker}/queries", f"kafka://{broker}/released", str(tmp_path / "state.json")]
        words = [*places, "1300", *dies_at]
        return subprocess.run([sys.executable, str(RELAY), *words], check=False, timeout=patience()).returncode

    fill(broker, start=0, stop=1200)
    assert run(moment, "1") == -9
    fill(broker, start=1200, stop=1300)
    assert run(moment, "1") == -9
    assert run() == 0
    assert sorted(everything(broker)) == numbered(0, 1300)


def test_a_service_between_two_topics_loses_nothing_and_releases_nothing_twice(broker: str, tmp_path: Path) -> None:
    words = (("red", "white", "sweet", "sour"), ("wine", "grapes", "onions", "bread"), ("price", "shop", "recipe"))
    queries = [" ".join(each) for each in itertools.product(*words)]
    options = ["--source", f"kafka://{broker}/queries", "--sink", f"kafka://{broker}/released", "--json"]
    options += ["--store", f"sqlite:{tmp_path / 'state.db'}", "--ids", "keep", "--k", "2"]
    for n_lines, half in ((24, queries[:24]), (48, queries[24:])):
        send(broker, [f'{{"user":"u{number % 7}","query":"{query}"}}'.encode() for number, query in enumerate(half)])
        counts = run_service(options, broker, n_lines=n_lines)
        released = [json.loads(line)["query"] for line in everything(broker)]
        assert counts["n_read"] == n_lines == counts["n_released"] + counts["n_waiting"]
        assert len(released) == counts["n_released"] == counts["n_delivered"]
        assert len(set(released)) == len(released)


def test_brokers_that_are_not_there_are_unreachable() -> None:
    url = f"kafka://127.0.0.1:{free_port()}/topic"
    source = KafkaSource(url)
    source.open(position=None, keys=())
    with pytest.raises(Unreachable, match=r"Kafka at 127.0.0.1:\d+: no answer"):
        source.take(timeout=0.1)
    source.close()
    sink = KafkaSink(url)
    with pytest.raises(Unreachable, match="no answer"):
        sink.open(delivered=0, n_bytes=0)
    sink.close()


@pytest.mark.parametrize(
    "url", ["kafka://", "kafka://h", "kafka:///t", "kafka://h/a/b", "kafka://h/t?group", "http://h/t"]
)
def test_an_address_that_is_none_is_an_error(url: str) -> None:
    for kind in (KafkaSource, KafkaSink):
        with pytest.raises(BadParameter, match="must be kafka://HOST:PORT/TOPIC"):
            kind(url)


def test_options_that_are_not_known_are_errors() -> None:
    for options in ("colour=red", "gaps=maybe"):
        with pytest.raises(BadParameter):
            KafkaSource(f"kafka://h/t?{options}")


def test_the_password_is_used_and_never_shown() -> None:
    source = KafkaSource("kafka://user:opensesame@one,two:9/t?tls=1&sasl=SCRAM-SHA-512")
    settings = source._address.settings({})
    assert settings["sasl.password"] == "opensesame"
    assert settings["security.protocol"] == "SASL_SSL"
    assert source.name == "kafka://one:9092,two:9/t"
    assert "opensesame" not in repr(source._address) + repr(source)


def test_a_position_of_another_source_is_an_error() -> None:
    with pytest.raises(BadInput, match="another source than a Kafka topic"):
        KafkaSource("kafka://h/t").open(position="1-0", keys=())
