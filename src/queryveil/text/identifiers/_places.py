"""Rules for places below a state: streets, zip codes, cities with their state, counties, small towns.

A city alone stays, or hardly a query about a place would be left; only a name that no place but small towns has goes.
"""

import re
from collections.abc import Iterator, Sequence

from queryveil.text.identifiers._kernels import CITY_END, FIRST, PLACE_CUE, SMALL_TOWN, STATE_END, SURNAME, SURNAME_WORD
from queryveil.text.identifiers.table import MASK, Found, IdentifierKind, Word, identifier_table

_NUMBER = r"(?<![\w.,$#-])\d{1,5}(?:-\d{1,4}|-?[a-d])?"
_UNIT = r"(?:,? (?:apt|apartment|suite|ste|unit|flat|floor|#)\.? ?#?[a-z]?\d{0,5}[a-z]?(?!\w))?"
_NAME = r"(?:(?!(?:st|ave|dr)\b)[a-z\d'.]{1,24}[ ]){1,4}?"
_SURE = r"(?:street|avenue|ave|av|road|rd|lane|ln|boulevard|blvd|terrace|parkway|pkwy|crescent|turnpike|hwy|highway)"
_DOUBTFUL = r"(?:st|dr|drive|court|ct|place|pl|circle|cir|way|square|close|plaza|trail|trl|loop|row|pike|ter)"
_STREET = re.compile(
    rf"{_NUMBER},? (?!\d+ ){_NAME}(?P<type>{_SURE}|{_DOUBTFUL})"
    rf"\b\.?(?: {_SURE}\b)?(?:(?<=road) \d{{1,4}}\b)?{_UNIT}"
)
_UNIT_BEFORE = re.compile(
    r"(?<!\w)(?:(?:apt|apartment|suite|ste|unit|flat) ?#?(?:[a-z]?\d{1,4}[a-z]?|[a-z])"
    r"|\d{1,2}(?:st|nd|rd|th) floor),? $"
)
_EUROPEAN = re.compile(
    r"(?<!\w)[a-z\u00df]{3,30}(?:stra(?:ss|\u00df)e|str\.|gasse|weg|platz|straat|laan|gatan) ?\d{1,4}[a-z]?(?!\w)"
    r"|(?<![\w.])\d{1,4},? (?:bis )?(?:rue|avenue|boulevard|place|chemin|quai) (?:d[eu]s? |l[ae] |d'|l'){0,2}"
    r"[a-z'-]{3,30}(?: [a-z'-]{3,30})?"
    r"|(?<!\w)(?:calle|via|rua|avenida|piazza|plaza) (?:de |d[aeo]s? |del |la |los |las |della ){0,2}"
    r"[a-z]{3,30},? \d{1,4}(?!\w)"
)
_BOX = re.compile(
    r"(?<!\w)(?:p\.? ?o\.? ?box|post office box|(?:r\.?r\.?|hc|rural route|route|rte|rt|hwy|highway) ?\d{1,4},? box)"
    r" ?#?\d{1,6}(?!\w)"
)
_ZIP_PLUS = re.compile(r"(?<![\w.,$-])\d{5}-\d{4}(?![\w-])")
_ZIP = re.compile(r"(?<![\w.,$#-])\d{5}(?![\w%]|[.,-]\d|-\w)")
_BRITISH = re.compile(
    r"(?<![\w-])(?:a[bl]|b[abdhlnrst]?|c[abfhmortvw]|d[adeghlnty]|e[chnx]?|f[ky]|g[luy]?|h[adgprsux]|i[gmpv]|je|k[atwy]|"
    r"l[adelnsu]?|m[ekl]?|n[egnprw]?|o[lx]|p[aehlor]|r[ghm]|s[aegklmnoprstwy]?|t[adfnqrsw]|ub|w[acdfnrsv]?|yo|ze)"
    r"\d[a-z\d]? ?\d(?!gb|tb|wd|hp|ft|th|st|nd|rd|lb|pk|pt|ah|db|ln)[abd-hjlnp-uw-z]{2}(?![\w-])"
)
_CANADIAN = re.compile(r"(?<![\w-])[abceghj-nprstvxy]\d[abceghj-nprstv-z][ -]?\d[abceghj-nprstv-z]\d(?![\w-])")
_DIGIT_LETTER = re.compile(r"\d[a-z]")
_PLACES = ((_ZIP_PLUS, "zip code"), (_EUROPEAN, "street"), (_BOX, "post box"))
_CODES = ((_BRITISH, "british code"), (_CANADIAN, "canadian code"))
_GAP = re.compile(r"[ .]*,?[ .]*")
_JOINED = re.compile(r"[ .'-]{1,2}")


def streets(text: str) -> Iterator[Found]:
    """Find houses in streets, post boxes, zip codes of nine digits, and the postal codes of Britain and Canada."""
    for match in _STREET.finditer(text):
        between = re.findall(r"[a-z\d]+", text[match.start() : match.start("type")])[1:]
        is_ordinal = re.fullmatch(r"\d+(?:st|nd|rd|th)", between[0]) is not None
        if not identifier_table().no_street.intersection(between) and (is_ordinal or not between[0].isdigit()):
            unit = _UNIT_BEFORE.search(text, max(0, match.start() - 20), match.start())
            yield _found(unit.start() if unit else match.start(), match.end(), "street")
    has_code = _DIGIT_LETTER.search(text) is not None
    for pattern, rule in _PLACES + _CODES if has_code else _PLACES:
        for match in pattern.finditer(text):
            yield _found(match.start(), match.end(), rule)


def zip_codes(text: str, words: Sequence[Word]) -> Iterator[Found]:
    """Find zip codes: five digits alone, behind a state, or beside words that go with them."""
    table = identifier_table()
    for match in _ZIP.finditer(text):
        digits = match.group()
        alone = text.strip(" \"'+.,") == digits and not digits.endswith("000")
        before = [word for word in words if word.end <= match.start()]
        state = before and before[-1].key in table.states and _GAP.fullmatch(text, before[-1].end, match.start())
        # A place has been found already where the text before is masked.
        taken = text[: match.start()].rstrip(" ,.").endswith(MASK)
        asked = any(word.key in table.zip_cues for word in words) and not digits.endswith("000")
        if alone or state or taken or asked:
            yield _found(match.start(), match.end(), "zip code")


def cities(text: str, words: Sequence[Word]) -> Iterator[Found]:
    """Find cities that their state follows, by its name or its two letters."""
    for i, word in enumerate(words):
        if not word.token & STATE_END:
            continue
        for n_words in (2, 1, 3):
            name = " ".join(part.key for part in words[i - n_words + 1 : i + 1])
            if n_words <= i and name in identifier_table().states:
                city = _city_before(text, words, i - n_words + 1, state=identifier_table().states[name])
                if city is not None and (n_words > 1 or _is_state(text, words, i)):
                    yield _found(city, word.end, "city and state")
                    break


def _city_before(text: str, words: Sequence[Word], at: int, *, state: str) -> int | None:
    """Return where the city begins that ends before word `at`; the longest name counts."""
    if not at or not words[at - 1].token & CITY_END or not _GAP.fullmatch(text, words[at - 1].end, words[at].start):
        return None
    for n_words in (4, 3, 2, 1):
        first = at - n_words
        if first >= 0 and all(_JOINED.fullmatch(text, words[j].end, words[j + 1].start) for j in range(first, at - 1)):
            name = " ".join(word.key for word in words[first:at])
            if state in identifier_table().cities.get(name, ()):
                return words[first].start
    return None


def _is_state(text: str, words: Sequence[Word], at: int) -> bool:
    """Return whether what may be a word or a surname stands as a state does."""
    word = words[at]
    has_comma = "," in text[words[at - 1].end : word.start]
    if words[at - 1].token & FIRST and word.token & (SURNAME | SURNAME_WORD) and len(word.key) > 2:
        return has_comma
    if word.key not in identifier_table().doubtful_states:
        return True
    at_end = not text[word.end :].strip(" .,\"'")
    return has_comma or at_end or re.match(r" *\d{5}(?!\d)", text[word.end :]) is not None


def counties(_text: str, words: Sequence[Word]) -> Iterator[Found]:
    """Find counties by name."""
    for i, word in enumerate(words):
        if word.token & PLACE_CUE:
            for n_words in (3, 2, 1):
                first = i - n_words
                if first >= 0 and " ".join(each.key for each in words[first:i]) in identifier_table().counties:
                    yield _found(words[first].start, word.end, "county")
                    break


def small_towns(_text: str, words: Sequence[Word]) -> Iterator[Found]:
    """Find names that only small towns have, unless they are a school's."""
    for i, word in enumerate(words):
        if word.token & SMALL_TOWN and not (i + 1 < len(words) and words[i + 1].key in identifier_table().institutions):
            yield _found(word.start, word.end, "small town")


def _found(start: int, end: int, rule: str) -> Found:
    return Found(start=start, end=end, kind=IdentifierKind.PLACE, rule=rule)
