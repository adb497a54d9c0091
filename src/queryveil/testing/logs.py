"""Small made-up logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from queryveil.log import QueryLog


def log_of(histories: Mapping[str, Iterable[str]]) -> QueryLog:
    """Make a log in which each user asks the given queries.

    >>> log_of({"u1": ["red wine"], "u2": ["red", "cheese"]})
    QueryLog(n_rows=3, n_users=2, columns=['user', 'query'])
    """
    rows = [(user, query) for user, queries in histories.items() for query in queries]
    return QueryLog.from_frame({"user": [user for user, _ in rows], "query": [query for _, query in rows]})


def tiny_log() -> QueryLog:
    """Give a log of four users, one of whom can be told by one term.

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
