"""Quotes that reach over line ends: in a stream an event is one line, so a stray quote may spoil its own line only."""

from __future__ import annotations

import numpy as np

from queryveil.formats.records import Dialect, Records, split


def one_line_each(records: Records, *, dialect: Dialect) -> Records:
    """Read again, each line by itself, the lines of records that have more than one."""
    line_ends = np.flatnonzero(records.data == ord("\n"))
    n_fields = np.minimum(records.counts, records.starts.shape[1])
    begins = records.starts[:, 0]
    stops = records.ends[np.arange(len(n_fields)), np.maximum(n_fields, 1) - 1]
    is_long = np.searchsorted(line_ends, begins) != np.searchsorted(line_ends, np.maximum(stops, begins))
    # A record with too many fields has no place for the last of them, so its last line is not known.
    is_long |= records.counts > records.starts.shape[1]
    if not is_long.any():
        return records
    parts = [records.only(np.flatnonzero(~is_long))]
    bounds = np.append(records.lines, len(line_ends) + 1)
    for i in np.flatnonzero(is_long).tolist():
        for line in range(int(bounds[i]), int(bounds[i + 1])):
            begin = int(line_ends[line - 2]) + 1 if line > 1 else 0
            end = int(line_ends[line - 1]) + 1 if line <= len(line_ends) else records.data.size
            parts += [
                Records(
                    data=records.data,
                    quote=one.quote,
                    starts=one.starts + begin,
                    ends=one.ends + begin,
                    lines=one.lines + line - 1,
                    counts=one.counts,
                    flags=one.flags,
                )
                for one in split(
                    iter([records.data[begin:end].tobytes()]), dialect=dialect, n_columns=records.starts.shape[1]
                )
            ]
    return _joined(parts)


def _joined(parts: list[Records]) -> Records:
    lines = np.concatenate([part.lines for part in parts])
    order = np.argsort(lines, kind="stable")
    return Records(
        data=parts[0].data,
        quote=parts[0].quote,
        starts=np.concatenate([part.starts for part in parts])[order],
        ends=np.concatenate([part.ends for part in parts])[order],
        lines=lines[order],
        counts=np.concatenate([part.counts for part in parts])[order],
        flags=np.concatenate([part.flags for part in parts])[order],
    )
