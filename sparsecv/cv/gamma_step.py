"""The γ step: minimise h over γ with every fold's support held fixed (Section 3.2, first paper).

The module adds the γ at which given supports predict best. Without it an alternation between τ and
γ has no next γ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..solvers.core.problem import SparseRidgeProblem

Array = NDArray[np.float64]


# The γ step searches between these two γ, which are the ends of the default grid. Where γ outside
# them have been visited, the alternation hands in wider ends. The two numbers are a choice.
LEAST_GAMMA = 1e-4
LARGEST_GAMMA = 1e4


@dataclass(frozen=True)
class FixedSupports:
    """Predictions of all held-out rows as functions of γ, supports fixed: eq. (24), first paper.

    The prediction of row i is Σ_m coef[i, m] / (squares[i, m] + γ/2), where ``squares`` are the
    squared singular values of the fold's training rows on its support.

    coef, squares, shape (m, columns of the largest support): One row for every row that
        ``FoldData.held_out`` gives of every fold, fold after fold. A smaller support has
        coefficients of 0 in the last columns.
    targets, shape (m,): The targets of these rows.
    rows: The divisor of the CV error: the number of held-out rows, or the sum of their weights.
    """

    coef: Array
    squares: Array
    targets: Array
    rows: float

    @classmethod
    def of(
        cls, data: FoldData, supports: Sequence[NDArray[np.intp]], gamma: float = 1.0
    ) -> FixedSupports:
        """Decompose the training rows of every fold j on the columns ``supports[j]``.

        supports: One for every fold, of which one at least has a column.
        gamma: Coefficients that are at a bound at this γ stay there.
        """
        k, most = len(supports), max(support.size for support in supports)
        bases, supports = [], list(supports)
        rest: list[dict[int, float]] = []
        for j, support in enumerate(supports):
            problem = data.training(j)
            few = 4 * support.size < data.p  # A long table is not factored for few columns.
            bases.append(problem.rows if few else problem.triangle)
            rest.append(held := _at_bounds(problem, gamma, support))
            if held:
                supports[j] = np.setdiff1d(support, list(held))
        # Rows and columns of zeros give all folds one shape; they only add singular values of 0.
        stack = np.zeros((k, max(base.shape[0] for base in bases), most))
        y = np.zeros(stack.shape[:2])
        for j, (base, support) in enumerate(zip(bases, supports, strict=True)):
            stack[j, : base.shape[0], : support.size] = base[:, support]
            y[j, : base.shape[0]] = _without(base[:, data.p], base, rest[j])
        U, s, Vt = np.linalg.svd(stack, full_matrices=False)
        turned = s * np.einsum("jrm,jr->jm", U, y)
        coefs, targets, sizes = [], [], []
        for j, support in enumerate(supports):
            H, t = data.held_out(j)
            coefs.append((H[:, support] @ Vt[j, :, : support.size].T) * turned[j])
            targets.append(_without(t, H, rest[j]))
            sizes.append(t.size)
        squares = np.repeat(s * s, sizes, axis=0)
        return cls(np.vstack(coefs), squares, np.concatenate(targets), data.total)

    def along(self, gammas: Array) -> tuple[Array, Array]:
        """The CV error h(γ) of the fixed supports, and its derivative by γ, at every γ of an array.

        gammas, shape (g,): Above 0.
        Returns: Errors and derivatives, shape (g,) each.
        """
        errors, slopes = np.empty((2, gammas.size))
        # Products with a vector of ones sum short rows several times faster than ``sum`` does.
        ones = np.ones(self.coef.shape[1])
        for g, half in enumerate(0.5 * gammas):
            share = 1.0 / (self.squares + half)
            parts = self.coef * share
            residual = self.targets - parts @ ones
            errors[g] = residual @ residual
            slopes[g] = residual @ (np.multiply(parts, share, out=share) @ ones)
        return errors / self.rows, slopes / self.rows

    def at(self, gamma: float) -> tuple[float, float]:
        """The CV error h(γ) of the fixed supports, and its derivative by γ, at one γ > 0."""
        (error,), (slope,) = self.along(np.array([gamma]))
        return float(error), float(slope)


def _at_bounds(
    problem: SparseRidgeProblem, gamma: float, support: NDArray[np.intp]
) -> dict[int, float]:
    """The columns of a support whose coefficients are at a bound at γ, with these coefficients."""
    asked = problem.constraints
    if not asked.bounded:
        return {}
    fit = problem.replace(gamma=gamma).fit(support)
    pairs = zip(support.tolist(), fit.coef.tolist(), strict=True)
    return {j: value for j, value in pairs if value in (asked.lower[j], asked.upper[j])}


def _without(y: Array, X: Array, fixed: dict[int, float]) -> Array:
    """The response y minus the part that columns of fixed coefficients predict.

    fixed: Coefficients by the number of their column of X. If it is empty, y itself is returned.
    """
    return y - sum(X[:, c] * value for c, value in fixed.items()) if fixed else y


def gamma_step(
    fixed: FixedSupports, previous: float, *, low: float = LEAST_GAMMA, high: float = LARGEST_GAMMA
) -> tuple[float, float]:
    """Minimise h over [low, high] with the supports fixed, by roots of its derivative.

    The derivative is computed at the previous γ, at the ends and at values between the ends that
    are spaced evenly in log γ. Wherever the derivative turns from negative to positive, Brent's
    method finds the root in between. The best root or end is returned (EC.1.1, first paper).

    previous: γ of the iteration before, which is projected to the interval.
    Returns: The best γ, and h there.
    Raises ValueError: The ends do not satisfy 0 < low <= high.
    """
    if not 0.0 < low <= high:
        raise ValueError(f"the interval of gamma must have 0 < low <= high; got {low}, {high}")
    bottom, top = float(np.log(low)), float(np.log(high))
    here = float(np.clip(previous, low, high))
    # The slope of h is computed at γ whose ratio is at most this factor. A root is searched between
    # two neighbours where the slope changes sign, so that two roots between neighbours are missed.
    # The number is a choice.
    count = 2 + int((top - bottom) / np.log(2.0))
    at = np.unique(np.append(np.linspace(bottom, top, count), np.log(here)))

    from scipy.optimize import brentq  # slow to import

    def slope(x: float) -> float:
        return fixed.at(float(np.exp(x)))[1]

    slopes = fixed.along(np.exp(at))[1].tolist()
    found = {here}
    if slopes[0] >= 0.0:
        found.add(low)
    if slopes[-1] <= 0.0:
        found.add(high)
    for i in range(at.size - 1):
        if slopes[i] < 0.0 < slopes[i + 1]:
            x = brentq(slope, float(at[i]), float(at[i + 1]), xtol=1e-10)
        elif slopes[i] == 0.0:
            x = float(at[i])
        else:
            continue
        found.add(float(np.clip(np.exp(x), low, high)))
    gammas = np.array(list(found))
    error, best = min(zip(fixed.along(gammas)[0].tolist(), gammas.tolist(), strict=True))
    return best, error
