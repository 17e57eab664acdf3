"""Project the average of a grid's models onto exact best subsets.

The average predicts better than any one model of the grid, but has nearly every column. Its
projection (Piironen and Vehtari 2017) is a sparse model that predicts like it: with f̂ the
average's predictions, for every size τ and a few ridge weights γ⊥

    min ||f̂(X) − Xβ||² + (γ⊥/2)||β||²  s.t. ||β||₀ ≤ τ,

which is best-subset ridge regression with y replaced by f̂(X), by the same solver: exact up to 45
columns, good supports beyond. The size is chosen by the distance to the average on held-out rows,
the mean of (f̂ − Xβ)², not by the error against y. With few rows the error against y adds twice the
mean of (y − f̂)(f̂ − Xβ), noise that is larger than the distance itself; and distances on the
training rows are nearly 0 where columns are more than rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.results import CVResult, mean_over_folds
from ..cv.splits import Split, SplitLedger, Splits
from ..design.design import Array
from ..design.fold_data import FoldData
from ..design.folds import Index
from ..design.model import Model, fitted_model
from ..solvers.core.result import Status
from ..solvers.core.rounding import exact_margin
from ..solvers.paths import support_path
from ..solvers.ridge_fits import SupportPath
from .averaging import Average, averaged_coefficients
from .study import Study
from .weights import proof_nodes


class ProjectionSettings(NamedTuple):
    """Which projections are computed, and which size is chosen."""

    # A size may be chosen where its held-out distance to the average is at most this share of the
    # average's CV error, and on many rows at most a smaller share (:func:`max_distance_shares`).
    # The value is measured: experiments/selection/real_tables.py compares 1 %, 3 %, 5 % and 10 %.
    max_distance_share: float = 0.03
    # On n rows a size τ may be chosen whose distance is at most this number times τ/n. The value is
    # measured on tables of ``experiments/selection/projection.py --long``: with 1 in its place two
    # kinds of tables of 20,000 rows and 46 columns have 1.3 times the minimum's excess test error.
    share_of_estimation: float = 0.5
    # The ridge weights γ⊥ of projections, in hundredths of the mean squared length of a column.
    # Powers of ten below them are added where models of smaller γ carry weight. Every size takes
    # the γ⊥ of its least held-out distance. The values are measured.
    ridges: tuple[float, ...] = (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0)
    # Up to this many folds are projected at every γ⊥. Of more folds, this many of evenly spaced
    # numbers are. The others are then projected only at the γ⊥ that are best for some size on these
    # folds. In leave-one-out the order of the rows thus decides which folds these are. The number
    # is a choice.
    max_folds_at_every_ridge: int = 30


PROJECTION = ProjectionSettings()


@dataclass(frozen=True)
class Projection:
    """The average of a grid's models, projected onto every size.

    Attributes
    ----------
    sizes : list of Model
        The projection of every size at the γ⊥ of its least distance: its model of all rows, whose
        objective is that of the projection; the mean squared distance of its predictions to the
        average's predictions on held-out rows; and its mean squared error against y on the same
        rows. Every fold's average, with its weights, and projections come from the fold's training
        rows.
    average : Average
        The average, of all rows and of every fold.
    max_share : ndarray, shape (τ,)
        The largest distance at which a size is close to the average, divided by the CV error of the
        average.
    near : ndarray of bool, shape (τ,)
        Which sizes are so close to the average.
    allowed : ndarray of bool, shape (τ,)
        Which sizes may be chosen. A size may not that has both more columns and more CV error than
        the pair of least CV error, or than the mean alone if the pair is not clearly better.
    chosen : int
        Position of the chosen size.
    proved : ndarray of bool, shape (τ,)
        Whether every support that carries weight in the average (of all rows, of a fold, and of the
        inner folds), and every projection of the size (of all rows and of every fold), is the best,
        and rounding moves neither distances nor errors on held-out rows.
    status : Status
        Optimal, or the worst limit that the average or the chosen projection has reached.
    """

    sizes: list[Model] = field(repr=False)
    average: Average = field(repr=False)
    max_share: Array
    near: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    chosen: int
    proved: NDArray[np.bool_]
    status: Status

    @property
    def model(self) -> Model:
        """The projection of the chosen size."""
        return self.sizes[self.chosen]


def ridge_unit(data: FoldData, j: int) -> float:
    """The unit in which the ridge weights γ⊥ of projections are given in fold j.

    It is a hundredth of the mean squared length of the columns of all rows. Where every fold scales
    its columns by its training rows, the unit comes from these rows alone: squared lengths grow
    with the weight of the rows, and are multiplied by the weight of all rows over that of the
    training rows.

    j: The number of a fold; the number of folds stands for the problem of all rows.
    """
    own = data.scales_by_training_rows and j < data.folds.k
    lengths = (data.training(j) if own else data.full()).squared_lengths
    stretch = data.weight / data.training_weight(j) if own else 1.0
    # The unit has six digits. The rounding of standardised columns, which all rows have a part in,
    # would otherwise reach the last digit of every fold's error.
    return float(f"{lengths.mean() * stretch / 100.0:.5e}")


def projection_ridges(unit: float, averaged: Array) -> Array:
    """Ridge weights γ⊥ in units of :func:`ridge_unit`: the usual ones, and lower ones.

    Where columns are nearly dependent, models of tiny γ can carry the average, and only projections
    of such a γ come near it: γ⊥ goes down by tens until it passes the least γ > 0 in the average,
    and 0 is a γ⊥ where γ = 0 is in the average.

    unit: That of all rows.
    averaged, shape (γ,): The γ whose models carry weight in the average of all rows.
    Returns, shape (γ⊥,): Increasing.

    Examples
    --------
    >>> projection_ridges(1.0, np.array([5e-4, 1.0])).round(4).tolist()
    [0.0001, 0.001, 0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0]
    """
    usual = np.array(PROJECTION.ridges)
    least = averaged[averaged > 0.0].min(initial=np.inf) / unit
    n_lower = int(np.ceil(np.log10(max(usual[0] / least, 1.0))))
    zero = [0.0] if (averaged == 0.0).any() else []
    return np.concatenate([zero, usual[0] * 10.0 ** -np.arange(n_lower, 0, -1), usual])


class FoldAverages(Splits):
    """The averages of all folds as splits: a fold's projections predict them, and are judged twice.

    Of every fold the first set has the predictions of its average on held-out rows as targets, and
    the second has the response. The γ of the splits are in units of :func:`ridge_unit`.
    """

    def __init__(self, data: FoldData, coefs: list[Array]) -> None:
        """Take for every fold the coefficients (p,) of the average of its models."""
        self.data, self._coefs = data, coefs
        self.sets_of = list(np.arange(2 * len(coefs)).reshape(-1, 2))

    def split(self, m: int) -> Split:
        """The training problem of fold m with the predictions of its average in place of y."""
        coef = self._coefs[m]

        def sets(columns: Index | None) -> list[tuple[Array, Array]]:
            rows, y = self.data.held_out(m, columns)
            return [(rows, rows @ (coef if columns is None else coef[columns])), (rows, y)]

        target, unit = self.data.training(m).predicting(coef), ridge_unit(self.data, m)
        return Split(target, sets, np.flatnonzero(coef), unit)

    def rooms(self, taus: Index, errors: list[Array]) -> Sequence[Array | float]:
        """Rounding may move a distance by a share of the largest one that is close to the average.

        That is the size's largest share (:func:`max_distance_shares`) of the average's error. In
        place of the latter stands the error of the fold's own projection against the response.
        """
        _, error = errors
        return exact_margin(max_distance_shares(taus, self.data.weight)) * error, 0.0


class _FoldProjections:
    """The projections of every fold's average, estimated at first and then proved where they count.

    ridges, shape (γ⊥,): The ridge weights of the projections in units of :func:`ridge_unit`,
        increasing: all that are given, or those of them that are best for some size on some folds.
    """

    def __init__(self, study: Study, coefs: list[Array], ridges: Array, sizes: Index) -> None:
        """Project every fold's average onto all sizes.

        coefs: For every fold the coefficients (p,) of its average.
        ridges: Ridge weights in units of :func:`ridge_unit`, increasing.
        Raises OutOfTime: The time is over, and the grace after it.
        """
        self._plan, self._constraints = study.plan, study.data.constraints
        self._ledger = SplitLedger(FoldAverages(study.data, coefs), sizes, study.run)
        solver = study.plan.model_solver
        # A fold whose rows all have weight 0 has no part in the distances.
        counted = np.flatnonzero(study.data.fold_weight > 0.0)
        if counted.size > PROJECTION.max_folds_at_every_ridge:
            places = np.linspace(0, counted.size - 1, PROJECTION.max_folds_at_every_ridge)
            some = counted[places.astype(np.intp)]
            what = "comparing ridge weights"
            rows = self._ledger.visit(ridges.tolist(), solver, what, some.tolist())
            distance = self._ledger.of_sets.error[rows][:, :, 2 * some].sum(axis=2)
            nearest = distance.argmin(axis=0)
            ridges = ridges[np.unique(nearest[sizes > 0])]
        self.ridges = ridges
        what = "comparing sizes with the average"
        self._rows = self._ledger.visit(ridges.tolist(), solver, what)

    def sums(self, margins: bool = False) -> tuple[Array, Array]:
        """Of every fold the sums of squared distances and of squared errors, shape (γ⊥, τ, k).

        margins: Whether to return how far rounding may have moved them instead.
        """
        of_sets = self._ledger.of_sets
        values = (of_sets.margin if margins else of_sets.error)[self._rows]
        return values[:, :, ::2], values[:, :, 1::2]

    def prove(self, t: int) -> bool:
        """Try to prove the projections onto one size, at every γ⊥.

        t: Position of the size.
        Returns: Whether one more projection is proved, so that distances may have changed.
        """
        if not self._plan.proves_models:
            return False
        ledger = self._ledger
        wanted = np.zeros(ledger.of_splits.proved.shape, dtype=bool)
        wanted[self._rows, t] = True
        nodes = proof_nodes(self._plan, self._constraints.n_units)
        return ledger.prove(wanted, "proving the projections of one size", nodes)

    def exact(self, max_distance: Array, rounding: float, total: float) -> NDArray[np.bool_]:
        """Of which sizes all projections are proved, and no number is moved by rounding, (τ,).

        A distance may be moved by :func:`exact_margin` of itself and of the largest that is close
        enough, an error by that of itself and by what rounding leaves of a perfect fit.

        max_distance, shape (τ,): The largest distance at which a size is close to the average.
        rounding: What rounding may leave of the CV error of a perfect fit.
        total: What sums over all folds are divided by to be means over held-out rows.
        """
        (distance, error), (off, error_off) = (
            [values.sum(axis=2) / total for values in self.sums(margins)]
            for margins in (False, True)
        )
        fine = off <= exact_margin(distance + max_distance)
        fine &= error_off <= exact_margin(error, rounding)
        proved = self._ledger.of_splits.proved[self._rows].all(axis=2)
        return np.asarray((fine & proved).all(axis=0))


def max_distance_shares(sizes: Index, n: float) -> Array:
    """The largest share of the average's CV error that a size's distance may be, shape (τ,).

    A model of τ coefficients that are estimated from n rows pays about τ/n of its error for the
    estimation. A projection may lose half of that; a larger distance could hide effects that n rows
    show clearly. The share is therefore τ/2n where that is below ``max_distance_share``,
    which is the case from n = 17 τ rows on.

    n: Number of rows, or the sum of their weights.

    Examples
    --------
    >>> max_distance_shares(np.array([1, 5, 30]), 1000).tolist()
    [0.0005, 0.0025, 0.015]
    """
    own = PROJECTION.share_of_estimation * sizes / n
    return np.asarray(np.minimum(PROJECTION.max_distance_share, own))


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


def project_average(
    study: Study, average: Average, least_size: int, least_error: float
) -> Projection:
    """Project an average of models onto the sizes of a study, in folds and on all rows.

    The projections of the chosen size are proved as far as the plan of the study proves models.

    least_size, least_error: Number of columns and CV error of the pair (γ, τ) of least CV error. A
        size that has both more columns and more CV error than the pair is not chosen, nor one that
        has more CV error than the mean alone where :func:`_error_of_the_mean` is finite.
    Raises OutOfTime: The time is over, and the grace after it, before every fold has projections.
    """
    data, result = study.data, average.result
    sizes = result.taus if study.settings.taus is None else study.sizes
    unit = ridge_unit(data, data.folds.k)
    ridges = projection_ridges(unit, result.gammas[average.weights.any(axis=1)])
    mean = _error_of_the_mean(result, least_error)
    folds = _FoldProjections(study, average.coefs, ridges, sizes)
    share = max_distance_shares(sizes, data.weight)
    # Proofs change distances and errors, and with them the chosen size.
    while True:
        of_distance, of_error = folds.sums()
        distance, _ = mean_over_folds(of_distance, data.fold_weight)
        error, std_error = mean_over_folds(of_error, data.fold_weight)
        best_ridge = distance.argmin(axis=0)
        if sizes[0] == 0:  # Its one model needs no γ⊥ of its own.
            best_ridge[0] = best_ridge[1]
        pairs = best_ridge, np.arange(sizes.size)
        distance, error, std_error = distance[pairs], error[pairs], std_error[pairs]
        allowed = (sizes <= least_size) | (error <= least_error)
        if not allowed[sizes > 0].any():  # The user has named larger sizes.
            allowed[:] = True
        allowed &= (sizes == 0) | (error <= mean)
        max_distance = share * average.error + data.rounding
        chosen = choose_size(distance, max_distance, allowed)
        if not folds.prove(chosen):
            break
    gammas = folds.ridges[best_ridge] * unit
    models = _projected_models(study, average, sizes, gammas, chosen)
    proved = np.array([model.proved for model in models])
    proved &= folds.exact(np.asarray(max_distance), data.rounding, data.total)
    status = Status.worst([average.status, study.status_of(bool(proved[chosen]))])
    proved &= average.proved
    by_size = [
        replace(model, cv_error=float(h), std_error=float(s), distance=float(d))
        for model, h, s, d in zip(models, error, std_error, distance, strict=True)
    ]
    near = distance <= max_distance
    return Projection(by_size, average, share, near, allowed, chosen, proved, status)


def _error_of_the_mean(result: CVResult, least_error: float) -> float:
    """The CV error of the mean alone; ∞ where it is no size, or a pair (γ, τ) is clearly better.

    A pair is clearly better that has less CV error than the mean alone by more than one standard
    error of this. Projections may then have more error than the mean alone because a far row pulls
    the average of all models, and the table has a signal all the same.

    least_error: The CV error of the pair of least CV error.
    """
    if result.taus[0] > 0:
        return float("inf")
    error, std_error = (float(result.table(name)[0, 0]) for name in ("cv_error", "std_error"))
    return error if least_error >= error - std_error else float("inf")


def _projected_models(
    study: Study, average: Average, sizes: Index, gammas: Array, chosen: int
) -> list[Model]:
    """The average of all rows, projected onto every size; each model says whether it is proved.

    Up to 45 columns the projection onto the chosen size is proved, as far as the time allows.

    gammas, shape (τ,): The γ⊥ of every size.
    chosen: Position of the chosen size.
    """
    full = study.data.full()
    used, number = np.unique(gammas, return_inverse=True)
    with study.interruptible() as limits:
        coef = averaged_coefficients(full, average.result, average.weights)
        target = full.predicting(coef)

        def model(t: int, path: SupportPath, g: int, i: int) -> Model:
            """The model of the t-th size, from the g-th γ⊥ and the i-th size of a path."""
            bound, proved = float(path.lower_bound[g, i]), bool(path.proved[g, i])
            problem, support = target.replace(gamma=float(gammas[t])), path.support(g, i)
            return fitted_model(study.design, problem, support, int(sizes[t]), bound, proved)

        path = support_path(target, used, sizes, solver=study.plan.model_solver, limits=limits)
        models = [model(t, path, g, t) for t, g in enumerate(number.tolist())]
        if not models[chosen].proved and study.plan.proves_models:
            nodes = proof_nodes(study.plan, study.data.constraints.n_units)
            one, limits = slice(chosen, chosen + 1), limits.within(nodes=nodes)
            path = support_path(target, gammas[one], sizes[one], solver="exact", limits=limits)
            if path.proved[0, 0]:
                models[chosen] = model(chosen, path, 0, 0)
    return models
