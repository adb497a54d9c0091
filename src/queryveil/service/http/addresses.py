"""Where the service listens, and the token that its clients show."""

import hmac
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from queryveil.errors import BadFile, BadParameter

_MIN_TOKEN_BYTES = 16
_LOOPBACK_NAMES = ("localhost", "localhost.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host, a port (0: any free one) and the token that clients must show, if any.

    >>> Address.parse("http://127.0.0.1:8080")
    Address(host='127.0.0.1', port=8080)
    """

    host: str = "127.0.0.1"
    port: int = 8080
    token: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise BadParameter("port", self.port, allowed="from 0 to 65535")

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read `http://HOST:PORT` or `http://HOST:PORT?token=FILE`."""
        allowed = "http://HOST:PORT, or http://HOST:PORT?token=FILE"
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise BadParameter("address", "something else", allowed=allowed) from None
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        extra = (
            parts.path not in ("", "/") or parts.fragment or parts.username is not None or options.keys() - {"token"}
        )
        if parts.scheme != "http" or host is None or port is None or extra:
            # Privacy: what was typed may hold a password.
            raise BadParameter("address", "something else", allowed=allowed)
        return cls(host=host, port=port, token=read_token(Path(options["token"])) if "token" in options else None)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def check_has_token(self) -> None:
        """Raise if others could post and read here without a token."""
        if not self.is_loopback and self.token is None:
            raise BadParameter(
                "host", self.host, allowed="127.0.0.1 where there is no token; name one with --token FILE"
            )

    def admits(self, authorization: str | None) -> bool:
        """Return whether a header `Authorization` may pass."""
        if self.token is None:
            return True
        scheme, _, shown = (authorization or "").partition(" ")
        # Privacy: compared in constant time, so that the time of the answer says nothing about the token.
        return hmac.compare_digest(shown.strip().encode(), self.token) and scheme.lower() == "bearer"


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


def read_token(path: Path) -> bytes:
    """Read the token in a file, without the blanks around it."""
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        raise BadFile(str(path), f"the token cannot be read: {error.strerror}") from None
    if len(token) < _MIN_TOKEN_BYTES or not token.isascii() or len(token.split()) != 1:
        raise BadFile(str(path), "a token is one ASCII word of at least 16 letters, such as openssl rand -hex 32 gives")
    return token
