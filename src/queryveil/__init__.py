"""Anonymize search query logs, verify the guarantee, attack the release and measure its utility."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queryveil._lazy import lazy_names
from queryveil.version import __version__

if TYPE_CHECKING:
    from queryveil.attacks import attack
    from queryveil.checks import verify
    from queryveil.comparison import compare
    from queryveil.comparison.demo import demo
    from queryveil.data import Groups, Profiles, QueryLog, Transactions
    from queryveil.errors import QueryveilError
    from queryveil.formats import read_log, read_profiles, read_transactions, write_log
    from queryveil.guarantees import (
        DifferentialPrivacy,
        KdeltaAnonymity,
        KmAnonymity,
        Linkability,
        NoPromise,
        SwapAnonymity,
        TransactionAnonymity,
    )
    from queryveil.methods import Clump, Dp, Kdelta, Km, Partition, Plink, Pseudonymise, QueryThreshold, Swap, TokenHash
    from queryveil.papers import reproduce
    from queryveil.release import ColumnPolicy, Release, read_release
    from queryveil.reports import report
    from queryveil.reports.inspection import inspect
    from queryveil.synthesis import synthesize as synth
    from queryveil.text.taxonomy import Taxonomy
    from queryveil.utility import measure

# Polars and Numba take a quarter of a second each to load; a name is loaded when it is first asked for.
__getattr__ = lazy_names(
    __name__,
    {
        "queryveil.attacks": "attack",
        "queryveil.checks": "verify",
        "queryveil.comparison": "compare",
        "queryveil.comparison.demo": "demo",
        "queryveil.data": "Groups Profiles QueryLog Transactions",
        "queryveil.errors": "QueryveilError",
        "queryveil.formats": "read_log read_profiles read_transactions write_log",
        "queryveil.guarantees": "DifferentialPrivacy KdeltaAnonymity KmAnonymity Linkability NoPromise SwapAnonymity"
        " TransactionAnonymity",
        "queryveil.methods": "Clump Dp Kdelta Km Partition Plink Pseudonymise QueryThreshold Swap TokenHash",
        "queryveil.papers": "reproduce",
        "queryveil.release": "ColumnPolicy Release read_release",
        "queryveil.reports": "report",
        "queryveil.reports.inspection": "inspect",
        "queryveil.synthesis": "synth",
        "queryveil.text.taxonomy": "Taxonomy",
        "queryveil.utility": "measure",
    },
)

__all__ = ["ColumnPolicy", "Groups", "Profiles", "QueryLog", "QueryveilError", "Release", "Taxonomy", "Transactions"]
__all__ += ["Clump", "Dp", "Kdelta", "Km", "Partition", "Plink", "Pseudonymise", "QueryThreshold", "Swap", "TokenHash"]
__all__ += ["DifferentialPrivacy", "KdeltaAnonymity", "KmAnonymity", "Linkability", "NoPromise", "SwapAnonymity"]
__all__ += ["TransactionAnonymity", "__version__"]
__all__ += ["attack", "compare", "demo", "inspect", "measure", "report", "reproduce", "synth", "verify"]
__all__ += ["read_log", "read_profiles", "read_release", "read_transactions", "write_log"]
