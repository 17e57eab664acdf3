"""The models of the folds that belong to a choice, from which prediction intervals are made.

Every fold's model is refitted at the chosen pair (γ, τ), with the support that its own training
rows gave. Of a projection, every fold has the projection of its own average.
"""

from __future__ import annotations

import numpy as np

from ..cv.results import CVResult
from ..design.design import Array, Design
from ..design.fold_data import FoldData, RowFolds
from ..design.fold_models import FoldModels
from ..design.folds import Index
from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.paths import support_path
from .choice import Choice
from .projection import ridge_unit
from .study import Study


def rows_of_intervals(data: FoldData) -> RowFolds:
    """The rows from which prediction intervals are made.

    Raises InputError: The folds do not hold out every row once, rows have weights or missing
        values, or the rows are not in memory.
    """
    data = data.rows_for("prediction intervals need")
    if data.weights is not None:
        raise InputError("prediction intervals take no weights: rows must be exchangeable")
    if data.has_missing:
        raise InputError("prediction intervals need rows without missing values")
    if data.folds.label is None or not data.folds.is_partition:
        raise InputError("prediction intervals need folds that hold out every row once")
    return data


def fold_models(study: Study, surface: CVResult, choice: Choice) -> FoldModels:
    """The fold models of a choice, in raw units, with their absolute residuals held out.

    surface: h(γ, τ) of the first partition.
    Raises InputError: The table allows no prediction intervals.
    """
    data = rows_of_intervals(study.data)
    label = data.folds.label
    assert label is not None
    tasks = [(j, *_of_fold(study, surface, choice, j)) for j in range(data.folds.k)]
    shared = data, study.design, "auto" if study.plan.proves_models else "heuristic"
    found = study.run("models for prediction intervals", raw_fold_model, shared, tasks)
    coef, intercept = (np.array([one[part] for one in found]) for part in (0, 1))
    used, residual = np.flatnonzero(coef.any(axis=0)), np.empty(label.size)
    for j, (_, _, errors) in enumerate(found):
        residual[label == j] = np.abs(errors)
    return FoldModels(used, coef[:, used], intercept, label, residual)


def _of_fold(
    study: Study, surface: CVResult, choice: Choice, j: int
) -> tuple[float, int, Index | None, Array | None]:
    """What a fold's model is made from: γ, τ, a support and the average of the fold's models."""
    if choice.projection is None:
        g, t = choice.position
        one = surface.by_gamma[g]
        support = one.supports[one.choice[t, j]]
        return choice.gamma, choice.tau, support, None
    unit, own = ridge_unit(study.data, study.data.folds.k), ridge_unit(study.data, j)
    return choice.gamma * (own / unit), choice.tau, None, choice.projection.average.coefs[j]


def raw_fold_model(
    shared: tuple[RowFolds, Design, str],
    j: int,
    gamma: float,
    tau: int,
    support: Index | None,
    average: Array | None,
    limits: Limits,
) -> tuple[Array, float, Array]:
    """The unit of one fold: what ``RowFolds.raw_model`` gives of the fold's model.

    shared: The rows, how they were scaled, and the solver of projections.
    support: The columns of the model.
    average: Without a support, the coefficients of an average, which is projected onto ``tau``
        columns.
    """
    data, design, solver = shared
    problem, columns = data.training(j), support
    if columns is None:
        assert average is not None
        problem = problem.predicting(average)
        path = support_path(problem, [gamma], [tau], solver=solver, limits=limits)
        columns = path.support(0, 0)
    beta = np.zeros(problem.p)
    beta[columns] = problem.replace(gamma=gamma).fit(columns).coef
    return data.raw_model(design, j, beta)
