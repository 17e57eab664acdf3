"""A sparse linear model in the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..solvers.core.problem import SparseRidgeProblem
    from .design import Design


@dataclass(frozen=True)
class Model:
    """Coefficients of raw columns, what they were fitted for, and what is known of them.

    support, shape (s,): Numbers of the raw columns of the model, counted from 0.
    coef, shape (p_raw,): Coefficients of all raw columns, 0 outside the support.
    tau, gamma: The size, which is the largest number of features, or of coefficients where a group
        of columns may count more than once; and the ridge weight of the solved columns.
    objective, lower_bound: The training objective in solved units, and a lower bound on the least
        objective of any support of τ features, or, where a criterion has chosen τ, of any support
        that its penalty weighs no more; NaN where they are not known.
    proved: Whether no other support has a smaller objective, up to rounding.
    cv_error, std_error: The CV error of (γ, τ), and its standard error; NaN where none is known.
    distance: Of a projection, the mean squared distance to the average on held-out rows; else NaN.
    """

    support: NDArray[np.intp]
    coef: NDArray[np.float64]
    intercept: float
    tau: int
    gamma: float
    objective: float = float("nan")
    lower_bound: float = float("nan")
    proved: bool = False
    cv_error: float = float("nan")
    std_error: float = float("nan")
    distance: float = float("nan")

    @property
    def gap(self) -> float:
        """Relative gap between objective and lower bound; NaN where there is no objective."""
        from ..solvers.core.result import relative_gap  # Predictions load no solver.

        if np.isnan(self.objective):
            return float("nan")
        return relative_gap(self.objective, self.lower_bound)

    @property
    def own_gamma(self) -> float:
        """γ, or NaN at the size 0: the mean alone has no coefficient that γ could shrink."""
        return self.gamma if self.tau > 0 else float("nan")

    @property
    def shows_gap(self) -> bool:
        """Whether the gap is small enough to be shown."""
        # The gap of a training objective is not shown where it is at least this large, as the lower
        # bound then says little; 1 is the gap of the trivial bound 0. The value was chosen.
        return self.gap < 0.75


def values_of(models: Sequence[Model], name: str) -> NDArray[Any]:
    """An attribute of several models, as an array."""
    return np.array([getattr(model, name) for model in models])


def fitted_model(
    design: Design,
    problem: SparseRidgeProblem,
    support: NDArray[np.intp],
    tau: int,
    lower_bound: float,
    proved: bool,
) -> Model:
    """Fit a problem on a support, and map the fit to coefficients of raw columns.

    problem: The training problem of solved columns, at the γ of the model.
    support: Numbers of the problem's columns, which are the solved columns.
    tau: The largest number of features.
    lower_bound: A lower bound on the optimal objective; a bound above the model's own objective is
        lowered to that objective.
    proved: Whether the support is optimal.
    """
    fit = problem.fit(support)
    beta = np.zeros(problem.p)
    beta[support] = fit.coef
    coef, intercept = design.coefficients(beta)
    bound, gamma = min(lower_bound, fit.objective), problem.given_gamma
    own = design.kept[support], coef, intercept, tau, gamma
    return Model(*own, fit.objective, bound, proved)
