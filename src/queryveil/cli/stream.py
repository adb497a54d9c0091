"""`queryveil stream` and `queryveil serve`: a service on the command line, its key, its signals and its last words."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli._keys import read_key
from queryveil.cli.options import TableFiles, parse_columns, parse_list
from queryveil.errors import BadParameter
from queryveil.methods.settings import LineSettings, LiveSettings
from queryveil.settings import setting, values_of

if TYPE_CHECKING:
    from queryveil.release import ColumnPolicy
    from queryveil.service.pipeline.service import Service
    from queryveil.service.ports import Stats

_LEAVES, _READING, _RUNNING = "What leaves", "How lines are read", "How it runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveColumns:
    """Which columns of a live event leave, and how."""

    ids: str = setting("keyed", help="keyed or keep.", panel=_LEAVES)
    key: Path | None = setting(None, metavar="FILE", help="Secret; if none, STORE.key.", panel=_LEAVES)
    time: str = setting("day", help="Of release: day, hour, keep, drop.", panel=_LEAVES)
    keep: str | None = setting(None, metavar="NAME,..", help="Other columns to keep.", panel=_LEAVES)

    def policy(self, *, store: str) -> tuple[ColumnPolicy, list[str]]:
        """Return the policy, and what there is to say about its key; keyed ids without a key get one by the store."""
        from queryveil.release import ColumnPolicy

        secret, notes = read_key(self.key), []
        if secret is None and self.ids == "keyed":
            secret, note = _own_key(store)
            notes.append(note)
        keep = parse_list(self.keep)
        return ColumnPolicy(ids=self.ids, time=self.time, keep=keep, key=secret), notes  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Where a service keeps its state, how it reads, and how it says what it did."""

    store: str | None = setting(None, metavar="URL", help="sqlite:FILE, postgresql://, memory:.", panel=_RUNNING)
    columns: str | None = setting(None, metavar="ROLE=NAME,..", help="user=uid,query=q.", panel=_READING)
    as_json: bool = setting(False, option="json", help="Say the counts as JSON.", panel=_RUNNING)


def stream(
    source: Annotated[str, typer.Option(metavar="URL", help="-, FILE, redis://, kafka://, http://.")] = "-",
    sink: Annotated[str, typer.Option(metavar="URL", help="The same, or DIR/: a release folder.")] = "-",
    *,
    live: LineSettings,
    tables: TableFiles,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more of FILE.", rich_help_panel=_RUNNING)] = False,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve /metrics, /readyz.", rich_help_panel=_RUNNING)
    ] = None,
    columns: LiveColumns,
    file_format: Annotated[
        str | None, typer.Option("--format", help="aol, excite, csv, tsv, jsonl.", rich_help_panel=_READING)
    ] = None,
    running: Running,
) -> None:
    """Anonymize live: each query leaves with somebody else's name."""
    from queryveil.release import ColumnPolicy, Ids
    from queryveil.service.pipeline import urls
    from queryveil.service.pipeline.service import Service
    from queryveil.service.settings import StreamSettings, Tables

    store = running.store or ("memory:" if source == "-" else "sqlite:queryveil.db")
    is_server = source.startswith(tuple(f"{scheme}://" for scheme in urls.BROKERS))
    is_finite = not is_server and not follow
    if live.drain == "release" and not is_finite:
        raise BadParameter("drain", live.drain, allowed="suppress for a source that has no end")
    if live.patience is None and is_finite:
        live = replace(live, patience=60.0)
    settings = StreamSettings(
        **values_of(live),
        tables=Tables(**values_of(tables)),
        columns=ColumnPolicy(ids=Ids.KEEP),
        format=file_format or ("jsonl" if is_server else None),
        names=parse_columns(running.columns) or {},
        is_finite=is_finite,
    )
    urls.check_apart(source, sink)
    opened, outlet = urls.open_source(source, follow=follow, tell=say), urls.open_sink(sink)
    kept = urls.open_store(store)
    # A key is made only once all else is in order.
    policy, notes = columns.policy(store=store)
    service = Service(
        replace(settings, columns=policy),
        source=opened,
        sink=outlet,
        store=kept,
        source_name=urls.name_of(source, opened),
        sink_name=urls.name_of(sink, outlet),
        tell=say,
    )
    # JSON about a run goes not among the lines it released.
    json_to = (sys.stderr if sink == "-" else sys.stdout) if running.as_json else None
    run_service(service, notes=notes, metrics=metrics, json_to=json_to)


def serve(
    port: Annotated[int, typer.Option(help="Where to listen; 0: any free port.")] = 8080,
    host: Annotated[str, typer.Option(help="Others than this machine need a token.")] = "127.0.0.1",
    token: Annotated[Path | None, typer.Option(metavar="FILE", help="What clients must show.")] = None,
    *,
    live: LiveSettings,
    tables: TableFiles,
    columns: LiveColumns,
    running: Running = Running(store="sqlite:queryveil.db"),  # noqa: B008 - it is frozen
) -> None:
    """Anonymize over HTTP: POST /events, GET /released, and a live page."""
    from queryveil.release import ColumnPolicy, Ids
    from queryveil.service.http.addresses import Address, read_token
    from queryveil.service.http.server import HttpSink, HttpSource
    from queryveil.service.pipeline import urls
    from queryveil.service.pipeline.service import Service
    from queryveil.service.settings import StreamSettings, Tables

    store = running.store or "sqlite:queryveil.db"
    address = Address(host=host, port=port, token=None if token is None else read_token(token))
    address.check_has_token()
    settings = StreamSettings(
        **values_of(live),
        tables=Tables(**values_of(tables)),
        columns=ColumnPolicy(ids=Ids.KEEP),
        format="jsonl",
        names=parse_columns(running.columns) or {},
        is_finite=False,
    )
    source, sink, kept = HttpSource(address, tell=say), HttpSink(address), urls.open_store(store)
    # A key is made only once all else is in order.
    policy, notes = columns.policy(store=store)
    service = Service(
        replace(settings, columns=policy),
        source=source,
        sink=sink,
        store=kept,
        source_name=source.name,
        sink_name=sink.name,
        tell=say,
    )
    run_service(service, notes=notes, json_to=sys.stdout if running.as_json else None)


def say(line: str) -> None:
    """Say something to people."""
    typer.echo(f"queryveil: {line}", err=True)


def _own_key(store: str) -> tuple[bytes, str]:
    from queryveil.service.settings import new_key, read_or_make_key

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
