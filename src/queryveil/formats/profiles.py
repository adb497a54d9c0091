"""Read profiles as JSON lines, one user per line with weighted terms, and what a release was made from."""

from collections.abc import Mapping
from contextlib import suppress
from sys import float_info
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from msgspec import UNSET

from queryveil.data import PROFILES_SCHEMA, Profiles, QueryLog, Transactions
from queryveil.errors import BadFile, BadInput, MissingColumn
from queryveil.formats.jsonl import JSON_REASONS, decode_lines, json_value, scalar_as_text
from queryveil.formats.read import parse_choice, read_log
from queryveil.formats.records import BadRowPolicy, Tally, read_records
from queryveil.formats.streams import ByteStream, Source, find_sources, open_streams
from queryveil.formats.transactions import read_transactions
from queryveil.guarantees import Guarantee

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
    users: list[str] = []
    terms: list[list[str]] = []
    weights: list[list[float]] = []
    places: list[tuple[str, int]] = []
    for each in open_streams(source):
        with each as stream:
            for records, wrong in read_records(stream, tally=tally, reasons=REASONS):
                # Decoding writes its faults into `wrong`.
                objects = decode_lines(records, wrong=wrong)
                for i, one in zip(np.flatnonzero(wrong == 0).tolist(), objects, strict=True):
                    user, found = scalar_as_text(one.get("user")) or "", one.get("terms")
                    wrong[i] = _fault(user, found)
                    if not wrong[i]:
                        users.append(user)
                        terms.append(list(found))
                        weights.append([float(found[term]) if isinstance(found, dict) else 1.0 for term in found])
                        places.append((stream.name, int(records.lines[i])))
    reading = tally.close()
    repeated = (~pl.Series(users, dtype=pl.String).is_first_distinct()).arg_true()
    if len(repeated):
        file, line = places[int(repeated[0])]
        raise BadFile(file, f"line {line} has a user that stood before; put all terms of a user on one line")
    # Arrow makes lists of texts much faster than Polars does.
    columns = {
        "user": users,
        "terms": pa.array(terms, type=pa.large_list(pa.large_string())),
        "weights": pa.array(weights, type=pa.large_list(pa.float64())),
    }
    return Profiles(frame=pl.DataFrame(columns, schema=PROFILES_SCHEMA), reading=reading)


def _fault(user: str, terms: Any) -> int:
    """Return 0 for a profile that can be read, else a code of `REASONS`."""
    if not user.strip():
        return NO_USER
    if not isinstance(terms, list | dict) or not all(isinstance(term, str) for term in terms):
        return NO_TERMS
    if len(set(terms)) < len(terms):
        return TERM_TWICE
    if not all(term.strip() for term in terms):
        return EMPTY_TERM
    return BAD_WEIGHT if isinstance(terms, dict) and not all(map(_is_weight, terms.values())) else 0


def are_profiles(source: Source) -> bool:
    """Return whether the first file is JSON lines whose first object has terms and no query; stdin is not looked at."""
    try:
        path = find_sources(source)[0]
        if path is None or not path.is_file():
            return False
        with ByteStream(path) as stream:
            head = stream.head
    except BadFile:
        # Reading it raises the error.
        return False
    line = next((line for line in head.split(b"\n") if line.strip()), b"")
    value = json_value(line)
    if value is UNSET:
        # Such a line may be longer than the head, as that of a user of thousands of terms.
        return line.lstrip().startswith(b'{"user":') and b'"terms":' in line and b'"query"' not in line
    return isinstance(value, dict) and "terms" in value and not {"query", "user_query", "query_id"} & value.keys()


def read_original(
    source: Source, promise: Guarantee, *, bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL
) -> QueryLog | Transactions | Profiles:
    """Return what a release with this promise was made from: profiles, transactions or a log, as the file looks.

    Where transactions were released, a file that is no log is read as transactions; stdin is always read as a log.
    """
    if are_profiles(source):
        if not promise.is_of_profiles:
            raise BadInput("these are profiles, and the release was not made from profiles; give what it was made from")
        return read_profiles(source, bad_rows=bad_rows)
    if promise.released == "transactions" and source != "-":
        try:
            return read_log(source, bad_rows=bad_rows)
        except (BadFile, MissingColumn) as error:
            with suppress(BadFile, MissingColumn):
                return read_transactions(source, bad_rows=bad_rows)
            raise error from None
    return read_log(source, bad_rows=bad_rows)


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= float_info.max
