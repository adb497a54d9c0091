"""The privacy methods: each takes a log and gives a release that keeps its promise, or raises; and three baselines."""

from __future__ import annotations

from queryveil.methods.clump import Clump
from queryveil.methods.kdelta import Kdelta
from queryveil.methods.km import Km
from queryveil.methods.km_targets import Target
from queryveil.methods.partition import Partition
from queryveil.methods.plink import Grouping, Plink
from queryveil.methods.pseudonymise import Pseudonymise
from queryveil.methods.query_threshold import QueryThreshold
from queryveil.methods.swap import Swap
from queryveil.methods.token_hash import TokenHash

__all__ = [
    "Clump",
    "Grouping",
    "Kdelta",
    "Km",
    "Partition",
    "Plink",
    "Pseudonymise",
    "QueryThreshold",
    "Swap",
    "Target",
    "TokenHash",
]
