"""How much was released, for people: the same figures and words on the command line, in notebooks and in reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queryveil.html_tables import percent

if TYPE_CHECKING:
    from queryveil.release.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many of one kind of thing were released.

    Parameters
    ----------
    label
        What they are, as `rows`.
    n
        How many there are in the release, without those that were made up.
    whole
        How many there were in the log; None where that says nothing or is not told.
    n_made_up
        How many more there are that nobody did.
    note
        What else there is to say of them.

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
        """All of it in one line."""
        if self.whole is None:
            return f"{self.n:,}, {self.note}" if self.note else f"{self.n:,}"
        share = f" ({self.figure})" if self.whole else ""
        kept = f"{self.n:,} of {self.whole:,} kept{share}"
        return f"{self.n + self.n_made_up:,}: {kept}, {self.n_made_up:,} made up" if self.n_made_up else kept

    @property
    def title(self) -> str:
        """What the figure says."""
        return self.label.capitalize() if self.whole is None else f"{self.label.capitalize()} kept"

    @property
    def figure(self) -> str:
        """The figure to show large: a share where there is a whole."""
        return f"{self.n:,}" if self.whole is None else percent(min(1.0, self.n / max(1, self.whole)))

    @property
    def about(self) -> str:
        """What stands below the figure."""
        if self.whole is None:
            return self.note
        made_up = f", and {self.n_made_up:,} made up" if self.n_made_up else ""
        return f"{self.n:,} of {self.whole:,}{made_up}"


def sizes(manifest: Manifest, *, kind: str | None = None, n_clicks: int | None = None) -> tuple[Size, ...]:
    """Return how much was released, and of how much; `kind` of data, if it is at hand, and `n_clicks` if tallied."""
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
    if kind == "groups":
        return Size(label="groups", n=n_rows, note="one profile each"), users
    if kind == "transactions":
        note = f"from {counts.n_rows_before:,} rows of {counts.n_users_before:,} users"
        return (Size(label="transactions", n=n_rows, note=note),)
    if manifest.promise.window:
        note = f"one per user and window; {counts.n_users_before:,} users before"
        users = Size(label="user ids", n=counts.n_users_after, note=note)
    n_added = manifest.changed.get("rows_added", 0)
    return Size(label="rows", n=n_rows - n_added, whole=counts.n_rows_before, n_made_up=n_added), users
