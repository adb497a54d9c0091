"""Random generators: seeded from the system's secure source, or by a given seed for repeatable runs."""

import secrets

import numpy as np

from queryveil.errors import BadParameter
from queryveil.settings import is_whole


def check_seed(seed: int | None) -> None:
    """Raise unless the seed is None or a whole number of 0 or more."""
    if seed is not None and not is_whole(seed):
        raise BadParameter("seed", f"a {type(seed).__name__}", allowed="a whole number, 0 or more")
    if seed is not None and seed < 0:
        # Privacy: whoever knows the seed can undo the shuffling, so it is never shown.
        raise BadParameter("seed", "a negative number", allowed="0 or more")


def generator(seed: int | None) -> np.random.Generator:
    """Return a random generator; without a seed its state comes from the system's secure source.

    That state has 128 random bits, so it cannot be guessed. Whoever knows a seed can undo every shuffle made with it,
    hence the warning in the manifest of a seeded release.

    >>> int(generator(7).integers(100)) == int(generator(7).integers(100))
    True
    """
    entropy = secrets.randbits(128) if seed is None else seed
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))
