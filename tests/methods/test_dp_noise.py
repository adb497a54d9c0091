"""Noise as it is drawn has the chances that its description says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from math import inf, log
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.support.plain_dp import plain_chances

from queryveil import Dp
from queryveil.data import QueryLog
from queryveil.methods.dp import Mechanism
from queryveil.methods.dp._mechanisms import plan_for
from queryveil.methods.dp._noise import draw
from queryveil.release import Noise
from queryveil.rng import generator

KINDS = [each for each in Mechanism if each is not Mechanism.AUTO]
N = 40_000
FALSE_ALARM = 1e-7


def surprise(n_hits: int, n: int, chance: float) -> float:
    """Return a bound on how likely so many hits, or more extreme ones on the same side, are (Chernoff)."""
    share = n_hits / n
    if chance in (0.0, 1.0):
        return 1.0 if share == chance else 0.0
    parts = [(share, chance), (1 - share, 1 - chance)]
    return float(np.exp(-n * sum(a * log(a / b) for a, b in parts if a > 0)))


def is_unlike(drawn: np.ndarray, noise: Noise) -> bool:
    """Return whether noise is unlikely to have come from its description, at any value or from any value on."""
    chances, found = plain_chances(noise), Counter(drawn.tolist())
    values = sorted({*chances, *found})
    allowed, n_below, below = FALSE_ALARM / (4 * len(values)), 0, 0.0
    for z in values:
        n_below, below = n_below + found[z], min(1.0, below + chances.get(z, 0.0))
        single = surprise(found[z], len(drawn), chances.get(z, 0.0))
        upto = 1.0 if below > 1 - 1e-12 else surprise(n_below, len(drawn), below)
        if min(single, upto) < allowed:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("max_items", [1, 5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeded", [False, True], ids=["OpenDP", "seeded"])
def test_noise_has_the_chances_of_its_description(kind: Mechanism, max_items: int, seeded: bool) -> None:
    plan = plan_for(mechanism=kind, epsilon=1.0, delta=1e-3, max_items=max_items)
    drawn = draw(plan, N, rng=generator(5) if seeded else None)
    assert drawn.dtype == np.int64
    assert not is_unlike(drawn, plan)
    if plan.top is not None:
        assert drawn.max() <= plan.top


@pytest.mark.parametrize("kind", KINDS)
def test_the_comparison_would_see_noise_that_is_a_tenth_too_small(kind: Mechanism) -> None:
    plan = plan_for(mechanism=kind, epsilon=1.0, delta=1e-3, max_items=5)
    small = msgspec.structs.replace(plan, scale=plan.scale * 0.9)
    assert is_unlike(draw(small, N, rng=generator(5)), plan)


def test_the_comparison_would_see_a_shift_that_is_left_out() -> None:
    plan = plan_for(mechanism="truncated-geometric", epsilon=1.0, delta=1e-3, max_items=1)
    assert 0.05 < plan.shift / 2**32 < 0.95
    assert is_unlike(draw(msgspec.structs.replace(plan, shift=0), N, rng=generator(5)), plan)


@pytest.mark.slow
def test_the_comparison_would_see_gaussian_noise_that_is_cut_off_at_four_scales() -> None:
    # At a scale of a quarter 1 is as far as that, and not rare: wide noise is beyond it once in 16,000 draws.
    plan = Noise(what="queries", mechanism="gaussian", max_items=1, scale=0.2499, threshold=2, epsilon=9, delta=0.1)
    for drawn in (draw(plan, N, rng=None), draw(plan, N, rng=generator(5))):
        assert not is_unlike(drawn, plan)
        assert is_unlike(np.clip(drawn, -4 * plan.scale, 4 * plan.scale).astype(np.int64), plan)


def test_queries_and_clicks_of_a_release_have_the_noise_that_the_manifest_says() -> None:
    n_people, n_queries = 60, 1500
    queries = np.repeat(np.arange(n_queries), n_people)
    users = pl.Series(np.arange(len(queries))).cast(pl.String)
    frame = pl.DataFrame({"user": users, "query": queries}).with_columns(
        query=pl.format("kettle {}", "query"), url=pl.format("https://shop.example/{}", "query")
    )
    method = Dp(epsilon=2.0, delta=1e-3, max_queries=1, max_clicks=1, clicks=0.5, mechanism=Mechanism.LAPLACE)
    tallies = method.anonymize(QueryLog(frame=frame)).tallies
    assert tallies.clicks is not None
    for released, plan in zip((tallies.frame, tallies.clicks), method.noise, strict=True):
        # So many people that all of them leave: the threshold is 50 scales below.
        assert (released.height, plan.scale) == (n_queries, 1.0)
        assert not is_unlike(released["count"].to_numpy() - n_people, plan)
        assert is_unlike(np.zeros(n_queries, np.int64), plan)


def test_seeded_noise_repeats_and_other_noise_does_not() -> None:
    plan = plan_for(mechanism="gaussian", epsilon=1.0, delta=1e-3, max_items=5)
    assert draw(plan, 100, rng=generator(1)).tolist() == draw(plan, 100, rng=generator(1)).tolist()
    assert draw(plan, 100, rng=None).tolist() != draw(plan, 100, rng=None).tolist()


def test_no_noise_for_no_counts_and_more_than_are_drawn_at_once() -> None:
    plan = plan_for(mechanism="laplace", epsilon=2.0, delta=1e-3, max_items=1)
    assert draw(plan, 0, rng=None).tolist() == []
    many = draw(plan, 300_001, rng=generator(2))
    assert len(many) == 300_001
    assert abs(float(many[-40_000:].mean())) < 0.05 < inf


def test_noise_that_is_drawn_in_several_goes_is_drawn_anew_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryveil.methods.dp._noise._AT_ONCE", 1000)
    plan = plan_for(mechanism="gaussian", epsilon=0.1, delta=1e-3, max_items=5)
    for rng in (None, generator(3)):
        first, second, third = draw(plan, 3000, rng=rng).reshape(3, 1000)
        # Two draws are alike once in a hundred times.
        assert max((first == second).mean(), (first == third).mean(), (second == third).mean()) < 0.1


FAKE_OPENDP = """
import sys
from types import ModuleType

import numpy as np

class Anything:
    def __getattr__(self, name):
        return Anything()
    def __call__(self, *args, **settings):
        return Anything()

def sevens(*args, **settings):
    return lambda zeros: zeros + 7

prelude = ModuleType("opendp.prelude")
prelude.__getattr__ = lambda name: Anything()
prelude.m = Anything()
prelude.m.make_laplace = prelude.m.make_gaussian = sevens
package = ModuleType("opendp")
package.prelude = prelude
sys.modules.update({"opendp": package, "opendp.prelude": prelude})

from queryveil import Dp
from queryveil.testing import log_of

log = log_of({f"persona{i}": ["kestrel"] for i in range(200)})
for mechanism in ("laplace", "gaussian", "zealous"):
    plain, seeded = (Dp(mechanism=mechanism, seed=seed).anonymize(log).tallies.frame["count"] for seed in (None, 1))
    print(plain.to_list(), seeded.to_list() != [207])
"""


@pytest.mark.slow
def test_without_a_seed_the_noise_is_that_of_opendp() -> None:
    done = subprocess.run([sys.executable, "-c", FAKE_OPENDP], capture_output=True, text=True, check=True)
    assert done.stdout == "[207] True\n" * 3


BROKEN_OPENDP = """
from queryveil import Dp
from queryveil.errors import QueryveilError
from queryveil.methods.dp._noise import has_extra
from queryveil.testing import tiny_log
try:
    Dp().check(tiny_log())
except QueryveilError as error:
    print(error, has_extra())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "prelude"),
    [
        ("raise OSError('libopendp.so: cannot open shared object file')", ""),
        ("import a_library_that_is_not_there", ""),
        ("", "enable_features = lambda name: None"),
        ("", "raise ValueError"),
    ],
    ids=["no library", "no dependency", "another version", "another error"],
)
def test_an_opendp_that_does_not_work_is_said_to_be_so(package: str, prelude: str, tmp_path: Path) -> None:
    (tmp_path / "opendp").mkdir()
    (tmp_path / "opendp" / "__init__.py").write_text(package)
    (tmp_path / "opendp" / "prelude.py").write_text(prelude)
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_OPENDP],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    way_out = "install it again: pip install --force-reinstall 'queryveil[dp]'"
    assert done.stdout == f"OpenDP is installed but cannot be loaded; {way_out} False\n"


WITHOUT_OPENDP = """
import sys
sys.modules["opendp"] = None
from queryveil import Dp
from queryveil.errors import MissingExtra
from queryveil.testing import tiny_log
assert Dp(seed=1).anonymize(tiny_log()).tallies.n_queries == 0
try:
    Dp().anonymize(tiny_log())
except MissingExtra as error:
    print(error)
"""


@pytest.mark.slow
def test_without_the_extra_the_way_to_install_it_is_said_and_seeded_noise_works() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_OPENDP], capture_output=True, text=True, check=True)
    assert done.stdout == "differential privacy needs an extra: pip install 'queryveil[dp]'\n"
