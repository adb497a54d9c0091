"""The three tables of the classifier: how often units are met, what misspelt words were meant to be, and what units are
about. Each is a file (Parquet or CSV) of these columns; the package ships a default of each.

frequencies        unit, count
recommendations    misspelt, correct
categories         unit, category, and if there is one, weight (1 for all if not)
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

import polars as pl
from polars.exceptions import PolarsError

from queryveil.errors import BadFile
from queryveil.text.tokens import normalize

CATEGORIES: Final = (
    "Arts", "Business", "Computers", "Games", "Health", "Home", "Kids and Teens", "News", "Recreation", "Reference",
    "Regional", "Science", "Shopping", "Society", "Sports", "World",
)  # fmt: skip
UNCLASSIFIED: Final = "Unclassified"
"""What a query without a category is called where a name is needed."""

_FREQUENCIES: Final = {"unit": pl.String, "count": pl.Int64}
_RECOMMENDATIONS: Final = {"misspelt": pl.String, "correct": pl.String}
_CATEGORIES: Final = {"unit": pl.String, "category": pl.String, "weight": pl.Float32}


def read_frequencies(path: str | Path | None = None) -> pl.DataFrame:
    """Read how often units are met; a unit that stands there twice counts both times."""
    frame = _read(path, default="frequencies.parquet", columns=_FREQUENCIES)
    if (frame["count"] < 0).any():
        raise BadFile(_name(path), "a count is below 0; counts are numbers of references")
    return frame.group_by("unit", maintain_order=True).agg(pl.col("count").sum())


def read_recommendations(path: str | Path | None = None) -> pl.DataFrame:
    """Read what misspelt words were meant to be; of two corrections the first counts."""
    frame = _read(path, default="recommendations.csv", columns=_RECOMMENDATIONS)
    frame = frame.filter(pl.col("misspelt") != pl.col("correct"))
    return frame.unique("misspelt", keep="first", maintain_order=True)


def read_categories(path: str | Path | None = None) -> pl.DataFrame:
    """Read what units are about; categories are written as in `CATEGORIES`, in any case, `_` for a blank."""
    frame = _read(path, default="categories.parquet", columns=_CATEGORIES)
    names = pl.Series([name.lower() for name in CATEGORIES])
    written = frame["category"].str.to_lowercase().str.replace_all("_", " ").str.strip_chars(" ")
    if not written.is_in(names.to_list()).all():
        raise BadFile(_name(path), f"a category is none of the {len(CATEGORIES)}; they are {', '.join(CATEGORIES)}")
    if not (frame["weight"].is_finite() & (frame["weight"] > 0)).all():
        raise BadFile(_name(path), "a weight is not above 0; leave out what a unit is not about")
    number = written.replace_strict(names.to_list(), list(range(len(names))), return_dtype=pl.Int32)
    return (
        frame.with_columns(category=number)
        .group_by("unit", "category", maintain_order=True)
        .agg(pl.col("weight").sum())
    )


def _name(path: str | Path | None) -> str:
    return Path(path).name if path is not None else "the table in the package"


def _read(path: str | Path | None, *, default: str, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    """Read the columns of a file in their types, texts as terms in lower case; rows without a text are left out."""
    if path is None:
        with resources.as_file(resources.files("queryveil.text") / "data" / default) as file:
            return _typed(_load(file), name=default, columns=columns)
    frame = _typed(_load(Path(path)), name=_name(path), columns=columns)
    texts = [name for name, kind in columns.items() if kind == pl.String and name != "category"]
    frame = frame.with_columns(normalize(frame[name]).alias(name) for name in texts)
    return frame.filter(pl.all_horizontal(pl.col(name) != "" for name in texts))


def _load(path: Path) -> pl.DataFrame:
    try:
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path)
        return pl.read_csv(path, infer_schema=False)
    except OSError as error:
        raise BadFile(path.name, f"cannot be opened ({error.strerror or 'not a file'}); check the path") from None
    except PolarsError:
        # Privacy: the cause would quote the row.
        raise BadFile(
            path.name, "cannot be read; a table is Parquet (.parquet) or CSV in UTF-8 with a header"
        ) from None


def _typed(frame: pl.DataFrame, *, name: str, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    if "weight" in columns and "weight" not in frame.columns:
        frame = frame.with_columns(weight=pl.lit(1.0))
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise BadFile(name, f"there is no column {missing[0]}; this table has the columns {', '.join(columns)}")
    typed = frame.select(pl.col(column).cast(kind, strict=False) for column, kind in columns.items())
    for column in columns:
        if typed[column].null_count():
            raise BadFile(name, f"{typed[column].null_count()} rows have no readable {column}; mend or drop them")
    return typed
