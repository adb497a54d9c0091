"""Released events into a Redis stream: one entry an event, with the line in its field `data`.

A script on the server adds a block and notes its number in one step, so that a block is there whole or not at all, and
a block that is offered again is known by its number. Beside the number the server keeps eight bytes of the digest of
each of the last blocks: a stream that holds another release is told from one that already has the block.

That an entry is there for good depends on the server: it takes `appendonly yes` and `appendfsync always`. A server that
comes back with less than it had noted is an error and nothing is skipped in silence: what the store has let go cannot
be sent again.
"""

from __future__ import annotations

import hashlib
from typing import Any

from queryveil.errors import BadInput, Unreachable
from queryveil.service.ports import Outgoing
from queryveil.service.redis_server import RedisAddress

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


class RedisSink:
    """A stream on a Redis server, named by redis://HOST:PORT/DB?stream=NAME&maxlen=N.

    `maxlen` lets the server drop the oldest entries beyond about N; 0, the default, keeps all.
    """

    def __init__(self, url: str) -> None:
        self._address = RedisAddress.from_url(url, what="sink", stream="released", options={"maxlen": "0"})
        self._maxlen = self._address.number("maxlen", what="sink")
        self._client: Any = None
        self._must_be_new = False
        stream = self._address.stream
        # The braces put the keys into the slot of the stream.
        self._keys = (stream, f"queryveil:{{{stream}}}:delivered", f"queryveil:{{{stream}}}:digests")

    @property
    def name(self) -> str:
        """The address without user and password."""
        return self._address.name

    def check_new(self) -> None:
        """Have `open` raise if there is a release in the stream; the server may be away just now."""
        self._must_be_new = True

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - numbers say it all
        """Connect, and see that what the store has let go is there."""
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
        """Add the lines as entries, unless the server has noted this number."""
        digest = hashlib.blake2b(outgoing.data, digest_size=_DIGEST_BYTES).digest()
        with self._address.errors():
            answer, had = self._connected().eval(
                _SCRIPT, 3, *self._keys, outgoing.number, digest, _N_DIGESTS, self._maxlen, outgoing.data
            )
        if answer == b"gap":
            raise self._lost(had=int(had), last=outgoing.number - 1)
        if answer in (b"other", b"old"):
            raise self._other()

    def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Any:
        if self._client is None:
            raise Unreachable(self._address.server, "the sink was closed")
        return self._client

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
