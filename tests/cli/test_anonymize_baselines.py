"""`queryveil anonymize pseudonymise`, `token-hash` and `query-threshold`: what they do, and that they say so."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from subprocess import CompletedProcess

import polars as pl
import pytest

from queryveil.formats import read_log
from queryveil.release import read_release
from queryveil.text import tokenize
from queryveil.text.tokens import hash_queries

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]

BASELINES = ["pseudonymise", "token-hash", "query-threshold"]
SECRET_TEXTS = ("kestrel", "rarity", "persona", "shop.example")


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_warns_that_it_promises_nothing_and_there_is_nothing_to_verify(
    run: Run, refused: Refused, log_file: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    done = run("anonymize", name, log_file, "-o", out)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].split(maxsplit=1)[1].startswith("This release promises nothing: ")
    assert done.stderr.splitlines()[0].startswith("warning: promises nothing: ")
    assert "not to be handed out" in done.stderr.splitlines()[0]
    assert "check it with" not in done.stderr
    assert not any(text in done.stdout + done.stderr for text in SECRET_TEXTS)
    for options in ([], ["--original", log_file], ["--json"]):
        line = refused("verify", out, *options)
        assert line.startswith("nothing to verify, this release promises nothing: ")


def test_baselines_stand_apart_from_the_methods_in_the_help(run: Run) -> None:
    lines = run("anonymize", "--help").stdout.splitlines()
    place = {
        name: next(i for i, line in enumerate(lines) if f" {name} " in line) for name in ["km", "swap", *BASELINES]
    }
    panel = next(i for i, line in enumerate(lines) if "Baselines that promise nothing" in line)
    assert place["km"] < place["swap"] < panel < min(place[name] for name in BASELINES)


def test_pseudonymise_keeps_all_but_the_ids(run: Run, log_file: Path, tmp_path: Path) -> None:
    assert run("anonymize", "pseudonymise", log_file, "-o", tmp_path / "out").returncode == 0
    before, after = read_log(log_file).frame, read_release(tmp_path / "out").log.frame
    rest = ["query", "time", "rank", "url"]
    assert after.select(rest).sort(rest).equals(before.select(rest).sort(rest))
    assert set(after["user"]) == {str(i) for i in range(1, 13)}


def test_pseudonymise_takes_the_options_of_columns(run: Run, refused: Refused, log_file: Path, tmp_path: Path) -> None:
    options = ["--time", "day", "--keep", "", "--ids", "keep"]
    assert run("anonymize", "pseudonymise", log_file, "-o", tmp_path / "out", *options).returncode == 0
    after = read_release(tmp_path / "out").log.frame
    assert after["url"].null_count() == after["rank"].null_count() == after.height
    assert datetime(2006, 3, 1) in set(after["time"])
    assert "persona00" in set(after["user"])
    line = refused("anonymize", "pseudonymise", log_file, "-o", tmp_path / "none", "--keep", "nosuch")
    assert line == "keep must be columns of the log, such as rank, url, got nosuch"


def test_pseudonymise_takes_a_log_without_clicks_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("user,query\npersona1,Red  Wine\n")
    assert run("anonymize", "pseudonymise", tmp_path / "few.csv", "-o", tmp_path / "out").returncode == 0
    assert (tmp_path / "out" / "log.csv").read_text() == "user,query\n1,Red  Wine\n"


def test_token_hash_makes_a_key_beside_the_folder_that_gives_the_hashes(
    run: Run, log_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run("anonymize", "token-hash", log_file, "-o", out)
    key = tmp_path / "out.key"
    assert f"key of the hashes: {key}; it undoes them, keep it to yourself" in done.stderr
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert sorted(file.name for file in out.iterdir()) == ["log.tsv", "manifest.json"]
    expected = hash_queries(tokenize(read_log(log_file).frame["query"]), key=key.read_bytes())
    assert read_release(out).log.frame["query"].sort().equals(expected.sort())
    assert not any(text in (out / "log.tsv").read_text() for text in SECRET_TEXTS)


def test_token_hash_takes_a_key_and_makes_none_then(run: Run, log_file: Path, tmp_path: Path) -> None:
    key = tmp_path / "house.key"
    key.write_bytes(b"a secret of the house")
    for name in ("one", "two"):
        options = ["--key", key, "--ids", "keyed"]
        assert run("anonymize", "token-hash", log_file, "-o", tmp_path / name, *options).returncode == 0
        assert not (tmp_path / f"{name}.key").exists()
    one, two = (read_release(tmp_path / name).log.frame.sort(pl.all()) for name in ("one", "two"))
    assert one.equals(two)


def test_token_hash_leaves_no_key_where_it_fails_and_overwrites_none(
    run: Run, refused: Refused, log_file: Path, tmp_path: Path
) -> None:
    refused("anonymize", "token-hash", tmp_path / "nothing.tsv", "-o", tmp_path / "out")
    refused("anonymize", "token-hash", log_file, "-o", tmp_path / "out", "--time", "second")
    assert [file.name for file in tmp_path.iterdir()] == [log_file.name]
    key = tmp_path / "out.key"
    key.write_bytes(b"an older secret of the house")
    assert "is already there; use it with --key" in refused("anonymize", "token-hash", log_file, "-o", tmp_path / "out")
    short = tmp_path / "short.key"
    short.write_bytes(b"short")
    line = refused("anonymize", "token-hash", log_file, "-o", tmp_path / "out", "--key", short)
    assert line == "key must be at least 16 secret bytes, got 5 bytes"
    assert run("anonymize", "token-hash", log_file, "-o", tmp_path / "out", "--force").returncode == 0
    assert len(key.read_bytes()) == 32


def test_token_hash_takes_transactions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bags.txt").write_text("1 2 3\n1 2\n")
    options = ["--format", "transactions"]
    assert run("anonymize", "token-hash", tmp_path / "bags.txt", "-o", tmp_path / "out", *options).returncode == 0
    lengths = [len(query.split()) for query in read_release(tmp_path / "out").log.frame["query"]]
    assert sorted(lengths) == [2, 3]


def test_query_threshold_keeps_what_enough_users_asked(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run("anonymize", "query-threshold", log_file, "-o", tmp_path / "out", "--k", 12, "--json")
    manifest = json.loads(done.stdout)
    assert manifest["parameters"] == {"k": 12}
    assert manifest["counts"]["n_rows_after"] == 36
    assert manifest["removed"]["rows_of_rare_queries"] == manifest["removed"]["distinct_queries"] == 12
    assert read_release(tmp_path / "out").log.frame["query"].n_unique() == 3
    run("anonymize", "query-threshold", log_file, "-o", tmp_path / "none", "--k", 13)
    assert read_release(tmp_path / "none").log.n_rows == 0


def test_a_threshold_of_one_is_refused(refused: Refused, log_file: Path, tmp_path: Path) -> None:
    line = refused("anonymize", "query-threshold", log_file, "-o", tmp_path / "out", "--k", 1)
    assert line == "k must be 2 or more, got 1"


@pytest.mark.parametrize("name", ["pseudonymise", "query-threshold"])
def test_transactions_are_refused(refused: Refused, tmp_path: Path, name: str) -> None:
    (tmp_path / "bags.txt").write_text("1 2 3\n1 2\n")
    line = refused("anonymize", name, tmp_path / "bags.txt", "-o", tmp_path / "out", "--format", "transactions")
    assert line == f"{name} is for logs of queries; for transactions there are km, clump and partition"


@pytest.mark.parametrize("name", BASELINES)
def test_an_empty_log_gives_an_empty_release(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "none.csv").write_text("user,query,time\n")
    assert run("anonymize", name, tmp_path / "none.csv", "-o", tmp_path / "out").returncode == 0
    assert read_release(tmp_path / "out").log.n_rows == 0
