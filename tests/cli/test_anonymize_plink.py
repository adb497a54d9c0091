"""`queryveil anonymize plink`."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.formats.aggregates import read_membership
from queryveil.release import read_release

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]

PEOPLE = {
    "persona1": {"kitten": 1.0, "riding": 0.8},
    "persona2": {"pup": 0.6, "equitation": 1.0},
    "persona3": {"mocha": 0.7, "java": 0.6, "coffee": 0.8},
    "persona4": {"programming language": 0.6, "java": 1.0, "c++": 0.4},
    "persona5": {"kestrel": 1.0, "lantern": 1.0},
    "persona6": {"mulberry": 1.0, "nutmeg": 1.0, "lantern": 1.0},
}


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    path = tmp_path / "profiles.jsonl"
    path.write_text("".join(json.dumps({"user": user, "terms": terms}) + "\n" for user, terms in PEOPLE.items()))
    return path


def test_groups_are_made_from_profiles_and_verified(run: Run, profiles: Path, tmp_path: Path) -> None:
    done = run("anonymize", "plink", profiles, "-o", tmp_path / "out")
    assert done.returncode == 0
    assert "an average person's are at most 40 %" in done.stdout
    assert "6 of 6 kept" in done.stdout
    assert not any(text in done.stdout + done.stderr for text in ("kestrel", "java", "persona"))
    assert run("verify", tmp_path / "out", "--original", profiles).stdout == "0.4-linkability holds for 6 users.\n"
    lines = [json.loads(line) for line in (tmp_path / "out" / "groups.jsonl").read_text().splitlines()]
    assert sum(line["members"] for line in lines) == 6
    assert all(set(line) == {"group", "members", "size", "terms"} for line in lines)


def test_groups_are_made_from_a_log_and_verified(run: Run, log_file: Path, tmp_path: Path) -> None:
    assert run("anonymize", "plink", log_file, "-o", tmp_path / "out").returncode == 0
    judged = run("verify", tmp_path / "out", "--original", log_file)
    assert (judged.returncode, judged.stdout) == (0, "0.4-linkability holds for 12 users.\n")


@pytest.mark.slow
def test_strict_groups_carry_holders_and_say_what_was_dropped(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run("anonymize", "plink", log_file, "-o", tmp_path / "out", "--strict", "--json")
    manifest = json.loads(done.stdout)
    # Everybody in this log has the same four nouns, so none of them may stay.
    assert manifest["measures"]["largest_share_before_dropping"] == 1.0
    assert manifest["measures"]["largest_share"] <= 0.4
    assert manifest["removed"]["terms_dropped"] > 0
    assert all("holders" in json.loads(line) for line in (tmp_path / "out" / "groups.jsonl").read_text().splitlines())
    assert run("verify", tmp_path / "out", "--original", log_file).returncode == 0


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_who_is_in_which_group_goes_to_a_private_file(run: Run, profiles: Path, tmp_path: Path, ending: str) -> None:
    who = tmp_path / f"who.{ending}"
    done = run("anonymize", "plink", profiles, "-o", tmp_path / "out", "--membership", who)
    assert done.returncode == 0
    assert "keep it to yourself" in done.stderr
    assert stat.S_IMODE(who.stat().st_mode) == 0o600
    frame = read_membership(who)
    assert sorted(frame["user"]) == sorted(PEOPLE)
    groups = read_release(tmp_path / "out").groups.frame
    sizes = frame.group_by("group").len().sort("group")
    assert sizes["len"].to_list() == groups.sort("group")["members"].to_list()
    files = {file.name: file.read_text() for file in (tmp_path / "out").iterdir()}
    assert not any("persona" in text for text in files.values())


def test_a_membership_is_never_written_into_the_release(refused: Refused, profiles: Path, tmp_path: Path) -> None:
    who = tmp_path / "out" / "who.csv"
    line = refused("anonymize", "plink", profiles, "-o", tmp_path / "out", "--membership", who)
    assert "outside the release folder" in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--p", "0"], "p must be above 0 and at most 1, got 0.0"),
        (["--p", "1.1"], "p must be above 0 and at most 1, got 1.1"),
        (["--p", "nan"], "p must be above 0 and at most 1, got nan"),
        (["--a", "4"], "a must be"),
        (["--weights", "heavy"], "weights must be binary, count or tfidf, got heavy"),
        (["--representative", "mayor"], "representative must be centroid or union, got mayor"),
        (["--p", "0.1"], "users with something to release are needed"),
    ],
)
def test_bad_settings_say_what_to_write_instead(
    refused: Refused, profiles: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    assert message in refused("anonymize", "plink", profiles, "-o", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_a_line_that_is_no_profile_is_named_or_skipped(run: Run, profiles: Path, tmp_path: Path) -> None:
    with profiles.open("a") as file:
        file.write('{"user": "persona7", "terms": {"kestrel": "much"}}\n')
    done = run("anonymize", "plink", profiles, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "line 7" in done.stderr
    assert "--bad-rows skip" in done.stderr
    assert "kestrel" not in done.stderr
    skipped = run("anonymize", "plink", profiles, "-o", tmp_path / "out", "--bad-rows", "skip")
    assert skipped.returncode == 0
    assert "bad rows skipped" in skipped.stdout


@pytest.mark.slow
def test_what_strictness_costs_in_precision_stands_in_the_manifest(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    assert run("synth", tmp_path / "log.tsv", "--users", 300).returncode == 0
    done = run("anonymize", "plink", tmp_path / "log.tsv", "-o", tmp_path / "out", "--strict", "--json")
    measures = json.loads(done.stdout)["measures"]
    strict, loose = measures["average_precision_at_10"], measures["average_precision_at_10_if_not_strict"]
    assert 0 < strict < loose < 1
    assert 0 < measures["average_precision_at_10_without_profile"] < 1
    plain = run("anonymize", "plink", tmp_path / "log.tsv", "-o", tmp_path / "plain", "--json")
    assert "average_precision_at_10" not in json.loads(plain.stdout)["measures"]


def test_precision_that_cannot_be_measured_is_a_warning_by_default_and_an_error_with_a_corpus(
    run: Run, refused: Refused, profiles: Path, tmp_path: Path
) -> None:
    pytest.importorskip("tantivy")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("a text about wool")
    done = run("anonymize", "plink", profiles, "-o", tmp_path / "out", "--corpus", tmp_path / "texts")
    assert done.returncode == 2
    assert done.stderr == "queryveil: personalised search needs a corpus of 100 documents, not 1\n"
    line = refused("anonymize", "plink", profiles, "-o", tmp_path / "out", "--corpus", tmp_path / "nowhere")
    assert "nowhere" in line
    (tmp_path / "odd.jsonl").write_text("".join(f'{{"user": "{i}", "terms": {{"qqq{i}": 1}}}}\n' for i in range(9)))
    done = run("anonymize", "plink", tmp_path / "odd.jsonl", "-o", tmp_path / "out", "--strict")
    assert done.returncode == 0
    assert "what strictness costs in precision was not measured" in done.stderr
