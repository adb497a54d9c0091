"""The runs that no other beats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queryveil.comparison.comparison import frontier

Points = list[tuple[float, float]]
FEW = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """As good in both, and better in one."""
    return one[0] <= other[0] and one[1] >= other[1] and one != other


@given(st.lists(st.tuples(FEW, FEW) | st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12))
def test_the_frontier_is_what_no_other_point_beats(points: Points) -> None:
    kept = frontier(points)
    assert sorted(kept) == [i for i, point in enumerate(points) if not any(beats(other, point) for other in points)]
    assert [points[i][0] for i in kept] == sorted(points[i][0] for i in kept)


def test_of_nothing_there_is_no_frontier() -> None:
    assert frontier([]) == []
