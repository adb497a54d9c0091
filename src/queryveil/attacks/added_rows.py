"""Attack on kdelta: tell synthetic rows from real ones, as with queries of TrackMeNot."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.data import Floats, QueryLog
from queryveil.guarantees import DifferentialPrivacy, KdeltaAnonymity
from queryveil.pairing import Pair
from queryveil.release import TimeDetail
from queryveil.rng import check_seed, generator
from queryveil.text.tokens import normalise

_REPEATED, _SHARED, _UNLIKE, _SAME_TIME = 2.0, 0.3, 0.3, 1.5
"""The weights of the features; set by hand, on one made-up log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRows:
    """Tell the rows that kdelta made up from those that people asked, and name as many as the manifest counts.

    A row is suspect if its user asks the query seldom (people repeat themselves, copies are drawn one by one), if many
    others have the same query and URL (it is a copy), if it shares no term with the user's other queries, and, where
    times are exact, if another row of the user has the same time (a copy takes one of the user's). Made up is a row
    that the user's rows in the original do not account for, rows with an exchanged text among them.

    - `seed`: repeats how ties are drawn.
    """

    name = "added_rows"

    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_seed(self.seed)

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        release, n_added = pair.release, pair.release.manifest.changed.get("rows_added", 0)
        if isinstance(release.promise, DifferentialPrivacy) and n_added:
            return "all rows are made up"
        is_kdelta = isinstance(release.promise, KdeltaAnonymity) or release.manifest.method == "kdelta"
        if not is_kdelta or not isinstance(release.data, QueryLog) or not n_added:
            return "no rows were made up"
        if not (pair.identity.sole_user() >= 0).any():
            return "nobody can tell whose rows are whose"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        """Name the most suspect rows; those of candidates who may be several people are not judged."""
        release = pair.release
        score = suspicion(release.log, exact_times=release.manifest.columns.time is TimeDetail.KEEP)
        order = np.lexsort((generator(self.seed).random(len(score)), -score))
        named = np.zeros(len(score), np.bool_)
        named[order[: release.manifest.changed["rows_added"]]] = True
        judged = pair.identity.sole_user()[pair.candidate] >= 0
        made_up = _made_up(pair)
        n_made_up = round(float(made_up[judged].sum()))
        n_named = int((named & judged).sum())
        return Exposure(
            attacker=self.name,
            knows="that rows were added, how many, and how",
            what="made-up rows",
            n_targets=n_made_up,
            n_found=min(n_made_up, round(float(made_up[named & judged].sum()))),
            n_by_chance=n_named * n_made_up / max(1, int(judged.sum())),
        )


def suspicion(log: QueryLog, *, exact_times: bool) -> Floats:
    """Return a score for each row of a release: higher is more suspect."""
    pair = [name for name in ("query", "url") if name in log.columns]
    score = _SHARED * pl.col("user").n_unique().over(pair).log() - _REPEATED * pl.len().over("user", "query").log()
    if exact_times and "time" in log.columns:
        score += _SAME_TIME * (pl.len().over("user", "time") > 1).cast(pl.Float64)
    by_counts = log.frame.select(score.alias("score"))["score"].to_numpy()
    return np.asarray(by_counts + _UNLIKE * (1 - _likeness(log.frame)), np.float64)


def _likeness(frame: pl.DataFrame) -> Floats:
    """Return the share of each row's terms that another query of the same user has too."""
    asked = frame.select("user", "query").unique(maintain_order=True)
    terms = asked.with_columns(term=pl.col("query").str.split(" ")).explode("term").unique()
    shared = terms.with_columns(is_shared=pl.len().over("user", "term") > 1)
    by_query = shared.group_by("user", "query").agg(pl.col("is_shared").mean())
    found = frame.join(by_query, on=["user", "query"], how="left", maintain_order="left")["is_shared"]
    return np.asarray(found.to_numpy(), np.float64)


def _made_up(pair: Pair) -> Floats:
    """Return the chance that each released row is made up: its user has more such rows than in the original."""
    released, original = pair.release.log.frame, pair.log.frame
    kind = ["owner", "query", *(["url"] if "url" in released.columns and "url" in original.columns else [])]
    asked = original.with_columns(owner=pl.Series(pair.user.astype(np.int64)), query=normalise(original["query"]))
    owner = pl.Series(pair.identity.sole_user()[pair.candidate])
    rows = released.with_columns(owner=owner, query=normalise(released["query"])).select(kind)
    have = asked.group_by(kind).agg(have=pl.len())
    both = rows.join(have, on=kind, how="left", nulls_equal=True, maintain_order="left")
    beyond = 1 - pl.min_horizontal(pl.col("have").fill_null(0) / pl.len().over(kind), 1.0)
    return np.asarray(both.select(beyond).to_series().to_numpy(), np.float64)
