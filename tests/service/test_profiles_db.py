"""Profiles read from a store: complete at every moment, also with the sqlite3 shell, and beside the log."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.support.commits import SETTINGS, numbered_commit

from queryveil.errors import BadFile, BadParameter
from queryveil.service.ports import Commit
from queryveil.service.stores._profile_blocks import NAMES
from queryveil.service.stores.profiles import SCHEMA, ProfileDatabase, compare_profiles, profiles_of_log
from queryveil.service.stores.sqlite import SqliteStore
from queryveil.testing import log_of
from queryveil.text.classifier import Classifier

COMMITTING = Path(__file__).with_name("committing.py")


def shell(path: Path, question: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


def drawn(n_rows: int, *, n_users: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    users = pl.Series([f"{user:08x}" for user in rng.integers(0, n_users, n_rows)])
    names = pl.Series(NAMES).gather(rng.integers(0, len(NAMES), n_rows))
    return pl.DataFrame({"user": users, "category": names}).group_by("user", "category").len(name="n")


def long_form(table: pl.DataFrame) -> pl.DataFrame:
    rows = table.drop("total").unpivot(index="user", variable_name="category", value_name="n").filter(pl.col("n") > 0)
    return rows.sort("user", "category")


@pytest.mark.slow
def test_profiles_are_complete_at_every_moment_on_their_way_into_the_blocks(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    store.open(settings=SETTINGS)
    added: list[pl.DataFrame] = []
    waited, moved = set(), set()
    for number in range(1, 21):
        added.append(drawn(30_000 if number == 1 else 2_500, n_users=40_000, seed=number))
        store.commit(Commit(number=number, position=None, pools=b"", profiles=added[-1]))
        if number % 7 == 0:
            store.close()
            store.open(settings=SETTINGS)
        waited.add(shell(path, "SELECT count(*) FROM profile_journal")[0][0])
        moved.add(shell(path, "SELECT last > 0 FROM profile_progress")[0][0])
        wanted = pl.concat(added).group_by("user", "category").agg(pl.col("n").sum().cast(pl.Int64))
        assert long_form(ProfileDatabase(path).table()).equals(wanted.sort("user", "category"))
    # The moments that matter have come: nothing in the journal, much in it, and a run that is half done.
    assert 0 in waited
    assert max(waited) >= 5
    assert moved == {0, 1}
    in_shell = shell(path, "SELECT user, category, n FROM profiles ORDER BY user, category")
    assert in_shell == wanted.sort("user", "category").rows()
    assert shell(path, "SELECT max(n_users) <= 4096, count(*) > 5 FROM profile_blocks") == [(1, 1)]
    store.close()


def test_the_golden_profile_of_the_paper_has_its_shares_in_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    counts = {"Arts": 20, "Health": 5, "Science": 5, "Computers": 10, "Business": 10}
    store = SqliteStore(path)
    store.open(settings=SETTINGS)
    for number, part in enumerate((counts, {"Sports": 1}), start=1):
        rows = pl.DataFrame({"user": "a" * 32, "category": list(part), "n": list(part.values())})
        store.commit(Commit(number=number, position=None, pools=b"", profiles=rows))
    shares = dict(shell(path, f"SELECT category, percent FROM profile_shares WHERE user = '{'a' * 32}'"))
    assert shares == pytest.approx(
        {"Arts": 39.2, "Health": 9.8, "Science": 9.8, "Computers": 19.6, "Sports": 1.96, "Business": 19.6}, abs=0.02
    )
    found = ProfileDatabase(path).of_user("a" * 32)
    assert found is not None
    assert found.counts == counts | {"Sports": 1}
    assert found.n_rows == 51
    assert ProfileDatabase(path).of_user("b" * 32) is None
    store.close()


@pytest.mark.slow
def test_profiles_are_read_while_another_process_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    process = subprocess.Popen([sys.executable, str(COMMITTING), str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    totals: list[int] = []
    while len(set(totals)) < 6:
        assert process.poll() is None
        totals.append(int(ProfileDatabase(path).table()["total"].sum()))
    process.kill()
    process.communicate()
    whole = {0}
    for number in range(1, 100_000):
        whole.add(numbered_commit_total(number, before=max(whole)))
        if max(whole) >= totals[-1]:
            break
    # Each reading is that of a whole commit, and time goes forward.
    assert totals == sorted(totals)
    assert set(totals) <= whole


def numbered_commit_total(number: int, *, before: int) -> int:
    profiles = numbered_commit(number).profiles
    return before + (0 if profiles is None else int(profiles["n"].sum()))


def test_what_holds_no_profiles_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"^nosuch\.db: there is no such store$"):
        ProfileDatabase(tmp_path / "nosuch.db").table()
    (tmp_path / "empty.db").touch()
    with pytest.raises(BadFile, match=r"^empty\.db: there is no store in this file$"):
        ProfileDatabase(tmp_path / "empty.db").table()
    with pytest.raises(BadParameter, match="store must be a file, sqlite:FILE or postgresql://"):
        ProfileDatabase("mysql://me:secret@host/db").table()
    assert "secret" not in repr(ProfileDatabase("postgresql://me:secret@host/db"))


def test_a_store_without_profiles_has_none(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    store.open(settings=SETTINGS)
    store.close()
    table = ProfileDatabase(f"sqlite:{tmp_path / 'state.db'}").table()
    assert (table.height, table.schema) == (0, SCHEMA)


def table_of(profiles: dict[str, dict[str, int]]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {"user": user, **dict.fromkeys(NAMES, 0), **counts} for user, counts in profiles.items()
    ]
    return pl.DataFrame([row | {"total": sum(row[name] for name in NAMES)} for row in rows], schema=SCHEMA)


def test_the_comparison_counts_what_moved_and_what_is_missing() -> None:
    before = table_of({"a": {"Arts": 4}, "b": {"Arts": 2, "News": 2}, "c": {"Home": 1}, "d": {"Home": 2}})
    after = table_of({"a": {"Arts": 4}, "b": {"Arts": 2}, "d": {"Home": 1, "News": 3}, "e": {"News": 1}})
    found = compare_profiles(before, after=after)
    assert (found.n_users_before, found.n_users_after, found.n_users_both) == (4, 4, 3)
    assert (found.n_rows_before, found.n_rows_after) == (11, 11)
    assert (found.n_equal, found.n_with_fewer_rows, found.n_with_more_rows) == (1, 1, 1)
    # a stays, half of b moves and three quarters of d.
    assert found.distance == pytest.approx((0 + 0.5 + 0.75) / 3)
    assert compare_profiles(before.clear(), after=after).distance is None


def test_the_profiles_of_a_log_are_those_of_its_queries_without_identifiers() -> None:
    log = log_of({"u1": ["champions league final", "219-09-9999", ""], "u2": ["1999"]})
    found = profiles_of_log(log, classifier=Classifier(), pseudonyms=lambda users: users + "!")
    assert found.select("user", "Sports", "Unclassified", "total").rows() == [("u1!", 1, 0, 1), ("u2!", 0, 1, 1)]
    dropped = profiles_of_log(log, classifier=Classifier(), pseudonyms=lambda users: users, unclassified="drop")
    assert dropped["user"].to_list() == ["u1"]
