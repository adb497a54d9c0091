"""What happens to rows that cannot be read: counted and named, then refused or left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from queryveil.errors import BadRow, BadRows
from queryveil.log import Reading


class BadRowPolicy(StrEnum):
    """Whether rows that cannot be read stop the reading or are left out and counted."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(slots=True, kw_only=True)
class Tally:
    """The rows of one reading that needed care, over all its files."""

    policy: BadRowPolicy
    first: list[BadRow] = field(default_factory=list)
    n_bad: int = 0
    n_latin1: int = 0

    def add(self, file: str, lines: NDArray[np.int64], *, reason: Callable[[int], str]) -> None:
        """Count bad rows of a file; `reason` gives, by position in `lines`, why each of the first ones is bad."""
        for i in range(min(len(lines), BadRows.N_SHOWN - len(self.first))):
            self.first.append(BadRow(file, int(lines[i]), reason=reason(i)))
        self.n_bad += len(lines)

    def close(self) -> Reading:
        """Give the counts; raises where bad rows are not to be skipped."""
        if self.n_bad and self.policy is BadRowPolicy.FAIL:
            raise BadRows(self.first, n_total=self.n_bad)
        return Reading(n_bad_rows_skipped=self.n_bad, n_latin1_rows=self.n_latin1)
