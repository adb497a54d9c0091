"""What the swap tables and figures are measured on: a log without identifiers, its rows classified."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from queryveil.errors import BadInput
from queryveil.log import Format, QueryLog
from queryveil.stream.preparing import prepare
from queryveil.synth import synthesize
from queryveil.text.categories import UNCLASSIFIED
from queryveil.text.classifier import Classifier

USERS = 10_000
# Paper: section 4.2.1.
THEIR_ROWS = 36_389_576
THEIR_SHARE_CLASSIFIED = 0.85
FEWEST_USERS = 50


class Order(StrEnum):
    """The order in which rows reach the anonymizer: as a search engine receives them, or as the file has them."""

    TIME = "time"
    FILE = "file"


ORDER_NOTE = (
    "order time: as a search engine receives the rows; order file: one user after the other, as AOL's files are and as "
    "the paper seems to have run"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Material:
    """The log as it came, its rows prepared in the order of the file, and notes on both."""

    log: QueryLog
    events: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders that the log allows."""
        return tuple(Order) if "time" in self.events.columns else (Order.FILE,)

    def in_order(self, order: Order) -> pl.DataFrame:
        """Give the rows in an order."""
        if order is Order.FILE:
            return self.events
        rows = self.events.with_row_index("row").sort("time", "row", nulls_last=True)
        return rows.drop("row")

    def __repr__(self) -> str:
        # Privacy: the rows stay out of it.
        return f"Material(n_rows={self.events.height})"


def gather(log: QueryLog | None, *, users: int | None, seed: int) -> Material:
    """Take a log, or make one up, and prepare its rows as the anonymizer does."""
    origin = "the log was given"
    if log is None:
        log = synthesize(like="aol", users=USERS if users is None else users, seed=seed).log
        origin = "the log is made up, in the shape of AOL's"
    if log.layout.format is Format.TRANSACTIONS:
        raise BadInput("the swap figures are for logs of queries; for transactions there are the clump figures")
    names = [name for name in ("user", "query", "time") if name in log.columns]
    prepared = prepare(log.frame.select(names), classifier=Classifier())
    events = prepared.frame
    n_users = events["user"].n_unique()
    if n_users < FEWEST_USERS:
        raise BadInput(f"{n_users} users of the log have a query, too few for pools of k=50; give a larger log")
    n_none = prepared.category_counts.get(UNCLASSIFIED, 0)
    return Material(
        log=log,
        events=events,
        notes=(
            f"{origin}: {n_users:,} users, {events.height:,} rows with a query once identifiers are gone "
            f"(theirs: {THEIR_ROWS:,} rows of AOL's); {_repeats(events):.0%} of them repeat a query of the same user",
            f"{1 - n_none / events.height:.1%} of the rows got a category (theirs: {THEIR_SHARE_CLASSIFIED:.0%}, the "
            "rest was thrown away there; here they have a pool of their own)",
        ),
    )


def _repeats(events: pl.DataFrame) -> float:
    return 1 - events.select("user", "query").n_unique() / events.height
