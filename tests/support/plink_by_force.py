"""p-linkability judged by its definition: slow, plain, for small releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from queryveil.checks.tokens import folded, terms_of
from queryveil.checks.verdict import Verdict, Witness
from queryveil.data import Groups, Profiles, QueryLog
from queryveil.guarantees import Linkability


class _Group(NamedTuple):
    row: int
    members: int
    size: int
    terms: list[str]
    holders: list[int] | None
    weights: list[float]


def verify_linkability_by_force(
    groups: Groups, promise: Linkability, *, original: QueryLog | Profiles | None = None
) -> Verdict:
    """Judge the promise as `verify_linkability` does, by its definition.

    >>> import polars as pl
    >>> from queryveil.data import GROUPS_SCHEMA
    >>> rows = [(1, 3, 4, ["kitten", "pup"], [1.0, 0.333333], [3, 1])]
    >>> groups = Groups(frame=pl.DataFrame(rows, schema=GROUPS_SCHEMA, orient="row"))
    >>> verify_linkability_by_force(groups, Linkability(p=0.4, strict=True)).holds
    False
    """
    columns = groups.frame.select("members", "size", "terms", "holders", "weights").iter_rows()
    released = [
        _Group(row, members, size, terms, None if holders is None or None in holders else holders, weights)
        for row, (members, size, terms, holders, weights) in enumerate(columns, start=1)
    ]
    p = Fraction(str(promise.p))
    found = _strict(released, p=p) if promise.strict else _paper(released, p=p)
    if original is not None:
        fold = folded if isinstance(original, Profiles) else str
        found += _invented(released, _profiles(original), strict=promise.strict, fold=fold)
    return Verdict(
        promise=promise,
        holds=not found,
        witnesses=tuple(sorted(found)[: Verdict.N_KEPT]),
        n_violations=len(found),
        n_users=sum(group.members for group in released),
        n_checked_users=sum(group.members for group in released if group.terms),
    )


def _paper(released: list[_Group], *, p: Fraction) -> list[Witness]:
    found = [
        _contradiction(group)
        for group in released
        if not len(group.terms) <= group.size <= group.members * len(group.terms)
    ]
    for group in released:
        average = Fraction(sum(each.size for each in released), sum(each.members for each in released))
        if group.size == 0 or average / group.size > p:
            needed = max(1, ceil(average / p))
            found.append(_of_group(group, support=group.size, needed=needed))
    return found


def _strict(released: list[_Group], *, p: Fraction) -> list[Witness]:
    found = []
    for group in released:
        fits = len(group.terms) <= group.size <= group.members * len(group.terms)
        if group.holders is None:
            needed = len(group.terms)
            found.append(
                Witness(
                    kind="missing_holders",
                    size=group.members,
                    support=0,
                    needed=needed,
                    rows=(group.row,),
                    positions=(),
                )
            )
        else:
            fits = fits and sum(group.holders) == group.size and all(1 <= n <= group.members for n in group.holders)
            found += [
                Witness(
                    kind="linked_term",
                    size=1,
                    support=n,
                    needed=floor(p * group.members),
                    rows=(group.row,),
                    positions=(position,),
                )
                for position, n in enumerate(group.holders, start=1)
                if Fraction(n, group.members) > p
            ]
            found += [
                Witness(
                    kind="other_weight",
                    size=1,
                    support=n,
                    needed=group.members,
                    rows=(group.row,),
                    positions=(position,),
                )
                for position, (n, weight) in enumerate(zip(group.holders, group.weights, strict=True), start=1)
                if not _is_share(Fraction(repr(weight)), Fraction(n, group.members))
            ]
        if not fits:
            found.append(_contradiction(group))
    return found


def _is_share(weight: Fraction, share: Fraction) -> bool:
    """Tell whether a weight is a share rounded to six digits, or the least weight if nothing would be left of it."""
    last = Fraction(1, 1_000_000)
    return weight % last == 0 and (abs(weight - share) <= last / 2 or (weight == last and share < last))


def _contradiction(group: _Group) -> Witness:
    return Witness(
        kind="contradiction",
        size=group.members,
        support=group.size,
        needed=len(group.terms),
        rows=(group.row,),
        positions=(),
    )


def _of_group(group: _Group, *, support: int, needed: int) -> Witness:
    return Witness(
        kind="linked_group", size=group.members, support=support, needed=needed, rows=(group.row,), positions=()
    )


def _profiles(original: QueryLog | Profiles) -> list[set[str]]:
    """Return the terms of each user."""
    if isinstance(original, Profiles):
        return [{folded(term) for term in terms} for terms in original.frame["terms"].to_list()]
    profiles: dict[str, set[str]] = {}
    for user, query in original.frame.select("user", "query").iter_rows():
        profiles.setdefault(user, set()).update(terms_of(query))
    return list(profiles.values())


def _invented(
    released: list[_Group], profiles: list[set[str]], *, strict: bool, fold: Callable[[str], str]
) -> list[Witness]:
    found = []
    n_members = sum(group.members for group in released)
    if n_members > len(profiles):
        found.append(
            Witness(kind="invented_members", size=0, support=n_members, needed=len(profiles), rows=(), positions=())
        )
    n_holders, places = Counter[str](), dict[str, tuple[int, int]]()
    for group in released:
        for i, term in enumerate(map(fold, group.terms)):
            # Whatever a group says, a term of it has at least one holder.
            n_holders[term] += max(1, group.holders[i]) if strict and group.holders is not None else 1
            places.setdefault(term, (group.row, i + 1))
    for term, n in n_holders.items():
        n_before = sum(term in profile for profile in profiles)
        if n > n_before:
            row, position = places[term]
            found.append(
                Witness(kind="invented_term", size=1, support=n, needed=n_before, rows=(row,), positions=(position,))
            )
    return found
