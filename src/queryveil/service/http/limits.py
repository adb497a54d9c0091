"""What clients may take of the HTTP server: connections, requests, bytes, seconds and wrong tokens."""

from dataclasses import dataclass
from functools import partial

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
