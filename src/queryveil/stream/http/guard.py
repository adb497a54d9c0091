"""What every request must pass, and what every answer carries."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from queryveil.stream.http.addresses import Address, is_loopback

GUARDED = ("/events", "/released")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def refusal(status: int, message: str, *, retry: bool = False, **headers: str) -> JSONResponse:
    """Answer with one clear line."""
    found = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"error": message}, status_code=status, headers=found | ({"Retry-After": "1"} if retry else {}))


class Guard:
    """Turns away who may not ask, and puts the security headers on every answer."""

    def __init__(self, app: ASGIApp, *, address: Address) -> None:
        self._app, self._address = app, address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refuse(scope)
        await (refused or self._app)(scope, receive, send_with_headers)

    def _refuse(self, scope: MutableMapping[str, Any]) -> JSONResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._address.is_loopback and not is_loopback(_name_of(host)):
            # A page elsewhere may give its own name the address of this machine; its requests carry that name.
            return refusal(421, "this service answers to localhost and 127.0.0.1 only")
        if scope["path"] not in GUARDED:
            return None
        if _is_from_elsewhere(headers, host=host):
            # Reading confirms what was read before, so even a picture's address on another page could lose rows.
            return refusal(403, "requests from pages of other sites are not taken")
        if not self._address.admits(headers.get("authorization")):
            return refusal(401, "send the token: Authorization: Bearer TOKEN", WWW_Authenticate="Bearer")
        return None


def _name_of(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_from_elsewhere(headers: Headers, *, host: str) -> bool:
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != host.lower()
