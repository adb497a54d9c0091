"""Redis streams as source and sink."""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec

from queryveil.errors import BadInput, Unreachable
from queryveil.service.connectors._servers import LONGEST_WAIT, RedisAddress
from queryveil.service.ports import Batch, Outgoing, Sink, Source

_Entry = tuple[bytes, list[bytes] | None]
_MOST_ENTRIES = 10_000
_BATCH_BYTES = 1 << 20


class RedisSource(Source):
    """Reads a Redis stream as a consumer of a group.

    An entry holds one event as a line in its field `data` (several lines are several events); an entry without that
    field is taken as one JSON object of its fields, so that `XADD queries * user u1 query "red wine"` works.

    The position in the store is the id of the last entry committed. What the server has noted is only second to it: an
    entry at or before that id is acknowledged and not taken, whether it is still pending after a crash or comes again
    from a server that was set back. Hence entries must not be moved to this consumer with XCLAIM.

    - `url`: redis://HOST:PORT/DB?stream=NAME&group=G&consumer=C&delete=1. Stream and group are created where they are
      missing, and a new group begins with the first entry. Entries stay in the stream for other groups; with `delete=1`
      they are deleted once they are committed, so that no raw query stays.
    """

    def __init__(self, url: str) -> None:
        defaults = {"group": "queryveil", "consumer": "queryveil", "delete": "0"}
        self._address = RedisAddress(url, what="source", stream="queries", options=defaults)
        self.name = self._address.name
        self._group, self._consumer = (self._address.options[name] for name in ("group", "consumer"))
        self._is_deleting = self._address.number("delete", what="source") > 0
        self._client: Any = None
        self._is_closed = False
        self._committed = self._taken = (0, 0)
        self._pending_after: bytes | None = None
        self._ids: dict[str, list[bytes]] = {}
        self._to_acknowledge: list[bytes] = []
        self._n_entries = 500

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:  # noqa: ARG002 - entries have ids
        self._committed = self._taken = (0, 0) if position is None else _position(position)
        self._pending_after = b"0"
        self._connect()

    def take(self, *, timeout: float) -> Batch | None:
        """Return up to about a megabyte of entries: first those that were pending, then new ones."""
        end = monotonic() + timeout
        while not self._is_closed:
            self._connect()
            self._acknowledge()
            entries = self._read(wait=min(LONGEST_WAIT, end - monotonic()))
            batch = self._batch(entries)
            if batch is not None:
                return batch
            if not entries:
                if self._pending_after is None and monotonic() >= end:
                    break
                self._pending_after = None
        return None

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:  # noqa: ARG002 - nobody to tell
        """Let the server forget the entries; where it is away, the next `take` does it."""
        self._committed = max(self._committed, _position(batch.position))
        self._to_acknowledge += self._ids.pop(batch.position, [])
        with suppress(Unreachable):
            self._acknowledge()

    def close(self) -> None:
        self._is_closed = True
        self._disconnect()

    def _connect(self) -> None:
        if self._client is not None:
            return
        client = self._address.connect()
        # The client would make a dict of every entry.
        client.set_response_callback("XREADGROUP", lambda answer, **_: answer)
        try:
            with self._address.errors():
                self._make_group(client)
        except BaseException:
            client.close()
            raise
        self._client = client

    def _make_group(self, client: Any) -> None:
        stream, taken = self._address.stream, "{}-{}".format(*self._taken)
        try:
            client.xgroup_create(stream, self._group, id=taken, mkstream=True)
        except Exception as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
        if _id(client.xinfo_stream(stream)["last-generated-id"]) < self._taken:
            # The server was emptied or set back: no new entry may get an id that counts as read.
            client.execute_command("XSETID", stream, taken)

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _call(self, *command: Any) -> Any:
        client = self._client
        if client is None:
            raise Unreachable(self._address.server, "the source was closed")
        try:
            with self._address.errors():
                return client.execute_command(*command)
        except BaseException:
            # What was under way may have arrived: what is pending behind the last entry taken is read again.
            self._disconnect()
            if self._pending_after is None:
                self._pending_after = b"%d-%d" % self._taken
            raise

    def _read(self, *, wait: float) -> list[_Entry]:
        start = b">" if self._pending_after is None else self._pending_after
        # BLOCK 0 would wait for ever.
        block = ("BLOCK", max(1, int(wait * 1000))) if start == b">" else ()
        group = ("GROUP", self._group, self._consumer, "COUNT", self._n_entries)
        answer = self._call("XREADGROUP", *group, *block, "STREAMS", self._address.stream, start)
        entries: list[_Entry] = answer[0][1] if answer else []
        if entries and self._pending_after is not None:
            self._pending_after = entries[-1][0]
        return entries

    def _batch(self, entries: list[_Entry]) -> Batch | None:
        ids = [entry[0] for entry in entries]
        n_old, n_committed = bisect_right(ids, self._taken, key=_id), bisect_right(ids, self._committed, key=_id)
        self._to_acknowledge += ids[: min(n_old, n_committed)]
        new = entries[n_old:]
        if not new:
            return None
        # Most entries are one line in one field; a call for each would cost as much as all the rest.
        lines = [f[1] if f and len(f) == 2 and f[0] == b"data" else _lines(f) for _, f in new]
        data = b"\n".join(lines) + b"\n"
        # As many as make a batch are asked for next time; the server counts entries, not bytes.
        wanted = _BATCH_BYTES * len(new) // len(data)
        self._n_entries = max(1, min(wanted, 4 * self._n_entries, _MOST_ENTRIES))
        position, self._taken = ids[-1].decode("ascii"), _id(ids[-1])
        self._ids[position] = ids[n_old:]
        return Batch(data=data, position=position)

    def _acknowledge(self) -> None:
        while ids := self._to_acknowledge[:_MOST_ENTRIES]:
            if self._is_deleting:
                # Privacy: before they are forgotten, so that a crash in between leaves no raw query behind.
                self._call("XDEL", self._address.stream, *ids)
            self._call("XACK", self._address.stream, self._group, *ids)
            del self._to_acknowledge[: len(ids)]


def _id(text: bytes) -> tuple[int, int]:
    time, _, number = text.partition(b"-")
    return int(time), int(number)


def _position(text: str) -> tuple[int, int]:
    try:
        return _id(text.encode("ascii"))
    except ValueError:
        raise BadInput("the state is of another source than a Redis stream; name another --store") from None


def _lines(fields: list[bytes] | None) -> bytes:
    """Return the lines of an entry; one that was deleted while it was pending has none."""
    if not fields:
        return b""
    named = dict(zip(fields[::2], fields[1::2], strict=True))
    if b"data" in named:
        return named[b"data"]
    texts = ((name.decode("utf-8", "replace"), text.decode("utf-8", "replace")) for name, text in named.items())
    return msgspec.json.encode(dict(texts))


_N_DIGESTS = 1 << 17
_DIGEST_BYTES = 8
# One call with all lines in one text: the client packs nothing, and scripts are as atomic as MULTI.
_SCRIPT = """
local number, had = tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[2]) or '0')
local at = number % tonumber(ARGV[3]) * #ARGV[2]
if number <= had then
  if had - number >= tonumber(ARGV[3]) then return {'old', had} end
  local same = redis.call('GETRANGE', KEYS[3], at, at + #ARGV[2] - 1) == ARGV[2]
  return {same and 'had' or 'other', had}
end
if number > had + 1 then return {'gap', had} end
local lines, first = ARGV[5], 1
while first <= #lines do
  local last = string.find(lines, '\\n', first, true) or #lines + 1
  local line = string.sub(lines, first, last - 1)
  if ARGV[4] == '0' then
    redis.call('XADD', KEYS[1], '*', 'data', line)
  else
    redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], '*', 'data', line)
  end
  first = last + 1
end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SETRANGE', KEYS[3], at, ARGV[2])
return {'sent', number}
"""


class RedisSink(Sink):
    """Writes a Redis stream: one entry an event, with the line in its field `data`.

    A script on the server adds a block and notes its number in one step, so that a block is there whole or not at all,
    and a block that is offered again is known by its number. Beside the number the server keeps eight bytes of the
    digest of each of the last blocks: a stream that holds another release is told from one that already has the block.

    That an entry is there for good depends on the server: it takes `appendonly yes` and `appendfsync always`. A server
    that comes back with less than it had noted is an error and nothing is skipped in silence: what the store has let go
    cannot be sent again.

    - `url`: redis://HOST:PORT/DB?stream=NAME&maxlen=N. `maxlen` lets the server drop the oldest entries beyond about N;
      0, the default, keeps all.
    """

    def __init__(self, url: str) -> None:
        self._address = RedisAddress(url, what="sink", stream="released", options={"maxlen": "0"})
        self.name = self._address.name
        self._maxlen = self._address.number("maxlen", what="sink")
        self._client: Any = None
        self._must_be_new = False
        stream = self._address.stream
        # The braces put the keys into the slot of the stream.
        self._keys = (stream, f"queryveil:{{{stream}}}:delivered", f"queryveil:{{{stream}}}:digests")

    def check_new(self) -> None:
        """Make `open` raise if there is a release in the stream; the server may be away just now."""
        self._must_be_new = True

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - numbers say it all
        """Connect, and check that the server has what the store no longer keeps."""
        self._client = client = self._address.connect()
        with self._address.errors():
            had = int(client.get(self._keys[1]) or 0)
            # A key that is no stream answers with the right error.
            client.xrevrange(self._keys[0], count=1)
        if had and self._must_be_new:
            raise self._other()
        if had < delivered:
            raise self._lost(had=had, last=delivered)
        self._must_be_new = False

    def deliver(self, outgoing: Outgoing) -> None:
        """Add the lines as entries, unless the server already has this number."""
        digest = hashlib.blake2b(outgoing.data, digest_size=_DIGEST_BYTES).digest()
        client = self._client
        if client is None:
            raise Unreachable(self._address.server, "the sink was closed")
        with self._address.errors():
            answer, had = client.eval(
                _SCRIPT, 3, *self._keys, outgoing.number, digest, _N_DIGESTS, self._maxlen, outgoing.data
            )
        if answer == b"gap":
            raise self._lost(had=int(had), last=outgoing.number - 1)
        if answer in (b"other", b"old"):
            raise self._other()

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _other(self) -> BadInput:
        return BadInput(
            f"the Redis stream {self._address.stream} already holds another release; name another stream, go on "
            f"with the --store of that release, or delete the key {self._keys[1]} to add to it"
        )

    def _lost(self, *, had: int, last: int) -> BadInput:
        return BadInput(
            f"the Redis stream {self._address.stream} lacks blocks {had + 1} to {last}: the server was emptied or has "
            f"lost its last writes, and they cannot be sent again; to go on without them, "
            f"SET {self._keys[1]} {last} on the server"
        )
