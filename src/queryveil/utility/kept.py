"""The shares of rows, users, terms, queries and value of terms that are kept; the loss of generalised transactions.

Which transaction became which is not in a release, and is not needed: each released item stands for one item of its
transaction and the others are suppressed, so that totals give the distortion exactly.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Floats, Int32s, Int64s, Profiles, Transactions
from queryveil.errors import BadInput
from queryveil.pairing import Identity, Pair
from queryveil.release import Release
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import Tokens, encode, normal_form, worth_of_terms
from queryveil.utility.score import Measures, Score, kept, note, share

GENERALISATION = "generalisation"


def generalisation(pair: Pair, *, taxonomy: Taxonomy) -> Measures:
    """Measure a release of transactions as its method counts them, without items that the taxonomy does not know."""
    released, manifest = pair.release.transactions, pair.release.manifest
    # Partition takes sets, and has no such setting.
    distinct = bool(manifest.parameters.get("distinct", manifest.method == "partition"))
    before = _known(pair.bags, taxonomy=taxonomy, distinct=distinct)
    lost = (measured(released, original=before, taxonomy=taxonomy) for measured in (ggd, ncp))
    return Measures(scores=(*lost, average_length(released), average_level(released, taxonomy=taxonomy)))


def ggd(released: Transactions, *, original: Transactions, taxonomy: Taxonomy) -> Score:
    """Return the distortion of the whole release (GGD in the paper): LM of every released item plus suppressed items.

    LM is `Taxonomy.loss`. The items of transactions that were not released count as suppressed, and so do items of the
    original that the taxonomy does not know; leave them out of the original to leave them out here.

    >>> fruit = Taxonomy.from_pairs([("apple", "fruit"), ("pear", "fruit"), ("plum", "fruit")])
    >>> before = Transactions.from_frame({"items": [["apple", "pear"], ["pear"]]})
    >>> after = Transactions.from_frame({"items": [["pear"], ["pear"]]})
    >>> ggd(after, original=before, taxonomy=fruit).value
    1.0
    """
    value = _distortion(released, original=original, taxonomy=taxonomy)
    return Score(
        name="ggd", value=value, better="less", about="items lost, a generalised one in part", group=GENERALISATION
    )


def ncp(released: Transactions, *, original: Transactions, taxonomy: Taxonomy) -> Score:
    """Return the distortion per item of the original: 0 if nothing changed, 1 if all is suppressed or the root."""
    value = _distortion(released, original=original, taxonomy=taxonomy) / max(1, original.n_items)
    return Score(
        name="ncp", value=value, better="less", about="of each item lost, between 0 and 1", group=GENERALISATION
    )


def average_length(released: Transactions) -> Score:
    """Return the average number of items of a released transaction; 0 for a release without any."""
    value, about = released.n_items / max(1, released.n_transactions), "items that a transaction has left"
    return Score(name="average_length", value=value, better="more", about=about, group=GENERALISATION)


def average_level(released: Transactions, *, taxonomy: Taxonomy) -> Score:
    """Return the average level of a released item, the root being at level 1; 0 for a release without items."""
    levels = taxonomy.level[nodes_of(released, taxonomy=taxonomy)]
    value, about = float(levels.mean()) if levels.size else 0.0, "levels down to an item, the root is 1"
    return Score(name="average_level", value=value, better="more", about=about, group=GENERALISATION)


def _distortion(released: Transactions, *, original: Transactions, taxonomy: Taxonomy) -> float:
    n_suppressed = original.n_items - released.n_items
    if n_suppressed < 0:
        raise BadInput("the release has more items than the original; measure it against the one it was made from")
    return float(taxonomy.loss[nodes_of(released, taxonomy=taxonomy)].sum()) + n_suppressed


def _known(bags: Transactions, *, taxonomy: Taxonomy, distinct: bool) -> Transactions:
    """Return the nodes of the items that the taxonomy knows."""
    codes, words = encode(bags.frame["items"].explode(empty_as_null=False))
    nodes = taxonomy.find_all(words)[codes] if len(words) else codes
    row = np.repeat(np.arange(bags.n_transactions), bags.frame["items"].list.len().to_numpy())
    found = pl.DataFrame({"id": row, "node": nodes}).filter(pl.col("node") >= 0)
    if distinct:
        found = found.unique(maintain_order=True)
    named = found.select(pl.col("id").cast(pl.String), items=taxonomy.names.gather(found["node"]))
    return Transactions(frame=named.group_by("id", maintain_order=True).agg("items"))


def nodes_of(released: Transactions, *, taxonomy: Taxonomy) -> Int32s:
    """Return the node of every released item."""
    codes, distinct = encode(released.frame["items"].explode(empty_as_null=False))
    named = taxonomy.find_names(distinct)
    nodes = np.where(named >= 0, named, taxonomy.find_all(distinct)).astype(np.int32)
    if (nodes < 0).any():
        raise BadInput("the release has items that the taxonomy does not know; give the one it was made with")
    return nodes[codes]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TermCounts:
    """How often the original and the release have each term.

    - `vocabulary`: the terms, by number.
    - `before`, `after`: the occurrences of each term in the original and in the release.
    - `real`: the share of released rows that were not made up; those that were are taken out of all terms alike.
    """

    vocabulary: pl.Series
    before: Int64s
    after: Int64s
    real: float = 1.0

    @classmethod
    def of(cls, pair: Pair) -> Self:
        """Return the counts of a log and of the log that was released."""
        before, after = (count_terms(tokens, asked_of(tokens)) for tokens in pair.tokens)
        real = n_real_rows(pair.release) / max(1, pair.release.log.n_rows)
        return cls(vocabulary=pair.vocabulary, before=before, after=after, real=real)

    @property
    def kept(self) -> Floats:
        """How much of each term is left; what the release has more of was made up too."""
        return np.asarray(np.minimum(self.before, self.after * self.real), np.float64)


def n_real_rows(release: Release) -> int:
    """Return the number of released rows that somebody asked; the manifest says how many were made up."""
    return max(0, release.log.n_rows - release.manifest.changed.get("rows_added", 0))


def asked_of(tokens: Tokens) -> Int64s:
    """Return the number of rows of each query."""
    return np.bincount(tokens.row_query, minlength=len(tokens.queries)).astype(np.int64)


def count_terms(tokens: Tokens, asked: Int64s) -> Int64s:
    """Return the occurrences of each term, where each query is in so many rows."""
    times = np.repeat(asked, tokens.query_terms.lengths)
    return np.bincount(tokens.terms, weights=times, minlength=tokens.n_terms).astype(np.int64)


def count_items(original: Transactions, *, released: Transactions) -> TermCounts:
    """Return how often transactions before and after have each item, which is not split."""
    sides = [each.frame["items"].explode(empty_as_null=False).rename("") for each in (original, released)]
    codes, vocabulary = encode(pl.concat(sides))
    parts = np.split(codes, [len(sides[0])])
    before, after = (np.bincount(part, minlength=len(vocabulary)).astype(np.int64) for part in parts)
    return TermCounts(vocabulary=vocabulary, before=before, after=after)


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
    before, after = (counts > 0 for counts in pair.n_asked)
    users, n_rows = _users_kept(pair, identity), pair.log.n_rows
    size, notes = _log_size(terms, taxonomy=pair.known_taxonomy)
    if users is None:
        notes += ("users kept is left out: users have a new id in each window, and nobody can tell who is who",)
    return Measures(
        scores=(
            kept_score("rows_kept", share(min(n_real_rows(pair.release), n_rows), n_rows)),
            *([] if users is None else [kept_score("users_kept", users)]),
            kept_score("terms_kept", terms_kept(terms)),
            kept_score("queries_kept", share(int((before & after).sum()), int(before.sum()))),
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
            kept_score("terms_kept", terms_kept(terms)),
            kept_score("log_size_kept", size),
        ),
        notes=(*notes, "all that needs queries, clicks or times is left out: transactions have none"),
    )


def kept_of_groups(pair: Pair) -> Measures:
    """Measure groups: the share of people and of their terms that the profiles of groups cover."""
    bags, groups = pair.bags, pair.release.groups
    pairs = bags.frame.select("id", term="items").explode("term", empty_as_null=False)
    if isinstance(pair.original, Profiles):
        codes, texts = encode(pairs["term"])
        pairs = pairs.with_columns(term=normal_form(texts).gather(codes)).filter(pl.col("term") != "")
    pairs = pairs.unique()
    mine, theirs = pairs["term"].unique(), groups.frame["terms"].explode(empty_as_null=False).unique()
    n_members = int(groups.frame.filter(pl.col("terms").list.len() > 0)["members"].sum())
    return Measures(
        scores=(
            kept_score("users_kept", min(1.0, share(n_members, bags.n_transactions))),
            kept_score("terms_kept", share(int(mine.is_in(theirs.implode()).sum()), len(mine))),
            kept_score("log_size_kept", min(1.0, share(int(groups.frame["size"].sum()), pairs.height))),
        ),
        notes=("all that needs rows, queries, clicks or times is left out: groups have none",),
    )


def kept_score(name: str, value: float, *, about: str | None = None) -> Score:
    """Return the score with this name; `about` is what it says, if not what it says of a log."""
    return kept(name, value, about=about or _ABOUT[name])


def terms_kept(terms: TermCounts) -> float:
    """Return the share of the different terms that are still there."""
    return share(int((terms.kept > 0).sum()), int((terms.before > 0).sum()))


def _users_kept(pair: Pair, identity: Identity | None) -> float | None:
    n_users = pair.n_users
    if pair.release.promise.window is None:
        return share(min(pair.n_candidates, n_users), n_users)
    return None if identity is None else share(float(identity.n_candidates_of(n_users).clip(max=1.0).sum()), n_users)


def _log_size(terms: TermCounts, *, taxonomy: Taxonomy | None) -> tuple[float, tuple[str, ...]]:
    """Return the share of term occurrences that is kept; of one that became a node, all but the node's loss is."""
    whole, left = float(terms.before.sum()), float(terms.kept.sum())
    is_node = (terms.before == 0) & (terms.vocabulary.str.contains(r"^<.+>$")).to_numpy()
    if not is_node.any():
        return share(left, whole), ()
    if taxonomy is None:
        return share(left, whole), (NO_TAXONOMY,)
    names = pl.DataFrame({"name": "<" + taxonomy.item_names + ">", "loss": taxonomy.loss})
    nodes = pl.DataFrame({"name": terms.vocabulary.filter(is_node), "n": terms.after[is_node]})
    found = nodes.join(names.unique("name", keep="first", maintain_order=True), on="name")
    left += float(((1.0 - found["loss"]) * found["n"]).sum())
    return min(1.0, share(left, whole)), ()


_VALUES = {
    "bid": (("bid",), "of what advertisers would bid for the terms is still there"),
    "clicks": (("clicks",), "of the clicks that the terms would bring is still there"),
    "impressions": (("impressions",), "of the times that ads would be shown is still there"),
    "revenue": (("bid", "clicks"), "of what the clicks would cost advertisers is still there"),
}
"""The columns of the table that make up each value, and what is kept of it."""


def advertising(terms: TermCounts, *, values: pl.DataFrame | None) -> Measures:
    """Measure by a table with the columns term, bid, clicks and impressions, as far as it is given and has them.

    A log is worth the sum over its term occurrences of the value of the term; a term that the table lacks is worth
    nothing. Revenue is bid times clicks. Paper: Burghardt et al., section 5.2, tables 5 to 7.
    """
    if values is None:
        return note("advertising is left out: it needs a table of what terms are worth: add --values FILE")
    check_values(values)
    scores, notes = [], []
    for name, (columns, about) in _VALUES.items():
        if not all(column in values.columns for column in columns):
            notes.append(f"{name} is left out: the table of term values has no column for it")
            continue
        worth, _ = worth_of_terms(terms.vocabulary, values=values, columns=columns)
        whole = float(terms.before @ worth)
        if not whole:
            notes.append(f"{name} is left out: no term of the log has a value for it")
            continue
        scores.append(kept(f"{name}_kept", float(terms.kept @ worth) / whole, about=about, group="advertising"))
    return Measures(scores=tuple(scores), notes=tuple(notes))


def check_values(values: pl.DataFrame) -> None:
    """Raise if a table has no column of terms, or none of what they are worth."""
    if "term" not in values.columns or not any(name in values.columns for name in ("bid", "clicks", "impressions")):
        # Privacy: the table may be a log without a header, so its own names are not quoted.
        raise BadInput("the table of term values needs the column term, and bid, clicks or impressions")
