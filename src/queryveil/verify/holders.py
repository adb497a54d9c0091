"""Do groups of profiles hold a term, or members, that their original does not?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.groups import Groups
from queryveil.log import QueryLog
from queryveil.profiles import Profiles
from queryveil.verify.histories import read_histories
from queryveil.verify.invented import without_unknown
from queryveil.verify.pairs import folded
from queryveil.verify.verdict import Verdict, Witness


def invented_terms(groups: Groups, *, original: QueryLog | Profiles, strict: bool) -> tuple[int, list[Witness]]:
    """Count the terms that more people hold than did, and the members that are too many.

    A group that has a term has at least one holder of it; with `strict` as many as it says.
    """
    before = _read(original)
    released = _released(groups, strict=strict, any_case=isinstance(original, Profiles))
    more = _more(released, before)
    if more.height and isinstance(original, QueryLog):
        # A sign that this Python does not know may be a separator to the method, so both readings must agree.
        other = _more(released, _read(without_unknown(original)))
        more = more.join(other.select("term"), on="term", how="semi")
    n_members = sum(groups.frame["members"].to_list())
    found = []
    if n_members > before.n_users:
        found.append(
            Witness(kind="invented_members", size=0, support=n_members, needed=before.n_users, rows=(), positions=())
        )
    n = len(found) + more.height
    kept = more.sort("n", "row", "position").head(Verdict.N_KEPT)
    found += [
        Witness(kind="invented_term", size=1, support=now, needed=then, rows=(row,), positions=(position,))
        for now, then, row, position in kept.select("n", "n_before", "row", "position").iter_rows()
    ]
    return n, found


def known_holders() -> pl.Expr:
    """Give the holders of a group's terms, null unless there is a number for each of them."""
    is_known = pl.col("holders").list.drop_nulls().list.len() == pl.col("terms").list.len()
    return pl.when(is_known).then("holders").alias("holders")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Before:
    """How many users there were, and of each `term` how many held it (`n_before`)."""

    n_users: int
    terms: pl.DataFrame


def _read(original: QueryLog | Profiles) -> _Before:
    if isinstance(original, Profiles):
        held = original.frame.select("user", term="terms").explode("term").drop_nulls("term")
        held = held.with_columns(pl.col("term").map_elements(folded, return_dtype=pl.String)).unique()
        counted = held.group_by("term").agg(pl.len().cast(pl.Int128).alias("n_before"))
        return _Before(n_users=original.n_users, terms=counted)
    histories = read_histories(original)
    n_users = np.zeros(len(histories.words), np.int64)
    n_users[histories.word_of_item] = histories.support
    counted = pl.DataFrame({"term": histories.words, "n_before": pl.Series(n_users).cast(pl.Int128)})
    return _Before(n_users=original.n_users, terms=counted)


def _released(groups: Groups, *, strict: bool, any_case: bool) -> pl.DataFrame:
    """Give the distinct terms (`term`), at least how many hold each (`n`), and the first place of each.

    Terms of profiles are compared without case, blanks and ways to write an accent; those of a log are tokens already.
    """
    n_terms = pl.col("terms").list.len()
    said = known_holders() if strict else pl.lit(None, pl.List(pl.Int64))
    flat = (
        groups.frame.with_row_index("row", offset=1)
        .filter(n_terms > 0)
        .with_columns(position=pl.int_ranges(1, n_terms + 1))
        .select("row", "position", term="terms", n=said.fill_null(pl.lit(1, pl.Int64).repeat_by(n_terms)))
        .explode("position", "term", "n")
    )
    if any_case:
        flat = flat.with_columns(pl.col("term").map_elements(folded, return_dtype=pl.String))
    at_least = pl.col("n").clip(lower_bound=1).cast(pl.Int128).sum()
    return flat.group_by("term", maintain_order=True).agg(at_least, pl.first("row", "position"))


def _more(released: pl.DataFrame, before: _Before) -> pl.DataFrame:
    joined = released.join(before.terms, on="term", how="left").with_columns(pl.col("n_before").fill_null(0))
    return joined.filter(pl.col("n") > pl.col("n_before"))
