"""What is still there of rows, users, terms, queries and the log as a whole."""

from __future__ import annotations

from collections import Counter

import msgspec
import polars as pl
import pytest
from hypothesis import given
from tests.support.examples import examples
from tests.support.releases import released

from queryveil.data import Format, Layout, Profiles, QueryLog
from queryveil.methods import Clump, Kdelta, Km, Plink
from queryveil.pairing import pseudonymised
from queryveil.release import ColumnPolicy, Ids, Release
from queryveil.synthesis import synthesize
from queryveil.testing import five_baskets, food, log_of
from queryveil.testing.strategies import PLANTS, logs
from queryveil.text import join_terms
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility import Measures, measure


def values(found: Measures) -> dict[str, float]:
    return {score.name: score.value for score in found if score.group == "kept"}


def test_the_measures_of_a_small_log_are_those_counted_by_hand() -> None:
    before = log_of({"u1": ["Red wine", "wine!"], "u2": ["red wine", "cellar key"], "u3": [""]})
    after = log_of({"u1": ["wine"], "u2": ["red wine", "key"]})
    assert values(measure(before, released(after))) == pytest.approx(
        {
            "rows_kept": 3 / 5,
            "users_kept": 2 / 3,
            "terms_kept": 3 / 4,
            # red wine and wine are there, cellar key is not; the empty query is none
            "queries_kept": 2 / 3,
            "log_size_kept": 4 / 7,
        }
    )


def test_what_a_release_has_more_of_is_not_kept() -> None:
    before = log_of({"u1": ["elm", "oak"]})
    found = values(measure(before, released(log_of({"u1": ["elm", "elm", "elm", "yew"]}))))
    assert (found["log_size_kept"], found["terms_kept"], found["queries_kept"]) == (0.5, 0.5, 0.5)


def test_made_up_rows_are_taken_out() -> None:
    log = log_of({"u1": ["elm"] * 4})
    release = pseudonymised(log)
    manifest = msgspec.structs.replace(release.manifest, changed={"rows_added": 1})
    found = values(measure(log, Release(data=log, manifest=manifest)))
    assert (found["rows_kept"], found["log_size_kept"]) == (0.75, 0.75)


def test_kdelta_keeps_no_more_rows_than_it_left_of_those_that_were_there() -> None:
    log = synthesize(users=300, seed=5).log
    release = Kdelta(k=3, columns=ColumnPolicy(ids=Ids.KEEP), seed=1).anonymize(log)
    added = release.manifest.changed["rows_added"]
    assert added > 0
    found = values(measure(log, release))
    assert found["rows_kept"] == pytest.approx((release.log.n_rows - added) / log.n_rows)
    assert found["log_size_kept"] < found["rows_kept"] + 0.1


@examples(40)
@given(log=logs())
def test_km_keeps_what_its_manifest_does_not_count_as_removed(log: QueryLog) -> None:
    release = Km(k=2, m=1, bot_threshold=None, columns=ColumnPolicy(ids=Ids.KEEP)).anonymize(log)
    found = values(measure(log, release))
    before, after = (_terms(each) for each in (log, release.log))
    n_before = sum(before.values())
    assert found["log_size_kept"] == pytest.approx(sum((before & after).values()) / n_before if n_before else 1)
    removed = release.manifest.removed["term_occurrences"]
    assert found["log_size_kept"] == pytest.approx((n_before - removed) / n_before if n_before else 1)
    assert found["rows_kept"] == pytest.approx(release.log.n_rows / log.n_rows if log.n_rows else 1)


def _terms(log: QueryLog) -> Counter[str]:
    return Counter(term for query in join_terms(log.frame["query"]).to_list() for term in query.split())


def test_with_windows_a_user_who_is_there_twice_counts_once() -> None:
    times = ["2024-03-04 10:00:00", "2024-03-05 10:00:00"] * 2 + ["2024-03-04 10:00:00"]
    rows = {"user": ["u1", "u1", "u2", "u2", "u3"], "query": ["elm", "oak", "elm", "oak", "yew"], "time": times}
    log = QueryLog.from_frame(rows)
    release = Km(k=2, m=1, window="1d").anonymize(log)
    assert release.log.n_users == 4
    assert values(measure(log, release))["users_kept"] == pytest.approx(2 / 3)


def plants() -> tuple[QueryLog, Taxonomy]:
    return log_of({"u1": ["birch cedar"], "u2": ["elm cedar"], "u3": ["yew"]}), Taxonomy.from_pairs(PLANTS)


def test_a_term_that_moved_up_is_kept_in_part() -> None:
    log, taxonomy = plants()
    release = Km(k=2, m=2, taxonomy=taxonomy, columns=ColumnPolicy(ids=Ids.KEEP)).anonymize(log)
    assert sorted(release.log.frame["query"].to_list()) == ["<tree> cedar", "<tree> cedar"]
    found = measure(log, release, taxonomy=taxonomy)
    # tree stands for 3 of 7 leaves, so that 2/6 of birch and of elm are lost; yew is gone
    assert values(found)["log_size_kept"] == pytest.approx((2 + 2 * (1 - 2 / 6)) / 5)
    assert values(found)["terms_kept"] == pytest.approx(1 / 4)
    assert (loss := found.named("loss")) is not None
    assert loss.value == release.manifest.measures["loss"]


def test_without_its_taxonomy_what_moved_up_counts_as_lost_and_a_note_says_so() -> None:
    log, taxonomy = plants()
    release = Km(k=2, m=2, taxonomy=taxonomy, columns=ColumnPolicy(ids=Ids.KEEP)).anonymize(log)
    found = measure(log, release)
    assert values(found)["log_size_kept"] == pytest.approx(2 / 5)
    assert any("add --taxonomy" in text for text in found.notes)


def test_of_transactions_the_information_is_kept_that_is_not_distorted() -> None:
    release = Clump(k=2, taxonomy=food(), seed=1).anonymize(five_baskets())
    found = measure(five_baskets(), release, taxonomy=food())
    assert values(found)["log_size_kept"] == pytest.approx(1 - release.manifest.measures["ncp"], abs=1e-5)
    without = measure(five_baskets(), release)
    assert 0 < values(without)["log_size_kept"] < values(found)["log_size_kept"]


def test_words_outside_the_taxonomy_are_lost_in_transactions() -> None:
    log = log_of({"u1": ["apple zanzibar"], "u2": ["apple zanzibar"]})
    found = measure(log, Clump(k=2, taxonomy=food()).anonymize(log), taxonomy=food())
    assert values(found) == {"users_kept": 1, "terms_kept": 0.5, "log_size_kept": 0.5}


def test_transactions_of_queries_keep_rows() -> None:
    log = log_of({"u1": ["apple", "zanzibar"], "u2": ["apple"]})
    found = values(measure(log, Clump(k=2, unit="query", taxonomy=food()).anonymize(log), taxonomy=food()))  # type: ignore[arg-type]
    assert found["rows_kept"] == pytest.approx(2 / 3)
    assert "users_kept" not in found


def test_a_file_of_transactions_is_measured_by_its_items() -> None:
    frame = {"user": ["1", "2"], "query": ["Apple beef", "Apple beef"]}
    log = QueryLog.from_frame(frame, layout=Layout(format=Format.TRANSACTIONS))
    found = measure(log, pseudonymised(log))
    assert set(values(found).values()) == {1}
    assert found.named("profile_distance") is None
    assert any("items of transactions are no queries" in text for text in found.notes)


def test_groups_keep_the_pairs_of_people_and_terms_that_they_speak_of() -> None:
    people = Profiles.from_dicts({"u1": {"Kitten": 1, "riding": 0.8}, "u2": {"pup": 0.6, "equitation": 1}})
    release = Plink(p=0.5).anonymize(people)
    assert values(measure(people, release)) == {"users_kept": 1, "terms_kept": 1, "log_size_kept": 1}
    log = log_of({"u1": ["kitten zzyzx"], "u2": ["kitten zzyzx", "kitten"], "u3": ["zzyzx"]})
    found = values(measure(log, Plink(p=0.5).anonymize(log)))
    # The taxonomy does not know zzyzx, so that its three pairs are lost, and u3 with them.
    assert found == pytest.approx({"users_kept": 2 / 3, "terms_kept": 1 / 2, "log_size_kept": 2 / 5})


def test_strict_groups_keep_fewer_pairs() -> None:
    log = synthesize(users=200, seed=2).log
    loose, strict = (measure(log, Plink(p=0.4, strict=strict, seed=1).anonymize(log)) for strict in (False, True))
    assert values(strict)["log_size_kept"] < values(loose)["log_size_kept"] <= 1


def test_a_column_of_the_release_that_holds_numbers_only_is_no_concern() -> None:
    frame = pl.DataFrame({"user": ["1", "2"], "query": ["7", "7"]})
    log = QueryLog.from_frame(frame)
    assert set(values(measure(log, pseudonymised(log))).values()) == {1}
