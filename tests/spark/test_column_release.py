"""The rule which columns are released, and how: the same for whole frames and for batches on executors."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queryveil.data import ROLES
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.rng import generator
from queryveil.spark._executors import spark_types, to_arrow, to_polars
from queryveil.spark._writing import add_order
from queryveil.text.tokens import encode

KEY = b"0123456789abcdef"
TIMES = st.none() | st.datetimes(datetime(1969, 1, 1), datetime(2030, 1, 1))
POLICIES = st.builds(
    lambda ids, time, keep: ColumnPolicy(ids=ids, time=time, keep=keep, key=KEY if ids is Ids.KEYED else None),
    ids=st.sampled_from(Ids),
    time=st.sampled_from(TimeDetail),
    keep=st.sampled_from([(), ("rank",), ("shop", "url")]),
)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    rows = draw(st.lists(st.tuples(st.sampled_from(["u1", "u2", "é", "u" * 99]), TIMES), max_size=12))
    columns = {
        "user": [user for user, _ in rows],
        "query": [f"query {i}" for i in range(len(rows))],
        "time": [time for _, time in rows],
        "rank": list(range(len(rows))),
        "url": [f"https://shop{i}.example" for i in range(len(rows))],
        "shop": ["corner"] * len(rows),
    }
    left_out = draw(st.sampled_from([(), ("time",)]))
    types = {**ROLES, "shop": pl.String()}
    return pl.DataFrame(columns, schema={name: types[name] for name in columns}).drop(left_out)


@given(frame=frames(), policy=POLICIES, protected=st.sampled_from([(), ("url",)]), cut=st.integers(1, 12))
def test_batches_on_executors_are_released_as_a_frame_on_one_machine(
    frame: pl.DataFrame, policy: ColumnPolicy, protected: tuple[str, ...], cut: int
) -> None:
    local = policy.apply(frame, encode(frame["user"])[0], rng=generator(1), protected=protected)
    released = spark_types(local.to_arrow().schema)
    table = frame.to_arrow()
    batches = table.cast(spark_types(table.schema)).to_batches(cut)
    ordered = [add_order(to_polars(batch), policy=policy, secret=b"a secret", protected=protected) for batch in batches]
    there = to_polars(to_arrow(pl.concat([local.clear(), *ordered], how="diagonal"), released))
    assert there.columns == local.columns
    names = [name for name in local.columns if name != "user"]
    assert there.select(names).sort("query").equals(local.select(names).sort("query"))
    if policy.ids is not Ids.FRESH:
        assert there.sort("query")["user"].equals(local.sort("query")["user"])
    else:
        assert there["user"].n_unique() == local["user"].n_unique()


def test_an_empty_batch_has_the_columns_that_are_released() -> None:
    schema = pa.schema([("user", pa.string()), ("query", pa.string()), ("rank", pa.int64())])
    ordered = add_order(to_polars(schema.empty_table()), policy=ColumnPolicy(), secret=b"s", protected=())
    assert "rank" not in ordered.columns
