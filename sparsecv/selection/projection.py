"""Project the average of a grid's models onto exact best subsets.

The average predicts better than any one model of the grid, but has nearly every column. Its
projection (Piironen and Vehtari 2017) is a sparse model that predicts like it: with f̂ the
average's predictions, for every size τ and a few ridge weights γ⊥

    min ||f̂(X) − Xβ||² + (γ⊥/2)||β||²  s.t. ||β||₀ ≤ τ,

eq. (1) of the main paper with y replaced by f̂(X), by the same solver: exact up to 45 columns, good
supports beyond. The size is chosen by the held-out distance to the average, not by the error
against y. With few rows that error adds twice the mean of (y − f̂)(f̂ − Xβ), noise that is larger
than the distance itself; and distances on the training rows are nearly 0 where columns are more
than rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.engine import interruptible
from ..cv.progress import Tell
from ..cv.results import CVResult, mean_over_folds
from ..design.design import Array, Design
from ..design.fold_data import FoldData
from ..design.model import FittedModel, fitted_model
from ..solvers.core.limits import Limits, StopFlag
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.threads import one_blas_thread
from ..solvers.executor import run_units
from ..solvers.paths import support_path
from .averaging import averaged_coefficients
from .inner import enough

NEAR = 0.01  # of the average's CV error: a distance that is small enough
RIDGES = (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0)  # γ⊥ in hundredths of a column's squared length


@dataclass(frozen=True)
class Projection:
    """The average of a grid's models, projected onto every size.

    sizes, shape (τ,).
    gammas, shape (γ⊥,).
    distance, shape (γ⊥, τ): Mean squared distance of the projected predictions to the average's on
        held-out rows.
    cv_error, std_error, shape (γ⊥, τ): Mean squared error of the projected models against y on the
        same rows, and its standard error. Every fold's average, with its weights, and projections
        come from its training rows.
    reference, reference_std: The average's own CV error on the same rows, and its standard error.
    at, shape (τ,): Position of the γ⊥ of least distance.
    chosen: Position of the chosen size.
    models: Projections of all rows' average at (γ⊥, τ) = (gammas[at[t]], sizes[t]); their
        objectives are those of the projection.
    proved: Whether every support of every fold and of all rows is the best one.
    """

    sizes: NDArray[np.intp]
    gammas: Array
    distance: Array
    cv_error: Array
    std_error: Array
    reference: float
    reference_std: float
    at: NDArray[np.intp]
    chosen: int
    models: list[FittedModel] = field(repr=False)
    proved: bool

    def of_size(self, values: Array) -> Array:
        """Entries of a table (γ⊥, τ) at the γ⊥ of every size.

        values, shape (γ⊥, τ).
        Returns, shape (τ,).
        """
        return np.asarray(values[self.at, np.arange(self.sizes.size)])


class FoldSums(NamedTuple):
    """Sums of squares over the held-out rows of one fold.

    ``distance`` and ``error``, shape (γ⊥, τ), are those of the projected models to the fold's
    average and to y; ``reference`` is the average's to y.
    """

    distance: Array
    error: Array
    reference: float
    proved: bool


def projection_gammas(problem: SparseRidgeProblem, least: float) -> Array:
    """Ridge weights γ⊥: 1e-4 to 1 times the mean squared length of the columns, and lower ones.

    Where columns are nearly dependent, models of tiny γ can carry the average, and only projections
    of such a γ come near it: γ⊥ goes down by tens until it passes the least γ in the average.

    problem: All rows.
    least: The least γ whose models carry weight.
    Returns, shape (γ⊥,): Increasing. Columns of unit variance have squared length n.

    Examples
    --------
    >>> problem = SparseRidgeProblem(10.0 * np.eye(2), [1.0, 2.0], gamma=1.0, tau=1)
    >>> projection_gammas(problem, 5e-4).round(4).tolist()
    [0.0001, 0.001, 0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0]
    """
    found = np.array(RIDGES) * (problem.squared_lengths.mean() / 100.0)
    lower = int(np.ceil(np.log10(max(found[0] / least, 1.0))))
    return np.append(found[0] * 10.0 ** -np.arange(lower, 0, -1), found)


def project_fold(
    data: FoldData,
    coef: Array,
    gammas: Array,
    sizes: NDArray[np.intp],
    fold: int,
    limits: Limits | None = None,
) -> FoldSums:
    """Project a fold's average, and measure both on its held-out rows.

    coef, shape (p,): Of the average of the fold's models.
    gammas, shape (γ⊥,).
    sizes, shape (τ,).
    limits: Where they are reached, supports are good ones without a proof.
    """
    target = data.training(fold).predicting(coef)
    limits = limits or Limits()
    solver = enough(data.p, limits)
    path = support_path(target, gammas, sizes, solver=solver, limits=limits)
    rows, targets = data.held_out(fold)
    fitted = rows @ coef
    return FoldSums(
        path.squared_errors(rows, fitted),
        path.squared_errors(rows, targets),
        float(np.sum((targets - fitted) ** 2)),
        bool(path.proved.all()),
    )


def choose_size(
    distance: Array, enough: float, allowed: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.intp], int]:
    """The γ⊥ of least distance for every size, and the least size whose distance is small enough.

    distance, shape (γ⊥, τ).
    allowed, shape (γ⊥, τ), optional: Sizes at a γ⊥ that may be chosen.
    Returns at, shape (τ,).
    Returns chosen: Among those allowed the least size whose distance is small enough, else the one
        of least distance. Where none is allowed all are.
    """
    at, least = distance.argmin(axis=0), distance.min(axis=0)
    if allowed is not None:
        here = allowed[at, np.arange(at.size)]
        least = np.where(here, least, np.inf) if here.any() else least
    near = np.flatnonzero(least <= enough)
    return at, int(near[0] if near.size else least.argmin())


@dataclass(frozen=True, eq=False)
class Averages:
    """What the units of a projection share: a partition, its folds' weights, and what is wanted."""

    data: FoldData
    result: CVResult
    weights: list[Array]
    gammas: Array
    sizes: NDArray[np.intp]


def _project(average: Averages, j: int, limits: Limits) -> FoldSums:
    """The unit of one fold."""
    data = average.data
    coef = averaged_coefficients(data.training(j), average.result, average.weights[j], j)
    return project_fold(data, coef, average.gammas, average.sizes, j, limits)


def project_average(
    data: FoldData,
    result: CVResult,
    design: Design,
    weights: Array,
    of_folds: list[Array],
    sizes: NDArray[np.intp],
    most: tuple[int, float],
    *,
    limits: Limits | None = None,
    n_jobs: int | None = None,
    tell: Tell | None = None,
) -> Projection:
    """Project the average of a grid's models onto every size, in the folds and on all rows.

    weights, shape (γ, τ): Of the models of all rows
        (:func:`sparsecv.selection.averaging.model_weights`).
    of_folds, shape (γ, τ): Of every fold's models (:func:`sparsecv.selection.inner.inner_weights`).
    sizes: Increasing, in 1..p.
    most: Columns and CV error of another choice.
    n_jobs: Threads over folds.
    tell: Told what is being done, the units done and units in all.
    Returns: The chosen size is the least whose held-out distance is at most a hundredth of the
        average's CV error, else the one of least distance; among the sizes that do not have both
        more columns and more CV error than ``most``.
    """
    full = data.full()
    gammas = projection_gammas(full, float(result.gammas[weights.any(axis=1)].min()))
    with interruptible(StopFlag()) as stop, one_blas_thread():
        clock = Limits(None if limits is None else limits.remaining(), None, stop)
        average = Averages(data, result, of_folds, gammas, sizes)
        folds = _held_out(average, clock, n_jobs, tell)
        distance, error, spread, reference, reference_std = _means(folds, data.fold_weight)
        allowed = (sizes <= most[0]) | (error <= most[1])
        at, chosen = choose_size(distance, NEAR * float(reference), allowed)
        target = full.predicting(averaged_coefficients(full, result, weights))
        used, place = np.unique(at, return_inverse=True)
        path = support_path(target, gammas[used], sizes, solver="auto", limits=clock)
    models = [
        fitted_model(
            design,
            target.replace(gamma=float(gammas[at[t]])),
            path.support(g, t),
            float(path.lower_bound[g, t]),
            bool(path.proved[g, t]),
        )
        for t, g in enumerate(place)
    ]
    proved = all(one.proved for one in folds) and all(m.proved for m in models)
    return Projection(
        sizes,
        gammas,
        distance,
        error,
        spread,
        float(reference),
        float(reference_std),
        at,
        chosen,
        models,
        proved,
    )


def _held_out(
    average: Averages, clock: Limits, n_jobs: int | None, tell: Tell | None
) -> list[FoldSums]:
    """The sums of every fold."""
    tasks = [(j,) for j in range(average.data.folds.k)]
    found: dict[int, FoldSums] = {}
    for index, one in run_units(
        _project, average, tasks, n_jobs, allot=lambda rounds: clock.share(rounds + 1.0)
    ):
        found[index] = one
        if tell is not None:
            tell("projecting", len(found), len(tasks))
    return [found[j] for j in range(len(tasks))]


def _means(folds: list[FoldSums], weight: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Distance, error with its standard error, and those of the average, over one partition."""
    distance = mean_over_folds(np.stack([one.distance for one in folds], axis=-1), weight)[0]
    error = mean_over_folds(np.stack([one.error for one in folds], axis=-1), weight)
    return distance, *error, *mean_over_folds(np.array([one.reference for one in folds]), weight)
