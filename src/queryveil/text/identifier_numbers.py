"""Rules for numbers that show by themselves what they are, and for long numbers that nothing explains."""

from __future__ import annotations

import re
from collections.abc import Iterator

from queryveil.text.identifier_kinds import Found, IdentifierKind

_SSN = re.compile(r"(?<![\w.-])(?:\d{3}-\d\d-\d{4}|\d{3} \d\d (?!19|20)\d{4})(?![\w-]|\.\d)")
_CARD = re.compile(r"(?<![\w.,-])[2-6](?:[ -]?\d){12,18}(?![\w-]|[.,]\d)")
_IBAN = re.compile(r"(?<!\w)[a-z]{2}\d\d(?: ?[a-z\d]{4}){2,7}(?: ?[a-z\d]{1,3})?(?!\w)")
_VIN = re.compile(r"(?<![\w-])[a-hj-npr-z\d]{17}(?![\w-])")
_MBI = re.compile(
    r"(?<!\w)[1-9][ac-hj-kmnp-rt-y][ac-hj-kmnp-rt-y\d]\d-?[ac-hj-kmnp-rt-y][ac-hj-kmnp-rt-y\d]\d-?[ac-hj-kmnp-rt-y]{2}\d\d(?!\w)"
)
_IMEI = re.compile(r"(?<![\w.,-])\d{2}-?\d{6}-?\d{6}-?\d(?![\w-])")
_UUID = re.compile(r"(?<![\w-])[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}(?![\w-])")
_PARCEL = re.compile(r"(?<!\w)1z ?[a-z\d]{3} ?[a-z\d]{3} ?\d{2} ?\d{4} ?\d{4}(?!\w)")
_HEX = re.compile(r"(?<!\w)(?=[a-f]{0,40}\d)[\da-f]{24,64}(?!\w)")
_RUN = re.compile(r"(?<![\w.,/$\u20ac\u00a3%-])\d{6,40}(?![\w%]|[.,/-]\d|-\w)")
_GROUPS = re.compile(r"(?<![\w.,/$-])\d{2,12}(?:[ -]\d{2,12}){1,6}(?![\w%]|[.,/-]\d)")
_SIX_DIGITS = re.compile(r"\d(?:[ -]?\d){5}")
_MIXED = re.compile(r"(?<![\w./-])(?=[a-z]{0,12}\d{7})[a-z]{0,12}\d{7,20}[a-z]{0,4}(?![\w-])")
_BOOK = re.compile(r"(?<![\w-])(?:97[89][ -]?)?(?:\d[ -]?){9}[\dx](?![\w-])")
_CAS = re.compile(r"(?<![\w-])\d{2,7}-\d\d-\d(?![\w-])")
_EXPLAINED = re.compile(
    r"\b(?:isbn(?:-?1[03])?|issn|upc|ean|gtin|asin|sku|part|parts|model|patent|patents|kb|bug|error|rfc|pmid|oclc|lccn|item|color|colour|hex"
    r"|version|build|hd|catalog|catalogue|stock|pi|cas|article|oem|nsn|ndc|formula)\b"
    r"(?: (?:numbers?|num|no))?[ #:.]{0,3}$"
)
_UNIT = re.compile(
    r" ?(?:dollars?|usd|euros?|pounds?|people|miles|km|feet|ft|years?|btu|watts?|volts?|hz|rpm|mah|lumens?|calories"
    r"|words|views|jobs|votes|acres|gallons?|bits?|bytes?|kb|mb|gb|rupees|yen|pesos|lbs?|rounds?|pieces|pcs|candlepower|btus)\b"
)
# Letters before the numbers of articles, bugs, stars and patents.
_CATALOGUES = ("kb", "rfc", "cve", "pmid", "pmc", "hip", "hd", "ngc", "usd", "oem")
_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_VALUES = dict(
    zip("abcdefghjklmnprstuvwxyz0123456789", (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10), *range(10)), strict=True)
)


def books(text: str) -> Iterator[tuple[int, int]]:
    """Give the places of numbers of books and chemicals, which identify no one."""
    for match in _BOOK.finditer(text):
        from stdnum import isbn  # noqa: PLC0415

        bare = re.sub("[ -]", "", match.group())
        # One in eleven telephone numbers checks as a book: hyphens must stand where books have them.
        is_said = "isbn" in text or len(bare) == 13 or match.group().count("-") == 3
        if is_said and isbn.is_valid(bare):
            yield match.span()
    for match in _CAS.finditer(text):
        digits = match.group().replace("-", "")
        if sum(i * int(d) for i, d in enumerate(reversed(digits[:-1]), 1)) % 10 == int(digits[-1]):
            yield match.span()


def checked_numbers(text: str) -> Iterator[Found]:
    """Find numbers by their shape and check digits: cards, bank accounts, vehicles, devices, parcels, plans."""
    from stdnum import iban, luhn  # noqa: PLC0415

    for match in _SSN.finditer(text):
        yield _found(match, IdentifierKind.SSN, "ssn")
    for match in _CARD.finditer(text):
        digits = re.sub("[ -]", "", match.group())
        if luhn.is_valid(digits) and not (len(digits) == 15 and digits[:2] not in ("34", "37")):
            yield _found(match, IdentifierKind.ACCOUNT, "card")
    for match in _IBAN.finditer(text):
        if iban.is_valid(match.group(), check_country=False):
            yield _found(match, IdentifierKind.ACCOUNT, "iban")
    for match in _VIN.finditer(text):
        n_digits = sum(map(str.isdigit, match.group()))
        # Cars that were not made for America have no check digit, but end in digits all the same.
        is_shaped = 5 <= n_digits <= 14 and match.group()[-4:].isdigit()
        if is_shaped or (n_digits >= 5 and is_vin(match.group())):
            yield _found(match, IdentifierKind.VEHICLE, "vin")
    for match in _IMEI.finditer(text):
        if luhn.is_valid(match.group().replace("-", "")):
            yield _found(match, IdentifierKind.DEVICE, "imei")
    shapes = (
        (_MBI, IdentifierKind.PLAN, "medicare number"),
        (_UUID, IdentifierKind.DEVICE, "uuid"),
        (_PARCEL, IdentifierKind.NUMBER, "parcel"),
        (_HEX, IdentifierKind.DEVICE, "long hexadecimal"),
    )
    for pattern, kind, rule in shapes:
        for match in pattern.finditer(text):
            if sum(map(str.isdigit, match.group())) >= 5:
                yield _found(match, kind, rule)


def long_numbers(text: str) -> Iterator[Found]:
    """Find numbers of six digits and more that are no amount, product, book or round figure."""
    if _SIX_DIGITS.search(text) is None:
        return
    for match in _RUN.finditer(text):
        if not _is_explained(text, match):
            yield _found(match, IdentifierKind.NUMBER, "long number")
    for match in _GROUPS.finditer(text):
        groups = re.split("[ -]", match.group())
        n_digits = sum(map(len, groups))
        are_years = all(re.fullmatch(r"(?:1[5-9]|20)\d\d", group) for group in groups)
        is_spaced = " " in match.group()
        if n_digits >= (12 if is_spaced else 9) and not are_years and not _is_explained(text, match):
            yield _found(match, IdentifierKind.NUMBER, "grouped number")
    for match in _MIXED.finditer(text):
        is_other = match.group().isdigit() or match.group().startswith(_CATALOGUES) or _is_explained(text, match)
        if not is_other:
            yield _found(match, IdentifierKind.NUMBER, "number with letters")


def is_vin(text: str) -> bool:
    """Say whether the ninth place of a vehicle's number checks the others.

    >>> is_vin("1m8gdm9axkp042788"), is_vin("1m8gdm9a1kp042788")
    (True, False)
    """
    check = sum(weight * _VALUES[letter] for weight, letter in zip(_WEIGHTS, text, strict=True)) % 11
    return text[8] == ("x" if check == 10 else str(check))


def _is_explained(text: str, match: re.Match[str]) -> bool:
    digits = match.group()
    is_round = digits.isdigit() and digits.endswith("000")
    before = _EXPLAINED.search(text, max(0, match.start() - 20), match.start())
    return is_round or before is not None or _UNIT.match(text, match.end()) is not None


def _found(match: re.Match[str], kind: IdentifierKind, rule: str) -> Found:
    return Found(start=match.start(), end=match.end(), kind=kind, rule=rule)
