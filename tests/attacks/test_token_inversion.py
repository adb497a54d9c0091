"""Somebody with a public log of the same kind."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_judging import plain_together

from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.attacks.token_inversion import TokenCounts, TokenInversion
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.formats import read_log
from queryveil.methods import TokenHash
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of, tiny_log
from queryveil.text.tokens import tokenize

KEY = b"sixteen bytes or more"
N_USERS = 12_000
"""Half of them give about a fifth of the top terms away, half of 6,000 no more than a tenth."""
EXCITE = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "excite-small.log"
words = st.lists(st.sampled_from("abcdef"), max_size=8).map(" ".join)


def halves(log: QueryLog, *, seed: int = 1) -> tuple[QueryLog, QueryLog]:
    users = log.frame["user"].unique(maintain_order=True)
    first = users.filter(pl.Series(generator(seed).random(len(users)) < 0.5))
    is_first = pl.col("user").is_in(first.implode())
    return log.with_frame(log.frame.filter(is_first)), log.with_frame(log.frame.filter(~is_first))


def hashed(log: QueryLog) -> Pair:
    release = TokenHash(key=KEY, columns=ColumnPolicy(ids=Ids.KEEP), seed=1).anonymize(log)
    return Pair(log, release=release, key=KEY)


def attacked(pair: Pair, public: QueryLog, **kinds: bool) -> Exposure:
    attacker, auxiliary = TokenInversion(seed=1, **kinds), AuxiliaryData(public=public, key=KEY)
    assert attacker.skip_reason(pair, auxiliary=auxiliary) is None
    return attacker.attack(pair, auxiliary=auxiliary)


@pytest.fixture(scope="module")
def made() -> tuple[QueryLog, QueryLog]:
    return halves(synthesize(users=N_USERS, seed=9).log)


@pytest.fixture(scope="module")
def pair(made: tuple[QueryLog, QueryLog]) -> Pair:
    return hashed(made[0])


@pytest.fixture(scope="module")
def found(made: tuple[QueryLog, QueryLog], pair: Pair) -> Exposure:
    return attacked(pair, made[1])


@pytest.mark.slow
def test_a_log_by_other_people_gives_more_than_a_tenth_of_the_top_terms_away(found: Exposure) -> None:
    assert found.n_targets == 500
    assert found.share > 0.1
    assert found.n_by_chance == 1


@pytest.mark.slow
def test_rank_alone_finds_less_but_more_than_chance(
    made: tuple[QueryLog, QueryLog], pair: Pair, found: Exposure
) -> None:
    by_rank = attacked(pair, made[1], only_rank=True)
    assert (by_rank.attacker, found.attacker) == ("token_rank", "token_inversion")
    assert by_rank.beats_chance
    assert found.interval[0] > by_rank.interval[1]


@pytest.mark.slow
def test_the_same_log_in_clear_gives_nearly_all_away(made: tuple[QueryLog, QueryLog], pair: Pair) -> None:
    assert attacked(pair, made[0]).share > 0.9


@pytest.mark.slow
def test_a_log_of_other_words_gives_nothing_away(made: tuple[QueryLog, QueryLog], pair: Pair) -> None:
    other = made[1].with_frame(made[1].frame.with_columns(pl.col("query").str.replace_all(r"(\w+)", "x${1}")))
    found = attacked(pair, other)
    assert (found.n_found, found.n_by_chance) == (0, 0)


@pytest.mark.slow
def test_a_log_whose_terms_are_mixed_up_finds_about_as_much_as_chance(
    made: tuple[QueryLog, QueryLog], pair: Pair
) -> None:
    # Each public term is written as another one, so that counts tell the wrong term.
    tokens = tokenize(made[1].frame["query"])
    mixed = tokens.vocabulary.gather(generator(2).permutation(tokens.n_terms)).gather(tokens.terms)
    texts = tokens.query_terms.to_series(mixed).alias("query").list.join(" ").gather(tokens.row_query)
    found = attacked(pair, made[1].with_frame(made[1].frame.with_columns(texts)))
    assert found.n_found <= 5


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not EXCITE.is_file(), reason="the Excite log is not beside the checkout")
def test_halves_of_a_small_real_log_find_more_than_chance() -> None:
    log, public = halves(read_log(EXCITE))
    assert attacked(hashed(log), public).beats_chance


@examples(40)
@drawn(st.dictionaries(st.sampled_from(["u1", "u2", "u3"]), st.lists(words, min_size=1, max_size=4), min_size=1))
def test_people_who_use_two_terms_together_are_counted_as_the_definition_reads(queries: dict[str, list[str]]) -> None:
    pair = Pair.pseudonymised(log_of(queries))
    counts = TokenCounts(pair.original_tokens, user=pair.user, n_terms=10, rng=generator(1))
    terms = counts.terms.to_list()
    for i, one in enumerate(terms):
        assert counts.uses[i, 0] == sum(any(one in query.split() for query in asked) for asked in queries.values())
        for j, other in enumerate(terms):
            if i != j:
                assert counts.together[i, j] == plain_together(queries, one, other)
                has_both = [{one, other} <= set(" ".join(asked).split()) for asked in queries.values()]
                assert counts.together[i, j] + counts.apart[i, j] == sum(has_both)


def test_a_log_without_terms_finds_nothing() -> None:
    empty = log_of({"u1": ["?"]})
    found = attacked(hashed(tiny_log()), empty)
    assert (found.n_found, found.n_by_chance) == (0, 0)


def test_it_needs_hashes_a_public_log_and_the_key() -> None:
    pair, log = hashed(tiny_log()), tiny_log()
    attacker = TokenInversion()
    assert attacker.skip_reason(Pair.pseudonymised(log), auxiliary=AuxiliaryData(public=log, key=KEY)) == (
        "the terms of the release are not hashed"
    )
    assert (
        attacker.skip_reason(pair, auxiliary=AuxiliaryData(key=KEY))
        == "needs a public log of the same kind: --public FILE"
    )
    assert (
        attacker.skip_reason(pair, auxiliary=AuxiliaryData(public=log))
        == "needs the key of the hashes to judge it: --key FILE"
    )


def test_no_targets_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="n_targets must be 1 or more"):
        TokenInversion(n_targets=0)
