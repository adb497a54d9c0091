"""`queryveil profiles`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import polars as pl
import pytest

from queryveil.formats import read_log
from queryveil.methods.swap.preparing import increments, prepare
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.ports import Commit
from queryveil.service.stores.sqlite import SqliteStore
from queryveil.text.classifier import Classifier

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]
KEY = b"a key of at least sixteen bytes"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    rows = ["persona1,soccer results", "persona1,soccer cup", "persona2,soccer ball", "persona2,guitar chords"]
    path.write_text("user,query\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def store(tmp_path: Path, log: Path) -> Path:
    """The profiles of all rows of the log but the last."""
    frame = prepare(read_log(log).frame.head(3), classifier=Classifier()).frame
    (tmp_path / "key").write_bytes(KEY)
    names = ColumnPolicy(ids=Ids.KEYED, key=KEY)
    named = frame.with_columns(names.released_ids(frame["user"]).alias("user"))
    state = SqliteStore(tmp_path / "state.db")
    state.open(settings="")
    state.commit(Commit(number=1, position=None, pools=b"", profiles=increments(named)))
    state.close()
    return tmp_path / "state.db"


def pseudonym(user: str) -> str:
    return str(ColumnPolicy(ids=Ids.KEYED, key=KEY).released_ids(pl.Series([user]))[0])


def test_the_summary_says_how_much_there_is_and_of_whom_nothing(run: Run, store: Path) -> None:
    done = run("profiles", store)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1] == ["Sports", "3", "100", "%", "2"]
    assert lines[-2:] == [["profiles", "2"], ["rows", "3"]]
    assert pseudonym("persona1") not in done.stdout
    found = json.loads(run("profiles", f"sqlite:{store}", "--json").stdout)
    assert (found["n_profiles"], found["n_rows"], found["counts"]["Sports"]) == (2, 3, 3)


def test_one_profile_is_shown_when_asked_for(run: Run, refused: Refused, store: Path) -> None:
    done = run("profiles", store, "--user", pseudonym("persona1"))
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split() == ["Sports", "2", "100.0", "%"]
    shown = json.loads(run("profiles", store, "--user", pseudonym("persona2"), "--json").stdout)
    assert shown == {"n_rows": 1, "counts": {"Sports": 1}, "percent": {"Sports": 100.0}}
    assert refused("profiles", store, "--user", "persona1") == (
        "user must be a released name, got a name without a profile"
    )


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_profiles_are_exported_with_a_row_for_each_user(run: Run, store: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"profiles.{ending}"
    done = run("profiles", store, "--export", path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 profiles written" in done.stderr
    readers: dict[str, Callable[[Path], pl.LazyFrame]]
    readers = {"parquet": pl.scan_parquet, "csv": pl.scan_csv, "jsonl": pl.scan_ndjson}
    rows = readers[ending](path).collect().sort("total").select("user", "Sports", "Arts", "total").rows()
    assert rows == [(pseudonym("persona2"), 1, 0, 1), (pseudonym("persona1"), 2, 0, 2)]


def test_profiles_are_compared_with_those_of_the_log(run: Run, store: Path, log: Path, tmp_path: Path) -> None:
    done = run("profiles", store, "--compare", log, "--key", tmp_path / "key", "--json")
    found = json.loads(done.stdout)
    assert (found["n_users_before"], found["n_users_after"], found["n_users_both"]) == (2, 2, 2)
    assert (found["n_rows_before"], found["n_rows_after"]) == (4, 3)
    assert (found["n_equal"], found["n_with_fewer_rows"], found["n_with_more_rows"]) == (1, 1, 0)
    assert found["distance"] == pytest.approx(0.25)
    shown = run("profiles", store, "--compare", log, "--key", tmp_path / "key").stdout
    assert "rows in profiles         3 (75 %)" in shown
    assert "shares that moved, mean  0.2500" in shown


def test_a_key_under_which_nobody_is_found_is_refused_and_the_one_beside_the_store_is_found(
    run: Run, refused: Refused, store: Path, log: Path, tmp_path: Path
) -> None:
    assert refused("profiles", store, "--compare", log, "--ids", "keep").startswith("no user of the log has a profile")
    beside = store.with_name(f"{store.name}.key")
    beside.write_bytes((tmp_path / "key").read_bytes())
    assert json.loads(run("profiles", store, "--compare", log, "--json").stdout)["n_users_both"] > 0


def test_mistakes_are_one_line(refused: Refused, store: Path, log: Path, tmp_path: Path) -> None:
    assert refused("profiles", tmp_path / "nosuch.db") == "nosuch.db: there is no such store"
    assert refused("profiles", log) == "log.csv: this is no SQLite database; name another store"
    assert refused("profiles", store, "--export", tmp_path / "x.db").startswith("export must be a file .parquet")
    assert refused("profiles", store, "--export", tmp_path / "x.tsv").startswith("export must be a file .parquet")
    assert refused("profiles", store, "--export", log) == "export must be a file that is not there yet, got log.csv"
    assert refused("profiles", store, "--compare", log).startswith("key must be a file of at least 16 secret bytes")
    assert refused("profiles", store, "--user", "a", "--export", "b.csv").startswith(
        "profiles must be asked for one of"
    )
    assert refused("profiles", "postgresql://me:opensesame@127.0.0.1:1/db") == (
        "the PostgreSQL server at 127.0.0.1:1: connection refused"
    )
