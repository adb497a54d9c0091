"""Rules for addresses on the net: e-mail, URLs, IP and MAC addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from queryveil.kernels.identifier_classes import FIRST, SURNAME, WORD
from queryveil.text.identifier_kinds import Found, IdentifierKind
from queryveil.text.identifier_table import identifier_table

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
_NAMES = FIRST | SURNAME
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
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield _found(match, IdentifierKind.EMAIL, "email")
    if "at)" in text or "at]" in text:
        for match in _BRACKETED.finditer(text):
            yield _found(match, IdentifierKind.EMAIL, "email spelt out")
    if "dot" in text:
        for match in _SPELT_OUT.finditer(text):
            yield _found(match, IdentifierKind.EMAIL, "email spelt out")


def urls(text: str) -> Iterator[Found]:
    """Find URLs: with a scheme, with something behind the host, or with a host that is not a well-known site.

    A bare domain stays where it only says which site someone wants: well-known sites, those of governments and
    schools, and those whose name is made of English words.
    """
    if "//" in text or ":/" in text:
        for match in _WITH_SCHEME.finditer(text):
            host, path = _split(match.group(1))
            if not (_is_known(host) and path in _FRONT_PAGES):
                yield _found(match, IdentifierKind.URL, "url")
    for match in _HOST.finditer(text):
        host, path = match.group(1), match.group(2) or ""
        if _is_host(host, is_sure=bool(path)) and not (_is_open(host) and path in _FRONT_PAGES and "@" not in match[0]):
            yield _found(match, IdentifierKind.URL, "url with a path" if path else "host")


def ips(text: str) -> Iterator[Found]:
    """Find IP addresses; four numbers after the name of a program are its version."""
    if text.count(".") >= 3:
        for match in _IPV4.finditer(text):
            if not match.group().startswith("0.") and not _VERSIONED.search(
                text, max(0, match.start() - 14), match.start()
            ):
                yield _found(match, IdentifierKind.IP, "ip v4")
    if text.count(":") >= 2:
        for match in _IPV6.finditer(text):
            # Two short words with a double colon between them are code.
            is_long = match.group().count(":") >= 3 or re.search("[0-9a-f]{4}", match.group())
            if is_long and _is_ipv6(match.group()):
                yield _found(match, IdentifierKind.IP, "ip v6")


def macs(text: str) -> Iterator[Found]:
    """Find the hardware addresses of network cards."""
    for match in _MAC.finditer(text):
        yield _found(match, IdentifierKind.DEVICE, "mac address")


def _found(match: re.Match[str], kind: IdentifierKind, rule: str) -> Found:
    return Found(start=match.start(), end=match.end(), kind=kind, rule=rule)


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def _split(rest: str) -> tuple[str, str]:
    at = re.search(r"[/?#]", rest)
    return (rest, "") if at is None else (rest[: at.start()], rest[at.start() :])


@cache
def _extractor() -> Any:
    # The list of endings that comes with the package: no network, no files written.
    from tldextract import TLDExtract  # noqa: PLC0415

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def _is_host(host: str, *, is_sure: bool) -> bool:
    """Say whether a word with dots is a host: files, versions and slips of the keyboard are not."""
    ending = host.rpartition(".")[2]
    if ending not in identifier_table().endings and not (is_sure and host.startswith("www.")):
        return host.startswith("www.") and bool(_extractor()(host).suffix)
    return True


def _is_open(host: str) -> bool:
    """Say whether a host names a site that everyone may look for."""
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
    """Say whether a label is made of at most three English words that are no names."""
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
    return bool(token & WORD) and not token & _NAMES and word != "family"
