"""Pair an original with its release: common term numbers, and the identity of released users."""

from queryveil.pairing.ancestors import Cover, moves_up, taxonomy_of
from queryveil.pairing.identity import Who, by_id, by_overlap, nobody
from queryveil.pairing.pair import Paired, another_log, pseudonymised

__all__ = [
    "Cover",
    "Paired",
    "Who",
    "another_log",
    "by_id",
    "by_overlap",
    "moves_up",
    "nobody",
    "pseudonymised",
    "taxonomy_of",
]
