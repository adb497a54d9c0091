"""`queryveil stream`, `serve` and `profiles`: a live service with its key and its signals, and its profiles."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import queryveil.service
from queryveil.cli import options
from queryveil.cli.output import echo, print_facts, print_json, print_table, share
from queryveil.errors import BadInput, BadParameter
from queryveil.methods.settings import LineSettings, LiveSettings
from queryveil.service.http.addresses import Address, HttpLimits, TlsFiles, find_token
from queryveil.settings import setting, values_of

if TYPE_CHECKING:
    import polars as pl

    from queryveil.service.ports import Stats, Store
    from queryveil.service.stores.profiles import ProfileComparison

_LEAVES, _READING, _RUNNING = "What leaves", "How lines are read", "How it runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveColumns(options.Columns):
    """Which columns of a live event leave, and how."""

    ids: str = setting("keyed", help="keyed or keep.", panel=_LEAVES)
    key: Path | None = options.file_option(help="Secret; if none, STORE.key.", panel=_LEAVES)
    time: str = setting("drop", help="drop; of release: day, hour, keep.", panel=_LEAVES)
    keep: str | None = setting(None, metavar="NAME,..", help="Other columns to keep.", panel=_LEAVES)

    def live_policy(self, *, store: str, kept: Store) -> tuple[queryveil.ColumnPolicy, list[str]]:
        """Return the policy, and what there is to say about its key; keyed ids without a key get one by the store."""
        from queryveil.release import new_key

        if self.key is not None or self.ids != "keyed":
            return self.policy(), []
        if store == "memory:":
            note = "user ids get a key of this run only; to have the same ids in the next run, give --key FILE"
            return self.policy(new_key()), [note]
        path = Path("queryveil.key") if "://" in store else _key_beside(store)
        note = f"key of the user ids: {path}; verify needs it, keep it to yourself"
        made = queryveil.service.read_or_make_key(path, is_lost=kept.has_begun)
        return self.policy(made), [note]


def _key_beside(store: str) -> Path:
    return Path(f"{store.removeprefix('sqlite:')}.key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Where a service keeps its state, how it reads, and how it says what it did."""

    store: str | None = setting(None, metavar="URL", help="sqlite:FILE, postgresql://, memory:.", panel=_RUNNING)
    columns: str | None = setting(None, metavar="ROLE=NAME,..", help="user=uid,query=q.", panel=_READING)
    as_json: bool = setting(False, option="json", help="Say the counts as JSON.", panel=_RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(HttpLimits):
    """Who may ask over HTTP, with which certificate it answers, and what a client may take."""

    token: Path | None = options.file_option(help="What clients must show; else QUERYVEIL_TOKEN.", panel=_RUNNING)
    tls_cert: Path | None = options.file_option(help="Certificate in PEM, for https.", panel=_RUNNING)
    tls_key: Path | None = options.file_option(help="Its key, which others cannot read.", panel=_RUNNING)

    def address(self, host: str, port: int) -> Address:
        """Return an address to listen at; raise if it would need a token, or if the certificate is wrong."""
        tls = None
        if self.tls_cert is not None and self.tls_key is not None:
            tls = TlsFiles(cert=self.tls_cert, key=self.tls_key)
            tls.context()
        elif self.tls_cert is not None or self.tls_key is not None:
            raise BadParameter("tls", "one of --tls-cert and --tls-key", allowed="named by both, or by none")
        found = Address(host=host, port=port, token=find_token(self.token), tls=tls, limits=self)
        found.check_has_token()
        return found


def stream(
    source: str = setting("-", metavar="URL", help="FILE, -, redis:, kafka:, http:, @FILE."),
    sink: str = setting("-", metavar="URL", help="The same, or DIR/."),
    *,
    live: LineSettings,
    tables: options.TableFiles,
    follow: bool = setting(False, help="Wait for more of FILE.", panel=_RUNNING),
    metrics: str | None = setting(None, metavar="HOST:PORT", help="Serve /metrics, /readyz.", panel=_RUNNING),
    columns: LiveColumns,
    file_format: str | None = setting(None, option="format", help="aol, excite, csv, tsv, jsonl.", panel=_READING),
    running: Running,
    access: Access,
) -> None:
    """Anonymize live: each query leaves with somebody else's name."""
    from queryveil.service.pipeline import urls

    source, sink = urls.find_address(source, what="source"), urls.find_address(sink, what="sink")
    store = running.store or ("memory:" if source == "-" else "sqlite:queryveil.db")
    store = urls.find_address(store, what="store")
    watched_at = None if metrics is None else access.address(*parse_address(metrics))
    is_server = source.startswith(tuple(f"{scheme}://" for scheme in urls.BROKERS))
    is_finite = not is_server and not follow
    if live.drain == "release" and not is_finite:
        raise BadParameter("drain", live.drain, allowed="suppress for a source that has no end")
    if live.patience is None and is_finite:
        live = replace(live, patience=60.0)
    file_format = file_format or ("jsonl" if is_server else None)
    settings = _settings(live, tables, running, file_format=file_format, is_finite=is_finite)
    urls.check_apart(source, sink)
    opened = urls.open_source(source, follow=follow, tell=say, limits=access)
    outlet = urls.open_sink(sink, limits=access)
    ends = {"source": opened, "sink": outlet}
    names = {"source_name": urls.name_of(source, opened), "sink_name": urls.name_of(sink, outlet)}
    # JSON about a run goes not among the lines it released.
    json_to = (sys.stderr if sink == "-" else sys.stdout) if running.as_json else None
    _run(settings, ends | names, store=store, columns=columns, watched_at=watched_at, json_to=json_to)


def serve(
    port: int = setting(8080, help="Where to listen; 0: any free port."),
    host: str = setting("127.0.0.1", help="Others than this machine need a token."),
    *,
    access: Access,
    live: LiveSettings,
    tables: options.TableFiles,
    columns: LiveColumns,
    running: Running = Running(store="sqlite:queryveil.db"),  # noqa: B008 - it is frozen
) -> None:
    """Anonymize over HTTP: POST /events, GET /released, and a live page."""
    from queryveil.service.http.server import HttpSink, HttpSource

    store = queryveil.service.find_address(running.store or "sqlite:queryveil.db", what="store")
    address = access.address(host, port)
    settings = _settings(live, tables, running, file_format="jsonl", is_finite=False)
    source, sink = HttpSource(address, tell=say), HttpSink(address)
    ends = {"source": source, "sink": sink, "source_name": source.name, "sink_name": sink.name}
    _run(settings, ends, store=store, columns=columns, json_to=sys.stdout if running.as_json else None)


def _settings(
    live: LiveSettings, tables: options.TableFiles, running: Running, *, file_format: str | None, is_finite: bool
) -> queryveil.service.StreamSettings:
    """Return the settings of a service whose ids stay as they are; a key is made only once all else is in order."""
    return queryveil.service.StreamSettings(
        **values_of(live),
        tables=queryveil.service.Tables(**tables.files),
        columns=queryveil.ColumnPolicy(ids="keep"),  # type: ignore[arg-type]
        format=file_format,
        names=options.parse_columns(running.columns) or {},
        is_finite=is_finite,
    )


def say(*lines: str) -> None:
    """Print a line for people, with the name of the program before it."""
    echo(*(f"queryveil: {line}" for line in lines), err=True)


def parse_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT.

    >>> parse_address("127.0.0.1:9100")
    ('127.0.0.1', 9100)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise BadParameter("metrics", text, allowed="HOST:PORT, such as 127.0.0.1:9100")
    return host.strip("[]"), int(port)


def _run(
    settings: queryveil.service.StreamSettings,
    ends: Mapping[str, Any],
    *,
    store: str,
    columns: LiveColumns,
    watched_at: Address | None = None,
    json_to: Any = None,
) -> None:
    """Run a service until its source is finished or the process is told to stop, and print its counts."""
    kept = queryveil.service.open_store(store)
    # A key is made only once all else is in order.
    policy, notes = columns.live_policy(store=store, kept=kept)
    if policy.time != "drop":
        notes.append("times of release are near those of a person's own queries, and no promise covers them")
    service = queryveil.service.Service(replace(settings, columns=policy), **ends, store=kept, tell=say)
    watched: Any = nullcontext()
    if watched_at is not None:
        from queryveil.service.http.server import serve_monitor

        watched = serve_monitor(service, watched_at)

    def stop(*_: object) -> None:
        service.stop()
        # Whoever asks twice means it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    with watched:
        stats = service.run(when_begun=lambda: say(*notes))
    if json_to is None:
        say(in_words(stats))
        return
    import msgspec

    json_to.write(msgspec.json.encode(stats).decode() + "\n")
    json_to.flush()


def in_words(stats: Stats) -> str:
    """Return in one line how many events were read and released, and why the others were not."""
    lost = {
        "cannot be read": stats.n_bad,
        "without text": stats.n_empty,
        "nothing but identifiers": stats.n_emptied,
        "without category": stats.n_unclassified_dropped,
        "asked before": stats.n_repeated,
        "asked by too few": stats.n_rare,
        "suppressed": stats.n_suppressed,
        "waiting": stats.n_waiting,
    }
    rest = ", ".join(f"{n:,} {name}" for name, n in lost.items() if n)
    ending = f"; {stats.n_outbox_rows:,} not delivered yet" if stats.n_outbox_rows else ""
    return f"{stats.n_read:,} read, {stats.n_released:,} released{', ' if rest else ''}{rest}{ending}"


_COMPARING = "Beside the log that went in"


def profiles(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A file, sqlite:FILE or postgresql://.")],
    *,
    user: str | None = setting(None, metavar="NAME", help="Show one profile, by its released name."),
    export: Path | None = options.file_option(help="A row a user, to .parquet, .csv or .jsonl."),
    compare: str | None = setting(None, metavar="LOG", help="Compare with profiles of a log.", panel=_COMPARING),
    ids: str = setting("keyed", help="keyed or keep.", panel=_COMPARING),
    key: Path | None = options.file_option(help="Secret; if none, STORE.key.", panel=_COMPARING),
    unclassified: str = setting("pool", help="pool or drop."),
    classifier: str = setting("evidence", help="evidence or paper."),
    tables: options.TableFiles,
    reading: options.Reading,
    as_json: options.Json = False,
) -> None:
    """Read the profiles of a stream, also while it runs."""
    from queryveil.service.stores.profiles import compare_profiles, profiles_of_log

    if sum(option is not None for option in (user, export, compare)) > 1:
        raise BadParameter("profiles", "several", allowed="asked for one of --user, --export and --compare")
    store = queryveil.service.find_address(store, what="store")
    database = queryveil.service.ProfileDatabase(store)
    if user is not None:
        _print_user(database.of_user(user), as_json=as_json)
    elif export is not None:
        _export(database, export)
    elif compare is None:
        _print_summary(database.table(), as_json=as_json)
    else:
        if key is None and ids == "keyed" and "://" not in store and _key_beside(store).is_file():
            key = _key_beside(store)
        names = queryveil.ColumnPolicy(ids=ids, key=options.read_key(key))  # type: ignore[arg-type]
        chosen, log = tables.classifier(classifier), reading.read(compare)
        before = profiles_of_log(log, classifier=chosen, pseudonyms=names.released_ids, unclassified=unclassified)
        found = compare_profiles(before, after=database.table())
        if found.n_users_before and found.n_users_after and not found.n_users_both:
            raise BadInput("no user of the log has a profile here; give the key and the log that the stream had")
        _print_comparison(found, as_json=as_json)


def _print_summary(table: pl.DataFrame, *, as_json: bool) -> None:
    n_rows = int(table["total"].sum())
    counts = {name: int(table[name].sum()) for name in table.columns if name not in ("user", "total")}
    if as_json:
        print_json({"n_profiles": len(table), "n_rows": n_rows, "counts": counts})
        return
    order = sorted((name for name, n in counts.items() if n), key=lambda name: (-counts[name], name))
    rows = [(name, counts[name], share(counts[name], n_rows), int((table[name] > 0).sum())) for name in order]
    print_table(["category", "rows", "share", "profiles"], rows)
    print_facts({"profiles": len(table), "rows": n_rows})


def _print_user(found: Any, *, as_json: bool) -> None:
    from queryveil.methods.swap.preparing import shares

    if found is None:
        # Privacy: the name is not said again.
        raise BadParameter("user", "a name without a profile", allowed="a released name")
    percentages = shares(found.counts)
    if as_json:
        print_json({"n_rows": found.n_rows, "counts": found.counts, "percent": percentages})
        return
    rows = [(name, found.counts[name], f"{percent:.1f} %") for name, percent in percentages.items()]
    print_table(["category", "rows", "share"], rows)
    print_facts({"rows": found.n_rows})


def _export(database: queryveil.service.ProfileDatabase, path: Path) -> None:
    from queryveil.formats import layout_for
    from queryveil.formats.write import write_frame

    if not path.name.endswith((".parquet", ".csv", ".jsonl")):
        raise BadParameter("export", path.suffix or path.name, allowed="a file .parquet, .csv or .jsonl")
    if path.exists():
        raise BadParameter("export", path.name, allowed="a file that is not there yet")
    rows = database.table()
    write_frame(rows, path, layout=layout_for(path))
    echo(f"{len(rows):,} profiles written to {path}", err=True)


def _print_comparison(found: ProfileComparison, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    moved = "-" if found.distance is None else f"{found.distance:.4f}"
    print_facts(
        {
            "users of the log": found.n_users_before,
            "users with a profile": found.n_users_after,
            "users in both": found.n_users_both,
            "rows of the log": found.n_rows_before,
            "rows in profiles": f"{found.n_rows_after:,} ({share(found.n_rows_after, found.n_rows_before)})",
            "profiles that are equal": f"{found.n_equal:,} ({share(found.n_equal, found.n_users_both)})",
            "users with fewer rows": found.n_with_fewer_rows,
            "users with more rows": found.n_with_more_rows,
            "shares that moved, mean": moved,
        }
    )
