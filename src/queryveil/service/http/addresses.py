"""Where the service listens, with which certificate, the token that its clients show, and what they may take."""

import ipaddress
import os
import ssl
import stat
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from queryveil.errors import BadFile, BadParameter
from queryveil.settings import check_settings, setting

_limit = partial(setting, panel="Limits of HTTP", hidden=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of a server, each a setting.

    A connection beyond the limits takes the place of one that waits: for a head first, then between two requests, then
    for a body. Requests at work are never ended for others.

    >>> HttpLimits(max_requests=0)
    Traceback (most recent call last):
    queryveil.errors.BadParameter: max_requests must be a whole number from 1 to 100000, got 0
    """

    max_connections: int = _limit(1000, at_least=1, at_most=1_000_000, help="Connections at once, of all addresses.")
    max_per_address: int = _limit(250, at_least=1, at_most=1_000_000, help="Connections at once, of one address.")
    max_requests: int = _limit(256, at_least=1, at_most=100_000, help="Posts at work at once.")
    max_header_bytes: int = _limit(16_384, at_least=1024, at_most=1 << 20, help="Bytes of a request's head.")
    header_seconds: float = _limit(10.0, above=0, at_most=3600, help="Until a head is complete.")
    body_seconds: float = _limit(60.0, above=0, at_most=3600, help="Until a body has come, or an answer is read.")
    idle_seconds: int = _limit(60, at_least=1, at_most=3600, help="Between two requests.")
    max_body_bytes: int = _limit(16 << 20, at_least=1024, at_most=1 << 30, help="Bytes of a body, also when unpacked.")
    max_lines: int = _limit(200_000, at_least=1, at_most=100_000_000, help="Lines of a body.")
    max_gzip_members: int = _limit(1000, at_least=1, at_most=100_000, help="Members of a gzip body.")
    max_gzip_ratio: int = _limit(200, at_least=2, at_most=2000, help="Unpacked bytes a byte, from 1 MB on.")
    wrong_tokens: int = _limit(20, at_least=1, at_most=1_000_000, help="Of an address, until it has to wait.")

    def __post_init__(self) -> None:
        check_settings(self)


TOKEN_VARIABLE = "QUERYVEIL_TOKEN"
"""The environment variable of the token, where no file is named."""
_MIN_TOKEN_BYTES = 16
_LOOPBACK_NAMES = ("localhost", "localhost.")
_A_TOKEN = "a token is one ASCII word of at least 16 letters, such as openssl rand -hex 32 gives"
_ALLOWED = "http://HOST:PORT, http://HOST:PORT?token=FILE, or https://HOST:PORT?token=FILE&cert=FILE&key=FILE"


def check_private(path: Path) -> None:
    """Raise if others than its owner can read or write a secret file; a group may read one that root owns."""
    try:
        found = path.stat()
    except OSError as error:
        raise BadFile(str(path), f"it cannot be read: {error.strerror}") from None
    allowed = stat.S_IRWXU | (stat.S_IRGRP if found.st_uid == 0 != os.geteuid() else 0)
    if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & ~allowed:
        raise BadFile(str(path), "others can read or write this secret; chmod 600 it, or make a new one")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """A certificate, with those between it and a known authority behind it, and its key, both in PEM."""

    cert: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """Return what TLS needs; raise if a file is wrong, or if others can read the key."""
        for path, what in ((self.cert, "certificate"), (self.key, "key")):
            try:
                path.read_bytes()
            except OSError as error:
                raise BadFile(str(path), f"the {what} cannot be read: {error.strerror}") from None
        check_private(self.key)
        asked: list[bool] = []

        def ask() -> str:
            # OpenSSL would ask at the terminal.
            asked.append(True)
            return "none"

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(self.cert)
        except ssl.SSLError:
            raise BadFile(str(self.cert), "this is no certificate in PEM; name the file with --tls-cert") from None
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.cert, self.key, password=ask)
        except ssl.SSLError as error:
            reason = "this is no key in PEM; name the file with --tls-key"
            if asked:
                reason = "this key has a passphrase; write it without one, for its owner alone"
            elif error.reason == "KEY_VALUES_MISMATCH":
                reason = f"this is not the key of {self.cert.name}; name the one that belongs to it"
            raise BadFile(str(self.key), reason) from None
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host, a port (0: any free one), the token that clients must show, if any, TLS, if wanted, and limits.

    >>> Address.parse("http://127.0.0.1:8080")
    Address(host='127.0.0.1', port=8080)
    """

    host: str = "127.0.0.1"
    port: int = 8080
    token: bytes | None = field(default=None, repr=False)
    tls: TlsFiles | None = field(default=None, repr=False)
    limits: HttpLimits = field(default_factory=HttpLimits, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise BadParameter("port", self.port, allowed="from 0 to 65535")

    @classmethod
    def parse(cls, url: str, *, limits: HttpLimits | None = None) -> Self:
        """Read `http://HOST:PORT`, also with `?token=FILE`, and with https `cert=FILE` and `key=FILE`."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise BadParameter("address", "something else", allowed=_ALLOWED) from None
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        files = {"cert", "key"} if parts.scheme == "https" else set[str]()
        is_odd = parts.path not in ("", "/") or parts.fragment or parts.username is not None
        is_odd = is_odd or options.keys() - {"token"} != files
        if parts.scheme not in ("http", "https") or host is None or port is None or is_odd:
            # Privacy: what was typed may hold a password.
            raise BadParameter("address", "something else", allowed=_ALLOWED)
        return cls(
            host=host,
            port=port,
            token=find_token(Path(options["token"]) if "token" in options else None),
            tls=TlsFiles(cert=Path(options["cert"]), key=Path(options["key"])) if files else None,
            limits=limits or HttpLimits(),
        )

    def check_has_token(self) -> None:
        """Raise if others could post, read or see counts here without a token."""
        if not is_loopback(self.host) and self.token is None:
            allowed = f"127.0.0.1 where there is no token; name one with --token FILE or in {TOKEN_VARIABLE}"
            raise BadParameter("host", self.host, allowed=allowed)


def is_loopback(host: str) -> bool:
    """Return whether a name or number of a host means this machine alone.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_token(path: Path | None) -> bytes | None:
    """Return the token in a file, or else that of the environment, if there is one."""
    given = os.environ.get(TOKEN_VARIABLE)
    if path is None and given is None:
        return None
    try:
        token = (given or "").encode(errors="surrogateescape") if path is None else path.read_bytes()
    except OSError as error:
        raise BadFile(str(path), f"the token cannot be read: {error.strerror}") from None
    token = token.strip()
    if len(token) >= _MIN_TOKEN_BYTES and token.isascii() and len(token.split()) == 1:
        return token
    if path is not None:
        raise BadFile(str(path), _A_TOKEN)
    raise BadParameter(TOKEN_VARIABLE, "something else", allowed=_A_TOKEN.removeprefix("a token is "))
