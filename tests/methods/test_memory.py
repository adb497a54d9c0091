"""A release in memory holds no text that was left out of it, also where nobody looks."""

from __future__ import annotations

import io
import pickle
from datetime import datetime
from typing import Any

import polars as pl
import pytest

from queryveil.data import ROLES, Format, Layout, QueryLog, with_own_texts
from queryveil.methods import Clump, Dp, Kdelta, Km, Partition, Plink, QueryThreshold, Swap, TokenHash
from queryveil.methods.dp.dp import synthesized
from queryveil.release import ColumnPolicy, Ids, Release
from queryveil.text.taxonomy import Taxonomy

pytestmark = pytest.mark.slow

SECRET = "kestrelofpersonaone"
"""Longer than what Polars keeps beside the number of its buffer."""
SECRETS = (f"user {SECRET}", f"query {SECRET}", f"https://{SECRET}.example")
COMMON = ("red kettle for two", "blue lantern shop", "yellow mulberry jam", "brown nutmeg oil")
KEPT = ColumnPolicy(ids=Ids.KEEP)
METHODS: dict[str, Any] = {
    "km": Km(k=5, m=2, columns=KEPT),
    "kdelta": Kdelta(k=5, columns=KEPT),
    "swap": Swap(k=5, l=2, unclassified="pool", columns=KEPT),
    "query threshold": QueryThreshold(k=5, columns=KEPT),
    "token hash": TokenHash(),
    "clump": Clump(k=5),
    "partition": Partition(k=5),
    "plink": Plink(p=0.5),
    "dp": Dp(epsilon=20, delta=1e-9, max_queries=6, clicks=0.5, max_clicks=6),
}


def log_with_a_secret() -> QueryLog:
    """Return 60 users who share four queries and have one each, and somebody's own id and URL."""
    morning = datetime(2024, 3, 4, 7)
    rows = [
        (f"persona number {i:04}", text, morning.replace(minute=minute), f"https://shop.example/{minute}")
        for i in range(60)
        for minute, text in enumerate((*COMMON, f"{SECRETS[1]} {i:04}"))
    ]
    own = (SECRETS[0], f"{SECRETS[1]} none", morning, SECRETS[2])
    clicked = ("persona number 0001", COMMON[0], morning, SECRETS[2])
    schema = {name: ROLES[name] for name in ("user", "query", "time", "url")}
    return QueryLog(frame=pl.DataFrame([*rows, own, clicked], schema=schema, orient="row"))


def frames_of(release: Release) -> list[pl.DataFrame]:
    clicks = getattr(release.data, "clicks", None)
    return [release.data.frame, *([] if clicks is None else [clicks])]


def holds(frame: pl.DataFrame, text: str) -> bool:
    """Look into the bytes that leave with a frame, by all of the ways that take its memory as it is."""
    arrow, newest = io.BytesIO(), io.BytesIO()
    frame.write_ipc(arrow)
    frame.write_ipc(newest, compat_level=pl.CompatLevel.newest())
    written = (pickle.dumps(frame), pickle.dumps(frame.to_arrow()), arrow.getvalue(), newest.getvalue())
    return any(text.encode() in each for each in written)


@pytest.mark.parametrize("name", METHODS)
def test_what_was_left_out_is_not_behind_what_was_released(name: str) -> None:
    release = METHODS[name].anonymize(log_with_a_secret())
    assert release.data.n_rows > 0
    released = " ".join(frame.write_json() for frame in frames_of(release))
    left_out = [text for text in SECRETS if text not in released]
    assert left_out
    for text in left_out:
        assert not any(holds(frame, text) for frame in frames_of(release))
        assert text.encode() not in pickle.dumps(release)


def test_nor_is_it_behind_sessions_that_were_made_up() -> None:
    release = synthesized(METHODS["dp"].anonymize(log_with_a_secret()), n_users=50)
    assert SECRET.encode() not in pickle.dumps(release)


def test_items_of_which_none_was_released_are_not_behind_those_that_were() -> None:
    names = ["red-kettle-for-two", "blue-lantern-shop"]
    taxonomy = Taxonomy.from_pairs([(name, "all-things-of-a-shop") for name in (*names, SECRET)])
    rows = [(str(i), name) for i in range(20) for name in names]
    frame = pl.DataFrame([*rows, ("21", SECRET)], schema=["user", "query"], orient="row")
    log = QueryLog(frame=frame, layout=Layout(format=Format.TRANSACTIONS))
    release = Clump(k=5, taxonomy=taxonomy).anonymize(log)
    assert not holds(release.transactions.frame, SECRET)


COLUMNS: dict[str, tuple[pl.DataType, Any]] = {
    "text": (pl.String(), lambda text: text),
    "bytes": (pl.Binary(), lambda text: text.encode()),
    "lists": (pl.List(pl.String), lambda text: [text, f"{text} too"]),
    "records": (pl.Struct({"a": pl.String, "n": pl.Int64}), lambda text: {"a": text, "n": 1}),
    "lists of records": (pl.List(pl.Struct({"a": pl.String})), lambda text: [{"a": text}]),
    "pairs": (pl.Array(pl.String, 2), lambda text: [text, text]),
    "numbers": (pl.Int64(), len),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("kept", [slice(0, 30), [*range(0, 30, 2), 29]], ids=["side by side", "apart"])
def test_columns_of_any_kind_have_texts_of_their_own(name: str, kept: slice | list[int]) -> None:
    dtype, value = COLUMNS[name]
    texts = [f"a common text of number {i}" for i in range(30)] + [f"{SECRET} {i}" for i in range(6)]
    frame = pl.DataFrame({"x": [*map(value, texts), None]}, schema={"x": dtype})[kept]
    own = with_own_texts(frame)
    assert own.equals(frame)
    assert own.schema == frame.schema
    assert not holds(own, SECRET)
    assert with_own_texts(frame.clear()).schema == frame.schema


def test_a_list_of_all_texts_that_there_may_be_is_none_of_the_texts_that_are() -> None:
    texts = ["a common text of its own", SECRET]
    own = with_own_texts(pl.DataFrame({"x": texts}, schema={"x": pl.Enum(texts)}).head(1))
    assert own["x"].cast(pl.String).to_list() == texts[:1]
    assert not holds(own, SECRET)
