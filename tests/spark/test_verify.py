from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import polars as pl
import pytest
from tests.support.forging import AOL, CSV, JSONL, a_log, forge, released

from queryveil import Km, KmAnonymity, QueryLog, Release, inspect, measure, synth, verify
from queryveil.errors import BadRelease, NamedTwice, NothingPromised, NotYet
from queryveil.guarantees import Guarantee, NoPromise
from queryveil.release import ColumnPolicy, Counts, Ids, TimeDetail
from queryveil.spark import Spark
from queryveil.testing import log_of, tiny_log


def saved(log: QueryLog, promise: Guarantee, folder: Path) -> str:
    """Write a log as a release with a promise that it may or may not keep."""
    kept = tuple(name for name in log.columns if name not in ("user", "query", "time"))
    policy = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP, keep=kept)
    n_rows, n_users = log.n_rows, log.n_users
    manifest = msgspec.structs.replace(
        Km(k=2, m=1).anonymize(log).manifest,
        method="by hand",
        promise=promise,
        parameters={},
        counts=Counts(n_rows_before=n_rows, n_rows_after=n_rows, n_users_before=n_users, n_users_after=n_users),
        columns=policy.report(log.columns),
        texts=None,
    )
    return str(Release(data=log, manifest=manifest).save(folder))


@pytest.mark.parametrize(
    ("promise", "histories"),
    [
        (KmAnonymity(k=2, m=2), ["a b c", "a b", "a c", "b c"]),
        (KmAnonymity(k=2, m=3), ["a b c", "a b", "a c", "b c"]),
        (KmAnonymity(k=3, m=1), ["a b", "a b", "a"]),
        (KmAnonymity(k=2, m=4), ["a b c d", "a b c d", "a b c d e", "e"]),
        (KmAnonymity(k=2, m=5), ["a b c d", "a b c d", "a b c d e", "e"]),
        (KmAnonymity(k=2, m=3), ["", "", "x"]),
    ],
)
def test_a_cluster_judges_as_one_machine_does(
    engine: Spark, tmp_path: Path, promise: KmAnonymity, histories: list[str]
) -> None:
    log = log_of({f"u{i}": [history] for i, history in enumerate(histories)})
    folder = saved(log, promise, tmp_path / "release")
    here, there = verify(folder), engine.verify(folder)
    assert (there.holds, there.n_violations, there.n_users, there.n_checked_users) == (
        here.holds,
        here.n_violations,
        here.n_users,
        here.n_checked_users,
    )
    assert [(w.size, w.support) for w in there.witnesses] == [(w.size, w.support) for w in here.witnesses]
    assert there.in_words().split(",")[0] == here.in_words().split(",")[0]


def test_windows_are_judged_one_by_one(engine: Spark, tmp_path: Path) -> None:
    times = [datetime(2024, 1, 1) + timedelta(days=day) for day in (0, 0, 1, 1, 1)]
    rows = {"user": ["1", "2", "3", "4", "1"], "query": ["tea", "tea", "tea", "coffee", "tea"], "time": times}
    folder = saved(QueryLog.from_frame(rows), KmAnonymity(k=2, m=2, window="1d"), tmp_path / "release")
    here, there = verify(folder), engine.verify(folder)
    assert not there.holds
    assert there.n_violations == here.n_violations == 2


def test_a_text_that_an_id_has_twice_is_found_where_repeats_leave_once(engine: Spark, tmp_path: Path) -> None:
    release = Km(k=2, m=2, repeats="once").anonymize(log_of({f"u{i}": ["red wine", "tea"] for i in range(4)}))
    assert engine.verify(str(release.save(tmp_path / "release"))).holds
    frame = release.log.frame.with_columns(query=pl.lit("red wine"))
    folder = str(replace(release, data=release.log.with_frame(frame)).save(tmp_path / "twice"))
    here, there = ([one for one in each.faults if "twice" in one] for each in (verify(folder), engine.verify(folder)))
    assert (len(here), len(there)) == (1, 1)
    assert here[0].startswith(there[0])
    assert "has the same text twice in 8 rows" in there[0]


def test_terms_that_the_original_does_not_have_are_found(engine: Spark, tmp_path: Path) -> None:
    log = log_of({f"u{i}": ["red wine"] for i in range(4)})
    folder = saved(log_of({f"u{i}": ["red wine gin"] for i in range(4)}), KmAnonymity(k=2, m=2), tmp_path / "release")
    assert engine.verify(folder).holds
    verdict = engine.verify(folder, original=engine.put(log))
    assert not verdict.holds
    assert verdict.n_violations == verify(folder, original=log).n_violations == 1


def test_a_real_release_is_judged_inspected_and_measured_as_on_one_machine(engine: Spark, tmp_path: Path) -> None:
    log = synth(users=1000, seed=2).log
    there = engine.put(log)
    found = engine.inspect(there, k=3, m=3)
    assert found == inspect(log, k=3, m=3)
    release = Km(k=4, m=2).anonymize(log)
    folder = str(release.save(tmp_path / "release"))
    assert engine.verify(folder, original=there) == verify(folder, original=log)
    mine, theirs = engine.measure(there, folder), measure(log, folder)
    assert {score.name: pytest.approx(score.value) for score in mine} == {
        score.name: score.value for score in theirs if mine.named(score.name) is not None
    }
    assert {"rows_kept", "users_kept", "terms_kept", "queries_kept", "log_size_kept", "top_queries_kept"} <= {
        score.name for score in mine
    }
    lie = replace(release, manifest=msgspec.structs.replace(release.manifest, promise=KmAnonymity(k=4, m=3)))
    folder = str(lie.save(tmp_path / "lie"))
    assert engine.verify(folder).n_violations == verify(folder).n_violations > 0


def test_what_cannot_be_judged_there_is_said(engine: Spark, tmp_path: Path) -> None:
    with pytest.raises(NothingPromised):
        engine.verify(saved(tiny_log(), NoPromise(reason="of a test"), tmp_path / "none"))
    with pytest.raises(NotYet):
        engine.verify(saved(tiny_log(), KmAnonymity(k=2, m=None), tmp_path / "whole"))


def test_an_empty_release_is_judged(engine: Spark, tmp_path: Path) -> None:
    nothing = tiny_log().with_frame(tiny_log().frame.clear())
    folder = saved(nothing, KmAnonymity(k=2, m=2), tmp_path / "release")
    assert engine.verify(folder) == verify(folder)


def test_everything_in_the_folder_is_judged_as_on_one_machine(engine: Spark, tmp_path: Path) -> None:
    for number, layout in enumerate((CSV, JSONL, AOL)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        good = released(folder, layout)
        assert engine.verify(str(good)).holds
        kept = Km(k=2, m=1, columns=ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP, keep=("url",)))
        bad = kept.anonymize(a_log(layout)).save(folder / "bad")
        columns: dict[str, object] = {"ids": "fresh", "time": "day", "kept": []}
        forge(bad, manifest=lambda said: said.update(columns=said["columns"] | columns))  # noqa: B023 - called at once
        (bad / "raw.tsv").write_text("persona00")
        os.mkfifo(bad / "more")
        here, there = verify(bad), engine.verify(str(bad), expect="km k=3")
        assert not there.holds
        said = {fault.partition(" (the first")[0] for fault in here.faults}
        assert set(there.faults) == said | {"k=2 is promised, and k=3 or more is expected"}
        assert len(said) == 6
    forge(good := released(tmp_path, JSONL), data=lambda data: data.replace(b"{", b'{"user": "persona00", ', 1))
    assert engine.verify(str(good)).faults == ("log.jsonl holds 1 value that no column has",)
    (good / "log.jsonl").unlink()
    os.mkfifo(good / "log.jsonl")
    with pytest.raises(BadRelease, match="is a pipe, and a release is made of files"):
        engine.verify(str(good))


def test_texts_that_one_person_alone_asked_are_counted_again(engine: Spark, tmp_path: Path) -> None:
    log = log_of({"u1": ["red wine", "gout"], "u2": ["red", "wine", "gout"], "u3": ["red wine gout"], "u4": ["wine"]})
    folder = Km(k=2, m=1).anonymize(log).save(tmp_path / "release")
    assert engine.verify(str(folder)).holds
    forge(folder, manifest=lambda said: said["texts"].update(n_of_one_person=2, n_texts=9))
    assert engine.verify(str(folder)).faults == verify(folder).faults
    assert len(verify(folder).faults) == 2


def test_a_file_that_is_named_twice_is_refused(engine: Spark, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,query\npersona1,kestrel\n")
    (tmp_path / "link.csv").symlink_to(path)
    for names in ([str(path)] * 2, [str(tmp_path / "*.csv")], [str(path), str(tmp_path / "l*.csv")]):
        with pytest.raises(NamedTwice, match="name each file once"):
            engine.read_log(names)
