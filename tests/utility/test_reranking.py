from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.data import Floats
from queryveil.data.rows import Rows
from queryveil.utility.personalised import similarities


def packed(dense: Floats) -> tuple[Rows[np.int32], Floats]:
    rows, columns = np.nonzero(dense)
    return Rows.from_entries(rows, columns.astype(np.int32), n_rows=len(dense)), dense[rows, columns]


@given(seed=st.integers(0, 2**32), n_searches=st.integers(0, 6))
def test_products_are_those_of_whole_matrices_and_no_profile_gives_none(seed: int, n_searches: int) -> None:
    rng = np.random.default_rng(seed)
    documents, profiles = (rng.random((n, 5)) * (rng.random((n, 5)) < 0.5) for n in (4, 3))
    found = rng.integers(0, 4, (n_searches, 3)).astype(np.int32)
    profile_of = rng.integers(-1, 3, n_searches)
    products = similarities(found, profile_of, packed(documents), packed(profiles), 5)
    expected = (documents[found] * profiles[profile_of][:, None]).sum(axis=2)
    expected[profile_of < 0] = 0
    np.testing.assert_allclose(products, expected)
