"""Everything in a release folder that lies on a cluster, held against its manifest by the rules of `checks.whole`.

Files there are hashed by one job and read by another; their sizes and times tell that they are the same.
"""

import polars as pl
from pyspark.sql import functions as F

from queryveil.checks import texts, whole
from queryveil.data import Format
from queryveil.formats import Content, Shape, shape_of
from queryveil.formats.shape import n_foreign
from queryveil.guarantees import KmAnonymity
from queryveil.release import MANIFEST, Contents, DataFile, Manifest
from queryveil.spark._executors import SparkLog, map_frames
from queryveil.spark._storage import Storage

_TIMES, _IDS, _TEXTS = "times", "ids", "texts"


def contents_of(storage: Storage, folder: str, manifest: Manifest, *, text: bytes, files: list[str]) -> Contents:
    """Return what lies in a release folder beside its data; `files` are those of the data."""
    data = manifest.data
    assert data is not None
    listed = {MANIFEST, data.name, *([] if manifest.clicks is None else [manifest.clicks.name])}
    others = {name: kind for name, kind in storage.kinds(folder).items() if name not in listed}
    if data.parts:
        parts = {part.name for part in data.parts}
        inside = storage.kinds(f"{folder}/{data.name}")
        others |= {f"{data.name}/{name}": kind for name, kind in inside.items() if name not in parts}
    return Contents(others=others, shapes={data.name: _shape(storage, files, data)}, manifest=text)


def _shape(storage: Storage, files: list[str], data: DataFile) -> Shape:
    """Return how many values no reader returns: metadata of Parquet, and keys that stand twice in a line of JSON."""
    if data.format is Format.PARQUET:
        return Shape(n_hidden=sum(n_foreign(storage.parquet_names(file)[1]) for file in files))
    if data.format is not Format.JSONL:
        return Shape()
    lines = storage.spark.read.option("lineSep", "\n").text(files).select(F.col("value").cast("binary"))
    found = map_frames(lines, _twice).agg(F.sum("n").alias("n")).collect()
    return Shape(n_hidden=int(found[0]["n"] or 0))


def _twice(lines: pl.DataFrame) -> pl.DataFrame:
    content = Content("the log", b"\n".join(lines["value"]))
    return pl.DataFrame({"n": [shape_of(content, format=Format.JSONL).n_hidden]})


def faults_of(released: SparkLog, contents: Contents, manifest: Manifest) -> list[str]:
    """Return what is wrong with a released log beside its promise, as on one machine but without the rows."""
    data = manifest.data
    assert data is not None
    n_users, columns = released.n_users, released.frame.columns
    said, extra = whole.faults_of_columns(contents, manifest, columns, has_rows=released.n_rows > 0)
    counted = map_frames(released.frame, _wrong, manifest=manifest, extra=extra, n_users=n_users)
    wrong = {row["name"]: int(row["n"]) for row in counted.groupBy("name").agg(F.sum("n").alias("n")).collect()}
    file, detail, ids = data.name, manifest.columns.time, manifest.columns.ids
    lines = {
        **{f"column {name}": f"column {name} should be empty, and is not in" for name in extra},
        _TIMES: f"times are finer than {MANIFEST} says ({detail}) in",
        _IDS: f"user ids are not as {MANIFEST} says ({ids}) in",
        _TEXTS: "texts differ in case or form from how they are released in",
    }
    rows = [
        f"{file}: {line} {n:,} {'row' if n == 1 else 'rows'}" for name, line in lines.items() if (n := wrong.get(name))
    ]
    sizes = whole.other_sizes(manifest, row=released.n_rows, user=n_users)
    return [*whole.faults_beside(contents, manifest), *said, *rows, *sizes, *_faults_of_texts(released, manifest)]


def _faults_of_texts(released: SparkLog, manifest: Manifest) -> list[str]:
    """Return what is wrong with the counts of texts in a release of km, where they are in normal form as they stand."""
    if not isinstance(manifest.promise, KmAnonymity) or manifest.promise.items:
        # Items keep their case, and nodes of a taxonomy theirs.
        return []
    each = (
        released.frame.where("query != ''")
        .groupBy("query")
        .agg(F.count("*").alias("n"), (F.min("user") == F.max("user")).alias("is_of_one"))
    )
    found = each.agg(
        F.count("*").alias("n_texts"),
        F.count_if("is_of_one").alias("n_of_one"),
        F.sum(F.when(F.col("is_of_one"), F.col("n"))).alias("n_rows"),
    ).collect()[0]
    n_texts, n_of_one, n_rows = (int(n or 0) for n in found)
    return [
        *texts.other_texts(manifest, n_texts=[n_texts], n_rows=released.n_rows),
        *texts.too_few(manifest, n_texts=n_of_one, n_rows=n_rows),
    ]


def _wrong(frame: pl.DataFrame, *, manifest: Manifest, extra: list[str], n_users: int) -> pl.DataFrame:
    """Count the rows that are not as the manifest says, by what is wrong with them."""
    counts = {f"column {name}": frame.height - frame[name].null_count() for name in extra}
    if "time" in frame.columns:
        times = whole.finer_than(frame["time"], manifest.columns.time, window=manifest.promise.window)
        counts[_TIMES] = int(times.sum())
    if manifest.data is not None and manifest.data.format is not Format.TRANSACTIONS:
        counts[_IDS] = int(whole.odd_ids(frame["user"], manifest.columns.ids, n_ids=n_users).sum())
    counts[_TEXTS] = int(whole.untidy(frame["query"], manifest.promise, method=manifest.method).sum())
    return pl.DataFrame({"name": list(counts), "n": list(counts.values())})
