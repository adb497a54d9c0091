"""`queryveil synth`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.data import Format
from queryveil.formats import read_log

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


@pytest.mark.parametrize("name", ["log.tsv", "log.tsv.gz", "log.csv", "log.jsonl", "log.parquet", "log.log", "log"])
def test_the_ending_names_the_format_and_secrets_lie_beside(run: Run, tmp_path: Path, name: str) -> None:
    done = run("synth", tmp_path / name, "--users", 60, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert read_log(tmp_path / name).n_users == 60
    secrets = (tmp_path / f"{name}.secrets.jsonl").read_text().splitlines()
    assert len(secrets) == told["secrets"] == 3
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}.secrets.jsonl"}
    for secret in map(json.loads, secrets):
        assert secret["name"] not in done.stdout


@pytest.mark.parametrize("name", ["log.ndjson", "log.jsonl.gz"])
def test_ubi_is_made_if_asked_for(run: Run, tmp_path: Path, name: str) -> None:
    told = json.loads(run("synth", tmp_path / name, "--users", 60, "--format", "ubi", "--json").stdout)
    log = read_log(tmp_path / name)
    assert log.layout.format is Format.UBI
    assert (log.n_users, set(told)) == (60, {"rows", "users", "secrets", "events", "files"})
    assert told["events"] > told["rows"] > 500


def test_formats_that_hold_them_have_devices_countries_and_languages(run: Run, tmp_path: Path) -> None:
    run("synth", tmp_path / "log.csv", "--users", 60)
    header = (tmp_path / "log.csv").read_text().splitlines()[0]
    assert header == "user,query,time,rank,url,device,country,language"


def test_term_values_are_written_when_asked_for(run: Run, tmp_path: Path) -> None:
    done = run("synth", tmp_path / "log.csv", "--users", 60, "--values")
    assert "log.csv.values.csv" in done.stdout
    header = (tmp_path / "log.csv.values.csv").read_text().splitlines()[0]
    assert header == "term,bid,clicks,impressions"


def test_a_seed_gives_the_same_log_again(run: Run, tmp_path: Path) -> None:
    for name, seed in (("a.tsv", 3), ("b.tsv", 3), ("c.tsv", 4)):
        run("synth", tmp_path / name, "--users", 60, "--seed", seed)
    one, same, other = ((tmp_path / name).read_bytes() for name in ("a.tsv", "b.tsv", "c.tsv"))
    assert one == same != other


def test_a_file_that_is_there_is_left_alone_unless_forced(run: Run, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("mine")
    assert "is already there" in refused("synth", tmp_path / "log.tsv", "--users", 60)
    assert (tmp_path / "log.tsv").read_text() == "mine"
    assert run("synth", tmp_path / "log.tsv", "--users", 60, "--force").returncode == 0


def test_wrong_usage_is_one_line(refused: Refused, tmp_path: Path) -> None:
    assert "the ending of the file must be one of" in refused("synth", tmp_path / "log.xyz")
    assert "could not be written" in refused("synth", tmp_path / "nowhere" / "log.tsv", "--users", 60)
    assert "the ending of a UBI file must be .ndjson or .jsonl, got .csv" in refused(
        "synth", tmp_path / "log.csv", "--format", "ubi"
    )
    assert "format must be ubi; the ending of OUT names any other format, got csv" in refused(
        "synth", tmp_path / "log.jsonl", "--format", "csv"
    )
    assert "users must be 1 or more" in refused("synth", tmp_path / "log.tsv", "--users", 0)
    assert "seed must be 0 or more" in refused("synth", tmp_path / "log.tsv", "--users", 9, "--seed", -1)
    assert "like must be web, altavista or aol" in refused("synth", tmp_path / "log.tsv", "--like", "fame")
    assert not list(tmp_path.iterdir())
