"""Make search query logs shareable: anonymize them, prove the promise, say what it cost."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from queryveil.version import __version__

if TYPE_CHECKING:
    from queryveil import synth
    from queryveil.columns import ColumnPolicy
    from queryveil.demo import demo
    from queryveil.errors import QueryveilError
    from queryveil.formats import read_log, write_log
    from queryveil.guarantees import KmAnonymity
    from queryveil.inspection import inspect
    from queryveil.log import QueryLog
    from queryveil.methods import Km
    from queryveil.release import Release, read_release
    from queryveil.reproduce import reproduce
    from queryveil.verify import verify

# Polars and Numba take a quarter of a second each to load; a name is loaded when it is first asked for.
_HOMES = {
    "ColumnPolicy": "queryveil.columns",
    "Km": "queryveil.methods",
    "KmAnonymity": "queryveil.guarantees",
    "QueryLog": "queryveil.log",
    "QueryveilError": "queryveil.errors",
    "Release": "queryveil.release",
    "demo": "queryveil.demo",
    "inspect": "queryveil.inspection",
    "read_log": "queryveil.formats",
    "read_release": "queryveil.release",
    "reproduce": "queryveil.reproduce",
    "synth": "queryveil.synth",
    "verify": "queryveil.verify",
    "write_log": "queryveil.formats",
}

__all__ = [
    "ColumnPolicy",
    "Km",
    "KmAnonymity",
    "QueryLog",
    "QueryveilError",
    "Release",
    "__version__",
    "demo",
    "inspect",
    "read_log",
    "read_release",
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
