"""The shares of rows, users, terms, queries and term occurrences that are kept."""

import numpy as np
import polars as pl
from numba import njit

from queryveil.data import Floats, Int32s, Int64s, Profiles, Transactions
from queryveil.pairing import Identity, Pair
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import encode, normalise
from queryveil.utility._term_counts import TermCounts, items_in, n_real_rows
from queryveil.utility.generalisation import nodes_of
from queryveil.utility.score import Measures, Score, share


@njit(cache=True, nogil=True)
def share_out(counts: Floats, ptr: Int64s, owners: Int32s, n_owners: int) -> Floats:
    """Add each row of counts to its owners, an equal part to each; row r has `owners[ptr[r]:ptr[r + 1]]`.

    There may be hundreds of owners to a row, so that the parts are never written out.
    """
    n_rows, n_columns = counts.shape
    out = np.zeros((n_owners, n_columns))
    for r in range(n_rows):
        n = ptr[r + 1] - ptr[r]
        for e in range(ptr[r], ptr[r + 1]):
            for j in range(n_columns):
                out[owners[e], j] += counts[r, j] / n
    return out


NO_TAXONOMY = "without the taxonomy it was made with, whatever moved up counts as lost: add --taxonomy"
_ABOUT = {
    "rows_kept": "of the rows are still there, whole or in part",
    "users_kept": "of the users are still there",
    "terms_kept": "of the different terms are still there",
    "queries_kept": "of the different queries are still there",
    "log_size_kept": "of all that was asked, counted in terms, is still there",
}


def kept_of_log(pair: Pair, *, terms: TermCounts, identity: Identity | None) -> Measures:
    """Measure a released log."""
    before, after = (np.bincount(_asked(rows.query)) for rows in (pair.original_rows, pair.released_rows))
    n_queries = int((before > 0).sum())
    both = min(len(before), len(after))
    n_kept = int(((before[:both] > 0) & (after[:both] > 0)).sum())
    users, n_rows = _users_kept(pair, identity), pair.log.n_rows
    size, notes = _log_size(terms, taxonomy=pair.known_taxonomy)
    if users is None:
        notes += ("users kept is left out: users have a new id in each window, and nobody can tell who is who",)
    return Measures(
        scores=(
            kept_score("rows_kept", share(min(n_real_rows(pair.release), n_rows), n_rows)),
            *([] if users is None else [kept_score("users_kept", users)]),
            kept_score("terms_kept", _terms_kept(terms)),
            kept_score("queries_kept", share(n_kept, n_queries)),
            kept_score("log_size_kept", size),
        ),
        notes=notes,
    )


def kept_of_transactions(pair: Pair, *, terms: TermCounts) -> Measures:
    """Measure released transactions, of users or of queries: what moved up in the taxonomy is kept in part."""
    released, bags, taxonomy = pair.release.transactions, pair.bags, pair.known_taxonomy
    n_left = released.frame.filter(pl.col("items").list.len() > 0).height
    places = share(min(n_left, bags.n_transactions), bags.n_transactions)
    notes: tuple[str, ...] = ()
    if taxonomy is None:
        size, notes = share(float(terms.kept.sum()), float(terms.before.sum())), (NO_TAXONOMY,)
    else:
        left = float((1.0 - taxonomy.loss[nodes_of(released, taxonomy=taxonomy)]).sum())
        size = min(1.0, share(left, bags.n_items))
    return Measures(
        scores=(
            kept_score("rows_kept" if pair.is_by_query else "users_kept", places),
            kept_score("terms_kept", _terms_kept(terms)),
            kept_score("log_size_kept", size),
        ),
        notes=(*notes, "queries, top queries, suggestions and profiles are left out: transactions have no queries"),
    )


def kept_of_groups(pair: Pair) -> Measures:
    """Measure groups: what share of people and of their terms the profiles of groups speak of."""
    bags, groups = pair.bags, pair.release.groups
    pairs = _pairs(bags, is_profiles=isinstance(pair.original, Profiles))
    mine, theirs = pairs["term"].unique(), items_in(groups.frame["terms"]).unique()
    n_members = int(groups.frame.filter(pl.col("terms").list.len() > 0)["members"].sum())
    return Measures(
        scores=(
            kept_score("users_kept", min(1.0, share(n_members, bags.n_transactions))),
            kept_score("terms_kept", share(int(mine.is_in(theirs.implode()).sum()), len(mine))),
            kept_score("log_size_kept", min(1.0, share(int(groups.frame["size"].sum()), pairs.height))),
        ),
        notes=("rows, queries, suggestions and profiles are left out: groups have no rows",),
    )


def kept_score(name: str, value: float) -> Score:
    """Return how much is kept of what the name says."""
    return Score(name=name, value=value, better="more", about=_ABOUT[name], group="kept", is_share=True)


def _asked(query: Int32s) -> Int32s:
    return query[query >= 0]


def _terms_kept(terms: TermCounts) -> float:
    return share(int((terms.kept > 0).sum()), int((terms.before > 0).sum()))


def _users_kept(pair: Pair, identity: Identity | None) -> float | None:
    n_users = pair.n_users
    if pair.release.manifest.parameters.get("window") is None:
        return share(min(pair.n_candidates, n_users), n_users)
    return None if identity is None else share(float(identity.n_candidates_of(n_users).clip(max=1.0).sum()), n_users)


def _log_size(terms: TermCounts, *, taxonomy: Taxonomy | None) -> tuple[float, tuple[str, ...]]:
    """Add up the terms that are still there; a node between angle brackets keeps what its loss leaves of a term."""
    whole, left = float(terms.before.sum()), float(terms.kept.sum())
    is_node = (terms.before == 0) & (terms.vocabulary.str.contains(r"^<.+>$")).to_numpy()
    if not is_node.any():
        return share(left, whole), ()
    if taxonomy is None:
        return share(left, whole), (NO_TAXONOMY,)
    names = pl.DataFrame({"name": "<" + taxonomy.names.str.replace_all(r"\s+", "_") + ">", "loss": taxonomy.loss})
    nodes = pl.DataFrame({"name": terms.vocabulary.filter(is_node), "n": terms.after[is_node]})
    found = nodes.join(names.unique("name", keep="first", maintain_order=True), on="name")
    left += float(((1.0 - found["loss"]) * found["n"]).sum())
    return min(1.0, share(left, whole)), ()


def _pairs(bags: Transactions, *, is_profiles: bool) -> pl.DataFrame:
    """Return each person's different terms."""
    terms = bags.frame.select("id", term="items").explode("term", empty_as_null=False)
    if is_profiles:
        codes, texts = encode(terms["term"])
        terms = terms.with_columns(term=normalise(texts).gather(codes)).filter(pl.col("term") != "")
    return terms.unique()
