"""Reports on noisy counts of queries, and on sessions made up from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryveil.guarantees import DifferentialPrivacy
from queryveil.log import QueryLog
from queryveil.methods.dp_synthesis import synthesized
from queryveil.release import Release
from queryveil.report import Report, render, report
from queryveil.report.document import document_of
from queryveil.report.papers import source_of
from queryveil.testing.logs import log_of
from queryveil.testing.releases import released_tallies

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
    return render(found, format="md")


@pytest.mark.parametrize("release", [tallied(), made_up()], ids=["counts", "made up"])
@pytest.mark.parametrize("beside", [True, False], ids=["beside the original", "alone"])
@pytest.mark.parametrize("kind", ["html", "md", "json"])
def test_a_report_is_written_in_every_form_and_holds_no_text(
    release: Release, beside: bool, kind: str, log: QueryLog, tmp_path: Path
) -> None:
    folder = release.save(tmp_path / "out")
    text = render(report(folder, original=log if beside else None, seed=1), format=kind)
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
    assert {figure.label: figure.note for figure in made}["Made-up rows"] == "of 30 made-up users"


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


def test_the_definition_has_its_numbers_and_its_paper() -> None:
    source = source_of(DifferentialPrivacy(epsilon=0.5, delta=1e-6), method="dp")
    assert source is not None
    assert source.name == "(ε, δ)-differential privacy, ε = 0.5, δ = 1e-06"
    assert "Korolova" in source.paper
