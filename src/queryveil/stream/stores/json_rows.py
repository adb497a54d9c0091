r"""Rows as JSON text, written and read at the speed of CSV: `[["user",0,3],\n["other",1,5]]`.

SQLite's shell reads such text with `json_each`, and a row costs a tenth of what a row of a table does.
"""

from __future__ import annotations

from typing import Final

import msgspec
import polars as pl

from queryveil.errors import BadFile

_BETWEEN: Final = "],\n["
_SPECIAL: Final = r'["\\,\]\x00-\x1f]'


def quote(users: pl.Series) -> pl.Series:
    r"""Give users as JSON text; a comma or a bracket is escaped, so that it stands between columns or rows only.

    >>> quote(pl.Series(["ann", 'b,"'])).to_list()
    ['"ann"', '"b\\u002c\\""']
    """
    if users.str.contains(_SPECIAL).any():
        escaped = [msgspec.json.encode(user).decode().replace(",", r"\u002c").replace("]", r"\u005d") for user in users]
        return pl.Series(users.name, escaped, dtype=pl.String)
    return pl.select((pl.lit('"') + users + pl.lit('"')).alias(users.name)).to_series()


def unquote(users: pl.Series) -> pl.Series:
    r"""Give users as they were.

    >>> unquote(quote(pl.Series(["ann", 'b,"']))).to_list()
    ['ann', 'b,"']
    """
    if users.str.contains("\\", literal=True).any():
        return pl.Series(users.name, [msgspec.json.decode(user) for user in users], dtype=pl.String)
    return users.str.strip_chars('"')


def write_rows(rows: pl.DataFrame) -> str:
    r"""Write rows; the first column is JSON text of the user, the others are numbers.

    >>> write_rows(pl.DataFrame({"user": ['"ann"', '"bob"'], "n": [1, 2]}))
    '[["ann",1],\n["bob",2]]'
    """
    if rows.is_empty():
        return "[]"
    text = rows.write_csv(include_header=False, line_terminator=_BETWEEN, quote_style="never")
    return f"[[{text.removesuffix(_BETWEEN)}]]"


def read_rows(texts: list[str], *, schema: pl.Schema) -> pl.DataFrame:
    r"""Read the rows of several texts, one after the other; users stay JSON text.

    >>> read_rows(['[["ann",1],\n["bob",2]]', "[]"], schema=pl.Schema({"user": pl.String, "n": pl.Int64})).rows()
    [('"ann"', 1), ('"bob"', 2)]
    """
    lines = "\n".join(text[2:-2].replace(_BETWEEN, "\n") for text in texts if text != "[]")
    if not lines:
        return pl.DataFrame(schema=schema)
    try:
        return pl.read_csv(lines.encode(), has_header=False, schema=schema, quote_char=None)
    except pl.exceptions.PolarsError:
        # Privacy: the cause would quote a row, so it is dropped.
        raise damaged() from None


def damaged() -> BadFile:
    """Say that the text is not as it was written."""
    return BadFile("the store", "its profiles are damaged; restore a copy, or name another --store")
