"""Recount what a manifest says of the texts of a released log: how many there are, and how many one person alone asked.

Letters are lowered by Python's tables and by those of Polars, which may know others: wrong is what is wrong by both.
Identifiers are not recounted: there is no second set of rules for them.
"""

from collections.abc import Collection, Iterator

import polars as pl

from queryveil.checks.tokens import folded_all, lowered_all
from queryveil.checks.verdict import count
from queryveil.data import Groups, QueryLog, Tallies, Transactions
from queryveil.guarantees import KmAnonymity, SwapAnonymity
from queryveil.release import MANIFEST, Manifest

_OF_LOGS = ("km", "kdelta", "swap", "pseudonymise", "query_threshold")
_OF_PRACTICE = ("google_2024", "ec_2026", "ddg_2026", "brave_wdp", "mozilla")
"""The methods of ours that release queries as texts."""


def faults_of_texts(data: QueryLog | Transactions | Groups | Tallies, manifest: Manifest) -> Iterator[str]:
    """Yield what is wrong with the counts of texts, as far as the release itself tells it."""
    if isinstance(data, Tallies) and not manifest.promise.is_noisy:
        # Each text stands there once, and no user beside it.
        yield from other_texts(manifest, n_texts=[data.n_queries], n_rows=data.n_queries)
        return
    if not isinstance(data, QueryLog) or data.terms_are_items or manifest.method == "token_hash":
        if manifest.texts is not None:
            yield f"{MANIFEST} counts texts, and such a release has none"
        return
    n_texts = [_texts(data.frame, by_python=by_python).height for by_python in (True, False)]
    yield from other_texts(manifest, n_texts=n_texts, n_rows=data.n_rows)
    if isinstance(manifest.promise, KmAnonymity):
        # What is left of a query is asked by those who have it in the release; one id is one person.
        yield from too_few_of_one(data, manifest, asked=data.frame)


def other_texts(manifest: Manifest, *, n_texts: Collection[int], n_rows: int) -> Iterator[str]:
    """Yield where the counts are missing, contradict each other, or are of another number of texts and rows."""
    said = manifest.texts
    if said is None:
        if manifest.method in (*_OF_LOGS, *_OF_PRACTICE):
            yield f"{MANIFEST} does not say how many texts one person alone asked"
        return
    if said.n_texts not in n_texts:
        yield f"{MANIFEST} says {count(said.n_texts, 'text')}, and there are {max(n_texts):,} in the files"
    of_one = (said.n_of_one_person, said.n_rows_of_one_person)
    pairs = ((of_one[0] or 0, of_one[1] or 0), (said.n_with_identifier, said.n_rows_with_identifier))
    if not all(n <= said.n_texts and n <= rows <= n_rows and (n > 0) == (rows > 0) for n, rows in pairs):
        yield f"{MANIFEST} counts more texts of one person or with an identifier than there are, or other rows of them"
    is_stream = isinstance(manifest.promise, SwapAnonymity) and manifest.promise.remembered is not None
    if of_one.count(None) != (2 if is_stream else 0):
        yield f"{MANIFEST} does not say how many texts one person alone asked, or says what a stream does not know"


def too_few_of_one(log: QueryLog, manifest: Manifest, *, asked: pl.DataFrame) -> list[str]:
    """Return where a manifest counts fewer texts that one person alone asked, or fewer rows of them, than there are.

    `asked` has the user and the query of every row that a released text can come from. Programs, which the method may
    have left out, count as people here, so that there may be more such texts than are found.
    """
    counts = []
    for by_python in (True, False):
        people = _texts(asked, by_python=by_python).filter(pl.col("n_users") == 1)
        of_one = _texts(log.frame, by_python=by_python).join(people, on="text", how="semi")
        counts.append((of_one.height, int(of_one["n_rows"].sum())))
    n_texts, n_rows = map(min, zip(*counts, strict=True))
    return too_few(manifest, n_texts=n_texts, n_rows=n_rows)


def too_few(manifest: Manifest, *, n_texts: int, n_rows: int) -> list[str]:
    """Return where a manifest counts fewer texts of one person, or rows of such texts, than these."""
    said = manifest.texts
    if said is None or said.n_of_one_person is None or said.n_rows_of_one_person is None:
        return []
    counts = (("texts", said.n_of_one_person, n_texts), ("rows with a text", said.n_rows_of_one_person, n_rows))
    return [
        f"{MANIFEST} says that one person alone asked {n:,} {noun}, and there are {least:,} or more"
        for noun, n, least in counts
        if n < least
    ]


def _texts(frame: pl.DataFrame, *, by_python: bool) -> pl.DataFrame:
    """Return each text that is not empty, and how many rows and users have it."""
    # Some files have a blank in the place of NUL.
    queries = frame["query"].str.replace_all("\0", " ", literal=True)
    rows = frame.select("user", text=folded_all(queries) if by_python else lowered_all(queries))
    counted = rows.group_by("text").agg(n_rows=pl.len(), n_users=pl.col("user").n_unique())
    return counted.filter(pl.col("text") != "")
