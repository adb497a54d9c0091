"""Our sorts against NumPy's."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import queryveil
from queryveil.data.rows import order_of, sort_in_place

numbers = st.lists(st.integers(-50, 50) | st.integers(-(2**31), 2**31 - 1), max_size=200)


@given(numbers)
def test_sorts_agree_with_numpy(values: list[int]) -> None:
    short, long = np.array(values, np.int32), np.array(values, np.int64)
    sort_in_place(short)
    sort_in_place(long)
    assert short.tolist() == long.tolist() == sorted(values)


@given(numbers)
def test_the_order_is_stable(values: list[int]) -> None:
    keys = np.array(values, np.int64)
    assert order_of(keys).tolist() == np.argsort(keys, kind="stable").tolist()


def test_no_kernel_uses_a_sort_of_numba() -> None:
    n_kernels = 0
    for path in Path(queryveil.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(each) for each in node.decorator_list):
                n_kernels += 1
                sorts = r"\.sort\(|np\.sort|argsort|np\.unique|np\.median|np\.partition"
                assert not re.findall(sorts, ast.unparse(node)), (path.name, node.name)
    assert n_kernels > 100
