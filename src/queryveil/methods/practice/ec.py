"""Release search data as the European Commission ordered in July 2026 (C(2026) 5091): mini-sessions of listed words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Bools, Int64s, QueryLog
from queryveil.guarantees import ANY, REGIONS, AskedEntities
from queryveil.methods.bots import check_queries
from queryveil.methods.practice.texts import (
    Asked,
    check_new_ids,
    found_in,
    is_address,
    periods,
    reasons_of,
    released,
    those_there,
)
from queryveil.methods.settings import Ec2026Settings
from queryveil.release import ColumnPolicy, Release, rows_for
from queryveil.rng import check_seed
from queryveil.settings import check_settings
from queryveil.text.identifiers import Found, IdentifierKind

CELLS = ("device", "country", "language")
_USUAL = ("rank", "url", *CELLS)
_PHONES = (IdentifierKind.PHONE, IdentifierKind.FAX)
_ENDS = r"^[^\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+$"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ec2026(Ec2026Settings):
    """Release texts of which every word, full name, address and phone was asked by enough users, in mini-sessions.

    Promise: these users for each word, name, address and phone; enough users for each device, country and language.
    Not promised: that a text was asked by two people; anything about ranks, clicked pages and times that are kept.

    Texts are released in lower case with single blanks, as they are counted. Where a row's device, country and
    language are those of too few users, the language is left out ("all"), then the device, then the country becomes its
    region of the world, then that is left out, too; a row that still stands with too few goes.

    - n_users: users who must have asked each word, full name, address and phone number of a text
    - within: the stretch of time in which they did ("395d"), counted back from the end of the log; None: all of it
    - listed: how far back such stretches count; None: to the beginning of the log
    - cell_users: users of each device, country and language as released
    - most_words: words of a text, at most; not published
    - session_rows: rows of a mini-session, at most; not published
    - session_minutes: a pause of more minutes ends a mini-session; not published
    - columns: which other columns leave; by default no time, and of the log's what it has of rank, url, device, country
      and language
    - seed: repeat a run; not for releases

    >>> from queryveil.testing import log_of
    >>> log = log_of({"u1": ["red wine", "gout"], "u2": ["wine red"], "u3": ["red carpet"]})
    >>> sorted(Ec2026(n_users=2).anonymize(log).log.frame["query"])
    ['red wine', 'wine red']
    """

    name: ClassVar[str] = "ec_2026"
    protected: ClassVar[tuple[str, ...]] = CELLS

    columns: ColumnPolicy = field(default_factory=lambda: ColumnPolicy(keep=_USUAL))

    def __post_init__(self) -> None:
        check_settings(self)
        check_seed(self.seed)
        check_new_ids(self.columns)
        _ = self.promise

    @property
    def promise(self) -> AskedEntities:
        """What a release will promise."""
        return AskedEntities(n_users=self.n_users, cell_users=self.cell_users, within=self.within, listed=self.listed)

    def anonymize(self, log: QueryLog) -> Release:
        """Return a release of the rows whose words are listed, cut into mini-sessions."""
        check_queries(log, method="ec-2026")
        whole, log = log, rows_for(log, self.columns)
        columns = replace(self.columns, keep=those_there(self.columns, log, usual=_USUAL))
        columns.check(log.columns, has_events=log.events is not None)
        progress.step("reading queries")
        asked = Asked.of(log)
        is_long = (asked.texts.str.count_matches(" ", literal=True) + 1 > self.most_words).to_numpy()
        progress.step("counting who asked each word")
        is_rare = self._is_rare(log, asked)
        stays, removed = reasons_of(asked, {"rows_of_long_texts": is_long, "rows_of_rare_words": is_rare})
        progress.step("making places and devices coarser")
        cells, is_small = coarser(
            log.frame, asked.owner, names=[name for name in CELLS if name in columns.keep], least=self.cell_users
        )
        removed["rows_of_small_cells"] = int((stays & is_small).sum())
        stays &= ~is_small
        frame = log.frame.with_columns(cells)
        number = mini_sessions(frame, asked.owner, stays, most_rows=self.session_rows, minutes=self.session_minutes)
        chosen = replace(self, columns=columns)
        return released(chosen, log, asked, frame, whole=whole, stays=stays, removed=removed, alone=number)

    def _is_rare(self, log: QueryLog, asked: Asked) -> Bools:
        """Return which texts have a part that is not listed."""
        parts = entities(asked.texts)
        askers = asked.most_askers(parts, period=periods(log, within=self.within, listed=self.listed))
        listed = askers.filter(pl.col("n_users") >= self.n_users)
        each = pl.DataFrame({"part": parts}).with_row_index("text").explode("part", empty_as_null=False)
        rare = each.join(listed, on="part", how="anti")["text"].unique().to_numpy()
        found = np.zeros(len(asked.texts), np.bool_)
        found[rare] = True
        return found


def entities(texts: pl.Series) -> pl.Series:
    """Return the entities of each text: full names, addresses, phone numbers, and the other words.

    >>> entities(pl.Series(["gout diet", "call 212-555-0143, now!", "?"])).to_list()
    [['gout', 'diet'], ['212-555-0143', 'call', 'now'], ['?']]
    """
    whole = {place: stretches(texts[place], found) for place, found in found_in(texts).items()}
    whole = {place: found for place, found in whole.items() if found}
    rest = texts.clone().scatter(list(whole), [_without(texts[place], found) for place, found in whole.items()])
    words = rest.str.split(" ").list.eval(pl.element().str.replace_all(_ENDS, ""))
    words = words.list.eval(pl.element().filter(pl.element() != ""))
    named = [[texts[place][start:end] for start, end in found] for place, found in whole.items()]
    first = pl.Series([[]] * len(texts), dtype=pl.List(pl.String))
    if named:
        at = pl.DataFrame({"place": list(whole), "named": named}, schema={"place": pl.UInt32, "named": first.dtype})
        joined = texts.to_frame().with_row_index("place").join(at, on="place", how="left", maintain_order="left")
        first = joined["named"].fill_null([])
    both = pl.DataFrame({"first": first, "words": words, "text": texts})
    # A text of punctuation alone is a word by itself.
    found = pl.concat_list("first", "words")
    return both.select(pl.when(found.list.len() > 0).then(found).otherwise(pl.concat_list("text")).alias("part"))[
        "part"
    ]


def stretches(text: str, found: Sequence[Found]) -> list[tuple[int, int]]:
    """Return from where to where a full name, an address or a phone number stands; parts of one address are one."""
    taken: list[tuple[int, int]] = []
    was_address = False
    for each in found:
        is_one = is_address(each)
        if is_one and was_address and not any(map(str.isalnum, text[taken[-1][1] : each.start])):
            taken[-1] = (taken[-1][0], each.end)
        elif is_one or each.kind is IdentifierKind.NAME or each.kind in _PHONES:
            taken.append((each.start, each.end))
        else:
            is_one = False
        was_address = is_one
    return taken


def _without(text: str, found: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(found):
        text = f"{text[:start]} {text[end:]}"
    return text


def coarser(
    frame: pl.DataFrame, owner: np.ndarray, *, names: Sequence[str], least: int
) -> tuple[list[pl.Series], Bools]:
    """Return device, country and language as they are released, and which rows still stand with too few users.

    A row takes the first step at which rows tell the same that are settled, or of enough users not yet settled.

    >>> frame = pl.DataFrame({"country": ["DE", "DE", "FR", "US"], "device": ["phone"] * 4})
    >>> cells, is_small = coarser(frame, np.arange(4), names=["device", "country"], least=2)
    >>> [each.to_list() for each in cells], is_small.tolist()
    ([['phone', 'phone', 'all', 'all'], ['DE', 'DE', 'all', 'all']], [False, False, False, False])
    """
    if not names or not frame.height:
        return [], np.zeros(frame.height, np.bool_)
    given = frame.select(pl.col(name).replace("", None).fill_null(ANY) for name in names).with_columns(
        user=pl.Series(owner)
    )
    given = given.with_row_index("row")
    settled, cells = [given.clear()], given.clear().select(names)
    for step in _steps(names):
        told = given.with_columns(step.values())
        counted = told.group_by(names).agg(n=pl.col("user").n_unique()).filter(pl.col("n") >= least)
        cells = pl.concat([cells, counted.select(names)])
        settled.append(told.join(cells, on=names, how="semi"))
        given = given.join(settled[-1], on="row", how="anti")
    rows = pl.concat([*settled, given]).sort("row")
    is_small = np.zeros(frame.height, np.bool_)
    is_small[given["row"].to_numpy()] = True
    return [rows[name] for name in names], is_small


def _steps(names: Sequence[str]) -> list[dict[str, pl.Expr]]:
    """Return what becomes of the columns at each step, ever coarser."""
    anything = {name: pl.lit(ANY).alias(name) for name in CELLS}
    code = pl.col("country").str.to_uppercase()
    region = code.replace_strict(REGIONS, default=ANY, return_dtype=pl.String).alias("country")
    steps: list[dict[str, pl.Expr]] = [{}]
    for name, told in (("language", anything), ("device", anything), ("country", {"country": region})):
        if name in names:
            steps.append({**steps[-1], name: told[name]})
    return [*steps, {**steps[-1], "country": anything["country"]}] if "country" in names else steps


def mini_sessions(frame: pl.DataFrame, owner: np.ndarray, stays: Bools, *, most_rows: int, minutes: int) -> Int64s:
    """Return the number of each row's mini-session among those of its user, 0 for rows that do not stay.

    >>> frame, everything = pl.DataFrame({"user": ["1"] * 4}), np.ones(4, bool)
    >>> mini_sessions(frame, np.zeros(4), everything, most_rows=3, minutes=30).tolist()
    [0, 0, 0, 1]
    """
    rows = pl.DataFrame({"owner": owner, "time": frame["time"] if "time" in frame.columns else None})
    rows = rows.with_row_index("row").filter(stays).sort("owner", "time", maintain_order=True)
    pause = pl.col("time") - pl.col("time").shift(1).over("owner")
    is_new = (pause > pl.duration(minutes=minutes)).fill_null(value=False)
    rows = rows.with_columns(session=is_new.cum_sum().over("owner") if "time" in frame.columns else pl.lit(0))
    # The first row of each so many begins a mini-session.
    place = pl.int_range(pl.len()).over("owner", "session") % most_rows
    rows = rows.with_columns(number=(place == 0).cum_sum().over("owner") - 1)
    found = np.zeros(frame.height, np.int64)
    found[rows["row"].to_numpy()] = rows["number"].to_numpy()
    return found
