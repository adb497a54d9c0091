"""Bytes of a file cut where lines end, however long a line is."""

from __future__ import annotations

from dataclasses import dataclass

from queryveil.formats.records import MAX_RECORD_BYTES

# One byte more than readers take, so that what is left of a longer line is refused as too long.
LONGEST = MAX_RECORD_BYTES + 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Chunk:
    """Whole lines, how many bytes were used up for them, and whether the rest of a line too long is still to come."""

    lines: bytes
    n_used: int
    is_skipping: bool = False


def whole_lines(data: bytes, *, is_last: bool, is_skipping: bool = False) -> Chunk:
    r"""Cut what has been read at its last line end; at the end of a file also take a line that has none.

    A line longer than readers take is cut short, so that they count it as bad, and the rest of it is skipped.

    >>> whole_lines(b"one\ntwo\nthr", is_last=False).lines
    b'one\ntwo\n'
    >>> whole_lines(b"thr", is_last=True).lines
    b'thr\n'
    """
    begin = 0
    if is_skipping:
        begin = data.find(b"\n") + 1
        if not begin:
            return Chunk(lines=b"", n_used=len(data), is_skipping=not is_last)
    end = data.rfind(b"\n") + 1
    if end > begin:
        return Chunk(lines=data[begin:end], n_used=end)
    rest = data[begin:]
    if rest and is_last:
        return Chunk(lines=rest + b"\n", n_used=len(data))
    if len(rest) > LONGEST:
        return Chunk(lines=rest[:LONGEST] + b"\n", n_used=len(data), is_skipping=True)
    return Chunk(lines=b"", n_used=begin)
