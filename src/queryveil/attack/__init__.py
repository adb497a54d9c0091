"""Attacks on a release, each with what it knows and what blind guessing would get.

`queryveil.attack(log, release)` is the verb `queryveil.attack.attack`: the package can be called.
"""

from queryveil.attack.added_rows import AddedRows
from queryveil.attack.as_released import as_released
from queryveil.attack.attackers import attackers
from queryveil.attack.attacking import attack, run
from queryveil.attack.attacks import Attacks, Attempt, Skipped
from queryveil.attack.clock import Clock
from queryveil.attack.exposure import Exposure
from queryveil.attack.known_terms import KnownTerms
from queryveil.attack.matcher import match
from queryveil.attack.membership import Membership
from queryveil.attack.people import Person, read_people
from queryveil.attack.ports import Attacker, Given
from queryveil.attack.rare_pair import RarePair
from queryveil.attack.rebuild_1 import Rebuild1
from queryveil.attack.rebuild_2 import Rebuild2
from queryveil.attack.rebuild_3 import Rebuild3
from queryveil.attack.rebuild_4 import Rebuild4
from queryveil.attack.seen import Guess, Seen
from queryveil.attack.shared_term import SharedTerm
from queryveil.attack.sybil import Sybil
from queryveil.attack.token_inversion import TokenInversion
from queryveil.attack.truth import Truth
from queryveil.attack.vanity import Vanity
from queryveil.callable_package import make_callable

__all__ = [
    "AddedRows",
    "Attacker",
    "Attacks",
    "Attempt",
    "Clock",
    "Exposure",
    "Given",
    "Guess",
    "KnownTerms",
    "Membership",
    "Person",
    "RarePair",
    "Rebuild1",
    "Rebuild2",
    "Rebuild3",
    "Rebuild4",
    "Seen",
    "SharedTerm",
    "Skipped",
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

make_callable(__name__, verb="attack")
