"""Posted lines that wait for their commit, and released batches that wait for a client."""

import asyncio
import hashlib
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Condition

from queryveil.errors import BadParameter, Unreachable
from queryveil.service.ports import N_KEYS, Batch, Outgoing

MAX_WAITING_BYTES = 64 << 20
MAX_BATCH_BYTES = 1 << 20


class Outcome(StrEnum):
    """What became of a post."""

    COMMITTED = "committed"
    ALREADY = "already"
    OTHER_BODY = "other body"
    WITHDRAWN = "withdrawn"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a post, and which of its lines could not be read."""

    outcome: Outcome
    bad_lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Post:
    """The lines of one request, which end with a newline, and the promise of an answer."""

    data: bytes
    key: str | None
    answer: Future[Answer] = field(default_factory=Future)

    def __post_init__(self) -> None:
        # From here on it cannot be cancelled: the answer also comes where the client has gone.
        self.answer.set_running_or_notify_cancel()


def hash_key(key: str, *, data: bytes) -> str:
    """Return what is kept of a sender's key: a hash of it, and one of what was sent under it.

    Privacy: a key may be made of anything, so not the key itself is kept.
    """
    return "".join(hashlib.blake2b(part, digest_size=16).hexdigest() for part in (key.encode(), data))


class PostQueue:
    """Queues the lines of requests until the source takes them and they are committed."""

    def __init__(self, *, max_batch_bytes: int = MAX_BATCH_BYTES) -> None:
        self._max_waiting_bytes, self._max_batch_bytes = MAX_WAITING_BYTES, max_batch_bytes
        self._changed = Condition()
        self._waiting: deque[Post] = deque()
        self._taken: dict[str, list[Post]] = {}
        self._by_key: dict[str, Post] = {}
        self._committed: OrderedDict[str, str] = OrderedDict()
        self._n_batches = self._n_held_bytes = 0
        # What comes before `open` could repeat a post of an earlier run whose key is not known yet.
        self.is_closed = True

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        """Resume after the batches that were committed, and remember their keys."""
        with self._changed:
            if position is not None and not position.isdecimal():
                raise BadParameter("source", "HTTP", allowed="the source that the state was begun with")
            self._n_batches = int(position or 0)
            for key in keys:
                self._remember(key)
            self.is_closed = False

    def reserve(self, n_bytes: int) -> bool:
        """Reserve memory for bytes that come in; false if there is none for now."""
        with self._changed:
            if self._n_held_bytes and self._n_held_bytes + n_bytes > self._max_waiting_bytes:
                return False
            self._n_held_bytes += n_bytes
            return True

    def release(self, n_bytes: int) -> None:
        with self._changed:
            self._n_held_bytes -= n_bytes

    def add(self, data: bytes, *, key: str | None = None) -> Post:
        """Queue whole lines. Its answer comes with the commit; for a key that is known, at once or with the first's."""
        stored = None if key is None else hash_key(key, data=data)
        post = Post(data=data, key=stored)
        with self._changed:
            if self.is_closed:
                post.answer.set_result(Answer(outcome=Outcome.WITHDRAWN))
            elif stored is None or not self._is_known(post, stored):
                self._waiting.append(post)
                self._changed.notify()
        return post

    def _is_known(self, post: Post, stored: str) -> bool:
        sender, sent = stored[:32], stored[32:]
        first = self._by_key.get(sender)
        before = first.key[32:] if first is not None and first.key else self._committed.get(sender)
        if before is None:
            self._by_key[sender] = post
            return False
        if sent != before:
            post.answer.set_result(Answer(outcome=Outcome.OTHER_BODY))
        elif first is None:
            post.answer.set_result(Answer(outcome=Outcome.ALREADY))
        else:
            first.answer.add_done_callback(lambda done: post.answer.set_result(_repeated(done.result())))
        return True

    def withdraw(self, post: Post) -> None:
        """Take a post back that no batch has yet; its answer says so."""
        with self._changed:
            if post not in self._waiting:
                return
            self._waiting.remove(post)
            self._forget(post)
        post.answer.set_result(Answer(outcome=Outcome.WITHDRAWN))

    def take(self, *, timeout: float) -> Batch | None:
        """Join what waits to one batch, a post at least; None if nothing comes in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.is_closed, timeout)
            if self.is_closed or not self._waiting:
                return None
            posts = [self._waiting.popleft()]
            n_bytes = len(posts[0].data)
            while self._waiting and n_bytes + len(self._waiting[0].data) <= self._max_batch_bytes:
                posts.append(self._waiting.popleft())
                n_bytes += len(posts[-1].data)
            self._n_batches += 1
            position = str(self._n_batches)
            self._taken[position] = posts
        keys = tuple(post.key for post in posts if post.key is not None)
        return Batch(data=b"".join(post.data for post in posts), position=position, keys=keys)

    def settle(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        with self._changed:
            posts = self._taken.pop(batch.position, [])
            for post in posts:
                if post.key is not None:
                    self._remember(post.key)
                    self._forget(post)
        before, begin = 0, 0
        for post in posts:
            after = before + post.data.count(b"\n")
            end = bisect_right(bad_lines, after)
            own = tuple(line - before for line in bad_lines[begin:end])
            post.answer.set_result(Answer(outcome=Outcome.COMMITTED, bad_lines=own))
            before, begin = after, end

    def close(self) -> None:
        """Take nothing more; what no batch has is withdrawn."""
        with self._changed:
            self.is_closed = True
            posts = tuple(self._waiting)
            self._changed.notify_all()
        for post in posts:
            self.withdraw(post)

    def abandon(self) -> None:
        """Answer the posts of batches that nobody will settle any more: they may be committed or not."""
        with self._changed:
            posts = [post for batch in self._taken.values() for post in batch]
            self._taken.clear()
        for post in posts:
            post.answer.set_result(Answer(outcome=Outcome.UNKNOWN))

    def _remember(self, stored: str) -> None:
        self._committed[stored[:32]] = stored[32:]
        if len(self._committed) > N_KEYS:
            self._committed.popitem(last=False)

    def _forget(self, post: Post) -> None:
        if post.key is not None:
            self._by_key.pop(post.key[:32], None)


def _repeated(first: Answer) -> Answer:
    return Answer(outcome=Outcome.ALREADY) if first.outcome is Outcome.COMMITTED else first


MAX_REPLY_BYTES = 8 << 20


class ReleasedQueue:
    """Holds released batches until a client has confirmed them.

    A client that asks for what comes after N says that it has everything up to N. So a batch is handed out again until
    the client has gone on, and a client that stores N together with what it read has every row once. Everything up to
    `confirmed` has arrived, and up to `last` something is there.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._offered: dict[int, Outgoing] = {}
        self.confirmed = self.last = 0
        self.is_closed = False
        self._readers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def open(self, *, delivered: int) -> None:
        with self._changed:
            self.confirmed = delivered
            self.last = max(self.last, delivered)

    def offer(self, outgoing: Outgoing) -> None:
        with self._changed:
            if outgoing.number > self.confirmed:
                self._offered[outgoing.number] = outgoing
                self.last = max(self.last, outgoing.number)
        self._wake_readers()

    def wait_for(self, number: int) -> None:
        """Return once a client has confirmed this number."""
        with self._changed:
            self._changed.wait_for(lambda: self.confirmed >= number or self.is_closed)
            if self.confirmed < number:
                # Returning would say that it has arrived.
                raise Unreachable("the client of /released", "it has not confirmed what is left")

    def confirm(self, number: int) -> None:
        """Record that everything up to a number has arrived, and drop it."""
        with self._changed:
            for gone in range(self.confirmed + 1, number + 1):
                self._offered.pop(gone, None)
            self.confirmed = max(self.confirmed, number)
            self._changed.notify_all()

    def read(self, *, after: int) -> Sequence[Outgoing]:
        """Return the batches that follow a number without a gap: at least one if it is there, then about 8 MB."""
        found: list[Outgoing] = []
        n_bytes = 0
        with self._changed:
            while (outgoing := self._offered.get(after + len(found) + 1)) is not None:
                n_bytes += len(outgoing.data)
                if found and n_bytes > MAX_REPLY_BYTES:
                    break
                found.append(outgoing)
        return found

    async def read_or_wait(self, *, after: int, seconds: float) -> Sequence[Outgoing]:
        reader = (asyncio.get_running_loop(), asyncio.Event())
        self._readers.add(reader)
        try:
            async with asyncio.timeout(seconds):
                while not (found := self.read(after=after)) and not self.is_closed:
                    await reader[1].wait()
                    reader[1].clear()
        except TimeoutError:
            return []
        finally:
            self._readers.discard(reader)
        return found

    def close(self) -> None:
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
        self._wake_readers()

    def _wake_readers(self) -> None:
        for loop, event in tuple(self._readers):
            with suppress(RuntimeError):  # its loop has just ended
                loop.call_soon_threadsafe(event.set)
