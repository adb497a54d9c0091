"""The manifest of a release: what it promises, how it was made, its files, and its sizes as people are told them."""

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Annotated, Literal

import msgspec

from queryveil.data import KINDS, Format
from queryveil.guarantees import Guarantee
from queryveil.html_tables import percent
from queryveil.release.columns import ColumnReport
from queryveil.version import __version__

MANIFEST = "manifest.json"
FORMAT_VERSION = 1  # of the manifest
SEEDED_NOISE = "made with a seed: whoever knows it can take the noise away"
"""The warning of noisy counts that can be made again."""
_version = cache(version)


def versions(*more: str) -> dict[str, str]:
    """Return the versions of what a release was made with; `more` are packages that not every release needs."""
    names = ("numba", "numpy", "polars", "pyarrow", *more)
    return {"queryveil": __version__, "python": platform.python_version()} | {name: _version(name) for name in names}


_Count = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A larger one is no count, and no float holds it; one below 0 is found by verify."""
DataKind = Literal["log", "transactions", "groups", "queries", "clicks"]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of rows and users of the log and of the release."""

    n_rows_before: _Count
    n_rows_after: _Count
    n_users_before: _Count
    n_users_after: _Count


class EventCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the events of the log, by kind (`queryveil.data.KINDS`; all other actions are `other`).

    Of each kind there were as many as were kept and dropped. Clicks of a log whose clicks became its rows are counted
    with the rows, and here they are `clicks_as_rows`.
    """

    kept: dict[str, _Count] = {}
    dropped: dict[str, _Count] = {}
    clicks_as_rows: _Count = 0

    def before(self) -> dict[str, int]:
        """Return the number of events of each kind in the log."""
        kinds = {**self.kept, **self.dropped, **({"click": 0} if self.clicks_as_rows else {})}
        found = {kind: self.kept.get(kind, 0) + self.dropped.get(kind, 0) for kind in KINDS if kind in kinds}
        return found | ({"click": found["click"] + self.clicks_as_rows} if self.clicks_as_rows else {})


class TextCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The distinct texts of a release, those that one person alone asked, those with an identifier, and their rows.

    What one person alone asked is None if it is not known who asked what, as on a stream.
    """

    n_texts: _Count
    n_of_one_person: _Count | None = None
    n_with_identifier: _Count
    n_rows_of_one_person: _Count | None = None
    n_rows_with_identifier: _Count


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How noise was added to counts of `what`, so that anybody can compute the promise again.

    Each person contributes to at most `max_items` counts, 1 to each. A count of at least 1 gets a whole number Z of
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
    kind: DataKind = "log"
    parts: tuple[Part, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a release; it holds no query text and no user ids.

    `query_clusters` numbers the clusters of queries that a promise is about: one number for each distinct query of the
    release, in ascending order of their texts, with blanks between them. It names no query and says nothing of those
    that were left out; what it adds to the log is which queries count as the same.

    `texts` is None where no query leaves as a text (groups, items, hashes), and where exact counts would break the
    promise (noisy counts). `events` is None where the log has none, and where the promise is of noise.
    """

    method: str
    promise: Guarantee
    parameters: dict[str, str | int | float | bool | None]
    counts: Counts
    texts: TextCounts | None = None
    events: EventCounts | None = None
    removed: dict[str, _Count]
    columns: ColumnReport
    changed: dict[str, _Count] = {}
    measures: dict[str, float] = {}
    query_clusters: str = ""
    noise: tuple[Noise, ...] = ()
    warnings: tuple[str, ...] = ()
    data: DataFile | None = None
    clicks: DataFile | None = None
    versions: dict[str, str] = msgspec.field(default_factory=versions)
    format_version: int = FORMAT_VERSION

    @property
    def rows_are_clicks(self) -> bool:
        """Whether the release was made of rows that are clicks, where the log has clicks among its events."""
        has_rows = self.events is not None and self.events.clicks_as_rows > 0
        return has_rows or any(each.what == "clicks" for each in self.noise)


def n_rows_left(manifest: Manifest) -> int:
    """Return how many rows of the log were left after all that was removed: what exact counts add up to."""
    removed = (n for name, n in manifest.removed.items() if "rows" in name and name != "bad_rows_skipped")
    return manifest.counts.n_rows_before - sum(removed)


def sum_of_parts(parts: Sequence[Part]) -> str:
    """Return the checksum of data in parts."""
    return hashlib.sha256("".join(f"{part.sha256}\n" for part in parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many of one kind of thing were released, as told to people.

    - `label`: what they are, as `rows`.
    - `n`: the number in the release, without those that were made up.
    - `whole`: the number in the log; None where that says nothing or is not told.
    - `n_made_up`: the number of those that were made up.
    - `note`: what else there is to say of them.

    >>> size = Size(label="rows", n=10, whole=16, n_made_up=2)
    >>> size.text
    '12: 10 of 16 kept (62.5 %), 2 made up'
    >>> size.title, size.figure, size.about
    ('Rows kept', '62.5 %', '10 of 16, and 2 made up')
    """

    label: str
    n: int
    whole: int | None = None
    n_made_up: int = 0
    note: str = ""

    @property
    def text(self) -> str:
        """The size in one line."""
        if self.whole is None:
            return f"{self.n:,}, {self.note}" if self.note else f"{self.n:,}"
        share = f" ({self.figure})" if self.whole else ""
        kept = f"{self.n:,} of {self.whole:,} kept{share}"
        return f"{self.n + self.n_made_up:,}: {kept}, {self.n_made_up:,} made up" if self.n_made_up else kept

    @property
    def title(self) -> str:
        """The heading of the figure."""
        return self.label.capitalize() if self.whole is None else f"{self.label.capitalize()} kept"

    @property
    def figure(self) -> str:
        """The figure to show large: a share where there is a whole."""
        return f"{self.n:,}" if self.whole is None else percent(min(1.0, self.n / max(1, self.whole)))

    @property
    def about(self) -> str:
        """The line below the figure."""
        if self.whole is None:
            return self.note
        made_up = f", and {self.n_made_up:,} made up" if self.n_made_up else ""
        return f"{self.n:,} of {self.whole:,}{made_up}"


def sizes(manifest: Manifest, *, kind: str | None = None, n_clicks: int | None = None) -> tuple[Size, ...]:
    """Return how much was released, and of how much.

    - `kind`: the kind of data; without it, as the manifest says.
    - `n_clicks`: the number of clicks with a count, if there are any.
    """
    counts, n_rows = manifest.counts, manifest.counts.n_rows_after
    if manifest.promise.is_noisy:
        # How large the log was is not told.
        if manifest.parameters.get("synthesized"):
            made_up = (("rows", n_rows), ("users", counts.n_users_after))
            return tuple(Size(label=label, n=n, note="all made up") for label, n in made_up)
        queries = Size(label="queries", n=n_rows, note="each with a noisy count")
        clicks = Size(label="clicks", n=n_clicks or 0, note="each a query and a URL with a noisy count")
        return (queries,) if n_clicks is None else (queries, clicks)
    users = Size(label="users", n=counts.n_users_after, whole=counts.n_users_before)
    kind = kind or (manifest.data.kind if manifest.data else manifest.promise.released)
    if kind == "queries":
        searches = Size(label="rows", n=n_rows_left(manifest), whole=counts.n_rows_before)
        queries = Size(label="queries", n=n_rows, note="each with the number of its rows")
        clicks = Size(label="clicks", n=n_clicks or 0, note="each a query and a page with the number of clicks")
        return (searches, queries) if n_clicks is None else (searches, queries, clicks)
    if kind == "groups":
        return Size(label="groups", n=n_rows, note="one profile each"), users
    if kind == "transactions":
        note = f"from {counts.n_rows_before:,} rows of {counts.n_users_before:,} users"
        return (Size(label="transactions", n=n_rows, note=note),)
    if manifest.promise.window or manifest.promise.changes_ids:
        each = "user and window" if manifest.promise.window else "mini-session or row"
        note = f"one per {each}; {counts.n_users_before:,} users before"
        users = Size(label="user ids", n=counts.n_users_after, note=note)
    n_added = manifest.changed.get("rows_added", 0)
    return Size(label="rows", n=n_rows - n_added, whole=counts.n_rows_before, n_made_up=n_added), users


def event_facts(manifest: Manifest) -> dict[str, str]:
    """Return how many events of each kind were kept, or are counted with the rows; nothing if there were none.

    >>> counts = EventCounts(kept={"click": 3}, dropped={"impression": 9, "click": 1})
    >>> _facts_of_events(counts)
    {'events: impression': '0 of 9 kept', 'events: click': '3 of 4 kept'}
    """
    return {} if manifest.events is None else _facts_of_events(manifest.events)


def _facts_of_events(counts: EventCounts) -> dict[str, str]:
    facts = {f"events: {kind}": f"{counts.kept.get(kind, 0):,} of {n:,} kept" for kind, n in counts.before().items()}
    if counts.clicks_as_rows:
        n_others = counts.before()["click"] - counts.clicks_as_rows
        others = f", {n_others:,} without a query dropped" if n_others else ""
        facts["events: click"] = f"{counts.clicks_as_rows:,} counted with the rows{others}"
    return facts


def text_facts(manifest: Manifest) -> dict[str, str]:
    """Return how many texts one person alone asked, and how many hold an identifier; nothing if it is not told."""
    texts, n_rows = manifest.texts, manifest.counts.n_rows_after
    if texts is None:
        return {}
    of_one = "not known: a stream does not remember who asked what"
    if texts.n_of_one_person is not None and texts.n_rows_of_one_person is not None:
        of_one = _part(texts.n_of_one_person, texts.n_texts, share_of_rows=texts.n_rows_of_one_person / max(1, n_rows))
    found = _part(texts.n_with_identifier, texts.n_texts, share_of_rows=texts.n_rows_with_identifier / max(1, n_rows))
    return {"texts that one person alone asked": of_one, "texts with an identifier": found}


def _part(n: int, n_texts: int, *, share_of_rows: float) -> str:
    """Write a part of the texts for people.

    >>> _part(3, 8, share_of_rows=0.25), _part(0, 8, share_of_rows=0.0)
    ('3 of 8 (37.5 %), in 25 % of rows', '0 of 8')
    """
    return f"{n:,} of {n_texts:,}" + (f" ({percent(n / n_texts)}), in {percent(share_of_rows)} of rows" if n else "")
