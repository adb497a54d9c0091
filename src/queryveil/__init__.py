"""Make search query logs shareable: anonymize them, prove the promise, say what it cost."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from queryveil.version import __version__

if TYPE_CHECKING:
    from queryveil import synth
    from queryveil.attack import attack
    from queryveil.columns import ColumnPolicy
    from queryveil.compare import compare
    from queryveil.demo import demo
    from queryveil.errors import QueryveilError
    from queryveil.formats import read_log, read_profiles, read_transactions, write_log
    from queryveil.groups import Groups
    from queryveil.guarantees import (
        DifferentialPrivacy,
        KdeltaAnonymity,
        KmAnonymity,
        Linkability,
        NoPromise,
        SwapAnonymity,
        TransactionAnonymity,
    )
    from queryveil.inspection import inspect
    from queryveil.log import QueryLog
    from queryveil.methods import Clump, Dp, Kdelta, Km, Partition, Plink, Pseudonymise, QueryThreshold, Swap, TokenHash
    from queryveil.profiles import Profiles
    from queryveil.release import Release, read_release
    from queryveil.report import report
    from queryveil.reproduce import reproduce
    from queryveil.text.taxonomy import Taxonomy
    from queryveil.transactions import Transactions
    from queryveil.utility import measure
    from queryveil.verify import verify

# Polars and Numba take a quarter of a second each to load; a name is loaded when it is first asked for.
_HOMES = {
    "Clump": "queryveil.methods",
    "ColumnPolicy": "queryveil.columns",
    "DifferentialPrivacy": "queryveil.guarantees",
    "Dp": "queryveil.methods",
    "Groups": "queryveil.groups",
    "Kdelta": "queryveil.methods",
    "KdeltaAnonymity": "queryveil.guarantees",
    "Km": "queryveil.methods",
    "KmAnonymity": "queryveil.guarantees",
    "Linkability": "queryveil.guarantees",
    "NoPromise": "queryveil.guarantees",
    "QueryLog": "queryveil.log",
    "QueryveilError": "queryveil.errors",
    "Partition": "queryveil.methods",
    "Plink": "queryveil.methods",
    "Profiles": "queryveil.profiles",
    "Pseudonymise": "queryveil.methods",
    "QueryThreshold": "queryveil.methods",
    "Release": "queryveil.release",
    "Swap": "queryveil.methods",
    "SwapAnonymity": "queryveil.guarantees",
    "Taxonomy": "queryveil.text.taxonomy",
    "TokenHash": "queryveil.methods",
    "TransactionAnonymity": "queryveil.guarantees",
    "Transactions": "queryveil.transactions",
    "attack": "queryveil.attack",
    "compare": "queryveil.compare",
    "demo": "queryveil.demo",
    "inspect": "queryveil.inspection",
    "measure": "queryveil.utility",
    "read_log": "queryveil.formats",
    "read_profiles": "queryveil.formats",
    "read_transactions": "queryveil.formats",
    "read_release": "queryveil.release",
    "report": "queryveil.report",
    "reproduce": "queryveil.reproduce",
    "synth": "queryveil.synth",
    "verify": "queryveil.verify",
    "write_log": "queryveil.formats",
}

__all__ = [
    "Clump",
    "ColumnPolicy",
    "DifferentialPrivacy",
    "Dp",
    "Groups",
    "Kdelta",
    "KdeltaAnonymity",
    "Km",
    "KmAnonymity",
    "Linkability",
    "NoPromise",
    "Partition",
    "Plink",
    "Profiles",
    "Pseudonymise",
    "QueryLog",
    "QueryThreshold",
    "QueryveilError",
    "Release",
    "Swap",
    "SwapAnonymity",
    "Taxonomy",
    "TokenHash",
    "TransactionAnonymity",
    "Transactions",
    "__version__",
    "attack",
    "compare",
    "demo",
    "inspect",
    "measure",
    "read_log",
    "read_profiles",
    "read_release",
    "read_transactions",
    "report",
    "reproduce",
    "synth",
    "verify",
    "write_log",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'queryveil' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return getattr(home, name, home)
