"""All measures of a release at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from tests.support.examples import examples
from tests.support.releases import released

import queryveil
from queryveil.data import Profiles, QueryLog, Transactions
from queryveil.errors import BadInput
from queryveil.formats import write_log
from queryveil.methods import Clump, Kdelta, Km, Partition, Plink, QueryThreshold, Swap, TokenHash
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import ColumnPolicy, Ids, Release, TimeDetail
from queryveil.rng import generator
from queryveil.synthesis import synthesize, term_values
from queryveil.testing import food, log_of, tiny_log
from queryveil.testing.strategies import clicked_logs
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility import Measures, Score, measure
from queryveil.utility.measuring import run

KEY = b"a secret of many letters"
KEYED = ColumnPolicy(ids=Ids.KEYED, key=KEY)
SECRETS = ("kestrel", "lantern", "mulberry", "persona1", "persona2", "shop.example")


def perfect(found: Measures) -> bool:
    return all(score.value == (0 if score.better == "less" else 1) for score in found)


@examples(40)
@given(log=clicked_logs())
def test_a_log_with_nothing_but_its_ids_changed_loses_nothing(log: QueryLog) -> None:
    assert perfect(measure(log, pseudonymised(log)))


def test_every_measure_of_a_log_has_been_made_of_the_original_itself() -> None:
    log = synthesize(users=1500, seed=8).log
    found = measure(log, released(log, time=TimeDetail.DAY), values=term_values(log, seed=8))
    assert perfect(found)
    assert [score.name for score in found] == [
        "rows_kept",
        "users_kept",
        "terms_kept",
        "queries_kept",
        "log_size_kept",
        "coverage_volume",
        "coverage_tail_5",
        "coverage_tail_10",
        "coverage_tail_50",
        "ranking_kept",
        "click_likelihood_kept",
        "completions_kept",
        "spelling_kept",
        "related_kept",
        "trends_kept",
        "words_as_typed",
        "count_query_error",
        "bid_kept",
        "clicks_kept",
        "impressions_kept",
        "revenue_kept",
        "top_queries_kept",
        "frequency_correlation",
        "top_urls_kept",
        "suggestions_kept",
        "profiles_unchanged",
        "profile_distance",
        "interests_kept",
    ]
    assert [text for text in found.notes if "--public LOG" not in text] == []


def test_a_log_with_rows_in_another_order_and_keyed_ids_loses_nothing() -> None:
    log = synthesize(users=100, seed=8).log
    policy = ColumnPolicy(ids=Ids.KEYED, key=KEY, time=TimeDetail.DAY)
    people = policy.apply(log.frame, Pair.pseudonymised(log).user, rng=generator(1), protected=("url",))
    release = released(log.with_frame(people), ids=Ids.KEYED, time=TimeDetail.DAY)
    found = measure(log, release, key=KEY)
    assert perfect(found)
    assert found.named("profile_distance") is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        Km(k=3, m=2, columns=KEYED, seed=1),
        Km(k=3, m=2, taxonomy=Taxonomy.wordnet(), columns=KEYED, seed=1),
        Km(k=3, m=2, window="7d", seed=1),
        Kdelta(k=3, columns=KEYED, seed=1),
        Swap(k=3, columns=KEYED, seed=1),
        Swap(k=3, seed=1),
        Clump(k=3, seed=1),
        Clump(k=3, unit="query", distinct=True, seed=1),  # type: ignore[arg-type]
        Clump(k=3, dedupe=True, seed=1),
        Partition(k=3, seed=1),
        Plink(p=0.4, seed=1),
        Plink(p=0.4, strict=True, seed=1),
    ],
    ids=lambda method: type(method).__name__,
)
def test_every_method_is_measured_and_shares_lie_between_0_and_1(method: Km | Clump | Plink) -> None:
    log = synthesize(users=150, seed=6).log
    release = method.anonymize(log)
    found = measure(log, release, key=KEY, values=term_values(log, seed=6))
    assert (size := found.named("log_size_kept")) is not None
    assert 0 < size.value < 1
    assert len({score.name for score in found}) == len(found)
    families = {"kept", "coverage", "search", "counting", "advertising", "profiles", "generalisation"}
    assert {score.group for score in found} <= families
    assert all(0 <= score.value <= 1 for score in found if score.is_share)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["user", "query"])
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("dedupe", [False, True])
def test_generalisation_is_what_the_manifest_says(unit: str, distinct: bool, dedupe: bool) -> None:
    log = synthesize(users=120, seed=9).log
    release = Clump(k=4, unit=unit, distinct=distinct, dedupe=dedupe, seed=1).anonymize(log)  # type: ignore[arg-type]
    check_generalisation(log, release)


def test_generalisation_of_sets_is_what_the_manifest_of_partition_says() -> None:
    log = synthesize(users=120, seed=9).log
    check_generalisation(log, Partition(k=4, seed=1).anonymize(log))


def check_generalisation(log: QueryLog, release: Release) -> None:
    found = measure(log, release)
    for name, tolerance in (("ggd", 0.01), ("ncp", 1e-6), ("average_length", 1e-3), ("average_level", 1e-3)):
        assert (score := found.named(name)) is not None
        assert score.value == pytest.approx(release.manifest.measures[name], abs=tolerance)


def test_another_taxonomy_must_be_given() -> None:
    bags = Transactions.from_frame({"items": [["apple", "beef"], ["orange", "beef"]]})
    release = Clump(k=2, taxonomy=food()).anonymize(bags)
    without = measure(bags, release)
    assert without.named("ncp") is None
    assert any("add --taxonomy" in text for text in without.notes)
    with pytest.raises(BadInput, match="does not know"):
        measure(bags, release, taxonomy=Taxonomy.from_pairs([("apple", "thing")]))


@pytest.mark.parametrize(
    ("release_key", "reason"), [(None, "add --key FILE"), (b"another secret of letters", "this key")]
)
def test_where_nobody_can_tell_who_is_who_the_rest_is_measured(release_key: bytes | None, reason: str) -> None:
    log = synthesize(users=60, seed=2).log
    found = measure(log, Swap(k=2, columns=KEYED, seed=1).anonymize(log), key=release_key)
    assert found.named("rows_kept") is not None
    assert found.named("profile_distance") is None
    (note,) = [text for text in found.notes if text.startswith("profiles and interests are left out")]
    assert reason in note


def test_hashed_terms_keep_rows_and_users_and_nothing_to_read() -> None:
    log = synthesize(users=60, seed=2).log
    found = measure(log, TokenHash(key=KEY, columns=ColumnPolicy(ids=Ids.KEEP), seed=1).anonymize(log), key=KEY)
    values = {score.name: score.value for score in found}
    assert (values["rows_kept"], values["users_kept"], values["log_size_kept"], values["queries_kept"]) == (1, 1, 0, 0)
    assert any("terms are hashed" in text for text in found.notes)


def test_a_threshold_keeps_what_is_asked_often() -> None:
    log = log_of({"u1": ["elm", "oak", "yew"], "u2": ["elm", "oak"], "u3": ["elm"]})
    found = measure(log, QueryThreshold(k=2, columns=ColumnPolicy(ids=Ids.KEEP)).anonymize(log))
    values = {score.name: score.value for score in found}
    assert (values["rows_kept"], values["queries_kept"], values["users_kept"]) == pytest.approx((5 / 6, 2 / 3, 1))


def test_what_is_side_by_side_already_is_taken() -> None:
    log = tiny_log()
    release = Km(k=2, m=1).anonymize(log)
    assert run(Pair(log, release=release)) == measure(log, release)


def test_files_are_taken_as_well_as_values(tmp_path: Path) -> None:
    log = log_of({f"persona{i}": ["kestrel lantern", "mulberry"] for i in range(4)})
    write_log(log, tmp_path / "log.parquet")
    release = Km(k=2, m=2).anonymize(log)
    release.save(tmp_path / "release")
    assert queryveil.measure(tmp_path / "log.parquet", tmp_path / "release") == measure(log, release)


def test_another_log_than_it_was_made_from_is_noted() -> None:
    found = measure(log_of({"u1": ["elm", "oak"]}), pseudonymised(log_of({"u1": ["elm"]})))
    assert any("made from 1 rows, and there are 2" in text for text in found.notes)


def test_a_released_log_cannot_be_measured_by_profiles() -> None:
    with pytest.raises(BadInput, match="the log that it was made from"):
        measure(Profiles.from_dicts({"u1": {"elm": 1}}), pseudonymised(tiny_log()))


@pytest.mark.slow
def test_personalised_search_is_measured_with_the_membership() -> None:
    log = synthesize(users=60, seed=3).log
    grouping = Plink(p=0.4, seed=1).group(log)
    found = measure(log, grouping.release, membership=grouping.membership)
    assert (score := found.named("average_precision_at_10")) is not None
    assert 0 < score.value < 1
    without = measure(log, grouping.release)
    assert without.named("average_precision_at_10") is None
    assert any("add --membership FILE" in text for text in without.notes)


@pytest.mark.slow
def test_groups_of_equals_search_as_their_members_do() -> None:
    people = Profiles.from_dicts({f"u{i}": {"kitten": 1.0, "music": 1.0, "water": 1.0, "city": 1.0} for i in range(6)})
    grouping = Plink(p=0.5, seed=1).group(people)
    found = measure(people, grouping.release, membership=grouping.membership)
    assert (score := found.named("average_precision_at_10")) is not None
    assert score.value == pytest.approx(1)


def test_an_empty_log_is_measured_too() -> None:
    nothing = log_of({})
    for release in (Km(k=2, m=1).anonymize(nothing), Clump(k=2).anonymize(nothing), Plink().anonymize(nothing)):
        assert (size := measure(nothing, release).named("log_size_kept")) is not None
        assert size.value == 1


def test_neither_scores_nor_notes_nor_tables_show_text_of_the_log() -> None:
    rows = {"user": ["persona1", "persona2"], "query": ["kestrel lantern", "mulberry"], "url": ["shop.example"] * 2}
    log = QueryLog.from_frame(rows)
    for method in (Km(k=2, m=1), Clump(k=2), Plink(p=0.5)):
        found = measure(log, method.anonymize(log))
        shown = repr(found) + str(found.to_dict()) + found._repr_html_()
        assert not any(secret in shown for secret in SECRETS)


def test_the_values_of_a_measure_say_themselves_in_words() -> None:
    rows = Score(name="rows_kept", value=0.5, better="more", about="of the rows", group="kept", is_share=True)
    distance = Score(name="profile_distance", value=0.25, better="less", about="apart", group="profiles")
    assert rows.in_words() == "rows kept: 50 % of the rows (more is better)"
    both = Measures(scores=(rows,), notes=("a",)) + Measures(scores=(distance,), notes=("a", "b"))
    assert both == Measures(scores=(rows, distance), notes=("a", "b"))
    assert both.by_group() == {"kept": (rows,), "profiles": (distance,)}
    assert both.named("nosuch") is None
    assert both.to_dict()["scores"] == [rows.to_dict(), distance.to_dict()]
    assert "<td" in both._repr_html_()
