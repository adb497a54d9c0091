"""km: the paper's golden facts, near misses, and the house rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules
from tests.support.plain_km import paper_delete

from queryveil import Km, QueryLog, verify
from queryveil.errors import BadInput, BadParameter
from queryveil.guarantees import KmAnonymity
from queryveil.methods import Target
from queryveil.methods.km._deletion import Objective, choose, delete, label, restore
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.testing import log_of
from queryveil.testing.strategies import logs
from queryveil.text import tokenize
from queryveil.text.histories import collect
from queryveil.text.tokens import encode

KEEP_IDS = ColumnPolicy(ids="keep")  # type: ignore[arg-type]
BY_DAY = ColumnPolicy(time="day")  # type: ignore[arg-type]
EXAMPLE = {"1": ["a", "b", "c"], "2": ["a", "b", "d"], "3": ["b", "c", "d"], "4": ["a", "c", "e"]}
WORTH = {"a": 1.0, "b": 1.1, "c": 1.2, "d": 1.3, "e": 1.4}
VALUES = pl.DataFrame({"term": list(WORTH), "bid": list(WORTH.values())})


def kept(log: QueryLog, method: Km) -> dict[str, set[str]]:
    """Return the terms each user keeps, under the original ids."""
    found: dict[str, set[str]] = {user: set() for user in log.frame["user"]}
    for user, query in method.anonymize(log).data.frame.select("user", "query").iter_rows():
        found[user] |= set(query.split())
    return found


def worth(histories: dict[str, set[str]]) -> float:
    return round(sum(WORTH[term] for terms in histories.values() for term in terms), 6)


def test_the_papers_algorithm_deleting_by_value_gives_7_2() -> None:
    histories = [frozenset(terms) for terms in EXAMPLE.values()]
    outcome = paper_delete(histories, WORTH, k=2, m=2)
    assert outcome == [{"c"}, {"b", "d"}, {"b", "d"}, {"c"}]
    assert round(sum(WORTH[term] for history in outcome for term in history), 6) == 7.2


def test_our_greedy_deletion_by_value_gives_7_2_too_and_restore_adds_to_it() -> None:
    log = log_of(EXAMPLE)
    tokens = tokenize(log.frame["query"])
    owners, users = encode(log.frame["user"])
    histories = collect(tokens, owners, n_users=len(users))
    labelled = label(histories, k=2)
    value = np.array([WORTH[tokens.vocabulary[int(t)]] for t in labelled.label_term])
    alive = delete(labelled, value, k=2, m=2, rng=np.random.default_rng(0))
    assert round(float(value[labelled.index.terms[alive == 1]].sum()), 6) == 7.2
    back = restore(labelled, alive, value, k=2, m=2)
    assert round(float(value[labelled.index.terms[back == 1]].sum()), 6) == 9.2


@pytest.mark.parametrize("seed", range(10))
def test_with_restore_the_four_user_example_reaches_9_9(seed: int) -> None:
    outcome = kept(log_of(EXAMPLE), Km(k=2, m=2, target=Target.BID, values=VALUES, columns=KEEP_IDS, seed=seed))
    assert outcome == {"1": {"a", "b", "c"}, "2": {"a", "b"}, "3": {"b", "c"}, "4": {"a", "c"}}
    assert worth(outcome) == 9.9


def test_fis_deletes_smith_as_in_the_papers_table_4() -> None:
    # Supports in frequent combinations (k=2): eugene 4, chicago 2, smith 2 of size 3; chicago 4, smith 4 of size 2;
    # chicago 6, smith 4 of size 1.
    log = log_of(
        {
            "u1": ["eugene chicago lake"],
            "u2": ["eugene chicago lake"],
            "u3": ["eugene smith barn"],
            "u4": ["eugene smith barn"],
            "u5": ["eugene chicago smith"],
            "u6": ["chicago"],
            "u7": ["chicago"],
            "u8": ["chicago"],
            "u9": ["smith"],
        }
    )
    outcome = kept(log, Km(k=2, m=3, target=Target.FIS, restore=False, columns=KEEP_IDS, bot_threshold=None))
    assert outcome["u5"] == {"eugene", "chicago"}


def test_arnold_and_lilburn_do_not_stay_together() -> None:
    # The AOL case on a smaller scale: each term has enough users, the pair only one.
    people = {f"g{i}": ["georgia"] for i in range(20)}
    people |= {f"a{i}": ["arnold georgia"] for i in range(10)} | {f"l{i}": ["lilburn", "georgia"] for i in range(5)}
    people["thelma"] = ["arnold", "lilburn georgia"]
    log = log_of(people)
    assert kept(log, Km(k=2, m=1, columns=KEEP_IDS))["thelma"] == {"arnold", "lilburn", "georgia"}
    assert kept(log, Km(k=2, m=2, columns=KEEP_IDS))["thelma"] == {"arnold", "georgia"}


def test_a_triple_that_only_one_user_has_is_broken_up_at_m_3_and_not_at_m_2() -> None:
    log = log_of({"1": ["a b c"], "2": ["a b"], "3": ["a c"], "4": ["b c"]})
    assert kept(log, Km(k=2, m=2, columns=KEEP_IDS))["1"] == {"a", "b", "c"}
    assert len(kept(log, Km(k=2, m=3, columns=KEEP_IDS))["1"]) == 2


def test_a_quadruple_that_only_one_user_has_is_broken_up_only_at_m_4() -> None:
    log = log_of({"1": ["a b c d"], "2": ["a b c"], "3": ["a b d"], "4": ["a c d"], "5": ["b c d"]})
    assert kept(log, Km(k=2, m=3, columns=KEEP_IDS))["1"] == {"a", "b", "c", "d"}
    assert len(kept(log, Km(k=2, m=4, columns=KEEP_IDS))["1"]) == 3


def test_whole_histories_are_identical_to_those_of_k_users() -> None:
    log = log_of({"1": ["a b c"], "2": ["a b"], "3": ["a b"], "4": ["a b x"], "5": ["y"]})
    outcome = kept(log, Km(k=2, m=None, columns=KEEP_IDS))
    assert outcome == {"1": {"a", "b"}, "2": {"a", "b"}, "3": {"a", "b"}, "4": {"a", "b"}, "5": set()}


def test_a_superset_is_not_enough_for_whole_histories() -> None:
    log = log_of({"1": ["a b"], "2": ["a b"], "3": ["a"]})
    assert kept(log, Km(k=2, m=3, columns=KEEP_IDS))["3"] == {"a"}
    assert kept(log, Km(k=2, m=None, columns=KEEP_IDS)) in (
        {"1": {"a", "b"}, "2": {"a", "b"}, "3": set()},
        {"1": {"a"}, "2": {"a"}, "3": {"a"}},
    )


METHODS = [
    Km(k=2, m=1),
    Km(k=2, m=2),
    Km(k=3, m=3),
    Km(k=2, m=4),
    Km(k=2, m=None),
    Km(k=2, m=2, restore=False),
    Km(k=2, m=3, restore=False, target=Target.RANDOM),
    Km(k=2, m=3, target=Target.RANDOM),
    Km(k=2, m=None, restore=False, target=Target.RANDOM),
    Km(k=2, m=2, target=Target.USERS),
    Km(k=2, m=3, target=Target.FIS),
    Km(k=2, m=2, target=Target.BID, values=pl.DataFrame({"term": ["birch", "elm"], "bid": [3.0, 1.0]})),
    Km(k=2, m=2, window="1d", columns=BY_DAY),
    Km(k=2, m=None, window="1d", columns=replace(BY_DAY, ids=Ids.KEYED, key=b"0123456789abcdef")),
    Km(k=2, m=2, window="1d"),
    Km(k=2, m=2, window="7d", columns=replace(BY_DAY, time=TimeDetail.SHARED)),
    Km(k=2, m=2, bot_threshold=3),
    Km(k=2, m=2, repeats="once"),
    Km(k=2, m=1, window="1d", repeats="once", columns=replace(BY_DAY, time=TimeDetail.SHARED)),
]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=range(len(METHODS)))
@examples(4)
@given(log=logs())
def test_house_rules(method: Km, log: QueryLog) -> None:
    keep_the_house_rules(method, log)


@examples(60)
@given(
    log=logs(),
    k=st.integers(2, 4),
    m=st.integers(1, 4),
    target=st.sampled_from([Target.LOG_SIZE, Target.USERS, Target.BID, Target.FIS, Target.RANDOM]),
    seed=st.integers(0, 100),
)
def test_with_restore_a_log_is_never_worth_less_to_its_target(
    log: QueryLog, k: int, m: int, target: Target, seed: int
) -> None:
    tokens = tokenize(log.frame["query"])
    owners, users = encode(log.frame["user"])
    histories = collect(tokens, owners, n_users=len(users))
    value = np.random.default_rng(seed).random(tokens.n_terms) if target is Target.BID else np.ones(tokens.n_terms)

    def outcome(*, restore: bool) -> float:
        objective = Objective(target=target, worth=value, restore=restore)
        marks = choose(histories, objective, k=k, m=m, rng=np.random.default_rng(seed))
        if target is Target.USERS:
            return len(set(histories.entry_user[marks].tolist()))
        return float((histories.counts * value[histories.terms])[marks].sum())

    assert outcome(restore=True) >= outcome(restore=False) - 1e-9


def test_restore_is_ten_per_cent_better_on_bid_where_bid_and_frequency_are_independent() -> None:
    rng = np.random.default_rng(11)
    n_users, n_terms = 6000, 8000
    lengths = np.minimum(rng.lognormal(2.2, 1.0, n_users).astype(int) + 1, 200)
    weights = np.cumsum(1 / (np.arange(n_terms) + 10.0))
    drawn = np.searchsorted(weights, rng.random(lengths.sum()) * weights[-1])
    frame = pl.DataFrame({"user": np.repeat(np.arange(n_users), lengths), "query": [f"t{t}" for t in drawn]})
    bids = pl.DataFrame({"term": [f"t{t}" for t in range(n_terms)], "bid": rng.lognormal(0, 1.5, n_terms)})

    def value(*, restore: bool) -> float:
        method = Km(k=10, m=3, target=Target.BID, values=bids, restore=restore, seed=1)
        left = method.anonymize(QueryLog.from_frame(frame)).data.frame
        return float(left.join(bids, left_on="query", right_on="term")["bid"].sum())

    assert value(restore=True) > 1.1 * value(restore=False)


def test_with_m_1_exactly_the_terms_of_fewer_than_k_users_go() -> None:
    log = log_of({"1": ["a b"], "2": ["a b"], "3": ["a c"]})
    assert kept(log, Km(k=2, m=1, columns=KEEP_IDS)) == {"1": {"a", "b"}, "2": {"a", "b"}, "3": {"a"}}


def test_a_query_keeps_its_remaining_terms_in_their_order_and_number() -> None:
    log = log_of({"1": ["Red, lonely wine! red"], "2": ["red wine"]})
    queries = Km(k=2, m=2, columns=KEEP_IDS).anonymize(log).data.frame.sort("user")["query"].to_list()
    assert queries == ["red wine red", "red wine"]


def test_the_manifest_counts_what_was_removed() -> None:
    log = log_of({"1": ["red wine", "", "lonely"], "2": ["red wine", "?!"]})
    manifest = Km(k=2, m=2).anonymize(log).manifest
    assert manifest.removed["rows_without_terms_before"] == 2
    assert manifest.removed["rows_without_terms_left"] == 1
    assert manifest.removed["term_occurrences"] == 1
    assert manifest.removed["terms"] == 1
    assert manifest.counts.n_rows_after == 2


def timed(rows: Sequence[tuple[str, str, datetime | None]]) -> QueryLog:
    return QueryLog(
        frame=pl.DataFrame(
            rows, schema={"user": pl.String, "query": pl.String, "time": pl.Datetime("us")}, orient="row"
        )
    )


NOON = datetime(2006, 3, 1, 12)


def test_a_user_with_too_many_queries_in_a_session_is_a_bot() -> None:
    rows = [("bot", f"wine {i}", NOON + timedelta(minutes=i)) for i in range(101)]
    rows += [("reader", "wine", NOON), ("other", "wine", NOON)]
    manifest = Km(k=2, m=1).anonymize(timed(rows)).manifest
    assert manifest.removed["bot_users"] == 1
    assert manifest.removed["bot_rows"] == 101


def test_a_hundred_queries_in_a_session_are_still_a_person() -> None:
    rows = [("busy", f"wine {i}", NOON + timedelta(minutes=i)) for i in range(100)]
    assert Km(k=2, m=1).anonymize(timed(rows)).manifest.removed["bot_users"] == 0


def test_a_pause_of_more_than_thirty_minutes_ends_a_session() -> None:
    rows = [("busy", f"wine {i}", NOON + timedelta(minutes=i + (31 if i > 60 else 0))) for i in range(120)]
    assert Km(k=2, m=1).anonymize(timed(rows)).manifest.removed["bot_users"] == 0


def test_several_clicks_on_one_query_are_one_query() -> None:
    rows = [("clicker", "wine", NOON)] * 150
    assert Km(k=2, m=1).anonymize(timed(rows)).manifest.removed["bot_users"] == 0


def test_bots_stay_if_the_rule_is_off_and_without_times_the_manifest_warns() -> None:
    rows = [("bot", f"wine {i}", NOON) for i in range(200)]
    assert Km(k=2, m=1, bot_threshold=None).anonymize(timed(rows)).manifest.removed["bot_users"] == 0
    assert any("no times" in warning for warning in Km(k=2, m=1).anonymize(log_of({"1": ["a"]})).manifest.warnings)


def test_each_window_is_anonymized_by_itself_under_ids_of_its_own() -> None:
    monday, tuesday = NOON, NOON + timedelta(days=1)
    log = timed([("1", "wine", monday), ("2", "wine", monday), ("1", "cheese", tuesday), ("3", "cheese", monday)])
    release = Km(k=2, m=1, window="1d", columns=BY_DAY).anonymize(log)
    # Two users ask for cheese, but on different days.
    assert release.data.frame["query"].to_list() == ["wine", "wine"]
    both = timed([(u, q, t) for u in "12" for q, t in (("wine", monday), ("cheese", tuesday))])
    released = Km(k=2, m=2, window="1d", columns=BY_DAY).anonymize(both).log
    assert released.n_users == 4
    assert verify(Km(k=2, m=2, window="1d", columns=BY_DAY).anonymize(both)).holds


def test_keyed_ids_are_not_the_same_in_two_windows() -> None:
    days = [NOON, NOON + timedelta(days=1)]
    log = timed([(u, "wine", day) for u in "12" for day in days])
    keyed = ColumnPolicy(ids="keyed", key=b"0123456789abcdef", time="day")  # type: ignore[arg-type]
    released = Km(k=2, m=1, window="1d", columns=keyed).anonymize(log).data.frame
    assert released.group_by("user").agg(pl.col("time").n_unique())["time"].max() == 1


def test_windows_that_a_receiver_cannot_tell_apart_are_refused_or_warned_of() -> None:
    log = timed([("1", "wine", NOON)])
    with pytest.raises(BadParameter, match="window must be a multiple of the released times"):
        Km(k=2, window="12h", columns=BY_DAY)
    Km(k=2, window="12h", columns=ColumnPolicy(time="hour"))  # type: ignore[arg-type]
    without_times = Km(k=2, window="12h")
    assert any(
        "windows cannot be distinguished" in warning for warning in without_times.anonymize(log).manifest.warnings
    )


@pytest.mark.slow
def test_identical_long_histories_are_quick_and_m_may_be_larger_than_any_history() -> None:
    long = " ".join(f"t{i}" for i in range(3000))
    log = log_of({"1": [long], "2": [long]})
    assert Km(k=2, m=3).anonymize(log).manifest.removed["term_occurrences"] == 0
    outcome = kept(log_of({"1": ["a b"], "2": ["a b"]}), Km(k=2, m=10**9, columns=KEEP_IDS))
    assert outcome == {"1": {"a", "b"}, "2": {"a", "b"}}


def test_the_target_users_keeps_more_users_than_building_by_frequency_alone() -> None:
    # Popular first, d goes to u1 and u2 only, too few: u5 is left with nothing.
    people = {"u1": ["a d"], "u2": ["a d"], "u3": ["a"], "u4": ["a"], "u5": ["d"], "u6": ["a b"], "u7": ["a c"]}
    outcome = kept(log_of(people), Km(k=3, m=2, target=Target.USERS, columns=KEEP_IDS))
    assert sum(bool(terms) for terms in outcome.values()) == 7


def test_rows_without_a_time_are_a_window_of_their_own() -> None:
    log = timed([("1", "wine", None), ("2", "wine", None), ("3", "wine", NOON)])
    assert Km(k=2, m=1, window="1d").anonymize(log).data.n_rows == 2


def test_a_term_that_the_table_lacks_is_worth_nothing_and_counted() -> None:
    log = log_of(EXAMPLE)
    method = Km(k=2, m=2, target=Target.BID, values=VALUES.head(2))
    assert any(w.endswith("worth nothing to the target: 3") for w in method.anonymize(log).manifest.warnings)


def test_revenue_is_bid_times_clicks() -> None:
    # Only b has both a bid and clicks: of a and b, which cannot stay together, it stays.
    log = log_of({"1": ["a b"], "2": ["a"], "3": ["b"]})
    values = pl.DataFrame({"term": ["a", "b"], "bid": [9.0, 2.0], "clicks": [0.0, 5.0]})
    outcome = kept(log, Km(k=2, m=2, target=Target.REVENUE, values=values, columns=KEEP_IDS))
    assert outcome["1"] == {"b"}
    values = pl.DataFrame({"term": ["a", "b"], "bid": [9.0, 2.0], "clicks": [2.0, 5.0]})
    outcome = kept(log, Km(k=2, m=2, target=Target.REVENUE, values=values, columns=KEEP_IDS))
    assert outcome["1"] == {"a"}


@pytest.mark.parametrize(("target", "wanted"), [(Target.BID, "a"), (Target.CLICKS, "b"), (Target.IMPRESSIONS, "c")])
def test_each_money_target_reads_its_own_column(target: Target, wanted: str) -> None:
    log = log_of({"1": ["a b c"], "2": ["a"], "3": ["b"], "4": ["c"]})
    values = pl.DataFrame({"term": ["a", "b", "c"], "bid": [9, 1, 1], "clicks": [1, 9, 1], "impressions": [1, 1, 9]})
    assert kept(log, Km(k=2, m=2, target=target, values=values, columns=KEEP_IDS))["1"] == {wanted}


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"k": 1}, "k must be 2 or more, got 1"),
        ({"m": 0}, "m must be 1 or more, or none for whole histories, got 0"),
        ({"window": "3x"}, "window must be a number and a unit: 12h, 1d, 7d, 2w, got 3x"),
        ({"bot_threshold": 0}, "bot_threshold must be 1 or more, or none to keep every user, got 0"),
        ({"window": "1d", "columns": KEEP_IDS}, "ids must be fresh or keyed with a window"),
        ({"target": "money"}, "target must be one of log_size, users, bid"),
        ({"target": "bid"}, "values must be a table with the columns term, bid for bid, got none"),
    ],
)
def test_bad_settings_say_what_to_write_instead(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(BadParameter, match=message.replace("(", r"\(")):
        Km(**settings_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pl.DataFrame({"term": ["a"], "clicks": [1]}), "no column bid"),
        (pl.DataFrame({"bid": [1.0]}), "no column term"),
    ],
)
def test_a_table_without_the_column_is_refused_when_the_method_is_made(values: pl.DataFrame, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Km(target=Target.BID, values=values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pl.DataFrame({"term": ["a", "A"], "bid": [1.0, 2.0]}), "more than once"),
        (pl.DataFrame({"term": ["a"], "bid": [-1.0]}), "negative"),
        (pl.DataFrame({"term": ["a"], "bid": [float("nan")]}), "not numbers"),
        (pl.DataFrame({"term": ["a"], "bid": ["dear"]}), "not numbers"),
    ],
)
def test_a_table_with_bad_values_is_refused(values: pl.DataFrame, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Km(k=2, target=Target.BID, values=values).anonymize(log_of(EXAMPLE))


def test_a_window_on_a_log_without_times_is_refused() -> None:
    with pytest.raises(BadParameter, match="left out for a log without times"):
        Km(k=2, window="1d").anonymize(log_of(EXAMPLE))


def test_a_release_for_k_and_m_is_one_for_less() -> None:
    from queryveil.checks import judge

    released = Km(k=3, m=3, seed=1).anonymize(log_of({str(i): [q] for i, q in enumerate(["a b c", "a b"] * 4)})).data
    for k, m in ((2, 3), (3, 2), (2, 1)):
        assert judge(released, KmAnonymity(k=k, m=m)).holds
