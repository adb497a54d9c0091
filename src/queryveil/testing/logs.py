"""Small example logs, transactions and a taxonomy."""

from collections.abc import Iterable, Mapping

from queryveil.data import QueryLog, Transactions
from queryveil.text.taxonomy import Taxonomy


def log_of(histories: Mapping[str, Iterable[str]]) -> QueryLog:
    """Make a log in which each user asks the given queries.

    >>> log_of({"u1": ["red wine"], "u2": ["red", "cheese"]})
    QueryLog(n_rows=3, n_users=2, columns=['user', 'query'])
    """
    rows = [(user, query) for user, queries in histories.items() for query in queries]
    return QueryLog.from_frame({"user": [user for user, _ in rows], "query": [query for _, query in rows]})


def tiny_log() -> QueryLog:
    """Return a log of four users, one of whom can be told by one term.

    >>> tiny_log().n_users
    4
    """
    return log_of(
        {
            "u1": ["jaguar price", "red wine"],
            "u2": ["jaguar speed", "red wine"],
            "u3": ["wine cellar", "jaguar"],
            "u4": ["red carpet", "zanzibar"],
        }
    )


def food() -> Taxonomy:
    """Return the taxonomy of Fard and Wang's figure 1.

    >>> food()
    Taxonomy(n_nodes=12, n_leaves=8, depth=3)
    """
    kinds = {"fruit": "apple orange banana", "meat": "chicken beef", "dairy": "milk butter cheese"}
    pairs = [(kind, "food") for kind in kinds]
    return Taxonomy.from_pairs(pairs + [(item, kind) for kind, items in kinds.items() for item in items.split()])


def five_baskets() -> Transactions:
    """Return the transactions of Fard and Wang's table 1.

    >>> five_baskets()
    Transactions(n_transactions=5, n_items=13)
    """
    baskets = ["orange chicken beef", "banana beef cheese", "chicken milk butter", "apple chicken", "chicken beef"]
    return Transactions.from_frame({"items": [basket.split() for basket in baskets]})
