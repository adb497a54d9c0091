"""k-delta-anonymity judged by hand-made near misses, and against the original."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.kdelta_by_force import verify_kdelta_by_force

from queryveil.checks import Verdict, judge, verify, verify_kdelta
from queryveil.data import Format, Layout, QueryLog, Transactions
from queryveil.errors import BadInput, BadParameter, BadRelease, NothingPromised
from queryveil.guarantees import Guarantee, KdeltaAnonymity, NoPromise
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail, read_release

Row = tuple[str, str, str | None]
"""User, query, and the URL or none."""


def log_of(rows: Sequence[Row]) -> QueryLog:
    return QueryLog.from_frame({name: [row[i] for row in rows] for i, name in enumerate(("user", "query", "url"))})


def judged(
    rows: Sequence[Row],
    clusters: str,
    *,
    k: int = 2,
    delta: float = 0.5,
    original: Sequence[Row] | None = None,
    additions: bool = True,
) -> Verdict:
    promise, before = KdeltaAnonymity(k=k, delta=delta), None if original is None else log_of(original)
    fast, slow = (
        check(log_of(rows), promise, clusters=clusters, original=before, additions=additions)
        for check in (verify_kdelta, verify_kdelta_by_force)
    )
    assert fast == slow
    return fast


def found(verdict: Verdict) -> list[tuple[str, int, int, int, tuple[int, ...]]]:
    assert verdict.n_violations >= len(verdict.witnesses)
    return [(w.kind, w.size, w.support, w.needed, w.rows) for w in verdict.witnesses]


def counted(user: str, n_tea: int, n_rye: int) -> list[Row]:
    """Rows of one user: so many in one cell, so many in another."""
    tea, rye = (user, "tea", "t.example"), (user, "rye", "r.example")
    return [*[tea] * n_tea, *[rye] * n_rye]


def test_k_users_with_equal_shares_keep_the_promise_and_one_less_breaks_it() -> None:
    rows = [row for i in range(3) for row in counted(str(i), 1, 2)]
    assert judged(rows, "1 2", k=3).holds
    assert found(judged(rows, "1 2", k=4)) == [("shares", 2, 3, 4, (1, 4, 7))]


def test_equal_shares_with_different_totals_are_equal() -> None:
    assert judged(counted("a", 1, 2) + counted("b", 3, 6) + counted("c", 10, 20), "1 2", k=3).holds


def test_a_third_is_not_33_of_100() -> None:
    verdict = judged(counted("a", 1, 2) + counted("b", 33, 67), "1 2")
    assert found(verdict) == [("shares", 2, 1, 2, (1,)), ("shares", 2, 1, 2, (4,))]
    assert judged(counted("a", 1, 2) + counted("b", 33, 66), "1 2").holds


def test_the_same_cells_in_other_proportions_are_other_shares() -> None:
    assert judged(counted("a", 1, 2) + counted("b", 2, 1), "1 2").n_violations == 2


def test_queries_of_one_cluster_with_the_same_url_are_the_same_cell() -> None:
    rows: list[Row] = [("a", "tea", "t.example"), ("b", "teas", "t.example")]
    assert judged(rows, "1 1").holds
    assert judged(rows, "1 2").n_violations == 2


def test_another_url_of_the_same_query_is_another_cell() -> None:
    assert judged([("a", "tea", "t.example"), ("b", "tea", "s.example")], "1").n_violations == 2
    assert judged([("a", "tea", "t.example"), ("b", "tea", None)], "1").n_violations == 2


def test_no_url_and_an_empty_one_are_both_no_click() -> None:
    assert judged([("a", "tea", ""), ("b", "tea", None)], "1").holds


def test_a_log_without_urls_has_no_clicks() -> None:
    log = QueryLog.from_frame({"user": ["a", "b"], "query": ["tea", "tea"]})
    for check in (verify_kdelta, verify_kdelta_by_force):
        assert check(log, KdeltaAnonymity(k=2, delta=0), clusters="7").holds
    two = QueryLog.from_frame({"user": ["a", "b"] * 2, "query": ["tea", "tea", "rye", "rye"]})
    for check in (verify_kdelta, verify_kdelta_by_force):
        assert check(two, KdeltaAnonymity(k=2, delta=0.9), clusters="7 8").holds
        assert not check(two, KdeltaAnonymity(k=2, delta=0.9), clusters="7 7").holds


def clicked(**urls: str) -> list[Row]:
    """Two users with the same rows: each query with each of its URLs, one letter for each."""
    return [
        (user, query, f"{url}.example" if url != "-" else None)
        for user in "ab"
        for query, all_urls in urls.items()
        for url in all_urls
    ]


def test_a_pair_at_exactly_delta_is_near_and_one_beyond_is_too_far() -> None:
    half, two_thirds = clicked(q="uv", r="v"), clicked(q="uv", r="vw")
    assert judged(half, "1 1", delta=0.5).holds
    assert found(judged(half, "1 1", delta=0.4)) == [("wide_cluster", 2, 1, 2, (1, 3))]
    assert found(judged(two_thirds, "1 1", delta=0.5)) == [("wide_cluster", 2, 1, 3, (1, 3))]
    assert judged(two_thirds, "1 1", delta=2 / 3).holds
    assert not judged(two_thirds, "1 1", delta=0.6666).holds


def test_clusters_of_one_query_have_no_width() -> None:
    assert judged(clicked(q="uv", r="v", s="-"), "3 1 2", delta=0).holds


def test_queries_with_the_same_urls_are_at_no_distance() -> None:
    assert judged(clicked(q="uvw", r="wuv", s="vwu"), "1 1 1", delta=0).holds


def test_the_urls_of_a_query_are_those_of_all_users() -> None:
    rows: list[Row] = [("a", "tea", "t.example"), ("b", "teas", "t.example"), ("a", "tea", "s.example")]
    rows += [("b", "tea", "s.example"), ("c", "tea", "u.example"), ("d", "tea", "u.example")]
    assert found(judged(rows, "1 1")) == [("wide_cluster", 2, 1, 3, (1, 2))]


def test_two_queries_without_clicks_are_never_alike() -> None:
    assert found(judged(clicked(q="-", r="-"), "1 1", delta=0.99)) == [("wide_cluster", 2, 0, 0, (1, 2))]
    assert found(judged(clicked(q="-", r="u"), "1 1", delta=0.99)) == [("wide_cluster", 2, 0, 1, (1, 2))]
    assert judged(clicked(q="-", r="-", s="u"), "1 1 1", delta=1).holds


def test_a_chain_of_near_queries_is_as_wide_as_its_ends() -> None:
    chain = clicked(q="uv", r="vw", s="wx")
    assert found(judged(chain, "1 1 1", delta=0.7)) == [("wide_cluster", 3, 0, 4, (1, 5))]


def test_queries_that_all_share_a_url_are_still_compared_beyond_it() -> None:
    # The common URL alone makes the small ones near; only the two large ones are too far apart.
    rows = clicked(p="g", q="gabc", r="gh", s="gdef")
    assert found(judged(rows, "1 1 1 1", delta=0.8)) == [("wide_cluster", 4, 1, 7, (2, 8))]
    assert judged(rows, "1 1 1 1", delta=0.86).holds


def test_a_manifest_that_puts_everything_into_one_cluster_is_caught() -> None:
    rows = [(f"{name}{i}", name, f"{name}.example") for name in ("tea", "rye", "oat") for i in range(2)]
    assert judged(rows, "1 2 3").holds
    assert found(judged(rows, "1 1 1")) == [("wide_cluster", 3, 0, 2, (1, 3))]


def test_a_url_that_was_moved_breaks_the_promise() -> None:
    rows = clicked(q="uv", r="v")
    rows[-1] = ("b", "r", "w.example")
    assert {w.kind for w in judged(rows, "1 1").witnesses} == {"shares", "wide_cluster"}


def test_an_empty_log_keeps_the_promise() -> None:
    assert judged([], "").in_words().endswith("k-delta-anonymity holds for 0 users.")
    assert judged([], "", original=[]).holds


@pytest.mark.parametrize("clusters", ["1", "1 1 1", "", "  "])
def test_a_number_too_few_or_too_many_is_a_clear_error(clusters: str) -> None:
    with pytest.raises(BadInput, match=r"query_clusters of the manifest needs .* which are 2, and has \d; make"):
        judged(clicked(q="u", r="u"), clusters)


@pytest.mark.parametrize("clusters", ["1 x", "1 -1", "1 0", "1 1.0", "1 ²", "1 ٣", "1,1 2"])
def test_what_is_no_positive_number_is_a_clear_error(clusters: str) -> None:
    with pytest.raises(BadInput, match="something else than numbers above 0"):
        judged(clicked(q="u", r="u"), clusters)


def test_cluster_numbers_may_be_any_size_and_have_leading_zeros() -> None:
    huge = "9" * 40
    assert judged(clicked(q="u", r="u"), f"{huge} 0{huge}").holds
    assert not judged(clicked(q="u", r="v"), f"{huge} 0{huge}").holds
    assert judged(clicked(q="u", r="v"), f"{huge} {huge}8").holds
    assert not judged(clicked(q="u", r="v"), f"{huge} {huge}").holds


def test_clusters_are_those_of_the_texts_in_the_order_of_code_points() -> None:
    # In UTF-16 the last two would change places; by any alphabet ä would stand before z.
    texts = ["Z", "a", "z", "ä", "\uffee", "\U0001f375"]
    rows: list[Row] = [(user, text, f"{text in 'Zä'}.example") for user in "ab" for text in reversed(texts)]
    assert judged(rows, "1 2 2 1 2 2", delta=0).holds
    assert not judged(rows, "1 2 1 2 2 2", delta=0).holds


def test_with_the_original_a_pair_it_lacks_is_invented() -> None:
    before = clicked(q="uv", r="v")
    assert judged(before, "1 1", original=before).holds
    verdict = judged(clicked(q="uv", r="vu"), "1 1", original=before)
    assert found(verdict) == [("invented_pair", 1, 2, 0, (4,))]
    assert found(judged(clicked(q="u", r="-"), "1 2", original=before)) == [("invented_pair", 1, 2, 0, (2,))]


def test_queries_are_compared_after_folding_and_urls_as_they_stand() -> None:
    before: list[Row] = [("x", "  Caf\u0065\u0301\t AU  Lait", "C.example"), ("y", "tea", "")]
    after: list[Row] = [("a", "caf\u00e9 au lait", "C.example"), ("b", "caf\u00e9 au lait", "C.example")]
    assert judged(after, "1", original=before).holds
    assert judged([(u, q, "c.example") for u, q, _ in after], "1", original=before).n_violations == 1
    assert judged([(u, "cafe au lait", url) for u, _, url in after], "1", original=before).n_violations == 1


def test_rows_may_be_added_unless_the_release_says_otherwise() -> None:
    before: list[Row] = [("x", "tea", "t.example"), ("y", "tea", "t.example")]
    after: list[Row] = [("a", "tea", "t.example"), ("b", "tea", "t.example"), ("b", "tea", "t.example")]
    assert judged(after, "1", original=before).holds
    assert found(judged(after, "1", original=before, additions=False)) == [("invented_pair", 1, 3, 2, (1,))]
    assert judged(after[:2], "1", original=before, additions=False).holds


def test_more_users_than_in_the_original_are_invented() -> None:
    before: list[Row] = [("x", "tea", "t.example")] * 3
    verdict = judged([("a", "tea", "t.example"), ("b", "tea", "t.example")], "1", original=before)
    assert found(verdict) == [("invented", 0, 2, 1, ())]


def test_a_verdict_holds_no_text_unless_it_is_asked_to_show_it() -> None:
    rows: list[Row] = [("persona1", "quartz", "amber.example"), ("persona2", "opal", "jade.example")]
    verdict = judged(rows, "1 1", original=rows[:1])
    said = [repr(verdict), str(verdict.to_dict()), verdict.in_words(), *(w.in_words() for w in verdict.witnesses)]
    assert not any(word in text for text in said for word in ("quartz", "amber", "opal", "jade", "persona"))
    wide = "two queries of a cluster of 2 share 0 of the 2 URLs clicked for them (rows 1, 2)"
    assert set(verdict.show(log_of(rows))) == {
        "the log as a whole has 2 users or rows in the release, the original 1",
        "opal: a query with its URL stands in 1 row of the release, in 0 before (row 2)",
        "quartz: shares over 1 pair of cluster and URL are those of 1 user, 2 are needed (row 1)",
        "opal: shares over 1 pair of cluster and URL are those of 1 user, 2 are needed (row 2)",
        f"quartz + opal: {wide}",
    }
    for other in (log_of([]), Transactions.from_frame({"items": [["x"], ["y"]]})):
        with pytest.raises(BadInput, match="not the log that was judged"):
            verdict.show(other)


def release_of(
    rows: list[Row],
    clusters: str,
    *,
    promise: Guarantee,
    layout: Layout | None = None,
    parameters: dict[str, str | int | float | bool | None] | None = None,
) -> Release:
    log = log_of(rows)
    n_rows, n_users = log.n_rows, log.n_users
    counts = Counts(n_rows_before=n_rows, n_rows_after=n_rows, n_users_before=n_users, n_users_after=n_users)
    manifest = Manifest(
        method="by hand",
        promise=promise,
        parameters=parameters or {},
        counts=counts,
        removed={},
        columns=ColumnReport(ids=Ids.KEEP, time=TimeDetail.DROP, kept=("url",)),
        query_clusters=clusters,
    )
    return Release(data=QueryLog(frame=log.frame, layout=layout or Layout()), manifest=manifest)


HALF = KdeltaAnonymity(k=2, delta=0.5)


@pytest.mark.parametrize("log_format", [Format.AOL, Format.CSV, Format.TSV, Format.JSONL, Format.PARQUET])
def test_a_release_is_written_read_and_judged(tmp_path: Path, log_format: Format) -> None:
    rows = [*clicked(q="uv", r="v", s="-"), *clicked(t="-")]
    folder = release_of(rows, "1 1 2 3", promise=HALF, layout=Layout(format=log_format)).save(tmp_path / "out")
    assert read_release(folder).promise == HALF
    assert verify(folder).holds
    assert verify(folder, original=log_of(rows)).holds
    assert not verify(folder, original=log_of(rows[1:-2])).holds
    lying = release_of(rows, "1 1 1 1", promise=HALF, layout=Layout(format=log_format)).save(tmp_path / "lying")
    assert verify(lying).n_violations == 1


def test_a_folder_that_numbers_too_few_queries_is_a_bad_release(tmp_path: Path) -> None:
    release = release_of(clicked(q="uv", r="v"), "1", promise=HALF)
    with pytest.raises(BadRelease, match=r"out: query_clusters of the manifest needs .* which are 2, and has 1; make"):
        verify(release.save(tmp_path / "out"))
    with pytest.raises(BadInput, match="query_clusters"):
        verify(release)
    with pytest.raises(BadInput, match="query_clusters"):
        judge(release.log, HALF)
    assert judge(release.log, HALF, clusters="1 1").holds


def test_the_manifest_says_whether_rows_may_be_added() -> None:
    before: list[Row] = [("x", "tea", "t.example"), ("y", "tea", "t.example")]
    rows = [*before, before[0]]
    for said, holds in ((True, True), (None, True), (False, False)):
        release = release_of(rows, "1", promise=HALF, parameters={"additions": said})
        assert verify(release, original=log_of(before)).holds is holds
    assert verify(release_of(rows, "1", promise=HALF), original=log_of(before)).holds


def test_where_nothing_is_promised_there_is_nothing_to_judge(tmp_path: Path) -> None:
    release = release_of(clicked(q="u"), "", promise=NoPromise(reason="counts were rounded as in the paper"))
    for one in (release, release.save(tmp_path / "out")):
        with pytest.raises(NothingPromised, match="promises nothing: counts were rounded as in the paper"):
            verify(one)
    with pytest.raises(NothingPromised):
        judge(release.log, release.promise)


def test_the_promise_is_about_a_log() -> None:
    baskets = Transactions.from_frame({"items": [["x"]]})
    with pytest.raises(BadInput, match="this promise is about a log, and the data is transactions"):
        judge(baskets, HALF)
    with pytest.raises(BadParameter, match="original must be a log"):
        verify(release_of([], "", promise=HALF), original=baskets)


def test_a_url_of_blanks_is_no_click_in_the_original_either() -> None:
    before = QueryLog.from_frame({"user": ["a", "b"], "query": ["tea", "tea"], "url": [" ", "\t"]})
    after = QueryLog.from_frame({"user": ["1", "2"], "query": ["tea", "tea"], "url": [None, ""]})
    for check in (verify_kdelta, verify_kdelta_by_force):
        assert check(after, KdeltaAnonymity(k=2, delta=0.0), clusters="1", original=before).holds


def test_users_who_were_promised_the_same_texts_must_have_them() -> None:
    promise = KdeltaAnonymity(k=2, delta=0.0, same_texts=True)
    same = {"user": ["1", "2", "2"], "query": ["tea", "tea", "tea"], "url": ["t", "t", "t"]}
    other = same | {"query": ["tea", "teas", "teas"]}
    for check in (verify_kdelta, verify_kdelta_by_force):
        assert check(QueryLog.from_frame(same), promise, clusters="").holds
        # A list that calls them the same changes nothing.
        verdict = check(QueryLog.from_frame(other), promise, clusters="1 1")
        assert (verdict.holds, verdict.n_violations) == (False, 2)
