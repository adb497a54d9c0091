"""Release counts of searches and clicks as Google does since 2024 in its European search dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from queryveil import progress
from queryveil.data import (
    CLICKS_SCHEMA,
    MORE_CLICKS_SCHEMA,
    ROLES,
    TALLIES_SCHEMA,
    Int64s,
    QueryLog,
    Tallies,
    with_own_texts,
)
from queryveil.formats import tallies_layout
from queryveil.guarantees import AskedTexts
from queryveil.methods.bots import caveats, check_queries, no_events
from queryveil.methods.practice.texts import Asked, periods, reasons_of
from queryveil.methods.settings import Google2024Settings
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail
from queryveil.release.texts import count_texts
from queryveil.settings import check_settings, parameters_of

_WHERE = ("device", "country")
_UNKNOWN = "unknown"
_COUNTED = ("user", "query", "url", "rank", *_WHERE)
"""The columns that counts are made from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Google2024(Google2024Settings):
    """Release texts that enough users asked with exact counts, and clicks of enough users by page, device and country.

    Promise: n_users for each text, n_row_users for each row of clicks.
    Not promised: anything to whoever compares two releases, or plants searches; counts are exact.

    Released are the texts in lower case with single blanks and the number of their searches in the last quarter, and
    for each page, device and country the clicks, the views and the mean rank of the clicks, as far as the log has them.
    Every user counts, since a log does not tell who was signed in.

    - n_users: users who must have asked a text
    - within: the last part of the log in which they must have done so ("395d"); None: all of it
    - n_row_users: users who must have clicked a page for a text on a device in a country
    - rows_within: the last part of the log that is counted ("91d", a quarter); None: all of it

    >>> from queryveil.testing import log_of
    >>> log = log_of({"u1": ["red wine", "gout"], "u2": ["Red wine"], "u3": ["red  wine"]})
    >>> Google2024(n_users=3).anonymize(log).tallies.frame.rows()
    [('red wine', 3)]
    """

    name: ClassVar[str] = "google_2024"

    def __post_init__(self) -> None:
        check_settings(self)
        _ = self.promise

    @property
    def promise(self) -> AskedTexts:
        """What a release will promise."""
        return AskedTexts(
            n_users=self.n_users, n_row_users=self.n_row_users, within=self.within, rows_within=self.rows_within
        )

    def anonymize(self, log: QueryLog) -> Release:
        """Return the counts of the texts and clicks that enough users share."""
        check_queries(log, method="google-2024")
        progress.step("counting who asked each text")
        asked = Asked.of(log)
        whole = asked.texts.to_frame("text").select(pl.concat_list("text"))["text"]
        askers = asked.most_askers(whole, period=_last(log, self.within))
        common = askers.filter(pl.col("n_users") >= self.n_users)["part"]
        is_rare = ~asked.texts.is_in(common.implode()).to_numpy()
        is_old = _last(log, self.rows_within) < 0
        stays, removed = reasons_of(asked, {"rows_of_rare_queries": is_rare})
        removed["rows_of_earlier_times"] = int((stays & is_old).sum())
        stays &= ~is_old
        texts = asked.texts.gather(asked.text)
        counted = texts.filter(stays).to_frame("query").group_by("query").agg(count=pl.len().cast(pl.Int64))
        progress.step("counting clicks")
        data = Tallies(
            frame=_in_order(counted.cast(pl.Schema(TALLIES_SCHEMA))),
            # Clicks and views are those of the first row of a search, whether it is counted or not.
            clicks=self._clicks(log, log.frame.with_columns(query=texts.set(pl.Series(~stays), ""))),
            layout=tallies_layout(log.layout),
        )
        removed["distinct_queries"] = int((asked.texts != "").sum()) - data.n_queries
        return Release(data=data, manifest=self._manifest(log, asked, data, removed))

    def _clicks(self, log: QueryLog, rows: pl.DataFrame) -> pl.DataFrame | None:
        """Return the counts of clicks on the rows that have a text; None where the log has no pages."""
        clicks = log.with_frame(rows).with_clicks_as_rows().frame
        if "url" not in clicks.columns:
            return None
        keys = ["query", "url", *(name for name in _WHERE if name in clicks.columns)]
        told = [pl.col(name).replace("", None).fill_null(_UNKNOWN) for name in keys[2:]]
        # What holds a blank is no address, and some of the formats that a release is written in could not hold it.
        clicks = clicks.filter(pl.col("query") != "", pl.col("url").str.contains(r"^[^\s\x00]+$")).with_columns(told)
        n_clicks, n_users = pl.len().cast(pl.Int64).alias("count"), pl.col("user").n_unique().alias("n")
        mean = [pl.col("rank").mean()] if "rank" in clicks.columns else []
        found = clicks.group_by(keys).agg(n_clicks, n_users, *mean)
        found = found.filter(pl.col("n") >= self.n_row_users).drop("n")
        views = _views(log, rows, keys)
        if views is not None:
            found = found.join(views, on=keys, how="left").with_columns(pl.col("views").fill_null(0))
        more = {name: kind for name, kind in MORE_CLICKS_SCHEMA.items() if name in found.columns}
        schema = {**CLICKS_SCHEMA, **more}
        return _in_order(found.select(list(schema)).cast(pl.Schema(schema)))

    def _manifest(self, log: QueryLog, asked: Asked, data: Tallies, removed: dict[str, int]) -> Manifest:
        return Manifest(
            method=self.name,
            promise=self.promise,
            parameters=parameters_of(self),
            counts=Counts(
                n_rows_before=log.n_rows, n_rows_after=data.n_queries, n_users_before=log.n_users, n_users_after=0
            ),
            texts=count_texts(data.frame["query"], asked=asked.texts.gather(asked.text), users=log.frame["user"]),
            removed={"bad_rows_skipped": log.reading.n_bad_rows_skipped} | removed,
            events=no_events(log),
            columns=ColumnReport(
                ids=Ids.FRESH,
                time=TimeDetail.DROP,
                dropped=tuple(name for name in log.columns if name in ROLES and name not in _COUNTED),
                n_others_dropped=sum(name not in ROLES for name in log.columns),
            ),
            warnings=tuple(caveats(log.reading, seed=None, columns=log.columns)),
        )


def _last(log: QueryLog, within: str | None) -> Int64s:
    """Return 0 for the rows of the last part of a log, and -1 for earlier ones."""
    return periods(log, within=within, listed=within)


def _views(log: QueryLog, rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame | None:
    """Return how often each page was shown; None where the log does not tell."""
    if log.events is None or "search" not in rows.columns:
        return None
    shown = log.events.filter(pl.col("action").str.to_lowercase() == "impression").select("search", url="object")
    if shown.is_empty():
        return None
    of_search = rows.filter(pl.col("search").is_not_null()).unique("search", keep="first", maintain_order=True)
    told = of_search.select(
        "search", "query", *(pl.col(name).replace("", None).fill_null(_UNKNOWN) for name in keys[2:])
    )
    return shown.join(told, on="search").group_by(keys).agg(views=pl.len().cast(pl.Int64))


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in an order that tells nothing but what stands in them, with no text of others."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    return with_own_texts(frame.sort(["count", *texts], descending=[True, *(False for _ in texts)]))
