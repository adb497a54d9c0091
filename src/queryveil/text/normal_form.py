"""Texts in one form, so that case, blanks and ways to write an accent cannot mark a person."""

from __future__ import annotations

import polars as pl


def normalise(texts: pl.Series) -> pl.Series:
    """Give texts in one form: NFC, lower case, single blanks.

    >>> normalise(pl.Series([" Red   WINE", "cafe" + chr(0x301) + ""])).to_list()
    ['red wine', 'café']
    """
    # Lower case may leave letters and marks that have a composed form, hence the form is taken again.
    lowered = texts.str.normalize("NFC").str.to_lowercase().str.normalize("NFC")
    return lowered.str.replace_all(r"[\s\x1c-\x1f]+", " ").str.strip_chars(" ")
