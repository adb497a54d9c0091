"""Rules for addresses on the net: e-mail, URLs, IP and MAC addresses."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from queryveil.text.identifiers import _kernels
from queryveil.text.identifiers.table import Found, IdentifierKind, identifier_table

_EMAIL = re.compile(
    r"<?(?:mailto: ?)?(?<![\w.+%'-])[a-z0-9][\w.+%'-]{0,63}"
    r"@(?:[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6}|[a-z][a-z0-9-]{3,62}(?!\.))(?![\w@/:])>?"
)
_SPELT_OUT = re.compile(
    r"(?<!\w)[\w.-]{1,64} ?[(\[]?\bat\b[)\]]? ?\w{2,40} ?[(\[]?\bdot\b[)\]]? ?(?:com|net|org|edu|gov|info)\b"
)
_BRACKETED = re.compile(r"(?<!\w)[\w.+-]{1,64} ?[(\[]at[)\]] ?[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}(?!\w)")
_WITH_SCHEME = re.compile(r"(?<![a-z])(?:(?:https?|ht+ps?|hhtp|ftp|file):/{1,3}|https?//)([^\s\0\"'<>]{1,2000})")
_HOST = re.compile(
    r"(?<![\w@.:/-])(?:[\w.-]{1,64}:[^\s\0@/]{1,64}@)?((?:[a-z0-9][\w-]{0,62}\.){1,8}[a-z][a-z0-9-]{1,20})(?![\w@-])"
    r"(?::\d{1,5})?([/?#][^\s\0\"'<>]{0,2000})?"
)
_LONGEST_LABEL = 30
_NAMES = _kernels.FIRST | _kernels.SURNAME
_FRONT_PAGES = ("", "/", "/index.html", "/index.htm", "/home", "/index.php")
_OPEN_ENDINGS = ("gov", "mil", "edu", "ac", "gob", "gouv")
_IPV4 = re.compile(
    r"(?<![\w.-])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w-]|\.\d)(?::\d{1,5})?(?:/[^\s\0]{0,500})?(?!\w)"
)
_VERSIONED = re.compile(
    r"(?:\b(?:v|ver|version|versions|build|release|firmware|driver|drivers|update|patch|firefox|chrome|java|flash|player|"
    r"acrobat|reader|explorer|itunes|quicktime|kernel|bios|mysql|php|apache|server|messenger|safari|opera|office|"
    r"windows|oracle|nvidia|forceware|catalyst|directx|section|chapter|clause)[ .:]{0,2})$"
)
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-f:]{6,39}(?![\w:])")
_MAC = re.compile(
    r"(?<![\w:.-])(?:[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2})(?![\w:-])"
)


def emails(text: str) -> Iterator[Found]:
    """Find e-mail addresses, also spelt out with at and dot."""
    for may_be_there, pattern, rule in (
        ("@" in text, _EMAIL, "email"),
        ("at)" in text or "at]" in text, _BRACKETED, "email spelt out"),
        ("dot" in text, _SPELT_OUT, "email spelt out"),
    ):
        for match in pattern.finditer(text) if may_be_there else ():
            yield Found.of(match, IdentifierKind.EMAIL, rule)


def urls(text: str) -> Iterator[Found]:
    """Find URLs: with a scheme, with something behind the host, or with a host that is not a well-known site.

    A bare domain stays where it only says which site someone wants: well-known sites, those of governments and
    schools, and those whose name is made of English words.
    """
    if "//" in text or ":/" in text:
        for match in _WITH_SCHEME.finditer(text):
            host = re.split("[/?#]", match[1], maxsplit=1)[0]
            if not (_is_known(host) and match[1].removeprefix(host) in _FRONT_PAGES):
                yield Found.of(match, IdentifierKind.URL, "url")
    for match in _HOST.finditer(text):
        host, path = match.group(1), match.group(2) or ""
        if _is_host(host, is_sure=bool(path)) and not (_is_open(host) and path in _FRONT_PAGES and "@" not in match[0]):
            yield Found.of(match, IdentifierKind.URL, "url with a path" if path else "host")


def machines(text: str) -> Iterator[Found]:
    """Find addresses of network cards and IP addresses; four numbers after the name of a program are its version."""
    for match in _MAC.finditer(text):
        yield Found.of(match, IdentifierKind.DEVICE, "mac address")
    if text.count(".") >= 3:
        for match in _IPV4.finditer(text):
            start = match.start()
            if not match[0].startswith("0.") and not _VERSIONED.search(text, max(0, start - 14), start):
                yield Found.of(match, IdentifierKind.IP, "ip v4")
    if text.count(":") >= 2:
        for match in _IPV6.finditer(text):
            # Two short words with a double colon between them are code.
            is_long = match.group().count(":") >= 3 or re.search("[0-9a-f]{4}", match.group())
            with suppress(AddressValueError):
                if is_long and IPv6Address(match[0]):
                    yield Found.of(match, IdentifierKind.IP, "ip v6")


@cache
def _extractor() -> Any:
    # The list of endings that comes with the package: no network, no files written.
    from tldextract import TLDExtract  # noqa: PLC0415

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def _is_host(host: str, *, is_sure: bool) -> bool:
    """Return whether a word with dots is a host: files, versions and slips of the keyboard are not."""
    if host.rpartition(".")[2] in identifier_table().endings:
        return True
    return host.startswith("www.") and (is_sure or bool(_extractor()(host).suffix))


def _is_open(host: str) -> bool:
    """Return whether a host names a site that everyone may look for."""
    if _is_known(host):
        return True
    parts = _extractor()(_without_service(host))
    if parts.is_private or not parts.suffix or not parts.domain:
        return False
    if parts.suffix.split(".")[0] in _OPEN_ENDINGS:
        return "." not in parts.subdomain
    return not parts.subdomain and _is_plain(parts.domain)


def _is_known(host: str) -> bool:
    return _without_service(host) in identifier_table().sites


def _without_service(host: str) -> str:
    labels = host.split(".")
    while len(labels) > 2 and labels[0] in identifier_table().services:
        del labels[0]
    return ".".join(labels)


def _is_plain(label: str) -> bool:
    """Return whether a label is made of at most three English words that are no names."""
    if len(label) > _LONGEST_LABEL:
        return False
    reached = {0: 0}
    for start in range(len(label)):
        if start in reached and reached[start] < 3:
            for end in range(start + 3, len(label) + 1):
                if _is_plain_word(label[start:end]):
                    reached[end] = min(reached.get(end, 3), reached[start] + 1)
    return len(label) in reached


def _is_plain_word(word: str) -> bool:
    token = identifier_table().tokens.get(word.strip("-"), 0)
    return bool(token & _kernels.WORD) and not token & _NAMES and word != "family"


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
                if _is_value(text[start:end], is_said=is_said):
                    yield Found(start=start, end=end, kind=kind, rule=f"{kind} number")
    for match in _PLATE.finditer(text):
        yield Found.of(match, IdentifierKind.VEHICLE, "vehicle number", group="value")


def _is_value(value: str, *, is_said: bool) -> bool:
    """Return whether this can be a number of someone: small numbers and models are not."""
    n_digits = sum(letter.isdigit() for letter in value)
    n_letters = sum(letter.isalpha() for letter in value)
    if is_said:
        return n_digits >= 3 or (n_digits + n_letters >= 5 and n_digits >= 2)
    return n_digits >= 4 or (n_digits >= 3 and n_letters >= 2)
