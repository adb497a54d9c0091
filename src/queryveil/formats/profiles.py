"""Read profiles as JSON lines: one user per line with weighted terms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import float_info
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from msgspec import UNSET

from queryveil.data import PROFILES_SCHEMA, Profiles
from queryveil.errors import BadFile
from queryveil.formats.jsonl import JSON_REASONS, decode_lines, json_value, scalar_as_text
from queryveil.formats.read import parse_choice
from queryveil.formats.records import BadRowPolicy, Tally, read_records
from queryveil.formats.streams import ByteStream, Source, find_sources, open_streams

NO_USER, NO_TERMS, EMPTY_TERM, TERM_TWICE, BAD_WEIGHT = 121, 122, 123, 124, 125
REASONS: Mapping[int, str] = {
    **JSON_REASONS,
    NO_USER: "the user is missing, or neither text nor a number",
    NO_TERMS: "the terms are missing, or neither an object of weights nor a list of texts",
    EMPTY_TERM: "a term is empty",
    TERM_TWICE: "a term stands twice in the list; give an object of weights instead",
    BAD_WEIGHT: "a weight is not a number above 0; leave such terms out",
}


def read_profiles(source: Source, *, bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL) -> Profiles:
    """Read profiles: a path, a glob, a list of paths, or `-` for stdin.

    A line is `{"user": "u1", "terms": {"kitten": 1.0, "riding": 0.8}}`; `terms` may also be a list of texts, each of
    weight 1. Other keys are left out.
    """
    tally = Tally(policy=parse_choice(BadRowPolicy, bad_rows, name="bad_rows"))
    reader = _Reader(tally=tally)
    for each in open_streams(source):
        with each as stream:
            reader.add(stream)
    reading = tally.close()
    return Profiles(frame=reader.finish(), reading=reading)


def are_profiles(source: Source) -> bool:
    """Return whether the first file is JSON lines whose first object has terms and no query.

    False for a file that cannot be opened, since reading it raises the error, and for stdin, which is read once.
    """
    try:
        path = find_sources(source)[0]
        if path is None:
            return False
        with ByteStream(path) as stream:
            head = stream.head
    except BadFile:
        return False
    return _is_profile(next((line for line in head.split(b"\n") if line.strip()), b""))


def _is_profile(line: bytes) -> bool:
    value = json_value(line)
    if value is UNSET:
        # Such a line may be longer than the head, as that of a user of thousands of terms.
        return line.lstrip().startswith(b'{"user":') and b'"terms":' in line and b'"query"' not in line
    return isinstance(value, dict) and "terms" in value and not {"query", "user_query", "query_id"} & value.keys()


@dataclass(slots=True, kw_only=True)
class _Reader:
    tally: Tally
    users: list[str] = field(default_factory=list)
    terms: list[list[str]] = field(default_factory=list)
    weights: list[list[float]] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)

    def add(self, stream: ByteStream) -> None:
        """Read one file."""
        for records, wrong in read_records(stream, tally=self.tally, reasons=REASONS):
            # Decoding writes its faults into `wrong`.
            objects = decode_lines(records, wrong=wrong)
            for i, one in zip(np.flatnonzero(wrong == 0).tolist(), objects, strict=True):
                wrong[i] = self._take(one, place=(stream.name, int(records.lines[i])))

    def _take(self, one: dict[str, Any], *, place: tuple[str, int]) -> int:
        """Keep a profile that can be read; return 0 or a code of `REASONS`."""
        user = scalar_as_text(one.get("user"))
        if user is None or not user.strip():
            return NO_USER
        terms = one.get("terms")
        if isinstance(terms, list):
            if not all(isinstance(term, str) for term in terms):
                return NO_TERMS
            if len(set(terms)) < len(terms):
                return TERM_TWICE
            terms = dict.fromkeys(terms, 1.0)
        if not isinstance(terms, dict):
            return NO_TERMS
        if not all(term.strip() for term in terms):
            return EMPTY_TERM
        if not all(map(_is_weight, terms.values())):
            return BAD_WEIGHT
        self.users.append(user)
        self.terms.append(list(terms))
        self.weights.append([float(weight) for weight in terms.values()])
        self.places.append(place)
        return 0

    def finish(self) -> pl.DataFrame:
        """Return all profiles read; raise if a user has two."""
        users = pl.Series("user", self.users, dtype=pl.String)
        repeated = (~users.is_first_distinct()).arg_true()
        if len(repeated):
            file, line = self.places[int(repeated[0])]
            raise BadFile(file, f"line {line} has a user that stood before; put all terms of a user on one line")
        # Arrow makes lists of texts much faster than Polars does.
        terms = pl.Series("terms", pa.array(self.terms, type=pa.large_list(pa.large_string())))
        weights = pl.Series("weights", pa.array(self.weights, type=pa.large_list(pa.float64())))
        return pl.DataFrame([users, terms, weights], schema=PROFILES_SCHEMA)


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= float_info.max
