"""Hypothesis strategies for small logs; needs Hypothesis, which the library itself does not."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
from hypothesis import strategies as st

from queryveil.log import ROLES, QueryLog

TERMS = ("amber", "Birch", "cedar", "dahlia", "elm", "FERN", "grape", "été", "हिन्दी", "7up")


PLANTS = (
    ("tree", "plant"),
    ("birch", "tree"),
    ("cedar", "tree"),
    ("elm", "tree"),
    ("flower", "plant"),
    ("dahlia", "flower"),
    ("amber", "flower"),
    ("fern", "plant"),
    ("grape", "plant"),
)
"""Pairs of child and parent: a taxonomy that knows most of the terms, but not all."""


@st.composite
def logs(draw: st.DrawFn, *, max_users: int = 8, with_time: bool = True) -> QueryLog:
    """Draw a log of a few users over a few terms, so that both shared and lonely combinations occur."""
    row = st.tuples(
        st.integers(1, max_users),
        st.lists(st.sampled_from(TERMS), max_size=4),
        st.sampled_from([" ", "-", ", "]),
        st.integers(0, 3 * 24),
    )
    rows = draw(st.lists(row, max_size=30))
    frame: dict[str, list[object]] = {
        "user": [f"user-{user:04}" for user, _, _, _ in rows],
        "query": [blank.join(terms) for _, terms, blank, _ in rows],
    }
    if with_time:
        frame["time"] = [datetime(2006, 3, 1) + timedelta(hours=hours) for _, _, _, hours in rows]
    schema = {name: ROLES[name] for name in frame}
    return QueryLog(frame=pl.DataFrame(frame, schema=schema))
