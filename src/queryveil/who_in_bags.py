"""Who is behind bags of items that moved up in a taxonomy: whoever fits, in the bag that keeps most of the person."""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.covering import Cover
from queryveil.histories import Histories, spread
from queryveil.kernels.arrays import Floats, Int32s, Int64s
from queryveil.kernels.fitting import first_that_fits
from queryveil.kernels.rows import group
from queryveil.who import Who


def by_fit(before: Histories, *, after: Histories, cover: Cover, once: bool) -> Who:
    """Estimate who is who in bags of items.

    A bag fits a person if each of its items can stand for another of the person's terms. Of those that fit a person is
    taken for the one that keeps most: methods that make bags alike seek to lose little. Everybody in equal bags may be
    any of them. If `once`, a term counts once however often it was asked.
    """
    number, first = distinct_bags(after)
    kept = _kept(after, cover)[first]
    order = np.argsort(-kept, kind="stable")
    covering = cover.covering(cover.vocabulary)
    bags = _counted(after, rows=first[order], covering=covering, once=False)
    users = _counted(before, rows=np.arange(before.n_users), covering=covering, once=once)
    posting_ptr, places = group(users.terms, users.n_terms)
    best = first_that_fits(
        bags.row_ptr,
        bags.terms.astype(np.int64),
        bags.counts.astype(np.int64),
        users.row_ptr,
        users.terms.astype(np.int64),
        users.counts.astype(np.int64),
        posting_ptr,
        users.entry_user[places],
    )
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return _who(best, bag=rank[number], n_bags=len(order))


def _who(best: Int32s, *, bag: Int64s, n_bags: int) -> Who:
    """Give everybody of a bag to each of its copies."""
    somewhere = np.flatnonzero(best >= 0)
    ptr, places = group(best[somewhere], n_bags)
    candidate, entries = spread(ptr, rows=bag)
    counts = np.bincount(candidate, minlength=len(bag))
    people = somewhere[places][entries].astype(np.int32)
    return Who(ptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), users=people, exact=False)


def distinct_bags(after: Histories) -> tuple[Int64s, Int64s]:
    """Number the different bags, and give the first of each."""
    seen: dict[bytes, int] = {}
    pairs = np.stack([after.terms, after.counts], axis=1)
    bags = (pairs[a:b].tobytes() for a, b in zip(after.row_ptr[:-1], after.row_ptr[1:], strict=True))
    number = np.array([seen.setdefault(bag, len(seen)) for bag in bags], np.int64)
    _, first = np.unique(number, return_index=True)
    return number, first.astype(np.int64)


def _kept(after: Histories, cover: Cover) -> Floats:
    """Give how much each bag keeps: an item of its own 1, one that moved up less."""
    weight = 1 - cover.losses()[after.terms]
    return np.bincount(after.entry_user, weights=weight * after.counts, minlength=after.n_users).astype(np.float64)


def _counted(histories: Histories, *, rows: Int64s, covering: tuple[Int64s, Int64s], once: bool) -> Histories:
    """Count under each item what some rows have there."""
    row, entries = spread(histories.row_ptr, rows=rows)
    counts = np.ones(len(entries), np.int64) if once else histories.counts[entries]
    entry, items = spread(covering[0], rows=histories.terms[entries].astype(np.int64))
    frame = pl.DataFrame({"row": row[entry], "item": covering[1][items], "n": counts[entry]})
    found = frame.group_by("row", "item").agg(pl.col("n").sum()).sort("row", "item")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(found["row"].to_numpy(), minlength=len(rows)))])
    return Histories(
        row_ptr=ptr.astype(np.int64),
        terms=found["item"].to_numpy().astype(np.int32),
        counts=found["n"].to_numpy().astype(np.int32),
        n_terms=histories.n_terms,
    )
