"""What people did with the results of a search: the columns of events, their kinds, and how many there are of each."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from queryveil.data.frames import to_frame
from queryveil.errors import BadInput, BadParameter, MissingColumn

EVENTS_SCHEMA: Mapping[str, pl.DataType] = {
    "search": pl.String(),
    "action": pl.String(),
    "object": pl.String(),
    "object_field": pl.String(),
    "rank": pl.Int64(),
    "time": pl.Datetime("us"),
    "dwell": pl.Float64(),
}
"""The columns of events: the search they belong to (null if the log does not have it), what was done (`click`,
`impression`, `add_to_cart`, ...), to which object, which field of the object names it, at which rank (as the source
counts it), when, and how many seconds it was looked at."""
OTHER = "other"
KINDS = (
    *("impression", "view", "click", "global_click", "watch", "search", "add_to_cart", "remove_from_cart"),
    *("purchase", OTHER),
)
"""The kinds of events that are named where events are counted. Privacy: any other name of an action may be data."""
_REQUIRED = ("search", "action")


def is_click(action: pl.Expr) -> pl.Expr:
    """Return whether an action is a click on a result; `global_click` is one anywhere on a page.

    >>> actions = pl.DataFrame({"action": ["click", "Item_Click", "product-click", "click_through", "global_click"]})
    >>> actions.select(is_click(pl.col("action")))["action"].to_list()
    [True, True, True, True, False]
    """
    name = action.str.to_lowercase()
    return (name.is_in(["click", "click_through"]) | name.str.contains(r"[_-]click$")) & (name != "global_click")


def count_kinds(events: pl.DataFrame | None) -> dict[str, int]:
    """Count events by kind, in the order of `KINDS`; kinds without events are left out.

    >>> count_kinds(pl.DataFrame({"action": ["click", "impression", "item_click", "somebody's name", None]}))
    {'impression': 1, 'click': 2, 'other': 2}
    """
    if events is None:
        return {}
    # An action is one of a few, so kinds are found once for each.
    actions = events.group_by("action").len()
    name = pl.col("action").str.to_lowercase()
    kind = pl.when(is_click(pl.col("action"))).then(pl.lit("click")).when(name.is_in(KINDS)).then(name)
    counted = actions.group_by(kind.otherwise(pl.lit(OTHER)).alias("kind")).agg(pl.col("len").sum())
    found = {kind: int(n) for kind, n in counted.iter_rows()}
    return {kind: found[kind] for kind in KINDS if kind in found}


def to_events(data: Any, *, searches: pl.Series | None) -> pl.DataFrame:
    """Return a Polars, pandas or Arrow frame, or a dict of columns, as events; those of other searches have none.

    - `searches`: the searches of the log.
    """
    frame = to_frame(data, what="the events")
    for name in _REQUIRED:
        if name not in frame.columns:
            raise MissingColumn("the frame of events", name, found=frame.columns)
    if unknown := [name for name in frame.columns if name not in EVENTS_SCHEMA]:
        raise BadParameter("a column of the events", unknown[0], allowed=f"one of {', '.join(EVENTS_SCHEMA)}")
    if searches is None:
        raise MissingColumn("the frame", "search", found=[])
    try:
        typed = frame.select(_typed(frame, name, dtype) for name, dtype in EVENTS_SCHEMA.items())
    except pl.exceptions.PolarsError:
        # Privacy: the cause would quote the values, so it is dropped.
        raise BadInput("a column of the events cannot be read as text, time or number as its name asks") from None
    is_known = pl.col("search").is_in(searches.drop_nulls().unique().implode())
    return typed.with_columns(search=pl.when(is_known).then("search"))


def _typed(frame: pl.DataFrame, name: str, dtype: pl.DataType) -> pl.Expr:
    if name not in frame.columns:
        return pl.lit(None, dtype).alias(name)
    column, found = pl.col(name), frame.schema[name]
    if name == "time" and found == pl.String:
        return column.str.to_datetime(time_unit="us", strict=True)
    if isinstance(found, pl.Datetime) and found.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(dtype)
