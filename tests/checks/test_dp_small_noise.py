"""Very little noise, judged against chances with 60 digits; and manifests with any numbers at all."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.releases import released_tallies

from queryveil import Dp, verify
from queryveil.checks._dp_noise import Geometric
from queryveil.errors import QueryveilError
from queryveil.release import Release
from queryveil.testing import log_of

ASKED = log_of({f"persona{i}": ["kestrel"] for i in range(40)})
FARTHEST = 230
"""So many scales away chances are below 1e-99."""


def exact_deltas(noise: Geometric, n: int, epsilon: float) -> tuple[Decimal, Decimal]:
    """Return the deltas of n counts, with against without the person and the other way round, by their definition."""
    with localcontext() as context:
        context.prec = 60
        ratio, shift = (-1 / Decimal(noise.scale)).exp(), Decimal(noise.shift)
        reach = int(FARTHEST * noise.scale) + 2
        top = reach if noise.top is None else noise.top
        weights = {z: (1 - shift) * ratio ** abs(z) + shift * ratio ** abs(z - 1) for z in range(-reach, top + 1)}
        whole = sum(weights.values())
        # What is seen is the noise, and one more with the person; below the lowest there is next to nothing.
        seen = [
            (weights.get(z, Decimal(0)) / whole, weights.get(z - 1, Decimal(0)) / whole)
            for z in range(1 - reach, top + 2)
        ]
        factor, more, less = Decimal(epsilon).exp(), Decimal(0), Decimal(0)
        for outcome in product(seen, repeat=n):
            without, present = Decimal(1), Decimal(1)
            for one, other in outcome:
                without, present = without * one, present * other
            more += max(Decimal(0), present - factor * without)
            less += max(Decimal(0), without - factor * present)
        return more, less


@st.composite
def small_noise(draw: st.DrawFn) -> Geometric:
    top = draw(st.none() | st.integers(1, 4))
    shift = 0 if top is None else draw(st.sampled_from([0, 1, 2**31, 2**32 - 1]) | st.integers(0, 2**32 - 1))
    return Geometric(scale=draw(st.floats(0.005, 0.08)), shift=shift / 2**32, top=top)


@examples(60)
@given(noise=small_noise(), n=st.integers(1, 2), epsilon=st.floats(-5, 100))
def test_however_small_noise_is_no_part_of_it_cancels_out(noise: Geometric, n: int, epsilon: float) -> None:
    found, exact = noise.beyond(n, epsilon), exact_deltas(noise, n, epsilon)
    assert found == pytest.approx([float(each) for each in exact], rel=1e-9, abs=1e-40)


def test_half_the_noise_is_not_enough_at_a_large_epsilon() -> None:
    release = Dp(epsilon=20, max_queries=1, seed=1).anonymize(ASKED)
    (part,) = release.manifest.noise
    assert (part.mechanism, part.scale) == ("truncated-geometric", 0.05)
    assert verify(release).holds
    half = msgspec.structs.replace(release.manifest, noise=(msgspec.structs.replace(part, scale=0.025),))
    (witness,) = verify(Release(data=release.data, manifest=half)).witnesses
    assert witness.kind == "weak_noise"
    assert witness.support * 1e-15 == pytest.approx(0.99999, abs=1e-6)


NUMBERS = st.one_of(
    st.floats(0, 1e3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, 1, -1, 1e-3, 1e-9, 0.01, 100, 700, 1000, 2**32, 10**15, 1e9, 5e-324]),
)


@examples(60)
@given(
    mechanism=st.sampled_from(["laplace", "gaussian", "truncated-geometric", "zealous"]),
    what=st.sampled_from(["queries", "clicks"]),
    numbers=st.dictionaries(
        st.sampled_from(["max_items", "scale", "threshold", "epsilon", "delta", "top", "shift", "least"]), NUMBERS
    ),
    said=st.dictionaries(st.sampled_from(["epsilon", "rounds", "clicks", "max_clicks", "bot_threshold"]), NUMBERS),
)
def test_whatever_numbers_a_manifest_has_it_is_judged_or_refused_in_one_line(
    mechanism: str, what: str, numbers: dict[str, Any], said: dict[str, Any]
) -> None:
    with TemporaryDirectory() as scratch:
        folder = released_tallies({"kestrel": 40}, threshold=13).save(Path(scratch) / "release")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["noise"][0] |= {"mechanism": mechanism, "what": what} | numbers
        manifest["parameters"] |= said
        (folder / "manifest.json").write_text(json.dumps(manifest))
        try:
            said_of_it = verify(folder, original=ASKED).in_words()
        except QueryveilError as error:
            said_of_it = str(error)
    assert "\n" not in said_of_it
    assert "kestrel" not in said_of_it
