"""Our sorts against NumPy's."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import queryveil
from queryveil.checks._histories import sort_numbers
from queryveil.data.rows import order_of, sort_in_place

numbers = st.lists(st.integers(-50, 50) | st.integers(-(2**31), 2**31 - 1), max_size=200)


@given(numbers)
def test_sorts_agree_with_numpy(values: list[int]) -> None:
    for sort in (sort_in_place, sort_numbers):
        short, long = np.array(values, np.int32), np.array(values, np.int64)
        sort(short)
        sort(long)
        assert short.tolist() == long.tolist() == sorted(values)


@given(numbers)
def test_the_order_is_stable(values: list[int]) -> None:
    keys = np.array(values, np.int64)
    assert order_of(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_no_kernel_uses_a_sort_of_numba() -> None:
    root = Path(queryveil.__file__).parent
    for path in [*root.glob("kernels/*.py"), *root.glob("verify/kernels/*.py")]:
        found = re.findall(r"\.sort\(|np\.sort|argsort|np\.unique|np\.median|np\.partition", path.read_text())
        assert not found, path.name
