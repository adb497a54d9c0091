"""Rules for dates: a year or a month alone is none, nor is a day that everyone knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from queryveil.text.identifier_kinds import Found, IdentifierKind

_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:1\d|20)\d\d"
_END = r"(?![\w:%]|[.,/-]\d)"
_MONTH_DAY = re.compile(
    rf"(?<![\w-]){_MONTHS}[. ,-]{{1,2}}(?:the )?{_DAY}(?:,? {{0,2}}{_YEAR}|-{_YEAR}|,? '\d\d|,? \d\d$)?{_END}"
)
_DAY_MONTH = re.compile(
    rf"(?<![\w.,:/$-])(?:the )?{_DAY}(?: |-|\.|\. | of ){_MONTHS}\b\.?"
    rf"(?:[ ,-]{{0,2}}(?:{_YEAR}|'\d\d)|[ -]\d\d$)?{_END}"
)
_ISO = re.compile(
    rf"(?<![\w.-])(?:1[89]|20)\d\d([-/.])(?:1[0-2]|0?[1-9])\1(?:3[01]|[12]\d|0?[1-9])(?:t\d\d[\d:.z]{{0,20}})?{_END}"
)
_NUMBERS = re.compile(r"(?<![\w.,/$-])(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)(?![\w%]|[.,/-]\d)")
_COMPACT = re.compile(r"(?<![\w.,#$-])(?:19|20)\d\d(?:1[0-2]|0[1-9])(?:3[01]|[12]\d|0[1-9])(?![\w-])")
_LIFE = re.compile(
    r"\b(?:born|birthday|birth|dob|died|death|admitted|discharged)(?: (?:in|on|date))?:? "
    rf"({_MONTHS}\.?,? {_YEAR}|\d{{1,2}}/\d{{1,2}}){_END}"
)
# Days that stand for what happened or is kept on them.
_KNOWN = frozenset(
    (
        "jan 1", "feb 2", "feb 14", "mar 17", "apr 1", "apr 15", "apr 20", "may 1", "may 4", "may 5", "jun 19", "jul 4",
        "jul 14", "sep 11", "oct 31", "nov 5", "nov 11", "dec 24", "dec 25", "dec 31",
    )
)  # fmt: skip
_KNOWN_WITH_YEAR = frozenset(("sep 11 2001", "dec 7 1941", "jun 6 1944", "nov 22 1963", "jul 4 1776"))


def dates(text: str) -> Iterator[Found]:
    """Find dates that say more than the year."""
    for pattern, rule in ((_DAY_MONTH, "day and month"), (_MONTH_DAY, "month and day")):
        for match in pattern.finditer(text):
            if not _is_known(match.group()):
                yield _found(match, rule)
    for match in _ISO.finditer(text):
        yield _found(match, "year, month, day")
    for match in _NUMBERS.finditer(text):
        first, second, year = int(match[1]), int(match[3]), match[4]
        fits = 1 <= min(first, second) <= 12 and 1 <= max(first, second) <= 31
        fits = fits and (len(year) == 2 or 1700 <= int(year) < 2100)
        # Two dots and two digits are a version or a time of day, three times the same number a fertiliser.
        is_other = (match[2] == "." and len(year) == 2) or match[1] == match[3] == year
        if fits and not is_other and (first, second, year[-2:]) != (9, 11, "01"):
            yield _found(match, "numbers of a date")
    for match in _COMPACT.finditer(text):
        yield _found(match, "eight digits of a date")
    for match in _LIFE.finditer(text):
        start, end = match.span(1)
        yield Found(start=start, end=end, kind=IdentifierKind.DATE, rule="month of a life")


def _found(match: re.Match[str], rule: str) -> Found:
    return Found(start=match.start(), end=match.end(), kind=IdentifierKind.DATE, rule=rule)


def _is_known(date: str) -> bool:
    month = next(word[:3] for word in re.findall("[a-z]{3,}", date) if word not in ("the",))
    numbers = [int(number) for number in re.findall(r"\d+", date)]
    if len(numbers) == 1:
        return f"{month} {numbers[0]}" in _KNOWN
    return f"{month} {min(numbers)} {max(numbers)}" in _KNOWN_WITH_YEAR
