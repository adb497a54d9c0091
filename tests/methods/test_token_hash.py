"""TokenHash: equal terms, equal hashes, in their order; keys, and what is said."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules

from queryveil import TokenHash, verify
from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadParameter, NothingPromised
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.synthesis import synthesize
from queryveil.testing import log_of
from queryveil.testing.strategies import clicked_logs, logs
from queryveil.text import join_terms

KEY = b"a secret of the house"
OTHER_KEY = b"another secret of the house"
KEPT = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP)
METHODS = [
    TokenHash(key=KEY),
    TokenHash(),
    TokenHash(key=KEY, columns=ColumnPolicy(ids=Ids.KEYED, key=KEY, time=TimeDetail.DROP)),
]


def hashed(term: str, *, key: bytes = KEY) -> str:
    """The definition, by itself."""
    return hmac.new(key, b"queryveil token\0" + term.encode(), hashlib.sha256).hexdigest()[:16]


def rows(log: QueryLog) -> Counter[tuple[object, ...]]:
    return Counter(log.frame.iter_rows())


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=["key", "no key", "keyed ids"])
@examples(8)
@given(log=st.one_of(logs(), logs(with_time=False), clicked_logs()))
def test_token_hash_keeps_the_house_rules(method: TokenHash, log: QueryLog) -> None:
    keep_the_house_rules(method, log)


@pytest.mark.slow
def test_token_hash_keeps_the_house_rules_on_a_log_of_sessions() -> None:
    keep_the_house_rules(TokenHash(key=KEY), synthesize(users=60, seed=2).log)


@examples(50)
@given(log=logs())
def test_every_term_of_every_row_is_its_hash_in_its_place(log: QueryLog) -> None:
    expected = log.frame.with_columns(
        pl.Series(
            "query", [" ".join(map(hashed, text.split())) for text in join_terms(log.frame["query"])], dtype=pl.String
        )
    )
    released = TokenHash(key=KEY, columns=KEPT).anonymize(log)
    assert rows(released.log) == rows(log.with_frame(expected.filter(pl.col("query") != "")))


def test_order_and_repetition_stay_and_case_and_punctuation_go() -> None:
    log = log_of({"persona1": ["Kestrel! lantern-KESTREL", "?", ""]})
    release = TokenHash(key=KEY).anonymize(log)
    bird, lamp = hashed("kestrel"), hashed("lantern")
    assert release.log.frame["query"].to_list() == [f"{bird} {lamp} {bird}"]
    assert release.manifest.removed["rows_without_terms_before"] == 2
    assert release.manifest.changed == {"term_occurrences_hashed": 3}


def test_users_of_whom_nothing_is_left_are_counted() -> None:
    release = TokenHash().anonymize(log_of({"persona1": ["kestrel"], "persona2": ["?"]}))
    assert release.manifest.removed["users_left_empty"] == 1
    assert release.manifest.counts.n_users_after == release.log.n_users == 1


def test_one_key_gives_the_same_hashes_and_another_key_others() -> None:
    log = log_of({"persona1": ["kestrel"]})
    once, twice = (TokenHash(key=KEY).anonymize(log).log.frame["query"].item() for _ in range(2))
    assert once == twice != TokenHash(key=OTHER_KEY).anonymize(log).log.frame["query"].item()


def test_without_a_key_every_run_has_hashes_of_its_own() -> None:
    log = log_of({"persona1": ["kestrel"]})
    once, twice = (TokenHash().anonymize(log) for _ in range(2))
    assert once.log.frame["query"].item() != twice.log.frame["query"].item()
    assert not any("key" in warning for warning in once.manifest.warnings)


def test_a_seed_repeats_the_hashes_and_is_warned_of() -> None:
    log = log_of({"persona1": ["kestrel"]})
    once, twice, other = (TokenHash(seed=seed).anonymize(log) for seed in (7, 7, 8))
    assert once.log.frame.equals(twice.log.frame)
    assert once.log.frame["query"].item() != other.log.frame["query"].item()
    assert any("the key was drawn with the seed" in warning for warning in once.manifest.warnings)


def test_a_term_and_a_user_of_one_name_have_different_pseudonyms_under_one_key() -> None:
    policy = ColumnPolicy(ids=Ids.KEYED, key=KEY)
    user, query = TokenHash(key=KEY, columns=policy).anonymize(log_of({"kestrel": ["kestrel"]})).log.frame.row(0)
    assert not user.startswith(query)


def test_what_leaves_by_default_and_what_is_said_of_kept_columns() -> None:
    log = synthesize(users=20, seed=1).log
    release = TokenHash(key=KEY).anonymize(log)
    assert release.log.columns == ["user", "query", "time"]
    assert (release.log.frame["time"] == release.log.frame["time"].dt.truncate("1d")).all()
    said = "columns that were kept are not hashed: a clicked URL tells what the query was"
    assert said not in release.manifest.warnings
    assert said in TokenHash(key=KEY, columns=ColumnPolicy(keep=("url",))).anonymize(log).manifest.warnings


def test_the_manifest_says_that_nothing_is_promised_and_holds_no_key() -> None:
    release = TokenHash(key=KEY).anonymize(log_of({"persona1": ["kestrel"]}))
    assert release.manifest.warnings[0].startswith("promises nothing: equal terms have equal hashes")
    assert release.manifest.parameters == {}
    with pytest.raises(NothingPromised, match="promises nothing: equal terms have equal hashes"):
        verify(release)
    for shown in (repr(release), repr(TokenHash(key=KEY, seed=987654))):
        assert "secret" not in shown
        assert "987654" not in shown


def test_items_of_transactions_are_hashed_as_they_stand() -> None:
    bags = QueryLog(frame=log_of({"1": ["A-1 a-1", "7"]}).frame, layout=Layout(format=Format.TRANSACTIONS))
    released = TokenHash(key=KEY, columns=KEPT).anonymize(bags).log.frame["query"]
    assert sorted(released) == sorted([f"{hashed('A-1')} {hashed('a-1')}", hashed("7")])


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"key": b"short"}, "key must be at least 16 secret bytes, got 5 bytes"),
        ({"key": "a text and no bytes"}, "key must be bytes, or none for a new one, got a str"),
        ({"seed": -1}, "seed must be 0 or more, got a negative number"),
    ],
)
def test_bad_settings_are_one_line_that_shows_no_secret(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(BadParameter) as raised:
        TokenHash(**settings_)  # type: ignore[arg-type]
    assert str(raised.value) == message
