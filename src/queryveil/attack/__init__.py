"""Attacks on a release, each with what it knows and what blind guessing would get."""

from queryveil.attack.as_released import as_released
from queryveil.attack.exposure import Exposure
from queryveil.attack.matcher import match
from queryveil.attack.rebuild_1 import Rebuild1
from queryveil.attack.rebuild_2 import Rebuild2
from queryveil.attack.rebuild_3 import Rebuild3
from queryveil.attack.rebuild_4 import Rebuild4
from queryveil.attack.seen import Guess, Seen
from queryveil.attack.truth import Truth

__all__ = [
    "Exposure",
    "Guess",
    "Rebuild1",
    "Rebuild2",
    "Rebuild3",
    "Rebuild4",
    "Seen",
    "Truth",
    "as_released",
    "match",
]
