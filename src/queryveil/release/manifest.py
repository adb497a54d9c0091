"""The manifest of a release: what it promises, how it was made, and which files hold its data."""

import hashlib
import platform
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Literal

import msgspec

from queryveil.data import Format
from queryveil.guarantees import Guarantee
from queryveil.release.columns import ColumnReport
from queryveil.version import __version__

MANIFEST = "manifest.json"
FORMAT_VERSION = 1
"""Of the manifest."""
SEEDED_NOISE = "made with a seed: whoever knows it can take the noise away"
"""The warning of noisy counts that can be made again."""
_version = cache(version)


def versions(*more: str) -> dict[str, str]:
    """Return the versions of what a release was made with; `more` are packages that not every release needs."""
    names = ("numba", "numpy", "polars", "pyarrow", *more)
    return {"queryveil": __version__, "python": platform.python_version()} | {name: _version(name) for name in names}


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How large the log was and how large the release is."""

    n_rows_before: int
    n_rows_after: int
    n_users_before: int
    n_users_after: int


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How noise was added to counts of `what`, so that anybody can work the promise out again.

    Each person has a part in at most `max_items` counts, 1 in each. A count of at least 1 gets a whole number Z of
    noise and leaves, noise included, if it is then at least `threshold`. Z is `laplace`: its chance falls with
    exp(-|Z|/scale); `gaussian`: with exp(-Z²/(2 scale²)); or `truncated-geometric`: laplace, plus 1 with the chance
    shift/2^32, and drawn again while it is above `top`. `zealous` is laplace for counts of at least `least` alone. The
    part that this has in the promise is `epsilon` and `delta`.
    """

    what: Literal["queries", "clicks"]
    mechanism: Literal["laplace", "gaussian", "truncated-geometric", "zealous"]
    max_items: int
    scale: float
    threshold: int
    epsilon: float
    delta: float
    top: int | None = None
    shift: int = 0
    least: int = 1


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One of the files that data was written in."""

    name: str
    sha256: str


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file that holds the data, and how it is written.

    What a cluster wrote is a folder of that name with `parts`, to be read in their order; `sha256` is then that of
    their own, one a line.
    """

    name: str
    sha256: str
    format: Format
    names: dict[str, str]
    has_header: bool
    kind: Literal["log", "transactions", "groups", "queries", "clicks"] = "log"
    parts: tuple[Part, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a release says of itself: no query text, no user ids.

    `query_clusters` numbers the clusters of queries that a promise is about: one number for each distinct query of the
    release, in ascending order of their texts, with blanks between them. It names no query and says nothing of those
    that were left out; what it adds to the log is which queries count as the same.
    """

    method: str
    promise: Guarantee
    parameters: dict[str, str | int | float | bool | None]
    counts: Counts
    removed: dict[str, int]
    columns: ColumnReport
    changed: dict[str, int] = {}
    measures: dict[str, float] = {}
    query_clusters: str = ""
    noise: tuple[Noise, ...] = ()
    warnings: tuple[str, ...] = ()
    data: DataFile | None = None
    clicks: DataFile | None = None
    versions: dict[str, str] = msgspec.field(default_factory=versions)
    format_version: int = FORMAT_VERSION


def sum_of_parts(parts: Sequence[Part]) -> str:
    """Return the sum that stands for data in parts."""
    return hashlib.sha256("".join(f"{part.sha256}\n" for part in parts).encode()).hexdigest()
