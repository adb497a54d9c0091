"""The routes of the service, and the example on its page: profiles before and after, of invented users."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import polars as pl
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from queryveil.guarantees import SwapAnonymity
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap import pools, preparing
from queryveil.service.http import _metrics as metrics
from queryveil.service.http._queues import Outcome, PostQueue, ReleasedQueue
from queryveil.service.http.addresses import Address
from queryveil.service.http.requests import AccessMiddleware, Bodies, BodyQuota, Lines, as_response, read_lines, refusal
from queryveil.service.ports import Histogram, Monitored, Stats
from queryveil.text.classifier import CATEGORIES, Classifier

MAX_WAIT_SECONDS = 60.0
_QUEUE_SECONDS = 30.0
_FRESH_SECONDS = 0.1
_MAX_KEY_LETTERS = 255
_MAX_PULLS = 16
"""Requests at work at once that are no posts: few, or those that wait for lines could take all connections."""
_PAGE = {"/": "index.html"} | {f"/{name}": name for name in ("page.css", "page.js", "charts.js", "icon.svg")}
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@dataclass(slots=True, kw_only=True)
class AppState:
    """What the routes work on: queues of posts and of released batches, and a service that may not be there yet."""

    address: Address
    service: Monitored | None = None
    posts: PostQueue | None = None
    released: ReleasedQueue | None = None
    queue_seconds: float = _QUEUE_SECONDS
    bodies: Bodies = field(default_factory=dict)
    at_work: Counter[str] = field(default_factory=Counter)
    """How many requests are at work, by path, their bodies complete."""
    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    post_seconds: Histogram = field(default_factory=Histogram)
    _last: Stats = field(default_factory=Stats)
    _asked: float = float("-inf")

    @property
    def promise(self) -> SwapAnonymity | None:
        return None if self.service is None else self.service.settings.promise

    def stats(self) -> Stats:
        """Return the stats of the service, which is asked ten times a second at most."""
        if self.service is not None and time.monotonic() - self._asked > _FRESH_SECONDS:
            stats = self.service.stats()
            if stats.is_ready and stats.n_outbox_bytes > self.service.settings.max_outbox_bytes:
                stats = replace(stats, is_ready=False, why_not="the outbox is full until released rows are picked up")
            self._last, self._asked = stats, time.monotonic()
        return self._last

    async def work(self, path: str, respond: Callable[[], Awaitable[Response]]) -> Response:
        """Wait for a response, unless there are too many requests at work already."""
        most = self.address.limits.max_requests
        if self.at_work[path] >= (most if path == "/events" else min(most, _MAX_PULLS)):
            raise refusal(503, "too many requests at once; send it again later", retry=True)
        self.at_work[path] += 1
        try:
            return await respond()
        finally:
            self.at_work[path] -= 1


_Handler = Callable[[Request, AppState], Awaitable[Response]]


def build_app(state: AppState) -> Starlette:
    """Make the app; routes for posting, for reading and the page are there if something stands behind them."""
    handlers: dict[str, _Handler] = {"/healthz": _health, "/readyz": _ready, "/metrics": _metrics, "/stats": _stats}
    if state.posts is not None:
        handlers["/events"] = _events
    if state.released is not None:
        handlers["/released"] = _released
    if state.posts is not None or state.released is not None:
        handlers |= {"/example": _example, **dict.fromkeys(_PAGE, _page)}
    return Starlette(
        routes=[_route(path, handler, state) for path, handler in handlers.items()],
        middleware=[Middleware(AccessMiddleware, address=state.address)],
        exception_handlers={HTTPException: _client_error, Exception: _server_error},  # type: ignore[dict-item]
    )


def _route(path: str, handler: _Handler, state: AppState) -> Route:
    async def answer(request: Request) -> Response:
        try:
            response = await handler(request, state)
        except HTTPException as error:
            response = as_response(error)
        state.requests[path, response.status_code] += 1
        return response

    return Route(path, answer, methods=["POST" if handler is _events else "GET"])


async def _events(request: Request, state: AppState) -> Response:
    """Take lines, and answer when they are committed."""
    started, posts, stats = time.monotonic(), state.posts, state.stats()
    key = request.headers.get("idempotency-key")
    if posts is None or posts.is_closed:
        raise refusal(503, "the service is stopping; send it again later", retry=True)
    if key is not None and not 0 < len(key) <= _MAX_KEY_LETTERS:
        raise refusal(400, f"an Idempotency-Key has 1 to {_MAX_KEY_LETTERS} letters")
    if state.service is not None and not stats.is_ready:
        raise refusal(503, f"not ready: {stats.why_not}; send it again later", retry=True)
    quota = BodyQuota(posts=posts, bodies=state.bodies)
    try:
        lines = await read_lines(request, quota=quota, limits=state.address.limits)
        if lines.n_events == 0:
            return _json({"accepted": 0, "bad_lines": []})
        return await state.work("/events", lambda: _commit(lines, key=key, state=state, started=started))
    finally:
        posts.release(quota.n_bytes)


async def _commit(lines: Lines, *, key: str | None, state: AppState, started: float) -> Response:
    assert state.posts is not None
    post = state.posts.add(lines.data, key=key)
    committed = asyncio.wrap_future(post.answer)
    done, _ = await asyncio.wait([committed], timeout=state.queue_seconds)
    if not done:
        # What no batch took in time is taken back, so that the client may go elsewhere.
        state.posts.withdraw(post)
    answer = await committed
    match answer.outcome:
        case Outcome.COMMITTED:
            state.post_seconds = state.post_seconds.with_one(time.monotonic() - started)
            return _json({"accepted": lines.n_events - len(answer.bad_lines), "bad_lines": answer.bad_lines})
        case Outcome.ALREADY:
            return _json({"accepted": 0, "already": True})
        case Outcome.OTHER_BODY:
            raise refusal(422, "this Idempotency-Key was used for another body; give every batch its own")
        case Outcome.WITHDRAWN:
            raise refusal(503, "nothing was taken; send it again later", retry=True)
    raise refusal(503, "stopped before the commit was sure; send it again with the same Idempotency-Key", retry=True)


async def _released(request: Request, state: AppState) -> Response:
    """Hand out released batches behind a number, which says that all up to it has arrived."""
    released = state.released
    if released is None or released.is_closed:
        raise refusal(503, "the service is stopping; ask again later", retry=True)
    try:
        after = int(request.query_params.get("after", released.confirmed))
        seconds = float(request.query_params.get("wait", "0"))
    except ValueError:
        raise refusal(400, "after is a whole number, wait a number of seconds") from None
    if after < 0 or not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise refusal(400, f"after is 0 or more, wait 0 to {MAX_WAIT_SECONDS:.0f} seconds")
    if after > released.last:
        if state.service is not None and not state.stats().is_ready:
            raise refusal(503, "not ready; ask again later", retry=True)
        why = f"after={after} was never handed out, the last batch is {released.last}; is the state another?"
        raise refusal(409, why)
    if after < released.confirmed:
        why = f"everything up to {released.confirmed} was confirmed and is gone; ask after={released.confirmed}"
        raise refusal(410, why)
    released.confirm(after)
    return await state.work("/released", lambda: _hand_out(released, after=after, seconds=seconds))


async def _hand_out(released: ReleasedQueue, *, after: int, seconds: float) -> Response:
    found = await released.read_or_wait(after=after, seconds=seconds)
    headers = {"Queryveil-Last": str(found[-1].number if found else after)}
    data = b"".join(outgoing.data for outgoing in found)
    return Response(data, media_type="application/x-ndjson", headers=headers)


async def _health(_request: Request, _state: AppState) -> Response:
    return _json({"status": "alive"})


async def _ready(_request: Request, state: AppState) -> Response:
    stats = state.stats()
    if stats.is_ready:
        return _json({"status": "ready"})
    return _json({"status": "not ready", "why": stats.why_not}, status=503)


async def _metrics(_request: Request, state: AppState) -> Response:
    text = metrics.render(state.stats(), requests=state.requests, post_seconds=state.post_seconds)
    return Response(text, headers={"Content-Type": metrics.CONTENT_TYPE})


async def _stats(_request: Request, state: AppState) -> Response:
    promise = state.promise
    said = None if promise is None else {"k": promise.k, "l": promise.l, "in_words": promise.in_words()}
    return _json({"promise": said, "stats": state.stats()})


async def _example(_request: Request, state: AppState) -> Response:
    promise = state.promise
    if promise is None:
        raise refusal(503, "not ready; ask again later", retry=True)

    async def run() -> Response:
        return _json(await asyncio.to_thread(example, k=promise.k, l=promise.l))

    return await state.work("/example", run)


async def _page(request: Request, _state: AppState) -> Response:
    name = _PAGE[request.url.path]
    data = (resources.files("queryveil.service.http") / "page" / name).read_bytes()
    return Response(data, media_type=_TYPES[name.rpartition(".")[2]])


async def _client_error(_request: Request, error: HTTPException) -> Response:
    return as_response(error)


async def _server_error(_request: Request, error: Exception) -> Response:
    # Privacy: a message may quote what was sent, so only its kind is told.
    return as_response(refusal(500, f"a fault of queryveil itself ({type(error).__name__})"))


def _json(value: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


_SEED = 1729
_N_PEOPLE = 40
_N_QUERIES = 120
_MOST_K = 10
_WORDS: Mapping[str, tuple[str, str]] = {
    "Arts": ("guitar piano violin opera jazz ballet", "lyrics chords concert singer album song music"),
    "Health": ("asthma migraine diabetes allergy vitamin", "symptoms treatment medication doctor clinic therapy"),
    "Home": ("chicken potato chocolate garlic pumpkin", "recipe soup casserole cake salad sauce bread"),
    "Computers": ("laptop printer linux browser router", "driver software download backup password error"),
    "Sports": ("soccer tennis hockey golf basketball", "tournament scores player championship stadium match"),
    "Games": ("chess poker puzzle arcade dungeon", "cheats walkthrough strategy console game demo"),
}
_ENDINGS = "online free best tips guide review cheap beginner list"
_PEOPLE: Mapping[str, Mapping[str, int]] = {
    "Somebody who cooks": {"Home": 8, "Health": 3, "Arts": 1},
    "Somebody who plays in a band": {"Arts": 9, "Computers": 2, "Games": 1},
    "Somebody who follows sports": {"Sports": 7, "Games": 3, "Health": 1, "Computers": 1},
}


@cache
def example(*, k: int, l: int) -> dict[str, Any]:  # noqa: E741
    """Anonymize made-up people among others as the service does it; a k or l above 10 is 10, since they are few."""
    k, l = min(k, _MOST_K), min(l, _MOST_K)  # noqa: E741
    events = preparing.prepare(_made_up(), classifier=Classifier()).frame
    released = pools.Pools(PoolSettings(k=k, l=l), seed=_SEED).add(events).released
    people = [
        {"name": name, "before": _side(events, name, asked=events), "after": _side(released, name, asked=events)}
        for name in _PEOPLE
    ]
    return {"k": k, "l": l, "n_people": _N_PEOPLE, "people": people}


def _made_up() -> pl.DataFrame:
    rng = random.Random(_SEED)
    rows: list[tuple[str, str]] = []
    for i in range(_N_PEOPLE):
        name = list(_PEOPLE)[i] if i < len(_PEOPLE) else f"somebody {i}"
        interests = _PEOPLE.get(name) or {category: rng.randint(1, 6) for category in _WORDS}
        for category in rng.choices(list(interests), list(interests.values()), k=_N_QUERIES):
            first, second = _WORDS[category]
            rows.append((name, " ".join(rng.choice(words.split()) for words in (first, second, _ENDINGS))))
    rng.shuffle(rows)
    return pl.DataFrame(rows, schema={"user": pl.String, "query": pl.String}, orient="row")


def _side(rows: pl.DataFrame, name: str, *, asked: pl.DataFrame) -> dict[str, Any]:
    """Return a profile: the share of each category, and how many of its rows are queries of this person."""
    own = rows.filter(pl.col("user") == name)
    counts = dict(own["category"].value_counts(sort=True).iter_rows())
    return {
        "n_queries": len(own),
        "n_own": len(own.join(asked, on=["user", "query"], how="semi")),
        "shares": {(*CATEGORIES, "Unclassified")[code]: n / len(own) for code, n in counts.items()},
    }
