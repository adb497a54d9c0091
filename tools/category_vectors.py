"""Vectors of units from the files in wordllama's wheel, and a regression on them: build time only."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
SHARPNESS = 3.0


class Vectors:
    """The mean vector of the tokens of a text, of length one."""

    def __init__(self) -> None:
        # Read directly: its own loader asks a server for a tokenizer that lies beside it.
        spec = find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise SystemExit("pip install wordllama tokenizers safetensors")
        folder = Path(spec.origin).parent
        tokenizer: Any = import_module("tokenizers").Tokenizer
        self._tokenizer = tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self._tokenizer.no_padding()
        tensors = import_module("safetensors.numpy").load_file(folder / "weights" / "l2_supercat_256.safetensors")
        self._weights: Matrix = next(iter(tensors.values())).astype(np.float32)

    def of(self, texts: Sequence[str]) -> Matrix:
        """Give a row for each text."""
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        rows = np.stack([self._weights[each.ids].mean(axis=0) if each.ids else self._weights[0] for each in encoded])
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        out: Matrix = (rows / np.maximum(norms, 1e-9)).astype(np.float32)
        return out


class Ridge:
    """Kernel ridge regression to target shares: near texts get near shares.

    On a fifth of the seeds, held out, it found a right category for 61 %, a softmax regression on the vectors for 50 %.
    """

    def __init__(self, rows: Matrix, targets: Matrix, *, worth: Matrix, ridge: float = 0.3) -> None:
        self._rows, self._mean = rows, targets.mean(axis=0)
        kernel = self._kernel(rows)
        kernel[np.diag_indices(len(rows))] += ridge / worth
        self._weights: Matrix = np.linalg.solve(kernel, targets - self._mean)

    def predict(self, rows: Matrix) -> Matrix:
        """Give the shares of the categories for each row."""
        parts = [self._kernel(rows[i : i + 4096]) @ self._weights for i in range(0, len(rows), 4096)]
        shares: Matrix = np.maximum(np.concatenate(parts) + self._mean, 0.005)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def _kernel(self, rows: Matrix) -> Matrix:
        kernel: Matrix = np.exp(np.float32(SHARPNESS) * (rows @ self._rows.T - 1))
        return kernel
