"""Project the average of a grid's models onto exact best subsets.

The average predicts better than any one model of the grid, but has nearly every column. Its
projection (Piironen and Vehtari 2017) is a sparse model that predicts like it: with f̂ the
average's predictions, for every size τ and a few ridge weights γ⊥

    min ||f̂(X) − Xβ||² + (γ⊥/2)||β||²  s.t. ||β||₀ ≤ τ,

eq. (1) of the first paper with y replaced by f̂(X), by the same solver: exact up to 45 columns, good
supports beyond. The size is chosen by the held-out distance to the average, not by the error
against y. With few rows the error against y adds twice the mean of (y − f̂)(f̂ − Xβ), noise that is
larger than the distance itself; and distances on the training rows are nearly 0 where columns are
more than rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.results import mean_over_folds
from ..cv.settings import checked_taus
from ..design.design import Array
from ..design.fold_data import FoldData
from ..design.model import SizeModels, fitted_model
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.paths import support_path
from .averaging import averaged_coefficients, solver_for
from .study import Study


class ProjectionSettings(NamedTuple):
    """Which projections are computed, and which size is chosen."""

    # A size may be chosen where its held-out distance to the average is at most this share of the
    # average's CV error, and on many rows at most a smaller share (:func:`max_distance_shares`).
    # The value is measured: experiments/selection/average_weights.py compares 0.3 %, 1 % and 3 %.
    max_distance_share: float = 0.01
    # On n rows a size τ may be chosen whose distance is at most this number times τ/n. The value is
    # measured on tables of ``experiments/selection/projection.py --long``: with 1 in its place two
    # kinds of tables of 20,000 rows and 46 columns have 1.3 times the minimum's excess test error.
    share_of_estimation: float = 0.5
    # The ridge weights γ⊥ of projections, in hundredths of the mean squared length of a column.
    # Powers of ten below them are added where models of smaller γ carry weight. Every size takes
    # the γ⊥ of its least held-out distance. The values are measured.
    ridges: tuple[float, ...] = (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0)


PROJECTION = ProjectionSettings()


@dataclass(frozen=True)
class Projection:
    """The average of a grid's models, projected onto every size.

    Attributes
    ----------
    sizes : SizeModels
        The projection of every size at the γ⊥ of its least distance: its model of all rows, whose
        objective is that of the projection; the mean squared distance of its predictions to the
        average's predictions on held-out rows; and its mean squared error against y on the same
        rows. Every fold's average, with its weights, and projections come from the fold's training
        rows.
    reference, reference_std : float
        The CV error of the average on the same rows, and its standard error.
    max_share : ndarray, shape (τ,)
        The largest distance at which a size is close to the average, over ``reference``.
    allowed : ndarray of bool, shape (τ,)
        Which sizes may be chosen. A size may not that has both more columns and more CV error than
        the pair of least CV error.
    chosen : int
        Position of the chosen size.
    proved : bool
        Whether every support of every fold and of all rows is the best support.
    """

    sizes: SizeModels = field(repr=False)
    reference: float
    reference_std: float
    max_share: Array
    allowed: NDArray[np.bool_]
    chosen: int
    proved: bool


def projection_gammas(problem: SparseRidgeProblem, averaged: Array) -> Array:
    """Ridge weights γ⊥: 1e-4 to 1 times the mean squared length of the columns, and lower weights.

    Where columns are nearly dependent, models of tiny γ can carry the average, and only projections
    of such a γ come near it: γ⊥ goes down by tens until it passes the least γ > 0 in the average,
    and 0 is a γ⊥ where γ = 0 is in the average.

    problem: All rows.
    averaged: The γ whose models carry weight.
    Returns, shape (γ⊥,): Increasing. Columns of unit variance have squared length n.

    Examples
    --------
    >>> problem = SparseRidgeProblem(10.0 * np.eye(2), [1.0, 2.0], gamma=1.0, tau=1)
    >>> projection_gammas(problem, np.array([5e-4, 1.0])).round(4).tolist()
    [0.0001, 0.001, 0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0]
    """
    # Six digits: the rounding of standardised columns, which all rows have a part in, would else
    # reach the last digit of every fold's error.
    unit = float(f"{problem.squared_lengths.mean() / 100.0:.5e}")
    found = np.array(PROJECTION.ridges) * unit
    least = averaged[averaged > 0.0].min(initial=found[0])
    lower = int(np.ceil(np.log10(max(found[0] / least, 1.0))))
    zero = np.zeros(int((averaged == 0.0).any()))
    return np.concatenate([zero, found[0] * 10.0 ** -np.arange(lower, 0, -1), found])


class FoldAverages(NamedTuple):
    """What all units of a projection share; ``coefs[j]``, shape (p,), is the average of fold j.

    every_fit: As of :func:`~sparsecv.solvers.paths.support_path`.
    """

    data: FoldData
    coefs: list[Array]
    gammas: Array
    sizes: NDArray[np.intp]
    every_fit: bool = True


def project_fold(average: FoldAverages, j: int, limits: Limits) -> tuple[Array, Array, bool]:
    """The unit of one fold: project its average, and measure the projections on held-out rows.

    limits: Limits of the unit; once a limit is reached, supports are found without a proof.
    Returns, shape (γ⊥, τ) twice: Sums over the held-out rows of the squared distance to the average
        and of the squared error against y; and whether every support is proved.
    """
    data, coef = average.data, average.coefs[j]
    target, solver = data.training(j).predicting(coef), solver_for(data.n_units)
    gammas, sizes, every = average.gammas, average.sizes, average.every_fit
    path = support_path(target, gammas, sizes, solver=solver, limits=limits, every_fit=every)
    rows, targets = data.held_out(j)
    distance = path.squared_errors(rows, rows @ coef)
    return distance, path.squared_errors(rows, targets), bool(path.proved.all())


def max_distance_shares(sizes: NDArray[np.intp], n: int) -> Array:
    """The largest share of the average's CV error that a size's distance may be, shape (τ,).

    A model of τ coefficients that are estimated from n rows pays about τ/n of its error for the
    estimation. A projection may lose half of that; a larger distance could hide effects that n rows
    show clearly. The share is therefore τ/2n where that is below ``max_distance_share``,
    which is the case from n = 50 τ rows on.

    Examples
    --------
    >>> max_distance_shares(np.array([1, 5, 30]), 1000).tolist()
    [0.0005, 0.0025, 0.01]
    """
    own = PROJECTION.share_of_estimation * sizes / n
    return np.minimum(PROJECTION.max_distance_share, own)


def choose_size(
    distance: Array, max_distance: float | Array, allowed: NDArray[np.bool_] | None = None
) -> int:
    """The position of the chosen size.

    It is the least allowed size whose distance is at most ``max_distance``, or else the allowed
    size of least distance.

    distance, shape (τ,): Held-out distance of every size's projection to the average.
    max_distance: A number, or one for every size, shape (τ,).
    allowed, shape (τ,), optional: Which sizes may be chosen; all sizes where no size is allowed.
    """
    if allowed is not None and allowed.any():
        distance = np.where(allowed, distance, np.inf)
    close = np.flatnonzero(distance <= max_distance)
    return int(close[0] if close.size else distance.argmin())


def project_average(study: Study, weights: Array, most: tuple[int, float]) -> Projection:
    """Project the average of a study's models onto the study's sizes, in folds and on all rows.

    weights, shape (γ, τ): Weights of the models of all rows, which sum to 1.
    most: Number of columns and CV error of another choice. A size that has both more columns and
        more CV error than the other choice is not chosen.
    """
    data, result = study.data, study.surface
    sizes = checked_taus(study.sizes, data.p, data.constraints)
    gammas = projection_gammas(data.full(), result.gammas[weights.any(axis=1)])
    shared = FoldAverages(data, study.fold_averages, gammas, sizes, study.every_fit)
    tasks = [(j,) for j in range(data.folds.k)]
    folds = study.run("comparing sizes with the average", project_fold, shared, tasks)
    distances, errors, proofs = zip(*folds, strict=True)
    distance, _ = mean_over_folds(np.stack(distances, axis=-1), data.fold_weight)
    error, spread = mean_over_folds(np.stack(errors, axis=-1), data.fold_weight)
    reference, reference_std = study.average_error
    at = distance.argmin(axis=0), np.arange(sizes.size)
    distance, error, spread, own = distance[at], error[at], spread[at], gammas[at[0]]
    allowed, share = (sizes <= most[0]) | (error <= most[1]), max_distance_shares(sizes, data.n)
    chosen = choose_size(distance, share * reference + data.rounding, allowed)
    used, place = np.unique(own, return_inverse=True)
    with study.interruptible() as limits:
        late, full = None if study.every_fit else limits, data.full()
        target = full.predicting(averaged_coefficients(full, result, weights, late))
        solver = solver_for(data.n_units)
        path = support_path(target, used, sizes, solver=solver, limits=limits)
        models = [
            fitted_model(
                study.design,
                target.replace(gamma=float(own[t])),
                path.support(g, t),
                float(path.lower_bound[g, t]),
                bool(path.proved[g, t]),
            )
            for t, g in enumerate(place)
        ]
    proved = all(proofs) and all(model.proved for model in models)
    study.note_limit(proved)
    by_size = SizeModels(sizes, own, models, error, spread, distance)
    return Projection(by_size, reference, reference_std, share, allowed, chosen, proved)
