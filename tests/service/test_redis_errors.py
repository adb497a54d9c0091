"""What a Redis server and addresses of one can be wrong in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.redis_server import IS_INSTALLED, RedisServer, free_port

from queryveil.errors import BadInput, BadParameter, Unreachable
from queryveil.service.connectors.redis import RedisSink, RedisSource
from queryveil.service.ports import Outgoing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_INSTALLED, reason="redis-server is not installed")]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


def block(number: int, *, data: bytes) -> Outgoing:
    return Outgoing(number=number, offset=0, data=data, n_rows=data.count(b"\n"))


def n_released(server: RedisServer) -> int:
    with server.client() as client:
        n: int = client.xlen("released")
        return n


def test_a_server_without_memory_holds_the_sink_back_and_adds_nothing(tmp_path: Path) -> None:
    with RedisServer(tmp_path, options=("--maxmemory", "3mb", "--maxmemory-policy", "noeviction")) as server:
        sink = RedisSink(server.url())
        sink.open(delivered=0, n_bytes=0)
        n_sent = 0

        def fill_up() -> None:
            nonlocal n_sent
            for number in range(1, 100):
                sink.deliver(block(number, data=b"x" * 99_999 + b"\n"))
                n_sent = number

        with pytest.raises(Unreachable, match="out of memory"):
            fill_up()
        assert n_released(server) == n_sent
        with server.client() as client:
            client.config_set("maxmemory", "100mb")
        sink.deliver(block(n_sent + 1, data=b"two\nlines\n"))
        sink.close()
        assert n_released(server) == n_sent + 2


def test_a_key_of_another_kind_is_an_error_in_one_line(server: RedisServer) -> None:
    with server.client() as client:
        client.set("taken", "text")
    url = server.url(stream="taken")
    with pytest.raises(BadInput, match="the key taken is there and is no stream; name another stream"):
        RedisSource(url).open(position=None, keys=())
    with pytest.raises(BadInput, match="the key taken is there and is no stream; name another stream"):
        RedisSink(url).open(delivered=0, n_bytes=0)


def test_a_wrong_password_is_an_error_that_shows_none(tmp_path: Path) -> None:
    with RedisServer(tmp_path, password="opensesame") as server:
        good = server.url().replace("redis://", "redis://:opensesame@")
        source = RedisSource(good)
        source.open(position=None, keys=())
        source.close()
        for url in (server.url(), good.replace("opensesame", "swordfish")):
            with pytest.raises(BadInput, match="does not let us in") as caught:
                RedisSource(url).open(position=None, keys=())
            with pytest.raises(BadInput, match="does not let us in"):
                RedisSink(url).open(delivered=0, n_bytes=0)
            assert "swordfish" not in str(caught.value)
            assert caught.value.__suppress_context__
        assert "opensesame" not in RedisSource(good).name + repr(source) + repr(RedisSource(good)._address)


def test_a_server_that_is_not_there_is_unreachable() -> None:
    for host, reason in ((f"127.0.0.1:{free_port()}", "connection refused"), ("nowhere.invalid", "no such host")):
        with pytest.raises(Unreachable, match=f"{host}.*: {reason}"):
            RedisSource(f"redis://{host}").open(position=None, keys=())
        with pytest.raises(Unreachable, match=f"{host}.*: {reason}"):
            RedisSink(f"redis://{host}").open(delivered=0, n_bytes=0)


@pytest.mark.parametrize(
    "url",
    ["redis://", "redis://h:port", "redis://h/x", "redis://h?stream=", "redis://h?stream", "http://h", "redis://[h"],
)
def test_an_address_that_is_none_is_an_error_that_does_not_repeat_it(url: str) -> None:
    for kind in (RedisSource, RedisSink):
        with pytest.raises(BadParameter, match="must be redis://HOST:PORT/DB") as caught:
            kind(url)
        assert url not in str(caught.value).partition("got")[2]


@pytest.mark.parametrize("options", ["group=g&colour=red", "delete=yes", "delete=-1", "ssl_ca_certs=x"])
def test_an_option_that_is_not_known_is_an_error(options: str) -> None:
    with pytest.raises(BadParameter):
        RedisSource(f"redis://h?{options}")


def test_a_position_of_another_source_is_an_error(server: RedisServer) -> None:
    with pytest.raises(BadInput, match="another source than a Redis stream"):
        RedisSource(server.url()).open(position='{"0": 17}', keys=())


def test_defaults_are_the_streams_queries_and_released() -> None:
    parts: list[Any] = [RedisSource("redis://h"), RedisSink("rediss://:p@h:1/2?stream=out")]
    assert [part.name for part in parts] == ["redis://h:6379/0?stream=queries", "rediss://h:1/2?stream=out"]
