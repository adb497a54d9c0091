"""What is wrong with noisy counts, in words."""

from __future__ import annotations

UNIT = 1e-15
"""In a witness, epsilons and deltas are whole numbers of this."""


def counts_in_words(kind: str, *, support: int, needed: int, rows: tuple[int, ...]) -> str:
    """Say in one line what a witness of noisy counts points at.

    >>> counts_in_words("small_count", support=3, needed=12, rows=(7,))
    'a query left with a count of 3, and 12 is the least that may (row 7)'
    """
    place = rows[0] if rows else 0
    there, allowed = f"{support * UNIT:.4g}", f"{needed * UNIT:.4g}"
    return {
        "no_noise": "counts leave, and the manifest does not say what noise was added to them",
        "odd_noise": f"part {place} of the noise has values that its mechanism cannot have",
        "weak_noise": f"part {place} of the noise has a delta of {there} at its epsilon, and {allowed} is stated",
        "parts_epsilon": f"the epsilons of all noise make {there}, and {allowed} is promised",
        "parts_delta": f"the deltas of all noise make {there}, and {allowed} is promised",
        "exact_count": f"the manifest tells of the log itself, without noise, in {support:,} places",
        "small_count": f"a query left with a count of {support:,}, and {needed:,} is the least that may (row {place})",
        "small_click": f"a click left with a count of {support:,}, and {needed:,} is the least that may (row {place})",
        "untidy_query": f"a query is not in lower case with single blanks, which may mark a person (row {place})",
        "stray_click": f"a click belongs to no query of the release (row {place})",
        "unasked_query": f"a query was asked by {_users(support)} of the original, {needed:,} are needed (row {place})",
        "unmade_click": f"a click was made by {_users(support)} of the original, {needed:,} are needed (row {place})",
    }[kind]


def _users(n: int) -> str:
    return "1 user" if n == 1 else f"{n:,} users"
