"""The privacy methods: each takes a log and gives a release that keeps its promise, or raises."""

from __future__ import annotations

from queryveil.methods.clump import Clump
from queryveil.methods.kdelta import Kdelta
from queryveil.methods.km import Km
from queryveil.methods.km_targets import Target
from queryveil.methods.partition import Partition
from queryveil.methods.plink import Grouping, Plink
from queryveil.methods.swap import Swap

__all__ = ["Clump", "Grouping", "Kdelta", "Km", "Partition", "Plink", "Swap", "Target"]
