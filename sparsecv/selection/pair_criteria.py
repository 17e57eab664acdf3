"""The numbers that rules minimise over pairs (γ, τ) beside the CV error, and what they need."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ..cv.results import Array, CVResult
from ..solvers.core.result import Status
from ..solvers.ridge_fits import known_path
from ..stability.algorithm import criterion, select
from ..stability.fold_losses import PartialErrors, Task, bias_corrected, partial_errors
from ..stability.sparse_ridge import SparseRidgeLearner
from .study import Study

# The rule stability holds at most this many losses at a time, which take 200 MB. With k folds and n
# rows, one γ has (k + 1) n losses for every τ. At least one γ is computed at a time. It is a
# choice.
MAX_LOSSES = 25_000_000


class PairCriterion(NamedTuple):
    """The number that a rule minimises, of every pair.

    values, shape (γ, τ).
    lambda_: λ of the rule stability, chosen by nested folds; else None.
    proved: Whether all models that the numbers need beside those of the surface are proved.
    status: Optimal, or the limit that was reached.
    """

    values: Array
    lambda_: float | None = None
    proved: bool = True
    status: Status = Status.OPTIMAL


def stable_errors(study: Study, result: CVResult) -> PairCriterion:
    """h + λ·μ̂_h from models that leave out no, one and two folds (Algorithm 1, stability paper).

    result: h(γ, τ) of the first partition.
    """
    data = study.data.rows_for("rule stability needs")
    proofs, count, label = list[bool](), result.gammas.size, data.folds.label
    step = max(1, MAX_LOSSES // ((data.folds.k + 1) * data.folds.n * result.taus.size))
    blocks = []
    for start in range(0, count, step):
        learner = SparseRidgeLearner(
            data.X,
            data.y,
            result.taus,
            result.gammas[start : start + step],
            solver="exact" if study.plan.trees else "heuristic",
            fit_intercept=data.refit_intercept,
            standardize=False,
            asked=data.asked,
            weights=data.weights,
        )
        fit = partial(_losses, study, learner, proofs, after=(count - start) / step)
        weights = data.weights
        blocks.append(partial_errors(learner, label, learner.size, weights=weights, fit=fit))
    errors, proved = PartialErrors(*map(np.concatenate, zip(*blocks, strict=True))), all(proofs)
    lambda_ = select(errors).lambda_
    values = criterion(errors, lambda_).reshape(count, -1)
    return PairCriterion(values, lambda_, proved, study.limit(proved))


def _losses(
    study: Study, learner: SparseRidgeLearner, proofs: list[bool], tasks: list[Task], after: float
) -> Iterator[tuple[int, Array]]:
    """Losses of a learner's models.

    proofs: It takes whether all models of a task are proved.
    after: The number of blocks of γ to come, this one included.
    """
    unit, left = SparseRidgeLearner._within, after * len(tasks)
    found = study.units("fitting pairs of folds", unit, learner, tasks, left - len(tasks) + 1.0)
    for index, (losses, proved) in found:
        proofs.append(proved)
        yield index, losses


def corrected_errors(study: Study, result: CVResult) -> PairCriterion:
    """Bias-corrected CV errors (Burman 1989).

    result: h(γ, τ) of the first partition.
    """
    total, k = study.data.total, study.data.folds.k
    trained = np.stack([_trained(study, result, j) for j in range(k)], axis=2)
    without = (trained + result.table("fold_error")) / total
    of_all = _trained(study, result, None) / total
    return PairCriterion(bias_corrected(result.table("cv_error"), of_all, without))


def _trained(study: Study, result: CVResult, j: int | None) -> Array:
    """||y − Xβ||² (γ, τ) of fold j's models on its training rows; with None of all rows."""
    problem = study.data.problem(study.data.folds.k if j is None else j)
    rows = np.stack([one.padded(j) for one in result.by_gamma])
    path = known_path(problem, result.gammas, result.taus, rows)
    penalty = 0.5 * result.gammas[:, None] * (path.coef**2).sum(axis=2)
    return np.asarray(path.objective - penalty)
