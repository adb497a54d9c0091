"""The privacy methods: each takes a log and returns a release that keeps its promise, or raises; three baselines."""

from typing import TYPE_CHECKING

from queryveil._lazy import lazy_names

if TYPE_CHECKING:
    from queryveil.methods.baselines import Pseudonymise, QueryThreshold, TokenHash
    from queryveil.methods.clump import Clump, Partition
    from queryveil.methods.dp import Choice, Dp, Mechanism
    from queryveil.methods.kdelta import Kdelta
    from queryveil.methods.km import Km, Target
    from queryveil.methods.plink import Grouping, Plink
    from queryveil.methods.swap import Swap

__getattr__ = lazy_names(
    __name__,
    {
        "queryveil.methods.baselines": "Pseudonymise QueryThreshold TokenHash",
        "queryveil.methods.clump": "Clump Partition",
        "queryveil.methods.dp": "Choice Dp Mechanism",
        "queryveil.methods.kdelta": "Kdelta",
        "queryveil.methods.km": "Km Target",
        "queryveil.methods.plink": "Grouping Plink",
        "queryveil.methods.swap": "Swap",
    },
)

__all__ = [
    "Choice", "Clump", "Dp", "Grouping", "Kdelta", "Km", "Mechanism", "Partition", "Plink", "Pseudonymise",
    "QueryThreshold", "Swap", "Target", "TokenHash",
]  # fmt: skip
