"""Do groups of profiles keep p-linkability? Judged fast, and by force."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import polars as pl

from queryveil.groups import Groups
from queryveil.guarantees import Linkability
from queryveil.log import QueryLog
from queryveil.profiles import Profiles
from queryveil.verify.holders import invented_terms, known_holders
from queryveil.verify.plink_by_force import verify_linkability_by_force
from queryveil.verify.verdict import Kind, Verdict, Witness

__all__ = ["verify_linkability", "verify_linkability_by_force"]

Found: TypeAlias = tuple[int, list[Witness]]


def verify_linkability(groups: Groups, promise: Linkability, *, original: QueryLog | Profiles | None = None) -> Verdict:
    """Judge the promise, exactly and fast.

    As in the paper, violations are groups whose size is less than an average profile divided by p. With `strict` they
    are terms with a larger share of holders than p, and groups that do not say how many hold each term. A group whose
    counts cannot all be true is a violation too. With the `original`, a log or profiles, also look for terms that it
    does not have, or has not as often, and for more members than it has users.

    >>> from queryveil.groups import SCHEMA
    >>> rows = [(1, 3, 4, ["kitten", "pup"], [0.6, 0.3], [3, 1])]
    >>> groups = Groups(frame=pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    >>> verify_linkability(groups, Linkability(p=0.4)).in_words()
    'The promise holds for 3 users.'
    >>> verify_linkability(groups, Linkability(p=0.4, strict=True)).witnesses[0].in_words()
    'a term of a group is held by 3 of its members, 1 is allowed (row 1)'
    """
    n_terms = pl.col("terms").list.len().cast(pl.Int64)
    frame = groups.frame.with_row_index("row", offset=1).with_columns(known_holders(), n_terms=n_terms)
    p = Fraction(str(promise.p))
    found = [_contradictions(frame, strict=promise.strict)]
    found += [_unproven(frame), _linked_terms(frame, p=p)] if promise.strict else [_linked_groups(frame, p=p)]
    if original is not None:
        found.append(invented_terms(groups, original=original, strict=promise.strict))
    n_checked = sum(frame.filter(pl.col("n_terms") > 0)["members"].to_list())
    verdict = Verdict(
        promise=promise,
        holds=True,
        witnesses=(),
        n_violations=0,
        n_users=sum(frame["members"].to_list()),
        n_checked_users=n_checked,
    )
    return verdict.joined(
        witnesses=[witness for _, witnesses in found for witness in witnesses], n_violations=sum(n for n, _ in found)
    )


def _contradictions(frame: pl.DataFrame, *, strict: bool) -> Found:
    """Find the groups whose counts cannot all be true."""
    members, size, n_terms = (pl.col(name).cast(pl.Int128) for name in ("members", "size", "n_terms"))
    is_wrong = (size < n_terms) | (size > members * n_terms)
    if strict:
        # Where holders are missing, so is the answer, and that is another violation.
        holders = pl.col("holders").cast(pl.List(pl.Int128))
        adds_up = holders.list.sum() == size
        in_range = (holders.list.min() >= 1) & (holders.list.max() <= members)
        is_wrong |= ~(adds_up & in_range.fill_null(True)).fill_null(True)
    return _groups(frame.filter(is_wrong), kind="contradiction", support="size", needed=pl.col("n_terms"))


def _unproven(frame: pl.DataFrame) -> Found:
    """Find the groups that do not say how many members hold each term."""
    frame = frame.with_columns(none=pl.lit(0))
    return _groups(
        frame.filter(pl.col("holders").is_null()), kind="missing_holders", support="none", needed=pl.col("n_terms")
    )


def _linked_groups(frame: pl.DataFrame, *, p: Fraction) -> Found:
    """Find the groups that are smaller than |U|avg / p, where |U|avg is the average profile size."""
    if frame.height == 0:
        return 0, []
    average = Fraction(sum(frame["size"].to_list()), sum(frame["members"].to_list()))
    # A group without any terms has no share that could be below p.
    needed = max(1, -(-average // p))
    too_small = frame.filter(pl.col("size").cast(pl.Int128) < pl.lit(needed, dtype=pl.Int128))
    return _groups(too_small, kind="linked_group", support="size", needed=pl.lit(needed, dtype=pl.Int128))


def _groups(frame: pl.DataFrame, *, kind: Kind, support: str, needed: pl.Expr) -> Found:
    kept = frame.sort("members", support, "row").head(Verdict.N_KEPT)
    rows = kept.select("members", support, needed.alias("needed"), "row").iter_rows()
    return frame.height, [
        Witness(kind=kind, size=members, support=found, needed=n, rows=(row,), positions=())
        for members, found, n, row in rows
    ]


def _linked_terms(frame: pl.DataFrame, *, p: Fraction) -> Found:
    """Find the terms that more than the share p of a group's members hold."""
    most = [p.numerator * members // p.denominator for members in frame["members"].to_list()]
    terms = (
        frame.with_columns(most=pl.Series(most, dtype=pl.Int64), position=pl.int_ranges(1, pl.col("n_terms") + 1))
        .filter(pl.col("holders").is_not_null() & (pl.col("n_terms") > 0))
        .select("row", "most", "position", "holders")
        .explode("position", "holders")
    )
    linked = terms.filter(pl.col("holders") > pl.col("most"))
    kept = linked.sort("holders", "row", "position").head(Verdict.N_KEPT)
    return linked.height, [
        Witness(kind="linked_term", size=1, support=n, needed=allowed, rows=(row,), positions=(position,))
        for row, allowed, position, n in kept.iter_rows()
    ]
