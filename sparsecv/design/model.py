"""A fitted sparse linear model in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import relative_gap
from .design import Array, Design


@dataclass(frozen=True)
class FittedModel:
    """Coefficients of raw columns, and the training objective in solved units with its bound.

    support: Numbers of the raw columns of the model.
    coef, shape (p_raw,): Coefficients of all raw columns, 0 outside the support.
    objective, lower_bound: The model's training objective, and a lower bound on the least objective
        of any support. An average of models has no objective: both numbers then are NaN.
    proved: Whether no other support has a smaller objective, up to rounding. An average is proved
        where all models in the average are.
    """

    support: NDArray[np.intp]
    coef: Array
    intercept: float
    objective: float
    lower_bound: float
    proved: bool

    @property
    def gap(self) -> float:
        """Relative gap between objective and lower bound; NaN where there is no objective."""
        if np.isnan(self.objective):
            return float("nan")
        return relative_gap(self.objective, self.lower_bound)

    @property
    def shows_gap(self) -> bool:
        """Whether the gap is small enough to be shown."""
        # The gap of a training objective is not shown where it is at least this large, as the lower
        # bound then says little; 1 is the gap of the trivial bound 0. The value was chosen.
        return self.gap < 0.75


class SizeModels(NamedTuple):
    """A model of all rows for every size.

    tau, shape (m,): The sizes, increasing.
    gamma, shape (m,): The ridge weight of every size's model.
    models: One model for every size, in raw columns.
    cv_error, std_error, shape (m,): CV errors at these pairs (γ, τ), and their standard errors.
    distance, shape (m,): Of projections, the mean squared distance to the average on held-out rows.
    """

    tau: NDArray[np.intp]
    gamma: Array
    models: list[FittedModel]
    cv_error: Array
    std_error: Array
    distance: Array | None = None


def fitted_model(
    design: Design,
    problem: SparseRidgeProblem,
    support: NDArray[np.intp],
    lower_bound: float,
    proved: bool,
) -> FittedModel:
    """Fit a problem on a support, and map the fit to coefficients of raw columns.

    problem: The training problem of solved columns, at the γ of the model.
    support: Numbers of the problem's columns, which are the solved columns.
    lower_bound: A lower bound on the optimal objective; a bound above the model's own objective is
        lowered to that objective.
    proved: Whether the support is optimal.
    """
    fit = problem.fit(support)
    beta = np.zeros(problem.p)
    beta[support] = fit.coef
    coef, intercept = design.coefficients(beta)
    bound = min(lower_bound, fit.objective)
    return FittedModel(design.kept[support], coef, intercept, fit.objective, bound, proved)
