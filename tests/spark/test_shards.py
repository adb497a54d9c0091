"""clump, partition, kdelta and plink on Spark, in shards: the union keeps the promise, and its manifest adds up."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from tests.support.plain_texts import plain_counts

from queryveil.checks import verify
from queryveil.checks.plink import verify_linkability
from queryveil.data import GROUPS_SCHEMA, Format, Groups, Layout, QueryLog
from queryveil.errors import BadInput, BadParameter, NotYet, TooFewUsers
from queryveil.guarantees import Linkability
from queryveil.methods import Clump, Kdelta, Partition, Plink
from queryveil.release import ColumnPolicy, Release, keyed, read_release
from queryveil.spark._executors import spark_types, to_spark
from queryveil.spark._grouping import COUNTED, join_small, places
from queryveil.spark._shards import SHARD, assign_shards, shard_seed, sorted_rows
from queryveil.spark._writing import derive_secret
from queryveil.spark.engine import Spark
from queryveil.testing.strategies import PLANTS
from queryveil.text.taxonomy import Taxonomy

TREE = Taxonomy.from_pairs(PLANTS)
ASKED = ("birch tree", "cedar elm", "dahlia", "amber dahlia", "fern grape", "elm", "grape fern birch", "zzz unknown")
METHODS: dict[str, Any] = {
    "clump": Clump(k=3, taxonomy=TREE),
    "clump of queries": Clump(k=3, taxonomy=TREE, unit="query", dedupe=True),  # type: ignore[arg-type]
    "partition": Partition(k=3, taxonomy=TREE),
    "plink": Plink(p=0.4, taxonomy=TREE),
    "plink of counts": Plink(p=0.4, weights="count", representative="union", taxonomy=TREE),  # type: ignore[arg-type]
    "strict plink": Plink(p=0.4, strict=True, taxonomy=TREE),
    "kdelta": Kdelta(k=3, same_texts=True),
    "kdelta without additions": Kdelta(k=3, same_texts=True, additions=False),
}
FORMATS = {"clump": Format.CSV, "clump of queries": Format.PARQUET, "kdelta": Format.AOL, "partition": Format.JSONL}

Anonymize = Callable[..., Release]


@pytest.fixture
def anonymize(engine: Spark, tmp_path: Path) -> Anonymize:
    """Run a method on the cluster and read what it wrote."""
    n_releases = iter(range(99))

    def run(method: Any, log: QueryLog, *, shards: int | None = 3) -> Release:
        folder = tmp_path / f"release-{next(n_releases)}"
        engine.anonymize(method, engine.put(log), str(folder), shards=shards)
        return read_release(folder)

    return run


def made_up(n_users: int = 60, *, format: Format = Format.TSV) -> QueryLog:  # noqa: A002
    """Return a log of users who ask a few things and click on a few pages; one of them is a program."""
    chance = random.Random(3)
    rows = []
    for user in range(n_users):
        for _ in range(chance.randint(2, 9)):
            query = min(chance.randrange(len(ASKED)), chance.randrange(len(ASKED)))
            time = datetime(2006, 3, 1) + timedelta(minutes=chance.randrange(40_000))
            url = None if chance.random() < 0.3 else f"www.page-{query % 3}.example"
            rows.append((f"person-{user:04}", ASKED[query], time, chance.randint(1, 9), url, f"device-{user % 2}"))
    start = datetime(2006, 4, 1)
    for minute in range(120):
        rows.append(("program-9", f"elm {minute}", start + timedelta(minutes=minute), 1, None, "device-0"))
    columns = ["user", "query", "time", "rank", "url", "device"]
    frame = pl.DataFrame(rows, schema=columns, orient="row").with_columns(pl.col("rank").cast(pl.Int32))
    if format is Format.AOL:
        frame = frame.drop("device")
    return QueryLog.from_frame(frame, layout=Layout(format=format))


@pytest.mark.parametrize("name", METHODS)
def test_the_union_of_shards_keeps_the_promise_and_adds_up(name: str, anonymize: Anonymize) -> None:
    method, log = METHODS[name], made_up(format=FORMATS.get(name, Format.TSV))
    release = anonymize(method, log)
    assert release.manifest.data is not None
    assert release.manifest.data.parts
    tree = None if isinstance(method, Kdelta | Plink) else TREE
    verdict = verify(release, original=log, taxonomy=tree)
    assert verdict.holds, verdict.in_words()
    assert release.promise == method.promise

    manifest, frame = release.manifest, release.data.frame
    counts = manifest.counts
    assert (counts.n_rows_before, counts.n_users_before) == (log.n_rows, log.n_users)
    assert counts.n_rows_after == frame.height > 0
    ids = next(frame[column] for column in ("user", "id", "group") if column in frame.columns)
    assert sorted(map(int, ids.unique())) == list(range(1, ids.n_unique() + 1))
    assert not any("seed" in warning or "original ones" in warning for warning in manifest.warnings)
    said = msgspec.json.encode(manifest).decode()
    assert not any(text in said for text in (*log.frame["user"], *ASKED, "page-") if len(text) > 6)

    if isinstance(method, Kdelta):
        assert counts.n_users_after == release.log.n_users
        gone = sum(n for rows, n in manifest.removed.items() if "rows" in rows and rows != "bad_rows_skipped")
        assert counts.n_rows_after == log.n_rows - gone + manifest.changed["rows_added"]
        assert (manifest.removed["bot_users"], manifest.removed["bot_rows"]) == (1, 120)
        people = [row for row in log.frame.select("user", "query").rows() if row[0] != "program-9"]
        assert manifest.texts is not None
        assert msgspec.structs.asdict(manifest.texts) == plain_counts(frame["query"], people)
    elif isinstance(method, Plink):
        assert counts.n_users_after == release.groups.n_members
        assert manifest.measures["groups"] == release.groups.n_groups
    else:
        # Of queries it is the people that are counted, and each of them has one that leaves.
        assert counts.n_users_after == (log.n_users if method.unit == "query" else frame.height)
        assert frame.height == ids.n_unique()
        n_items = release.transactions.n_items
        assert manifest.measures["average_length"] == round(n_items / frame.height, 3)


ALONE: dict[str, Any] = {
    "clump with WordNet": Clump(k=3, taxonomy=Taxonomy.wordnet()),
    "plink": Plink(p=0.4, taxonomy=TREE),
    "strict plink": METHODS["strict plink"],
    "kdelta": Kdelta(
        k=3,
        same_texts=True,
        columns=ColumnPolicy(ids="keep", time="keep", keep=("rank", "device")),  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_single_shard_says_what_one_machine_says(name: str, anonymize: Anonymize) -> None:
    method, log = replace(ALONE[name], seed=7), made_up()
    there = anonymize(method, log, shards=1)
    # The same rows in the same order, and the chance that the only shard has.
    same = replace(method, seed=shard_seed(derive_secret(7, "shards"), 0, 1))
    here = same.anonymize(log.with_frame(sorted_rows(log.frame)))
    for part in (
        "promise",
        "parameters",
        "counts",
        "texts",
        "removed",
        "changed",
        "columns",
        "warnings",
        "query_clusters",
    ):
        assert getattr(there.manifest, part) == getattr(here.manifest, part), part
    # Which of equally frequent queries are the top ones is anybody's choice.
    assert list(there.manifest.measures) == list(here.manifest.measures)
    for measure, value in here.manifest.measures.items():
        assert there.manifest.measures[measure] == pytest.approx(value, abs=2e-4), measure
    assert _content(there) == _content(here)


def _content(release: Release) -> list[str]:
    """Return what is released without the numbers of transactions and groups, which are anybody's."""
    frame = release.data.frame
    return sorted(frame.select(sorted({*frame.columns} - {"id", "group"})).write_ndjson().splitlines())


@pytest.mark.parametrize("name", ["clump", "kdelta"])
def test_a_seed_repeats_and_is_warned_of(name: str, anonymize: Anonymize) -> None:
    method, log = replace(METHODS[name], seed=7), made_up()
    mixed = log.with_frame(log.frame.sample(fraction=1.0, shuffle=True, seed=1))
    once, twice = anonymize(method, log), anonymize(method, mixed)
    assert once.data.frame.equals(twice.data.frame)
    assert sum("seed" in warning for warning in once.manifest.warnings) == 1


def test_kdelta_gives_users_and_columns_as_the_policy_asks(anonymize: Anonymize) -> None:
    log, key = made_up(), b"0123456789abcdef"
    policy = ColumnPolicy(ids="keyed", key=key, time="hour", keep=("device",))  # type: ignore[arg-type]
    release = anonymize(Kdelta(k=3, same_texts=True, columns=policy), log)
    assert verify(release, original=log).holds
    assert set(release.log.frame["user"]) <= set(keyed(log.frame["user"].unique(), key=key))
    assert set(release.log.columns) == {"user", "query", "time", "url", "device"}
    assert (release.log.frame["time"].dt.minute() == 0).all()
    assert release.manifest.columns == policy.report(log.columns, protected=("url",))
    assert sum("same in every release under this key" in warning for warning in release.manifest.warnings) == 1


@pytest.mark.parametrize("name", ["clump", "plink", "kdelta"])
def test_an_empty_log_is_a_fine_log(name: str, anonymize: Anonymize) -> None:
    nothing = made_up().with_frame(made_up().frame.clear())
    release = anonymize(METHODS[name], nothing)
    assert release.data.frame.height == 0
    assert verify(release, original=nothing).holds


def test_users_without_anything_to_release_leave_an_empty_release(anonymize: Anonymize) -> None:
    log = QueryLog.from_frame({"user": ["a", "b", "c"], "query": ["zzz", "qqq", "unknown"]})
    for method in (Clump(k=2, taxonomy=TREE), Plink(p=0.5, taxonomy=TREE)):
        release = anonymize(method, log, shards=2)
        assert (release.data.frame.height, release.manifest.counts.n_users_before) == (0, 3)


@pytest.mark.parametrize("name", ["clump", "plink", "kdelta"])
def test_one_user_is_too_few_as_on_one_machine(name: str, anonymize: Anonymize) -> None:
    log = made_up(n_users=1)
    alone = log.with_frame(log.frame.filter(pl.col("user") == "person-0000"))
    method = METHODS[name]
    with pytest.raises((TooFewUsers, BadParameter)) as here:
        method.anonymize(alone)
    with pytest.raises(type(here.value)) as there:
        anonymize(method, alone)
    assert str(there.value) == str(here.value)
    assert getattr(there.value, "n_users", None) == getattr(here.value, "n_users", None)


@pytest.mark.parametrize("name", ["partition", "kdelta"])
def test_shards_without_enough_users_become_fewer(name: str, anonymize: Anonymize) -> None:
    log = made_up(n_users=12)
    release = anonymize(METHODS[name], log, shards=8)
    assert verify(release, original=log).holds
    assert release.manifest.counts.n_users_before == 13


def shared_out(frame: pl.DataFrame, *, secret: bytes) -> pl.DataFrame:
    """Return the rows with the shard of each, of four, as the executors find it."""
    batches = frame.iter_slices(150)
    return pl.concat([assign_shards(batch, secret=secret, n_shards=4) for batch in batches])


def test_every_user_is_in_one_shard_and_a_secret_decides_which() -> None:
    frame = pl.DataFrame({"user": [f"person-{n % 400}" for n in range(800)]})
    once, again, other = (shared_out(frame, secret=secret) for secret in (b"one secret", b"one secret", b"another"))
    assert once.unique().height == 400
    assert set(once[SHARD]) == {0, 1, 2, 3}
    assert once.equals(again)
    assert not once.equals(other)


def _lopsided() -> QueryLog:
    """Return users of whom half have one term and half have six, so that average profiles of shards differ."""
    few, many = ("birch", "elm", "fern"), "birch cedar elm dahlia fern grape"
    users = [(f"person-{n:04}", few[n % 3] if n % 2 else many) for n in range(40)]
    return QueryLog.from_frame({"user": [user for user, _ in users], "query": [query for _, query in users]})


# One group is too small, three are, and a whole shard is.
@pytest.mark.parametrize("seed", [8, 23, 16])
def test_groups_are_large_enough_beside_the_average_of_all_shards(seed: int, anonymize: Anonymize) -> None:
    log = _lopsided()
    method = Plink(p=0.4, taxonomy=TREE, seed=seed)
    # Every shard keeps the promise, and the union of what they release would not.
    secret = derive_secret(method.seed, "shards")
    rows = shared_out(log.frame, secret=secret)
    naive = []
    for (shard,), part in rows.partition_by(SHARD, as_dict=True, include_key=False).items():
        seeded = replace(method, seed=shard_seed(secret, int(shard), 4))
        release = seeded.anonymize(log.with_frame(sorted_rows(part)))
        assert verify(release).holds
        naive.append(release.groups.frame)
    union = pl.concat(naive).with_columns(group=pl.int_range(1, pl.len() + 1))
    assert not verify_linkability(Groups(frame=union), method.promise).holds

    release = anonymize(method, log, shards=4)
    assert verify(release, original=log).holds
    assert release.groups.n_groups < union.height
    assert release.groups.n_members == 40
    # A weight is the share of the members that have the term, also in groups that were joined.
    holders = release.groups.frame.explode("terms", "weights").select(pl.col("weights") * pl.col("members")).to_series()
    assert holders.to_list() == pytest.approx(holders.round().to_list(), abs=1e-4)


@pytest.mark.parametrize("union", [False, True])
def test_joined_groups_have_the_profile_of_all_their_members(engine: Spark, tmp_path: Path, union: bool) -> None:
    frame = pl.DataFrame(
        {
            "group": [1, 2, 3],
            "members": [3, 1, 4],
            "size": [4, 2, 12],
            "whole": [4, 2, 12],
            "terms": [["elm", "fern"], ["cedar", "elm"], ["birch", "elm", "fern"]],
            "weights": [[1.0, 0.333333], [1.0, 1.0], [1.0, 1.0, 1.0]],
            "holders": [[3, 1], [1, 1], [4, 4, 4]],
            SHARD: [0, 0, 0],
        }
    ).with_columns(pl.col(SHARD).cast(pl.Int32))
    joined = join_small(to_spark(frame, spark=engine.session), needed=6, union=union, scratch=str(tmp_path))
    out = pl.from_arrow(joined.toArrow())
    assert isinstance(out, pl.DataFrame)
    small = out.filter(pl.col("members") == 4, pl.col("size") == 6).row(0, named=True)
    assert set(spark_types(COUNTED).names) <= set(out.columns)
    assert (small["terms"], small["holders"]) == (["cedar", "elm", "fern"], [1, 4, 1])
    assert small["weights"] == pytest.approx([1, 1, 0.333333] if union else [0.25, 1, 0.25], abs=1e-6)
    groups = out.with_columns(holders=pl.lit(None)).select(list(GROUPS_SCHEMA)).cast(GROUPS_SCHEMA)  # type: ignore[arg-type]
    assert verify_linkability(Groups(frame=groups), Linkability(p=0.4)).holds


def test_small_groups_are_joined_until_each_has_enough() -> None:
    chance = random.Random(1)
    for _ in range(500):
        sizes = [chance.randint(1, 12) for _ in range(chance.randint(1, 8))]
        needed = chance.randint(1, sum(sizes))
        into = places(sizes, needed=needed)
        joined = [sum(size for size, at in zip(sizes, into, strict=True) if at == group) for group in set(into)]
        assert min(joined) >= needed
        assert all(into[at] == at for at in into)


def test_what_shards_cannot_do_is_said_in_one_line(anonymize: Anonymize) -> None:
    log = made_up(n_users=12)
    for method in (Kdelta(k=2), Kdelta(k=2, mode="paper"), Plink(weights="tfidf", taxonomy=TREE)):  # type: ignore[arg-type]
        with pytest.raises(NotYet, match=r"^[^\n]*on Spark: not yet, because [^\n]*; [^\n]*leave out --engine$"):
            anonymize(method, log)
    for shards in (0, -1, True, 1.5):
        with pytest.raises(BadParameter, match="shards must be 1 or more"):
            anonymize(METHODS["clump"], log, shards=shards)


def test_a_transaction_with_an_item_outside_the_taxonomy_is_refused(anonymize: Anonymize) -> None:
    log = QueryLog.from_frame(
        {"user": ["1", "2", "3"], "query": ["elm", "elm", "elm rosebush"]}, layout=Layout(format=Format.TRANSACTIONS)
    )
    with pytest.raises(BadInput, match=r"^items are outside the taxonomy") as raised:
        anonymize(Clump(k=2, taxonomy=TREE), log, shards=1)
    assert "rosebush" not in str(raised.value)
