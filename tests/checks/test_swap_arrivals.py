"""What came in, made from a log and a manifest, and the verb that judges a release beside its original."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.checks import arrivals_of, judge, verify
from queryveil.cli import main
from queryveil.data import QueryLog, Transactions
from queryveil.errors import BadInput, BadParameter
from queryveil.guarantees import SwapAnonymity
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail
from queryveil.text.classifier import CATEGORIES, Classifier

KEY = b"sixteen secret bytes or more"
START = datetime(2006, 3, 1)
SPORTS, ARTS, NONE = CATEGORIES.index("Sports"), CATEGORIES.index("Arts"), len(CATEGORIES)


def log_of(rows: list[tuple[str, str, int | None]]) -> QueryLog:
    """Make a log; times are hours."""
    times = [None if hours is None else START + timedelta(hours=hours) for _, _, hours in rows]
    return QueryLog.from_frame({"user": [row[0] for row in rows], "query": [row[1] for row in rows], "time": times})


def release_of(
    log: QueryLog,
    *,
    ids: Ids = Ids.KEEP,
    time: TimeDetail = TimeDetail.HOUR,
    remembered: int | None = None,
    k: int = 3,
    **parameters: str | int,
) -> Release:
    manifest = Manifest(
        method="by hand",
        promise=SwapAnonymity(k=k, l=2, remembered=remembered),
        parameters={"classifier": "evidence", **parameters},
        counts=Counts(n_rows_before=5, n_rows_after=log.n_rows, n_users_before=4, n_users_after=log.n_users),
        removed={"rows_suppressed": 5 - log.n_rows},
        columns=ColumnReport(ids=ids, time=time),
    )
    return Release(data=log, manifest=manifest)


def pseudonym(user: str) -> str:
    return hmac.new(KEY, user.encode(), hashlib.sha256).hexdigest()[:32]


LOG = log_of(
    [
        ("ida", "soccer rules", 3),
        ("otto", "soccer players", None),
        ("emil", "soccer goals", 1),
        ("nora", "arctic monkeys", 2),
        ("ida", "soccer league", 1),
    ]
)
RELEASED = log_of([("emil", "soccer league", 3)])


def came(log: QueryLog, **options: str | int) -> list[tuple[str, str, int]]:
    frame = arrivals_of(log, release=release_of(RELEASED, **options)).frame  # type: ignore[arg-type]
    return frame.select("user", "query", "category").rows()


def test_events_come_by_time_and_those_without_one_last() -> None:
    assert [query for _, query, _ in came(LOG, order="time")] == [
        "soccer goals",
        "soccer league",
        "arctic monkeys",
        "soccer rules",
        "soccer players",
    ]


def test_events_come_as_the_file_has_them_if_the_manifest_says_so_or_on_a_stream() -> None:
    in_file = LOG.frame["query"].to_list()
    assert [query for _, query, _ in came(LOG, order="file")] == in_file
    assert [query for _, query, _ in came(LOG, remembered=5)] == in_file
    assert [query for _, query, _ in came(LOG)] != in_file


def test_queries_come_without_identifiers_and_empty_ones_do_not_come() -> None:
    log = log_of([("ida", "219-09-9999", 1), ("ida", "  ", 2), ("ida", "", 3), ("otto", "soccer 212-555-0143", 4)])
    assert came(log) == [("otto", "soccer", SPORTS)]


def test_queries_without_a_category_have_a_pool_unless_they_were_dropped() -> None:
    log = log_of([("ida", "1999", 1), ("otto", "arctic monkeys", 2)])
    assert came(log) == [("ida", "1999", NONE), ("otto", "arctic monkeys", ARTS)]
    assert came(log, unclassified="drop") == [("otto", "arctic monkeys", ARTS)]


def test_the_classifier_is_that_of_the_manifest() -> None:
    log = log_of([("ida", "artic monkeys", 1)])
    assert came(log) == [("ida", "artic monkeys", ARTS)]
    assert came(log, classifier="paper") != came(log)


def test_a_classifier_of_their_own_must_be_given() -> None:
    release = release_of(RELEASED, classifier="own tables")
    with pytest.raises(BadInput, match="with tables of your own: give them too"):
        verify(release, original=LOG)
    assert verify(release, original=LOG, classifier=Classifier()).holds


def test_a_release_is_judged_beside_its_original_only() -> None:
    release = release_of(RELEASED)
    assert verify(release, original=LOG).holds
    assert not verify(release_of(RELEASED, k=4), original=LOG).holds
    with pytest.raises(BadInput, match="beside the original: add --original LOG"):
        verify(release)
    with pytest.raises(BadInput, match="beside the original"):
        judge(RELEASED, SwapAnonymity(k=2, l=2))
    with pytest.raises(BadInput, match="about a log, and the data is transactions"):
        judge(Transactions.from_frame({"items": [["tea"]]}), SwapAnonymity(k=2, l=2))
    with pytest.raises(BadParameter, match="a log, because the release is one"):
        verify(release, original=Transactions.from_frame({"items": [["tea"]]}))


def test_users_with_fresh_ids_cannot_be_judged() -> None:
    with pytest.raises(BadInput, match="anonymize with --ids keyed --key FILE"):
        verify(release_of(RELEASED, ids=Ids.FRESH), original=LOG)


def test_users_with_keyed_ids_are_judged_with_the_key() -> None:
    release = release_of(log_of([(pseudonym("emil"), "soccer league", 3)]), ids=Ids.KEYED)
    own = release_of(log_of([(pseudonym("ida"), "soccer league", 3)]), ids=Ids.KEYED)
    assert verify(release, original=LOG, key=KEY).holds
    assert [witness.kind for witness in verify(own, original=LOG, key=KEY).witnesses] == ["own_query"]
    with pytest.raises(BadInput, match="add --key FILE"):
        verify(release, original=LOG)
    with pytest.raises(BadInput, match="give the key it was made with"):
        verify(release, original=LOG, key=KEY[::-1])


def test_times_are_judged_as_exactly_as_they_were_released() -> None:
    early = log_of([("emil", "soccer league", 2)])
    assert not verify(release_of(early), original=LOG).holds
    assert verify(release_of(early, time=TimeDetail.DAY), original=LOG).holds
    dropped = early.with_frame(early.frame.drop("time"))
    verdict = verify(release_of(dropped, time=TimeDetail.DROP), original=LOG)
    assert verdict.holds
    assert len(verdict.notes) == 1


def test_a_log_without_times_is_judged_by_all_that_came() -> None:
    log, released = (each.with_frame(each.frame.drop("time")) for each in (LOG, RELEASED))
    assert verify(release_of(released, k=4, order="time"), original=log).holds
    assert not verify(release_of(released, k=5, order="time"), original=log).holds


def test_what_full_pools_lost_is_noted() -> None:
    assert verify(release_of(RELEASED, max_pool=3), original=LOG).notes == ()
    assert len(verify(release_of(RELEASED, max_pool=2), original=LOG).notes) == 1


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., CompletedProcess[str]]:
    def run_here(*arguments: object) -> CompletedProcess[str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert not any(text in out + err for text in ("ida", "otto", "emil", "Traceback"))
        return CompletedProcess([], int(stopped.value.code or 0), out, err)

    return run_here


def test_the_command_finds_the_key_beside_the_folder_or_where_it_is_told(
    run: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    LOG.frame.write_parquet(tmp_path / "log.parquet")
    released = log_of([(pseudonym("emil"), "soccer league", 3)])
    folder = release_of(released, ids=Ids.KEYED).save(tmp_path / "out.d")
    judging = ("verify", folder, "--original", tmp_path / "log.parquet")
    assert run(*judging).returncode == 2
    elsewhere = tmp_path / "secret"
    elsewhere.write_bytes(KEY)
    assert run(*judging, "--key", elsewhere).returncode == 0
    (tmp_path / "out.d.key").write_bytes(KEY)
    done = run(*judging)
    assert (done.returncode, done.stdout) == (0, "Swap anonymity (k=3, l=2) holds for 1 user.\n")
    assert run("verify", f"{folder}/", "--original", tmp_path / "log.parquet").returncode == 0
    (tmp_path / "out.d.key").write_bytes(KEY[::-1])
    wrong = run(*judging)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert run(*judging, "--key", tmp_path / "nowhere").returncode == 2


def test_the_command_says_what_is_missing_and_what_is_broken(
    run: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    LOG.frame.write_parquet(tmp_path / "log.parquet")
    folder = release_of(log_of([("ida", "soccer league", 3)])).save(tmp_path / "out")
    alone = run("verify", folder)
    assert (alone.returncode, alone.stdout, alone.stderr.count("\n")) == (2, "", 1)
    assert "add --original LOG" in alone.stderr
    broken = run("verify", folder, "--original", tmp_path / "log.parquet")
    assert broken.returncode == 1
    assert "a user was given a query of their own (row 1)" in broken.stdout
    assert "soccer" not in broken.stdout + broken.stderr
    shown = run("verify", folder, "--original", tmp_path / "log.parquet", "--show", "--json")
    assert json.loads(shown.stdout)["texts"] == ["soccer league: a user was given a query of their own (row 1)"]


def test_the_command_takes_tables_of_ones_own(run: Callable[..., CompletedProcess[str]], tmp_path: Path) -> None:
    LOG.frame.write_parquet(tmp_path / "log.parquet")
    table = tmp_path / "categories.csv"
    table.write_text("unit,category,weight\nsoccer,Games,1\nmonkeys,Arts,1\n")
    folder = release_of(RELEASED, classifier="own tables").save(tmp_path / "out")
    judging = ("verify", folder, "--original", tmp_path / "log.parquet")
    assert run(*judging).returncode == 2
    assert run(*judging, "--categories", table).returncode == 0
    table.write_text("unit,category,weight\ngoals,Games,1\nleague,Arts,1\n")
    assert run(*judging, "--categories", table).returncode == 1
