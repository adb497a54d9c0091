"""Windows of ids and the judge of swap: when askers are counted, in which window, and which texts are one query."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from queryveil.checks import Arrivals, verify, verify_swap
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import SwapAnonymity
from queryveil.methods import Swap
from queryveil.release import ColumnPolicy, Ids, TimeDetail

KEY = b"sixteen secret bytes or more"
START = datetime(2026, 3, 1)
DAY = timedelta(days=1)


def asked(rows: list[tuple[str, str, int]]) -> QueryLog:
    """Make a log of users, queries and days."""
    users, queries, days = zip(*rows, strict=True)
    return QueryLog.from_frame({"user": users, "query": queries, "time": [START + day * DAY for day in days]})


def test_where_no_askers_are_counted_a_person_may_ask_again_in_another_window() -> None:
    log = asked([(f"u{i}", f"soccer {i}", day) for day in range(3) for i in range(12)])
    release = Swap(k=3, l=2, repeats="all", columns=ColumnPolicy(ids=Ids.KEYED, key=KEY), seed=1).anonymize(log)
    verdict = verify(release, original=log, key=KEY)
    assert release.log.n_rows > 12
    assert verdict.holds, verdict.in_words()


@pytest.mark.parametrize(("day", "holds"), [(0, True), (1, False)])
def test_askers_of_one_window_pay_for_no_row_of_another(day: int, holds: bool) -> None:
    came = [*((f"u{i}", "tea", 0) for i in range(5)), ("late", "tea", 1), ("other", "rye", 0), ("other", "rye", 1)]
    frame = asked(came).frame.with_columns(category=pl.lit(0, pl.Int8))
    window = (START - datetime(1970, 1, 1)).days + day
    arrivals = Arrivals(frame=frame, in_order=False, row_windows=pl.Series([window]))
    promise = SwapAnonymity(k=2, l=2, once=True, min_query_users=3, noise_bound=1, window="1d")
    released = QueryLog.from_frame({"user": ["other"], "query": ["tea"]})
    verdict = verify_swap(released, promise, original=arrivals)
    assert verdict.holds is holds
    assert [witness.kind for witness in verdict.witnesses] == ([] if holds else ["repeated_query"])


def test_rows_of_a_release_are_judged_in_the_window_of_their_id() -> None:
    log = asked([(f"u{i}", f"soccer {i % 3}", day) for day in range(2) for i in range(40 * day, 40 * day + 40)])
    columns = ColumnPolicy(ids=Ids.KEYED, key=KEY)
    release = Swap(k=3, l=2, min_query_users=5, columns=columns, seed=1).anonymize(log)
    assert release.log.n_rows > 20
    assert verify(release, original=log, key=KEY).holds
    # Of a text that was asked on the first day only, no row is of the second.
    first = asked(
        [(f"u{i}", f"soccer {i % 3}", 0) for i in range(40)] + [(f"u{i}", "tennis", 1) for i in range(40, 80)]
    )
    assert not verify(release, original=first, key=KEY).holds


def test_times_are_shared_in_windows_of_whole_days() -> None:
    with pytest.raises(
        BadParameter, match="window must be whole days where times are shared, such as 1d or 7d, got 12h"
    ):
        Swap(window="12h", columns=ColumnPolicy(time=TimeDetail.SHARED))


@pytest.mark.parametrize("seed", range(4))
def test_queries_are_cut_into_terms_as_the_method_cuts_them(seed: int) -> None:
    # A sigma is written in another way at the end of a word, which a full stop does not end.
    log = asked([(f"u{i}", "ΚΟΣΜΟΣ.GR" if i % 2 else "ΚΟΣΜΟΣ GR", 0) for i in range(20)])
    release = Swap(k=3, l=2, columns=ColumnPolicy(ids=Ids.KEEP), seed=seed).anonymize(log)
    assert release.log.n_rows > 0
    verdict = verify(release, original=log)
    assert verdict.holds, verdict.in_words()
