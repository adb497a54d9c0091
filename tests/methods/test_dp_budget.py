"""The ledger: what is spent is on the disk, and no more than there is."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TextIO

import pytest
from tests.support.waiting import patience

from queryveil.errors import BadFile, BadParameter, OverBudget
from queryveil.guarantees import DifferentialPrivacy
from queryveil.methods.dp.budget import Ledger, Total, check_budget, read_ledger, spend

TOTAL = Total(total_epsilon=1.0, total_delta=1e-5)
TENTH = DifferentialPrivacy(epsilon=0.1, delta=1e-6)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "log.budget"
    spend(path, TENTH, release="spring", total=TOTAL)
    return path


def test_a_ledger_begins_with_its_totals_and_the_first_release(ledger: Path) -> None:
    first, second = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert first == {"total_epsilon": 1.0, "total_delta": 1e-5, "format_version": 1}
    assert {name: second[name] for name in second if name != "date"} == {
        "epsilon": 0.1,
        "delta": 1e-6,
        "release": "spring",
    }
    assert len(second["date"]) == len("2024-03-04")
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600


def test_it_holds_the_name_of_the_release_folder_and_not_where_it_is(tmp_path: Path) -> None:
    spend(tmp_path / "b", TENTH, release="/home/persona1/secret/spring", total=TOTAL)
    assert "persona1" not in (tmp_path / "b").read_text()
    assert read_ledger(tmp_path / "b").spent[0].release == "spring"


def test_ten_tenths_are_one_and_an_eleventh_is_refused(ledger: Path) -> None:
    for _ in range(9):
        spend(ledger, TENTH, release="spring")
    assert read_ledger(ledger).remaining_epsilon == read_ledger(ledger).remaining_delta == Decimal(0)
    before = ledger.read_bytes()
    with pytest.raises(OverBudget) as caught:
        spend(ledger, TENTH, release="summer")
    assert str(caught.value).removeprefix(f"{ledger}: ") == (
        "epsilon 0.1 was requested and 0 is left, 0.1 too little, and "
        "delta 1e-06 was requested and 0 is left, 1e-06 too little; nothing was spent"
    )
    assert ledger.read_bytes() == before


def test_either_of_epsilon_and_delta_may_be_what_is_lacking(ledger: Path) -> None:
    with pytest.raises(OverBudget, match=r"epsilon 1.5 was requested and 0.9 is left, 0.6 too little; nothing"):
        spend(ledger, DifferentialPrivacy(epsilon=1.5, delta=1e-6), release="summer")
    with pytest.raises(OverBudget, match=r"delta 2e-05 was requested and 9e-06 is left, 1.1e-05 too little; nothing"):
        spend(ledger, DifferentialPrivacy(epsilon=0.1, delta=2e-5), release="summer")
    assert len(read_ledger(ledger).spent) == 1


def test_a_hair_too_much_is_too_much(ledger: Path) -> None:
    with pytest.raises(OverBudget):
        spend(ledger, DifferentialPrivacy(epsilon=0.9000000000000001, delta=1e-6), release="summer")
    left = spend(ledger, DifferentialPrivacy(epsilon=0.9, delta=1e-6), release="summer")
    assert (left.remaining_epsilon, left.remaining_delta) == (Decimal(0), Decimal("0.000008"))


def test_looking_whether_it_would_do_writes_nothing(tmp_path: Path, ledger: Path) -> None:
    before = ledger.read_bytes()
    check_budget(ledger, TENTH)
    check_budget(tmp_path / "new", TENTH, total=TOTAL)
    with pytest.raises(OverBudget):
        check_budget(tmp_path / "new", DifferentialPrivacy(epsilon=2.0, delta=1e-6), total=TOTAL)
    assert ledger.read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_what_is_refused_begins_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "new"
    with pytest.raises(BadFile, match="no such ledger; begin one with --total-epsilon and --total-delta"):
        spend(path, TENTH, release="spring")
    with pytest.raises(OverBudget):
        spend(path, DifferentialPrivacy(epsilon=2.0, delta=1e-6), release="spring", total=TOTAL)
    with pytest.raises(BadFile, match="no such folder"):
        spend(tmp_path / "nowhere" / "new", TENTH, release="spring", total=TOTAL)
    with pytest.raises(BadFile, match="cannot be opened: No such file"):
        read_ledger(path)
    assert list(tmp_path.iterdir()) == []


def test_totals_may_be_said_again_but_not_changed(ledger: Path) -> None:
    spend(ledger, TENTH, release="summer", total=TOTAL)
    with pytest.raises(BadFile, match="begun with other totals, 1 and 1e-05"):
        spend(ledger, TENTH, release="autumn", total=Total(total_epsilon=9.0, total_delta=1e-5))
    assert len(read_ledger(ledger).spent) == 2


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0.0, 1e-5, "total_epsilon must be above 0 and finite, got 0.0"),
        (-1.0, 1e-5, "total_epsilon must be above 0"),
        (float("nan"), 1e-5, "total_epsilon must be above 0 and finite, got nan"),
        (float("inf"), 1e-5, "total_epsilon must be above 0 and finite, got inf"),
        (1.0, 0.0, "total_delta must be above 0 and below 1"),
        (1.0, 1.0, "total_delta must be above 0 and below 1, got 1.0"),
    ],
)
def test_totals_are_numbers_that_can_be_spent(epsilon: float, delta: float, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Total(total_epsilon=epsilon, total_delta=delta)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"persona1\tred kettle\n", 1),
        (b"{}\n", 1),
        (b"\xff\n", 1),
        (b'{"total_epsilon":1,"total_delta":2}\n', 1),
        (b'{"total_epsilon":1,"total_delta":1e-5,"format_version":2}\n', 1),
        (b'{"total_epsilon":1,"total_delta":1e-5}\n{"epsilon":-1,"delta":1e-6,"date":"2024-03-04","release":"a"}\n', 2),
        (b'{"total_epsilon":1,"total_delta":1e-5}\n\n', 2),
        (b'{"total_epsilon":1,"total_delta":1e-5}\n{"total_epsilon":9,"total_delta":1e-5}\n', 2),
        (b"[" * 100_000 + b"\n", 1),
    ],
)
def test_what_is_no_ledger_is_left_alone_and_not_quoted(tmp_path: Path, line: bytes, number: int) -> None:
    path = tmp_path / "log.tsv"
    path.write_bytes(line)
    for total in (None, TOTAL):
        with pytest.raises(BadFile, match=f"line {number} is not one of a ledger") as caught:
            spend(path, TENTH, release="spring", total=total)
        assert "kettle" not in str(caught.value)
    assert path.read_bytes() == line


def test_a_key_that_stands_twice_is_refused(ledger: Path) -> None:
    before = ledger.read_text()
    twice = before.replace('{"epsilon":0.1,', '{"epsilon":0.9,"epsilon":0.1,')
    assert twice != before
    ledger.write_text(twice)
    with pytest.raises(BadFile, match="line 2 of the ledger has a key twice; fix it by hand"):
        spend(ledger, TENTH, release="summer")


def test_the_name_of_a_release_is_text(ledger: Path) -> None:
    before = ledger.read_bytes()
    with pytest.raises(BadParameter, match=r"release must be a folder whose name is UTF-8, got 'caf\\udce9'"):
        spend(ledger, TENTH, release=os.fsdecode(b"/tmp/caf\xe9"))
    assert ledger.read_bytes() == before


def test_a_line_that_was_cut_off_is_never_overlooked(ledger: Path) -> None:
    ledger.write_bytes(ledger.read_bytes()[:-5])
    with pytest.raises(BadFile, match="last line of the ledger is cut off"):
        spend(ledger, TENTH, release="summer")


def test_an_empty_file_can_become_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "new"
    path.touch()
    with pytest.raises(BadFile, match="is empty"):
        read_ledger(path)
    with pytest.raises(BadFile, match="begin one with"):
        spend(path, TENTH, release="spring")
    assert len(spend(path, TENTH, release="spring", total=TOTAL).spent) == 1


def test_a_folder_or_a_pipe_is_no_ledger(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(BadFile, match="ledger"):
            spend(path, TENTH, release="spring", total=TOTAL)


SPENDER = """
import resource, signal, sys
from queryveil.methods.dp.budget import Total, spend
from queryveil.errors import BadFile, OverBudget
from queryveil.guarantees import DifferentialPrivacy

path, most_bytes = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
if most_bytes:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
try:
    for _ in range(8):
        total = Total(total_epsilon=1.0, total_delta=1e-5)
        spend(path, DifferentialPrivacy(epsilon=0.1, delta=1e-6), release="race", total=total)
except OverBudget:
    sys.exit(0)
except BadFile as error:
    print(error)
    sys.exit(3)
"""


def spend_apart(path: Path, *, n_processes: int, most_bytes: int = 0) -> list[tuple[int, str]]:
    command = [sys.executable, "-c", SPENDER, str(path), str(most_bytes)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n_processes)]
    outputs = [each.communicate(timeout=patience())[0] for each in running]
    return [(each.returncode, output) for each, output in zip(running, outputs, strict=True)]


@pytest.mark.slow
def test_processes_that_spend_at_once_never_spend_more_than_there_is(ledger: Path) -> None:
    assert spend_apart(ledger, n_processes=3) == [(0, "ready\n")] * 3
    there = read_ledger(ledger)
    assert len(there.spent) == 10
    assert there.remaining_epsilon == 0


@pytest.mark.slow
def test_whoever_comes_second_waits_and_sees_what_the_first_has_spent(ledger: Path) -> None:
    with ledger.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        command = [sys.executable, "-c", SPENDER, str(ledger), "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "ready\n"
            # Time for it to go wrong; however long it takes, what is right stays right.
            time.sleep(0.3)
            file.write('{"epsilon":0.9,"delta":1e-6,"date":"2024-03-04","release":"first"}\n')
            file.flush()
            fcntl.flock(file, fcntl.LOCK_UN)
    assert second.returncode == 0
    assert [each.release for each in read_ledger(ledger).spent] == ["spring", "first"]


@contextmanager
def looked_at(ledger: Path) -> Iterator[TextIO]:
    """Have another process come as far as where it waits to write, having seen that enough is left."""
    with ledger.open("a") as file:
        # Others may look, and wait before they write.
        fcntl.flock(file, fcntl.LOCK_SH)
        command = [sys.executable, "-c", SPENDER, str(ledger), "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "ready\n"
            # Time for it to go wrong; however long it takes, what is right stays right.
            time.sleep(0.5)
            yield file
            fcntl.flock(file, fcntl.LOCK_UN)
    assert second.returncode == 0


FIRST = '{"epsilon":0.9,"delta":1e-6,"date":"2024-03-04","release":"first"}\n'


@pytest.mark.slow
def test_what_was_spent_after_a_look_and_before_the_own_turn_counts(ledger: Path) -> None:
    with looked_at(ledger) as file:
        file.write(FIRST)
        file.flush()
    assert [each.release for each in read_ledger(ledger).spent] == ["spring", "first"]


@pytest.mark.slow
def test_whoever_waited_for_a_ledger_that_was_replaced_spends_from_the_new_one(ledger: Path) -> None:
    with looked_at(ledger):
        new = ledger.with_name("new")
        new.write_text(ledger.read_text() + FIRST)
        new.replace(ledger)
    assert [each.release for each in read_ledger(ledger).spent] == ["spring", "first"]


@pytest.mark.slow
def test_a_full_disk_spends_nothing_and_leaves_the_ledger_whole(ledger: Path) -> None:
    before = ledger.read_bytes()
    ((code, message),) = spend_apart(ledger, n_processes=1, most_bytes=len(before) + 20)
    assert code == 3
    assert "could not be written: file too large; nothing was released; free space or choose another folder" in message
    assert ledger.read_bytes() == before


@pytest.mark.slow
def test_a_ledger_that_cannot_be_begun_leaves_no_empty_file(tmp_path: Path) -> None:
    ((code, message),) = spend_apart(tmp_path / "new", n_processes=1, most_bytes=20)
    assert code == 3
    assert f"{tmp_path / 'new'}: could not be written: file too large; nothing was released" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_empty_file_that_was_there_before_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    ((code, _),) = spend_apart(tmp_path / "mine", n_processes=1, most_bytes=20)
    assert code == 3
    assert (tmp_path / "mine").read_bytes() == b""


@pytest.mark.slow
def test_whoever_waited_for_a_ledger_that_was_removed_begins_another(ledger: Path) -> None:
    with ledger.open("a") as file:
        # Others may look, and wait before they write.
        fcntl.flock(file, fcntl.LOCK_SH)
        command = [sys.executable, "-c", SPENDER, str(ledger), "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "ready\n"
            time.sleep(0.5)
            ledger.unlink()
            fcntl.flock(file, fcntl.LOCK_UN)
    assert second.returncode == 0
    assert [each.release for each in read_ledger(ledger).spent] == ["race"] * 8


def test_a_ledger_tells_what_is_left() -> None:
    fresh = Ledger(total=TOTAL)
    assert (fresh.remaining_epsilon, fresh.remaining_delta) == (Decimal(1), Decimal("0.00001"))
