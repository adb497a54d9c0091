"""Noisy counts, judged by what the manifest says of the noise, by the counts, and beside the original."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from queryveil.checks import Verdict, judge, verify, verify_dp
from queryveil.checks._dp_noise import delta_of
from queryveil.data import Format, Layout, QueryLog, Tallies, Transactions
from queryveil.errors import BadFile, BadInput, BadParameter
from queryveil.guarantees import DifferentialPrivacy, KmAnonymity
from queryveil.release import SEEDED_NOISE, ColumnReport, Counts, Ids, Manifest, Noise, Release, TimeDetail
from queryveil.testing import log_of

PROMISE = DifferentialPrivacy(epsilon=1.0, delta=1e-5)
ENOUGH = Noise(what="queries", mechanism="laplace", max_items=1, scale=1.0, threshold=13, epsilon=1.0, delta=1e-5)
WARNED = "epsilon above 10 promises next to nothing: chances may differ by a factor of more than 22,026"
HALF = Noise(what="queries", mechanism="laplace", max_items=1, scale=2.0, threshold=26, epsilon=0.5, delta=5e-6)
HALF_CLICKS = msgspec.structs.replace(HALF, what="clicks")
ASKED = log_of({f"persona{i}": ["Red  Kettle", "lantern"][: 1 + i % 2] for i in range(6)})


def tallies(counts: dict[str, int], clicks: list[tuple[str, str, int]] | None = None) -> Tallies:
    return Tallies(
        frame=pl.DataFrame(
            {"query": list(counts), "count": list(counts.values())}, schema={"query": pl.String, "count": pl.Int64}
        ),
        clicks=None
        if clicks is None
        else pl.DataFrame(clicks, schema={"query": pl.String, "url": pl.String, "count": pl.Int64}, orient="row"),
    )


def changed(noise: Noise, **fields: Any) -> Noise:
    return msgspec.structs.replace(noise, **fields)


def found(verdict: Verdict) -> list[tuple[str, int, int, tuple[int, ...]]]:
    assert verdict.n_violations == len(verdict.witnesses)
    assert verdict.holds == (not verdict.witnesses)
    return [(each.kind, each.support, each.needed, each.rows) for each in verdict.witnesses]


def judged(data: Tallies | QueryLog, *noise: Noise, original: QueryLog | None = None) -> list[Any]:
    return found(verify_dp(data, PROMISE, noise=noise, original=original))


def release_of(data: Tallies | QueryLog, *noise: Noise, **fields: Any) -> Release:
    n_rows, n_users = (data.n_rows, data.n_users) if isinstance(data, QueryLog) else (data.n_queries, 0)
    whats = [each.what for each in noise]
    settings: dict[str, str | int | float | bool | None] = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "max_queries": 1,
        "mechanism": "laplace",
        "rounds": whats.count("queries"),
        "choose": "random",
        "clicks": 0.5 if "clicks" in whats else 0.0,
        "max_clicks": 1,
        "bot_threshold": 100,
    }
    if isinstance(data, QueryLog):
        settings["synthesized"] = True
        fields = {"changed": {"rows_added": n_rows}} | fields
    manifest = Manifest(
        method="dp",
        promise=PROMISE,
        parameters=settings,
        counts=Counts(n_rows_before=0, n_rows_after=n_rows, n_users_before=0, n_users_after=n_users),
        removed={},
        columns=ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP),
        noise=noise,
    )
    return Release(data=data, manifest=msgspec.structs.replace(manifest, **fields))


def test_noise_that_is_enough_keeps_the_promise_as_far_as_files_can_show() -> None:
    verdict = verify_dp(tallies({"red kettle": 13}), PROMISE, noise=[ENOUGH])
    assert found(verdict) == []
    assert verdict.in_words() == f"{PROMISE.title()} holds for 1 count, as far as it can be checked."
    assert any("cannot show" in note for note in verdict.notes)
    assert judged(tallies({}), ENOUGH) == []


def test_a_threshold_that_is_one_too_low_or_noise_that_is_half_breaks_it() -> None:
    for wrong in ({"threshold": 12}, {"scale": 0.5}, {"max_items": 2}, {"scale": 1.0 - 1e-4}):
        ((kind, delta, stated, part),) = judged(tallies({"red kettle": 40}), changed(ENOUGH, **wrong))
        assert (kind, stated, part) == ("weak_noise", 10_000_000_000, (1,))
        assert delta > stated
    verdict = verify_dp(tallies({}), PROMISE, noise=[changed(ENOUGH, threshold=12)])
    assert "part 1 of the noise has a delta of 1.221e-05 at its epsilon, and 1e-05 is stated" in verdict.in_words()


def test_a_delta_that_is_stated_a_little_too_small_breaks_it() -> None:
    delta = delta_of(ENOUGH, epsilon=1.0)
    assert judged(tallies({}), changed(ENOUGH, delta=delta)) == []
    assert [kind for kind, *_ in judged(tallies({}), changed(ENOUGH, delta=delta * (1 - 1e-6)))] == ["weak_noise"]


def test_parts_are_judged_each_and_add_up() -> None:
    assert judged(tallies({}), HALF, HALF) == []
    assert [kind for kind, *_ in judged(tallies({}), HALF, HALF, HALF)] == ["parts_delta", "parts_epsilon"]
    ((kind, _, _, rows),) = judged(tallies({}), HALF, changed(HALF, threshold=20))
    assert (kind, rows) == ("weak_noise", (2,))


def test_ten_tenths_are_within_the_promise() -> None:
    tenth = changed(ENOUGH, scale=10.0, threshold=200, epsilon=0.1, delta=1e-6)
    assert judged(tallies({}), *[tenth] * 10) == []
    third = changed(ENOUGH, scale=3.0, threshold=60, epsilon=1 / 3, delta=1e-5 / 3)
    assert judged(tallies({}), *[third] * 3) == []
    assert judged(tallies({}), *[tenth] * 10, changed(tenth, epsilon=1e-6, scale=1e6, threshold=10**8)) != []


def test_what_states_more_than_it_spends_is_believed_only_for_what_it_spends() -> None:
    # The part would be fine for a promise of epsilon 2, and the noise fits what it states.
    part = changed(ENOUGH, scale=0.5, epsilon=2.0)
    assert [kind for kind, *_ in judged(tallies({}), part)] == ["parts_epsilon"]


def test_without_noise_nothing_is_kept() -> None:
    assert judged(tallies({"red kettle": 40})) == [("no_noise", 0, 1, ())]
    clicks = tallies({"red kettle": 40}, [("red kettle", "https://shop.example", 40)])
    assert judged(clicks, ENOUGH) == [("no_noise", 1, 0, ())]


def test_noise_on_clicks_alone_is_none_on_queries() -> None:
    only_clicks = changed(ENOUGH, what="clicks")
    assert judged(tallies({"red kettle": 40}), only_clicks) == [("no_noise", 0, 1, ())]
    assert judged(log_of({"1": ["red kettle"]}), only_clicks) == [("no_noise", 0, 1, ())]


def test_what_clicks_spend_is_added_to_what_queries_spend() -> None:
    clicks = tallies({"red kettle": 40}, [("red kettle", "https://shop.example", 40)])
    assert [kind for kind, *_ in judged(clicks, ENOUGH, changed(ENOUGH, what="clicks"))] == [
        "parts_delta",
        "parts_epsilon",
    ]
    assert judged(clicks, HALF, HALF_CLICKS) == []


def test_noise_that_cannot_be_is_not_worked_out() -> None:
    for wrong in (
        {"scale": 0.0},
        {"max_items": 10**12},
        {"top": 3},
        {"least": 9},
        {"mechanism": "zealous", "least": 0},
    ):
        assert judged(tallies({}), changed(ENOUGH, **wrong)) == [("odd_noise", 0, 0, (1,))]
    nowhere = judged(tallies({}), changed(ENOUGH, epsilon=float("nan")))
    assert [kind for kind, *_ in nowhere] == ["odd_noise", "parts_epsilon"]


def test_a_count_below_every_threshold_cannot_have_left() -> None:
    assert judged(tallies({"lantern": 40, "red kettle": 12}), ENOUGH) == [("small_count", 12, 13, (2,))]
    lower = changed(HALF, scale=4.0, threshold=60, epsilon=0.25)
    assert judged(tallies({"lantern": 26}), lower, HALF) == []
    assert judged(tallies({"lantern": 25}), lower, HALF) == [("small_count", 25, 26, (1,))]


def test_a_query_that_is_not_in_its_normal_form_may_mark_a_person() -> None:
    counts = {"red kettle": 40, "Red kettle": 40, "red  lantern": 40, "cafe\u0301": 40, "été": 40}
    assert judged(tallies(counts), ENOUGH) == [("untidy_query", 1, 0, (row,)) for row in (2, 3, 4)]
    none = tallies({"red kettle": 40, "": 40, "a\0b": 40})
    assert judged(none, ENOUGH) == [("untidy_query", 1, 0, (row,)) for row in (2, 3)]
    assert judged(log_of({"1": ["red kettle", "Lantern", "Lantern", ""]}), ENOUGH) == [
        ("untidy_query", 1, 0, (row,)) for row in (2, 4)
    ]


def test_made_up_rows_have_no_columns_that_counts_have_not() -> None:
    frame = pl.DataFrame({"user": ["1"], "query": ["lantern"], "url": ["https://a.example"], "rank": [3]})
    with_rank = QueryLog(frame=frame)
    assert judged(with_rank, ENOUGH) == [("more_columns", 2, 0, ())]
    assert judged(with_rank, HALF, HALF_CLICKS) == [("more_columns", 1, 0, ())]
    assert judged(with_rank.with_frame(frame.drop("rank")), HALF, HALF_CLICKS) == []


@pytest.mark.parametrize("ids", [["1", "2", "4"], ["0", "1", "2"], ["1", "2", "persona3"], ["1", "2", "03"]])
def test_made_up_users_are_numbers_from_1_on(ids: list[str]) -> None:
    assert judged(log_of({user: ["lantern", "kestrel"] for user in ids}), ENOUGH) == [("odd_id", 1, 0, ())]
    assert judged(log_of({user: ["lantern"] for user in ("2", "1", "3")}), ENOUGH) == []


def test_clicks_belong_to_released_queries_and_have_thresholds_of_their_own() -> None:
    urls = [("lantern", "https://shop.example/a", 30), ("kestrel", "https://shop.example/b", 30)]
    assert judged(tallies({"lantern": 30}, urls), HALF, HALF_CLICKS) == [("stray_click", 0, 1, (2,))]
    higher = changed(HALF_CLICKS, threshold=31)
    assert judged(tallies({"lantern": 30}, urls[:1]), HALF, higher) == [("small_click", 30, 31, (1,))]


def test_with_the_original_every_query_was_asked_by_somebody() -> None:
    assert judged(tallies({"red kettle": 20, "lantern": 20}), ENOUGH, original=ASKED) == []
    assert judged(tallies({"red kettle": 20, "kestrel": 20}), ENOUGH, original=ASKED) == [("unasked_query", 0, 1, (2,))]


@pytest.mark.parametrize(
    ("noise", "largest"),
    [
        # The chance of 27 and more is 1.4e-12, that of 28 and more 5e-13; 6 people asked.
        (ENOUGH, 6 + 27),
        (changed(ENOUGH, mechanism="zealous", least=4, threshold=16), 6 + 27),
        (changed(ENOUGH, mechanism="gaussian", scale=3.7405, threshold=18), 6 + 26),
        (changed(ENOUGH, mechanism="truncated-geometric", threshold=13, top=12), 6 + 12),
    ],
    ids=lambda value: getattr(value, "mechanism", None),
)
def test_with_the_original_no_count_is_larger_than_noise_can_make_it(noise: Noise, largest: int) -> None:
    assert judged(tallies({"red kettle": largest}), noise, original=ASKED) == []
    assert judged(tallies({"red kettle": largest + 1}), noise, original=ASKED) == [
        ("large_count", largest + 1, largest, (1,))
    ]


def test_in_two_rounds_either_noise_may_have_made_a_count_large() -> None:
    wide = changed(HALF, scale=4.0, threshold=60, epsilon=0.25)
    assert judged(tallies({"red kettle": 6 + 100}), wide, HALF, original=ASKED) == []
    assert [kind for kind, *_ in judged(tallies({"red kettle": 6 + 120}), wide, HALF, original=ASKED)] == [
        "large_count"
    ]


def test_with_the_original_no_click_is_larger_than_noise_can_make_it() -> None:
    original = QueryLog.from_frame({"user": ["1", "2"], "query": ["lantern"] * 2, "url": ["https://a.example"] * 2})
    for count, kinds in ((50, []), (60, ["large_click"])):
        released = tallies({"lantern": 30}, [("lantern", "https://a.example", count)])
        assert [kind for kind, *_ in judged(released, HALF, HALF_CLICKS, original=original)] == kinds


def test_a_query_whose_lower_case_only_one_table_of_letters_has_was_asked() -> None:
    # A letter of 2024: whether Python knows its lower case depends on its version, and so it does for Polars.
    asked = log_of({f"persona{i}": ["\u1c89 kestrel"] for i in range(3)})
    for form in ("\u1c89 kestrel", "\u1c8a kestrel"):
        kinds = [kind for kind, *_ in judged(tallies({form: 20}), ENOUGH, original=asked)]
        assert "unasked_query" not in kinds
        assert kinds in ([], ["untidy_query"])
    assert judged(tallies({"\u1c8a kestrel": 20}), ENOUGH, original=asked) == []


def test_with_zealous_noise_every_query_was_asked_by_as_many_as_get_noise() -> None:
    zealous = changed(ENOUGH, mechanism="zealous", least=4, threshold=16)
    assert judged(tallies({"red kettle": 20, "lantern": 20}), zealous, original=ASKED) == [
        ("unasked_query", 3, 4, (2,))
    ]


def test_with_the_original_every_click_was_made() -> None:
    rows = {"user": ["persona1", "persona2"], "query": ["Lantern", "kestrel"], "url": ["https://a.example", None]}
    released = tallies(
        {"lantern": 30, "kestrel": 30}, [("lantern", "https://a.example", 30), ("kestrel", "https://a.example", 30)]
    )
    original = QueryLog.from_frame(rows)
    assert judged(released, HALF, HALF_CLICKS, original=original) == [("unmade_click", 0, 1, (2,))]
    without = QueryLog.from_frame({name: rows[name] for name in ("user", "query")})
    assert [kind for kind, *_ in judged(released, HALF, HALF_CLICKS, original=without)] == ["unmade_click"] * 2


def test_items_of_transactions_are_queries() -> None:
    frame = pl.DataFrame({"user": ["1", "2"], "query": ["10 12", "12"]})
    original = QueryLog(frame=frame, layout=Layout(format=Format.TRANSACTIONS))
    assert judged(tallies({"10": 20, "12": 20}), ENOUGH, original=original) == []
    assert judged(tallies({"10 12": 40}), ENOUGH, original=original) == [("unasked_query", 0, 1, (1,))]


def test_made_up_sessions_are_judged_by_their_noise_and_texts() -> None:
    log = log_of({"1": ["red kettle", "lantern"], "2": ["kestrel", "kestrel"]})
    verdict = verify_dp(log, PROMISE, noise=[ENOUGH])
    assert verdict.holds
    assert len(verdict.notes) == 2
    assert verdict.in_words() == (
        f"{PROMISE.title()} holds as far as it can be checked: the noise that the manifest states keeps epsilon and "
        "delta. The rows are made up; their counts are not in the release."
    )
    assert verify(release_of(log, ENOUGH)).in_words() == verdict.in_words()
    assert judged(log, ENOUGH, original=ASKED) == [("unasked_query", 0, 1, (3,))]
    assert judged(log, changed(ENOUGH, threshold=5)) != []
    clicked = QueryLog.from_frame({"user": ["1", "1"], "query": ["lantern"] * 2, "url": ["https://a.example", None]})
    assert judged(clicked, HALF, HALF_CLICKS, original=ASKED) == [("unmade_click", 0, 1, (1,))]


@pytest.mark.parametrize(
    "told",
    [
        {"counts": Counts(n_rows_before=7, n_rows_after=1, n_users_before=0, n_users_after=0)},
        {"counts": Counts(n_rows_before=0, n_rows_after=1, n_users_before=7, n_users_after=0)},
        {"removed": {"bot_rows": 1}},
        {"measures": {"share": 0.5}},
        {"columns": ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP, dropped=("url",))},
        {"columns": ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP, n_others_dropped=1)},
    ],
    ids=lambda told: next(iter(told)),
)
def test_a_manifest_that_tells_of_the_log_itself_breaks_the_promise(told: dict[str, Any]) -> None:
    assert verify(release_of(tallies({"lantern": 40}), ENOUGH)).holds
    verdict = verify(release_of(tallies({"lantern": 40}), ENOUGH, **told))
    assert found(verdict) == [("exact_count", 1, 0, ())]


def test_a_release_folder_is_judged_as_the_release_it_holds(tmp_path: Path) -> None:
    data = tallies({"lantern": 40, "red kettle": 2}, [("lantern", "https://a.example", 1)])
    release = release_of(data, HALF, HALF_CLICKS)
    folder = release.save(tmp_path / "release")
    assert verify(folder) == verify(release)
    assert [kind for kind, *_ in found(verify(folder))] == ["small_click", "small_count"]
    assert verify(folder, original=ASKED).n_violations == 3


def test_what_was_made_with_a_seed_is_noted(tmp_path: Path) -> None:
    seeded = release_of(tallies({"lantern": 40}), ENOUGH, warnings=(SEEDED_NOISE, WARNED))
    for release in (seeded, seeded.save(tmp_path / "release")):
        verdict = verify(release)
        assert verdict.holds
        assert verdict.notes[1:] == ("made with a seed: whoever knows it can take the noise away",)


def test_one_is_not_said_as_many_are() -> None:
    told = release_of(tallies({"lantern": 40}), ENOUGH, measures={"share": 0.5})
    assert "without noise, in 1 place." in verify(told).in_words()
    told = release_of(tallies({"lantern": 40}), ENOUGH, measures={"share": 0.5, "rows": 7})
    assert "without noise, in 2 places." in verify(told).in_words()
    unasked = verify_dp(tallies({"kestrel": 40}), PROMISE, noise=[ENOUGH], original=ASKED)
    assert "asked by 0 users of the original, 1 is needed (row 1)" in unasked.in_words()


def test_noise_that_was_edited_in_the_manifest_is_found(tmp_path: Path) -> None:
    folder = release_of(tallies({"lantern": 40}), ENOUGH).save(tmp_path / "release")
    path = folder / "manifest.json"
    said = json.loads(path.read_text())
    said["promise"]["epsilon"] = 0.5
    path.write_text(json.dumps(said))
    assert [kind for kind, *_ in found(verify(folder))] == ["other_promise", "parts_epsilon"]
    said["parameters"]["epsilon"] = 0.5
    path.write_text(json.dumps(said))
    assert [kind for kind, *_ in found(verify(folder))] == ["parts_epsilon"]
    said["noise"][0]["epsilon"] = 0.5
    path.write_text(json.dumps(said))
    assert [kind for kind, *_ in found(verify(folder))] == ["weak_noise"]


def test_a_query_that_stands_twice_is_no_release(tmp_path: Path) -> None:
    frame = pl.DataFrame({"query": ["lantern", "lantern"], "count": [40, 41]})
    with pytest.raises(BadInput, match="twice"):
        Tallies(frame=frame)
    folder = release_of(tallies({"lantern": 40}), ENOUGH).save(tmp_path / "release")
    data = folder / "queries.parquet"
    frame.write_parquet(data)
    said = json.loads((folder / "manifest.json").read_text())
    said["data"]["sha256"] = hashlib.sha256(data.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(BadFile, match="twice"):
        verify(folder)


def test_texts_are_shown_only_when_asked_for() -> None:
    data = tallies({"lantern": 40, "Kestrel": 2}, [("mulberry", "https://a.example", 1)])
    verdict = verify_dp(data, PROMISE, noise=[HALF, HALF_CLICKS], original=ASKED)
    plain = repr(verdict) + verdict.in_words() + json.dumps(verdict.to_dict()) + verdict._repr_html_()
    assert not any(text in plain for text in ("Kestrel", "mulberry", "a.example"))
    shown = verdict.show(data)
    assert any(line.startswith("Kestrel: a query left with a count of 2, and 26") for line in shown)
    assert any(line.startswith("mulberry + https://a.example: ") for line in shown)
    weak = verify_dp(data, PROMISE, noise=[changed(HALF, scale=1.0), HALF_CLICKS])
    assert any(line.startswith("part 1 of the noise") for line in weak.show(data))
    with pytest.raises(BadInput, match="not the log that was judged"):
        verdict.show(tallies({}))


def test_judging_needs_the_noise_and_counts() -> None:
    data = tallies({"lantern": 40})
    assert judge(data, PROMISE, noise=[ENOUGH]).holds
    assert not judge(data, PROMISE).holds
    with pytest.raises(BadInput, match="this promise is about a log, and the data is queries with counts"):
        judge(data, KmAnonymity(k=2, m=1))
    with pytest.raises(BadInput, match="about queries with counts, and the data is transactions"):
        judge(Transactions.from_frame({"items": [["tea"]]}), PROMISE)
    with pytest.raises(BadParameter, match="original must be a log"):
        verify(release_of(data, ENOUGH), original=Transactions.from_frame({"items": [["tea"]]}))


def test_at_most_ten_witnesses_are_kept_and_all_are_counted() -> None:
    verdict = verify_dp(tallies({f"lantern {i}": 1 for i in range(25)}), PROMISE, noise=[ENOUGH])
    assert (verdict.n_violations, len(verdict.witnesses)) == (25, 10)
