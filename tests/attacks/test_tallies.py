"""Attacks on noisy counts of queries, and on sessions made up from them."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.support.releases import released_tallies

from queryveil.attacks import attack
from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.membership import Membership
from queryveil.attacks.sybil import Sybil, k_of, times_seen
from queryveil.data import Format, Layout, QueryLog
from queryveil.methods.dp.dp import synthesized
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of
from queryveil.text.tokens import normal_form

THRESHOLD = 12


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=1200, seed=4).log


def counted(log: QueryLog, *, least: int = 1) -> dict[str, int]:
    """Count the people of each query, as they are."""
    asked = log.frame.select("user", query=normal_form(log.frame["query"])).unique()
    people = asked.group_by("query").agg(n=pl.len()).filter(pl.col("n") >= least, pl.col("query") != "")
    return dict(people.sort("query").iter_rows())


def without_noise(log: QueryLog) -> Release:
    return released_tallies(counted(log, least=THRESHOLD), threshold=THRESHOLD)


def halves(log: QueryLog) -> tuple[QueryLog, QueryLog]:
    is_in = log.frame["user"].rank("dense") % 2 == 0
    return log.with_frame(log.frame.filter(is_in)), log.with_frame(log.frame.filter(~is_in))


class Noisy:
    """Everybody counted once for each query, and noise of a scale that hides one person's part in one count."""

    def __init__(self, *, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, log: QueryLog) -> Release:
        counts = counted(log)
        noise = self._rng.geometric(1 - np.exp(-1), len(counts)) - self._rng.geometric(1 - np.exp(-1), len(counts))
        noisy = {query: n + int(z) for (query, n), z in zip(counts.items(), noise, strict=True)}
        return released_tallies({query: n for query, n in noisy.items() if n >= THRESHOLD}, threshold=THRESHOLD)


def test_queries_are_put_side_by_side_with_their_terms_and_are_nobody() -> None:
    log = log_of({"u1": ["Red  wine", "jaguar"], "u2": ["red wine"]})
    pair = Pair(log, release=released_tallies({"red wine": 3, "blue jaguar": 2}))
    assert (pair.n_users, pair.n_candidates, len(pair.identity.users.values)) == (2, 2, 0)
    words = [pair.vocabulary.gather(pair.after.terms).to_list(), pair.after.entry_user.tolist()]
    assert sorted(zip(*words, strict=True)) == [("blue", 1), ("jaguar", 1), ("red", 0), ("wine", 0)]


def test_made_up_users_are_nobody_even_if_an_id_is_in_the_log() -> None:
    log = log_of({"1": ["red wine"], "2": ["red wine"]})
    pair = Pair(log, release=synthesized(released_tallies({"red wine": 2}), n_users=5, seed=1))
    assert pair.n_candidates == 5
    assert not len(pair.identity.users.values)


def test_everybody_who_seeks_people_is_told_that_there_are_none(made: QueryLog) -> None:
    found = attack(made, without_noise(made), seed=1)
    reasons = {skipped.attacker: skipped.reason for skipped in found.skipped}
    none = "the release has no rows that are one person's"
    assert [reasons[name] for name in ("known_terms", "likely_terms", "rare_pair", "vanity", "clock")] == [none] * 5
    assert reasons["shared_term"] == "the release has no groups"
    assert reasons["added_rows"] == "no rows were made up"
    assert reasons["as_released"] == reasons["rebuild_1"] == "no queries changed hands"
    # Only who reads its texts finds any.
    assert [attempt.after.attacker for attempt in found.attempts] == ["fragments"]
    made_up = attack(made, synthesized(without_noise(made), n_users=50, seed=1), seed=1)
    reasons = {skipped.attacker: skipped.reason for skipped in made_up.skipped}
    assert [reasons[name] for name in ("likely_terms", "clock")] == ["the users of the release are made up"] * 2
    assert reasons["added_rows"] == "all rows are made up"


def test_who_is_in_the_log_shows_in_exact_counts_and_not_in_few_noisy_ones(made: QueryLog) -> None:
    log, public = halves(made)
    exact = Pair(log, release=released_tallies(counted(log)))
    noisy = Pair(log, release=Noisy(seed=1)(log))
    auxiliary = AuxiliaryData(public=public)
    assert Membership(seed=1).attack(exact, auxiliary=auxiliary).share > 0.1
    assert Membership(seed=1).attack(noisy, auxiliary=auxiliary).share < 0.04


def test_counts_that_are_all_doubled_tell_as_much(made: QueryLog) -> None:
    log, public = halves(made)
    counts = counted(log)
    found = [
        Membership(seed=1).attack(
            Pair(log, release=released_tallies({query: times * n for query, n in counts.items()})),
            auxiliary=AuxiliaryData(public=public),
        )
        for times in (1, 2)
    ]
    assert found[0] == found[1]


def test_an_empty_release_tells_nobody_anything(made: QueryLog) -> None:
    log, public = halves(made)
    pair = Pair(log, release=released_tallies({}))
    assert Membership().skip_reason(pair, auxiliary=AuxiliaryData(public=public)) == "the release is empty"
    assert (
        Sybil(n_targets=50, seed=1).attack(pair, auxiliary=AuxiliaryData(remake=lambda _: released_tallies({}))).n_found
        == 0
    )


def test_only_the_very_query_is_counted() -> None:
    release = released_tallies({"red wine": 7, "old red wine": 9, "wine red": 4})
    wanted = pl.DataFrame({"text": pl.Series(["Red   WINE", "red", "blue wine"]), "row": np.arange(3)})
    assert times_seen(wanted, release=release).tolist() == [7, 0, 0]
    made_up = synthesized(released_tallies({"red wine": 7}), n_users=4, seed=1)
    assert times_seen(wanted, release=made_up).tolist() == [made_up.log.n_rows, 0, 0]


def test_so_many_are_planted_that_one_more_reaches_the_smallest_threshold(made: QueryLog) -> None:
    release = without_noise(made)
    (part,) = release.manifest.noise
    both = (part, msgspec.structs.replace(part, threshold=9), msgspec.structs.replace(part, what="clicks", threshold=3))
    two_rounds = Release(data=release.data, manifest=msgspec.structs.replace(release.manifest, noise=both))
    assert (k_of(release), k_of(two_rounds)) == (THRESHOLD, 9)


def test_counts_without_noise_fall_to_invented_users(made: QueryLog) -> None:
    pair = Pair(made, release=without_noise(made))
    found = Sybil(n_targets=50, seed=1).attack(pair, auxiliary=AuxiliaryData(remake=without_noise))
    assert (found.n_targets, found.n_found, found.n_by_chance) == (50, 50, 0)


def test_noise_lets_what_nobody_asked_through_as_well(made: QueryLog) -> None:
    remake = Noisy(seed=7)
    found = Sybil(n_targets=50, seed=1).attack(Pair(made, release=remake(made)), auxiliary=AuxiliaryData(remake=remake))
    # One more person moves a count across a threshold at its middle with chance 0.73 where it was 0.27.
    assert 0.1 < found.chance_share < 0.45
    assert found.chance_share < found.share < 0.95


def test_what_leaves_whoever_asked_is_all_by_chance_and_half_of_those_suspected_did_not_ask(made: QueryLog) -> None:
    seen: list[QueryLog] = []

    def remake(log: QueryLog) -> Release:
        seen.append(log)
        return released_tallies(counted(log), threshold=THRESHOLD)

    found = Sybil(n_targets=10, seed=1).attack(
        Pair(made, release=without_noise(made)), auxiliary=AuxiliaryData(remake=remake)
    )
    assert (found.n_targets, found.n_found, found.n_by_chance) == (10, 10, 10)
    new = seen[0].frame.filter(~pl.col("user").is_in(made.frame["user"].unique().implode()))
    planted = new.group_by(normal_form(new["query"])).len()
    # For each target one that was taken out of the log, and three decoys.
    assert (planted.height, set(planted["len"])) == (50, {THRESHOLD - 1})
    left = set(normal_form(seen[0].frame.join(new, on="user", how="anti")["query"]))
    assert sum(query in left for query in planted["query"]) == 10


@pytest.mark.slow
def test_large_thresholds_are_tried_on_fewer_targets(made: QueryLog) -> None:
    def remake(_: QueryLog) -> Release:
        return released_tallies({}, threshold=20_000)

    found = Sybil(n_targets=50, seed=1).attack(Pair(made, release=remake(made)), auxiliary=AuxiliaryData(remake=remake))
    assert found.n_targets == 4


def test_no_combination_can_be_planted_where_items_are_counted_one_by_one() -> None:
    bags = log_of({"t1": ["10307 12487"], "t2": ["10307 12559"]})
    log = QueryLog(frame=bags.frame, layout=Layout(format=Format.TRANSACTIONS))
    pair = Pair(log, release=released_tallies({"10307": 2}))
    assert Sybil().skip_reason(pair, auxiliary=AuxiliaryData(remake=without_noise)) == (
        "the release counts items one by one, and no combination of them"
    )
