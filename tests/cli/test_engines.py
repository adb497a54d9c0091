"""`--engine` and `--master`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.support.waiting import patience, until

from queryveil import synth

pytestmark = pytest.mark.slow

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def test_an_engine_that_there_is_not_is_refused(refused: Refused, log_file: Path, tmp_path: Path) -> None:
    line = refused("anonymize", "km", log_file, "-o", tmp_path / "out", "--engine", "flink")
    assert line == "engine must be local or spark, got flink"


def test_a_master_needs_an_engine(refused: Refused, log_file: Path) -> None:
    line = refused("inspect", log_file, "--master", "local[2]")
    assert line == "master must be left out without --engine spark, got local[2]"


def test_without_the_extra_one_line_says_what_to_install(
    refused: Refused, log_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("queryveil.spark.find_spec", lambda _: None)
    assert refused("inspect", log_file, "--engine", "spark").endswith("pip install 'queryveil[spark]'")


@pytest.mark.parametrize(
    "options",
    [
        ("swap",),
        ("plink", "--membership", "who.csv"),
        ("plink", "--corpus", "texts"),
        ("plink", "--weights", "tfidf"),
        ("km", "--m", "none"),
        ("km", "--no-restore"),
        ("km", "--repeats", "once"),
        ("kdelta",),
        ("dp", "--synthesize", "5"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_done_there_is_said_before_spark_starts(
    refused: Refused, log_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr("queryveil.spark.start_spark", lambda _: pytest.fail("Spark was started"))
    line = refused("anonymize", options[0], log_file, "-o", tmp_path / "out", "--engine", "spark", *options[1:])
    assert "not yet, because" in line
    assert not (tmp_path / "out").exists()


def test_a_refusal_loads_nothing_of_spark() -> None:
    code = (
        "import sys\n"
        "from queryveil import Km\n"
        "from queryveil.errors import NotYet\n"
        "from queryveil.spark import check_on_spark\n"
        "try: check_on_spark(Km(m=None))\n"
        "except NotYet: print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


ONE_BY_ONE = """
import json, sys
from queryveil.cli import main
for command in json.loads(sys.argv[1]):
    try: main(command)
    except SystemExit as ended: print("exit code", ended.code)
"""
"""Commands in one process, so that they start one JVM."""


def test_the_commands_work_on_spark_and_say_nothing_of_the_log(run: Run, log_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    commands = [
        ["anonymize", "km", log_file, "-o", folder, "--k", 3, "--m", 2],
        ["verify", folder, "--original", log_file],
        ["measure", log_file, folder],
    ]
    on_spark = json.dumps([[*map(str, command), "--engine", "spark", "--master", "local[2]"] for command in commands])
    done = subprocess.run([sys.executable, "-c", ONE_BY_ONE, on_spark], capture_output=True, text=True, check=True)
    # Nor does Spark complain while it ends.
    assert "Spark:" not in done.stderr
    made, verified, measured, _ = done.stdout.split("exit code 0\n")
    assert " 12 " in made
    assert verified == run("verify", folder).stdout
    assert "users kept" in measured
    shown = done.stdout + done.stderr
    assert not any(text in shown for text in ("kestrel", "rarity", "persona", "shop.example"))


def test_executors_without_this_program_are_told_in_one_line(run_apart: Run, log_file: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare")
    bare = str(tmp_path / "bare" / "bin" / "python")
    done = run_apart("inspect", log_file, "--engine", "spark", "--master", "local[1]", PYSPARK_PYTHON=bare)
    assert done.returncode == 2
    assert done.stdout == ""
    said = [line for line in done.stderr.splitlines() if "gave up" in line]
    assert said == [
        "queryveil: Spark gave up (its executors have another Python, or one without queryveil); "
        "install queryveil[spark] there, and name that Python with PYSPARK_PYTHON"
    ]


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "log.parquet"
    synth(users=2_000, seed=1).log.frame.write_parquet(path)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_no_rows_behind(number: signal.Signals, large_log: Path, tmp_path: Path) -> None:
    folder, scratch = tmp_path / "out", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    place = ("-o", str(folder / "release"), "--engine", "spark", "--master", "local[2]")
    command = [sys.executable, "-m", "queryveil", "anonymize", "km", str(large_log), *place]
    variables = os.environ | {"TMPDIR": str(scratch)}
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        until(lambda: list(folder.glob(".release.scratch-*/histories")), process=process)
        assert list(scratch.glob("queryveil-spark-*"))
        process.send_signal(number)
        # Java holds the other end until it has ended, too.
        out, err = process.communicate(timeout=patience())
    assert out == b""
    assert b"Traceback" not in err
    assert not list(folder.iterdir())
    if number is signal.SIGKILL:
        assert not list(scratch.glob("queryveil-spark-*/*"))
        return
    assert process.returncode == 130
    assert b"queryveil: stopped; nothing was released" in err.splitlines()
    assert not list(scratch.glob("queryveil-spark-*"))
