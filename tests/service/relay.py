"""A small loop over the ports, run as a process of its own, that dies where it is told to.

relay.py SOURCE SINK STATE N_LINES [MOMENT ROUND]: lines go from source to sink until there were so many in all runs.
The state is one JSON file that is replaced in one step. MOMENT is one of take, commit, acknowledge, deliver.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from queryveil.service.connectors.kafka import KafkaSink, KafkaSource
from queryveil.service.connectors.redis import RedisSink, RedisSource
from queryveil.service.ports import Outgoing, Sink, Source


def open_ports(source: str, sink: str) -> tuple[Source, Sink]:
    return (
        RedisSource(source) if source.startswith("redis") else KafkaSource(source),
        RedisSink(sink) if sink.startswith("redis") else KafkaSink(sink),
    )


class State:
    def __init__(self, path: Path) -> None:
        self.path = path
        blank: dict[str, Any] = {
            "position": None,
            "outbox": [],
            "delivered": 0,
            "number": 0,
            "n_bytes": 0,
            "n_lines": 0,
        }
        self.now = json.loads(path.read_text()) if path.exists() else blank

    def commit(self, *, position: str, data: bytes, delivered: int) -> None:
        now = self.now
        outbox = [each for each in now["outbox"] if each[0] > delivered]
        outbox.append([now["number"] + 1, now["n_bytes"], base64.b64encode(data).decode()])
        number, n_bytes = now["number"] + 1, now["n_bytes"] + len(data)
        self.now = {
            "position": position,
            "outbox": outbox,
            "delivered": delivered,
            "number": number,
            "n_bytes": n_bytes,
            "n_lines": now["n_lines"] + data.count(b"\n"),
        }
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.now))
        fresh.replace(self.path)

    @property
    def outgoing(self) -> list[Outgoing]:
        found = [(number, offset, base64.b64decode(data)) for number, offset, data in self.now["outbox"]]
        return [Outgoing(number=n, offset=o, data=data, n_rows=data.count(b"\n")) for n, o, data in found]


def relay(source: Source, sink: Sink, state: State, *, n_lines: int, dies_at: tuple[str, int] | None = None) -> None:
    """Carry lines over; sources and sinks are opened and closed here."""
    source.open(position=state.now["position"], keys=())
    delivered = state.now["delivered"]
    sink.open(delivered=delivered, n_bytes=0)
    for each in state.outgoing:
        sink.deliver(each)
        delivered = each.number
    n_rounds = 0

    def passed(moment: str) -> None:
        if dies_at == (moment, n_rounds):
            os.kill(os.getpid(), signal.SIGKILL)

    # When all are there it looks once more, whether anything is repeated.
    while (batch := source.take(timeout=0.5)) or state.now["n_lines"] < n_lines:
        if batch is None:
            continue
        n_rounds += 1
        passed("take")
        state.commit(position=batch.position, data=batch.data, delivered=delivered)
        passed("commit")
        source.acknowledge(batch, bad_lines=())
        passed("acknowledge")
        sink.deliver(state.outgoing[-1])
        passed("deliver")
        delivered = state.outgoing[-1].number
    source.close()
    sink.close()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    relay(
        *open_ports(arguments[0], arguments[1]),
        State(Path(arguments[2])),
        n_lines=int(arguments[3]),
        dies_at=(arguments[4], int(arguments[5])) if arguments[4:] else None,
    )
