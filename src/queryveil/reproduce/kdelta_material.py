"""What the kdelta figures are measured on: logs, and an order of their users in which samples grow."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from queryveil.errors import BadInput
from queryveil.log import Format, QueryLog
from queryveil.methods.bots import bots
from queryveil.rng import generator
from queryveil.synth import synthesize

# Paper: figure 2(c).
USERS = 1_000
SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Samples have these shares of the users, so 100 to 1,000 of 1,000."""
N_LOGS = 10
"""So many logs are made up: users with long histories are few, and one log more or less of them tilts a curve."""
N_ORDERS = 3
"""A given log is one; its users are taken in so many orders."""
BOT_THRESHOLD = 100
FEWEST_USERS = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Ordered:
    """A log and its users in an order drawn at random; a sample is the first of them, so larger ones hold smaller."""

    log: QueryLog
    users: pl.Series

    def sample(self, n_users: int) -> QueryLog:
        """Give the log of the first users."""
        if n_users >= len(self.users):
            return self.log
        chosen = self.users.head(n_users)
        return self.log.with_frame(self.log.frame.filter(pl.col("user").is_in(chosen.implode())))

    def __repr__(self) -> str:
        # Privacy: the users stay out of it.
        return f"Ordered(n_users={len(self.users)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The logs that every figure is a mean over, the sizes of the samples, and notes."""

    logs: tuple[Ordered, ...]
    sizes: tuple[int, ...]
    has_urls: bool
    notes: tuple[str, ...]


def gather(log: QueryLog | None, *, users: int | None, seed: int) -> Material:
    """Take one log in several orders, or make up several."""
    if log is not None:
        people, n_bots = _without_bots(log)
        logs = [_in_order(people, seed=seed + i) for i in range(N_ORDERS)]
        origin = f"the log was given ({n_bots:,} bots left out), its users taken in {N_ORDERS} orders"
    else:
        n_users = USERS if users is None else users
        logs = [_made_up(n_users, seed=seed + i) for i in range(N_LOGS)]
        origin = f"{N_LOGS} logs are made up, in the shape of AOL's"
    n_users = len(logs[0].users)
    if n_users < FEWEST_USERS:
        raise BadInput(f"the log has {n_users} users, too few for samples of {min(SHARES):.0%}; give a larger log")
    n_rows = sum(each.log.n_rows for each in logs) / len(logs)
    n_urls = sum(_n_urls(each.log) for each in logs) / len(logs)
    return Material(
        logs=tuple(logs),
        has_urls=n_urls > 0,
        sizes=tuple(round(share * n_users) for share in SHARES),
        notes=(
            f"{origin}: {n_users:,} users, {n_rows / n_users:.1f} rows each, {n_urls:,.0f} distinct URLs "
            f"(theirs: {USERS:,} users of a large log, nothing more is said)"
            + ("" if log is not None else "; real logs have more URLs, so these stay more easily"),
            "a sample is the first users in an order drawn at random, so larger ones hold the smaller; "
            f"every figure is the mean over the {len(logs)} "
            + ("orders, which say nothing of other logs" if log is not None else "logs"),
        ),
    )


def _made_up(n_users: int, *, seed: int) -> Ordered:
    people, _ = _without_bots(synthesize(like="aol", users=n_users, seed=seed).log)
    return _in_order(people, seed=seed)


def _without_bots(log: QueryLog) -> tuple[QueryLog, int]:
    if log.layout.format is Format.TRANSACTIONS:
        raise BadInput("the kdelta figures are for logs of queries; for transactions there are the clump figures")
    if "time" not in log.columns:
        return log, 0
    found = bots(log.frame, threshold=BOT_THRESHOLD)
    return log.with_frame(log.frame.filter(~pl.col("user").is_in(found.implode()))), len(found)


def _in_order(log: QueryLog, *, seed: int) -> Ordered:
    users = log.frame["user"].unique(maintain_order=True)
    return Ordered(log=log, users=users.gather(generator(seed).permutation(len(users))))


def _n_urls(log: QueryLog) -> int:
    if "url" not in log.columns:
        return 0
    return log.frame["url"].str.strip_chars().replace("", None).drop_nulls().n_unique()
