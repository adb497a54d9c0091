"""Rules for numbers that show by themselves what they are, and for long numbers that nothing explains."""

import re
from collections.abc import Iterator
from typing import Any

from queryveil.text.identifiers.table import Found, IdentifierKind

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
    """Return the places of numbers of books and chemicals, which identify no one."""
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
        yield Found.of(match, IdentifierKind.SSN, "ssn")
    for match in _CARD.finditer(text):
        digits = re.sub("[ -]", "", match.group())
        if luhn.is_valid(digits) and not (len(digits) == 15 and digits[:2] not in ("34", "37")):
            yield Found.of(match, IdentifierKind.ACCOUNT, "card")
    for match in _IBAN.finditer(text):
        if iban.is_valid(match.group(), check_country=False):
            yield Found.of(match, IdentifierKind.ACCOUNT, "iban")
    for match in _VIN.finditer(text):
        n_digits = sum(map(str.isdigit, match.group()))
        # Cars that were not made for America have no check digit, but end in digits all the same.
        is_shaped = 5 <= n_digits <= 14 and match.group()[-4:].isdigit()
        if is_shaped or (n_digits >= 5 and is_vin(match.group())):
            yield Found.of(match, IdentifierKind.VEHICLE, "vin")
    for match in _IMEI.finditer(text):
        if luhn.is_valid(match.group().replace("-", "")):
            yield Found.of(match, IdentifierKind.DEVICE, "imei")
    shapes = (
        (_MBI, IdentifierKind.PLAN, "medicare number"),
        (_UUID, IdentifierKind.DEVICE, "uuid"),
        (_PARCEL, IdentifierKind.NUMBER, "parcel"),
        (_HEX, IdentifierKind.DEVICE, "long hexadecimal"),
    )
    for pattern, kind, rule in shapes:
        for match in pattern.finditer(text):
            if sum(map(str.isdigit, match.group())) >= 5:
                yield Found.of(match, kind, rule)


def long_numbers(text: str) -> Iterator[Found]:
    """Find numbers of six digits and more that are no amount, product, book or round figure."""
    if _SIX_DIGITS.search(text) is None:
        return
    for match in _RUN.finditer(text):
        if not _is_explained(text, match):
            yield Found.of(match, IdentifierKind.NUMBER, "long number")
    for match in _GROUPS.finditer(text):
        groups = re.split("[ -]", match.group())
        n_digits = sum(map(len, groups))
        are_years = all(re.fullmatch(r"(?:1[5-9]|20)\d\d", group) for group in groups)
        is_spaced = " " in match.group()
        if n_digits >= (12 if is_spaced else 9) and not are_years and not _is_explained(text, match):
            yield Found.of(match, IdentifierKind.NUMBER, "grouped number")
    for match in _MIXED.finditer(text):
        is_other = match.group().isdigit() or match.group().startswith(_CATALOGUES) or _is_explained(text, match)
        if not is_other:
            yield Found.of(match, IdentifierKind.NUMBER, "number with letters")


def is_vin(text: str) -> bool:
    """Return whether the ninth place of a vehicle's number checks the others.

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
_PHONE_RUN = re.compile(r"(?<![\w.,$#-])\+?1?(?:[2-9]\d\d[2-9]\d{6}|555\d{7})(?![\w-]|[.,]\d)")
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
    for pattern, rule in ((_AMERICAN, "american number"), (_PHONE_RUN, "ten digits")):
        yield from ((*match.span(), rule) for match in pattern.finditer(text))
    for match in _NATIONAL.finditer(text):
        number = match.group()
        is_run = len(number) in (10, 11) and number.isdigit()
        if (is_run or re.search(r"\d[ ./()-]", number)) and _is_possible(number, region="GB"):
            yield *match.span(), "number with a leading zero"
    for match in _LOCAL.finditer(text):
        is_range = match.group().endswith("000") or (match.group()[2:4] == "0-" and match.group().endswith("00"))
        if match.group() not in _SUNG and not is_range and not _MEASURE.match(text, match.end()):
            yield *match.span(), "local number"
    for match in _SPACED_LOCAL.finditer(text):
        yield match.start(1), match.end(), "local number"


def _is_possible(number: str, *, region: str | None) -> bool:
    import phonenumbers  # noqa: PLC0415

    library: Any = phonenumbers
    try:
        return bool(library.is_possible_number(library.parse(number, region)))
    except library.NumberParseException:
        return False


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
                yield Found.of(match, IdentifierKind.DATE, rule)
    for pattern, rule in ((_ISO, "year, month, day"), (_COMPACT, "eight digits of a date")):
        for match in pattern.finditer(text):
            yield Found.of(match, IdentifierKind.DATE, rule)
    for match in _NUMBERS.finditer(text):
        first, second, year = int(match[1]), int(match[3]), match[4]
        fits = 1 <= min(first, second) <= 12 and 1 <= max(first, second) <= 31
        fits = fits and (len(year) == 2 or 1700 <= int(year) < 2100)
        # Two dots and two digits are a version or a time of day, three times the same number a fertiliser.
        is_other = (match[2] == "." and len(year) == 2) or match[1] == match[3] == year
        if fits and not is_other and (first, second, year[-2:]) != (9, 11, "01"):
            yield Found.of(match, IdentifierKind.DATE, "numbers of a date")
    for match in _LIFE.finditer(text):
        yield Found.of(match, IdentifierKind.DATE, "month of a life", group=1)


def _is_known(date: str) -> bool:
    month = next(word[:3] for word in re.findall("[a-z]{3,}", date) if word != "the")
    numbers = [int(number) for number in re.findall(r"\d+", date)]
    if len(numbers) == 1:
        return f"{month} {numbers[0]}" in _KNOWN
    return f"{month} {min(numbers)} {max(numbers)}" in _KNOWN_WITH_YEAR
