"""Utility for advertising: the value of the remaining terms.

Paper: Burghardt et al., section 5.2, tables 5 to 7. A log is worth the sum over its term occurrences of what the table
says of the term; kept is the release's worth over the original's. Revenue is bid times clicks.
"""

import polars as pl

from queryveil.errors import BadInput
from queryveil.text.tokens import worth_of_terms
from queryveil.utility._term_counts import TermCounts
from queryveil.utility.score import Measures, Score

_COLUMNS = {
    "bid": ("bid",),
    "clicks": ("clicks",),
    "impressions": ("impressions",),
    "revenue": ("bid", "clicks"),
}
_ABOUT = {
    "bid": "of what advertisers would bid for the terms is still there",
    "clicks": "of the clicks that the terms would bring is still there",
    "impressions": "of the times that ads would be shown is still there",
    "revenue": "of what the clicks would cost advertisers is still there",
}


def advertising(terms: TermCounts, *, values: pl.DataFrame) -> Measures:
    """Measure by a table with the columns term, bid, clicks and impressions, as far as it has them.

    A term that the table lacks is worth nothing.
    """
    check_values(values)
    scores, notes = [], []
    for name, columns in _COLUMNS.items():
        if not all(column in values.columns for column in columns):
            notes.append(f"{name} is left out: the table of term values has no column for it")
            continue
        worth, _ = worth_of_terms(terms.vocabulary, values=values, columns=columns)
        whole = float(terms.before @ worth)
        if not whole:
            notes.append(f"{name} is left out: no term of the log has a value for it")
            continue
        value = float(terms.kept @ worth) / whole
        scores.append(
            Score(
                name=f"{name}_kept",
                value=value,
                better="more",
                about=_ABOUT[name],
                group="advertising",
                is_share=True,
            )
        )
    return Measures(scores=tuple(scores), notes=tuple(notes))


def check_values(values: pl.DataFrame) -> None:
    """Raise if a table has no column of terms, or none of what they are worth."""
    if "term" not in values.columns or not any(name in values.columns for name in ("bid", "clicks", "impressions")):
        # Privacy: the table may be a log without a header, so its own names are not quoted.
        raise BadInput("the table of term values needs the column term, and bid, clicks or impressions")
