"""Queries as noisy counts compare them, whichever Unicode they were folded with.

Python and Polars each bring tables of letters of their own, and the older ones lack the lower case of some letters
(Garay, Beria Erfe, a few of Latin). A query counts as asked, and as tidy, if it is so by either of them.
"""

from __future__ import annotations

import polars as pl

from queryveil.verify.pairs import folded_all


def either_form(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Give texts composed, in lower case and with single blanks, by Python's tables and by those of Polars.

    >>> [form.to_list() for form in either_form(pl.Series([" Red  KETTLE"]))]
    [['red kettle'], ['red kettle']]
    """
    lowered = texts.str.normalize("NFC").str.to_lowercase().str.normalize("NFC")
    return folded_all(texts), lowered.str.replace_all(r"[\s\x1c-\x1f]+", " ").str.strip_chars(" ")


def is_untidy(texts: pl.Series) -> pl.Series:
    """Say which texts are not as they are compared, and which are none: empty, or with a NUL.

    >>> is_untidy(pl.Series(["red kettle", "Red kettle", ""])).to_list()
    [False, True, True]
    """
    python, polars = either_form(texts)
    return ((texts != python) & (texts != polars)) | (texts == "") | texts.str.contains("\0", literal=True)
