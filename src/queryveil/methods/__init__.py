"""The privacy methods: each takes a log and gives a release that keeps its promise, or raises; and three baselines."""

from __future__ import annotations

from queryveil.methods.clump import Clump
from queryveil.methods.dp import Dp
from queryveil.methods.dp_bounding import Choice
from queryveil.methods.dp_mechanisms import Mechanism
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
    "Choice",
    "Clump",
    "Dp",
    "Grouping",
    "Kdelta",
    "Km",
    "Mechanism",
    "Partition",
    "Plink",
    "Pseudonymise",
    "QueryThreshold",
    "Swap",
    "Target",
    "TokenHash",
]
