"""Reports on noisy counts of queries, and on sessions made up from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.releases import released_tallies

from queryveil.data import QueryLog
from queryveil.guarantees import DifferentialPrivacy
from queryveil.methods import Dp
from queryveil.methods.dp.dp import synthesized
from queryveil.release import Release, read_release
from queryveil.reports import Report, render, render_markdown, report
from queryveil.reports._blocks import Paragraph
from queryveil.reports._definitions import source_of
from queryveil.reports._document import document_of
from queryveil.testing.logs import log_of

TEXTS = ("kestrel", "lantern", "mulberry", "persona", "ripple.example")
THRESHOLD = 13


@pytest.fixture(scope="module")
def log() -> QueryLog:
    return log_of({f"persona{i}": ["kestrel lantern", "mulberry"][: 1 + i % 2] for i in range(60)})


def tallied(*, clicks: bool = False) -> Release:
    pairs = {("kestrel lantern", "http://ripple.example"): 20} if clicks else None
    return released_tallies({"kestrel lantern": 61, "mulberry": 29}, clicks=pairs, threshold=THRESHOLD)


def made_up() -> Release:
    return synthesized(tallied(), n_users=30, seed=1)


def words(found: Report) -> str:
    return render_markdown(found)


@pytest.mark.parametrize("release", [tallied(), made_up()], ids=["counts", "made up"])
@pytest.mark.parametrize("beside", [True, False], ids=["beside the original", "alone"])
@pytest.mark.parametrize("kind", ["html", "md", "json"])
def test_a_report_is_written_in_every_form_and_holds_no_text(
    release: Release, beside: bool, kind: str, log: QueryLog, tmp_path: Path
) -> None:
    folder = release.save(tmp_path / "out")
    text = render(report(folder, original=log if beside else None, seed=1), format=kind)
    assert isinstance(text, str)
    assert not [word for word in TEXTS if word in text.lower()]
    assert "differential privacy" in text or kind == "json"


def test_nothing_is_said_of_how_large_the_log_was(log: QueryLog, tmp_path: Path) -> None:
    text = words(report(tallied().save(tmp_path / "out")))
    assert "of 0" not in text
    assert "Rows kept" not in text
    assert "Users kept" not in text
    assert "What was left out is not told" in text
    figures = {figure.label: figure.value for figure in document_of(report(tmp_path / "out")).figures}
    assert figures["Queries"] == "2"
    made = document_of(report(made_up())).figures
    assert {figure.label: figure.note for figure in made}["Users"] == "all made up"


def test_how_many_texts_are_one_person_s_is_not_told_and_why() -> None:
    text = words(report(tallied()))
    assert "How many texts one person alone asked is not told: the count would be exact" in text
    assert "alone asked:" not in text


def test_the_noise_stands_in_a_table(log: QueryLog) -> None:
    text = words(report(tallied()))
    (row,) = [line for line in text.splitlines() if line.startswith("| queries")]
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["queries", "laplace", "1", "1", "13", "1", "1e-05"]


def test_columns_are_those_of_counts_or_of_made_up_users() -> None:
    text = words(report(tallied()))
    assert "how many people asked it, with noise" in text
    assert "noisy count" in text
    assert "| url" not in text
    assert "made-up users" in words(report(made_up()))


def test_a_report_beside_the_original_is_not_to_be_handed_out(log: QueryLog) -> None:
    assert "Keep this report to yourself" in document_of(report(tallied(), original=log, seed=1)).alert
    assert "Keep this report to yourself" not in document_of(report(tallied())).alert


def test_counts_are_drawn_beside_those_of_the_log(log: QueryLog) -> None:
    curves = report(tallied(), original=log, seed=1).curves
    assert curves is not None
    assert (curves.what, curves.before, curves.after) == ("queries", ((1, 60), (2, 30)), ((1, 61), (2, 29)))


def test_the_largest_counts_are_shown_to_who_asks() -> None:
    found = report(tallied(), show=True)
    assert found.top_queries == (("kestrel lantern", 61), ("mulberry", 29))
    assert "| query" in words(found)
    assert "| count" in words(found) or "count |" in words(found)


def test_made_up_rows_are_not_said_to_be_held_against_a_threshold() -> None:
    assert "held against the threshold" in words(report(tallied()))
    text = words(report(made_up()))
    assert "held against the threshold" not in text
    assert "their counts are not in the release" in text


def test_a_seed_is_told_beside_the_verdict() -> None:
    seeded = Dp(seed=1).anonymize(log_of({}))
    (section,) = [each for each in document_of(report(seeded)).sections if each.name == "verdict"]
    told = [block for block in section.blocks if isinstance(block, Paragraph) and "made with a seed" in block.text]
    assert [block.kind for block in told] == ["warning"]
    weak = words(report(Dp(epsilon=20, delta=0.01, seed=1).anonymize(log_of({}))))
    assert "Epsilon above 10 promises next to nothing" in weak
    assert "Delta above 0.001 promises next to nothing" in weak


def test_clicks_are_counted_and_both_files_can_be_checked(tmp_path: Path) -> None:
    folder = tallied(clicks=True).save(tmp_path / "out")
    document, manifest = document_of(report(folder)), read_release(folder).manifest
    assert {figure.label: figure.value for figure in document.figures}["Clicks"] == "1"
    assert manifest.data is not None
    assert manifest.clicks is not None
    text = words(report(folder))
    assert "The data files are those that were judged if their checksums are these:" in text
    for file in (manifest.data, manifest.clicks):
        assert f"sha256sum out/{file.name}" in text
        assert file.sha256 in text
    alone = words(report(tallied().save(tmp_path / "alone")))
    assert "The data file is the one that was judged if its checksum is this:" in alone
    assert "Clicks" not in {figure.label for figure in document_of(report(tallied())).figures}


def test_rows_before_and_noisy_counts_of_people_after_are_told_apart(log: QueryLog) -> None:
    text = words(report(tallied(), original=log, seed=1))
    assert "Times asked" not in text
    assert "Rows of the log, and noisy counts of people" in text
    assert "noisy counts of people after" in text


def test_names_of_those_who_did_not_try_are_set_apart_by_semicolons(log: QueryLog) -> None:
    text = words(report(tallied(), original=log, seed=1))
    assert "Search terms; search terms, best guess; search terms and their counts; two or three terms together" in text


def test_the_definition_has_its_numbers_and_its_paper() -> None:
    source = source_of(DifferentialPrivacy(epsilon=0.5, delta=1e-6), method="dp")
    assert source is not None
    assert source.name == "(ε, δ)-differential privacy, ε = 0.5, δ = 1e-06"
    assert "Korolova" in source.paper


def test_the_papers_of_the_noise_are_named() -> None:
    promise = DifferentialPrivacy(epsilon=1.0, delta=1e-5)
    names = {"laplace": [], "zealous": ["Götz"], "gaussian": ["Canonne"], "truncated-geometric": ["Desfontaines"]}
    for mechanism, expected in names.items():
        noise = Dp(mechanism=mechanism, rounds=2).noise  # type: ignore[arg-type]
        source = source_of(promise, method="dp", noise=noise)
        assert source is not None
        assert [name for name in ("Korolova", "Götz", "Canonne", "Desfontaines") if name in source.paper] == [
            "Korolova",
            *expected,
        ]
        assert source.paper.count("the noise after") == len(expected)
