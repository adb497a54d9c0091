"""`queryveil stream`: from files and pipes to files, pipes and release folders; stopped, restarted, misused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.support.streams import event_lines, write_lines
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the default store out of the checkout."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "events.tsv", event_lines(200, seed=1))


def queries_in(text: str) -> list[str]:
    return [line.split("\t")[1] for line in text.splitlines()]


def test_a_pipe_goes_through_and_the_counts_go_to_stderr(run_apart: Run, events: Path) -> None:
    done = run_apart("stream", "--k", 3, "--l", 2, stdin=events.read_bytes())
    assert done.returncode == 0
    released = queries_in(done.stdout)
    assert 100 < len(released) == len(set(released))
    assert set(released) <= set(queries_in(events.read_text(encoding="utf-8")))
    key, counts = done.stderr.splitlines()
    assert key.startswith("queryveil: user ids get a key of this run only")
    assert counts == f"queryveil: 200 read, {len(released)} released, {200 - len(released)} suppressed"


def test_a_file_becomes_a_release_that_can_be_verified(run: Run, events: Path, tmp_path: Path) -> None:
    done = run("stream", "--source", events, "--sink", "out/", "--k", 3)
    assert (done.returncode, done.stdout) == (0, "")
    assert "key of the user ids: queryveil.db.key" in done.stderr
    for name in ("queryveil.db", "queryveil.db.key", "out/log.tsv", "out/manifest.json"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    judged = run("verify", "out", "--original", events, "--key", "queryveil.db.key")
    assert judged.returncode == 0
    lines = (tmp_path / "out" / "log.tsv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "out" / "log.tsv").write_text("\n".join([lines[-1], *lines[:-1]]) + "\n", encoding="utf-8")
    assert run("verify", "out", "--original", events, "--key", "queryveil.db.key").returncode == 2


def test_a_second_run_goes_on_with_what_was_added(run: Run, events: Path, tmp_path: Path) -> None:
    command = ("stream", "--source", events, "--sink", "out.tsv", "--k", 3, "--json")
    first = json.loads(run(*command).stdout)
    again = json.loads(run(*command).stdout)
    assert (
        (again["n_read"], again["n_released"]) == (first["n_read"], first["n_released"]) == (200, again["n_released"])
    )
    write_lines(events, event_lines(300, seed=1))
    more = json.loads(run(*command).stdout)
    assert more["n_read"] == 300
    released = queries_in((tmp_path / "out.tsv").read_text(encoding="utf-8"))
    assert len(released) == len(set(released)) == more["n_released"] > first["n_released"]


def test_other_settings_source_or_sink_on_the_same_store_are_one_line(
    run: Run, refused: Refused, events: Path, tmp_path: Path
) -> None:
    assert run("stream", "--source", events, "--sink", "out.tsv", "--k", 3).returncode == 0
    stream = ("stream", "--source", events, "--sink", "out.tsv")
    assert refused(*stream, "--k", 4).startswith("k must be 3 as when this stream began")
    assert refused(*stream, "--k", 3, "--time", "hour").startswith("time must be drop")
    assert refused("stream", "--source", events, "--sink", "other.tsv", "--k", 3).startswith("sink must be ")
    other = tmp_path / "other.key"
    other.write_bytes(b"another secret of some length")
    line = refused(*stream, "--k", 3, "--key", other)
    assert line.startswith("key must be the one this stream began with")
    assert "another secret" not in line


def test_a_refused_command_makes_no_key(refused: Refused, events: Path, tmp_path: Path) -> None:
    stream = ("stream", "--source", events, "--sink", "out.tsv")
    assert refused(*stream, "--k", 1).startswith("k must be 2 or more")
    assert refused(*stream, "--store", "mysql://b.example/c").startswith("store must be")
    assert refused(*stream, "--follow", "--drain", "release").startswith("drain must be suppress for a source that")
    assert refused("serve", "--k", 1).startswith("k must be 2 or more")
    assert not list(tmp_path.glob("**/*.key"))


def test_a_mistake_leaves_a_store_that_can_be_used(run: Run, refused: Refused, events: Path) -> None:
    assert "no such file" in refused("stream", "--source", "nosuch.tsv", "--sink", "out.tsv")
    assert run("stream", "--source", events, "--sink", "out.tsv", "--k", 3).returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--source", "ftp://files.example/a"], "source must be -, a file"),
        (["--sink", "amqp://a:secret@b.example"], "sink must be -, a file"),
        (["--store", "mysql://a:secret@b.example/c"], "store must be sqlite:FILE"),
        (["--k", "1"], "k must be 2 or more"),
        (["--l", "11"], "l must be between 2 and k (10)"),
        (["--growth", "1"], "growth must be above 1"),
        (["--max-pool", "3"], "max_pool must be at least k"),
        (["--remember", "0"], "remembered must be 1 or more"),
        (["--drain", "now"], "drain must be suppress or release"),
        (["--unclassified", "hide"], "unclassified must be pool or drop"),
        (["--classifier", "best"], "classifier must be "),
        (["--ids", "fresh"], "ids must be keyed or keep"),
        (["--ids", "keep", "--key", "events.tsv"], "ids must be keyed"),
        (["--key", "nosuch"], "nosuch: the key cannot be read"),
        (["--time", "week"], "time must be one of"),
        (["--keep", "colour"], "keep must be columns of the log"),
        (["--format", "parquet"], "format must be one of aol, excite, csv, tsv, jsonl on a stream"),
        (["--format", "xml"], "format must be one of"),
        (["--columns", "user"], "columns must be pairs"),
        (["--workers", "0"], "workers must be between 1 and"),
        (["--patience", "-1"], "patience must be 0 or more"),
        (["--metrics", "9100"], "metrics must be HOST:PORT"),
        (["--categories", "nosuch.csv"], "nosuch.csv"),
        (["--sink", "nosuch/out.tsv"], "nosuch/out.tsv: its folder is not there"),
        (["--source", "events.*", "--follow"], "source must be one file with --follow"),
        (["--sink", "events.tsv"], "sink must be a place that the source does not read"),
        (["--source", "*.tsv"], "sink must be a place that the source does not read"),
        (["--source", "out/*", "--sink", "out/"], "sink must be a place that the source does not read"),
        (
            ["--source", "redis://a:b@c.example?stream=d", "--sink", "redis://c.example/0?stream=d"],
            "sink must be a place that the source does not read, got redis://c.example/0",
        ),
        (["--source", "kafka://c.example/d", "--sink", "kafka://c.example/d"], "sink must be a place that the source"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_mistake_is_one_line(refused: Refused, events: Path, options: list[str], message: str) -> None:
    ready = {"--source": str(events), "--sink": "out.tsv", "--store": "memory:"}
    given = [word for name, value in ready.items() if name not in options for word in (name, value)]
    line = refused("stream", *given, *options)
    assert message in line
    assert "secret" not in line
    assert not Path("out.tsv").exists() or not Path("out.tsv").read_bytes()


def started(*arguments: object, folder: Path | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "queryveil", "stream", *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_signal_ends_it_in_order_and_the_pools_wait_for_the_next_run(events: Path, tmp_path: Path) -> None:
    out, n_kept = tmp_path / "out.tsv", []
    for n_lines, signal_number in ((200, signal.SIGTERM), (260, signal.SIGINT)):
        write_lines(events, event_lines(n_lines, seed=1))
        n_before = out.stat().st_size if out.exists() else 0
        process = started("--source", events, "--sink", out, "--follow", "--k", 3, "--json")
        until(lambda n=n_before: out.exists() and out.stat().st_size > n)  # type: ignore[misc]
        process.send_signal(signal_number)
        shown, said = process.communicate(timeout=patience())
        assert (process.returncode, "Traceback" in said) == (0, False)
        stats = json.loads(shown)
        assert (stats["n_read"], stats["n_suppressed"]) == (n_lines, 0)
        assert stats["n_read"] == stats["n_released"] + stats["n_waiting"]
        released = queries_in(out.read_text(encoding="utf-8"))
        assert len(released) == len(set(released)) == stats["n_released"]
        n_kept.append(stats["n_waiting"])
    assert n_kept[0] > 0


@pytest.fixture(scope="module")
def following(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A stream that waits for more, its folder and the address of its metrics; it ends well."""
    folder = tmp_path_factory.mktemp("following")
    write_lines(folder / "events.tsv", event_lines(200, seed=1))
    with socket.create_server(("127.0.0.1", 0)) as free:
        metrics = f"127.0.0.1:{free.getsockname()[1]}"
    options = ("--source", "events.tsv", "--sink", "out.tsv", "--follow", "--k", 3, "--metrics", metrics)
    process = started(*options, folder=folder)
    try:
        until(lambda: (folder / "out.tsv").exists() and (folder / "out.tsv").stat().st_size > 0, process=process)
        yield folder, f"http://{metrics}"
    finally:
        process.terminate()
        process.communicate(timeout=patience())
    assert process.returncode == 0


def test_a_reader_that_has_gone_ends_it(events: Path) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    command = [sys.executable, "-m", "queryveil", "stream", "--source", str(events), "--store", "memory:", "--k", "3"]
    done = subprocess.run(command, stdout=writable, stderr=subprocess.PIPE, check=False, text=True)
    os.close(writable)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr


def test_output_that_cannot_be_written_is_given_up_on_in_the_end(run: Run, events: Path) -> None:
    done = run("stream", "--source", events, "--store", "memory:", "--sink", "/dev/full", "--patience", 0.3)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "queryveil: gave up: the sink: no space left on device; run the same command again to go on"
    )


def test_a_store_in_use_is_one_line(
    following: tuple[Path, str], refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(following[0])
    line = refused("stream", "--source", "events.tsv", "--sink", "out.tsv", "--follow", "--k", 3)
    assert line == "queryveil.db is in use by another process; stop that one, or name another --store"


def test_metrics_are_served_while_it_runs(following: tuple[Path, str]) -> None:
    def answered(path: str) -> str:
        with urllib.request.urlopen(f"{following[1]}{path}", timeout=patience()) as answer:
            assert answer.status == 200
            return str(answer.read().decode())

    def is_ready() -> bool:
        with suppress(OSError):
            answered("/readyz")
            return True
        return False

    until(is_ready)
    text = answered("/metrics")
    assert "200" in text
    assert "member" not in text


def test_workers_that_are_killed_are_replaced_and_end_with_their_parent(events: Path, tmp_path: Path) -> None:
    write_lines(events, event_lines(2000, seed=1))
    process = started("--source", events, "--sink", "out.tsv", "--follow", "--k", 3, "--workers", 2, "--json")

    def children() -> list[int]:
        text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
        commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in text.split()}
        return [pid for pid, command in commands.items() if b"spawn_main" in command]

    out = tmp_path / "out.tsv"
    try:
        until(lambda: out.exists() and out.stat().st_size > 0)
        victims = children()
        assert len(victims) == 2
        os.kill(victims[0], signal.SIGKILL)
        size = out.stat().st_size
        with events.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in event_lines(4000, seed=1)[2000:])
        until(lambda: out.stat().st_size > size)
        others = children()
        assert not set(others) & set(victims)
    finally:
        process.kill()
        process.communicate()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in others))
    released = queries_in(out.read_text(encoding="utf-8"))
    assert len(released) == len(set(released))


def test_a_lost_key_is_not_replaced(run: Run, refused: Refused, events: Path, tmp_path: Path) -> None:
    stream = ("stream", "--source", events, "--sink", "out.tsv", "--k", 3)
    assert run(*stream).returncode == 0
    key = tmp_path / "queryveil.db.key"
    key.rename(tmp_path / "elsewhere.key")
    line = "there is no key, and this stream has begun; put it back, name it with --key, or another --store"
    assert refused(*stream) == f"queryveil.db.key: {line}"
    assert not key.exists()
    (tmp_path / "elsewhere.key").rename(key)
    assert run(*stream).returncode == 0


def test_a_file_that_is_no_store_gets_no_key_and_stays(refused: Refused, events: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("kestrel lantern")
    notes.chmod(0o644)
    line = refused("stream", "--source", events, "--sink", "out.tsv", "--k", 3, "--store", notes)
    assert line == "notes.txt: this is no SQLite database; name another store"
    assert (notes.read_text(), notes.stat().st_mode & 0o777) == ("kestrel lantern", 0o644)
    assert not list(tmp_path.glob("*.key"))
