"""Somebody who guesses whether a person asked about health or other sensitive subjects."""

from __future__ import annotations

from math import prod

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_attacks import plain_mean_of_likely
from tests.support.releases import paired_histories, released

from queryveil.attacks import AuxiliaryData
from queryveil.attacks._likelihood import mean_of_likely, odds_of
from queryveil.attacks.attacker import Exposure
from queryveil.attacks.sensitive import Sensitive, _harmless_terms, _released_subjects
from queryveil.comparison.judged import split
from queryveil.data import GROUPS_SCHEMA, Groups, QueryLog
from queryveil.data.rows import Rows
from queryveil.errors import BadParameter
from queryveil.methods import Clump, Plink
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import Release
from queryveil.synthesis import synthesize
from queryveil.testing.logs import food, log_of, tiny_log
from queryveil.text.classifier import CATEGORIES

HEALTH = CATEGORIES.index("Health")
LETTERS = "abcdef"


def people(n: int, *, first: int = 0) -> dict[str, list[str]]:
    """Return people who have three numbers of their own and one of all; two in five have diabetes."""
    asked = [["7", f"{4 * i + 1001} {4 * i + 1002} {4 * i + 1003}"] for i in range(first, first + n)]
    return {f"u{i}": each + ["diabetes"] * (i % 5 < 2) for i, each in enumerate(asked)}


def attacked(pair: Pair, public: QueryLog, *, seed: int = 1, **settings: int | None) -> Exposure:
    attacker, auxiliary = Sensitive(categories=("Health",), seed=seed, **settings), AuxiliaryData(public=public)  # type: ignore[arg-type]
    assert attacker.skip_reason(pair, auxiliary=auxiliary) is None
    return attacker.attack(pair, auxiliary=auxiliary)


@pytest.mark.parametrize("n_known", [3, None])
def test_terms_of_their_own_lead_to_what_people_asked_a_doctor(n_known: int | None) -> None:
    log, public = log_of(people(200)), log_of(people(100, first=900))
    found = attacked(Pair.pseudonymised(log), public, n_known=n_known)
    assert found.n_targets == 200
    assert found.n_found >= 198
    # That everybody is healthy is true of three in five, and the public log says no more of such numbers.
    assert found.n_by_chance == 120
    assert found.surest is not None
    assert found.surest.n_certain >= 80


def test_a_release_of_other_people_tells_no_more_than_the_public_log() -> None:
    log, others, public = (log_of(people(200, first=first)) for first in (0, 400, 900))
    pair = Pair(log, release=released(others))
    beyond = [(found := attacked(pair, public, seed=seed)).share - found.chance_share for seed in range(10)]
    assert abs(float(np.mean(beyond))) < 0.03


def test_what_goes_with_a_category_is_by_chance_since_the_public_log_tells_it() -> None:
    # Whoever has the number 13 has diabetes.
    asked = {f"u{i}": [f"{13 + i % 2} 7 8"] + ["diabetes"] * (1 - i % 2) for i in range(200)}
    nothing = {f"u{i}": ["7"] for i in range(200)}
    found = attacked(paired_histories(asked, nothing), log_of(asked))
    assert found.n_by_chance == 200
    assert found.n_found == 200


@examples(40)
@given(
    candidates=st.lists(st.text(LETTERS, max_size=6), min_size=1, max_size=6),
    known=st.text(LETTERS, max_size=4),
    values=st.lists(st.floats(0, 1), min_size=6, max_size=6),
)
def test_the_mean_of_likely_candidates_is_that_of_the_plain_one(
    candidates: list[str], known: str, values: list[float]
) -> None:
    holders = Rows.from_lists([[i for i, each in enumerate(candidates) if letter in each] for letter in LETTERS])
    pairs = zip(holders.row_of_entry.tolist(), holders.values.tolist(), strict=True)
    counts = np.array([candidates[holder].count(LETTERS[letter]) for letter, holder in pairs], np.int64)
    things = np.array([LETTERS.index(letter) for letter in known], np.int64)
    items, odds = odds_of(things, holders=holders, n_candidates=len(candidates), counts=counts, by_accident=0.3)
    table = np.array(values[: len(candidates)])[:, None]
    found = mean_of_likely(np.array([0, len(things)]), items, holders, odds, table)
    plain = plain_mean_of_likely(known, candidates, values=values[: len(candidates)], by_accident=0.3)
    assert found[0].tolist() == pytest.approx(plain)


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["tea 4711", "diabetes 12", "4711", "flu 4711"]))))
def test_known_terms_are_those_of_queries_that_are_not_sensitive(rows: list[tuple[int, str]]) -> None:
    asked = {f"u{user}": [query for owner, query in rows if owner == user] for user, _ in rows}
    pair = Pair.pseudonymised(log_of(asked))
    own = _harmless_terms(pair.tokens[0], pair.user, pair.categories, sought=np.array([HEALTH]), n_users=pair.n_users)
    words = [{pair.vocabulary[term] for term in row} for row in own.user_terms.to_lists()]
    harmless = [
        {word for query in asked[user] if query in ("tea 4711", "4711") for word in query.split()}
        for user in pair.users
    ]
    assert words == harmless


def test_the_chance_of_a_category_in_a_group_is_that_a_member_has_one_of_its_terms() -> None:
    rows = [(1, 4, 7, ["diabetes", "flu", "tea"], [1.0] * 3, [1, 2, 4]), (2, 4, 4, ["tea"], [1.0], [4])]
    log = log_of({"u1": ["diabetes flu"], "u2": ["tea"]})
    manifest = Plink(p=0.5, taxonomy=food(), seed=1).anonymize(log).manifest
    groups = Groups(frame=pl.DataFrame(rows, schema=GROUPS_SCHEMA, orient="row"))
    found = _released_subjects(Pair(log, release=Release(data=groups, manifest=manifest)))
    assert found[:, HEALTH].tolist() == pytest.approx([1 - prod([3 / 4, 2 / 4]), 0])
    assert found[:, len(CATEGORIES) + HEALTH].tolist() == pytest.approx([np.log(1 + 3 / 4), 0])
    assert found[:, -1].tolist() == pytest.approx(np.log([1 + 7 / 4, 2]).tolist())


@pytest.mark.slow
def test_groups_tell_of_their_members_and_the_wrong_ones_do_not() -> None:
    log, public = split(synthesize(users=4000, seed=1).log, share=0.25, seed=1)
    grouping = Plink(p=0.2, seed=1).group(log)
    pair, attacker = Pair(log, release=grouping.release), Sensitive(n_known=None, n_targets=3000, seed=1)
    wrong = grouping.membership.with_columns(group=grouping.membership["group"].shuffle(seed=1))
    right, at_random = (
        attacker.attack(pair, auxiliary=AuxiliaryData(public=public, membership=each))
        for each in (grouping.membership, wrong)
    )
    assert right.share > right.chance_share + 0.01
    assert abs(at_random.share - at_random.chance_share) < 0.01


def test_a_seed_repeats_it() -> None:
    log, public = log_of(people(60)), log_of(people(60, first=900))
    pair = Pair(log, release=pseudonymised(log))
    assert attacked(pair, public, n_targets=30) == attacked(pair, public, n_targets=30)
    assert attacked(pair, public, n_targets=30).n_targets == 30


def test_it_says_why_it_does_not_apply() -> None:
    log = log_of(people(20))
    pair, known = Pair.pseudonymised(log), AuxiliaryData(public=log)
    assert Sensitive().skip_reason(pair, auxiliary=known) is None
    assert "--public" in str(Sensitive().skip_reason(pair, auxiliary=AuxiliaryData()))
    assert Sensitive(n_known=9).skip_reason(pair, auxiliary=known) == (
        "too few people have terms that are not of sensitive queries"
    )
    hashed = Pair(tiny_log(), release=released(tiny_log(), method="token_hash"))
    assert Sensitive().skip_reason(hashed, auxiliary=known) == "the terms of the release are hashed"
    grouped = Pair(log, release=Plink(p=0.5, seed=1).anonymize(log))
    assert "--membership" in str(Sensitive().skip_reason(grouped, auxiliary=known))
    bags = Pair(log, release=Clump(k=2, seed=1).anonymize(log))
    assert Sensitive().skip_reason(bags, auxiliary=known) is None
    with pytest.raises(BadParameter, match="categories must be some of Arts"):
        Sensitive(categories=("Gossip",))
