"""What the km tables are measured on: histories, what their terms are worth, and where both come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from queryveil.errors import BadInput
from queryveil.histories import Histories, collect
from queryveil.kernels.arrays import Floats
from queryveil.log import QueryLog
from queryveil.methods import Target
from queryveil.methods.bots import bots
from queryveil.methods.km_targets import check_values
from queryveil.methods.km_targets import term_values as worth_of_terms
from queryveil.progress import step
from queryveil.synth import synthesize, term_values
from queryveil.text import normalize, tokenize
from queryveil.text.codes import encode

# Paper: section 5.1.
BOT_THRESHOLD = 100
THEIR_LOG = "theirs: 367,803 users, 1,846,134 queries, 251,115 distinct terms, 5,501,825 occurrences of them"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Material:
    """A log's histories and the values of its terms.

    `worth` says for each target what one occurrence of each term is worth, 0 without a value; `terms` has a row for
    each term, with null where the table of values has nothing; `notes` say where it all comes from.
    """

    histories: Histories
    worth: Mapping[Target, Floats]
    terms: pl.DataFrame
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        # Privacy: the terms stay out of it.
        return f"Material(histories={self.histories!r})"


def gather(log: QueryLog | None, *, users: int | None, values: pl.DataFrame | None, seed: int) -> Material:
    """Take a log and a table of term values; what is not given is made up."""
    log_origin, values_origin = "the log was given", "the term values were given"
    if log is None:
        log = synthesize(like="altavista", users=users, seed=seed).log
        log_origin = "the log is made up, in the shape of the paper's"
    step("reading terms")
    people, n_bots = _without_bots(log.frame)
    if values is None:
        values = term_values(log.with_frame(people), seed=seed)
        values_origin = "the term values are made up, with correlations like those of the paper's table 3"

    tokens = tokenize(people["query"])
    owners, ids = encode(people["user"])
    histories = collect(tokens, owners, n_users=len(ids))
    if not len(histories.terms):
        raise BadInput("the log has no terms to measure on; give one whose queries hold letters or digits")
    terms = _terms(tokens.vocabulary, histories, values)
    n_occurrences = int(histories.counts.sum())
    return Material(
        histories=histories,
        worth={target: worth_of_terms(tokens.vocabulary, target=target, values=values)[0] for target in Target},
        terms=terms,
        notes=(
            f"{log_origin}: {len(ids):,} users ({n_bots:,} bots left out), {people.height:,} queries, "
            f"{terms.height:,} distinct terms, {n_occurrences:,} occurrences of them ({THEIR_LOG})",
            f"{values_origin}: {terms['bid'].count():,} terms have a bid, {terms['clicks'].count():,} have clicks",
        ),
    )


def _without_bots(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    if "time" not in frame.columns:
        return frame, 0
    found = bots(frame, threshold=BOT_THRESHOLD)
    return frame.filter(~pl.col("user").is_in(found.implode())), len(found)


def _terms(vocabulary: pl.Series, histories: Histories, values: pl.DataFrame) -> pl.DataFrame:
    for target in Target:
        check_values(target, values)
    numbers = (pl.col(name).cast(pl.Float64) for name in ("bid", "clicks", "impressions"))
    table = values.select(numbers, term=normalize(values["term"].cast(pl.String)))
    counts = pl.DataFrame({"term": vocabulary, "frequency": histories.frequency(), "users": histories.support()})
    return counts.join(table, on="term", how="left", maintain_order="left")
