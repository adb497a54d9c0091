"""Attack on kdelta: tell synthetic rows from real ones, as with queries of TrackMeNot."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks._learning import learned_scores
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, SeededAttacker
from queryveil.data import Floats, QueryLog
from queryveil.guarantees import DifferentialPrivacy, KdeltaAnonymity
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.text.tokens import normal_form


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRows(SeededAttacker):
    """Know what half of the people asked, and tell the made-up rows of the others.

    From the half that is known a logistic regression learns what made-up rows look like; the halves take turns. It
    looks at how often the user, the others and the user's group of equal shares have the query, the cell of cluster and
    URL and the time, and at the words that the user's other queries have too, rare ones among them. As many rows are
    named as are made up. Made up is a row that the user's rows in the original do not account for.

    - `seed`: repeats who is known, and how ties are drawn.
    """

    name = "added_rows"
    knows = "what half of the people asked, and how rows were added"
    what = "made-up rows"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        release, n_added = pair.release, pair.release.manifest.changed.get("rows_added", 0)
        if isinstance(release.promise, DifferentialPrivacy) and n_added:
            yield "all rows are made up"
        is_kdelta = isinstance(release.promise, KdeltaAnonymity) or release.manifest.method == "kdelta"
        if not is_kdelta or not isinstance(release.data, QueryLog) or not n_added:
            yield "no rows were made up"
        if not (pair.identity.sole_user() >= 0).any():
            yield "nobody can tell whose rows are whose"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        rng = generator(self.seed)
        judged = np.flatnonzero(pair.identity.sole_user()[pair.candidate] >= 0)
        made_up = _made_up(pair)[judged]
        half = rng.integers(0, 2, pair.n_candidates)[pair.candidate[judged]]
        features, score = features_of(pair.release)[judged], np.zeros(len(judged))
        for known in (half != 0, half != 1):
            if known.any() and not known.all():
                score[~known] = learned_scores(features[known], made_up[known], of=features[~known], rng=rng)
        n_made_up = round(float(made_up.sum()))
        named = np.lexsort((rng.random(len(score)), -score))[:n_made_up]
        n_found = min(n_made_up, round(float(made_up[named].sum())))
        n_by_chance = min(n_made_up, n_made_up * n_made_up / max(1, len(judged)))
        return self.exposure(n_targets=n_made_up, n_found=n_found, n_by_chance=n_by_chance)


def features_of(release: Release) -> Floats:
    """Return what is looked at of each row of a release."""
    frame = _with_cells(release)
    has_times = "time" in frame.columns and frame["time"].null_count() < frame.height
    frame = frame.with_columns(day=pl.col("time").dt.truncate("1d")) if has_times else frame
    users = pl.col("user").n_unique
    n_of_user, in_cell = pl.len().over("user"), pl.len().over("user", "cell")
    looked_at = {
        "asked": pl.len().over("user", "query"),
        "asked_in_cell": pl.len().over("user", "cell", "query") / in_cell,
        "texts_in_cell": pl.col("query").n_unique().over("user", "cell") / in_cell,
        "in_cell": in_cell,
        "rows": n_of_user,
        "rows_in_group": n_of_user / n_of_user.mean().over("group"),
        "users_of_text": users().over("query"),
        "users_of_text_and_url": users().over("query", "cell"),
        "users_of_cell": users().over("cell"),
        "share_of_cell": pl.len().over("cell", "query") / pl.len().over("cell"),
        "groups_of_cell": pl.col("group").n_unique().over("cell"),
        "groups_of_text": pl.col("group").n_unique().over("query", "cell"),
        "group_has_text": users().over("group", "cell", "query") / users().over("group"),
        "texts_of_group": pl.col("query").n_unique().over("group", "cell") / users().over("group"),
        "words": pl.col("query").str.count_matches(" "),
    }
    if has_times:
        looked_at |= {
            "at_time": pl.len().over("user", "time"),
            "on_day": pl.len().over("user", "day"),
            "texts_on_day": pl.col("query").n_unique().over("user", "day") / pl.len().over("user", "day"),
            "text_on_day": pl.len().over("user", "day", "query") / pl.len().over("user", "query"),
        }
    found = [frame.select(**looked_at).cast(pl.Float64).to_numpy(), _likeness(frame, "user")]
    if has_times:
        found.append(_likeness(frame, "user", "day"))
    return np.column_stack(found)


def _with_cells(release: Release) -> pl.DataFrame:
    """Return the rows with the `cell` of each, a cluster and a URL, and the `group` of users with equal shares."""
    frame = release.log.frame
    texts, numbers = frame["query"].unique().sort(), release.manifest.query_clusters.split()
    named = texts.to_frame().with_columns(cluster=pl.Series(numbers if len(numbers) == len(texts) else texts))
    urls = pl.col("url").fill_null("") if "url" in frame.columns else pl.lit("")
    rows = frame.join(named, on="query", how="left", maintain_order="left").with_columns(
        cell=pl.struct(pl.col("cluster"), urls.alias("clicked")).hash()
    )
    counted = rows.group_by("user", "cell").agg(n=pl.len())
    # Equal shares in unlike numbers of rows: the counts over their sum, to so many digits.
    share = (pl.col("n") / pl.col("n").sum().over("user")).round(9)
    groups = counted.group_by("user").agg(group=pl.struct(pl.col("cell"), share).hash().sum())
    return rows.join(groups, on="user", how="left", maintain_order="left")


def _likeness(frame: pl.DataFrame, *within: str) -> Floats:
    """Return of each row the share of terms that another query of the user (and day) has, and how rare these are."""
    asked = frame.select(*within, "query").unique(maintain_order=True)
    terms = asked.with_columns(term=pl.col("query").str.split(" ")).explode("term").unique(maintain_order=True)
    n_users = pl.col("user").n_unique().over("term")
    shared = terms.with_columns(is_shared=pl.len().over(*within, "term") > 1, n_users=n_users)
    rarest = pl.col("n_users").filter("is_shared").min().fill_null(frame.height)
    by_query = shared.group_by(*within, "query").agg(
        pl.col("is_shared").mean(), rarest_shared=rarest, rarest=pl.col("n_users").min()
    )
    found = frame.join(by_query, on=[*within, "query"], how="left", nulls_equal=True, maintain_order="left")
    return np.asarray(found.select("is_shared", "rarest_shared", "rarest").cast(pl.Float64).to_numpy(), np.float64)


def _made_up(pair: Pair) -> Floats:
    """Return the chance that each released row is made up: its user has more such rows than in the original."""
    released, original = pair.release.log.frame, pair.log.frame
    kind = ["owner", "query", *(["url"] if "url" in released.columns and "url" in original.columns else [])]
    asked = original.with_columns(owner=pl.Series(pair.user.astype(np.int64)), query=normal_form(original["query"]))
    owner = pl.Series(pair.identity.sole_user()[pair.candidate])
    rows = released.with_columns(owner=owner, query=normal_form(released["query"])).select(kind)
    have = asked.group_by(kind).agg(have=pl.len())
    both = rows.join(have, on=kind, how="left", nulls_equal=True, maintain_order="left")
    beyond = 1 - pl.min_horizontal(pl.col("have").fill_null(0) / pl.len().over(kind), 1.0)
    return np.asarray(both.select(beyond).to_series().to_numpy(), np.float64)
