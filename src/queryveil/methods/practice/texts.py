"""What the methods of practice share: texts by number, users counted per part of a text, and rows released with ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from queryveil.data import Bools, Int32s, Int64s, QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import parse_window
from queryveil.methods.bots import caveats, counts_of
from queryveil.release import ColumnPolicy, Ids, Manifest, Release, ids_per_window, release_of
from queryveil.release.texts import count_texts
from queryveil.rng import generator
from queryveil.settings import parameters_of
from queryveil.text.identifiers import Found, IdentifierKind, find_identifiers
from queryveil.text.identifiers.identifiers import screen
from queryveil.text.tokens import encode, normal_form

ADDRESS_RULES = ("street", "post box", "zip code", "british code", "canadian code")
"""The rules that find an address, and not only a town."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Asked:
    """The rows of a log by number: whose each is, and which text in normal form it has.

    - `owner`, `text`: the numbers of the user and of the text of each row.
    - `texts`: the texts by number; one may be empty.
    """

    owner: Int32s
    text: Int32s
    texts: pl.Series

    @classmethod
    def of(cls, log: QueryLog) -> Asked:
        """Number the users and the texts of a log."""
        owner, _ = encode(log.frame["user"])
        as_written, written = encode(log.frame["query"])
        # Files of some formats have a blank in place of a NUL.
        number, texts = encode(normal_form(written.str.replace_all("\0", " ", literal=True)))
        return cls(owner=owner, text=number[as_written] if len(written) else as_written, texts=texts)

    @property
    def is_empty(self) -> Bools:
        """Which rows have no text."""
        return np.asarray((self.texts == "").to_numpy()[self.text], np.bool_)

    def most_askers(self, parts: pl.Series, *, period: Int64s) -> pl.DataFrame:
        """Return each `part` of the texts with the `n_users` who asked it in its best period; -1 is no period.

        `parts` has the list of parts of each text.
        """
        rows = pl.DataFrame({"text": self.text, "user": self.owner, "period": period})
        asked = rows.filter(pl.col("period") >= 0).unique()
        listed = pl.DataFrame({"part": parts}).with_row_index("text").cast({"text": pl.Int32})
        pairs = asked.join(listed.explode("part", empty_as_null=False), on="text").unique(["part", "user", "period"])
        counted = pairs.group_by("part", "period").agg(n_users=pl.len())
        return counted.group_by("part").agg(pl.col("n_users").max())


def periods(log: QueryLog, *, within: str | None, listed: str | None = None) -> Int64s:
    """Return the stretch of time that each row is in, counted back from the end of the log; -1 where none is left.

    Rows without a time are in the last stretch. Without `listed` all stretches count.

    >>> from datetime import datetime
    >>> times = [datetime(2026, 1, 1), datetime(2026, 1, 3), datetime(2026, 1, 4)]
    >>> log = QueryLog.from_frame({"user": ["1"] * 3, "query": ["tea"] * 3, "time": times})
    >>> periods(log, within="2d").tolist(), periods(log, within="2d", listed="2d").tolist()
    ([1, 0, 0], [-1, 0, 0])
    """
    if "time" not in log.columns or not log.n_rows:
        return np.zeros(log.n_rows, np.int64)
    age = log.frame.select(age=(pl.col("time").max() - pl.col("time")).dt.total_microseconds().fill_null(0))["age"]
    found = np.zeros(log.n_rows, np.int64) if within is None else age.to_numpy() // _microseconds(within)
    return found if listed is None else np.where(age.to_numpy() < _microseconds(listed), found, -1)


def _microseconds(length: str) -> int:
    return parse_window(length) // timedelta(microseconds=1)


def found_in(texts: pl.Series) -> dict[int, list[Found]]:
    """Return the identifiers in each text that has any, by its number.

    >>> list(found_in(pl.Series(["red shoes", "call 212-555-0143"])))
    [1]
    """
    some = np.flatnonzero(screen(texts))
    found = zip(some.tolist(), map(find_identifiers, texts.gather(some)), strict=True)
    return {place: each for place, each in found if each}


def is_address(found: Found) -> bool:
    """Return whether an identifier is an address, and not only a town."""
    return found.kind is IdentifierKind.PLACE and found.rule in ADDRESS_RULES


def check_new_ids(columns: ColumnPolicy) -> None:
    """Raise if ids are to be kept where nobody may join a user's rows."""
    if columns.ids is Ids.KEEP:
        raise BadParameter("ids", "keep", allowed="fresh or keyed: kept ids would join what was taken apart")


def those_there(columns: ColumnPolicy, log: QueryLog, *, usual: Sequence[str]) -> tuple[str, ...]:
    """Return what to keep: all that was asked for, or of the usual columns those that the log has."""
    return tuple(name for name in usual if name in log.columns) if columns.keep == tuple(usual) else columns.keep


def released(
    method: Any,
    log: QueryLog,
    asked: Asked,
    frame: pl.DataFrame,
    *,
    whole: QueryLog,
    stays: Bools,
    removed: Mapping[str, int],
    alone: Int64s | None = None,
    warnings: Sequence[str] = (),
) -> Release:
    """Return the release of the rows that stay, with their texts in normal form.

    - `method`: the method, with its name, promise, columns and seed, and the columns that its promise covers.
    - `whole`: the log with its events.
    - `frame`: the columns of the log, rows as there, of which those are taken that stay.
    - `alone`: the number of the id that each row has among those of its user; None if a user has one id.
    - `warnings`: those of the method.
    """
    columns: ColumnPolicy = method.columns
    out = frame.with_columns(query=asked.texts.gather(asked.text)).filter(stays)
    owner = asked.owner[stays]
    if alone is not None:
        out = out.with_columns(ids_per_window(columns.released_ids(out["user"]), pl.Series(alone[stays])))
        _, owner = np.unique(owner.astype(np.int64) << 32 | alone[stays], return_inverse=True)
    out = columns.apply(out, owner.astype(np.int32), rng=generator(method.seed))
    report, promise = columns.report(log.columns), method.promise
    # Of rows that stand alone, and of a release that promises nothing, times alone say nothing.
    n_alone = None if promise.promises_nothing or promise.changes_ids else columns.n_alone(out)
    n_left = len(np.unique(asked.owner[stays]))
    bad_rows = {"bad_rows_skipped": log.reading.n_bad_rows_skipped}
    protected = report.kept if promise.promises_nothing else method.protected
    made = Manifest(
        method=method.name,
        promise=promise,
        parameters=parameters_of(method),
        counts=counts_of(log, out),
        texts=count_texts(out["query"], asked=asked.texts.gather(asked.text), users=log.frame["user"]),
        removed=bad_rows | dict(removed) | {"users_left_empty": log.n_users - n_left},
        columns=report,
        warnings=(
            *warnings,
            *columns.warnings(log.columns, protected=protected, n_alone=n_alone),
            *caveats(log.reading, seed=method.seed, columns=log.columns),
        ),
    )
    return release_of(out, made, rows=log, log=whole, columns=columns, rng=generator(method.seed))


def reasons_of(asked: Asked, reasons: Mapping[str, Bools]) -> tuple[Bools, dict[str, int]]:
    """Return which rows stay, and how many go for which reason, the first that applies; reasons are of texts."""
    stays, removed = ~asked.is_empty, {"rows_without_query": int(asked.is_empty.sum())}
    for name, is_wrong in reasons.items():
        goes = stays & is_wrong[asked.text]
        removed[name] = int(goes.sum())
        stays &= ~goes
    return stays, removed


def has_any(texts: pl.Series, places: Collection[int]) -> Bools:
    """Return which texts are among those of these numbers."""
    found = np.zeros(len(texts), np.bool_)
    found[list(places)] = True
    return found
