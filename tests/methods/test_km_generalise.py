"""km with a taxonomy: terms move up before they go."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules

from queryveil import Km, QueryLog, Taxonomy, read_log, verify
from queryveil.errors import BadParameter
from queryveil.methods import Target
from queryveil.release import ColumnPolicy
from queryveil.testing import log_of
from queryveil.testing.strategies import PLANTS, logs

ANIMALS = Taxonomy.from_pairs(
    [("pet", "animal"), ("cat", "pet"), ("dog", "pet"), ("wild", "animal"), ("lion", "wild"), ("wolf", "wild")]
)
KEEP_IDS = ColumnPolicy(ids="keep")  # type: ignore[arg-type]
BY_DAY = ColumnPolicy(time="day")  # type: ignore[arg-type]


def kept(log: QueryLog, method: Km) -> dict[str, list[str]]:
    frame = method.anonymize(log).log.frame.sort("user")
    return {user: query.split() for user, query in frame.select("user", "query").iter_rows()}


def test_a_term_that_would_have_to_go_moves_up_to_what_it_is_a_kind_of() -> None:
    log = log_of({"1": ["cat"], "2": ["dog"], "3": ["lion"], "4": ["lion"]})
    method = Km(k=2, m=1, taxonomy=ANIMALS, columns=KEEP_IDS)
    assert kept(log, method) == {"1": ["<pet>"], "2": ["<pet>"], "3": ["lion"], "4": ["lion"]}
    assert Km(k=2, m=1).anonymize(log).log.n_users == 2


def test_a_term_at_the_root_or_unknown_to_the_taxonomy_is_deleted() -> None:
    log = log_of({"1": ["cat zzyzx"], "2": ["lion"]})
    release = Km(k=2, m=1, taxonomy=ANIMALS).anonymize(log)
    assert release.log.n_rows == 0
    assert release.manifest.measures == {"loss": 1.0}
    assert any("taxonomy does not know" in warning for warning in release.manifest.warnings)


def test_the_loss_is_the_mean_over_user_terms() -> None:
    log = log_of({"1": ["cat"], "2": ["dog"], "3": ["lion"], "4": ["lion"]})
    # cat and dog become pet, one of whose two leaves of four each was: 1/3 each; the lions stay.
    release = Km(k=2, m=1, taxonomy=ANIMALS).anonymize(log)
    assert release.manifest.measures["loss"] == pytest.approx(1 / 6, abs=1e-6)
    assert release.manifest.changed == {"term_occurrences_moved_up": 2}


def test_a_node_of_several_words_is_one_item() -> None:
    log = log_of({"1": ["kitten"], "2": ["pup"]})
    queries = Km(k=2, m=1, taxonomy=Taxonomy.wordnet()).anonymize(log).log.frame["query"].to_list()
    assert queries == ["<young_mammal>", "<young_mammal>"]


PLANT = Taxonomy.from_pairs(PLANTS)
METHODS = [Km(k=2, m=m, taxonomy=PLANT) for m in (1, 2, 3)] + [
    Km(k=2, m=2, taxonomy=PLANT, window="1d", columns=BY_DAY)
]
SKIPPED = {"no_term_is_invented"}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=range(len(METHODS)))
@examples(6)
@given(log=logs())
def test_house_rules(method: Km, log: QueryLog) -> None:
    keep_the_house_rules(method, log, but=SKIPPED)


@examples(40)
@given(log=logs(), k=st.integers(2, 4), m=st.integers(1, 3))
def test_nothing_is_released_that_has_no_original_below_it(log: QueryLog, k: int, m: int) -> None:
    verdict = verify(Km(k=k, m=m, taxonomy=PLANT).anonymize(log), original=log, taxonomy=PLANT)
    assert verdict.holds, verdict.in_words()


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"target": Target.USERS}, "target must be log_size with a taxonomy, got users"),
        ({"m": None}, "m must be a number with a taxonomy"),
    ],
)
def test_settings_that_do_not_go_with_a_taxonomy_are_refused(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Km(taxonomy=ANIMALS, **settings_)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(("m", "most"), [(2, 0.008), (3, 0.025)])
def test_a_benchmark_set_loses_far_less_than_by_deletion(m: int, most: float) -> None:
    path = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "bms-webview-1.txt"
    if not path.exists():
        pytest.skip("bms-webview-1.txt is not beside the checkout")
    log = read_log(path, format="transactions")
    tree = Taxonomy.balanced(log.frame["query"].str.split(" ").explode(), fan_out=5)
    release = Km(k=5, m=m, taxonomy=tree).anonymize(log)
    assert verify(release, original=log, taxonomy=tree).holds
    assert release.manifest.measures["loss"] < most
    assert Km(k=5, m=m).anonymize(log).manifest.removed["term_occurrences"] > 0.15 * 149_639
