"""Verify p-linkability of groups of profiles, as in the paper or strictly for every term."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl

from queryveil.checks._histories import read_histories
from queryveil.checks.invented import without_unknown
from queryveil.checks.tokens import folded, tokenise
from queryveil.checks.verdict import Found, Kind, Verdict, Witness, found_in
from queryveil.data import Groups, Profiles, QueryLog
from queryveil.errors import BadInput
from queryveil.guarantees import Linkability


def invented_terms(groups: Groups, *, original: QueryLog | Profiles, strict: bool) -> Found:
    """Return the number and witnesses of terms with more holders than in the original, and of surplus members.

    A group that has a term has at least one holder of it; with `strict` as many as it states.
    """
    terms = _by_term(_numbered(groups), any_case=isinstance(original, Profiles))
    at_least = pl.col("holders").fill_null(1).clip(lower_bound=1) if strict else pl.lit(1)
    by_term = terms.with_columns(support=at_least.cast(pl.Int128)).group_by("term", maintain_order=True)
    released = by_term.agg(pl.col("support").sum(), pl.first("row", "position"))
    more = _in_both_readings(partial(_more, released), original, on=["term"])
    n, found = found_in(more, kind="invented_term")
    n_members = sum(groups.frame["members"].to_list())
    if n_members <= original.n_users:
        return n, found
    return n + 1, [Witness(kind="invented_members", support=n_members, needed=original.n_users), *found]


def _in_both_readings(
    find: Callable[[QueryLog | Profiles], pl.DataFrame], original: QueryLog | Profiles, *, on: list[str]
) -> pl.DataFrame:
    """Return what is found beside the original whether or not signs that this Python does not know are separators."""
    found = find(original)
    if found.height and isinstance(original, QueryLog):
        other = find(without_unknown(original))
        return found.join(other.select(on), on=on, how="semi", nulls_equal=True)
    return found


def _numbered(groups: Groups) -> pl.DataFrame:
    """Return groups with their `row` and number of terms (`n_terms`); holders are null unless each term has some."""
    n_terms = pl.col("terms").list.len().cast(pl.Int64)
    is_known = pl.col("holders").list.drop_nulls().list.len() == n_terms
    holders = pl.when(is_known).then("holders")
    return groups.frame.with_row_index("row", offset=1).with_columns(holders=holders, n_terms=n_terms)


def _by_term(groups: pl.DataFrame, *, any_case: bool) -> pl.DataFrame:
    """Return a row for each `term` of the groups, with its `position`; terms of profiles are put in normal form."""
    places = pl.int_ranges(1, pl.col("n_terms") + 1)
    holders = pl.col("holders").fill_null(pl.lit(None).repeat_by("n_terms"))
    some = groups.filter(pl.col("n_terms") > 0).with_columns(position=places, holders=holders)
    terms = some.select("row", "group", "members", "size", "position", "holders", "weights", term="terms")
    return _folded(terms.explode("position", "holders", "weights", "term"), any_case=any_case)


def _folded(terms: pl.DataFrame, *, any_case: bool) -> pl.DataFrame:
    return terms.with_columns(pl.col("term").map_elements(folded, return_dtype=pl.String)) if any_case else terms


def _more(released: pl.DataFrame, original: QueryLog | Profiles) -> pl.DataFrame:
    """Return the terms with more holders (`support`) than in the original (`needed`)."""
    if isinstance(original, Profiles):
        before = _pairs(original).group_by("term").agg(needed=pl.len())
    else:
        histories = read_histories(original, by_blanks=original.terms_are_items)
        n_users = np.zeros(len(histories.words), np.int64)
        n_users[histories.word_of_item] = histories.support
        before = pl.DataFrame({"term": histories.words, "needed": n_users})
    needed = pl.col("needed").cast(pl.Int128).fill_null(0)
    return (
        released.join(before, on="term", how="left").with_columns(needed).filter(pl.col("support") > pl.col("needed"))
    )


def verify_linkability(groups: Groups, promise: Linkability, *, original: QueryLog | Profiles | None = None) -> Verdict:
    """Return the verdict on p-linkability, exactly.

    As in the paper, violations are groups whose size is less than an average profile divided by p. With `strict` they
    are terms with a larger share of holders than p or with a weight that is not this share, and groups that do not
    state the holders of each term. So are groups whose counts contradict each other, and with the `original` terms that
    it does not have, or has with fewer holders, and more members than it has users.

    >>> from queryveil.data import GROUPS_SCHEMA
    >>> rows = [(1, 3, 4, ["kitten", "pup"], [1.0, 0.333333], [3, 1])]
    >>> groups = Groups(frame=pl.DataFrame(rows, schema=GROUPS_SCHEMA, orient="row"))
    >>> verify_linkability(groups, Linkability(p=0.4)).in_words()
    '0.4-linkability holds for 3 users.'
    >>> verify_linkability(groups, Linkability(p=0.4, strict=True)).witnesses[0].in_words()
    'a term of a group is held by 3 of its members, 1 is allowed (row 1)'
    """
    frame, p = _numbered(groups), Fraction(str(promise.p))
    found = [_contradictions(frame, strict=promise.strict)]
    if promise.strict:
        unproven = frame.filter(pl.col("holders").is_null())
        found.append(_groups(unproven, kind="missing_holders", support=pl.lit(0), needed=pl.col("n_terms")))
        found += [_linked_terms(frame, p=p), _other_weights(frame)]
    else:
        found.append(_linked_groups(frame, p=p))
    if original is not None:
        found.append(invented_terms(groups, original=original, strict=promise.strict))
    n_checked = sum(frame.filter(pl.col("n_terms") > 0)["members"].to_list())
    verdict = Verdict(promise=promise, n_users=sum(frame["members"].to_list()), n_checked_users=n_checked)
    return verdict.joined(*found)


_MILLION = 1_000_000
_ROUNDING = Fraction(2, _MILLION)
"""Weights are rounded to six digits, twice where groups of a cluster were joined, and are never less than the last."""


def _other_weights(frame: pl.DataFrame) -> Found:
    """Return the terms whose weight is not the share of their holders in six digits; further digits may mark a person.

    A share that would be rounded away is the least weight.
    """
    terms = _by_term(frame, any_case=False).drop_nulls("holders")
    # Polars multiplies by the reciprocal where it divides columns by a number, which changes the last digit.
    weights = np.minimum(terms["weights"].to_numpy(), _MILLION**2)
    millionths = np.rint(weights * _MILLION)
    terms = terms.with_columns(millionths=pl.Series(millionths).cast(pl.Int128))
    holders, members = (pl.col(name).cast(pl.Int128) for name in ("holders", "members"))
    is_near = 2 * (pl.col("millionths") * members - holders * _MILLION).abs() <= members
    is_share = is_near | ((pl.col("millionths") == 1) & (holders * _MILLION < members))
    other = terms.filter(~is_share | pl.Series(millionths / _MILLION != weights))
    return found_in(other.select("row", "position", support="holders", needed="members"), kind="other_weight")


def odd_weights(groups: Groups, parameters: Mapping[str, object]) -> pl.Series:
    """Return the groups whose weights contradict the holders, members and size that they state.

    Of `binary` profiles the mean is the share who hold a term, and the largest is 1. Of counts each holder brings in at
    least 1. Those of strict groups belong to the promise.
    """
    weights, is_union = parameters.get("weights"), parameters.get("representative") == "union"
    rows = groups.frame.select("members", "size", "weights", "holders").iter_rows()
    if weights not in ("binary", "count") or parameters.get("strict"):
        return pl.repeat(False, groups.n_groups, eager=True)
    is_binary = weights == "binary"
    return pl.Series([_is_odd(*row, is_union=is_union, is_binary=is_binary) for row in rows], dtype=pl.Boolean)


def _is_odd(
    members: int, size: int, weights: list[float], holders: list[int] | None, *, is_union: bool, is_binary: bool
) -> bool:
    if is_union:
        return any(weight != 1 if is_binary else weight < 1 or weight % 1 != 0 for weight in weights)
    slack = float(_ROUNDING)
    if holders is not None:
        less = [n / members - weight for n, weight in zip(holders, weights, strict=True)]
        return any(abs(each) > slack if is_binary else each > slack for each in less)
    # Without holders the size is all there is: that of all terms together, each at least once and at most by all.
    total, n_all = sum(weights) * members, slack * members * len(weights)
    if not is_binary:
        return total < size - n_all
    if any(weight > 1 + slack for weight in weights):
        return True
    # A share is that of a whole number of members, as far as six digits tell.
    parts = [weight * members for weight in weights] if slack * members < 0.25 else []
    is_whole = all(abs(part - round(part)) <= slack * members and part > 0.5 for part in parts)
    return not is_whole or abs(total - size) > n_all


def recounted(groups: Groups, membership: pl.DataFrame, *, original: QueryLog | Profiles | None) -> Found:
    """Return the groups that state other members than the membership file, or, by the `original`, other holders.

    Groups that do not state the holders of their terms state their sum, the size.
    """
    if membership["user"].is_duplicated().any():
        raise BadInput("the membership file names a user twice; it is not the one of this release")
    counted = membership.group_by("group").agg(counted=pl.len().cast(pl.Int64))
    frame = _numbered(groups)
    both = frame.join(counted, on="group", how="left").with_columns(needed=pl.col("counted").fill_null(0))
    other = both.filter(pl.col("members") != pl.col("needed")).select("row", "needed", support="members")
    n, found = found_in(other, kind="other_members")
    n_strangers = counted.join(frame, on="group", how="anti").height
    if n_strangers:
        n, found = n + 1, [*found, Witness(kind="other_members", support=0, needed=n_strangers)]
    if original is None:
        return n, found
    holders = _in_both_readings(partial(_other_holders, frame, membership), original, on=["row", "position"])
    n_other, others = found_in(holders, kind="other_holders")
    return n + n_other, [*found, *others]


def _other_holders(frame: pl.DataFrame, membership: pl.DataFrame, original: QueryLog | Profiles) -> pl.DataFrame:
    """Return the terms that state another number of holders than their group has, and groups another size."""
    said = _by_term(frame, any_case=isinstance(original, Profiles))
    held = _pairs(original).join(membership, on="user").group_by("group", "term").agg(needed=pl.len().cast(pl.Int64))
    both = said.join(held, on=["group", "term"], how="left").with_columns(pl.col("needed").fill_null(0))
    terms = both.select("row", "position", "needed", support="holders", size=pl.lit(1))
    unstated = both.filter(pl.col("holders").is_null()).group_by("row")
    sizes = unstated.agg(pl.col("needed").sum(), support=pl.col("size").first()).with_columns(size=pl.lit(0))
    return pl.concat([terms, sizes], how="diagonal").filter(pl.col("support") != pl.col("needed"))


def _pairs(original: QueryLog | Profiles) -> pl.DataFrame:
    """Return the distinct pairs of `user` and `term` of the original."""
    if isinstance(original, Profiles):
        held = original.frame.select("user", term="terms").explode("term").drop_nulls("term")
        return _folded(held, any_case=True).unique()
    tokens = tokenise(original.frame["query"], items=original.terms_are_items)
    users = original.frame["user"].gather(np.repeat(np.arange(original.n_rows), np.diff(tokens.starts)))
    return pl.DataFrame({"user": users, "term": tokens.words.gather(tokens.terms)}).unique()


def _contradictions(frame: pl.DataFrame, *, strict: bool) -> Found:
    """Return the groups whose counts contradict each other."""
    members, size, n_terms = (pl.col(name).cast(pl.Int128) for name in ("members", "size", "n_terms"))
    is_wrong = (size < n_terms) | (size > members * n_terms)
    if strict:
        # Where holders are missing, so is the answer, and that is another violation.
        holders = pl.col("holders").cast(pl.List(pl.Int128))
        adds_up = holders.list.sum() == size
        in_range = (holders.list.min() >= 1) & (holders.list.max() <= members)
        is_wrong |= ~(adds_up & in_range.fill_null(True)).fill_null(True)
    return _groups(frame.filter(is_wrong), kind="contradiction", support=pl.col("size"), needed=pl.col("n_terms"))


def _linked_groups(frame: pl.DataFrame, *, p: Fraction) -> Found:
    """Return the groups that are smaller than |U|avg / p, where |U|avg is the average profile size."""
    if frame.height == 0:
        return 0, []
    average = Fraction(sum(frame["size"].to_list()), sum(frame["members"].to_list()))
    # A group without any terms has no share that could be below p.
    least = pl.lit(max(1, -(-average // p)), dtype=pl.Int128)
    too_small = frame.filter(pl.col("size").cast(pl.Int128) < least)
    return _groups(too_small, kind="linked_group", support=pl.col("size"), needed=least)


def _groups(frame: pl.DataFrame, *, kind: Kind, support: pl.Expr, needed: pl.Expr) -> Found:
    return found_in(frame.select("row", size="members", support=support, needed=needed), kind=kind)


def _linked_terms(frame: pl.DataFrame, *, p: Fraction) -> Found:
    """Return the terms that more than the share p of a group's members hold."""
    most = [p.numerator * members // p.denominator for members in frame["members"].to_list()]
    needed = pl.DataFrame({"row": frame["row"], "needed": pl.Series(most, dtype=pl.Int64)})
    terms = _by_term(frame, any_case=False).join(needed, on="row")
    linked = terms.filter(pl.col("holders") > pl.col("needed")).select("row", "position", "needed", support="holders")
    return found_in(linked, kind="linked_term")
