"""The γ step: minimise h over γ with every fold's support held fixed (Section 3.2, main paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.optimize import brentq

from ..design.fold_data import FoldData

Array = NDArray[np.float64]
LOW, HIGH = 1e-4, 1e4  # the interval γ is projected to
STARTS = 10
FACTOR = 2.0  # of the first step away from a start


@dataclass(frozen=True)
class FixedSupports:
    """Predictions of all held-out rows as functions of γ, supports fixed: eq. (24), main paper.

    Row i is predicted Σ_m coef[i, m] / (squares[i, m] + γ/2): one singular value decomposition of
    each fold's training rows on its support. ``targets`` are the responses.
    """

    coef: Array
    squares: Array
    targets: Array
    rows: float

    @classmethod
    def of(cls, data: FoldData, supports: Sequence[NDArray[np.intp]]) -> FixedSupports:
        """Decompose every fold on its support.

        Parameters
        ----------
        data : FoldData
        supports : sequence of k arrays of int
        """
        most = max(support.size for support in supports)
        coefs, squares, targets = [], [], []
        for j, support in enumerate(supports):
            problem = data.training(j)
            base = problem._base
            U, s, Vt = sla.svd(base[:, support], full_matrices=False, check_finite=False)
            H, t = data.held_out(j)
            coef = np.zeros((t.size, most))
            square = np.ones((t.size, most))
            coef[:, : s.size] = (H[:, support] @ Vt.T) * (s * (U.T @ base[:, problem.p]))
            square[:, : s.size] = s * s
            coefs.append(coef)
            squares.append(square)
            targets.append(t)
        return cls(
            np.vstack(coefs),
            np.vstack(squares),
            np.concatenate(targets),
            data.total,
        )

    def error(self, gamma: float) -> float:
        """h(γ) with the supports fixed."""
        residual = self.targets - (self.coef / (self.squares + gamma / 2.0)).sum(axis=1)
        return float(residual @ residual) / self.rows

    def slope(self, gamma: float) -> float:
        """Its derivative with respect to γ."""
        inverse = 1.0 / (self.squares + gamma / 2.0)
        weighted = self.coef * inverse
        residual = self.targets - weighted.sum(axis=1)
        return float(residual @ (weighted * inverse).sum(axis=1)) / self.rows


@dataclass(frozen=True)
class GammaStep:
    """Best γ found and h there with the supports fixed; ``minima`` are all that were found."""

    gamma: float
    error: float
    minima: list[tuple[float, float]]


def gamma_step(
    fixed: FixedSupports, previous: float, *, low: float = LOW, high: float = HIGH
) -> GammaStep:
    """Minimise h over [low, high] with the supports fixed, by roots of its exact derivative.

    Starts from the previous γ and from ten values spread evenly in the logarithm; each goes
    downhill until the derivative changes sign, or the end of the interval is reached, and the root
    in between is found by Brent's method. The best of all is kept (EC.1.1, main paper).

    Parameters
    ----------
    fixed : FixedSupports
    previous : float
        γ of the iteration before; projected to the interval.
    low, high : float

    Raises
    ------
    ValueError
        Not 0 < low < high.
    """
    if not 0.0 < low < high:
        raise ValueError(f"the interval of gamma must have 0 < low < high; got {low}, {high}")
    bottom, top = np.log(low), np.log(high)

    def slope(x: float) -> float:
        return fixed.slope(float(np.exp(x)))

    found: dict[float, float] = {}
    starts = [np.clip(np.log(previous), bottom, top), *np.linspace(bottom, top, STARTS)]
    for start in starts:
        x = _descend(slope, float(start), bottom, top)
        gamma = float(np.clip(np.exp(x), low, high))
        found[gamma] = fixed.error(gamma)
    here = float(np.clip(previous, low, high))
    found.setdefault(here, fixed.error(here))
    best = min(found, key=lambda gamma: (found[gamma], gamma))
    return GammaStep(best, found[best], sorted(found.items()))


def _descend(slope: object, start: float, bottom: float, top: float) -> float:
    """Nearest stationary point downhill of ``start`` in log γ, or the end of the interval."""
    assert callable(slope)
    at, here = start, slope(start)
    if here == 0.0:
        return start
    step = -np.sign(here) * np.log(FACTOR)
    while True:
        following = float(np.clip(at + step, bottom, top))
        if following == at:
            return at
        there = slope(following)
        if there == 0.0 or np.sign(there) != np.sign(here):
            low, high = sorted((at, following))
            return following if there == 0.0 else float(brentq(slope, low, high, xtol=1e-10))
        at, here = following, there
        step *= 1.5
