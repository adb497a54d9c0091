"""Checking a release that lies on a cluster: the promise, the folder, and terms that the original does not have.

(k, m)-anonymity is counted by the checker's own kernels, where all histories with a combination's first item are.
Files are hashed by one job and read by another; their sizes and times tell that they are the same. All that a folder
holds is held against its manifest by the rules of `checks.whole`.
"""

from datetime import timedelta
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queryveil.checks import combinations, expected, invented, judging, texts, whole
from queryveil.checks.km import why_windows_blur, window_column
from queryveil.checks.tokens import tokenise
from queryveil.checks.verdict import Kind, Verdict, Witness
from queryveil.data import ROLES, Format, QueryLog
from queryveil.errors import BadRelease, NothingPromised, NotYet
from queryveil.formats import Content, Shape, shape_of
from queryveil.formats.shape import n_foreign
from queryveil.guarantees import DifferentialPrivacy, KmAnonymity, NoPromise
from queryveil.progress import step
from queryveil.release import MANIFEST, Contents, DataFile, Manifest, sum_of_parts
from queryveil.release.release import decode_manifest
from queryveil.spark import _executors, _reading
from queryveil.spark._executors import SparkLog, cached, map_frames, map_groups
from queryveil.spark._storage import Storage


def _not_here(what: str, why: str) -> NotYet:
    return NotYet(what, why, instead="leave out --engine, where the release fits into one machine")


def verify(spark: SparkSession, folder: str, *, original: SparkLog | None = None, expect: str | None = None) -> Verdict:
    """Check a release, its promise and what lies in its folder; with the original look for terms with more users."""
    expectation = None if expect is None else expected.Expectation.from_text(expect)
    storage = Storage(spark=spark)
    manifest = read_manifest(storage, folder)
    promise = manifest.promise
    if isinstance(promise, DifferentialPrivacy):
        if original is not None:
            raise _not_here("counts beside their original on Spark", "they are judged on one machine")
        return _verify_on_driver(storage, folder, expect=expect)
    if not isinstance(promise, KmAnonymity | NoPromise):
        raise _not_here(f"a release of {manifest.method} on Spark", "its checker runs on one machine")
    assert manifest.data is not None
    files = _files(storage, folder, manifest.data)
    stamps = storage.stamps(files)
    released = released_log(storage, folder, manifest)
    contents = contents_of(storage, folder, manifest, text=_text(storage, folder), files=files)
    faults = faults_of(released, contents, manifest)
    faults += [] if expectation is None else expectation.faults(manifest)
    if isinstance(promise, KmAnonymity):
        verdict = verify_km(released, promise, time_unit=manifest.columns.time.unit)
    elif faults:
        verdict = Verdict(promise=promise, n_users=released.n_users, n_checked_users=0)
    else:
        raise NothingPromised(promise.reason)
    if original is not None and isinstance(promise, KmAnonymity):
        n_more, witnesses = _count_invented(released, original, promise=promise)
        verdict = verdict.joined((n_more, witnesses))
    if storage.stamps(files) != stamps:
        raise BadRelease(folder, "its files were changed while they were verified; verify it again")
    return verdict.with_faults(faults, notes=whole.notes_of(contents))


def _text(storage: Storage, folder: str) -> bytes:
    """Return the text of a manifest."""
    if not storage.is_folder(folder):
        raise BadRelease(folder, "there is no such folder")
    _check_file(folder, MANIFEST, storage.kinds(folder).get(MANIFEST))
    return storage.read(f"{folder}/{MANIFEST}")


def _check_file(folder: str, name: str, kind: str | None) -> None:
    # What is no file is never opened: a pipe would keep everybody waiting.
    if kind != "file":
        raise BadRelease(folder, f"{name} is {f'a {kind}, and a release is made of files' if kind else 'missing'}")


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """Read and check the manifest of a release."""
    manifest = decode_manifest(_text(storage, folder), folder=folder)
    if manifest.data is None:
        raise BadRelease(folder, f"{MANIFEST} names no data file")
    return manifest


def released_log(storage: Storage, folder: str, manifest: Manifest) -> SparkLog:
    """Read the rows of a release, and check that they are what the manifest was written for."""
    data = manifest.data
    assert data is not None
    files = _files(storage, folder, data)
    if storage.sha256_of(files) != ({part.name: part.sha256 for part in data.parts} or {data.name: data.sha256}):
        raise BadRelease(folder, f"{data.name} is not what {MANIFEST} was written for (sha256 differs)")
    named = data.format not in (Format.AOL, Format.EXCITE, Format.UBI, Format.TRANSACTIONS)
    columns = {**dict.fromkeys(ROLES, ""), **data.names} if named else None
    return _reading.read_log(storage.spark, files, format=data.format, columns=columns)


def _files(storage: Storage, folder: str, data: DataFile) -> list[str]:
    """Return the paths of the data files, if each of them is there and a file."""
    names = [part.name for part in data.parts] or [data.name]
    place = f"{folder}/{data.name}" if data.parts else folder
    if any("/" in name for name in (data.name, *names)):
        raise BadRelease(folder, f"{MANIFEST} names no data file")
    if not storage.exists(f"{folder}/{data.name}"):
        raise BadRelease(folder, f"{data.name} is missing")
    kinds = storage.kinds(place) if storage.is_folder(place) else {}
    for name in names:
        _check_file(folder, name, kinds.get(name))
    if len(set(names)) < len(names) or (data.parts and data.sha256 != sum_of_parts(data.parts)):
        raise BadRelease(folder, f"the parts of {data.name} are not those that {MANIFEST} was written for")
    return [f"{place}/{name}" for name in names]


def _verify_on_driver(storage: Storage, folder: str, *, expect: str | None) -> Verdict:
    """Check a small release on the driver, where it is copied to unless it lies on a disk."""
    local = storage.local(folder)
    if local is not None:
        return judging.verify(local, expect=expect)
    with TemporaryDirectory() as scratch:
        here = Path(scratch) / "release"
        here.mkdir()
        for name, kind in storage.kinds(folder).items():
            if kind == "folder":
                (here / name).mkdir()
            else:
                (here / name).write_bytes(storage.read(f"{folder}/{name}"))
        return judging.verify(here, expect=expect)


def _count_invented(released: SparkLog, original: SparkLog, *, promise: KmAnonymity) -> tuple[int, list[Witness]]:
    """Count the terms that have more users or occurrences in the release than in the original, and users and rows."""
    if promise.window is not None:
        raise _not_here("windows beside their original on Spark", "users have a name for each")
    by_blanks = original.layout.terms_are_items
    if promise.items and not by_blanks:
        raise _not_here("nodes of a taxonomy beside their original on Spark", "they need a tree")
    now = _counted(released.frame, by_blanks=by_blanks)
    more = _increased(now, _counted(original.frame, by_blanks=by_blanks))
    n_more = more.count()
    if n_more and not by_blanks:
        # A sign that this Python does not know may be a separator to the method, so both readings must agree.
        other = _counted(original.frame, by_blanks=False, without_unknown=True)
        more = more.join(_increased(now, other).select("term"), "term", "left_semi")
        n_more = more.count()
    shown = more.orderBy("users").limit(Verdict.N_KEPT).select("users", "users_before").collect()
    totals = [(released.n_users, original.n_users), (released.n_rows, original.n_rows)]
    witnesses = [_witness("invented", 1, row["users"], row["users_before"]) for row in shown]
    witnesses += [_witness("invented", 0, now, then) for now, then in totals if now > then]
    return n_more + sum(now > then for now, then in totals), witnesses


def _increased(now: DataFrame, then: DataFrame) -> DataFrame:
    """Return the terms that have more users or occurrences now than then."""
    both = now.join(then.withColumnsRenamed({"users": "users_before", "n": "n_before"}), "term", "left")
    both = both.na.fill(0, ["users_before", "n_before"])
    return both.where((F.col("users") > F.col("users_before")) | (F.col("n") > F.col("n_before")))


def _counted(frame: DataFrame, *, by_blanks: bool, without_unknown: bool = False) -> DataFrame:
    """Count the users and occurrences of each term; signs that this Python does not know may count as blanks."""
    rows, schema = frame.select("user", "query"), "user string, term string, n bigint"
    pairs = map_frames(rows, _terms, schema, by_blanks=by_blanks, without_unknown=without_unknown)
    by_user = pairs.groupBy("user", "term").agg(F.sum("n").alias("n"))
    return by_user.groupBy("term").agg(F.count("*").alias("users"), F.sum("n").alias("n"))


def _terms(rows: pl.DataFrame, *, by_blanks: bool, without_unknown: bool) -> pl.DataFrame:
    if without_unknown:
        rows = invented.without_unknown(QueryLog(frame=rows)).frame
    tokens = tokenise(rows["query"], items=by_blanks)
    users = rows["user"].gather(np.repeat(np.arange(rows.height), np.diff(tokens.starts)))
    found = pl.DataFrame({"user": users, "term": tokens.words.gather(tokens.terms)})
    return found.group_by("user", "term").agg(n=pl.len())


_HELD = "user string, window bigint, items array<string>"
_PARTS = "shard int, items array<int>"
_FOUND = "n_rare bigint, supports array<bigint>"


def verify_km(released: SparkLog, promise: KmAnonymity, *, time_unit: timedelta | None) -> Verdict:
    """Check (k, m)-anonymity of released rows; violations are counted exactly, without naming their rows."""
    if promise.m is None:
        raise NotYet("m=none on Spark", "whole histories are compared on one machine", instead="leave out --engine")
    if promise.time_unit is not None:
        raise _not_here("times that count as terms on Spark", "they are judged on one machine")
    blur = why_windows_blur(released.empty, promise, time_unit=time_unit)
    window = promise.window if not blur else None
    step("histories")
    rows = released.frame.select("user", "query", *([] if window is None else ["time"])).repartition("user")
    each = map_frames(rows, _gather_items, _HELD, by_partition=True, window=window, by_blanks=promise.items)
    with cached(each) as held:
        n_checked = held.where(F.size("items") > 0).count()
        n_rare, witnesses = _smallest_rare(held, promise)
        n_linked, linked = (0, []) if window is None else _count_linked(held)
    verdict = Verdict(
        promise=promise,
        holds=n_rare == 0,
        witnesses=tuple(sorted(witnesses)),
        n_violations=n_rare,
        n_users=released.n_users,
        n_checked_users=n_checked,
        notes=(blur,) if blur else (),
    )
    return verdict if window is None else verdict.joined((n_linked, linked))


def _gather_items(rows: pl.DataFrame, *, window: str | None, by_blanks: bool) -> pl.DataFrame:
    """Return what each user holds, or each user in each window; the same term in another window is another item."""
    # A row without a time is in a window of its own.
    windows = pl.lit(0) if window is None else window_column(QueryLog(frame=rows), window).fill_null(-(2**62))
    rows = rows.with_columns(windows.alias("window"))
    queries = rows["query"].unique(maintain_order=True)
    tokens = tokenise(queries, items=by_blanks)
    terms = pl.DataFrame(
        {
            "query": queries.gather(np.repeat(np.arange(len(queries)), np.diff(tokens.starts))),
            "items": tokens.words.gather(tokens.terms),
        }
    )
    found = rows.join(terms, on="query", how="left")
    if window is not None:
        found = found.with_columns(items=pl.col("window").cast(pl.String) + "\0" + pl.col("items"))
    return found.group_by("user", "window").agg(pl.col("items").drop_nulls().unique())


def _smallest_rare(held: DataFrame, promise: KmAnonymity) -> tuple[int, list[Witness]]:
    """Count the combinations with fewer than k users, of the smallest size that has any, and give the rarest."""
    supports = held.select(F.explode("items").alias("item")).groupBy("item").agg(F.count("*").alias("support"))
    rare = supports.where(F.col("support") < promise.k)
    n_rare = rare.count()
    rarest = [row["support"] for row in rare.orderBy("support").limit(Verdict.N_KEPT).collect()]
    if n_rare:
        return n_rare, [_witness("combination", 1, support, promise.k) for support in rarest]
    common = pl.DataFrame(supports.toArrow()).sort("support", "item")
    longest = int(held.agg(F.max(F.size("items")).alias("n")).collect()[0]["n"] or 0)
    numbers = held.sparkSession.sparkContext.broadcast(common["item"])
    with_ids = held.select(F.monotonically_increasing_id().alias("uid"), "items")
    numbered = map_frames(with_ids, _executors.number_items, "items array<int>", items=numbers)
    n_shards = _executors.n_shards_for(held, int(common["support"].sum() or 0))
    parts = map_frames(numbered, _executors.split_by_shard, _PARTS, n_shards=n_shards)
    for size in range(2, min(promise.m or 1, longest) + 1):
        step(f"combinations of {size}")
        sizes = {"size": size, "k": promise.k, "n_items": common.height, "n_shards": n_shards}
        found = map_groups(parts, "shard", _rare_of_shard, _FOUND, **sizes).toArrow()
        n_rare = int(np.sum(found["n_rare"].to_numpy()))
        if n_rare:
            rarest = sorted(chain.from_iterable(found["supports"].to_pylist()))[: Verdict.N_KEPT]
            return n_rare, [_witness("combination", size, support, promise.k) for support in rarest]
    return 0, []


def _witness(kind: Kind, size: int, support: int, needed: int) -> Witness:
    return Witness(kind=kind, size=size, support=support, needed=needed, rows=(), positions=())


def _rare_of_shard(parts: pl.DataFrame, *, size: int, k: int, n_items: int, n_shards: int) -> pl.DataFrame:
    """Count the rare combinations that begin with an item of this shard, and return the rarest supports."""
    lengths = parts["items"].list.len().to_numpy()
    items = parts["items"].explode(empty_as_null=False).to_numpy()
    # Histories one after another, each ended by -1.
    line = np.full(len(items) + len(lengths), -1, np.int32)
    line[np.arange(len(items)) + np.repeat(np.arange(len(lengths)), lengths)] = items
    # What follows an item in a history is its tail; the end marks are smaller than any item, hence sorted first.
    tails = np.argsort(line, kind="stable")[len(lengths) :] + 1
    support = np.bincount(line[line >= 0], minlength=n_items)
    tail_starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(support)])
    firsts = np.arange(parts["shard"][0], n_items, n_shards)
    n_rare, supports, _, _ = combinations.rare_combinations(line, tails, tail_starts, firsts, size, k)
    rarest = np.sort(supports[supports < k])[: Verdict.N_KEPT]
    return pl.DataFrame({"n_rare": [int(n_rare.sum())], "supports": [rarest.tolist()]})


def _count_linked(held: DataFrame) -> tuple[int, list[Witness]]:
    """Count the user ids that stand in more than one window."""
    several = held.groupBy("user").agg(F.count("*").alias("n")).where("n > 1")
    most = several.orderBy("n").limit(Verdict.N_KEPT).collect()
    return several.count(), [_witness("linked_windows", 0, row["n"], 1) for row in most]


_TIMES, _IDS, _TEXTS, _REPEATS = "times", "ids", "texts", "repeats"


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
    if manifest.method == "km" and manifest.parameters.get("repeats") == "once":
        pairs = released.frame.groupBy("user", "query").agg(F.count("*").alias("n")).where("n > 1")
        counted = counted.union(pairs.select(F.lit(_REPEATS), "n"))
    wrong = {row["name"]: int(row["n"]) for row in counted.groupBy("name").agg(F.sum("n").alias("n")).collect()}
    file, detail, ids = data.name, manifest.columns.time, manifest.columns.ids
    lines = {
        **{f"column {name}": f"column {name} should be empty, and is not in" for name in extra},
        _TIMES: f"times are finer than {MANIFEST} says ({detail}) in",
        _IDS: f"user ids are not as {MANIFEST} says ({ids}) in",
        _TEXTS: "texts differ in case or form from how they are released in",
        _REPEATS: "an id has the same text twice in",
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
