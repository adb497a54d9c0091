"""What clients may take of the HTTP server: connections, requests, bytes, seconds and wrong tokens."""

from dataclasses import dataclass

from queryveil.settings import check_settings, setting

_PANEL = "Limits of HTTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of a server, each a setting.

    A connection beyond the limits takes the place of one that waits: for a head first, then between two requests, then
    for a body. Requests at work are never ended for others.

    >>> HttpLimits(max_requests=0)
    Traceback (most recent call last):
    queryveil.errors.BadParameter: max_requests must be a whole number from 1 to 100000, got 0
    """

    max_connections: int = setting(
        1000, at_least=1, at_most=1_000_000, help="Connections at once, of all addresses.", panel=_PANEL, hidden=True
    )
    max_per_address: int = setting(
        250, at_least=1, at_most=1_000_000, help="Connections at once, of one address.", panel=_PANEL, hidden=True
    )
    max_requests: int = setting(
        256, at_least=1, at_most=100_000, help="Posts at work at once.", panel=_PANEL, hidden=True
    )
    max_header_bytes: int = setting(
        16_384, at_least=1024, at_most=1 << 20, help="Bytes of a request's head.", panel=_PANEL, hidden=True
    )
    header_seconds: float = setting(
        10.0, above=0, at_most=3600, help="Until a head is complete.", panel=_PANEL, hidden=True
    )
    body_seconds: float = setting(
        60.0, above=0, at_most=3600, help="Until a body has come, or an answer is read.", panel=_PANEL, hidden=True
    )
    idle_seconds: int = setting(60, at_least=1, at_most=3600, help="Between two requests.", panel=_PANEL, hidden=True)
    max_body_bytes: int = setting(
        16 << 20, at_least=1024, at_most=1 << 30, help="Bytes of a body, also when unpacked.", panel=_PANEL, hidden=True
    )
    max_lines: int = setting(
        200_000, at_least=1, at_most=100_000_000, help="Lines of a body.", panel=_PANEL, hidden=True
    )
    max_gzip_members: int = setting(
        1000, at_least=1, at_most=100_000, help="Members of a gzip body.", panel=_PANEL, hidden=True
    )
    max_gzip_ratio: int = setting(
        200, at_least=2, at_most=2000, help="Unpacked bytes a byte, from 1 MB on.", panel=_PANEL, hidden=True
    )
    wrong_tokens: int = setting(
        20, at_least=1, at_most=1_000_000, help="Of an address, until it has to wait.", panel=_PANEL, hidden=True
    )

    def __post_init__(self) -> None:
        check_settings(self)
