"""The average of a grid's models, each weighted by its CV error.

Best-subset models change a lot with few rows (Breiman 1996, "Heuristics of instability"), and many
pairs (τ, γ) have CV errors that cannot be told apart: averaging their models rather than choosing
one lowers the test error where rows are few. The weights h^(−n/10) are tempered Gaussian profile
likelihoods of the held-out rows, h^(−n/2), which would nearly choose one pair.
"""

from __future__ import annotations

import numpy as np

from ..cv.results import CVResult
from ..design.design import Array, Design
from ..design.model import FittedModel
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.ridge_fits import known_path

TEMPERATURE = 10.0
LEAST = 1e-4  # of the largest weight: what is less is left out


def model_weights(surface: Array, gammas: Array, n: int) -> Array:
    """Weights h^(−n/10) of every pair, uniform before that in τ and log γ; they sum to 1.

    surface, shape (γ, τ): CV errors ≥ 0.
    gammas, shape (γ,): In any order; a γ counts by the stretch of log γ it stands for.
    n: Rows.
    Returns, shape (γ, τ).
    """
    logs = np.log(np.maximum(surface, np.finfo(np.float64).tiny))
    weight = np.exp(-(logs - logs.min()) * (n / TEMPERATURE)) * _stretches(gammas)[:, None]
    weight[weight < LEAST * weight.max()] = 0.0
    return np.asarray(weight / weight.sum())


def soft_least(errors: Array, n: int) -> float:
    """The CV error h that alone would carry the mean weight h^(−n/10) of these errors.

    errors: CV errors ≥ 0.
    n: Rows.
    Returns: Between the least of the errors and the largest.
    """
    logs = np.log(np.maximum(errors, np.finfo(np.float64).tiny))
    share = np.mean(np.exp(-(logs - logs.min()) * (n / TEMPERATURE)))
    return float(np.exp(logs.min() - np.log(share) * (TEMPERATURE / n)))


def _stretches(gammas: Array) -> Array:
    """Half the distance between the neighbours of every log γ, the ends their own half."""
    order = np.argsort(gammas, kind="stable")
    steps = np.diff(np.log(gammas[order]))
    if steps.sum() == 0.0:  # one value
        return np.ones(gammas.size)
    found = np.empty(gammas.size)
    found[order] = 0.5 * (np.append(steps, 0.0) + np.append(0.0, steps))
    return found


def averaged_coefficients(
    problem: SparseRidgeProblem, result: CVResult, weights: Array, fold: int | None = None
) -> Array:
    """Coefficients of the average of a fold's models, or of those of all rows.

    problem: The fold's training rows, or all rows.
    weights, shape (γ, τ).
    Returns, shape (p,): 0 where no model has the column.
    """
    g, t = np.flatnonzero(weights.any(axis=1)), np.flatnonzero(weights.any(axis=0))
    supports = np.stack([result.by_gamma[i].padded(fold)[t] for i in g])
    path = known_path(problem, result.gammas[g], result.taus[t], supports)
    weighted = weights[np.ix_(g, t)][:, :, None] * path.coef
    coef, inside = np.zeros(problem.p), supports >= 0
    np.add.at(coef, supports[inside], weighted[inside])
    return coef


def averaged_model(
    design: Design, full: SparseRidgeProblem, result: CVResult, weights: Array, proved: bool
) -> FittedModel:
    """Average the models of all rows.

    full: All rows.
    weights, shape (γ, τ).
    proved: Whether every model and every CV error is proved.
    Returns: It minimises no training objective: that and its bound are NaN.
    """
    used = np.zeros(design.p, dtype=bool)
    for g, t in np.argwhere(weights > 0.0):
        used[result.by_gamma[g].models[t]] = True
    beta = averaged_coefficients(full, result, weights)
    coef, intercept = design.coefficients(beta)
    return FittedModel(design.kept[used], coef, intercept, float("nan"), float("nan"), proved)
