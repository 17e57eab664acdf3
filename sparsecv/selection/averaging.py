"""The average of a grid's models: of all rows, and of every fold with weights of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..cv.needs import of_pairs
from ..cv.results import CVResult, mean_over_folds
from ..cv.settings import DEFAULT_GAMMAS, GammaSpan
from ..design.design import Array
from ..design.fold_data import FoldData
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status, worst
from ..solvers.ridge_fits import known_path
from .inner_folds import FoldWeights, inner_weights
from .study import Study
from .surfaces import Evaluated, Partition, Partitions, all_partitions, unvisited
from .weights import Tried, model_weights


def averaged_coefficients(
    problem: SparseRidgeProblem,
    result: CVResult,
    weights: Array,
    fold: int | None = None,
) -> Array:
    """Coefficients (p,) of a weighted average of models; 0 where no model has the column.

    problem: The training problem of the fold, or of all rows.
    weights, shape (γ, τ): Weights of the models.
    fold: The fold whose models are averaged; with None the models of all rows are.
    """
    g, t = np.flatnonzero(weights.any(axis=1)), np.flatnonzero(weights.any(axis=0))
    supports = np.stack([result.by_gamma[i].padded(fold)[t] for i in g])
    path = known_path(problem, result.gammas[g], result.taus[t], supports)
    weighted = weights[np.ix_(g, t)][:, :, None] * path.coef
    coef, inside = np.zeros(problem.p), supports >= 0
    np.add.at(coef, supports[inside], weighted[inside])
    return coef


@dataclass(frozen=True)
class Average:
    """The average of a grid's models, of all rows and of every fold.

    partitions: h(γ, τ) of all partitions into folds, from which the weights of all rows come.
    weights, shape (γ, τ): Weights of the models of all rows, which sum to 1.
    inner: The weights of every fold's models, which its training rows decide.
    in_folds: h(γ, τ) of the first partition at the γ of ``inner``, and at least at its sizes.
    coefs: Coefficients (p,) of the average of every fold's models, with the fold's own weights.
    error, std_error: The CV error of these averages, and its standard error.
    status: Optimal, or the worst limit that was reached.
    """

    partitions: Partitions
    weights: Array
    inner: FoldWeights
    in_folds: CVResult
    coefs: list[Array]
    error: float
    std_error: float
    status: Status

    @property
    def result(self) -> CVResult:
        """h(γ, τ) of the first partition, whose models of all rows are averaged."""
        return self.partitions.first

    @property
    def proved(self) -> bool:
        """Whether every support that carries weight, in the average of all rows or a fold, is best.

        The weights come from CV errors, so that the supports of all folds, of every partition,
        count at the pairs (γ, τ) that carry weight.
        """
        inner, in_folds = self.inner, self.in_folds
        models = self.result.table("model_proved")[self.weights > 0.0].all()
        weighted = self.weights[self.partitions.gammas] > 0.0
        results = self.partitions.results
        errors = all(one.table("exact")[weighted[:, : one.taus.size]].all() for one in results)
        exact = in_folds.table("exact")[:, np.isin(in_folds.taus, inner.taus)]
        folds = exact[(np.array(inner.weights) > 0.0).any(axis=0)].all()
        return bool(self.partitions.whole and models and errors and folds and inner.proved)


def average_of(study: Study, first: Evaluated) -> Average:
    """Average the models of an evaluated first partition."""
    partitions = all_partitions(study, first)
    result, at = partitions.first, partitions.gammas
    weights = np.zeros((result.gammas.size, result.taus.size))
    weights[at] = model_weights(partitions.mean, result.gammas[at], study.data.weight)
    inner = _weights_in_folds(study, result)
    reached = study.limit(inner.proved)
    in_folds = _surface_in_folds(study, first, inner)
    coefs = averages_in_folds(study, in_folds, inner)
    error, spread = error_of_averages(study.data, coefs)
    status = worst([partitions.spent.status, reached])
    return Average(partitions, weights, inner, in_folds, coefs, error, spread, status)


def _weights_in_folds(study: Study, result: CVResult) -> FoldWeights:
    """Weights for every fold of the first partition, at pairs that its training rows decide."""
    gammas = None if study.gammas is None else result.gammas
    if isinstance(study.gammas, GammaSpan):
        gammas = np.geomspace(study.gammas.low, study.gammas.high, DEFAULT_GAMMAS.size)
    tried = study.tried
    enough = next(i for i, one in enumerate(tried) if one.taus.size == result.taus.size)
    return inner_weights(study.data, gammas, tried, study.run, study.plan, enough)


def _surface_in_folds(study: Study, first: Evaluated, inner: FoldWeights) -> CVResult:
    """h(γ, τ) of the first partition at the γ of every fold's models, and at least at their sizes.

    Where the plan proves what the choice needs, pairs that carry weight in a fold are proved.
    """
    surface = first.surface
    if not np.isin(inner.taus, first.result.taus).all():
        sizes = [Tried(inner.taus, int(inner.taus[-1]))]
        more = Partition(study.data, inner.gammas, sizes, "", study.n_after)
        surface = unvisited(study, more, inner.taus)
    gammas, carry = inner.gammas.tolist(), np.max(inner.weights, axis=0) > 0.0
    with surface.under(study.plan.part(2.0)) as surface:
        if new := [gamma for gamma in gammas if gamma not in surface.rows]:
            surface.visit(new)
        if surface.plan.proves_pairs:
            surface.prove(of_pairs(inner.gammas, inner.taus, carry))
    return surface.result(gammas)


def averages_in_folds(study: Study, in_folds: CVResult, inner: FoldWeights) -> list[Array]:
    """Coefficients (p,) of the average of every fold's models, with the fold's own weights."""
    found, at = list[Array](), np.isin(in_folds.taus, inner.taus)
    with study.interruptible():
        for j, of_fold in enumerate(inner.weights):
            weights = np.zeros((in_folds.gammas.size, in_folds.taus.size))
            weights[:, at] = of_fold
            problem = study.data.training(j)
            found.append(averaged_coefficients(problem, in_folds, weights, fold=j))
    return found


def error_of_averages(data: FoldData, coefs: list[Array]) -> tuple[float, float]:
    """The CV error of a coefficient vector (p,) for every fold, and its standard error."""
    sums = []
    for j, coef in enumerate(coefs):
        rows, targets = data.held_out(j)
        sums.append(float(np.sum((targets - rows @ coef) ** 2)))
    error, spread = mean_over_folds(np.array(sums), data.fold_weight)
    return float(error), float(spread)
