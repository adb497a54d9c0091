"""`queryveil anonymize km`."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import polars as pl
import pytest

from queryveil.cli.options import meant
from queryveil.guarantees import KmAnonymity
from queryveil.methods.settings import KmSettings
from queryveil.release import read_release
from queryveil.settings import settings_of

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def test_a_release_is_made_and_summed_up(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run("anonymize", "km", log_file, "-o", tmp_path / "out", "--k", 3, "--m", 2)
    assert done.returncode == 0
    assert "finds at least 3 people" in done.stdout
    assert "36 of 48 kept (75 %)" in done.stdout
    assert "12 of 12 kept (100 %)" in done.stdout
    lines = {line.partition("  ")[0]: line.partition("  ")[2].strip() for line in done.stdout.splitlines()}
    assert lines["texts that one person alone asked"] == "0 of 3"
    assert lines["texts with an identifier"] == "0 of 3"
    assert "columns dropped" in done.stdout
    assert "queryveil verify" in done.stderr
    assert "queryveil verify" not in done.stdout
    assert read_release(tmp_path / "out").data.n_rows == 36
    assert not any(text in done.stdout + done.stderr for text in ("kestrel", "rarity", "persona"))


def test_a_release_without_a_row_is_told(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run("anonymize", "km", log_file, "-o", tmp_path / "out", "--k", 13)
    assert done.returncode == 0
    told = "nothing was released: 0 of 48 rows and 0 of 16 words as typed; with --k 6 it would be 36 rows and 4 words"
    assert f"warning: {told}, for less protection" in done.stderr.splitlines()


def test_a_release_of_hardly_anything_says_what_would_keep_more(run: Run, tmp_path: Path) -> None:
    rows = [f"{user},tea" for user in "abc"] + [f"{user},rarity{user}{i}" for user in "abc" for i in range(4)]
    rows += [f"{user},kestrel nest" for user in "ab"]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["user,query", *rows]) + "\n", encoding="utf-8")
    done = run("anonymize", "km", path, "-o", tmp_path / "out", "--k", 3, "--m", 2)
    told = "little was released: 3 of 17 rows and 1 of 15 words as typed; with --k 2 it would be 5 rows and 3 words"
    assert f"warning: {told}, for less protection" in done.stderr.splitlines()
    assert f"{told}, for less protection" in read_release(tmp_path / "out").manifest.warnings


def test_users_are_counted_where_each_is_a_transaction(run: Run, tmp_path: Path) -> None:
    rows = [f"{user},red wine {user}" for user in "aabbcc" for _ in range(3)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["user,query", *rows]) + "\n", encoding="utf-8")
    done = run("anonymize", "clump", path, "-o", tmp_path / "out", "--k", 3)
    assert done.returncode == 0
    assert "3, from 18 rows of 3 users" in done.stdout
    assert "little was released" not in done.stderr


def test_json_is_the_manifest_and_holds_no_text(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run("anonymize", "km", log_file, "-o", tmp_path / "out", "--k", 3, "--m", 2, "--json")
    manifest = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert manifest["promise"] == {"model": "km", "k": 3, "m": 2, "window": None, "items": False, "time_unit": None}
    assert manifest["removed"]["terms"] == 12
    assert not any(text in done.stdout for text in ("kestrel", "rarity", "persona"))


def test_the_log_may_come_from_stdin(run_apart: Run, log_file: Path, tmp_path: Path) -> None:
    done = run_apart("anonymize", "km", "-", "-o", tmp_path / "out", "--k", 3, "--m", 2, stdin=log_file.read_bytes())
    assert (done.returncode, read_release(tmp_path / "out").data.n_rows) == (0, 36)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "1"], "k must be 2 or more, got 1"),
        (["--k", "-3"], "k must be 2 or more, got -3"),
        (["--k", "x"], "Invalid value for '--k'"),
        (["--k", "9" * 20], "k must be 2147483647 or less"),
        (["--m", "0"], "m must be 1 or more, or none for whole histories, got 0"),
        (["--m", "x"], "m must be 1 or more, or none for whole histories, got x"),
        (["--m=--5"], "m must be 1 or more"),
        (["--m", "²"], "m must be 1 or more"),
        (["--m", "9" * 30], "m must be 1 or more"),
        (["--target", "fame"], "target must be one of log_size, users, bid"),
        (["--target", "bid"], "values must be a table with the columns term, bid"),
        (["--target", "bid", "--values", "nowhere.csv"], "nowhere.csv: the table of term values cannot be read"),
        (["--ids", "keyed"], "key must be a file of at least 16 secret bytes"),
        (["--ids", "same"], "ids must be one of fresh, keyed, keep"),
        (["--ids", "keyed", "--key", "nowhere"], "nowhere: the key cannot be read"),
        (["--keep", "nosuch"], "keep must be columns of the log, such as rank, url, got nosuch"),
        (["--keep", "time", "--time", "drop"], "ids and time say what becomes of these, got time"),
        (["--window", "3x"], "window must be a number and a unit"),
        (["--window", "9" * 20 + "d"], "window must be a number and a unit"),
        (["--window", "1d", "--ids", "keep"], "ids must be fresh or keyed with a window"),
        (["--time", "week"], "time must be one of day, hour, keep, drop, shared, got week"),
        (["--bots", "-1"], "must be 1 or more"),
        (["--seed", "-1"], "seed must be 0 or more"),
        (["--format", "docx"], "format must be one of aol, excite"),
        (["--columns", "user"], "columns must be pairs such as user=uid"),
        (["--bad-rows", "eat"], "bad_rows must be one of fail, skip"),
        (["--nosuch"], "No such option: --nosuch"),
    ],
)
def test_a_bad_option_is_one_line_and_nothing_is_written(
    refused: Refused, log_file: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    assert message in refused("anonymize", "km", log_file, "-o", tmp_path / "out", *options)
    assert [path.name for path in tmp_path.iterdir()] == ["log.tsv"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            b"term,clicks\nkestrel,1\n",
            "has no column bid, which the target bid needs; its first line must name its columns",
        ),
        (b"", "not a CSV or Parquet table"),
        (b"term,bid\nkestrel,1\nlantern,2,3,4\n", "not a CSV or Parquet table"),
        (b"term,bid\nkestrel,\xff\n", "not a CSV or Parquet table"),
        (b"term,bid\nkestrel,-1\n", "negative or not numbers"),
        (b"term,bid\nkestrel,much\n", "negative or not numbers"),
        (b"term,bid\nkestrel,1\nKestrel,1\n", "more than once"),
    ],
)
def test_a_bad_table_of_values_is_one_line(
    refused: Refused, log_file: Path, tmp_path: Path, table: bytes, message: str
) -> None:
    values = tmp_path / "values.csv"
    values.write_bytes(table)
    line = refused("anonymize", "km", log_file, "-o", tmp_path / "out", "--target", "bid", "--values", values)
    assert message in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_values_decides_what_stays(run: Run, tmp_path: Path, ending: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text("user,query\n" + "".join(f"u{i},brass kettle\n" for i in range(2)) + "u3,brass\nu4,kettle\n")
    values, table = tmp_path / f"values.{ending}", pl.DataFrame({"term": ["brass", "kettle"], "bid": [0.1, 9.0]})
    table.write_csv(values) if ending == "csv" else table.write_parquet(values)
    done = run(
        "anonymize", "km", log, "-o", tmp_path / "out", "--k", 3, "--m", 2, "--target", "bid", "--values", values
    )
    assert done.returncode == 0
    assert "kettle" in set(read_release(tmp_path / "out").data.frame["query"])


def test_a_short_key_is_refused_and_not_shown(refused: Refused, log_file: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"opensesame")
    line = refused("anonymize", "km", log_file, "-o", tmp_path / "out", "--ids", "keyed", "--key", key)
    assert line == "key must be at least 16 secret bytes, got 10 bytes"


def test_keyed_ids_are_made_with_the_bytes_of_the_key_file(run: Run, log_file: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"open sesame, open sesame")
    options = ["--k", 3, "--m", 2, "--ids", "keyed", "--key", key]
    assert run("anonymize", "km", log_file, "-o", tmp_path / "out", *options).returncode == 0
    expected = {hmac.digest(key.read_bytes(), f"persona{i:02}".encode(), hashlib.sha256).hex()[:32] for i in range(12)}
    assert set(read_release(tmp_path / "out").data.frame["user"]) == expected


def test_what_leaves_unprotected_is_warned_of_on_stderr(run: Run, log_file: Path, tmp_path: Path) -> None:
    options = ["--k", 3, "--m", 2, "--ids", "keep", "--time", "keep", "--keep", "url", "--seed", 1]
    done = run("anonymize", "km", log_file, "-o", tmp_path / "out", *options)
    assert done.stderr.count("warning: ") == 5
    said = "times are not covered by the promise; users with a set of them that nobody else has: "
    assert f"warning: {said}" in done.stderr
    assert "warning" not in done.stdout


def test_a_window_needs_times(refused: Refused, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("user,query\nu1,brass\n")
    assert "left out for a log without times" in refused("anonymize", "km", log, "-o", tmp_path / "o", "--window", "1d")


def test_an_output_that_is_there_is_refused_before_the_log_is_read(refused: Refused, release: Path) -> None:
    assert "is already there" in refused("anonymize", "km", "nowhere.tsv", "-o", release)


def test_force_replaces_a_release_but_nothing_else(
    run: Run, refused: Refused, log_file: Path, release: Path, tmp_path: Path
) -> None:
    command = ["anonymize", "km", log_file, "--k", 4, "--m", 1, "--force", "-o"]
    assert run(*command, release).returncode == 0
    assert read_release(release).promise == KmAnonymity(k=4, m=1)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_bytes(b"x")
    assert "a release folder or an empty one" in refused(*command, tmp_path / "photos")
    assert (tmp_path / "photos" / "one.jpg").read_bytes() == b"x"


def test_places_that_cannot_be_written_to_are_one_line(refused: Refused, log_file: Path, tmp_path: Path) -> None:
    command = ["anonymize", "km", log_file, "--k", 3, "-o"]
    assert "in one that is there" in refused(*command, tmp_path / "nowhere" / "out")
    assert "file name too long" in refused(*command, tmp_path / ("a" * 300)).lower()
    assert "file name too long" in refused(*command, tmp_path / ("a" * 300) / "out").lower()


def test_bad_rows_fail_with_file_and_line_or_are_skipped_and_counted(run: Run, log_file: Path, tmp_path: Path) -> None:
    with log_file.open("a") as file:
        file.write("only two\tcolumns of mulberry\n")
    failed = run("anonymize", "km", log_file, "-o", tmp_path / "out", "--k", 3)
    assert failed.returncode == 2
    assert "log.tsv, line 50:" in failed.stderr
    assert "mulberry" not in failed.stderr
    assert not (tmp_path / "out").exists()
    done = run("anonymize", "km", log_file, "-o", tmp_path / "out", "--k", 3, "--bad-rows", "skip", "--json")
    assert json.loads(done.stdout)["removed"]["bad_rows_skipped"] == 1


def test_missing_arguments_are_named(refused: Refused, log_file: Path) -> None:
    assert refused("anonymize", "km", log_file) == "Missing option '-o' / '--output'."
    assert refused("anonymize", "km", "-o", "out") == "Missing argument 'LOG...'."
    assert refused("anonymize", "magic") == "No such command 'magic'."


@pytest.mark.parametrize(("text", "expected"), [("1", 1), ("12", 12), ("none", None), ("NONE", None), ("-4", -4)])
def test_m_is_a_number_or_none(text: str, expected: int | None) -> None:
    assert meant(settings_of(KmSettings)["m"], text) == expected


def test_whole_histories_are_asked_for_with_none(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run("anonymize", "km", log_file, "-o", tmp_path / "out", "--k", 3, "--m", "none")
    assert done.returncode == 0
    assert "exactly the same set of search terms as at least 2 others" in done.stdout
