"""The four de-anonymizers, beside the plain one and beside chance."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_rebuilding import plain_match_of_logs, plain_rebuild

from queryveil.attacks.rebuild import Choice, Rebuild1, Rebuild2, Rebuild3, Rebuild4, Rebuilding, rebuilt
from queryveil.attacks.swapped import EncodedLog, Truth
from queryveil.data import QueryLog
from queryveil.errors import BadInput, BadParameter
from queryveil.rng import generator
from queryveil.text.classifier import CATEGORIES

ATTACKERS = (Rebuild1, Rebuild2, Rebuild3, Rebuild4)
SCHEMA = {"user": pl.String, "query": pl.String}
each_attacker = pytest.mark.parametrize("attacker", ATTACKERS)


def log_of_rows(rows: list[tuple[str, str]], *, times: list[datetime] | None = None) -> QueryLog:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return QueryLog.from_frame(frame if times is None else frame.with_columns(time=pl.Series(times)))


def one_pool(users: str | list[str]) -> EncodedLog:
    """Return rows of one category, each with a text of its own."""
    rows = [(user, f"text {i}") for i, user in enumerate(users)]
    return EncodedLog.of(log_of_rows(rows), category=np.zeros(len(rows), np.int8))


def guessed(attacker: Rebuilding, encoded: EncodedLog) -> list[tuple[str, str]]:
    return encoded.log_of(attacker.guess(encoded)).frame.rows()


def test_the_example_of_the_paper_can_fail_and_succeed() -> None:
    # Paper: section 3.3.2; the player's name is left out. All four are Sports there.
    original = log_of_rows(
        [
            ("A", "tennis titles"),
            ("B", "monza formula1 tickets"),
            ("C", "champions league final"),
            ("Z", "european soccer barcelona players"),
        ]
    )
    released = log_of_rows(
        [
            ("A", "champions league final"),
            ("Z", "monza formula1 tickets"),
            ("B", "tennis titles"),
            ("C", "european soccer barcelona players"),
        ]
    )
    encoded = EncodedLog.of(released, category=np.full(4, CATEGORIES.index("Sports"), np.int8))
    assert plain_match_of_logs(released, original) == 0
    outcomes = {}
    for seed in range(200):
        guess = Rebuild1(k=4, seed=seed).guess(encoded)
        assert len(guess) == 1
        log = encoded.log_of(guess)
        outcomes[log.frame.row(0)] = plain_match_of_logs(log, original)
    assert outcomes["B", "european soccer barcelona players"] == 0
    assert outcomes["B", "monza formula1 tickets"] == 1
    assert len(outcomes) == 16
    assert sum(outcomes.values()) == 4


@pytest.mark.parametrize(
    ("attacker", "users"), [(Rebuild2, ["a", "a", "b"]), (Rebuild3, ["a"] * 4), (Rebuild4, ["a", "a", "b", "a"])]
)
def test_each_takes_its_own_kind_of_user(attacker: type[Rebuilding], users: list[str]) -> None:
    # When the third b comes, a waits 2 times and has 4 rows so far, b waits 3 times and has 3: 8 against 9.
    for seed in range(10):
        found = [user for user, _ in guessed(attacker(k=5, seed=seed), one_pool("aaaabbbc"))]
        assert found[: len(users)] == users
        assert len(found) == 4


@pytest.mark.slow
def test_a_user_at_random_is_taken_as_often_as_waiting() -> None:
    first = [guessed(Rebuild1(k=4, seed=seed), one_pool("aaab"))[0][0] for seed in range(400)]
    assert 0.65 < first.count("a") / 400 < 0.85


@pytest.mark.slow
@pytest.mark.parametrize("attacker", ATTACKERS[1:])
def test_ties_are_drawn_and_each_user_is_as_likely(attacker: type[Rebuilding]) -> None:
    first = [guessed(attacker(k=4, seed=seed), one_pool("abab"))[0][0] for seed in range(400)]
    assert 0.4 < first.count("a") / 400 < 0.6


@pytest.mark.slow
def test_a_tie_in_rows_so_far_is_not_decided_by_places_in_the_pool() -> None:
    # a and b leave with the first two guesses; then a, with 2 rows so far, waits once and b, with 2, twice.
    drawn = []
    for seed in range(400):
        found = guessed(Rebuild3(k=4, seed=seed), one_pool("aabcb"))
        assert found[0][0] == "a"
        drawn.append(found[1][0])
    assert 0.4 < drawn.count("a") / 400 < 0.6


@each_attacker
def test_queries_are_drawn_at_random(attacker: type[Rebuilding]) -> None:
    first = {guessed(attacker(k=4, seed=seed), one_pool("aabb"))[0][1] for seed in range(100)}
    assert first == {f"text {i}" for i in range(4)}


@each_attacker
def test_nothing_is_guessed_while_all_users_are_the_same_and_k_grows(attacker: type[Rebuilding]) -> None:
    encoded = one_pool("a" * 7)
    guess = attacker(k=5, seed=1).guess(encoded)
    assert len(guess) == 0
    # 5, then 6, then 8 (7.2 rounded up).
    assert guess.k_now.tolist() == [8] + [5] * 16


@each_attacker
def test_pools_of_categories_are_apart(attacker: type[Rebuilding]) -> None:
    rows = [("a", "x"), ("b", "y"), ("c", "z"), ("d", "w")]
    encoded = EncodedLog.of(log_of_rows(rows), category=np.array([0, 16, 0, 16], np.int8))
    for user, text in guessed(attacker(k=2, seed=3), encoded):
        assert ((user in "ac") and (text in "xz")) or ((user in "bd") and (text in "yw"))


@each_attacker
def test_every_row_is_guessed_once_but_those_that_still_wait(attacker: type[Rebuilding]) -> None:
    encoded = one_pool("abcdabcdabcd")
    guess = attacker(k=4, seed=2).guess(encoded)
    assert len(guess) == 9
    for rows in (guess.user_row, guess.query_row):
        assert len(set(rows.tolist())) == 9


def test_rows_sorted_by_time_are_guessed_in_that_order() -> None:
    day = datetime(2024, 3, 1)
    times = [day + timedelta(days=i) for i in (2, 0, 1, 0)]
    encoded = EncodedLog.of(log_of_rows([("a", "x"), ("b", "y"), ("c", "z"), ("d", "w")], times=times))
    assert encoded.time_order().tolist() == [1, 3, 2, 0]
    for seed in range(20):
        (user, text), *_ = guessed(Rebuild1(k=2, by_time=True, seed=seed), same_pool(encoded))
        assert user in "bd"
        assert text in "yw"


def same_pool(encoded: EncodedLog) -> EncodedLog:
    return EncodedLog.of(encoded.log, category=np.zeros(encoded.n_rows, np.int8))


def test_a_release_without_times_cannot_be_sorted() -> None:
    with pytest.raises(BadInput, match="the release has no times to sort by"):
        Rebuild1(by_time=True).guess(one_pool("ab"))


@examples(100)
@given(
    rows=st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("uvwxyz"), st.integers(0, 2)), max_size=60),
    choice=st.sampled_from(list(Choice)),
    k=st.integers(2, 6),
    growth=st.sampled_from([1.1, 1.2, 2.0]),
    grows=st.booleans(),
    seed=st.integers(0, 99),
)
def test_guesses_are_those_of_the_plain_one(
    rows: list[tuple[str, str, int]], choice: Choice, k: int, growth: float, grows: bool, seed: int
) -> None:
    # A text is of one category only.
    rows = [(user, text + str(category), category) for user, text, category in rows]
    encoded = EncodedLog.of(
        log_of_rows([(user, text) for user, text, _ in rows]), category=np.array([row[2] for row in rows], np.int8)
    )
    guess = rebuilt(encoded, choice=choice, k=k, growth=growth, grows=grows, seed=seed)
    draws = generator(seed).random((len(rows), 2)).tolist()
    assert encoded.log_of(guess).frame.rows() == plain_rebuild(
        rows, draws, choice=int(choice), k=k, growth=growth, grows=grows
    )


def drawn_log(*, n_rows: int, shares: list[float], seed: int) -> QueryLog:
    rng = np.random.default_rng(seed)
    users = rng.choice(len(shares), n_rows, p=np.array(shares) / sum(shares))
    return log_of_rows([(f"u{user}", f"text {i}") for i, user in enumerate(users)])


@each_attacker
@pytest.mark.parametrize("by_time", [False, True])
def test_a_release_with_no_swapping_is_found_far_above_chance(attacker: type[Rebuilding], by_time: bool) -> None:
    log = drawn_log(n_rows=5000, shares=[1.0] * 500, seed=1)
    log = log.with_frame(log.frame.with_columns(time=pl.datetime(2024, 3, 1) + pl.duration(hours=pl.int_range(5000))))
    encoded = EncodedLog.of(log, category=np.zeros(5000, np.int8))
    found = attacker(k=5, by_time=by_time, seed=4).judged(Truth.of(log, released=encoded, cleaned=True))
    assert found.beats_chance
    assert found.share > 20 * found.chance_share
    assert found.n_targets == 5000
    assert found.attacker == f"rebuild_{int(attacker.choice)}" + ("+T" if by_time else "")


@each_attacker
def test_users_who_swap_only_with_their_neighbours_are_found_above_chance(attacker: type[Rebuilding]) -> None:
    log = drawn_log(n_rows=8000, shares=[1.0] * 400, seed=2)
    original = EncodedLog.of(log, category=np.zeros(8000, np.int8))
    released = original.log_of(rebuilt(original, choice=Choice.RANDOM, k=5, seed=7))
    encoded = EncodedLog.of(released, category=np.zeros(released.n_rows, np.int8))
    found = attacker(k=5, seed=5).judged(Truth.of(log, released=encoded, cleaned=True))
    assert found.beats_chance


@each_attacker
def test_one_dominant_user_is_guessed_less_often_than_by_naming_nobody_else(
    attacker: type[Rebuilding],
) -> None:
    log = drawn_log(n_rows=6000, shares=[300.0, *[1.0] * 200], seed=3)
    shuffled = log.with_frame(
        log.frame.with_columns(user=log.frame["user"].shuffle(seed=8), query=log.frame["query"].shuffle(seed=9))
    )
    encoded = EncodedLog.of(shuffled, category=np.zeros(6000, np.int8))
    found = attacker(k=10, seed=6).judged(Truth.of(log, released=encoded, cleaned=True))
    # 300 of 500 rows are the dominant user's; two rows drawn at random are both in 36 of 100 cases.
    assert found.chance_share == pytest.approx(0.6, abs=0.02)
    assert 0.3 < found.interval[1] < found.chance_share


@each_attacker
def test_a_release_dealt_at_random_is_found_no_better_than_by_chance(attacker: type[Rebuilding]) -> None:
    log = drawn_log(n_rows=6000, shares=[1.0] * 60, seed=4)
    shuffled = log.with_frame(
        log.frame.with_columns(user=log.frame["user"].shuffle(seed=8), query=log.frame["query"].shuffle(seed=9))
    )
    encoded = EncodedLog.of(shuffled, category=np.zeros(6000, np.int8))
    found = attacker(k=10, seed=6).judged(Truth.of(log, released=encoded, cleaned=True))
    assert not found.beats_chance
    assert found.interval[1] > 1 / 60


@each_attacker
def test_an_empty_release_gives_no_guess(attacker: type[Rebuilding]) -> None:
    encoded = one_pool("")
    found = attacker(seed=1).judged(Truth.of(log_of_rows([("a", "elm")]), released=encoded))
    assert (found.n_found, found.n_targets) == (0, 1)


@each_attacker
def test_a_seed_repeats(attacker: type[Rebuilding]) -> None:
    encoded = one_pool("abcd" * 20)
    first, again, other = (guessed(attacker(k=4, seed=seed), encoded) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(("settings", "message"), [({"k": 1}, "k must be 2 or more"), ({"growth": 1.0}, "above 1")])
def test_settings_that_cannot_work_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Rebuild1(**settings)  # type: ignore[arg-type]
