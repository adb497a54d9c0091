"""Attacks on a release, each with what it knows and what blind guessing would get."""

from queryveil.attacks.added_rows import AddedRows
from queryveil.attacks.attacker import Attacker, AuxiliaryData, Exposure, Person, Surest, read_people
from queryveil.attacks.clock import Clock, ClockEquals
from queryveil.attacks.fragments import Fragments
from queryveil.attacks.known_profile import KnownProfile
from queryveil.attacks.known_terms import KnownTerms, RarePair
from queryveil.attacks.membership import Membership
from queryveil.attacks.neighbour import Neighbour
from queryveil.attacks.rebuild import ActiveId, Rebuild1, Rebuild2, Rebuild3, Rebuild4, as_released
from queryveil.attacks.repeats import Repeats
from queryveil.attacks.shared_term import SharedTerm, SharedWeight
from queryveil.attacks.site_owner import SiteOwner
from queryveil.attacks.stitch import Stitch
from queryveil.attacks.suite import Attacks, Attempt, Skipped, attack, attackers, run
from queryveil.attacks.swapped import EncodedLog, Truth, match
from queryveil.attacks.sybil import Sybil
from queryveil.attacks.token_inversion import TokenInversion
from queryveil.attacks.vanity import Vanity

__all__ = [
    "ActiveId",
    "AddedRows",
    "Attacker",
    "Attacks",
    "Attempt",
    "AuxiliaryData",
    "Clock",
    "ClockEquals",
    "EncodedLog",
    "Exposure",
    "Fragments",
    "KnownProfile",
    "KnownTerms",
    "Membership",
    "Neighbour",
    "Person",
    "RarePair",
    "Rebuild1",
    "Rebuild2",
    "Rebuild3",
    "Rebuild4",
    "Repeats",
    "SharedTerm",
    "SharedWeight",
    "SiteOwner",
    "Skipped",
    "Stitch",
    "Surest",
    "Sybil",
    "TokenInversion",
    "Truth",
    "Vanity",
    "as_released",
    "attack",
    "attackers",
    "match",
    "read_people",
    "run",
]
