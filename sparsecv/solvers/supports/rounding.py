"""Supports of exactly τ columns, from a relaxation's coefficients or from a smaller support."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import Array

Support = NDArray[np.intp]


def largest(values: Array, tau: int) -> Support:
    """The τ columns with the largest ``values`` (p,), increasing; of equal ones the lower number.

    With the values |β|√w of a relaxation's coefficients β and weights w the result is the greedy
    rounding of the relaxation, whose indicators are z = min(1, |β|√(w/λ)).
    """
    if values.size <= tau:
        return np.arange(values.size)
    return np.sort(np.argsort(-values, kind="stable")[:tau])


def pad_support(support: Support, size: int, p: int, preferred: Support | None = None) -> Support:
    """A support of distinct columns, filled up to ``size`` of the p columns; increasing.

    The columns that are added come from ``preferred`` in its order, and then from 0, 1, 2, ….
    A support of ``size`` or more columns keeps its columns.
    """
    if support.size < size:
        for more in (np.arange(p),) if preferred is None else (preferred, np.arange(p)):
            support = np.concatenate([support, more[~np.isin(more, support)]])[:size]
    return np.sort(support).astype(np.intp)


def stacked(supports: Sequence[Support], most: int) -> NDArray[np.int64]:
    """Supports of at most ``most`` columns as rows of ``most`` entries, filled up with −1."""
    rows = np.full((len(supports), most), -1, dtype=np.int64)
    for row, support in zip(rows, supports, strict=True):
        row[: support.size] = support
    return rows
