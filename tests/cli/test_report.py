"""`queryveil report`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.release import read_release

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]

TEXTS = ("kestrel", "lantern", "mulberry", "nutmeg", "rarity", "persona0", "persona1", "shop.example")
FEW = ("--targets", 5, "--seed", 1)


@pytest.fixture
def broken(release: Path) -> Path:
    """The release with a row that breaks its promise, and a manifest that fits."""
    data, manifest = release / "log.tsv", release / "manifest.json"
    data.write_text(data.read_text() + "99\tquincebread\t2006-03-01 00:00:00\t\t\n")
    said = json.loads(manifest.read_text())
    said["data"]["sha256"] = hashlib.sha256(data.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(said))
    return release


def test_the_report_is_written_into_the_folder_and_holds_no_text(run: Run, release: Path, log_file: Path) -> None:
    done = run("report", release, "--original", log_file, *FEW)
    assert done.returncode == 0
    assert done.stdout.startswith("(3, 2)-anonymity holds for 12 users.")
    assert done.stderr == f"written to {release / 'report.html'}\n"
    text = (release / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert not [one for one in TEXTS if one in (text + done.stdout).lower()]
    assert sorted(path.name for path in release.iterdir()) == ["log.tsv", "manifest.json", "report.html"]


def test_a_folder_with_a_report_is_still_a_release_and_can_be_replaced(run: Run, release: Path, log_file: Path) -> None:
    before = read_release(release).manifest
    assert run("report", release).returncode == 0
    assert read_release(release).manifest == before
    assert run("verify", release).returncode == 0
    (release / "report.html").write_text("an older one")
    assert run("report", release).returncode == 0
    assert "an older one" not in (release / "report.html").read_text()
    done = run("anonymize", "km", log_file, "-o", release, "--k", 2, "--m", 1, "--force")
    assert done.returncode == 0
    assert not (release / "report.html").exists()


def test_a_broken_promise_is_reported_and_exit_1(run: Run, broken: Path) -> None:
    done = run("report", broken)
    assert done.returncode == 1
    assert done.stdout.startswith("The promise is broken: 1 violation")
    text = (broken / "report.html").read_text()
    assert "Do not hand it out" in text
    assert "quincebread" not in text + done.stdout


def test_a_release_that_was_tampered_with_is_one_line_and_no_report(refused: Refused, release: Path) -> None:
    with (release / "log.tsv").open("a") as file:
        file.write("99\tkestrel\t\t\t\n")
    assert "sha256 differs" in refused("report", release)
    assert not (release / "report.html").exists()


def test_other_files_are_replaced_only_with_force(run: Run, refused: Refused, release: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.html"
    assert run("report", release, "-o", file).returncode == 0
    file.write_text("something else")
    assert "is already there; replace it with --force" in refused("report", release, "-o", file)
    assert file.read_text() == "something else"
    assert run("report", release, "-o", file, "--force").returncode == 0
    assert file.read_text().startswith("<!doctype html>")
    assert "is a folder; name a file" in refused("report", release, "-o", tmp_path)
    assert "output must be a file in a folder that is there" in refused("report", release, "-o", tmp_path / "no" / "r")
    assert not (release / "report.html").exists()


def test_it_goes_to_stdout_as_html_markdown_or_json(run: Run, release: Path) -> None:
    page, text = run("report", release, "-o", "-"), run("report", release, "-o", "-", "--format", "md")
    assert page.stdout.startswith("<!doctype html>")
    assert text.stdout.startswith("# Release \u201crelease\u201d\n")
    for options in (["--json"], ["-o", "-", "--format", "json"]):
        assert json.loads(run("report", release, *options).stdout)["state"] == "holds"
    assert not list(release.glob("report.*"))
    assert run("report", release, "--format", "md").returncode == 0
    assert (release / "report.md").is_file()


def test_it_is_written_in_a_language_with_what_the_releaser_states_and_rules_out(run: Run, release: Path) -> None:
    stated = ("--releaser", "Town library", "--recipient", "Institute", "--purpose-text", "suggestions")
    ruled_out = ("--except", "sybil=accounts need an invitation", "--limit", "10%")
    assert run("report", release, "--lang", "de", *stated, *ruled_out).returncode == 0
    text = (release / "report.html").read_text(encoding="utf-8")
    assert '<html lang="de">' in text
    for said in ("Town library", "Institute", "suggestions", "accounts need an invitation", "Grenzwert von 10 %"):
        assert said in text.replace("\u00a0", " ")


def test_a_pdf_goes_into_the_folder_and_is_no_fault_there(run: Run, release: Path) -> None:
    pytest.importorskip("typst")
    assert run("report", release, "--format", "pdf").returncode == 0
    assert (release / "report.pdf").read_bytes().startswith(b"%PDF-")
    assert run("verify", release).returncode == 0


def test_texts_of_the_release_are_shown_only_when_asked_for(run: Run, release: Path, log_file: Path) -> None:
    assert run("report", release, "--original", log_file, "--show", *FEW).returncode == 0
    text = (release / "report.html").read_text()
    assert "kestrel lantern" in text
    assert "rarity" not in text
    assert "persona0" not in text


def test_what_was_asked_wrongly_is_one_line(refused: Refused, release: Path, tmp_path: Path) -> None:
    assert refused("report", release, "--format", "txt") == "format must be html, md, json or pdf, got txt"
    assert refused("report", release, "--lang", "it") == "lang must be en, de, fr or es, got it"
    said = "limit must be a share such as 5% or 0.05, at most 100%, got 7x"
    assert refused("report", release, "--limit", "7x") == said
    assert "except must be one of " in refused("report", release, "--except", "nobody=since")
    said = "except must be an attacker with the reason why: sybil=REASON, got sybil"
    assert refused("report", release, "--except", "sybil") == said
    assert "there is no such folder" in refused("report", tmp_path / "nowhere")
    assert "there is no such file" in refused("report", release, "--original", tmp_path / "nowhere.tsv")
    assert "n_targets must be 1 or more" in refused("report", release, "--targets", 0)


def test_swap_finds_its_key_beside_the_folder(run: Run, log_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "swapped"
    assert run("anonymize", "swap", log_file, "-o", folder, "--k", 3).returncode == 0
    alone = run("report", folder, "-o", "-", "--format", "md")
    assert alone.returncode == 0
    assert "**Not judged.**" in alone.stdout
    assert "add --original LOG" in alone.stdout.replace("\\", "")
    both = run("report", folder, "--original", log_file, "--json", *FEW)
    assert json.loads(both.stdout)["state"] == "holds"


def test_the_original_is_read_as_its_options_say(run: Run, release: Path, log_file: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.tsv"
    lines = log_file.read_text().splitlines()
    renamed.write_text("\n".join(["who\twhat\twhen\tplace\tlink", *lines[1:]]) + "\n")
    options = ["--original-format", "tsv", "--columns", "user=who,query=what,time=when,rank=place,url=link"]
    done = run("report", release, "--original", renamed, *options, "--json", *FEW)
    assert done.returncode == 0
    assert json.loads(done.stdout)["measures"]["scores"]


def test_people_to_look_for_and_term_values_are_used(run: Run, release: Path, log_file: Path, tmp_path: Path) -> None:
    people, values = tmp_path / "people.jsonl", tmp_path / "values.csv"
    people.write_text('{"name": "raritya", "town": "kestrel"}\n')
    values.write_text("term,bid,clicks,impressions\nkestrel,1.5,2,3\n")
    done = run("report", release, "--original", log_file, "--people", people, "--values", values, "--json", *FEW)
    made = json.loads(done.stdout)
    assert "vanity" in {attempt["after"]["attacker"] for attempt in made["attacks"]["attempts"]}
    assert "bid_kept" in {score["name"] for score in made["measures"]["scores"]}
    assert "raritya" not in done.stdout


def test_json_goes_to_a_file_that_is_named(run: Run, release: Path, tmp_path: Path) -> None:
    done = run("report", release, "--json", "-o", tmp_path / "told.json")
    assert done.returncode == 0
    assert json.loads((tmp_path / "told.json").read_text())["state"] == "holds"
    assert json.loads(run("report", release, "--json").stdout)["state"] == "holds"


def test_a_report_never_takes_the_place_of_what_it_is_about(
    run: Run, refused: Refused, release: Path, log_file: Path
) -> None:
    for part in (release / "manifest.json", release / "log.tsv", log_file):
        before = part.read_bytes()
        said = refused("report", release, "--original", log_file, "-o", part, "--force")
        assert "not a part of what is reported on" in said
        assert part.read_bytes() == before
