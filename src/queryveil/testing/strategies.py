"""Hypothesis strategies for small logs; needs Hypothesis, which the library itself does not."""

from datetime import datetime, timedelta
from typing import Any

import polars as pl
from hypothesis import strategies as st

from queryveil.data import ROLES, Profiles, QueryLog

TERMS = ("amber", "Birch", "cedar", "dahlia", "elm", "FERN", "grape", "été", "हिन्दी", "7up")

_KINDS = {"plant": "tree flower fern grape", "tree": "birch cedar elm", "flower": "dahlia amber"}
PLANTS = tuple((item, kind) for kind, items in _KINDS.items() for item in items.split())
"""Pairs of child and parent: a taxonomy that knows most of the terms, but not all."""

CLICKED_QUERIES = ("amber", " Amber", "birch tree", "birch  tree", "cedar", "dahlia bulbs", "elm", "fern", "été", "")
"""Queries, two of them written in two ways, and an empty one."""


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
    queries = {"query": [blank.join(terms) for _, terms, blank, _ in rows]}
    return _log([user for user, _, _, _ in rows], queries, [hours for *_, hours in rows] if with_time else None)


def _log(users: list[int], columns: dict[str, list[Any]], hours: list[int] | None) -> QueryLog:
    frame = {"user": [f"user-{user:04}" for user in users], **columns}
    if hours is not None:
        frame["time"] = [datetime(2006, 3, 1) + timedelta(hours=each) for each in hours]
    return QueryLog(frame=pl.DataFrame(frame, schema={name: ROLES[name] for name in frame}))


@st.composite
def clicked_logs(draw: st.DrawFn, *, max_users: int = 8, max_rows: int = 40, with_time: bool = True) -> QueryLog:
    """Draw a log of a few users, queries and URLs, some rows without a click, so that clusters of all kinds occur."""
    row = st.tuples(
        st.integers(1, max_users),
        st.sampled_from(CLICKED_QUERIES),
        st.sampled_from([None, "", *(f"www.{name}.example" for name in "abcdef")]),
        st.integers(0, 3 * 24),
    )
    rows = draw(st.lists(row, max_size=max_rows))
    clicks: dict[str, list[Any]] = {"query": [query for _, query, _, _ in rows], "url": [url for _, _, url, _ in rows]}
    return _log([user for user, _, _, _ in rows], clicks, [hours for *_, hours in rows] if with_time else None)


@st.composite
def profiles(draw: st.DrawFn, *, min_users: int = 0, max_users: int = 12, max_terms: int = 6) -> Profiles:
    """Draw profiles over a few terms, so that some are alike, some have nothing in common, and some are empty."""
    weights = st.sampled_from([0.25, 0.5, 1.0, 1.0, 1.0, 3.0])
    one = st.dictionaries(st.sampled_from([term.lower() for term in TERMS]), weights, max_size=max_terms)
    drawn = draw(st.lists(one, min_size=min_users, max_size=max_users))
    return Profiles.from_dicts({f"user-{number:04}": profile for number, profile in enumerate(drawn)})
