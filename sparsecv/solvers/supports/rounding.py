"""Supports of exactly τ columns, from a relaxation's coefficients or from a smaller support."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import Array

Support = NDArray[np.intp]


def largest(values: Array, tau: int) -> Support:
    """The τ columns of largest value, increasing; columns of lower number win ties.

    The values |β|√w of a relaxation's coefficients β with weights w order its columns as the
    indicators z = min(1, |β|√(w/λ)) do, so that this is the greedy rounding of the relaxation.
    """
    if values.size <= tau:
        return np.arange(values.size)
    return np.sort(np.argsort(-values, kind="stable")[:tau])


def pad_support(support: Support, size: int, p: int, preferred: Support | None = None) -> Support:
    """A support of distinct columns, filled up to ``size`` of the p columns; increasing.

    Columns that the support lacks come from ``preferred`` first and then in their order, as columns
    of zeros do. A support that is large enough stays as it is.
    """
    if support.size < size:
        for more in (np.arange(p),) if preferred is None else (preferred, np.arange(p)):
            support = np.concatenate([support, more[~np.isin(more, support)]])[:size]
    return np.sort(support).astype(np.intp)


def stacked(supports: Sequence[Support], most: int) -> NDArray[np.int64]:
    """Supports of at most ``most`` columns as rows of that many, ended by −1."""
    rows = np.full((len(supports), most), -1, dtype=np.int64)
    for row, support in zip(rows, supports, strict=True):
        row[: support.size] = support
    return rows
