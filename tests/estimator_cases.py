"""A table with names that tests of the estimators share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NAMES = ["age", "b c", "größe", "x_3", "last"]


def table(n: int = 40, p: int = 5, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** np.arange(-1.0, p - 1.0) + np.arange(p)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, 3.0 * scaled[:, 0] - 2.0 * scaled[:, 3] + rng.standard_normal(n) + 7.0
