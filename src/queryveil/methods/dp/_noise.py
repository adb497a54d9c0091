"""Noise as OpenDP draws it, from the system's secure source; with a seed, from NumPy's generator."""

import secrets
from collections.abc import Callable
from importlib.util import find_spec
from math import expm1

import numpy as np

from queryveil import progress
from queryveil.data import Floats, Int64s
from queryveil.errors import MissingExtra, QueryveilError
from queryveil.methods.dp._mechanisms import SHIFTS, tail
from queryveil.release import Noise

_AT_ONCE = 1 << 17
_BROKEN = "OpenDP is installed but cannot be loaded; install it again: pip install --force-reinstall 'queryveil[dp]'"
_TRIAL = Noise(what="queries", mechanism="laplace", max_items=1, scale=1.0, threshold=13, epsilon=1.0, delta=1e-5)

Source = Callable[[int], Int64s]


def check_extra() -> None:
    """Raise if noise cannot be drawn because OpenDP is not installed, or does not work."""
    try:
        _opendp_source(_TRIAL)(1)
    except MissingExtra:
        raise
    except Exception:
        # Whatever is wrong with a library, it is better known before a budget is spent.
        raise QueryveilError(_BROKEN) from None


def has_extra() -> bool:
    """Return whether noise can be drawn without a seed."""
    try:
        check_extra()
    except QueryveilError:
        return False
    return True


def draw(noise: Noise, n: int, *, rng: np.random.Generator | None) -> Int64s:
    """Return `n` whole numbers of noise; with `rng` they can be repeated, and are not for releases that matter.

    >>> plan = Noise(what="queries", mechanism="laplace", max_items=1, scale=1.0, threshold=13, epsilon=1.0, delta=1e-5)
    >>> len(draw(plan, 5, rng=np.random.default_rng(7)))
    5
    """
    source = _opendp_source(noise) if rng is None else _seeded(noise, rng)
    out = np.empty(n, np.int64)
    for begin in range(0, n, _AT_ONCE):
        progress.step("adding noise", begin / n)
        places = np.arange(begin, min(begin + _AT_ONCE, n))
        while len(places):
            out[places] = source(len(places))
            if noise.top is None:
                break
            out[places] += _parts(len(places), rng) < noise.shift
            places = places[out[places] > noise.top]
    return out


def _opendp_source(noise: Noise) -> Source:
    try:
        import opendp.prelude as opendp  # noqa: PLC0415
    except ImportError:
        if find_spec("opendp") is None:
            raise MissingExtra("differential privacy", extra="dp") from None
        raise
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64"))
    # Differs: only noise is taken from OpenDP. Its map-domain thresholds count P(Z >= threshold) where a count of 1
    # leaves with P(Z >= threshold - 1), so on whole numbers they spend more delta than they say.
    measurement = (
        opendp.m.make_gaussian(space, opendp.l2_distance(T="f64"), scale=noise.scale)
        if noise.mechanism == "gaussian"
        else opendp.m.make_laplace(space, opendp.l1_distance(T="i64"), scale=noise.scale)
    )
    return lambda n: np.asarray(measurement(np.zeros(n, np.int64)), np.int64)


def _parts(n: int, rng: np.random.Generator | None) -> np.ndarray:
    """Draw numbers below `SHIFTS`."""
    return np.frombuffer(secrets.token_bytes(4 * n), np.uint32) if rng is None else rng.integers(0, SHIFTS, n)


def _seeded(noise: Noise, rng: np.random.Generator) -> Source:
    if noise.mechanism != "gaussian":
        chance = -expm1(-1 / noise.scale)
        return lambda n: rng.geometric(chance, n) - rng.geometric(chance, n)
    most = int(noise.scale * 12) + 2
    at_most: Floats = 1 - tail(noise, np.arange(-most, most) + 1)
    return lambda n: np.searchsorted(at_most, rng.random(n), side="right") - most
