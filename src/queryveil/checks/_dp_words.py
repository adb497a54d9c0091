"""The messages of witnesses about noisy counts."""

from math import ceil

UNIT = 1e-15
"""In a witness, epsilons and deltas are whole numbers of this."""


def in_units(value: object) -> int:
    """Return an epsilon or a delta as a witness has it; what is no number is 0.

    >>> in_units(1e-5)
    10000000000
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return ceil(value / UNIT) if 0 <= value < 1e6 else ceil(1e6 / UNIT)


def counts_in_words(kind: str, *, support: int, needed: int, rows: tuple[int, ...]) -> str:
    """Say in one line what a witness of noisy counts points at.

    >>> counts_in_words("small_count", support=3, needed=12, rows=(7,))
    'a query left with a count of 3, and 12 is the least that may (row 7)'
    """
    place = rows[0] if rows else 0
    behind = f"by {_count(support, 'user')} of the original, {needed:,} {'is' if needed == 1 else 'are'} needed"
    there, allowed = f"{support * UNIT:.4g}", f"{needed * UNIT:.4g}"
    return {
        "no_noise": "counts leave, and the manifest does not say what noise was added to them",
        "odd_noise": f"part {place} of the noise has values that its mechanism cannot have",
        "weak_noise": f"part {place} of the noise has a delta of {there} at its epsilon, and {allowed} is stated",
        "parts_epsilon": f"the epsilons of all noise make {there}, and {allowed} is promised",
        "parts_delta": f"the deltas of all noise make {there}, and {allowed} is promised",
        "exact_count": f"the manifest tells of the log itself, without noise, in {_count(support, 'place')}",
        "small_count": f"a query left with a count of {support:,}, and {needed:,} is the least that may (row {place})",
        "small_click": f"a click left with a count of {support:,}, and {needed:,} is the least that may (row {place})",
        "untidy_query": f"a query is not in lower case with single blanks, which may mark a person (row {place})",
        "not_made_up": f"{_count(support, 'row')} of users left, and the manifest does not say that all are made up",
        "other_promise": f"the settings have {there} where {allowed} is promised",
        "other_parts": f"the noise has {_count(support, 'part')}, and the settings ask for {needed:,}",
        "other_items": f"part {place} of the noise is for {_count(support, 'count')} a person, not for {needed:,}",
        "other_size": f"the manifest says {support:,} where the release has {needed:,} queries, rows or users",
        "other_clicks": "the settings ask for clicks, and the release has no counts of any"
        if needed
        else f"the settings ask for no clicks, and the release has {_count(support, 'count')} of such",
        "other_order": f"rows are not by count and text, in {_count(support, 'place')}, which may tell of the log",
        "more_columns": f"rows of made-up users have {_count(support, 'column')} that no count is about",
        "odd_id": f"{_count(support, 'id')} of made-up users are none of the numbers from 1 on",
        "large_count": f"a query left with a count of {support:,}, and noise gives at most {needed:,} (row {place})",
        "large_click": f"a click left with a count of {support:,}, and noise gives at most {needed:,} (row {place})",
        "stray_click": f"a click belongs to no query of the release (row {place})",
        "unasked_query": f"a query was asked {behind} (row {place})",
        "unmade_click": f"a click was made {behind} (row {place})",
    }[kind]


def _count(n: int, noun: str) -> str:
    return f"1 {noun}" if n == 1 else f"{n:,} {noun}s"
