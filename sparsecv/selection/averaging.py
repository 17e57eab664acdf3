"""The average of a grid's models: of all rows, and of every fold with weights of its own.

The models are best subsets of every size τ at every ridge weight γ, with their CV errors h(γ, τ).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..cv.executor import Late, OutOfTime
from ..cv.results import CVResult, mean_over_folds
from ..cv.settings import DEFAULT_GAMMAS
from ..design.design import Array
from ..design.fold_data import FoldData
from ..schedule import HALVES
from ..solvers.core.gamma_span import GammaSpan
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.ridge_fits import SupportPath
from .inner_folds import FoldWeights, inner_weights
from .study import Study
from .surfaces import Evaluated, Partitions, all_partitions, first_partition, unvisited
from .weights import model_weights, of_pairs


def averaged_coefficients(
    problem: SparseRidgeProblem,
    result: CVResult,
    weights: Array,
    fold: int | None = None,
) -> Array:
    """Coefficients (p,) of a weighted average of models, for the columns of the problem.

    A coefficient is 0 where no model with a weight above 0 has the column.

    problem: The training problem of the fold, or of all rows, on which the models are fitted again.
    result: h(γ, τ) with the supports of every fold and of all rows.
    weights, shape (γ, τ): Weights of the models at the γ and sizes of ``result``.
    fold: The fold whose models are averaged; with None the models of all rows are.
    """
    g, t = np.flatnonzero(weights.any(axis=1)), np.flatnonzero(weights.any(axis=0))
    supports = np.stack([result.by_gamma[i].padded(fold)[t] for i in g])
    path = SupportPath.of(problem, result.gammas[g], result.taus[t], supports)
    weighted = weights[np.ix_(g, t)][:, :, None] * path.coef
    # A support of fewer columns than others is filled up with -1.
    coef, inside = np.zeros(problem.p), supports >= 0
    np.add.at(coef, supports[inside], weighted[inside])
    return coef


@dataclass(frozen=True)
class Average:
    """The average of a grid's models, of all rows and of every fold.

    partitions: h(γ, τ) of all partitions into folds, from which the weights of all rows come.
    weights, shape (γ, τ): Weights of the models of all rows, which sum to 1, at the γ and sizes of
        the first partition.
    inner: The weights of every fold's models, which its training rows decide.
    in_folds: h(γ, τ) of the first partition at the γ of ``inner``, and at least at its sizes, with
        the supports of every fold.
    coefs: For every fold of the first partition the coefficients (p,) of the average of its models,
        with the fold's own weights.
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
        """Whether every support that counts in the average of all rows, or of a fold, is the best.

        These are the models that carry weight, the supports of all folds of every partition behind
        the CV errors from which the weights of all rows come, and the inner models behind the
        weights of every fold.
        """
        models = self.result.table("model_proved")[self.weights > 0.0].all()
        weighted, results = self.weights[self.partitions.gammas] > 0.0, self.partitions.results
        errors = all(one.table("exact")[weighted[:, : one.taus.size]].all() for one in results)
        own_sizes = np.isin(self.in_folds.taus, self.inner.taus)
        weighted_in_folds = np.max(self.inner.weights, axis=0) > 0.0
        folds = self.in_folds.table("exact")[:, own_sizes][weighted_in_folds].all()
        return bool(self.partitions.whole and models and errors and folds and self.inner.proved)


def average_of(study: Study, first: Evaluated) -> Average:
    """Average the models of an evaluated first partition.

    Raises OutOfTime: The time is over, and the grace after it, before every fold has an average.
    """
    partitions = all_partitions(study, first)
    result, some = partitions.first, partitions.gammas
    weights = np.zeros((result.gammas.size, result.taus.size))
    weights[some] = model_weights(partitions.mean, result.gammas[some], study.data.weight)
    inner = _weights_in_folds(study, result)
    # The status is that of now: what follows has limits of its own.
    inner_status = study.status_of(inner.proved)
    in_folds = _surface_in_folds(study, first, inner)
    coefs = averages_in_folds(study, in_folds, inner)
    error, std_error = error_of_averages(study.data, coefs)
    status = Status.worst([partitions.spent.status, inner_status])
    return Average(partitions, weights, inner, in_folds, coefs, error, std_error, status)


def _weights_in_folds(study: Study, result: CVResult) -> FoldWeights:
    """Weights for every fold of the first partition, at pairs (γ, τ) that its training rows decide.

    result: h(γ, τ) of the first partition.
    """
    gammas = None if study.gammas is None else result.gammas
    # All rows have decided at which γ of a range there are results.
    if isinstance(study.gammas, GammaSpan):
        gammas = np.geomspace(study.gammas.low, study.gammas.high, DEFAULT_GAMMAS.size)
    # The inner folds compute first the round of sizes at which the first partition has ended.
    rounds = study.size_rounds
    first_round = [one.taus.size for one in rounds].index(result.taus.size)
    # Half of the time that is left is kept for surfaces in folds and projections.
    half = study.part(HALVES)
    rounds = [one._replace(taus=one.taus[one.taus > 0]) for one in rounds]
    return inner_weights(study.data, gammas, rounds, half.run, half.plan, first_round)


def _surface_in_folds(study: Study, first: Evaluated, inner: FoldWeights) -> CVResult:
    """h(γ, τ) of the first partition at the γ of every fold's models, and at least at their sizes.

    Of this result the supports of the folds are wanted: what the averages of folds are made of.
    Where the plan proves what the choice needs, pairs that carry weight in a fold are proved.
    """
    surface = first.surface
    if not np.isin(inner.taus, first.result.taus).all():
        # Partitions are evaluated already: only what follows them shares the time that is left.
        own = first_partition(study)._replace(work_after=study.work_after_partitions, name="")
        sizes = np.union1d(first.result.taus, inner.taus)
        surface = unvisited(study, own, sizes, surface.ledger.extended(sizes))
    gammas, weighted = inner.gammas.tolist(), np.max(inner.weights, axis=0) > 0.0
    # Half of the time that is left is kept for the projections.
    with surface.with_plan(study.plan.part(HALVES)) as surface:
        if new := [gamma for gamma in gammas if gamma not in surface.rows]:
            surface.visit(new, Late.AFTER_GRACE)
        if surface.plan.proves_needed_pairs:
            surface.prove(of_pairs(inner.gammas, inner.taus, weighted))
    return surface.result(gammas)


def averages_in_folds(study: Study, in_folds: CVResult, inner: FoldWeights) -> list[Array]:
    """For every fold the coefficients (p,) of the average of its models, with its own weights.

    in_folds: h(γ, τ) at the γ of ``inner``, and at least at its sizes.
    Raises OutOfTime: The time is over, and the grace after it.
    """
    coefs, own_sizes = list[Array](), np.isin(in_folds.taus, inner.taus)
    with study.interruptible() as limits:
        for j, of_fold in enumerate(inner.weights):
            if Late.AFTER_GRACE.leaves_out(limits):
                raise OutOfTime
            weights = np.zeros((in_folds.gammas.size, in_folds.taus.size))
            weights[:, own_sizes] = of_fold
            problem = study.data.training(j)
            coefs.append(averaged_coefficients(problem, in_folds, weights, fold=j))
    return coefs


def error_of_averages(data: FoldData, coefs: list[Array]) -> tuple[float, float]:
    """The CV error of models that are given by coefficients (p,) for every fold.

    coefs: For every fold the coefficients of the columns of its training problem.
    Returns: The CV error, which is the mean over all held-out rows, and its standard error over
        folds.
    """
    sums = []
    for j, coef in enumerate(coefs):
        used = np.flatnonzero(coef)
        rows, targets = data.held_out(j, used)
        sums.append(float(np.sum((targets - rows @ coef[used]) ** 2)))
    error, std_error = mean_over_folds(np.array(sums), data.fold_weight)
    return float(error), float(std_error)
