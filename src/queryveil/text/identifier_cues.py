"""Rules for numbers that the words before them explain: record, plan, account, licence, vehicle and device numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from queryveil.text.identifier_kinds import Found, IdentifierKind

# Each kind: what says it all, and what needs to be followed by number, id, no or #.
_CUES: dict[IdentifierKind, tuple[str, str]] = {
    IdentifierKind.SSN: (r"ssn|social security|my social|ss#", r"ss|social"),
    IdentifierKind.MEDICAL_RECORD: (
        r"mrn|mr ?#|(?:medical|patient|hospital) records?|lab accession|accession",
        r"patient|hospital|chart|record",
    ),
    IdentifierKind.PLAN: (
        r"insurance policy|blue (?:cross|shield) (?:policy|member)|beneficiary|hicn|mbi",
        r"member|membership|medicare|medicaid|health plan|insurance|policy|group|subscriber|plan",
    ),
    IdentifierKind.VEHICLE: (
        r"vin|vehicle identification|(?:license|licence|number) ?plates?(?: lookup)?|(?:license|licence) tag|plate",
        r"tag|registration|reg",
    ),
    IdentifierKind.LICENCE: (
        r"dl(?= ?[a-z]?\d[\d-]{6,30}(?!\w))"
        r"|driver'?s? licen[cs]e|driving licen[cs]e|passport|npi|dea|nursing licen[cs]e|contractor'?s? licen[cs]e"
        r"|medical licen[cs]e|notary licen[cs]e|(?:ca|tx|fl|ny|state) licen[cs]e|pilot'?s? (?:certificate|licen[cs]e)",
        r"dl|licen[cs]e|certificate|permit|bar",
    ),
    IdentifierKind.ACCOUNT: (
        r"account|acct|a/c|iban|routing|credit card|debit card|bank account|savings account|checking account|sort code",
        r"customer|user|userid|loan|invoice|order|card|client|login",
    ),
    IdentifierKind.DEVICE: (
        r"imei|serial|s/n|esn|meid|udid|iccid|mac address|device id|pacemaker serial",
        r"device|sim|pacemaker|sn",
    ),
    IdentifierKind.BIOMETRIC: (
        r"finger ?prints?(?: records?| scan)?|retinal? scan|voice ?print|iris scan|dna (?:sample|profile)|face id"
        r"|palm ?print|biometric",
        r"retina|iris|dna|face|biometric",
    ),
    IdentifierKind.NUMBER: (
        r"inmate|confirmation|pnr|record locator|docket|tracking",
        r"case|tracking|confirmation|badge|employee|student|claim|reference|ref|inmate|docket|ticket|booking|prisoner"
        r"|voucher|staff|account|file",
    ),
}  # fmt: skip
_SAID = r"(?:(?:numbers?|num|nr|no|id|code|card|is|was)\b\.?|#|:|=)"
_PART = r"[a-z]{0,12}\d[a-z\d]{0,40}"
# A value begins with a digit, or with a few letters before one, and goes on in groups that hold digits.
_VALUE = rf"(?:[a-z]{{1,4}}[ -])?{_PART}(?: {_PART}|[./:-][a-z\d]{{1,20}}){{0,8}}"
_PATTERNS = {
    kind: (
        re.compile(rf"(?<!\w)(?:{alone})(?P<said>(?: ?{_SAID}){{0,3}}) ?(?P<value>{_VALUE})(?!\w)"),
        re.compile(rf"(?<!\w)(?:{needing})(?P<said>(?: ?{_SAID}){{1,3}}) ?(?P<value>{_VALUE})(?!\w)"),
    )
    for kind, (alone, needing) in _CUES.items()
}
_YEARS = re.compile(r"(?:1[789]|20)\d\d(?:[ -](?:1[789]|20)\d\d)*")
_TRAILING = re.compile(r"[ -][a-z]{1,4}(?!\w)")
# Words that nobody types for anything but the number behind them.
_NEVER_ALONE = re.compile("confirmation|pnr|record locator|dna profile")
# A plate needs no more than its shape behind one of these: letters and digits, or those of Britain.
_PLATE = re.compile(
    r"(?<!\w)(?:tags?|(?:car|vehicle|auto) (?:reg|registration|tags?)|registration|reg|plates?)[ :#]{1,2}"
    r"(?P<value>[a-z]{3}[ -]\d{3,4}|\d{3,4}[ -][a-z]{3}|\d[a-z]{3}\d{3}|[a-z]{2}\d\d ?[a-z]{3})(?!\w)"
)
_ANY = re.compile(
    r"ssn|social|\bss\b|mrn|mr ?#|record|patient|hospital|chart|accession|member|medica|plan|insur|policy|group|subscri"
    r"|benefi|hicn|mbi|vin|plate|tag|reg|licen|driv|passport|npi|dea|pilot|dl|dea|certif|permit|bar|acc|a/c|iban|routing"
    r"|card|sort|custom|user|loan|invoice|order|client|login|imei|serial|s/?n|meid|udid|mac|device|sim|pacem|finger"
    r"|retina|voice|iris|dna|face|palm|biomet|inmate|confirm|docket|track|case|badge|employ|student|claim|ref|ticket"
    r"|booking|prison|vouch|staff|file|vehicle|notary|pnr|locator|blue"
)


def numbers_after_cues(text: str) -> Iterator[Found]:
    """Find values with digits right after the words that explain them."""
    if not _ANY.search(text):
        return
    for kind, patterns in _PATTERNS.items():
        for pattern in patterns:
            for match in pattern.finditer(text):
                start, end = match.span("value")
                if _YEARS.fullmatch(match["value"]):
                    continue
                is_said = bool(match["said"].strip(" :")) or _NEVER_ALONE.match(match.group()) is not None
                if kind is IdentifierKind.VEHICLE:
                    more = _TRAILING.match(text, end)
                    end, is_said = more.end() if more else end, True
                if not _is_value(text[start:end], is_said=is_said):
                    continue
                yield Found(start=start, end=end, kind=kind, rule=f"{kind} number")
    for match in _PLATE.finditer(text):
        start, end = match.span("value")
        yield Found(start=start, end=end, kind=IdentifierKind.VEHICLE, rule="vehicle number")


def _is_value(value: str, *, is_said: bool) -> bool:
    """Say whether this can be a number of someone: small numbers and models are not."""
    n_digits = sum(letter.isdigit() for letter in value)
    n_letters = sum(letter.isalpha() for letter in value)
    if is_said:
        return n_digits >= 3 or (n_digits + n_letters >= 5 and n_digits >= 2)
    return n_digits >= 4 or (n_digits >= 3 and n_letters >= 2)
