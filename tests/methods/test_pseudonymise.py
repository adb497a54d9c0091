"""Pseudonymise: nothing but the ids changes, what leaves by default, and what is said."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules

from queryveil import Pseudonymise, Release, verify
from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadInput, BadParameter, NothingPromised
from queryveil.formats import read_log
from queryveil.release import ColumnPolicy, Ids, TimeDetail, read_release
from queryveil.synthesis import synthesize
from queryveil.testing import log_of
from queryveil.testing.strategies import clicked_logs, logs

METHODS = [
    Pseudonymise(),
    Pseudonymise(columns=ColumnPolicy()),
    Pseudonymise(columns=ColumnPolicy(ids=Ids.KEYED, key=b"0123456789abcdef", time=TimeDetail.HOUR)),
]


def typed() -> QueryLog:
    rows = {
        "user": ["persona1", "persona1", "persona2", "persona2"],
        "query": ["Kestrel,  LANTERN", "", "kestrel lantern", "mulberry"],
        "time": [datetime(2006, 3, 1, 7, 30, 15) + timedelta(hours=i) for i in range(4)],
        "rank": [1, None, 2, None],
        "url": ["https://birds.example", None, "https://lamps.example", None],
        "device": ["a", "a", "b", "b"],
    }
    return QueryLog.from_frame(rows)


def bundles(log: QueryLog, *, without: str = "user") -> Counter[tuple[Any, ...]]:
    """Return all that each user did, whatever the user is called."""
    columns = [name for name in log.columns if name != without]
    by_user = log.frame.partition_by("user")
    return Counter(tuple(sorted(map(repr, part.select(columns).iter_rows()))) for part in by_user)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=["as AOL did", "strict", "keyed"])
@examples(8)
@given(log=st.one_of(logs(), logs(with_time=False), clicked_logs()))
def test_pseudonymise_keeps_the_house_rules(method: Pseudonymise, log: QueryLog) -> None:
    keep_the_house_rules(method, log)


@pytest.mark.slow
def test_pseudonymise_keeps_the_house_rules_on_a_log_of_sessions() -> None:
    keep_the_house_rules(Pseudonymise(), synthesize(users=60, seed=2).log)


@examples(50)
@given(log=st.one_of(logs(), clicked_logs()))
def test_every_user_has_the_very_same_rows_under_another_id(log: QueryLog) -> None:
    released = Pseudonymise().anonymize(log).log
    assert bundles(released) == bundles(log)
    assert not set(released.frame["user"]) & set(log.frame["user"])


def test_by_default_exact_times_ranks_and_urls_leave_and_devices_do_not() -> None:
    release = Pseudonymise().anonymize(typed())
    assert release.log.columns == ["user", "query", "time", "rank", "url"]
    assert bundles(release.log) == bundles(typed().with_frame(typed().frame.drop("device")))
    columns = release.manifest.columns
    assert (columns.time, columns.kept, columns.dropped) == (TimeDetail.KEEP, ("rank", "url"), ("device",))


def test_a_log_without_clicks_needs_no_other_settings() -> None:
    release = Pseudonymise().anonymize(log_of({"persona1": ["kestrel"]}))
    assert release.log.columns == ["user", "query"]
    assert release.manifest.columns.kept == ()


def test_the_policy_says_what_else_leaves() -> None:
    policy = ColumnPolicy(time=TimeDetail.DAY, keep=("device",))
    release = Pseudonymise(columns=policy).anonymize(typed())
    assert release.log.columns == ["user", "query", "time", "device"]
    assert set(release.log.frame["time"]) == {datetime(2006, 3, 1)}
    with pytest.raises(BadParameter, match="keep must be columns of the log"):
        Pseudonymise(columns=replace(policy, keep=("rank",))).anonymize(log_of({"persona1": ["kestrel"]}))


def test_rows_of_a_user_and_users_are_shuffled() -> None:
    log = log_of({f"persona{i:02}": [f"{i} {j}" for j in range(20)] for i in range(20)})
    asked = Pseudonymise(seed=1).anonymize(log).log.frame["query"].to_list()
    assert asked != log.frame["query"].to_list()
    assert sorted(asked) == sorted(log.frame["query"])
    assert [text.split()[0] for text in asked[::20]] != [str(i) for i in range(20)]


def test_the_manifest_says_plainly_that_nothing_is_promised(tmp_path: Path) -> None:
    release = Pseudonymise().anonymize(typed())
    first, second = release.manifest.warnings
    assert first.startswith("promises nothing: all queries of a person stay together, as they were typed;")
    assert second.startswith("times are exact")
    counts = release.manifest.counts
    assert (counts.n_rows_before, counts.n_rows_after, counts.n_users_after) == (4, 4, 2)
    assert release.manifest.removed == {"bad_rows_skipped": 0, "users_left_empty": 0}
    written: Release = read_release(release.save(tmp_path / "out"))
    with pytest.raises(NothingPromised, match="nothing to verify, this release promises nothing: all queries"):
        verify(written)


def test_planted_people_are_found_by_two_terms_of_theirs() -> None:
    made = synthesize(users=1000, seed=3)
    kept = replace(Pseudonymise().columns, ids=Ids.KEEP)
    released = Pseudonymise(columns=kept).anonymize(made.log).log
    terms = {
        user: set(" ".join(queries).split()) for user, queries in released.frame.group_by("user").agg("query").rows()
    }
    assert made.secrets
    for secret in made.secrets:
        assert [user for user, mine in terms.items() if set(secret.terms) <= mine] == [secret.user]


def test_transactions_are_refused_and_so_is_a_bad_seed() -> None:
    bags = QueryLog(frame=log_of({"1": ["1 2 3"]}).frame, layout=Layout(format=Format.TRANSACTIONS))
    with pytest.raises(BadInput, match="pseudonymise is for logs of queries; for transactions there are km"):
        Pseudonymise().anonymize(bags)
    with pytest.raises(BadParameter, match="seed must be 0 or more"):
        Pseudonymise(seed=-1)


@pytest.mark.slow
@pytest.mark.real_data
def test_a_real_log_keeps_every_row() -> None:
    path = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "excite-small.log"
    if not path.is_file():
        pytest.skip("no real logs beside the checkout")
    log = read_log(path)
    assert bundles(Pseudonymise().anonymize(log).log) == bundles(log)
