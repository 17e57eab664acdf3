"""p-values and intervals of coefficients that know that their columns were searched for.

The statistic of column j of the selected support S is its least-squares coefficient z = ηᵀy. Given
what y has across η, z is normal, and truncated to the set R of values at which S is selected
(:mod:`sparsecv.solvers.leaps.selection_event`), so that tails within R give exact p-values (Lee,
Sun, Sun and Taylor 2016). The choice of a size by a criterion is part of the event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status, Work
from ..solvers.core.rows import DEPENDENT_SHARE
from ..solvers.leaps.gathering import Comparison
from ..solvers.leaps.quadratics import SAME_ANGLE
from ..solvers.leaps.selection_event import selection_events
from .criteria import least_squares
from .near_best import compared
from .result import Result
from .truncated_normal import Truncated

# Residual degrees of freedom from which on the error's standard deviation is estimated: with 30 of
# them the estimate is off by some 13 %. The value is a choice.
LEAST_DEGREES = 30


@dataclass(frozen=True)
class ColumnInference:
    """What inference says of one selected column, in the units of X and y.

    All but the column is NaN if the other columns of the model determine the column.

    column: Its number among the raw columns.
    coef, std_error: Its least-squares coefficient within the model, and the standard error that the
        coefficient would have if the columns had not been searched for.
    p_low, p_high: The selective p-value of the coefficient 0 lies between them. They are equal up
        to rounding where the search has ended. NaN, as all that follows, for a column that the
        other columns of the model determine.
    low, high: Ends of the confidence interval, which may be infinite.
    region, shape (k, 2): Values of the coefficient at which the same columns are selected, or may
        be where the search has not ended.
    """

    column: int
    coef: float = math.nan
    std_error: float = math.nan
    p_low: float = math.nan
    p_high: float = math.nan
    low: float = math.nan
    high: float = math.nan
    region: Array = field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True)
class Inference:
    """p-values and confidence intervals of the columns of a model.

    columns: One record for every column that enters models alone.
    level: Of the confidence intervals.
    sigma: Standard deviation of the errors, in the units of y.
    sigma_source: Where it comes from, in words.
    event, conditional_on: How the columns were selected, and what the numbers condition on.
    status: Optimal where the search has ended, else what stopped it.
    work: What the search took.
    """

    columns: Sequence[ColumnInference]
    level: float
    sigma: float
    sigma_source: str
    event: str
    conditional_on: str
    status: Status
    work: Work

    @property
    def complete(self) -> bool:
        """Whether the search has ended, so that every p-value is known up to rounding."""
        return self.status is Status.OPTIMAL


def infer(
    result: Result, level: float = 0.95, sigma: float | None = None, seconds: float | None = None
) -> Inference:
    """Test the coefficients of a model whose columns a search has selected.

    level: Of the confidence intervals.
    sigma: Standard deviation of the errors, in the units of y; by default it is estimated from the
        fit on all columns.
    seconds: The search ends after so many seconds; p-values are then known within intervals.
    Raises InputError: The fit is one that the theory does not cover, or sigma cannot be estimated.
    """
    refuse_uncovered(result)
    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1; got {level!r}")
    spread, source = sigma_of(result, sigma)
    problem, design = result.problem, result.design
    support = np.searchsorted(design.kept, result.model.support)
    rules, y, scale = problem.constraints, problem.triangle[:, -1], spread / design.y_scale
    tested = [j for j in support.tolist() if rules.columns[rules.unit[j]].size == 1]
    left = {j: left_of(problem, support, j) for j in tested}
    lengths = {j: float(np.linalg.norm(vector)) for j, vector in left.items()}
    identified = [j for j in tested if lengths[j] > 0.0]
    directions = [left[j] / lengths[j] for j in identified]
    events, status, work = selection_events(
        problem, support, comparison_of(result), np.array(directions), Limits(seconds)
    )
    columns = {j: ColumnInference(int(design.kept[j])) for j in tested}
    for j, direction, event in zip(identified, directions, events, strict=True):
        x = float(direction @ y) / scale
        variable = Truncated(x, x + event.inner / scale, x + event.outer / scale)
        if not ((variable.outer[:, 0] <= x) & (x <= variable.outer[:, 1])).any():
            raise InputError(NOT_THE_BEST)
        error = spread / (lengths[j] * float(design.scale[j]))
        low, high = variable.interval(level)
        p_low, p_high = variable.p_value()
        columns[j] = ColumnInference(
            column=int(design.kept[j]),
            coef=error * x,
            std_error=error,
            p_low=p_low,
            p_high=p_high,
            low=error * low,
            high=error * high,
            region=error * variable.outer,
        )
    return Inference(
        columns=list(columns.values()),
        level=float(level),
        sigma=spread,
        sigma_source=source,
        event=event_of(result),
        conditional_on=conditions_of(result),
        status=status,
        work=work,
    )


NOT_THE_BEST = (
    "inference needs columns that are proved to be the best: raise time_limit, or take fewer "
    "columns"
)


def refuse_uncovered(result: Result) -> None:
    """Raise an InputError where a fit is one that the theory does not cover."""
    source = result.table.source
    if result.held_out is not None:
        raise InputError(
            "inference does not cover a choice by cross-validation: fit SparseRidge(tau='bic'), or "
            "choose columns on one half of the rows and test them on the other"
        )
    if source.weights is not None:
        raise InputError("inference serves no weights of rows (sample_weight): fit without them")
    if result.table.fills is not None:
        raise InputError(
            "inference serves no missing values that are filled in: leave out rows or columns that "
            "have them"
        )
    if not result.model.proved:
        raise InputError(NOT_THE_BEST)


def comparison_of(result: Result) -> Comparison:
    """How the supports of a fit were compared: supports of fewer units do not count."""
    problem, comparison = compared(result, "inference")
    if result.criterion is not None:
        return comparison
    support = np.searchsorted(result.design.kept, result.model.support)
    weight = np.full(problem.constraints.units(support).size + 1, np.inf)
    weight[-1] = 1.0
    return Comparison(weight)


def event_of(result: Result) -> str:
    """How the columns were selected, in words."""
    if result.criterion is not None:
        return f"least {result.criterion.upper()}"
    return f"best of size {result.model.tau}"


def conditions_of(result: Result) -> str:
    """What the numbers condition on, in words."""
    return (
        f"these columns are selected ({event_of(result)}), and what the response has across the "
        "tested coefficient; errors are independent and normal with one variance"
    )


def sigma_of(result: Result, sigma: float | None) -> tuple[float, str]:
    """The standard deviation of the errors in the units of y, and where it comes from.

    sigma: What was given.
    Raises InputError: It is not above 0, or too few degrees of freedom are left to estimate it.
    """
    if sigma is not None:
        if not (isinstance(sigma, Real) and 0.0 < sigma < math.inf):
            raise InputError(f"sigma must be a number above 0; got {sigma!r}")
        return float(sigma), "given"
    design, problem = result.design, result.problem
    rss, rank = least_squares(problem.rows, np.arange(problem.p), design.total)
    free = round(design.total) - rank - int(design.protocol.intercept)
    if free < LEAST_DEGREES:
        raise InputError(
            f"sigma cannot be estimated: the fit on all columns leaves {max(free, 0)} degrees of "
            f"freedom, and {LEAST_DEGREES} are needed; give the errors' standard deviation, in "
            "Python as inference(sigma=...), or fewer columns"
        )
    if not rss > 0.0:
        raise InputError("sigma cannot be estimated: the fit on all columns leaves no errors")
    words = f"residuals of the fit on all columns, {free} degrees of freedom"
    return math.sqrt(rss / free) * design.y_scale, words


def left_of(problem: SparseRidgeProblem, support: NDArray[np.intp], j: int) -> Array:
    """What the other columns of a support leave of column j; zeros where they determine it."""
    table, others = problem.triangle[:, : problem.p], support[support != j]
    left = np.array(table[:, j])
    if others.size:
        columns = table[:, others] / np.linalg.norm(table[:, others], axis=0)
        U, values, _ = np.linalg.svd(columns, full_matrices=False)
        U = U[:, values > DEPENDENT_SHARE * values[0]]
        for _ in range(2):  # The second step restores the digits that the first step has lost.
            left -= U @ (U.T @ left)
    determined = np.linalg.norm(left) <= SAME_ANGLE * np.linalg.norm(table[:, j])
    return np.zeros_like(left) if determined else left
