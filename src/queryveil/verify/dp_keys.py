"""Keys of a manifest that its reader passes over: whoever looks at the file sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from queryveil.release import MANIFEST, Manifest


class _Keyed(list[tuple[str, Any]]):
    """The keys and values of an object, each as often as it stands there."""


def n_overlooked(folder: Path, manifest: Manifest) -> int:
    """Count the keys in a release folder's manifest that were not read, and those that stand there twice."""
    try:
        said = json.loads((folder / MANIFEST).read_bytes(), object_pairs_hook=_Keyed)
    except (ValueError, RecursionError):
        # The manifest itself was read, so it is in something else that Python finds no sense.
        return 1
    return _n_more(said, msgspec.to_builtins(manifest))


def _n_more(said: Any, read: Any) -> int:
    """Count what stands in JSON beyond what was read of it.

    >>> _n_more(_Keyed([("k", 2), ("who", "me"), ("k", 3)]), {"k": 3})
    2
    """
    if isinstance(said, _Keyed) and isinstance(read, dict):
        known = [(key, value) for key, value in said if key in read]
        twice = len(known) - len(dict(known))
        return len(said) - len(known) + twice + sum(_n_more(value, read[key]) for key, value in known)
    if isinstance(said, list) and isinstance(read, list | tuple):
        # Of a list that stands there twice only the last was read.
        return sum(_n_more(one, other) for one, other in zip(said, read, strict=False))
    return 0
