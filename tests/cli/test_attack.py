"""`queryveil attack`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


@pytest.fixture
def made(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "made.tsv"
    assert run("synth", path, "--users", 500, "--seed", 3).returncode == 0
    return path


@pytest.mark.slow
def test_a_release_is_attacked_beside_the_original(run: Run, made: Path, tmp_path: Path) -> None:
    run("anonymize", "km", made, "-o", tmp_path / "km", "--k", 5, "--m", 2)
    secrets = tmp_path / "made.tsv.secrets.jsonl"
    done = run("attack", made, tmp_path / "km", "--people", secrets, "--targets", 100, "--seed", 1)
    assert done.returncode == 0
    lines = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert lines["vanity"].split() == ["vanity", "people", "100", "%", "0", "%", *lines["vanity"].split()[6:]]
    assert "known_terms 4" in lines
    assert "known_terms 4, 2 wrong" in lines
    assert lines["fragments"].split()[:2] == ["fragments", "texts"]
    assert lines["named_fragments"].split()[:5] == ["named_fragments", "names", "100", "%", "0"]
    assert "who is who was estimated, since ids do not tell it" in done.stderr
    assert "not run: token_inversion" in done.stderr


def test_json_has_every_figure(run: Run, made: Path, tmp_path: Path) -> None:
    run("anonymize", "pseudonymise", made, "-o", tmp_path / "p")
    done = run("attack", made, tmp_path / "p", "--only", "clock,known_terms", "--json")
    told = json.loads(done.stdout)
    assert {a["after"]["attacker"] for a in told["attempts"]} == {"clock", "known_terms"}
    assert told["skipped"] == []
    surest = {a["after"]["attacker"]: a["after"]["surest"] for a in told["attempts"]}
    assert surest["clock"].keys() == {"n_targets", "n_found", "n_certain", "share", "interval"}
    # In a log with nothing but its ids changed, exact days of five searches leave no doubt about some people.
    assert surest["clock"]["n_certain"] > 0


@pytest.mark.slow
def test_a_swapped_release_is_attacked_with_the_key_beside_it(run: Run, made: Path, tmp_path: Path) -> None:
    run("anonymize", "swap", made, "-o", tmp_path / "s", "--k", 5)
    done = run("attack", made, tmp_path / "s", "--only", "as_released,rebuild_1,repeats")
    assert done.returncode == 0
    assert "rebuild_1+T" in done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0].endswith("by chance surest 1 % certain")
    # Who reads rows as they stand names nobody, and has no surest guess; who repeats a query is named.
    assert [line.split()[-2:] for line in lines if line.startswith("as_released")] == [["-", "-"]]
    assert [line.split()[1] for line in lines if line.startswith("repeats")] == ["people"]


@pytest.mark.slow
def test_hashed_terms_need_a_public_log(run: Run, made: Path, tmp_path: Path) -> None:
    run("anonymize", "token-hash", made, "-o", tmp_path / "h")
    alone = run("attack", made, tmp_path / "h", "--only", "token_inversion")
    assert "--public" in alone.stderr
    public = tmp_path / "public.tsv"
    run("synth", public, "--users", 500, "--seed", 4)
    done = run("attack", made, tmp_path / "h", "--only", "token_inversion", "--public", public)
    assert "token_inversion" in done.stdout


def test_wrong_usage_is_one_line(refused: Refused, release: Path, log_file: Path, tmp_path: Path) -> None:
    assert "only must be one of" in refused("attack", log_file, release, "--only", "oracle")
    assert "no such file" in refused("attack", tmp_path / "none.tsv", release).lower()
    assert "no such folder" in refused("attack", log_file, tmp_path / "none")
    assert "targets must be 1 or more" in refused("attack", log_file, release, "--targets", 0).replace("n_", "")
    assert refused("attack", log_file, release, "--people", tmp_path / "none.jsonl")


def test_another_log_than_the_release_was_made_from_is_refused(
    run: Run, refused: Refused, made: Path, tmp_path: Path
) -> None:
    run("anonymize", "pseudonymise", made, "-o", tmp_path / "p")
    other = tmp_path / "other.tsv"
    run("synth", other, "--users", 100, "--seed", 4)
    assert "give the log that it was made from" in refused("attack", other, tmp_path / "p")
