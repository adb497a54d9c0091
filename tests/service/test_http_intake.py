"""Where requests meet the service's threads: posts joined to batches, batches handed out by number."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import patience

from queryveil.errors import BadParameter, Unreachable
from queryveil.service.http._queues import MAX_REPLY_BYTES, Answer, Outcome, PostQueue, ReleasedQueue, hash_key
from queryveil.service.ports import Outgoing


def opened(**settings: int) -> PostQueue:
    post_queue = PostQueue(**settings)
    post_queue.open(position=None, keys=())
    return post_queue


@given(
    posts=st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=12),
    limit=st.integers(min_value=1, max_value=60),
)
def test_however_posts_are_joined_each_learns_of_exactly_its_own_bad_lines(posts: list[list[bool]], limit: int) -> None:
    post_queue = opened(max_batch_bytes=limit)
    bodies = [b"".join(b"good\n" if is_good else b"bad\n" for is_good in lines) for lines in posts]
    waiting = [post_queue.add(body) for body in bodies]
    taken = b""
    while (batch := post_queue.take(timeout=0)) is not None:
        found = batch.data.splitlines()
        post_queue.settle(batch, bad_lines=[i for i, line in enumerate(found, start=1) if line == b"bad"])
        assert len(batch.data) <= limit or batch.data in bodies
        taken += batch.data
    assert taken == b"".join(bodies)
    for post, lines in zip(waiting, posts, strict=True):
        bad = tuple(i for i, is_good in enumerate(lines, start=1) if not is_good)
        assert post.answer.result(0) == Answer(outcome=Outcome.COMMITTED, bad_lines=bad)


def test_of_many_who_send_the_same_key_at_once_one_is_taken() -> None:
    post_queue, n_taken = opened(), 0
    is_over = threading.Event()

    def serve() -> None:
        nonlocal n_taken
        while not is_over.is_set():
            batch = post_queue.take(timeout=0.01)
            if batch is not None:
                n_taken += batch.data.count(b"\n")
                post_queue.settle(batch, bad_lines=[])

    server = threading.Thread(target=serve)
    server.start()
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(post_queue.add, b"line\n", key=str(i % 50)) for i in range(2000)]
        outcomes = [post.result().answer.result(patience()).outcome for post in sent]
    is_over.set()
    server.join()
    assert n_taken == outcomes.count(Outcome.COMMITTED) == 50
    assert outcomes.count(Outcome.ALREADY) == 1950


def test_nothing_is_taken_before_the_keys_of_earlier_runs_are_known() -> None:
    post_queue = PostQueue()
    assert post_queue.add(b"line\n", key="k").answer.result(0).outcome is Outcome.WITHDRAWN
    post_queue.open(position="7", keys=[hash_key("k", data=b"line\n")])
    assert post_queue.add(b"line\n", key="k").answer.result(0).outcome is Outcome.ALREADY
    post_queue.add(b"more\n")
    batch = post_queue.take(timeout=0)
    assert batch is not None
    assert batch.position == "8"


def test_the_state_of_another_source_is_refused() -> None:
    with pytest.raises(BadParameter, match="the source that the state was begun with"):
        PostQueue().open(position='{"inode": 7}', keys=())


def test_closing_gives_back_what_waits_and_lets_the_batch_at_hand_be_settled() -> None:
    post_queue = opened()
    first = post_queue.add(b"first\n")
    batch = post_queue.take(timeout=0)
    second = post_queue.add(b"second\n")
    assert batch is not None
    post_queue.close()
    assert second.answer.result(0).outcome is Outcome.WITHDRAWN
    assert not first.answer.done()
    post_queue.settle(batch, bad_lines=[])
    assert first.answer.result(0).outcome is Outcome.COMMITTED
    assert post_queue.take(timeout=0) is None


def test_what_nobody_settles_is_said_to_be_unknown_and_a_late_settling_does_no_harm() -> None:
    post_queue = opened()
    post = post_queue.add(b"first\n")
    batch = post_queue.take(timeout=0)
    assert batch is not None
    post_queue.abandon()
    assert post.answer.result(0).outcome is Outcome.UNKNOWN
    post_queue.settle(batch, bad_lines=[])


def outgoing(number: int, n_bytes: int = 10) -> Outgoing:
    return Outgoing(number=number, offset=0, data=b"x" * n_bytes, n_rows=1)


def test_batches_are_read_in_order_without_a_gap_and_not_too_many_at_once() -> None:
    released_queue = ReleasedQueue()
    released_queue.open(delivered=4)
    for number in (5, 6, 8):
        released_queue.offer(outgoing(number))
    assert [each.number for each in released_queue.read(after=4)] == [5, 6]
    released_queue.offer(outgoing(7, MAX_REPLY_BYTES))
    assert [each.number for each in released_queue.read(after=4)] == [5, 6]
    assert [each.number for each in released_queue.read(after=6)] == [7]
    assert (released_queue.confirmed, released_queue.last) == (4, 8)


def test_delivery_waits_for_the_client_and_closing_is_no_delivery() -> None:
    released_queue = ReleasedQueue()
    released_queue.open(delivered=0)
    released_queue.offer(outgoing(1))
    released_queue.confirm(1)
    released_queue.wait_for(1)
    released_queue.offer(outgoing(1))
    assert released_queue.read(after=0) == []
    threading.Timer(0.1, released_queue.close).start()
    with pytest.raises(Unreachable, match="has not confirmed"):
        released_queue.wait_for(2)
