"""The least CV error over every τ and a range of γ, as ``global_gamma`` finds and proves it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..solvers.core.result import Status

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GlobalMinimum:
    """The least CV error over every τ and every γ of a range.

    Attributes
    ----------
    tau, gamma : int, float
        The best pair known.
    upper, lower : float
        Its CV error, rounded up, and a lower bound on h(γ, τ) for every τ searched and every γ of
        the range. Where several supports of a fold are optimal at a γ, the lower bound holds for
        each, except that of supports which tie at every γ the lexicographically first counts: the
        error by another way of breaking such ties may lie below the lower bound.
    low, high : float
        The range of γ.
    tolerance : float
        The relative gap (upper − lower)/upper that was asked for.
    status : Status
        Optimal where the gap is at most the tolerance, else the limit that was reached.
    taus : ndarray of int, shape (τ,)
    left : ndarray, shape (cells, 3)
        The pairs that cannot be excluded: τ and a low and a high γ. Everywhere else h is proved to
        exceed ``upper``.
    gammas, cv_error : ndarray, shape (g,) and (g, τ)
        h(γ, τ) at some γ of the range, for pictures; ∞ where a limit left supports unknown.
    n_trees, n_cells : int
        Trees searched for supports, and cells bounded.
    seconds : float
    """

    tau: int
    gamma: float
    upper: float
    lower: float
    low: float
    high: float
    tolerance: float
    status: Status
    taus: NDArray[np.intp]
    left: Array = field(repr=False)
    gammas: Array = field(repr=False)
    cv_error: Array = field(repr=False)
    n_trees: int
    n_cells: int
    seconds: float

    @property
    def gap(self) -> float:
        """(upper − lower)/upper; 0 where both are 0."""
        return (self.upper - self.lower) / self.upper if self.upper > 0.0 else 0.0

    @property
    def certified(self) -> bool:
        """Whether no pair has an error that is lower by more than the tolerance."""
        return self.gap <= self.tolerance
