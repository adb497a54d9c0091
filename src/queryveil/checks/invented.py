"""Find what a released log has and its original does not: deleting and generalising terms never adds any.

A node is written as one word between angle brackets, `<body_of_water>`; a leaf may be written without them.
"""

from typing import Protocol
from unicodedata import category

import numpy as np
import polars as pl

from queryveil.checks._histories import Histories, read_histories
from queryveil.checks.km import window_column
from queryveil.checks.tokens import Codes, Ints
from queryveil.checks.verdict import Found, Verdict, Witness
from queryveil.data import QueryLog
from queryveil.guarantees import KmAnonymity


class Tree(Protocol):
    """A taxonomy, such as that of `queryveil.text`, which is not imported here.

    The root has the number 0 and the parent -1; a parent has a smaller number than its children.
    """

    @property
    def names(self) -> pl.Series:
        """The distinct names of the nodes."""

    @property
    def parent(self) -> Codes:
        """The node above each node."""

    def find_all(self, words: pl.Series) -> Codes:
        """Return the node of each word, -1 where there is none."""


def nodes_named(names: pl.Series, *, tree: Tree) -> Ints:
    """Return the nodes that have exactly these names, -1 where there is none."""
    known = pl.DataFrame({"name": tree.names}).with_row_index("node")
    asked = names.to_frame("name").join(known, on="name", how="left", maintain_order="left")
    return asked["node"].cast(pl.Int64).fill_null(-1).to_numpy().copy()


def nodes_of(words: pl.Series, *, tree: Tree) -> Ints:
    """Return the node that has the word as its name, else the one where the taxonomy finds it, else -1."""
    nodes = nodes_named(words, tree=tree)
    return np.where(nodes >= 0, nodes, tree.find_all(words))


def counts_below(counts: Ints, *, tree: Tree) -> Ints:
    """Return the sum of the counts at each node and below it."""
    below, parents = counts.tolist(), tree.parent.tolist()
    for node in range(len(parents) - 1, 0, -1):
        below[parents[node]] += below[node]
    return np.array(below, np.int64)


def accounted_for(terms: pl.DataFrame, *, before: Histories, tree: Tree) -> pl.Series:
    """Return which terms are nodes with at least as many users and occurrences of the original at them and below.

    `terms` has the columns `term`, `n_users` and `n_occurrences`.
    """
    places = terms.select("term", row=pl.int_range(pl.len())).join(_written(tree), on="term")
    n_users, n_occurrences = _below(before, nodes=places["node"].to_numpy(), tree=tree)
    counts = terms.select("n_users", "n_occurrences")[places["row"]]
    is_enough = (counts["n_users"].to_numpy() <= n_users) & (counts["n_occurrences"].to_numpy() <= n_occurrences)
    found = np.zeros(terms.height, np.bool_)
    found[places["row"].to_numpy()[is_enough]] = True
    return pl.Series(found)


def _written(tree: Tree) -> pl.DataFrame:
    """Return the ways to write each node: `term` and `node`."""
    is_leaf = np.ones(len(tree.parent), np.bool_)
    is_leaf[tree.parent[1:]] = False
    plain = tree.names.rename("term").to_frame().with_row_index("node")
    marked = plain.with_columns(pl.format("<{}>", pl.col("term").str.replace_all(r"\s+", "_")).alias("term"))
    return pl.concat([marked, plain.filter(pl.Series(is_leaf))])


def _below(before: Histories, *, nodes: Ints, tree: Tree) -> tuple[Ints, Ints]:
    """Count the users, and the occurrences, of terms at each of the nodes or below it."""
    n_nodes = len(tree.parent)
    node_of_word = tree.find_all(before.words).astype(np.int64)
    is_known = node_of_word >= 0
    at = np.zeros(n_nodes, np.int64)
    np.add.at(at, node_of_word[is_known], before.n_occurrences[is_known])
    is_asked = np.isin(np.arange(n_nodes), nodes)
    lengths = np.diff(before.starts) - 1
    owner = np.repeat(np.arange(lengths.size), lengths)
    node = node_of_word[before.word_of_item[before.line[before.line >= 0]]]
    pairs = [np.zeros(0, np.int64)]
    while node.size:
        owner, node = owner[node >= 0], node[node >= 0]
        pairs.append(np.unique((owner * n_nodes + node)[is_asked[node]]))
        node = tree.parent[node].astype(np.int64)
    n_users = np.bincount(np.unique(np.concatenate(pairs)) % n_nodes, minlength=n_nodes)
    return n_users[nodes], counts_below(at, tree=tree)[nodes]


def invented(log: QueryLog, *, original: QueryLog, promise: KmAnonymity, taxonomy: Tree | None = None) -> Found:
    """Return the number and witnesses of what the released log has in excess of the original.

    Users have new ids and cannot be matched. What can be checked: a term with more users or occurrences than in the
    original; more users or more rows. Under a promise with windows a user of the original counts once per window. Under
    one about items, nodes of the `taxonomy` may represent what is below them; without it they are not checked.
    """
    by_blanks = promise.items and original.terms_are_items
    after, released = _counted(log, window=None, by_blanks=promise.items)
    before, known = _counted(original, window=promise.window, by_blanks=by_blanks)
    totals = [(after.starts.size - 1, before.starts.size - 1), (log.n_rows, original.n_rows)]
    found = [Witness(kind="invented", support=now, needed=then) for now, then in totals if now > then]
    n_totals, more = len(found), _more(released, known)
    if more.height and not by_blanks:
        # A sign that this Python does not know may be a separator to the method, so both readings must agree.
        _, other = _counted(without_unknown(original), window=promise.window, by_blanks=False)
        more = more.join(_more(released, other).select("term"), on="term", how="semi", maintain_order="left")
    if promise.items and taxonomy is not None:
        more = more.filter(~accounted_for(more, before=before, tree=taxonomy))
    elif promise.items:
        more = more.filter(~(pl.col("term").str.starts_with("<") & pl.col("term").str.ends_with(">")))
    for row in more.head(Verdict.N_KEPT).iter_rows(named=True):
        what = "n_users" if row["n_users"] > row["n_users_before"] else "n_occurrences"
        item, support, needed = row["item"], row[what], row[f"{what}_before"]
        place = int(np.argmax(after.line == item))
        found.append(after.witness([item], place=place, support=support, needed=needed, kind="invented"))
    return n_totals + more.height, found


def _more(released: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return the terms that have more users or occurrences in the release than before."""
    both = released.join(before, on="term", how="left", suffix="_before")
    is_more = [pl.col(name) > pl.col(f"{name}_before").fill_null(0) for name in ("n_users", "n_occurrences")]
    before_or_none = pl.col("n_users_before", "n_occurrences_before").fill_null(0)
    return both.filter(pl.any_horizontal(is_more)).with_columns(before_or_none).sort("n_users", "term")


def without_unknown(log: QueryLog) -> QueryLog:
    """Return the log with blanks for the code points that this Python does not know."""
    queries = log.frame["query"]
    strange = queries.filter(queries.str.contains(r"[^\x00-\x7f]")).unique()
    blanked = ["".join(" " if category(c) == "Cn" else c for c in query) for query in strange]
    return log.with_frame(log.frame.with_columns(query=queries.replace(strange, pl.Series(blanked, dtype=pl.String))))


def _counted(log: QueryLog, *, window: str | None, by_blanks: bool) -> tuple[Histories, pl.DataFrame]:
    """Return a log's histories, and for each term (column `term`) `n_users`, `n_occurrences` and its `item`."""
    windows = window_column(log, window) if window and "time" in log.columns else None
    histories = read_histories(log, windows=windows, by_blanks=by_blanks)
    n_words = len(histories.words)
    n_users = np.zeros(n_words, np.int64)
    np.add.at(n_users, histories.word_of_item, histories.support)
    # With windows a term is several items; any one of them will do to point at it.
    item = np.zeros(n_words, np.int64)
    item[histories.word_of_item] = np.arange(histories.support.size)
    columns = {"term": histories.words, "n_users": n_users, "n_occurrences": histories.n_occurrences, "item": item}
    return histories, pl.DataFrame(columns)
