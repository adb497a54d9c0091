"""Numbers for texts: equal texts get equal numbers, in the order in which they first appear."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.kernels.arrays import Int32s


def encode(texts: pl.Series) -> tuple[Int32s, pl.Series]:
    """Give a number for every text, and the distinct texts by number.

    >>> codes, distinct = encode(pl.Series(["b", "a", "b"]))
    >>> codes.tolist(), distinct.to_list()
    ([0, 1, 0], ['b', 'a'])
    """
    array: Any = texts.cast(pl.String).to_arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    encoded = array.dictionary_encode()
    codes: Int32s = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return codes, pl.Series(encoded.dictionary).cast(pl.String)
