"""An original and a release side by side."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.releases import released, released_bags, timed_log

from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadInput
from queryveil.methods import Clump, Kdelta, Km, Plink, Pseudonymise, Swap, TokenHash
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids, Release, TimeDetail
from queryveil.synthesis import synthesize
from queryveil.testing.logs import food, log_of, tiny_log
from queryveil.testing.strategies import PLANTS, clicked_logs, logs
from queryveil.text.histories import Histories
from queryveil.text.taxonomy import Taxonomy

KEY, OTHER_KEY = b"opensesame-opensesame", b"closesesame-closesesame"


def words(pair: Pair, histories: Histories, number: int) -> set[str]:
    return set(pair.vocabulary.gather(histories.user_terms.row(number)).to_list())


def people(pair: Pair, candidate: int) -> list[str]:
    return pair.users.gather(pair.identity.users.row(candidate)).to_list()


def renamed(release: Release) -> tuple[Release, dict[str, str]]:
    """Return a release with kept ids as one with fresh ids, and who is who."""
    before = release.log.frame["user"].unique(maintain_order=True)
    names = {user: f"n{number}" for number, user in enumerate(before)}
    frame = release.log.frame.with_columns(pl.col("user").replace_strict(names, return_dtype=pl.String))
    columns = msgspec.structs.replace(release.manifest.columns, ids=Ids.FRESH)
    manifest = msgspec.structs.replace(release.manifest, columns=columns)
    return Release(data=release.log.with_frame(frame), manifest=manifest), {name: user for user, name in names.items()}


def test_both_sides_number_terms_alike() -> None:
    original = log_of({"u1": ["Red wine"], "u2": ["cheese"]})
    pair = Pair(original, release=released(log_of({"u2": ["RED cheese!"], "u1": ["cedar"]})))
    assert [words(pair, pair.before, user) for user in (0, 1)] == [{"red", "wine"}, {"cheese"}]
    assert [words(pair, pair.after, candidate) for candidate in (0, 1)] == [{"red", "cheese"}, {"cedar"}]
    assert [people(pair, candidate) for candidate in (0, 1)] == [["u2"], ["u1"]]
    assert (pair.n_users, pair.n_candidates, pair.identity.exact) == (2, 2, True)


def test_the_pseudonymised_original_is_the_original() -> None:
    pair = Pair.pseudonymised(tiny_log())
    assert pair.before.terms.tolist() == pair.after.terms.tolist()
    assert pair.identity.sole_user().tolist() == [0, 1, 2, 3]


@examples(40)
@given(log=logs())
def test_any_log_can_stand_beside_its_release(log: QueryLog) -> None:
    for release in (
        Pseudonymise(seed=1).anonymize(log),
        Km(k=2, m=2, columns=ColumnPolicy(ids=Ids.KEEP), seed=1).anonymize(log),
        Km(k=2, m=2, seed=1).anonymize(log),
    ):
        pair = Pair(log, release=release)
        assert pair.before.n_users == pair.n_users == log.n_users
        assert pair.after.n_users == pair.n_candidates == release.log.n_users
        assert len(pair.candidate) == release.log.n_rows


@examples(40)
@given(log=clicked_logs(), detail=st.sampled_from(sorted({*TimeDetail} - {TimeDetail.SHARED})), has_url=st.booleans())
def test_with_fresh_ids_the_right_person_is_always_among_those_a_candidate_may_be(
    log: QueryLog, detail: TimeDetail, has_url: bool
) -> None:
    columns = ColumnPolicy(ids=Ids.KEEP, time=detail, keep=("url",) if has_url else ())
    release, truth = renamed(Km(k=2, m=2, columns=columns, seed=1).anonymize(log))
    pair = Pair(log, release=release)
    assert not pair.identity.exact
    for number, candidate in enumerate(pair.candidates):
        assert truth[candidate] in people(pair, number)


def test_people_who_did_the_same_are_as_likely() -> None:
    log = log_of({"u1": ["amber"], "u2": ["amber"], "u3": ["amber birch"]})
    pair = Pair(log, release=released(log_of({"n1": ["amber"], "n2": ["birch amber"]}), ids=Ids.FRESH))
    assert people(pair, 0) == ["u1", "u2", "u3"]
    assert pair.identity.chance(np.array([0, 0, 1]), user=np.array([0, 2, 2])).tolist() == pytest.approx(
        [1 / 3, 1 / 3, 1]
    )


def test_the_day_tells_people_apart_who_asked_the_same() -> None:
    log = timed_log([("u1", "amber", 1), ("u2", "amber", 30), ("u3", "amber", None)])
    after = timed_log([("n1", "amber", 24), ("n2", "amber", 0), ("n3", "amber", None)])
    pair = Pair(log, release=released(after, ids=Ids.FRESH, time=TimeDetail.DAY))
    assert [people(pair, candidate) for candidate in range(3)] == [["u2"], ["u1"], ["u3"]]
    dropped = Pair(log, release=released(QueryLog(frame=after.frame.drop("time")), ids=Ids.FRESH))
    assert people(dropped, 0) == ["u1", "u2", "u3"]


def test_a_log_without_times_or_without_a_single_one_is_told_by_its_terms() -> None:
    log = timed_log([("u1", "amber", None), ("u2", "birch", None)])
    for original in (log, QueryLog(frame=log.frame.drop("time"))):
        pair = Pair(original, release=Km(k=2, m=1, seed=1).anonymize(timed_log([])))
        assert pair.n_candidates == 0
        pair = Pair(original, release=released(original, ids=Ids.FRESH))
        assert pair.identity.sole_user().tolist() == [0, 1]


def test_the_clicked_url_tells_people_apart_and_none_clicked_is_one_more() -> None:
    columns = {"user": ["u1", "u2", "u3"], "query": ["amber"] * 3, "url": ["a.example", "b.example", None]}
    log = QueryLog.from_frame(columns)
    fresh = QueryLog.from_frame(columns | {"user": ["n1", "n2", "n3"]})
    assert Pair(log, release=released(fresh, ids=Ids.FRESH)).identity.sole_user().tolist() == [0, 1, 2]


def test_an_empty_column_of_urls_tells_nothing() -> None:
    # In AOL's format a dropped column is written, and read again, as an empty one.
    log = QueryLog.from_frame({"user": ["u1", "u2"], "query": ["a", "b"], "url": ["x.example", None]})
    after = log.with_frame(log.frame.with_columns(url=pl.lit(None, pl.String)))
    pair = Pair(log, release=released(after, ids=Ids.FRESH))
    assert pair.identity.sole_user().tolist() == [0, 1]


def test_an_empty_release_and_an_empty_log_have_nobody() -> None:
    nothing = log_of({})
    for original in (tiny_log(), nothing):
        for release in (released(nothing), released(nothing, ids=Ids.FRESH), released_bags([])):
            pair = Pair(original, release=release)
            assert pair.n_candidates == 0
            assert pair.after.n_users == 0
            assert len(pair.after.terms) == 0


def test_items_with_blanks_are_one_term_and_plain_ones_are_the_words_of_queries() -> None:
    log = log_of({"u1": ["Milk, Bread!"], "u2": ["ice cream"]})
    pair = Pair(log, release=released_bags([["milk", "bread"], ["ice cream", "food"], []]))
    assert words(pair, pair.after, 0) == {"milk", "bread"}
    assert words(pair, pair.after, 1) == {"ice_cream", "food"}
    assert words(pair, pair.after, 2) == set()
    # Case and commas of the queries must not hide who it is.
    assert [people(pair, candidate) for candidate in range(3)] == [["u1"], [], []]


def test_items_of_a_transaction_file_stay_as_they_stand() -> None:
    log = QueryLog(
        frame=pl.DataFrame({"user": ["t1", "t2"], "query": ["X-1 x-1", "y/2"]}),
        layout=Layout(format=Format.TRANSACTIONS),
    )
    pair = Pair(log, release=released_bags([["X-1"], ["y/2", "<top>"]]))
    assert words(pair, pair.before, 0) == {"X-1", "x-1"}
    assert words(pair, pair.after, 1) == {"y/2", "<top>"}
    assert [people(pair, candidate) for candidate in (0, 1)] == [["t1"], ["t2"]]
    by_km = Pair(log, release=Km(k=2, m=1, bot_threshold=None, seed=1).anonymize(log))
    assert by_km.n_candidates == 0


def test_nodes_of_a_taxonomy_in_a_log_are_no_words() -> None:
    log = log_of({"u1": ["Birch", "fern"], "u2": ["cedar", "fern"], "u3": ["fern!"]})
    release = Km(k=2, m=1, taxonomy=Taxonomy.from_pairs(PLANTS), seed=1).anonymize(log)
    pair = Pair(log, release=release)
    found = set().union(*(words(pair, pair.after, number) for number in range(pair.n_candidates)))
    assert found == {"fern", "<tree>"}
    assert words(pair, pair.before, 0) == {"birch", "fern"}


def test_keyed_ids_need_the_key_that_was_used() -> None:
    columns = ColumnPolicy(ids=Ids.KEYED, key=KEY)
    release = Pseudonymise(columns=columns, seed=1).anonymize(tiny_log())
    pair = Pair(tiny_log(), release=release, key=KEY)
    assert pair.identity.exact
    assert sorted(pair.identity.sole_user().tolist()) == [0, 1, 2, 3]
    with pytest.raises(BadInput, match="the key is needed"):
        _ = Pair(tiny_log(), release=release).identity
    with pytest.raises(BadInput, match="none of its user ids comes from this key"):
        _ = Pair(tiny_log(), release=release, key=OTHER_KEY).identity


def test_kept_ids_that_the_original_has_none_of_are_an_error() -> None:
    with pytest.raises(BadInput, match="none of its user ids is in the original"):
        _ = Pair(tiny_log(), release=released(log_of({"somebody": ["jaguar"]}))).identity


@pytest.mark.parametrize("ids", [Ids.FRESH, Ids.KEYED])
def test_a_user_has_a_candidate_in_every_window(ids: Ids) -> None:
    rows = [(user, query, hours) for user in ("u1", "u2") for query, hours in (("amber birch", 1), ("cedar", 30))]
    log = timed_log(rows)
    columns = ColumnPolicy(ids=ids, key=KEY if ids is Ids.KEYED else None)
    pair = Pair(log, release=Km(k=2, m=2, window="1d", columns=columns, seed=1).anonymize(log), key=KEY)
    assert pair.n_candidates == 4
    assert [people(pair, candidate) for candidate in range(4)] == [["u1", "u2"]] * 4
    assert pair.identity.n_candidates_of(2).tolist() == [2, 2]


def test_hashed_terms_need_the_key_unless_ids_were_kept() -> None:
    log = log_of({"u1": ["Red wine", "?"], "u2": ["cheese, red"]})
    release = TokenHash(key=KEY, seed=1).anonymize(log)
    pair = Pair(log, release=release, key=KEY)
    assert sorted(pair.identity.sole_user().tolist()) == [0, 1]
    asked = dict(zip(pair.candidates, pair.identity.sole_user(), strict=True))
    for user, query in release.log.frame.rows():
        assert len(query.split()) == 2
        assert asked[user] in (0, 1)
    with pytest.raises(BadInput, match="its terms are hashed"):
        _ = Pair(log, release=release).identity
    with pytest.raises(BadInput, match="none of its terms comes from this key"):
        _ = Pair(log, release=release, key=OTHER_KEY).identity
    kept = TokenHash(columns=ColumnPolicy(ids=Ids.KEEP), seed=1).anonymize(log)
    pair = Pair(log, release=kept)
    assert pair.identity.exact
    assert not set(pair.after.terms.tolist()) & set(pair.before.terms.tolist())


def test_nobody_can_tell_who_is_who_among_swapped_rows_with_fresh_ids() -> None:
    log = log_of({f"u{i}": [f"soccer cup {i}"] for i in range(6)})
    with pytest.raises(BadInput, match="its user ids are fresh"):
        _ = Pair(log, release=Swap(k=2, seed=1).anonymize(log)).identity


def test_groups_are_no_people() -> None:
    log = synthesize(users=40, seed=3).log
    pair = Pair(log, release=Plink(seed=1).anonymize(log))
    assert pair.n_candidates > 0
    assert len(pair.identity.users.values) == 0
    assert len(pair.after.terms) > 0


def test_most_people_are_told_right_after_every_method_on_a_made_up_log() -> None:
    log = synthesize(users=500, seed=5).log
    keep = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.DAY)
    for method, least in ((Km(k=3, m=2, columns=keep, seed=1), 1.0), (Kdelta(k=3, columns=keep, seed=1), 0.8)):
        release, truth = renamed(method.anonymize(log))
        pair = Pair(log, release=release)
        right = [truth[name] in people(pair, number) for number, name in enumerate(pair.candidates)]
        assert len(right) > 100
        assert np.mean(right) >= least


def test_a_transaction_may_be_anybody_who_asked_for_its_plain_items() -> None:
    log = log_of({"u1": ["Apple", "milk"], "u2": ["milk apple"], "u3": ["beef"], "u4": ["chicken"]})
    release = Clump(k=2, taxonomy=food(), seed=1).anonymize(log)
    pair = Pair(log, release=release)
    assert not pair.identity.exact
    found = [(words(pair, pair.after, number), people(pair, number)) for number in range(4)]
    assert found.count(({"apple", "milk"}, ["u1", "u2"])) == 2
    # Of what was generalised nobody can be told.
    assert found.count(({"meat"}, [])) == 2


def test_no_repr_shows_users_or_texts() -> None:
    shown = repr(Pair.pseudonymised(log_of({"persona": ["kestrel"]})))
    assert "persona" not in shown
    assert "kestrel" not in shown
