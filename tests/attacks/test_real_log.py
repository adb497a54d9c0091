"""The attackers on a real log, which stays outside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.plain_rebuilding import plain_match_of_logs

from queryveil.attacks.rebuild import Rebuild1, Rebuild2, Rebuild3, Rebuild4, as_released
from queryveil.attacks.swapped import EncodedLog, Truth
from queryveil.data import QueryLog
from queryveil.formats import read_log
from queryveil.methods import Swap
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import Pools
from queryveil.methods.swap.preparing import prepare
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.text.classifier import Classifier

EXCITE = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "excite-small.log"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.real_data,
    pytest.mark.skipif(not EXCITE.is_file(), reason="the Excite log is not beside the checkout"),
]


ATTACKERS = (Rebuild1, Rebuild2, Rebuild3, Rebuild4)


@pytest.mark.parametrize("k", [5, 10])
def test_rows_in_the_order_of_release_show_something_to_those_who_rebuild_pools(k: int) -> None:
    log = read_log(EXCITE)
    events = prepare(log.frame.sort("time", maintain_order=True), classifier=Classifier()).frame
    swapped = Pools(PoolSettings(k=k, remembered=None), seed=1).add(events).released
    released = QueryLog(frame=swapped.select("user", "query"))
    encoded = EncodedLog.of(released)
    truth = Truth.of(log, released=encoded)
    assert released.n_rows > 1000
    assert as_released(truth).n_found == plain_match_of_logs(released, log) == 0
    found = [attacker(k=k, seed=2).judged(truth) for attacker in ATTACKERS]
    for each in found:
        assert each.n_targets == truth.n_targets
        assert each.share < 0.5
    # Not more than the best blind guess, but far more than the same rows in no order.
    shuffled = EncodedLog.of(QueryLog(frame=released.frame.sample(fraction=1.0, shuffle=True, seed=3)))
    other = Truth.of(log, released=shuffled)
    in_no_order = [attacker(k=k, seed=2).judged(other).share for attacker in ATTACKERS]
    assert max(each.share for each in found) > 2 * max(in_no_order)


@pytest.mark.parametrize("k", [5, 10])
def test_rows_in_no_order_show_them_nothing(k: int) -> None:
    log = read_log(EXCITE)
    released = Swap(k=k, columns=ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.DAY), seed=1).anonymize(log).log
    shuffled = QueryLog(frame=released.frame.sample(fraction=1.0, shuffle=True, seed=3))
    assert shuffled.n_rows > 1000
    # A file has each user's rows together, which an attacker would undo first.
    for encoded in (EncodedLog.of(released), EncodedLog.of(shuffled)):
        truth = Truth.of(log, released=encoded)
        assert as_released(truth).n_found == plain_match_of_logs(encoded.log, log) == 0
        assert not any(
            attacker(k=k, by_time=by_time, seed=2).judged(truth).beats_chance
            for attacker in ATTACKERS
            for by_time in (False, True)
        )


def test_a_log_that_was_only_renamed_is_read_as_it_stands() -> None:
    log = read_log(EXCITE)
    truth = Truth.of(log, released=EncodedLog.of(log), cleaned=True)
    found = as_released(truth)
    assert found.n_found == found.n_targets
    assert found.beats_chance
