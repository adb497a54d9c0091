"""Changes to bytes: some blind, some that know of numbers, lines and JSON, so that more than the first check is met."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

SECRET = "zyxsecret"
"""Stands in for the text of a query, a URL or a user id in seeds: no message may hold it."""
MOST_BYTES = 1 << 20
_USUAL_BYTES = 1 << 14
_NUMBERS = (0, 1, -1, 2, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**25)
_NUMERALS = (
    *map(str, _NUMBERS), *map(str, (-(2**31), -(2**63), -(2**63) - 1)),
    "1e308", "1e999", "-0.0", "0.1", "5e-324", "1e-400", "nan", "inf", "9" * 400, "9" * 5000, "1_0", "0x10",
    "٣", "2024-02-30", "0000-00-00 00:00:00", "9999-12-31T23:59:60Z",
)  # fmt: skip
_NESTED = "nested-here"
_ODD_VALUES: tuple[Any, ...] = (
    *_NUMBERS, -(2**63), -(2**63) - 1, 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), 10**30,
    None, True, False, "", " ", "\0", "\ud800", "\u202e", "é", "x" * 3000, SECRET, _NESTED,
    [], {}, [None], [[]], {"": ""}, {"a": {}}, [0] * 50,
)  # fmt: skip
_WORDS = (
    b"\0", b"\r", b"\n", b"\r\n", b"\t", b",", b'"', b'""', b"'", b"\\", b"|", b" ", b"%00", b"\xff", b"\xc3\xa9",
    b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"{", b"}", b"[",
    b"]", b":", b"{}", b"[]", b"null", b"true", b"\\u0000", b"\\ud800", b"-", b".", b"=", b"#", b"\x1f\x8b", b"BZh",
    b"PAR1", b"\x28\xb5\x2f\xfd", SECRET.encode(),
)  # fmt: skip
_DIGITS = re.compile(rb"-?\d+(?:\.\d+)?")


class Mutator:
    """Changes inputs by chance.

    - `chance`: the source of all choices; the same gives the same changes.
    - `words`: what the format of the target is made of, beside what all formats are.
    """

    def __init__(self, chance: random.Random, *, words: Sequence[bytes] = ()) -> None:
        self.chance = chance
        self._words = (*_WORDS, *words, *words)
        small = (self._flip, self._overwrite, self._insert, self._delete, self._number, self._double, self._binary)
        large = (self._json, self._json, self._lines, self._cut, self._nest)
        self._changes = (*small, *small, *large)

    def mutate(self, data: bytes, *, others: Sequence[bytes]) -> bytes:
        """Return a changed input, now and then spliced with another one or blown up."""
        chance = self.chance
        if chance.random() < 0.1:
            data = self._spliced(data, chance.choice(others))
        # Most often one change: an input that is wrong in one place gets furthest.
        for _ in range(min(chance.choice((1, 1, 1, 2, 2, 3, 5)), 5)):
            data = chance.choice(self._changes)(data)
        if chance.random() < 0.02:
            return self._repeat(data)[:MOST_BYTES]
        return data[: max(_USUAL_BYTES, *map(len, others))]

    def _place(self, data: bytes) -> int:
        return self.chance.randrange(len(data) + 1)

    def _span(self, data: bytes) -> tuple[int, int]:
        begin = self._place(data)
        return begin, min(len(data), begin + self.chance.choice((1, 1, 2, 4, 8, 30, 200)))

    def _word(self) -> bytes:
        return self.chance.choice(self._words)

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        changed = bytearray(data)
        changed[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
        return bytes(changed)

    def _overwrite(self, data: bytes) -> bytes:
        begin, word = self._place(data), self._word()
        return data[:begin] + word + data[begin + len(word) :]

    def _insert(self, data: bytes) -> bytes:
        begin = self._place(data)
        return data[:begin] + self._word() + data[begin:]

    def _delete(self, data: bytes) -> bytes:
        begin, end = self._span(data)
        return data[:begin] + data[end:]

    def _double(self, data: bytes) -> bytes:
        begin, end = self._span(data)
        return data[:end] + data[begin:end] + data[end:]

    def _number(self, data: bytes) -> bytes:
        found = list(_DIGITS.finditer(data[:_USUAL_BYTES]))
        if not found:
            return self._insert(data)
        begin, end = self.chance.choice(found).span()
        return data[:begin] + self.chance.choice(_NUMERALS).encode() + data[end:]

    def _binary(self, data: bytes) -> bytes:
        size = self.chance.choice((1, 2, 4, 8))
        number = self.chance.choice(_NUMBERS) % (1 << 8 * size)
        begin = self._place(data)
        return data[:begin] + number.to_bytes(size, self.chance.choice(("little", "big"))) + data[begin + size :]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._place(data)]

    def _lines(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        one, other = self.chance.randrange(len(lines)), self.chance.randrange(len(lines))
        if self.chance.random() < 0.5:
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines.insert(one, lines[other])
        return b"\n".join(lines)

    def _spliced(self, data: bytes, other: bytes) -> bytes:
        begin, end = self._span(other)
        place = self._place(data)
        return self.chance.choice((data[:place] + other[self._place(other) :], data[:place] + other[begin:end]))

    def _repeat(self, data: bytes) -> bytes:
        begin, end = self._span(data)
        times = 1 << self.chance.randrange(8, 18)
        return data[:begin] + data[begin:end] * min(times, MOST_BYTES // max(1, end - begin)) + data[end:]

    def _deep(self) -> str:
        # Around the depth at which Python gives up, and far beyond it.
        depth = self.chance.choice((self.chance.randrange(250, 1000), self.chance.randrange(900, 1000), 20_000))
        opening, closing = self.chance.choice((("[", "]"), ('{"a":', "}")))
        return opening * depth + self.chance.choice(("0", "", '""')) + closing * depth

    def _nest(self, data: bytes) -> bytes:
        if self.chance.random() < 0.7:
            return self._insert(data)
        begin, end = self._span(data)
        return data[:begin] + self._deep().encode() + data[end:]

    def _json(self, data: bytes) -> bytes:
        """Change one value of an object, or of one line that is an object."""
        changed = self._changed_json(data)
        if changed is not None:
            return changed
        lines = data.split(b"\n")
        i = self.chance.randrange(len(lines))
        lines[i] = self._changed_json(lines[i]) or self._insert(lines[i])
        return b"\n".join(lines)

    def _changed_json(self, text: bytes) -> bytes | None:
        if text[:1] not in (b"{", b"["):
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        places = _places(value)
        if not places:
            return None
        inside, key = self.chance.choice(places)
        what = self.chance.random()
        if what < 0.1:
            del inside[key]
        elif what < 0.2 and isinstance(inside, dict):
            inside[str(self.chance.choice(_ODD_VALUES))[:50]] = inside[key]
        elif what < 0.3:
            inside[key] = self.chance.choice(places)[0]
        else:
            inside[key] = self.chance.choice(_ODD_VALUES)
        try:
            written = json.dumps(value, ensure_ascii=self.chance.random() < 0.7)
        except (ValueError, RecursionError):
            # It holds itself now.
            return None
        if f'"{_NESTED}"' in written:
            written = written.replace(f'"{_NESTED}"', self._deep())
        return written.encode(errors="surrogatepass")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return where values stand in JSON: each container with a key or an index."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < 5000:
        inside = waiting.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
        found += [(inside, key) for key in keys]
        waiting += [inside[key] for key in keys]
    return found
