"""The attackers on a real log, which stays outside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryveil.attack import Rebuild1, Rebuild2, Rebuild3, Rebuild4, Seen, Truth, as_released, match
from queryveil.columns import ColumnPolicy, Ids
from queryveil.formats import read_log
from queryveil.methods import Swap

EXCITE = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "excite-small.log"
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not EXCITE.is_file(), reason="the Excite log is not beside the checkout"),
]


@pytest.mark.parametrize("k", [5, 10])
def test_a_swapped_log_shows_nothing_as_it_stands_and_something_to_those_who_rebuild_pools(k: int) -> None:
    log = read_log(EXCITE)
    released = Swap(k=k, columns=ColumnPolicy(ids=Ids.KEEP), seed=1).anonymize(log).log
    seen = Seen.of(released)
    truth = Truth.of(log, seen=seen)
    assert released.n_rows > 1000
    assert as_released(truth).n_found == match(released, other=log) == 0
    found = [attacker(k=k, seed=2).attack(seen, truth=truth) for attacker in (Rebuild1, Rebuild2, Rebuild3, Rebuild4)]
    for each in found:
        assert each.n_targets == truth.n_targets
        assert each.share < 0.5
    assert max(each.interval[1] for each in found) > found[0].chance_share


def test_a_log_that_was_only_renamed_is_read_as_it_stands() -> None:
    log = read_log(EXCITE)
    truth = Truth.of(log, seen=Seen.of(log), cleaned=True)
    found = as_released(truth)
    assert found.n_found == found.n_targets
    assert found.beats_chance
