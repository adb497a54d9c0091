"""What goes into a report: the verdict, what attackers find, what it cost, and why something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.support.made_up_reports import ALL, KEY, key_of, made_up_log, release_by

import queryveil
from queryveil.data import Profiles, QueryLog
from queryveil.errors import BadFile, BadInput, BadParameter, BadRelease
from queryveil.guarantees import KmAnonymity
from queryveil.methods import Km, Plink, Swap
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Release
from queryveil.reports import Report, State, render, report, write_whole
from queryveil.reports._blocks import Picture
from queryveil.reports._cost_section import edits_section, in_words
from queryveil.reports.value import curves_of, points_of
from queryveil.testing import log_of


def report_on(method: str) -> Report:
    return report(release_by(method), original=made_up_log(), key=key_of(method), n_targets=20, seed=1)


def broken() -> Release:
    """Claim more than the release keeps."""
    release = release_by("km")
    manifest = msgspec.structs.replace(release.manifest, promise=KmAnonymity(k=100, m=1))
    return Release(data=release.data, manifest=manifest)


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL)
def test_every_method_can_be_reported_on_with_and_without_the_original(method: str) -> None:
    alone, beside = report(release_by(method)), report_on(method)
    assert alone.attacks is None
    assert alone.measures is None
    assert "--original LOG" in alone.why_no_attacks
    assert "--original LOG" in alone.why_no_measures
    assert beside.attacks is not None
    assert beside.measures is not None
    assert beside.attacks.attempts or beside.attacks.skipped
    promises = method not in ("pseudonymise", "token_hash", "query_threshold")
    assert beside.state is (State.HOLDS if promises else State.NOTHING_PROMISED)
    assert alone.state is (State.NOT_JUDGED if method == "swap" else beside.state)
    assert json.loads(render(beside, format="json"))["state"] == str(beside.state)


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_no_report_holds_a_query_a_term_a_url_or_a_user_id_of_the_log_or_the_release(method: str, form: str) -> None:
    text = render(report_on(method), format=form).lower()
    frame, data = made_up_log().frame, release_by(method).data
    texts = {*frame["query"], *frame["url"], *frame["user"]}
    texts |= {term for query in frame["query"] for term in query.split()}
    if isinstance(data, QueryLog):
        texts |= {term for query in data.frame["query"] for term in query.split()}
    assert len(texts) > 100
    assert not [one for one in texts if one.lower() in text]


def test_the_package_itself_is_the_verb_and_takes_a_folder(tmp_path: Path) -> None:
    release_by("km").save(tmp_path / "out")
    made = queryveil.report(tmp_path / "out", original=made_up_log(), n_targets=5)
    assert isinstance(made, Report)
    assert made.folder == "out"
    assert str(tmp_path) not in render(made)


def test_a_broken_promise_is_said_and_reported_all_the_same() -> None:
    made = report(broken())
    assert made.state is State.BROKEN
    assert made.judgement.verdict is not None
    assert made.judgement.verdict.n_violations > 0


def test_swap_without_what_its_verdict_needs_is_not_judged_and_says_what_is_missing() -> None:
    swapped = release_by("swap")
    without_key = report(swapped, original=made_up_log())
    assert report(swapped).judgement.reason.endswith("add --original LOG")
    assert without_key.state is State.NOT_JUDGED
    assert without_key.judgement.reason.endswith("add --key FILE")
    assert "add --key FILE" in without_key.why_no_attacks
    fresh = Swap(k=3, columns=ColumnPolicy()).anonymize(made_up_log())
    made = report(fresh, original=made_up_log())
    assert made.state is State.NOT_JUDGED
    assert "fresh" in made.why_no_attacks
    assert made.measures is not None


def test_profiles_as_the_original_of_groups_are_judged_and_measured_but_not_attacked() -> None:
    rows = {"user": [f"persona{i}" for i in range(9)], "terms": [["kestrel", "otter"]] * 9, "weights": [[1.0, 1.0]] * 9}
    people = Profiles.from_frame(rows)
    made = report(Plink().anonymize(people), original=people)
    assert made.state is State.HOLDS
    assert made.judgement.beside_original
    assert made.attacks is None
    assert "as a log" in made.why_no_attacks
    assert made.measures is not None


def test_a_log_of_other_people_with_as_many_rows_breaks_the_verdict_and_not_the_report() -> None:
    log = made_up_log()
    other = log.with_frame(log.frame.with_columns(query=pl.lit("heron")))
    for method in ("km", "clump"):
        assert report(release_by(method), original=other, n_targets=5).state is State.BROKEN


def test_a_damaged_folder_is_the_same_error_as_with_verify(tmp_path: Path) -> None:
    folder = release_by("km").save(tmp_path / "out")
    data = next(folder.glob("log.*"))
    data.write_bytes(data.read_bytes() + b"x")
    with pytest.raises(BadRelease, match="sha256 differs"):
        report(folder)


def test_texts_of_the_release_are_there_only_if_asked_for() -> None:
    assert report(release_by("km")).top_queries is None
    shown = report(release_by("km"), show=True).top_queries
    assert shown is not None
    counts = release_by("km").log.frame["query"].value_counts()
    assert dict(shown).items() <= dict(counts.iter_rows()).items()
    assert [n for _, n in shown] == sorted((n for _, n in shown), reverse=True)
    assert report(release_by("clump"), show=True).top_queries == ()


def test_an_empty_log_has_a_report() -> None:
    empty = QueryLog.from_frame({"user": [], "query": []}, columns=None)
    release = Km(k=2, m=1).anonymize(empty)
    made = report(release, original=empty)
    assert made.state is State.HOLDS
    for form in ("html", "md", "json"):
        assert render(made, format=form)


def test_bad_settings_are_refused_before_any_work() -> None:
    with pytest.raises(BadParameter, match="n_targets must be 1 or more, got 0"):
        report(release_by("km"), n_targets=0)
    with pytest.raises(BadParameter, match="format must be html, md, json or pdf, got txt"):
        render(report(release_by("km")), format="txt")
    with pytest.raises(BadParameter, match="lang must be en, de, fr or es, got it"):
        render(report(release_by("km")), lang="it")
    with pytest.raises(BadParameter, match="valid_months must be a whole number from 1 to 120, got 0"):
        report(release_by("km"), valid_months=0)


def test_a_report_that_cannot_be_written_is_one_line_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken" / "inside").mkdir(parents=True)
    for path in (tmp_path / "taken", tmp_path / "nowhere" / "report.html", tmp_path / ("x" * 300)):
        with pytest.raises(BadFile, match="could not be written"):
            write_whole("text", path)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_the_same_seed_gives_the_same_report() -> None:
    one, two = (render(report_on("km"), format="json") for _ in range(2))
    assert one == two


def test_curves_count_queries_of_logs_and_terms_of_transactions() -> None:
    log = log_of({"u1": ["Red wine", "red WINE!"], "u2": ["red wine", "beer", ""]})
    release = Release(data=log, manifest=release_by("km").manifest)
    curves = curves_of(Pair(log, release=release))
    assert curves is not None
    assert (curves.what, curves.before, curves.after) == ("queries", ((1, 3), (2, 1)), ((1, 3), (2, 1)))
    bags = curves_of(Pair(log, release=release_by("clump")))
    assert bags is not None
    assert (bags.what, bags.before) == ("terms", ((1, 3), (2, 3), (3, 1)))
    assert curves_of(Pair(log, release=release_by("plink"))) is None


def test_a_long_curve_has_few_points_and_keeps_the_first_the_last_and_the_tens() -> None:
    points = dict(points_of(np.arange(1, 5001)))
    assert len(points) < 50
    assert {rank: points[rank] for rank in (1, 10, 100, 1000, 5000)} == {
        1: 5000,
        10: 4991,
        100: 4901,
        1000: 4001,
        5000: 1,
    }
    assert points_of(np.array([], np.int64)) == ()
    assert points_of(np.array([0, 0])) == ()


@pytest.mark.parametrize("method", ALL)
def test_whatever_a_method_counts_has_plain_words(method: str) -> None:
    manifest = release_by(method).manifest
    counted = [name for name in (*manifest.removed, *manifest.changed) if not name.startswith("identifiers_")]
    assert counted
    assert not {in_words(name) for name in counted} & {name.replace("_", " ") for name in counted}


def test_kinds_of_removed_rows_come_first_and_add_up() -> None:
    counts = release_by("km").manifest.counts
    rows, *others = edits_section(report(release_by("km")))
    assert isinstance(rows, Picture)
    assert rows.instead is not None
    assert sum(cells[1] for cells in rows.instead.rows) == counts.n_rows_before - counts.n_rows_after  # type: ignore[misc]
    assert others
    assert not any(isinstance(block, Picture) for block in others)


def test_neither_repr_nor_notebook_view_of_a_report_shows_text() -> None:
    made = report(release_by("km"), show=True)
    shown = repr(made) + made._repr_html_()
    assert "holds" in shown
    assert not [term for query, _ in made.top_queries or () for term in query.split() if term in shown]
    assert KEY.decode() not in shown


def test_a_log_that_cannot_be_the_original_is_refused() -> None:
    other = made_up_log().with_frame(made_up_log().frame.head(50))
    with pytest.raises(BadInput, match="made from 210 rows, and there are 50"):
        report(release_by("pseudonymise"), original=other, n_targets=5)


def test_a_table_of_values_without_terms_is_refused_and_not_passed_over() -> None:
    with pytest.raises(BadInput, match="needs the column term"):
        report(release_by("km"), original=made_up_log(), values=pl.DataFrame({"word": ["a"], "bid": [1.0]}))
