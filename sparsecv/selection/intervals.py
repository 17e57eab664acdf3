"""The models of the folds that belong to a choice, from which prediction intervals are made.

Every fold's model is refitted at the chosen pair (γ, τ), with the support that its own training
rows gave. Of a projection, every fold has the projection of its own average.

The module adds what ``predict_interval`` needs. Without it a model predicts numbers alone.
"""

from __future__ import annotations

import numpy as np

from ..cv.results import CVResult
from ..design.design import Array, Design
from ..design.fold_data import RowFolds
from ..design.fold_models import FoldModels
from ..design.folds import Index
from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.paths import support_path
from .choice import Choice
from .projection import ridge_unit
from .study import Study


def fold_models(study: Study, surface: CVResult, choice: Choice) -> FoldModels:
    """The fold models of a choice, in raw units, with their absolute residuals held out.

    Projections are searched for again, as far as the time allows.

    surface: h(γ, τ) of the first partition.
    Raises InputError: The folds do not hold out every row once, rows have weights, or are not in
        memory.
    """
    data = study.data.rows_for("prediction intervals need")
    label = data.folds.label
    if data.rows.weights is not None:
        raise InputError("prediction intervals take no weights: rows must be exchangeable")
    if label is None:
        raise InputError("prediction intervals need folds that hold out every row once")
    tasks = [(j, *_origin_of_model(study, surface, choice, j)) for j in range(data.folds.k)]
    shared = data, study.design, "auto" if study.plan.proves_models else "heuristic"
    found = study.run("models for prediction intervals", raw_fold_model, shared, tasks)
    coef = np.array([coef_of_fold for coef_of_fold, _, _ in found])
    intercept = np.array([intercept_of_fold for _, intercept_of_fold, _ in found])
    used, residual = np.flatnonzero(coef.any(axis=0)), np.empty(label.size)
    for j, (_, _, errors) in enumerate(found):
        residual[label == j] = np.abs(errors)
    own = [data.raw_fills(study.design, j) for j in range(data.folds.k)]
    fills = [one[used] for one in own if one is not None]
    kept = np.array(fills) if fills else None
    return FoldModels(used, coef[:, used], intercept, label, residual, kept)


def _origin_of_model(
    study: Study, surface: CVResult, choice: Choice, j: int
) -> tuple[float, int, Index | None, Array | None]:
    """What the model of fold j is made from.

    Returns: γ and τ; the support, where it is known; else the coefficients (p,) of the average of
        the fold's models, which is to be projected onto τ columns.
    """
    if choice.projection is None:
        g, t = choice.position
        one = surface.by_gamma[g]
        support = one.supports[one.choice[t, j]]
        return choice.gamma, choice.tau, support, None
    # The chosen γ is in units of all rows, and that of the fold is in units of the fold.
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
    """The unit of one fold: make its model, in raw units.

    shared: The rows, how they were scaled, and the solver of projections, as of
        :func:`~sparsecv.solvers.paths.support_path`.
    j: The number of the fold.
    gamma, tau, support, average: As of :func:`_origin_of_model`.
    limits: Limits of the search for a projection.
    Returns: Coefficients of raw columns, the intercept, and the errors on the rows that the fold
        holds out, in the order of these rows.
    """
    data, design, solver = shared
    problem = data.training(j)
    if support is None:
        assert average is not None
        problem = problem.predicting(average)
        path = support_path(problem, [gamma], [tau], solver=solver, limits=limits)
        support = path.support(0, 0)
    beta = np.zeros(problem.p)
    beta[support] = problem.replace(gamma=gamma).fit(support).coef
    return data.raw_model(design, j, beta)
