"""Attacks on a release, each with what it knows and what blind guessing would get; every attacker is in its module."""

from queryveil.attacks.attacker import Attacker, AuxiliaryData, Exposure, Person, Surest, read_people
from queryveil.attacks.suite import Attacks, Attempt, Skipped, attack, attackers, run

__all__ = ["Attacker", "Attacks", "Attempt", "AuxiliaryData", "Exposure", "Person", "Skipped", "Surest"]
__all__ += ["attack", "attackers", "read_people", "run"]
