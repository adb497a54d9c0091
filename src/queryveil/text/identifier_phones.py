"""Rules for telephone and fax numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from queryveil.text.identifier_kinds import Found, IdentifierKind

_EXTENSION = r"(?: ?,? ?(?:ext|x|extension)\.? ?\d{1,6})?"
_TEL = r"(?:\btel(?:ephone)?[:. ]{1,2}|\bphone: ?)?"
_AMERICAN = re.compile(
    rf"{_TEL}(?<![\w.-])(?:\+?1[ .-]?)?(?:\([2-9]\d\d\)[ -]?|[2-9]\d\d ?[ ./-] ?)\d{{3}}[ .-]?\d{{4}}"
    rf"{_EXTENSION}(?!\w|[.-]\d)"
)
_LOCAL = re.compile(rf"(?<![\w.,$-])[1-9]\d\d-\d{{4}}{_EXTENSION}(?![\w%]|[.,-]\d)")
_SPACED_LOCAL = re.compile(
    rf"(?:\b(?:phone|tel|cell|call|fax|mobile)\b[^\d]{{1,12}}|(?<!\w)(?=555))([2-9]\d\d[ .]\d{{4}}){_EXTENSION}(?!\w)"
)
_RUN = re.compile(r"(?<![\w.,$#-])\+?1?(?:[2-9]\d\d[2-9]\d{6}|555\d{7})(?![\w-]|[.,]\d)")
_ABROAD = re.compile(
    r"(?<!\w)(?:\+|00 ?)[1-9](?:[ .()/-]{0,2}\d){6,14}(?!\w)"
    r"|(?<![\w.,$-])(?:44|49|33|353|61|91|81|39|34|31)[ -]\d(?:[ -]?\d){7,10}(?!\w)"
)
_NATIONAL = re.compile(r"(?<![\w.,$#-])(?:\(0\d{1,4}\)|0\d{1,4})(?:[ ./-]{0,2}\d){6,9}(?![\w]|[.,-]\d)")
_SEVEN_DIGITS = re.compile(r"(?:\d[^\da-z]{0,3}){7}")
_FAX = re.compile(r"\b(?:tele)?fax\b")
_NOT_PHONES = re.compile(r"\b(?:isbn|upc|ean|part|model|sku|patent|asin|catalog|item|gtin|oclc)\b[ #:.no]{0,5}$")
_MEASURE = re.compile(r" ?(?:rpm|watts?|btu|hp|cc|mm|ml|kg|lbs?|miles|km|dollars|usd|calories|words|people|bc|ad)\b")
# Songs are looked for by it.
_SUNG = frozenset(("867-5309", "634-5789"))


def phones(text: str) -> Iterator[Found]:
    """Find telephone numbers; where the query speaks of a fax they are fax numbers."""
    if _SEVEN_DIGITS.search(text) is None:
        return
    kind = IdentifierKind.FAX if _FAX.search(text) else IdentifierKind.PHONE
    taken: list[tuple[int, int]] = []
    for start, end, rule in _candidates(text):
        is_product = _NOT_PHONES.search(text, max(0, start - 14), start) is not None
        if not is_product and not any(start < other_end and other < end for other, other_end in taken):
            taken.append((start, end))
            yield Found(start=start, end=end, kind=kind, rule=rule)


def _candidates(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _ABROAD.finditer(text):
        if _is_possible("+" + match.group().lstrip("+0 "), region=None):
            yield *match.span(), "number with a country's code"
    for match in _AMERICAN.finditer(text):
        yield *match.span(), "american number"
    for match in _RUN.finditer(text):
        yield *match.span(), "ten digits"
    for match in _NATIONAL.finditer(text):
        if (re.search(r"\d[ ./()-]", match.group()) and _is_possible(match.group(), region="GB")) or _is_run(
            match.group()
        ):
            yield *match.span(), "number with a leading zero"
    for match in _LOCAL.finditer(text):
        is_range = match.group().endswith("000") or (match.group()[2:4] == "0-" and match.group().endswith("00"))
        if match.group() not in _SUNG and not is_range and not _MEASURE.match(text, match.end()):
            yield *match.span(), "local number"
    for match in _SPACED_LOCAL.finditer(text):
        yield match.start(1), match.end(), "local number"


def _is_run(number: str) -> bool:
    return len(number) in (10, 11) and number.isdigit() and _is_possible(number, region="GB")


def _is_possible(number: str, *, region: str | None) -> bool:
    import phonenumbers  # noqa: PLC0415

    library: Any = phonenumbers
    try:
        return bool(library.is_possible_number(library.parse(number, region)))
    except library.NumberParseException:
        return False
