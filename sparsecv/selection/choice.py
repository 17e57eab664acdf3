"""What a rule of selection chooses, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..cv.results import Array
from .projection import Projection


@dataclass(frozen=True)
class Choice:
    """What a rule chooses.

    cv_error: h(γ, τ) of the choice: exact where ``lower`` and ``upper`` agree, else an estimate.
    lower, upper: Bounds on it.
    criterion: What the rule minimises: h, h + λ·stability, the corrected error or the mean of h
        over partitions. Of the rule averaged: Σ w·h.
    certified: Whether no pair that was looked at can be better by that criterion: of the grid, or
        after an alternation, with repeated, of the γ that are not too close. For one-se and
        averaged, whether everything they look at is proved.
    lambda_: λ of the rule stability, chosen by nested folds.
    weights, shape (γ, τ), or None: Of the rule averaged (:mod:`sparsecv.selection.averaging`);
        ``tau`` then is the number of columns in the average, ``gamma`` is NaN, and ``cv_error`` is
        that of averages whose weights come from the folds' training rows
        (:mod:`sparsecv.selection.inner`).
    projection: Of the rule projected (:mod:`sparsecv.selection.projection`); ``gamma`` then is γ⊥,
        ``cv_error`` is that of the projections as they were found, and ``criterion`` their held-out
        distance to the average.
    """

    rule: str
    gamma_index: int
    tau_index: int
    gamma: float
    tau: int
    cv_error: float
    lower: float
    upper: float
    criterion: float
    certified: bool
    lambda_: float | None = None
    weights: Array | None = field(default=None, compare=False, repr=False)
    projection: Projection | None = field(default=None, compare=False, repr=False)

    @property
    def is_pair(self) -> bool:
        """Whether it is a pair (γ, τ) of the grid."""
        return self.weights is None and self.projection is None
