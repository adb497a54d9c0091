"""Logs with defects in every format, written here by hand, each with the rows that a person would find in it."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Row = tuple[str, str, str | None, int | None, str | None]
"""User, query, time, rank and url."""
SECRET = "zyxsecret"
"""Stands in every record that is bad, and in no message."""
ROWS: tuple[Row, ...] = (
    ("u1", "red kettle", "2006-03-01T07:17:12", 1, "https://shop.example/1"),
    ("u2", "käse, \u4e2d\u6587 & more", "2006-03-02T23:59:59", None, None),
    ("u1", "", "2006-03-03T00:00:00", 3, "https://shop.example/3"),
    ("u3", "tea  for two", None, 12, "https://shop.example/?q=a=b"),
    ("u\u00e9", "don't |stop| 50% <now>", "2024-02-29T12:00:01", 2, None),
)
ANYTHING = None
"""What rows a case has, where no person could say."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """One file to be read.

    - `rows`: what must come out of it; `ANYTHING` where nobody can tell.
    - `n_bad`, `n_foreign`, `n_latin1`: what must be counted.
    - `is_whole`: False where the file must be refused, whatever happens to bad rows.
    - `may_refuse`: whether refusing the file is right, too.
    """

    kind: str
    name: str
    data: bytes
    format: str | None = None
    rows: tuple[Row, ...] | None = ()
    n_bad: int = 0
    n_foreign: int = 0
    n_latin1: int = 0
    is_whole: bool = True
    may_refuse: bool = False


@dataclass(frozen=True, kw_only=True)
class Line:
    """One record, or a line that is none: what a person would make of it."""

    kind: str
    data: bytes
    rows: tuple[Row, ...] = ()
    n_bad: int = 0
    n_foreign: int = 0
    n_latin1: int = 0


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A format: how its records are written by hand, and what can be wrong with one."""

    name: str
    ending: str
    lines: Callable[[Sequence[Row]], list[Line]]
    odd: Callable[[], list[Line]]
    header: bytes = b""
    columns: tuple[int, ...] = (0, 1, 2, 3, 4)
    wrong_headers: dict[str, bytes] = field(default_factory=dict)


def good(kind: str, data: bytes, row: Row, **more: int) -> Line:
    return Line(kind=kind, data=data, rows=(row,), **more)


def bad(kind: str, data: bytes) -> Line:
    return Line(kind=kind, data=data, n_bad=1)


# Fields that are right or wrong in every format with fields: the place of the field, its text, and its value, if any.
_WRONG = {
    "time: year 0": (2, "0000-01-01 00:00:00"),
    "time: year 99999": (2, "99999-01-01 00:00:00"),
    "time: no such day": (2, "2006-02-30 00:00:00"),
    "time: month 13": (2, "2006-13-01 00:00:00"),
    "time: hour 25": (2, "2006-03-01 25:00:00"),
    "time: nonsense": (2, f"{SECRET} o'clock"),
    "time: zone of 99 hours": (2, "2006-03-01T07:17:12+99:00"),
    "time: after 9999 in UTC": (2, "9999-12-31T23:59:59-01:00"),
    "time: digits of no epoch": (2, "20060301"),
    "time: negative": (2, "-5"),
    "rank: fraction": (3, "2.5"),
    "rank: NaN": (3, "NaN"),
    "rank: infinite": (3, "inf"),
    "rank: huge": (3, "99999999999999999999"),
    "rank: text": (3, SECRET),
    "rank: hexadecimal": (3, "0x10"),
    "user: empty": (0, ""),
    "user: blanks": (0, "   "),
}
_RIGHT: dict[str, tuple[int, str, object]] = {
    "time: zone": (2, "2006-03-01T07:17:12+02:00", "2006-03-01T05:17:12"),
    "time: UTC": (2, "2006-03-01T07:17:12Z", "2006-03-01T07:17:12"),
    "time: day alone": (2, "2006-03-01", "2006-03-01T00:00:00"),
    "time: epoch": (2, "1141197432", "2006-03-01T07:17:12"),
    "time: epoch in ms": (2, "1141197432000", "2006-03-01T07:17:12"),
    "time: empty": (2, "", None),
    "rank: negative": (3, "-1", -1),
    "rank: as a float": (3, "7.0", 7),
    "rank: empty": (3, "", None),
    "query: form feed": (1, "tea\fpot", "tea\fpot"),
    "query: U+2028": (1, "tea\u2028pot", "tea\u2028pot"),
    "query: U+0085": (1, "tea\u0085pot", "tea\u0085pot"),
    "query: control characters": (1, "a\x01\x0b\x1b[2J\x1c\x7fb", "a\x01\x0b\x1b[2J\x1c\x7fb"),
    "query: mark of byte order": (1, "\ufefftea", "\ufefftea"),
    "query: right to left": (1, "\u202etea", "\u202etea"),
    "query: beyond the first plane": (1, "\U0001f600\U0010ffff", "\U0001f600\U0010ffff"),
    "query: blanks at both ends": (1, "  tea ", "  tea "),
    "query: return inside": (1, "tea\rpot", "tea\rpot"),
    "query: 900 KB": (1, "tea " * 230_000, "tea " * 230_000),
    "user: long": (0, "u" * 10_000, "u" * 10_000),
}


def _texts(row: Row) -> list[str]:
    time = "" if row[2] is None else row[2].replace("T", " ")
    return [row[0], row[1], time, "" if row[3] is None else str(row[3]), row[4] or ""]


def _changed(row: Row, place: int, value: object) -> Row:
    return tuple(value if i == place else each for i, each in enumerate(row))  # type: ignore[return-value]


def _delimited(separator: str, *, quoted: bool) -> Callable[[], list[Line]]:
    base: Row = ("u9", "plain", "2006-03-04T01:02:03", 4, "https://shop.example/9")

    def line(texts: Sequence[str]) -> bytes:
        # Unquoted where that is possible, as most programs write it.
        plain = [f'"{text}"' if quoted and set(text) & set(',"\n\r') else text for text in texts]
        return separator.join(plain).encode()

    def odd() -> list[Line]:
        secret = [*_texts(_changed(base, 1, SECRET))]
        found = [
            bad(kind, line([text if i == at else each for i, each in enumerate(secret)]))
            for kind, (at, text) in _WRONG.items()
        ]
        found += [
            good(
                kind,
                line([text if i == at else each for i, each in enumerate(_texts(base))]),
                _changed(base, at, value),
            )
            for kind, (at, text, value) in _RIGHT.items()
        ]
        whole = line(secret)
        found += [
            bad("fields: too few", whole.rpartition(separator.encode())[0]),
            bad("fields: one too many", whole + separator.encode() + SECRET.encode()),
            bad("fields: one alone", SECRET.encode()),
            bad("fields: a hundred", separator.join([SECRET] * 100).encode()),
            bad("NUL", whole.replace(SECRET.encode(), SECRET.encode() + b"\0")),
            bad("query: 2 MB", whole.replace(SECRET.encode(), SECRET.encode() * 220_000)),
            Line(kind="blank line", data=b""),
            good(
                "query: not UTF-8",
                line(_texts(_changed(base, 1, "caf#"))).replace(b"#", b"\xe9"),
                _changed(base, 1, "café"),
                n_latin1=1,
            ),
            good(
                "query: surrogate in UTF-8",
                line(_texts(_changed(base, 1, "a#b"))).replace(b"#", b"\xed\xa0\x80"),
                _changed(base, 1, "a\u00ed\u00a0\u0080b"),
                n_latin1=1,
            ),
        ]
        if quoted:
            rest = line(_texts(base)[2:])
            found += [
                bad("quote: never closed", b'u9,"' + SECRET.encode() + b"," + rest),
                bad("quote: text behind it", b'u9,"' + SECRET.encode() + b'"x,' + rest),
                good("quote: doubled", b'u9,"a ""b"" c",' + rest, _changed(base, 1, 'a "b" c')),
                good("quote: line inside", b'u9,"a\nb\r\nc",' + rest, _changed(base, 1, "a\nb\r\nc")),
                good("quote: in the middle", b'u9,5" disc,' + rest, _changed(base, 1, '5" disc')),
            ]
        else:
            found += [good("quote: never closed", line(_texts(_changed(base, 1, '"tea'))), _changed(base, 1, '"tea'))]
        return found

    return odd


def _fielded(separator: str, *, quoted: bool) -> Callable[[Sequence[Row]], list[Line]]:
    def lines(rows: Sequence[Row]) -> list[Line]:
        quote = (lambda text: '"' + text.replace('"', '""') + '"') if quoted else str
        return [good("sound", separator.join(map(quote, _texts(row))).encode(), row) for row in rows]

    return lines


def _excite_lines(rows: Sequence[Row]) -> list[Line]:
    found = []
    for row in rows:
        digits = "" if row[2] is None else row[2][2:].replace("-", "").replace("T", "").replace(":", "")
        found.append(good("sound", "\t".join([row[0], digits, row[1]]).encode(), (*row[:3], None, None)))
    return found


def _excite_odd() -> list[Line]:
    kept: Row = ("u9", "plain", "1997-09-16T10:54:32", None, None)
    times = ["970230105432", "971316105432", "97091610543", "99999999999999", "-70916105432", SECRET, "970916256060"]
    found = [bad(f"time: {i}", f"u9\t{time}\t{SECRET}".encode()) for i, time in enumerate(times)]
    return [
        *found,
        good("time: 14 digits", b"u9\t19970916105432\tplain", kept),
        good("time: 10 digits", b"u9\t9709161054\tplain", _changed(kept, 2, "1997-09-16T10:54:00")),
        good("time: empty", b"u9\t\tplain", _changed(kept, 2, None)),
        good("query: form feed", b"u9\t970916105432\ttea\x0cpot", _changed(kept, 1, "tea\fpot")),
        good("query: not UTF-8", b"u9\t970916105432\tcaf\xe9", _changed(kept, 1, "café"), n_latin1=1),
        bad("fields: too few", f"u9\t{SECRET}".encode()),
        bad("fields: too many", f"u9\t970916105432\t{SECRET}\t{SECRET}".encode()),
        bad("user: empty", f"\t970916105432\t{SECRET}".encode()),
        bad("NUL", f"u9\t970916105432\t{SECRET}\0".encode()),
        bad("query: 2 MB", f"u9\t970916105432\t{SECRET * 220_000}".encode()),
        Line(kind="blank line", data=b""),
    ]


def _items(rows: Sequence[Row]) -> list[Line]:
    return [
        good("sound", f"{row[0]} milk {i}".encode(), ("", f"{row[0]} milk {i}", None, None, None))
        for i, row in enumerate(rows)
    ]


def _items_odd() -> list[Line]:
    def line(kind: str, text: str) -> Line:
        return good(kind, text.encode(), ("", text, None, None, None))

    return [
        line("items: control characters", "a\x01b \x1b[2J"),
        line("items: U+2028", "a\u2028b c"),
        line("items: many", "x " * 100_000 + "y"),
        good("items: not UTF-8", b"caf\xe9 milk", ("", "café milk", None, None, None), n_latin1=1),
        bad("NUL", f"{SECRET}\0".encode()),
        bad("items: 2 MB", (SECRET * 220_000).encode()),
        Line(kind="blank line", data=b""),
        Line(kind="line of blanks", data=b" \t "),
    ]


_HEADER = "user,query,time,rank,url"
_AOL = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL"
_NAMED = {
    "header: renamed": "someone,query,time,rank,url",
    "header: a column twice": "user,user,time,rank,url",
    "header: none": "u1,red kettle,2006-03-01 07:17:12,1,",
    "header: empty names": ",,,,",
    "header: quote never closed": '"user,query,time,rank,url',
    "header: NUL": "user\0,query,time,rank,url",
}


def kinds() -> list[Kind]:
    """Return the formats of text; Parquet and JSON are written elsewhere."""
    tabs = {kind: text.replace(",", "\t").encode() for kind, text in _NAMED.items() if "quote" not in kind}
    return [
        Kind(
            name="aol",
            ending="tsv",
            lines=_fielded("\t", quoted=False),
            odd=_delimited("\t", quoted=False),
            header=_AOL.encode(),
        ),
        Kind(
            name="csv",
            ending="csv",
            lines=_fielded(",", quoted=True),
            odd=_delimited(",", quoted=True),
            header=_HEADER.encode(),
            wrong_headers={kind: text.encode() for kind, text in _NAMED.items()},
        ),
        Kind(
            name="tsv",
            ending="tsv",
            lines=_fielded("\t", quoted=False),
            odd=_delimited("\t", quoted=False),
            header=_HEADER.replace(",", "\t").encode(),
            wrong_headers=tabs,
        ),
        Kind(name="excite", ending="log", lines=_excite_lines, odd=_excite_odd, columns=(0, 1, 2)),
        Kind(name="transactions", ending="txt", lines=_items, odd=_items_odd, columns=(0, 1)),
    ]


def joined(kind: Kind, lines: Sequence[Line], *, about: str, ends: Sequence[bytes] = (b"\n",)) -> Log:
    """Return the file of these lines, with their line ends in turn."""
    header = [kind.header] if kind.header else []
    parts = [*header, *(line.data for line in lines)]
    data = b"".join(part + ends[i % len(ends)] for i, part in enumerate(parts))
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        # Users of plain transactions are the numbers of the lines.
        rows += [(str(number), *row[1:]) for row in line.rows] if kind.name == "transactions" else line.rows
    return Log(
        kind=about,
        name=f"log.{kind.ending}",
        data=data,
        format=kind.name,
        rows=tuple(rows),
        n_bad=sum(line.n_bad for line in lines),
        n_foreign=sum(line.n_foreign for line in lines),
        n_latin1=sum(line.n_latin1 for line in lines),
    )


def _of_lines(kind: Kind, rng: random.Random) -> Iterator[Log]:
    for line in kind.odd():
        lines = kind.lines(ROWS)
        lines.insert(rng.randrange(len(lines) + 1), line)
        yield joined(kind, lines, about=line.kind)


def _mixed(formats: Sequence[Kind], rng: random.Random, number: int) -> Log:
    """Return a file with several defects at once, drawn by a seed."""
    kind = formats[number % len(formats)]
    odd = [line for line in kind.odd() if len(line.data) < 10_000]
    lines = kind.lines(ROWS) + rng.choices(odd, k=rng.randint(2, 9))
    rng.shuffle(lines)
    log = joined(kind, lines, about="several defects", ends=rng.choice([[b"\n"], [b"\r\n"], [b"\n", b"\r\n", b"\n"]]))
    if rng.random() < 0.3:
        log = replace(log, data=b"\xef\xbb\xbf" + log.data)
    if rng.random() < 0.4:
        log = replace(log, data=gzip.compress(log.data, mtime=0), name=f"{log.name}.gz")
    return log


def malformed_logs(*, seed: int, n_mixed: int = 120) -> list[Log]:
    """Return all cases, always the same ones for a seed."""
    from tests.hostile.malformed_files import of_files
    from tests.hostile.malformed_json import json_kinds
    from tests.hostile.malformed_parquet import parquet_logs

    rng = random.Random(seed)
    formats = kinds() + json_kinds()
    found = [log for kind in formats for log in (*_of_lines(kind, rng), *of_files(kind))]
    found += parquet_logs(rng)
    return found + [_mixed(formats, rng, number) for number in range(n_mixed)]


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
