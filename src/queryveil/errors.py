"""All exceptions of the package, each with a one-line message.

QueryveilError
├── BadParameter      a setting has a value it may not have
├── MissingExtra      an optional part is not installed
├── NotYet            an engine cannot do this, and why
├── EngineFailed      a cluster gave up on the work
├── OverBudget        a release would spend more than is left of a privacy budget
├── TooFewUsers       a promise about groups of people needs more of them
├── NothingPromised   a release makes no promise that could be judged
├── BadInput          a file or frame cannot be read as a query log
│   ├── BadFile       the file itself: missing, truncated, not in the format
│   │   ├── OtherFormat files of one log are of different formats
│   │   ├── NamedTwice the same file under one name or several
│   │   └── NotWritten a file or folder could not be written
│   ├── BadRows       some of its rows, by file and line
│   └── MissingColumn a column that is needed is not there
├── BadRow            one row that cannot be read; readers collect these into BadRows
├── Unreachable       a server or disk does not answer for now; trying again may help
├── StoreBusy         another process uses the state of this stream
├── OutputBusy        another run is writing to the same folder or file
├── ReleaseExists     the folder to write to is already there
└── BadRelease        a release folder is damaged or incomplete

No message holds query text, a URL or a user id: rows are named by file and line. Names of files and columns are quoted
in them, and whoever gave a file its name could steer a terminal by it: all messages are made `printable`.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from traceback import extract_tb

# Control characters (C0, DEL, C1), line and paragraph separators, what turns the direction of writing, and bytes of a
# file name that are not UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, *, keep: str = "") -> str:
    r"""Return a text in which characters that steer a terminal are written as escapes, but for those in `keep`.

    >>> printable("log\x1b[2J.tsv")
    'log\\u001b[2J.tsv'
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else f"\\u{ord(found[0]):04x}", text)


class QueryveilError(Exception):
    """Base class of all exceptions; the command line prints the message and exits with code 2."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(map(printable, lines)))


class BadParameter(QueryveilError):
    """A setting has a value it may not have.

    >>> print(BadParameter("k", 1, allowed="2 or more"))
    k must be 2 or more, got 1
    """

    def __init__(self, name: str, value: object, *, allowed: str) -> None:
        self.name, self.value, self.allowed = name, value, allowed
        super().__init__(f"{name} must be {allowed}, got {value}")


class MissingExtra(QueryveilError):
    """An optional part is not installed.

    >>> print(MissingExtra("pandas", extra="pandas"))
    pandas needs an extra: pip install 'queryveil[pandas]'
    """

    def __init__(self, what: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs an extra: pip install 'queryveil[{extra}]'")


class NotYet(QueryveilError):
    """An engine cannot do this yet, why, and what to do instead.

    >>> print(NotYet("fis as a target on Spark", "it counts all combinations at once", instead="leave out --engine"))
    fis as a target on Spark: not yet, because it counts all combinations at once; leave out --engine
    """

    def __init__(self, what: str, why: str, *, instead: str) -> None:
        super().__init__(f"{what}: not yet, because {why}; {instead}")


class EngineFailed(QueryveilError):
    """A cluster gave up on the work; what its own log says of it may quote rows, so it is not repeated here.

    >>> print(EngineFailed("Spark", "OutOfMemoryError", so="nothing was released"))
    Spark gave up (OutOfMemoryError); nothing was released; the logs of its executors say more
    """

    def __init__(self, engine: str, why: str, *, so: str = "", way_out: str = "") -> None:
        what_next = way_out or "the logs of its executors say more"
        super().__init__("; ".join(filter(None, (f"{engine} gave up ({why})", so, what_next))))


class OverBudget(QueryveilError):
    """A release would spend more than is left of a privacy budget.

    >>> print(OverBudget("log.budget", "epsilon 2 was requested and 1.5 is left, 0.5 too little"))
    log.budget: epsilon 2 was requested and 1.5 is left, 0.5 too little; nothing was spent
    """

    def __init__(self, ledger: str, reason: str) -> None:
        super().__init__(f"{ledger}: {reason}; nothing was spent")


class TooFewUsers(QueryveilError):
    """A promise about groups of people needs more of them than there are.

    >>> print(TooFewUsers(3, needed=5, way_out="a smaller k"))
    5 users with something to release are needed and there are 3; try a smaller k
    """

    def __init__(self, n_users: int, *, needed: int, way_out: str) -> None:
        self.n_users, self.needed = n_users, needed
        there = "there is 1" if n_users == 1 else f"there are {n_users}"
        super().__init__(f"{needed} users with something to release are needed and {there}; try {way_out}")


class NothingPromised(QueryveilError):
    """A release makes no promise that could be judged.

    >>> print(NothingPromised("its counts were rounded"))
    nothing to verify, this release promises nothing: its counts were rounded
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"nothing to verify, this release promises nothing: {reason}")


class BadInput(QueryveilError):
    """A file or frame cannot be read as a query log."""


class BadFile(BadInput):
    """The file itself is wrong: missing, truncated, not in the format it claims.

    >>> print(BadFile("log.tsv.gz", "the gzip data ends in the middle; copy the file again"))
    log.tsv.gz: the gzip data ends in the middle; copy the file again
    """

    def __init__(self, file: str, reason: str) -> None:
        self.file, self.reason = file, reason
        super().__init__(f"{file}: {reason}")


class OtherFormat(BadFile):
    """Files that are to be read as one log are of different formats.

    >>> print(OtherFormat("b.jsonl", "jsonl", first="aol"))
    b.jsonl: this file is jsonl, the first was aol; read them one by one
    """

    def __init__(self, file: str, found: str, *, first: str) -> None:
        super().__init__(file, f"this file is {found}, the first was {first}; read them one by one")


class NamedTwice(BadFile):
    """One file is named twice, by the same name, another one or a link.

    >>> print(NamedTwice("./log.tsv", first="log.tsv"))
    ./log.tsv: this is the same file as log.tsv, and everybody in it would count twice; name each file once
    """

    def __init__(self, file: str, *, first: str) -> None:
        reason = f"this is the same file as {first}, and everybody in it would count twice; name each file once"
        super().__init__(file, reason)


class NotWritten(BadFile):
    """A file or folder could not be written, for what reason, and what that means.

    >>> print(NotWritten("out", "File too large", so="nothing was released"))
    out: could not be written: file too large; nothing was released; free space or choose another folder
    """

    def __init__(self, file: str, why: str | None, *, so: str = "") -> None:
        self.why = (why or "for an unknown reason").lower()
        parts = (f"could not be written: {self.why}", so, "free space or choose another folder")
        super().__init__(file, "; ".join(filter(None, parts)))


class BadRow(QueryveilError):
    """One row that cannot be read; readers collect these into `BadRows`.

    >>> print(BadRow("log.tsv", 17, reason="expected five tab-separated columns, found 3"))
    log.tsv, line 17: expected five tab-separated columns, found 3
    """

    def __init__(self, file: str, line: int, *, reason: str) -> None:
        self.file, self.line, self.reason = file, line, reason
        super().__init__(f"{file}, line {line}: {reason}")


class BadRows(BadInput):
    """Some rows cannot be read: the first ten by file and line, and how many there are."""

    N_SHOWN = 10

    def __init__(self, rows: Sequence[BadRow], *, n_total: int) -> None:
        self.rows, self.n_total = tuple(rows[: self.N_SHOWN]), n_total
        lines = [str(row) for row in self.rows]
        if n_total > len(lines):
            lines.append(f"and {n_total - len(lines)} more")
        count = "1 row cannot be read" if n_total == 1 else f"{n_total} rows cannot be read"
        lines.append(f"{count}; fix the file, or leave such rows out with --bad-rows skip")
        super().__init__(*lines)


class MissingColumn(BadInput):
    """A column that is needed is not there.

    >>> print(MissingColumn("log.csv", "query", found=["who", "what"]))
    log.csv: no column for the query among who, what; name it with --columns query=NAME
    """

    def __init__(self, file: str, role: str, *, found: Sequence[str]) -> None:
        there = ", ".join(found)
        super().__init__(f"{file}: no column for the {role} among {there}; name it with --columns {role}=NAME")


class Unreachable(QueryveilError):
    """A server or disk does not answer for now; the service waits and tries again.

    >>> print(Unreachable("the Redis server at 127.0.0.1:6379", "connection refused"))
    the Redis server at 127.0.0.1:6379: connection refused
    """

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")


class StoreBusy(QueryveilError):
    """Another process uses the state of this stream.

    >>> print(StoreBusy("queryveil.db"))
    queryveil.db is in use by another process; stop that one, or name another --store
    """

    def __init__(self, store: str) -> None:
        super().__init__(f"{store} is in use by another process; stop that one, or name another --store")


class OutputBusy(QueryveilError):
    """Another run is writing to the same folder or file.

    >>> print(OutputBusy("out"))
    another run is writing to out; wait until it has ended, or choose another name
    """

    def __init__(self, output: str) -> None:
        super().__init__(f"another run is writing to {output}; wait until it has ended, or choose another name")


class ReleaseExists(QueryveilError):
    """The folder to write to is already there.

    >>> print(ReleaseExists("out"))
    out is already there; choose another folder, or replace it with --force
    """

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} is already there; choose another folder, or replace it with --force")


class BadRelease(QueryveilError):
    """A release folder is damaged or incomplete.

    >>> print(BadRelease("out", "manifest.json is missing"))
    out: manifest.json is missing
    """

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(f"{folder}: {reason}")


def fault_in_words(error: BaseException) -> str:
    """Return the kind and the place of an error that is none of the above, in one line."""
    # Privacy: a message or traceback of a library may quote the log, so only the kind and the place are told.
    place = extract_tb(error.__traceback__)[-1]
    return f"a fault of queryveil itself ({type(error).__name__} at {Path(place.filename).name}:{place.lineno})"
