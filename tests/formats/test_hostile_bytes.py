"""Whatever the bytes: a log or a clear error, and no message that quotes a row."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import QueryLog
from queryveil.errors import QueryveilError
from queryveil.formats import Format, read_log

TEXT_FORMATS = [one for one in Format if one is not Format.PARQUET]
PIECES = [
    *(
        b"user",
        b"query",
        b"time",
        b"rank",
        b"url",
        b"7",
        b"kettle",
        b'"',
        b'""',
        b",",
        b"\t",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
    ),
    *(
        b"2006-03-01 07:17:12",
        b"970916105432",
        b"\xff",
        b"\xc3\xa9",
        b"\xef\xbb\xbf",
        b"{",
        b"}",
        b'{"user":"7","query":"a"}',
    ),
    *(
        b'{"query_id":"1","client_id":"7","user_query":"a"}',
        b'{"index":{"_index":"ubi_events"}}',
        b'{"action_name":"click"}',
    ),
    *(
        b'{"user":7,"query":',
        b'{"user":"7","query":"a","time":',
        b"1e999}",
        b"-1}",
        b"[[]]}",
        b'"\\ud800"}',
        b"user,query\n",
    ),
    *(
        b"user\tquery\ttime\trank\turl\n",
        b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n",
        b"\x1f\x8b",
        b"BZh9",
        b"PAR1",
    ),
]
noise = st.binary(max_size=60) | st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=30).map(b"".join)


def _try(data: bytes, *, name: str, log_format: Format | None, bad_rows: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            log = read_log(path, format=log_format, bad_rows=bad_rows)
        except QueryveilError:
            return
        assert isinstance(log, QueryLog)


@pytest.mark.parametrize("log_format", TEXT_FORMATS)
@examples(60)
@given(data=noise, bad_rows=st.sampled_from(["fail", "skip"]))
def test_any_bytes_are_a_log_or_a_clear_error_in_every_text_format(
    log_format: Format, data: bytes, bad_rows: str
) -> None:
    _try(data, name="log", log_format=log_format, bad_rows=bad_rows)


@examples(60)
@given(data=noise, name=st.sampled_from(["l", "l.csv", "l.jsonl", "l.tsv", "l.log", "l.parquet", "l.csv.gz", "l.zst"]))
def test_any_bytes_are_a_log_or_a_clear_error_whatever_the_name(data: bytes, name: str) -> None:
    _try(data, name=name, log_format=None, bad_rows="skip")


@examples(60)
@given(data=noise)
def test_any_bytes_inside_a_parquet_file_are_a_clear_error(data: bytes) -> None:
    _try(b"PAR1" + data + b"PAR1", name="log.parquet", log_format=None, bad_rows="fail")


SECRET = "zyxsecret"
BAD_LINES = {
    Format.AOL: [f"{SECRET}\t{SECRET}", f"{SECRET}\t{SECRET}\t{SECRET}\t{SECRET}\t{SECRET}", f"{SECRET}\0"],
    Format.EXCITE: [f"{SECRET}\t{SECRET}\t{SECRET}", SECRET],
    Format.CSV: [f'{SECRET},"{SECRET}', f'"{SECRET}"{SECRET},', f"{SECRET},{SECRET},{SECRET},{SECRET},{SECRET}"],
    Format.TSV: [SECRET, f"{SECRET}\t{SECRET}\t{SECRET}\t{SECRET}\t"],
    Format.JSONL: [
        f'{{"user": "{SECRET}"',
        f'"{SECRET}"',
        f'{{"{SECRET}": 1}}',
        f'{{"user": "7", "query": ["{SECRET}"]}}',
    ],
    Format.TRANSACTIONS: [f"{SECRET}\0"],
    Format.UBI: [f'{{"{SECRET}": 1}}', f'{{"user_query": "{SECRET}"}}', SECRET],
}
STARTS = {
    Format.CSV: "user,query,time,rank\n",
    Format.TSV: "user\tquery\ttime\trank\n",
    Format.JSONL: '{"user":"7","query":""}\n',
}


@pytest.mark.parametrize("log_format", TEXT_FORMATS)
@pytest.mark.parametrize("start", ["", None])
def test_no_message_holds_any_text_of_a_row(tmp_path: Path, log_format: Format, start: str | None) -> None:
    path = tmp_path / "log"
    path.write_text((STARTS.get(log_format, "") if start is None else start) + "\n".join(BAD_LINES[log_format]))
    with pytest.raises(QueryveilError) as caught:
        read_log(path, format=log_format)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error!s} {error!r}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
