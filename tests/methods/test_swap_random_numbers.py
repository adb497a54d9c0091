"""Random numbers by the block: the same row of numbers however it is taken, and another one without a seed."""

from __future__ import annotations

import numpy as np
import pytest

from queryveil.methods.swap.pools import BLOCK, RandomNumbers


def taken(numbers: RandomNumbers, sizes: list[int]) -> list[int]:
    found: list[int] = []
    for size in sizes:
        found += numbers.look(at_least=size)[:size].tolist()
        numbers.take(size)
    return found


def test_the_numbers_do_not_depend_on_how_many_are_taken_at_a_time() -> None:
    sizes = [1, 10, BLOCK - 11, 3, BLOCK, 2 * BLOCK + 5, 0, 7]
    at_once = taken(RandomNumbers(seed=5), [sum(sizes)])
    assert taken(RandomNumbers(seed=5), sizes) == at_once
    assert len(set(at_once)) == len(at_once)


@pytest.mark.parametrize("n", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_a_row_of_numbers_can_be_gone_on_with_in_the_middle(n: int) -> None:
    first = RandomNumbers(seed=5)
    taken(first, [n])
    behind = RandomNumbers(seed=5, n_taken=n)
    assert behind.n_taken == first.n_taken == n
    assert taken(behind, [50]) == taken(first, [50])


def test_looking_takes_nothing() -> None:
    numbers = RandomNumbers(seed=5)
    assert numbers.look()[0] == numbers.look(at_least=BLOCK + 1)[0]
    assert numbers.n_taken == 0


def test_without_a_seed_no_two_rows_are_the_same_and_other_seeds_give_other_numbers() -> None:
    rows = [RandomNumbers(), RandomNumbers(), RandomNumbers(seed=1), RandomNumbers(seed=2)]
    assert len({row.look()[0] for row in rows}) == len(rows)


@pytest.mark.parametrize("seed", [None, 3])
def test_all_bits_are_used(seed: int | None) -> None:
    numbers = RandomNumbers(seed=seed).look(at_least=BLOCK)
    assert np.bitwise_or.reduce(numbers) == 2**64 - 1
    assert np.bitwise_and.reduce(numbers) == 0
