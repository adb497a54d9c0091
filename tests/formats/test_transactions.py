"""Transactions as files: plain ones as others write them, and our own forms, there and back."""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import TRANSACTIONS_SCHEMA, QueryLog, Transactions
from queryveil.errors import BadFile, BadInput, BadParameter, BadRows
from queryveil.formats import (
    Format,
    Layout,
    extension,
    read_log,
    read_transactions,
    transactions_layout,
    write_log,
    write_transactions,
)

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
PLAIN = b"3 Milk 7\n\nmilk\t3  3\r\n   \nlast"
RELEASED = [Format.CSV, Format.TSV, Format.JSONL, Format.PARQUET]


def put(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def rows(transactions: Transactions) -> list[tuple[str, list[str]]]:
    return transactions.frame.rows()


def test_a_plain_file_is_a_transaction_a_line_and_blank_lines_are_none(tmp_path: Path) -> None:
    transactions = read_transactions(put(tmp_path, "baskets.dat", PLAIN))
    assert rows(transactions) == [("1", ["3", "Milk", "7"]), ("3", ["milk", "3", "3"]), ("5", ["last"])]
    assert transactions.layout.format is Format.TRANSACTIONS


@pytest.mark.parametrize("name", ["baskets.txt.gz", "baskets.gz"])
def test_a_plain_file_may_be_compressed(tmp_path: Path, name: str) -> None:
    transactions = read_transactions(put(tmp_path, name, gzip.compress(PLAIN)))
    assert transactions.n_items == 7
    assert transactions.layout.compression == "gz"


def test_lines_of_several_files_are_counted_on(tmp_path: Path) -> None:
    put(tmp_path, "1.txt", b"a\nb\n")
    put(tmp_path, "2.txt", b"\nc\n")
    assert rows(read_transactions(str(tmp_path / "*.txt"))) == [("1", ["a"]), ("2", ["b"]), ("4", ["c"])]


def test_a_log_of_a_plain_file_has_one_user_per_line(tmp_path: Path) -> None:
    path = put(tmp_path, "baskets.txt", PLAIN)
    log = read_log(path, format="transactions")
    assert log.frame.rows() == [("1", "3 Milk 7"), ("3", "milk\t3  3"), ("5", "last")]
    assert log.layout.format is Format.TRANSACTIONS


def test_a_plain_file_is_never_taken_for_a_log_by_itself(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"give --format: .*transactions"):
        read_log(put(tmp_path, "baskets.txt", PLAIN))
    with pytest.raises(BadParameter, match="whose columns are fixed"):
        read_log(tmp_path / "baskets.txt", format="transactions", columns={"user": "a"})


def test_a_log_is_written_plain_with_one_line_per_user(tmp_path: Path) -> None:
    log = QueryLog.from_frame(
        {"user": ["v", "u", "v", "w"], "query": ["b <body_of_water>", "x", "A\ta\n\0z", " "], "url": ["u"] * 4}
    )
    write_log(log, tmp_path / "log.txt", layout=Layout(format=Format.TRANSACTIONS))
    assert (tmp_path / "log.txt").read_bytes() == b"b <body_of_water> A a z\nx\n"


@pytest.mark.parametrize("compression", ["", "gz", "zst"])
def test_a_log_without_rows_is_written_and_read(tmp_path: Path, compression: str) -> None:
    layout = Layout(format=Format.TRANSACTIONS, compression=compression)
    path = tmp_path / f"log.{extension(layout)}"
    log = QueryLog.from_frame({"user": ["1"], "query": ["a"]})
    write_log(log.with_frame(log.frame.clear()), path, layout=layout)
    assert read_log(path, format="transactions").n_rows == 0


def test_bad_lines_are_named_or_skipped(tmp_path: Path) -> None:
    path = put(tmp_path, "baskets.txt", b"a b\nc\0d\n" + b"e" * (1 << 21) + b"\nf\xe9\n")
    with pytest.raises(BadRows, match=r"line 2: the line has a NUL byte\n.*line 3: the line is longer"):
        read_transactions(path)
    transactions = read_transactions(path, bad_rows="skip")
    assert rows(transactions) == [("1", ["a", "b"]), ("4", ["fé"])]
    assert (transactions.reading.n_bad_rows_skipped, transactions.reading.n_latin1_rows) == (2, 1)


items = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5) | st.sampled_from(
    ["|", "%", "%7C", "%257C", "%%", "a|b", "\t", "\n", "\r\n", "\0", '"', "50%", "%2", " ", ",", "\ufeff", "id"]
)
ids = items
frames = st.lists(st.tuples(ids, st.lists(items, max_size=4)), max_size=6).map(
    lambda drawn: pl.DataFrame(drawn, schema=TRANSACTIONS_SCHEMA, orient="row")
)


@pytest.mark.parametrize("compression", ["", "gz"])
@pytest.mark.parametrize("file_format", RELEASED)
@examples(30)
@given(frame=frames)
def test_what_is_written_is_read_back_the_same(frame: pl.DataFrame, file_format: Format, compression: str) -> None:
    layout = Layout(format=file_format, compression=compression)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"transactions.{extension(layout)}"
        write_transactions(Transactions(frame=frame), path, layout=layout)
        back = read_transactions(path)
    assert back.frame.equals(frame)
    assert back.layout.format is file_format


@examples(40)
@given(st.lists(st.lists(st.text("ab|%é<>_", min_size=1, max_size=3), min_size=1, max_size=4), max_size=5))
def test_plain_files_come_back_with_the_numbers_of_their_lines(baskets: list[list[str]]) -> None:
    frame = pl.DataFrame({"id": ["x"] * len(baskets), "items": baskets}, schema=TRANSACTIONS_SCHEMA)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "baskets.txt"
        write_transactions(Transactions(frame=frame), path, layout=Layout(format=Format.TRANSACTIONS))
        back = read_transactions(path, format="transactions")
    assert rows(back) == [(str(i), basket) for i, basket in enumerate(baskets, start=1)]


def test_splitting_at_the_bar_gives_the_items_even_if_one_has_a_bar_in_it(tmp_path: Path) -> None:
    transactions = Transactions.from_frame({"items": [["a|b", "ice cream", "50%"], []]})
    for layout, separator in ((Layout(format=Format.CSV), ","), (Layout(format=Format.TSV), "\t")):
        path = tmp_path / f"t.{extension(layout)}"
        write_transactions(transactions, path, layout=layout)
        assert path.read_text() == f"id{separator}items\n1{separator}a%7Cb|ice cream|50%25\n2{separator}" + (
            '""\n' if separator == "," else "\n"
        )


def test_lists_are_lists_in_json_and_parquet(tmp_path: Path) -> None:
    transactions = Transactions.from_frame({"items": [["a|b", "c"], []]})
    write_transactions(transactions, tmp_path / "t.jsonl", layout=Layout(format=Format.JSONL))
    assert (tmp_path / "t.jsonl").read_text() == '{"id":"1","items":["a|b","c"]}\n{"id":"2","items":[]}\n'
    write_transactions(transactions, tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").equals(transactions.frame)


@pytest.mark.parametrize("basket", [[], ["ice cream"], ["a\tb"], ["a\0b"]])
def test_what_a_plain_file_cannot_hold_is_refused(tmp_path: Path, basket: list[str]) -> None:
    transactions = Transactions(frame=pl.DataFrame({"id": ["1"], "items": [basket]}, schema=TRANSACTIONS_SCHEMA))
    with pytest.raises(BadInput, match="a plain file cannot hold") as caught:
        write_transactions(transactions, tmp_path / "t.txt", layout=Layout(format=Format.TRANSACTIONS))
    assert "cream" not in str(caught.value)
    assert not (tmp_path / "t.txt").exists()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.tsv", b"id\titems\n1\ta\n\tb\n", "line 3: the id is missing"),
        ("t.tsv", b"id\titems\n1\ta||b\n", "line 2: an item is missing or empty"),
        ("t.tsv", b"id\titems\n1\ta\tb\n", "line 2: expected 2 tab-separated columns, found 3"),
        ("t.csv", b'items,id\n"a|b,2\n', "line 2: a quote is opened and never closed"),
        ("t.jsonl", b'{"id": "1"}\n', "line 1: the items are missing"),
        ("t.jsonl", b'{"id": "1", "items": "a b"}\n', "line 1: the items are missing, or not a list"),
        ("t.jsonl", b'{"id": "1", "items": [["a"]]}\n', "line 1: the items are missing, or not a list"),
        ("t.jsonl", b'{"id": "1", "items": ["a", null]}\n', "line 1: an item is missing or empty"),
        ("t.jsonl", b'{"id": true, "items": []}\n', "line 1: the id is missing"),
        ("t.jsonl", b"[1]\n", "line 1: this is JSON but not an object"),
    ],
)
def test_bad_rows_say_what_is_wrong(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(BadRows, match=message):
        read_transactions(put(tmp_path, name, data))


def test_bad_rows_of_parquet_are_named_by_their_number_and_skipped(tmp_path: Path) -> None:
    frame = pl.DataFrame({"items": [[1, 2], None, [3, None], []], "id": [1, 2, 3, 4]})
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(BadRows, match=r"line 2: the items are missing.*\n.*line 3: an item is missing"):
        read_transactions(tmp_path / "t.parquet")
    assert rows(read_transactions(tmp_path / "t.parquet", bad_rows="skip")) == [("1", ["1", "2"]), ("4", [])]


def test_numbers_in_json_are_read_as_their_text_and_other_keys_are_left_out(tmp_path: Path) -> None:
    path = put(tmp_path, "t.json", b'{"items": [7, "x"], "id": 12, "shop": {}}\n')
    assert rows(read_transactions(path)) == [("12", ["7", "x"])]


@pytest.mark.parametrize(
    ("name", "data"),
    [("t.csv", b"a,b\n1,2\n"), ("t.tsv", b"3 7 9\n"), ("t.tsv", b"id\titems\titems\n1\ta\tb\n")],
)
def test_a_table_without_the_two_columns_is_a_clear_error(tmp_path: Path, name: str, data: bytes) -> None:
    with pytest.raises(BadFile, match="no columns id and items"):
        read_transactions(put(tmp_path, name, data))


def test_damaged_or_other_parquet_is_a_clear_error(tmp_path: Path) -> None:
    pl.DataFrame({"id": [1], "items": ["a"]}).write_parquet(tmp_path / "flat.parquet")
    pl.DataFrame({"id": [1]}).write_parquet(tmp_path / "less.parquet")
    put(tmp_path, "cut.parquet", b"PAR1 and then nothing")
    for name in ("flat", "cut"):
        with pytest.raises(BadFile, match="not a whole Parquet file of ids and lists"):
            read_transactions(tmp_path / f"{name}.parquet")
    with pytest.raises(BadFile, match="no columns id and items"):
        read_transactions(tmp_path / "less.parquet")


def test_files_of_two_formats_are_not_mixed_and_formats_of_logs_are_refused(tmp_path: Path) -> None:
    one, two = put(tmp_path, "a.txt", b"a\n"), put(tmp_path, "b.jsonl", b'{"id": 1, "items": []}\n')
    with pytest.raises(BadFile, match="this file is jsonl, the first was transactions"):
        read_transactions([one, two])
    with pytest.raises(BadParameter, match="format must be one of transactions, csv, tsv, jsonl, parquet"):
        read_transactions(one, format="aol")


@pytest.mark.parametrize("log_format", list(Format))
def test_every_log_has_a_layout_for_its_transactions(tmp_path: Path, log_format: Format) -> None:
    layout = transactions_layout(Layout(format=log_format, names={"user": "who"}, has_header=False))
    assert layout.format in RELEASED
    transactions = replace(Transactions.from_frame({"items": [["ice cream", "a|b"], []]}), layout=layout)
    path = tmp_path / f"transactions.{extension(layout)}"
    write_transactions(transactions, path)
    assert read_transactions(path).frame.equals(transactions.frame)


def test_a_sniffed_table_needs_no_ending(tmp_path: Path) -> None:
    for data in (b"id,items\n1,a|b\n", b"id\titems\n1\ta|b\n", b'{"id": "1", "items": ["a", "b"]}\n'):
        assert rows(read_transactions(put(tmp_path, "t", data))) == [("1", ["a", "b"])]


def test_lines_that_end_in_a_return_alone_are_not_one_transaction(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_bytes(b"milk tea\rtea rye\r")
    for read in (lambda path: read_log(path, format="transactions"), read_transactions):
        with pytest.raises(BadFile, match="its lines end in CR alone; convert them to LF"):
            read(tmp_path / "items.txt")
    (tmp_path / "one.txt").write_bytes(b"milk tea\r")
    assert read_transactions(tmp_path / "one.txt").n_transactions == 1


@pytest.mark.slow
@pytest.mark.real_data
def test_the_click_streams_of_a_shop_are_read_whole(tmp_path: Path) -> None:
    path = DATA / "bms-webview-1.txt"
    if not path.exists():
        pytest.skip("bms-webview-1.txt is not beside the checkout")
    transactions = read_transactions(path)
    assert (transactions.n_transactions, transactions.n_items) == (59_602, 149_639)
    assert transactions.frame["items"].explode().n_unique() == 497
    log = read_log(path, format=Format.TRANSACTIONS)
    assert (log.n_rows, log.n_users) == (59_602, 59_602)
    write_log(log, tmp_path / "log.txt")
    write_transactions(transactions, tmp_path / "transactions.txt")
    for name in ("log.txt", "transactions.txt"):
        assert read_transactions(tmp_path / name).frame["items"].equals(transactions.frame["items"])
