"""All attackers together: who runs on what, and who finds the planted people."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from queryveil.attacks import Attacks, AuxiliaryData, attack, attackers, run
from queryveil.attacks.attacker import Person
from queryveil.comparison.judged import split
from queryveil.comparison.methods import Method
from queryveil.data import QueryLog
from queryveil.errors import BadInput, BadParameter
from queryveil.methods import Clump, Kdelta, Km, Partition, Plink, Pseudonymise, QueryThreshold, Swap, TokenHash
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Release
from queryveil.synthesis import Synthetic, synthesize

KEEP = ColumnPolicy(ids="keep")  # type: ignore[arg-type]
EXACT = ColumnPolicy(ids="keep", time="keep", keep=("url", "rank"))  # type: ignore[arg-type]
KEY = b"a key for tests only"
SEED = 5

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return synthesize(users=4000, seed=11)


def people_of(made: Synthetic) -> list[Person]:
    return [Person(name=secret.name, town=secret.town, user=secret.user) for secret in made.secrets]


def share(found: Attacks, attacker: str, *, n_known: int | None = None, when: str = "after") -> float:
    attempt = found.named(attacker, n_known=n_known)
    assert attempt is not None
    exposure = attempt.after if when == "after" else attempt.before
    assert exposure is not None
    return exposure.share


def test_a_pseudonymised_log_falls_to_whoever_knows_a_little(made: Synthetic) -> None:
    release = Pseudonymise(columns=EXACT, seed=SEED).anonymize(made.log)
    found = attack(made.log, release, people=people_of(made), only=("known_terms", "clock", "vanity"), seed=SEED)
    by_terms = {n: share(found, "known_terms", n_known=n) for n in (2, 3, 4, 6, 8)}
    assert by_terms[4] > 0.5
    assert sorted(by_terms.values()) == list(by_terms.values())
    assert share(found, "clock", n_known=5) > 0.9
    assert share(found, "vanity") == 1.0
    for attempt in found.attempts:
        assert attempt.after.beats_chance


PROMISING: dict[str, Callable[[], Method]] = {
    "km": lambda: Km(k=5, m=2, columns=KEEP, seed=SEED),
    "kdelta": lambda: Kdelta(k=5, same_texts=True, columns=KEEP, seed=SEED),
    "clump": lambda: Clump(k=5, seed=SEED),
    "partition": lambda: Partition(k=5, seed=SEED),
    "plink": lambda: Plink(p=0.2, strict=True, seed=SEED),
    "swap": lambda: Swap(k=10, columns=KEEP, seed=SEED),
}


@pytest.mark.parametrize("method", PROMISING)
def test_planted_people_are_found_in_no_release_that_promises_to_hide_them(made: Synthetic, method: str) -> None:
    release = PROMISING[method]().anonymize(made.log)
    found = attack(made.log, release, people=people_of(made), only=("vanity",), seed=SEED)
    if method == "plink":
        # Groups have no users who could be found.
        assert [skipped.attacker for skipped in found.skipped] == ["vanity"]
        return
    assert share(found, "vanity", when="before") == 1.0
    assert share(found, "vanity") == 0.0


@pytest.mark.slow
def test_hashed_terms_are_read_by_whoever_has_a_log_of_the_same_kind() -> None:
    log, public = split(synthesize(users=12_000, seed=11).log, share=0.5, seed=SEED)
    release = TokenHash(key=KEY, seed=SEED).anonymize(log)
    found = attack(log, release, key=KEY, public=public, only=("token_inversion",), seed=SEED)
    exposure = found.attempts[0].after
    assert exposure.n_targets == 500
    assert exposure.interval[0] > 0.1
    assert exposure.chance_share < 0.01


def test_whoever_may_add_users_learns_what_one_person_asked(made: Synthetic) -> None:
    method = QueryThreshold(k=5, columns=KEEP, seed=SEED)
    found = attack(made.log, method.anonymize(made.log), remake=method.anonymize, only=("sybil",), seed=SEED)
    assert found.attempts[0].after.beats_chance


def test_what_does_not_fit_is_named_with_the_reason(made: Synthetic) -> None:
    found = attack(made.log, Plink(p=0.5, seed=SEED).anonymize(made.log), n_targets=50, seed=SEED)
    assert [attempt.after.attacker for attempt in found.attempts] == ["shared_term"]
    reasons = {skipped.attacker: skipped.reason for skipped in found.skipped}
    assert "public" in reasons["membership"]
    assert reasons["rebuild_1"] == "no queries changed hands"
    assert all(reasons.values())


def test_a_swapped_log_meets_those_who_rebuild_its_pools(made: Synthetic) -> None:
    columns = ColumnPolicy(ids="keyed", key=KEY, time="day")  # type: ignore[arg-type]
    release = Swap(k=10, columns=columns, seed=SEED).anonymize(made.log)
    found = attack(made.log, release, key=KEY, only=("as_released", "rebuild_1", "rebuild_4"), seed=SEED)
    names = [attempt.after.attacker for attempt in found.attempts]
    assert names == ["as_released", "rebuild_1", "rebuild_1+T", "rebuild_4", "rebuild_4+T"]
    assert found.exact
    assert share(found, "as_released") == 0.0


def test_rows_of_users_whom_the_original_lacks_are_nobody_s(made: Synthetic) -> None:
    release = Swap(k=10, columns=KEEP, seed=SEED).anonymize(made.log)
    users = made.log.frame["user"].unique(maintain_order=True)
    half = made.log.with_frame(made.log.frame.filter(made.log.frame["user"].is_in(users[: len(users) // 2].implode())))
    # No row of a swapped log is true as it stands, whoever is missing.
    crowd = attackers(release, seed=SEED, only=("as_released",))
    found = run(crowd, Pair(half, release=release), auxiliary=AuxiliaryData(), with_baseline=False)
    assert share(found, "as_released") == 0.0
    with pytest.raises(BadInput, match="give the log that it was made from"):
        attack(half, release)


def test_a_seed_repeats_which_rows_are_taken_for_made_up(made: Synthetic) -> None:
    columns = ColumnPolicy(ids="keep", keep=("url",))  # type: ignore[arg-type]
    release = Kdelta(k=5, columns=columns, seed=SEED).anonymize(made.log)
    first, *others = (attack(made.log, release, only=("added_rows",), seed=SEED) for _ in range(4))
    assert all(other == first for other in others)


def test_a_seed_repeats_an_attack(made: Synthetic) -> None:
    release = Km(k=5, m=1, seed=SEED).anonymize(made.log)
    first, second = (
        attack(made.log, release, only=("known_terms", "rare_pair"), n_targets=100, seed=SEED) for _ in range(2)
    )
    assert first == second
    assert not first.exact


def test_attackers_side_by_side_find_what_each_finds_alone(made: Synthetic) -> None:
    method = Swap(k=10, columns=KEEP, seed=SEED)
    auxiliary = AuxiliaryData(remake=method.anonymize)
    release = method.anonymize(made.log)
    crowd = attackers(release, n_targets=60, seed=SEED)
    together = run(crowd, Pair(made.log, release=release), auxiliary=auxiliary)
    alone = Pair(made.log, release=release)
    each = [run([one], alone, auxiliary=auxiliary) for one in crowd]
    assert together.attempts == tuple(attempt for one in each for attempt in one.attempts)
    assert set(together.skipped) == {skipped for one in each for skipped in one.skipped}


def test_a_fault_of_one_attacker_ends_the_attack(made: Synthetic) -> None:
    def broken(log: QueryLog) -> Release:
        raise BadInput("this method does not run")

    release = Pseudonymise(columns=KEEP, seed=SEED).anonymize(made.log)
    with pytest.raises(BadInput, match="this method does not run"):
        attack(made.log, release, remake=broken, only=("sybil", "known_terms"), n_targets=20, seed=SEED)


def test_estimating_who_is_who_loses_little_of_what_is_found(made: Synthetic) -> None:
    policies = (KEEP, ColumnPolicy())
    kept, fresh = (
        attack(made.log, Km(k=2, m=1, columns=p, seed=SEED).anonymize(made.log), only=("known_terms",), seed=SEED)
        for p in policies
    )
    assert kept.exact
    assert not fresh.exact
    assert share(kept, "known_terms", n_known=8) > 0.1
    assert share(fresh, "known_terms", n_known=8) == pytest.approx(share(kept, "known_terms", n_known=8), abs=0.05)


def test_a_swapped_log_with_fresh_ids_cannot_be_judged(made: Synthetic) -> None:
    release = Swap(k=10, seed=SEED).anonymize(made.log)
    with pytest.raises(BadInput, match="--ids keyed"):
        attack(made.log, release)


def test_an_attacker_nobody_knows_is_a_clear_line(made: Synthetic) -> None:
    release = Pseudonymise(seed=SEED).anonymize(made.log)
    with pytest.raises(BadParameter, match="only must be one of known_terms"):
        attack(made.log, release, only=("crystal_ball",))
    with pytest.raises(BadParameter, match="n_targets must be 1 or more"):
        attack(made.log, release, n_targets=0)


def test_an_empty_log_is_attacked_in_vain() -> None:
    log = QueryLog.from_frame(pl.DataFrame(schema={"user": pl.String, "query": pl.String}))
    found = attack(log, Pseudonymise().anonymize(log))
    assert all(attempt.after.n_found == 0 for attempt in found.attempts)
