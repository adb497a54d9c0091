"""Run a service from the command line: key, signals and messages."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queryveil.cli.anonymize.options import read_key
from queryveil.errors import BadParameter

if TYPE_CHECKING:
    from queryveil.release import ColumnPolicy
    from queryveil.service.pipeline.service import Service
    from queryveil.service.stats import Stats


def say(line: str) -> None:
    """Say something to people."""
    typer.echo(f"queryveil: {line}", err=True)


def stream_policy(
    *, ids: str, key: Path | None, store: str, time: str, keep: tuple[str, ...]
) -> tuple[ColumnPolicy, list[str]]:
    """Return the policy that the options describe, and what there is to say about its key.

    Keyed ids without a key get one beside the store.
    """
    from queryveil.release import ColumnPolicy

    secret, notes = read_key(key), []
    if secret is None and ids == "keyed":
        secret, note = _own_key(store)
        notes.append(note)
    return ColumnPolicy(ids=ids, time=time, keep=keep, key=secret), notes  # type: ignore[arg-type]


def _own_key(store: str) -> tuple[bytes, str]:
    from queryveil.service.keys import new_key, read_or_make_key

    if store == "memory:":
        return new_key(), "user ids get a key of this run only; to have the same ids in the next run, give --key FILE"
    path = Path("queryveil.key" if "://" in store else f"{store.removeprefix('sqlite:')}.key")
    return read_or_make_key(path), f"key of the user ids: {path}; verify needs it, keep it to yourself"


def parse_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT.

    >>> parse_address("127.0.0.1:9100")
    ('127.0.0.1', 9100)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise BadParameter("metrics", text, allowed="HOST:PORT, such as 127.0.0.1:9100")
    return host.strip("[]"), int(port)


def run_service(
    service: Service, *, notes: Sequence[str] = (), metrics: str | None = None, json_to: Any = None
) -> None:
    """Run until the source is finished or the process is told to stop; say then how it went."""
    watched: Any = nullcontext()
    if metrics is not None:
        from queryveil.service.http.server import serve_monitor

        host, port = parse_address(metrics)
        watched = serve_monitor(service, host=host, port=port)

    def stop(*_: object) -> None:
        service.stop()
        # Whoever asks twice means it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def greet() -> None:
        for note in notes:
            say(note)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    with watched:
        stats = service.run(when_begun=greet)
    if json_to is not None:
        import msgspec

        json_to.write(msgspec.json.encode(stats).decode() + "\n")
        json_to.flush()
    else:
        say(in_words(stats))


def in_words(stats: Stats) -> str:
    """Say in one line what became of the lines."""
    lost = {
        "cannot be read": stats.n_bad,
        "without text": stats.n_empty,
        "nothing but identifiers": stats.n_emptied,
        "without category": stats.n_unclassified_dropped,
        "suppressed": stats.n_suppressed,
        "waiting": stats.n_waiting,
    }
    rest = ", ".join(f"{n:,} {name}" for name, n in lost.items() if n)
    ending = f"; {stats.n_outbox_rows:,} not handed over yet" if stats.n_outbox_rows else ""
    return f"{stats.n_read:,} read, {stats.n_released:,} released{', ' if rest else ''}{rest}{ending}"


def output_for(sink: str) -> Any:
    """Return where JSON about a run goes: not among the lines it released."""
    return sys.stderr if sink == "-" else sys.stdout
