"""Does a release hold a query with a URL that its original does not?"""

from __future__ import annotations

from unicodedata import normalize

import polars as pl

from queryveil.log import QueryLog
from queryveil.verify.clusters import urls_of
from queryveil.verify.tokens import number
from queryveil.verify.verdict import Verdict, Witness


def folded(query: str) -> str:
    """Give a query as it is compared: composed, in lower case, with single blanks.

    >>> folded("  Red   Kettle ")
    'red kettle'
    """
    return " ".join(normalize("NFC", normalize("NFC", query).lower()).split())


def invented_pairs(log: QueryLog, *, original: QueryLog, additions: bool) -> tuple[int, list[Witness]]:
    """Count the pairs of query and URL that only the release has, and the users that are too many.

    Users have new ids, so they cannot be matched. Without `additions` rows can only have gone, and a pair that stands
    in more rows than before counts too.
    """
    before = _counted(original).select("query", "url", n_before="n")
    joined = _counted(log).join(before, on=["query", "url"], how="left").with_columns(pl.col("n_before").fill_null(0))
    more = joined.filter(pl.col("n_before") == 0 if additions else pl.col("n") > pl.col("n_before"))
    kept = more.sort("n", "row").head(Verdict.N_KEPT)
    users = more_users(log, original=original)
    found = [
        pair_witness(n, n_before=n_before, row=row)
        for n, n_before, row in kept.select("n", "n_before", "row").iter_rows()
    ]
    return more.height + len(users), [*users, *found]


def more_users(log: QueryLog, *, original: QueryLog) -> list[Witness]:
    """Say if the release has more users than the original."""
    now, then = log.n_users, original.n_users
    return [Witness(kind="invented", size=0, support=now, needed=then, rows=(), positions=())] if now > then else []


def pair_witness(n: int, *, n_before: int, row: int) -> Witness:
    """Point at a query with a URL in `n` rows of the release, of which the original has `n_before`."""
    return Witness(kind="invented_pair", size=1, support=n, needed=n_before, rows=(row,), positions=())


def _counted(log: QueryLog) -> pl.DataFrame:
    """Give the distinct pairs: `query` as it is compared, `url`, how many rows hold it (`n`), and the first (`row`)."""
    queries = number(log.frame["query"])
    rows = pl.DataFrame({"query": folded_all(queries.distinct).gather(queries.codes), "url": urls_of(log)})
    return rows.with_row_index("row", offset=1).group_by("query", "url").agg(pl.len().alias("n"), pl.col("row").min())


def folded_all(queries: pl.Series) -> pl.Series:
    """Give queries as they are compared, as `folded` does one."""
    is_ascii = queries.str.len_bytes() == queries.str.len_chars()
    # In ASCII there is nothing to compose, so Polars may do it; the blanks are those that Python splits at.
    plain = queries.str.to_lowercase().str.replace_all(r"[\x09-\x0d\x1c-\x20]+", " ").str.strip_chars(" ")
    if is_ascii.all():
        return plain
    return plain.scatter((~is_ascii).arg_true(), [folded(text) for text in queries.filter(~is_ascii)])
