from __future__ import annotations

import gzip
from importlib.metadata import version
from pathlib import Path

import msgspec
import polars as pl
import pytest
from tests.support.examples import SOAKS

from queryveil import ColumnPolicy, Km, QueryLog, read_log, read_release, synth, verify
from queryveil.errors import BadParameter, BadRelease, NotWritten, NotYet, ReleaseExists
from queryveil.spark import Spark
from queryveil.testing import log_of, tiny_log

KEPT = ColumnPolicy(ids="keep", time="keep")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def log() -> QueryLog:
    return synth(users=10_000 if SOAKS else 400, seed=5).log


def values_of(log: QueryLog) -> pl.DataFrame:
    """Return every term a bid of its own, so that nothing is left to chance."""
    terms = log.frame["query"].str.to_lowercase().str.extract_all(r"[\pL\pM\p{Nd}]+").explode(empty_as_null=False)
    distinct = terms.unique().sort()
    return pl.DataFrame({"term": distinct, "bid": 1 + (distinct.rank("ordinal") * 7919 % 10007) / 10007})


def test_spark_comes_to_the_very_outcome_of_one_machine(engine: Spark, log: QueryLog, tmp_path: Path) -> None:
    method = Km(k=3, m=3, target="bid", values=values_of(log), columns=KEPT)  # type: ignore[arg-type]
    engine.anonymize(method, engine.put(log), str(tmp_path / "release"))
    there, here = read_release(tmp_path / "release"), method.anonymize(log)
    columns = here.log.frame.columns
    assert there.log.frame.sort(columns).equals(here.log.frame.sort(columns))
    assert there.manifest.removed == here.manifest.removed
    assert there.manifest.counts == here.manifest.counts
    assert there.manifest.texts == here.manifest.texts
    assert there.manifest.texts is not None
    assert there.manifest.texts.n_of_one_person
    # Users whose counts nobody else has are not counted on a cluster.
    (counts,) = set(here.manifest.warnings) - set(there.manifest.warnings)
    assert counts.startswith("counts of terms are not covered by the promise")
    assert set(there.manifest.warnings) < set(here.manifest.warnings)
    assert verify(tmp_path / "release", original=log).holds


def test_users_get_numbers_that_tell_nothing_and_their_rows_stay_together(engine: Spark, tmp_path: Path) -> None:
    log = log_of({f"persona{i}": ["red wine", "white wine", "red"] for i in range(50)})
    engine.anonymize(Km(k=5, m=2), engine.put(log), str(tmp_path / "release"))
    users = read_release(tmp_path / "release").log.frame["user"]
    assert sorted(map(int, users.unique())) == list(range(1, 51))
    assert len(users.rle()) == 50
    assert users.unique(maintain_order=True).to_list() != sorted(users.unique().to_list(), key=int)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no folder that nobody can write to")
def test_a_place_that_cannot_be_written_is_found_out_before_the_work(engine: Spark) -> None:
    with pytest.raises(NotWritten, match=r"^release: could not be written: no folder can be made there; nothing was"):
        engine.check_target("/proc/release")


def test_an_existing_release_is_replaced_only_with_force(engine: Spark, tmp_path: Path) -> None:
    folder = str(tmp_path / "release")
    log = engine.put(tiny_log())
    manifest = engine.anonymize(Km(k=2, m=1), log, folder)
    # It says that Spark made it, and which parts it has.
    assert manifest.versions["pyspark"] == version("pyspark")
    assert read_release(folder).manifest.versions == manifest.versions
    written = msgspec.json.decode((tmp_path / "release" / "manifest.json").read_bytes())
    assert [part["name"] for part in written["data"]["parts"]] == ["part-00000.parquet"]
    before = (tmp_path / "release" / "manifest.json").read_bytes()
    with pytest.raises(ReleaseExists):
        engine.anonymize(Km(k=2, m=1), log, folder)
    assert (tmp_path / "release" / "manifest.json").read_bytes() == before
    engine.anonymize(Km(k=3, m=1), log, folder, force=True)
    assert read_release(folder).promise.k == 3  # type: ignore[union-attr]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release"]
    notices_other_parts(engine, Path(folder))


def notices_other_parts(engine: Spark, folder: Path) -> None:
    """A part that was added to a release is at fault, and with one that was changed it is none."""
    (data,) = [path for path in folder.iterdir() if path.is_dir()]
    (data / "part-99999.parquet").write_bytes(b"more")
    for judge in (verify, engine.verify):
        assert [fault for fault in judge(str(folder)).faults if "part-99999" in fault]
    (data / "part-99999.parquet").unlink()
    (part,) = data.iterdir()
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    for judge in (verify, engine.verify):
        with pytest.raises(BadRelease):
            judge(str(folder))


def test_a_release_is_not_written_over_what_is_none(engine: Spark, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.txt").write_text("mine")
    with pytest.raises(BadParameter):
        engine.anonymize(Km(k=2, m=1), engine.put(tiny_log()), str(tmp_path / "photos"), force=True)
    with pytest.raises(BadParameter):
        engine.anonymize(Km(k=2, m=1), engine.put(tiny_log()), str(tmp_path / "no" / "folder"))
    assert (tmp_path / "photos" / "one.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "method",
    [Km(m=None), Km(restore=False), Km(repeats="once"), Km(target="fis")],  # type: ignore[arg-type]
    ids=["whole histories", "the paper's deletion", "repeats once", "fis"],
)
def test_what_spark_cannot_do_is_said_with_its_reason(engine: Spark, tmp_path: Path, method: Km) -> None:
    with pytest.raises(NotYet, match=r"because .*; leave out") as told:
        engine.anonymize(method, engine.put(tiny_log()), str(tmp_path / "release"))
    assert "\n" not in str(told.value)
    assert not list(tmp_path.iterdir())


def test_nothing_of_the_log_is_in_the_plans_that_spark_may_write_down(engine: Spark, tmp_path: Path) -> None:
    """Keys and secrets are in closures alone: a literal would stand in the plan, and so in an event log."""
    policy = ColumnPolicy(ids="keyed", key=b"this-is-a-secret-key")  # type: ignore[arg-type]
    from queryveil.spark._writing import release_rows

    leaving = release_rows(engine.put(tiny_log()).frame, policy, seed=None)
    plan = leaving.frame._jdf.queryExecution().toString()
    assert "this-is-a-secret-key" not in plan
    assert b"this-is-a-secret-key".hex() not in plan.lower()


@pytest.mark.parametrize("ids", ["fresh", "keyed", "keep"])
def test_kept_columns_of_any_name_leave_as_they_are(engine: Spark, tmp_path: Path, ids: str) -> None:
    names = ["name", "place", "bucket", "digest", "window"]
    log = log_of({f"persona{i}": ["red wine"] for i in range(4)})
    log = log.with_frame(log.frame.with_columns(pl.lit("lanternford").alias(name) for name in names))
    key = b"sixteen bytes and more" if ids == "keyed" else None
    policy = ColumnPolicy(ids=ids, keep=tuple(names), key=key)  # type: ignore[arg-type]
    method = Km(k=2, m=1, columns=policy)
    engine.anonymize(method, engine.put(log), str(tmp_path / "release"))
    there, here = read_release(tmp_path / "release").log.frame, method.anonymize(log).log.frame
    assert set(there.columns) == set(here.columns)
    assert there["user"].n_unique() == 4
    if ids != "fresh":
        assert set(there["user"]) == set(here["user"])
    assert all(there[name].unique().to_list() == ["lanternford"] for name in names)


def test_ids_that_the_format_would_change_are_refused(engine: Spark, tmp_path: Path) -> None:
    from dataclasses import replace

    from queryveil.data import Format, Layout
    from queryveil.errors import BadInput

    log = replace(log_of({"a\tb": ["wine"], "a b": ["wine"]}), layout=Layout(format=Format.TSV))
    with pytest.raises(BadInput, match="fresh ids"):
        engine.anonymize(Km(k=2, m=1, columns=KEPT), engine.put(log), str(tmp_path / "release"))
    assert not list(tmp_path.iterdir())


def test_terms_are_counted_once_whatever_the_windows(engine: Spark, tmp_path: Path) -> None:
    from datetime import datetime

    rows = {
        "user": ["1", "2", "3", "1", "2"],
        "query": ["tea milk", "tea", "rare", "tea", "tea milk"],
        "time": [datetime(2024, 1, day) for day in (1, 1, 1, 2, 2)],
    }
    log, method = QueryLog.from_frame(rows), Km(k=2, m=2, window="1d")
    manifest = engine.anonymize(method, engine.put(log), str(tmp_path / "release"))
    here = method.anonymize(log).manifest
    assert manifest.removed == here.removed
    # Two people ask for tea; with an id for each day they have four.
    assert manifest.texts == here.texts
    assert manifest.texts is not None
    assert (manifest.texts.n_texts, manifest.texts.n_of_one_person) == (1, 0)


def test_a_person_with_an_id_for_each_window_is_one_person(engine: Spark, tmp_path: Path) -> None:
    from datetime import datetime

    rows = {
        "user": ["1", "2", "2", "1", "2", "2"],
        "query": ["tea milk", "tea", "milk", "tea milk", "tea", "milk"],
        "time": [datetime(2024, 1, day) for day in (1, 1, 1, 2, 2, 2)],
    }
    log, method = QueryLog.from_frame(rows), Km(k=2, m=2, window="1d")
    manifest = engine.anonymize(method, engine.put(log), str(tmp_path / "release"))
    assert manifest.texts == method.anonymize(log).manifest.texts
    assert manifest.texts is not None
    assert (manifest.texts.n_texts, manifest.texts.n_of_one_person, manifest.texts.n_rows_of_one_person) == (3, 3, 6)


def test_shared_times_are_the_starts_of_windows(engine: Spark, tmp_path: Path) -> None:
    from datetime import datetime

    times = [datetime(2024, 1, day, 7) for day in range(1, 15)]
    rows = {"user": ["1"] * 14 + ["2"] * 14, "query": ["tea"] * 28, "time": times * 2}
    log, method = QueryLog.from_frame(rows), Km(k=2, m=1, window="7d", columns=ColumnPolicy(time="shared"))  # type: ignore[arg-type]
    engine.anonymize(method, engine.put(log), str(tmp_path / "release"))
    assert verify(tmp_path / "release").holds
    released = read_release(tmp_path / "release").log.frame["time"]
    assert sorted(released) == sorted(method.anonymize(log).log.frame["time"])
    assert released.n_unique() == 3


N_EACH = 2
"""Rows of a user: there are as many parts as rows."""


@pytest.mark.parametrize("name", ["bare", "tsv", "jsonl", "gz", "transactions"])
def test_a_release_whose_first_part_has_no_rows_is_whole(
    engine: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("queryveil.spark._writing._ROWS_PER_PARTITION", 1)
    rows = "".join(f"{user}\tkettle\t2006-03-01 10:00:00\t\t\n" for user in (1, 2) for _ in range(N_EACH))
    header = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
    texts = {
        "bare": rows,
        "gz": header + rows,
        "tsv": "user\tquery\n" + "1\tkettle\n2\tkettle\n" * N_EACH,
        "jsonl": '{"user": "1", "query": "kettle"}\n{"user": "2", "query": "kettle"}\n' * N_EACH,
        "transactions": "kettle pan\nkettle pan\n",
    }
    log, folder = tmp_path / f"log.{name}", tmp_path / "release"
    text = texts[name].encode()
    log.write_bytes(gzip.compress(text) if name == "gz" else text)
    form = "transactions" if name == "transactions" else None
    manifest = engine.anonymize(Km(k=2, m=1, seed=1), engine.read_log(str(log), format=form), str(folder))
    assert manifest.counts.n_users_after == 2
    assert read_release(folder).log.n_rows == manifest.counts.n_rows_after
    assert verify(folder).holds
    if name in ("bare", "gz"):
        assert engine.verify(str(folder)).holds
    # Of two users and as many parts as rows, the first has none.
    first = next(path for path in sorted(folder.rglob("part-*")))
    assert first.name.startswith("part-00000.")
    assert read_log(first, format=form).n_rows == 0
