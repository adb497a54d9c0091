"""JSON lines and documents of OpenSearch with defects, written here by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.hostile.malformed_logs import SECRET, Kind, Line, Row, as_json, bad, good

_KEYS = ("user", "query", "time", "rank", "url")
_ROW: Row = ("u9", "plain", "2006-03-04T01:02:03", 4, "https://shop.example/9")


def _object(row: Row) -> dict[str, Any]:
    return {key: value for key, value in zip(_KEYS, row, strict=True) if value is not None}


def _lines(rows: Sequence[Row]) -> list[Line]:
    return [good("sound", as_json(_object(row)), row) for row in rows]


def _with(**more: Any) -> bytes:
    return as_json(_object(_ROW) | more)


_SOUND: dict[str, tuple[str, Any, Any]] = {
    "user: a number": ("user", 7, "7"),
    "user: a huge number": ("user", 123456789012345678901234567890, "123456789012345678901234567890"),
    "user: a number of 64 bits": ("user", 18446744073709551615, "18446744073709551615"),
    "user: a fraction": ("user", 7.5, "7.5"),
    "query: null": ("query", None, ""),
    "query: NUL as an escape": ("query", "a\0b", "a\0b"),
    "query: U+2028": ("query", "tea\u2028pot", "tea\u2028pot"),
    "query: control characters": ("query", "a\x01\x1b[2J\x7f\n\r\tb", "a\x01\x1b[2J\x7f\n\r\tb"),
    "query: 900 KB": ("query", "tea " * 230_000, "tea " * 230_000),
    "query: looks like JSON": ("query", '{"user": 1}', '{"user": 1}'),
    "time: epoch": ("time", 1141197432, "2006-03-01T07:17:12"),
    "time: epoch in ms": ("time", 1141197432000, "2006-03-01T07:17:12"),
    "time: zone": ("time", "2006-03-01T07:17:12+02:00", "2006-03-01T05:17:12"),
    "time: null": ("time", None, None),
    "rank: negative": ("rank", -1, -1),
    "rank: a float": ("rank", 7.0, 7),
    "rank: text": ("rank", "7", 7),
    "rank: null": ("rank", None, None),
    "url: empty": ("url", "", None),
}
_UNSOUND: dict[str, tuple[str, Any]] = {
    "user: null": ("user", None),
    "user: true": ("user", True),
    "user: a list": ("user", [1]),
    "user: blanks": ("user", " "),
    "query: a number": ("query", 7),
    "query: an object": ("query", {"text": SECRET}),
    "query: a list": ("query", [SECRET]),
    "query: true": ("query", True),
    "time: true": ("time", True),
    "time: an object": ("time", {}),
    "time: nonsense": ("time", SECRET),
    "time: year 0": ("time", "0000-01-01T00:00:00"),
    "time: huge": ("time", 10**30),
    "time: 1e300": ("time", 1e300),
    "time: negative": ("time", -7),
    "rank: a fraction": ("rank", 2.5),
    "rank: huge": ("rank", 10**30),
    "rank: true": ("rank", True),
    "rank: a list": ("rank", [3]),
    "rank: nonsense": ("rank", SECRET),
    "url: a number": ("url", 7),
    "url: an object": ("url", {"x": 1}),
}


def _place(key: str, value: Any) -> Row:
    return tuple(value if name == key else each for name, each in zip(_KEYS, _ROW, strict=True))  # type: ignore[return-value]


def _odd() -> list[Line]:
    secret, whole = SECRET.encode(), _with(query=SECRET)
    found = [good(kind, _with(**{key: value}), _place(key, out)) for kind, (key, value, out) in _SOUND.items()]
    found += [bad(kind, _with(**({"query": SECRET} | {key: value}))) for kind, (key, value) in _UNSOUND.items()]
    broken = {
        "cut in the middle": whole[: len(whole) // 2],
        "cut at the end": whole[:-1],
        "two objects in a line": whole + whole,
        "a comma behind it": whole + b",",
        "single quotes": whole.replace(b'"', b"'"),
        "a comment": whole + b" // " + secret,
        "a list": b"[" + whole + b"]",
        "a number": b"7",
        "a text": b'"' + secret + b'"',
        "null": b"null",
        "true": b"true",
        "nested 100,000 deep": b'{"user": "u9", "query": "'
        + secret
        + b'", "x": '
        + b"[" * 100_000
        + b"]" * 100_000
        + b"}",
        "NaN": b'{"user": "u9", "query": "' + secret + b'", "rank": NaN}',
        "1e999": b'{"user": "u9", "query": "' + secret + b'", "rank": 1e999}',
        "a lone surrogate": b'{"user": "u9", "query": "' + secret + b' \\ud800"}',
        "a raw control character": b'{"user": "u9", "query": "' + secret + b'\x01"}',
        "NUL": whole.replace(secret, secret + b"\0"),
        "no user": b'{"query": "' + secret + b'"}',
        "an empty object": b"{}",
        "2 MB": whole.replace(secret, secret * 220_000),
        "text alone": secret,
    }
    found += [bad(f"JSON: {kind}", data) for kind, data in broken.items()]
    return [
        *found,
        good("JSON: blanks around", b"  \t" + _with() + b"  ", _ROW),
        good(
            "JSON: escapes",
            b'{"user": "u9", "query": "\\ud83d\\ude00 \\u0041"}',
            ("u9", "\U0001f600 A", None, None, None),
        ),
        good("JSON: more keys", _with(**{"a\nb": 1, "": [1, {"x": None}], "user_in_file": {}}), _ROW),
        good("JSON: keys in another case", _with(USER=SECRET, Query=[1]), _ROW),
        # Of two values the later one counts, as for every common parser.
        good("JSON: a key twice", b'{"user": "u8", ' + _with()[1:], _ROW),
        good("JSON: not UTF-8", _with(query="caf#").replace(b"#", b"\xe9"), _place("query", "café"), n_latin1=1),
        Line(kind="blank line", data=b""),
    ]


def _pair(index: str, document: dict[str, Any]) -> bytes:
    return as_json({"index": {"_index": index}}) + b"\n" + as_json(document)


def _query(number: int, row: Row) -> dict[str, Any]:
    asked = {"query_id": f"q{number}", "client_id": row[0], "user_query": row[1]}
    return asked if row[2] is None else asked | {"timestamp": row[2] + "Z"}


def _ubi_lines(rows: Sequence[Row]) -> list[Line]:
    found = []
    for number, row in enumerate(rows):
        data = _pair("ubi_queries", _query(number, row))
        if row[3] is not None or row[4] is not None:
            click: dict[str, Any] = {"query_id": f"q{number}", "action_name": "click", "event_attributes": {}}
            click["event_attributes"]["position"] = {"ordinal": row[3]}
            click["event_attributes"]["object"] = {"object_id": row[4], "object_id_field": "url"}
            data += b"\n" + _pair("ubi_events", click)
        found.append(good("sound", data, row))
    return found


def _ubi_odd() -> list[Line]:
    row: Row = ("u9", "plain", "2006-03-04T01:02:03", None, None)
    asked, secret = _query(99, row), _query(98, ("u9", SECRET, row[2], None, None))
    queries = as_json({"index": {"_index": "ubi_queries"}}) + b"\n"

    def unsound(**more: Any) -> bytes:
        return queries + as_json(secret | more)

    wrong = {
        "user: missing": queries + as_json({key: value for key, value in secret.items() if key != "client_id"}),
        "user: null": unsound(client_id=None),
        "user: a list": unsound(client_id=[1]),
        "query: a number": unsound(user_query=7, note=SECRET),
        "query: an object": unsound(user_query={"x": SECRET}),
        "time: nonsense": unsound(timestamp=SECRET),
        "time: true": unsound(timestamp=True),
        "time: year 99999": unsound(timestamp="99999-01-01T00:00:00Z"),
        "JSON: cut": queries + as_json(secret)[:-4],
        "JSON: a list": queries + b'["' + SECRET.encode() + b'"]',
        "JSON: nested deep": queries + b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "NUL": queries + as_json(secret).replace(SECRET.encode(), SECRET.encode() + b"\0"),
        "2 MB": queries + as_json(secret).replace(SECRET.encode(), SECRET.encode() * 220_000),
    }
    foreign = Line(kind="document of a foreign index", data=_pair("logs-2024", {"message": SECRET}), n_foreign=1)
    return [
        *(bad(kind, data) for kind, data in wrong.items()),
        foreign,
        good("query: no id", queries + as_json({key: value for key, value in asked.items() if key != "query_id"}), row),
        good("query: an id that is a number", queries + as_json(asked | {"query_id": 7}), row),
        good("query: more keys", queries + as_json(asked | {"query_attributes": {"x": [1]}, "application": None}), row),
        good("user: a number", queries + as_json(asked | {"client_id": 7}), ("7", *row[1:])),
        good("query: U+2028", queries + as_json(asked | {"user_query": "a\u2028b"}), ("u9", "a\u2028b", *row[2:])),
        Line(kind="blank line", data=b""),
    ]


def json_kinds() -> list[Kind]:
    return [
        Kind(name="jsonl", ending="jsonl", lines=_lines, odd=_odd),
        Kind(name="ubi", ending="ndjson", lines=_ubi_lines, odd=_ubi_odd),
    ]
