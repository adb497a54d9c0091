"""`queryveil measure`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]

TEXTS = ("kestrel", "lantern", "mulberry", "nutmeg", "rarity", "persona", "shop.example")


@pytest.fixture
def values_file(tmp_path: Path) -> Path:
    path = tmp_path / "values.csv"
    path.write_text("term,bid,clicks,impressions\nKestrel,2.5,10,100\nlantern,1,,50\n", encoding="utf-8")
    return path


def scores(done: CompletedProcess[str]) -> dict[str, float]:
    assert done.returncode == 0
    return {score["name"]: score["value"] for score in json.loads(done.stdout)["scores"]}


def test_measures_are_printed_by_family_and_notes_go_to_stderr(run: Run, log_file: Path, release: Path) -> None:
    done = run("measure", log_file, release)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    families = [line.strip() for line in lines if line and not line.startswith((" ", "measure"))]
    assert families == ["kept", "coverage", "search", "counting", "profiles"]
    # 36 of 48 rows are left: the term that nobody else has is gone from everybody
    (rows,) = [line.split() for line in lines if "rows kept" in line]
    assert " ".join(rows) == "rows kept 75 % of the rows are still there, whole or in part"
    assert [line for line in lines if line.endswith("less is better")]
    assert "note: advertising is left out" in done.stderr
    assert not any(text in (done.stdout + done.stderr).lower() for text in TEXTS)


def test_json_has_all_figures_and_no_text(run: Run, log_file: Path, release: Path, values_file: Path) -> None:
    done = run("measure", log_file, release, "--values", values_file, "--json")
    found = scores(done)
    assert (found["rows_kept"], found["users_kept"], found["bid_kept"]) == (0.75, 1, 1)
    assert found["terms_kept"] == pytest.approx(4 / 16)
    assert done.stderr == ""
    assert json.loads(done.stdout)["notes"]
    assert not any(text in done.stdout.lower() for text in TEXTS)


def test_a_log_by_other_people_is_judged_on(run: Run, tmp_path: Path) -> None:
    log, folder = tmp_path / "clicked.csv", tmp_path / "clicked"
    rows = [f"persona{i},kestrel lantern,www.shop.example" for i in range(4)] + ["persona4,mulberry,www.elm.example"]
    log.write_text("\n".join(("user,query,url", *rows)) + "\n", encoding="utf-8")
    assert run("anonymize", "km", log, "-o", folder, "--k", 3, "--m", 2, "--keep", "url").returncode == 0
    inside, outside = (run("measure", log, folder, *more) for more in ((), ("--public", log)))
    assert "add --public LOG" in inside.stderr
    assert "--public" not in outside.stderr
    assert 0 < scores(run("measure", log, folder, "--public", log, "--json"))["ranking_kept"] < 1


def test_the_key_beside_a_release_is_found(run: Run, log_file: Path, tmp_path: Path) -> None:
    key = tmp_path / "keyed.key"
    key.write_bytes(b"a secret of many letters")
    options = ("--k", 3, "--m", 2, "--ids", "keyed", "--key", key)
    assert run("anonymize", "km", log_file, "-o", tmp_path / "keyed", *options).returncode == 0
    assert "profile_distance" in scores(run("measure", log_file, tmp_path / "keyed", "--json"))
    key.rename(tmp_path / "elsewhere.key")
    assert "profile_distance" not in scores(run("measure", log_file, tmp_path / "keyed", "--json"))
    found = scores(run("measure", log_file, tmp_path / "keyed", "--key", tmp_path / "elsewhere.key", "--json"))
    assert "profile_distance" in found


def test_groups_are_measured_beside_profiles_and_with_the_membership(run: Run, tmp_path: Path) -> None:
    people = tmp_path / "people.jsonl"
    rows = [{"user": f"persona{i}", "terms": {"kestrel": 1.0, "lantern": 0.5, "city": 1.0}} for i in range(4)]
    people.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    folder, membership = tmp_path / "groups", tmp_path / "membership.csv"
    assert run("anonymize", "plink", people, "-o", folder, "--p", 0.5, "--membership", membership).returncode == 0
    found = scores(run("measure", people, folder, "--membership", membership, "--json"))
    assert (found["users_kept"], found["terms_kept"], found["log_size_kept"]) == (1, 1, 1)


def test_a_taxonomy_of_ones_own_is_read(run: Run, log_file: Path, tmp_path: Path) -> None:
    taxonomy = tmp_path / "things.csv"
    pairs = ("kestrel,thing", "lantern,thing", "mulberry,thing", "nutmeg,thing")
    taxonomy.write_text("\n".join(("child,parent", *pairs)) + "\n", encoding="utf-8")
    folder = tmp_path / "clump"
    assert run("anonymize", "clump", log_file, "-o", folder, "--k", 3, "--taxonomy", taxonomy).returncode == 0
    assert "ncp" not in scores(run("measure", log_file, folder, "--json"))
    found = scores(run("measure", log_file, folder, "--taxonomy", taxonomy, "--json"))
    assert found["ncp"] == 0
    # 12 of 84 terms are outside the taxonomy
    assert found["log_size_kept"] == pytest.approx(72 / 84)


def test_what_is_not_there_is_wrong_usage(refused: Refused, log_file: Path, release: Path, tmp_path: Path) -> None:
    assert "no such folder" in refused("measure", log_file, tmp_path / "nosuch")
    assert "term values cannot be read" in refused("measure", log_file, release, "--values", tmp_path / "nosuch.csv")
    assert "no such file" in refused("measure", log_file, release, "--membership", tmp_path / "nosuch.csv")
    refused("measure", tmp_path / "nosuch.tsv", release)


def test_a_table_without_terms_is_a_clear_error(refused: Refused, log_file: Path, release: Path) -> None:
    assert "needs the column term" in refused("measure", log_file, release, "--values", log_file)
