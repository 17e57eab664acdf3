"""The numbers that rules minimise over pairs (γ, τ) beside the CV error h(γ, τ).

The rule stability adds to h how much the models change when another fold is left out; the rule
corrected adds a correction for models of all rows being fitted to more rows than those of folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.progress import Late
from ..cv.results import Array, CVResult, bias_corrected
from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.limits import OutOfTime
from ..solvers.core.result import Status
from ..solvers.ridge_fits import known_path
from ..stability.algorithm import criterion, select
from ..stability.fold_losses import PartialErrors, Task, partial_errors
from ..stability.sparse_ridge import SparseRidgeLearner
from .study import Study

# The rule stability holds at most this many losses (squared errors of a model on a row) at a time,
# which take 200 MB. With k folds and n rows, one γ has (k + 1) n losses for every τ. At least one γ
# is computed at a time. The number is a choice.
MAX_LOSSES = 25_000_000


class PairCriterion(NamedTuple):
    """The number that a rule minimises, of every pair (γ, τ) of a surface.

    values, shape (γ, τ): The numbers.
    lambda_: λ of the rule stability, chosen by nested folds; else None.
    proved, shape (γ, τ): Whether all models that a number depends on are proved.
    status: Optimal, or the limit that was reached.
    """

    values: Array
    proved: NDArray[np.bool_]
    lambda_: float | None = None
    status: Status = Status.OPTIMAL


def stable_errors(study: Study, result: CVResult) -> PairCriterion:
    """h + λ·μ̂_h from models that leave out no, one and two folds.

    μ̂_h measures the instability of the models, and λ is chosen by nested folds (Algorithm 1 of
    "Stability Regularized Cross-Validation").

    result: h(γ, τ) of the first partition.
    Raises InputError: The rows are not in memory.
    Raises OutOfTime: The time is over, and the grace after it, before all models are fitted.
    """
    data, count = study.data.rows_for("rule stability needs"), result.gammas.size
    step = max(1, MAX_LOSSES // ((data.folds.k + 1) * data.folds.n * result.taus.size))
    proofs, blocks, rows = list[bool](), list[PartialErrors](), data.rows.solved_rows()
    for start in range(0, count, step):
        learner = SparseRidgeLearner(
            rows[:, :-1],
            rows[:, -1],
            result.taus,
            result.gammas[start : start + step],
            solver="exact" if study.plan.all_size_trees else "heuristic",
            fit_intercept=data.refit_intercept,
            standardize=False,  # The columns of the data are standardised already.
            asked=ResolvedRules(data.constraints),
            weights=data.rows.weights,
        )
        fit = partial(_losses, study, learner, proofs, blocks_after=-(-(count - start) // step) - 1)
        weights, label = data.rows.weights, data.folds.label
        blocks.append(partial_errors(learner, label, learner.size, weights=weights, fit=fit))
    errors, proved = PartialErrors(*map(np.concatenate, zip(*blocks, strict=True))), all(proofs)
    lambda_ = select(errors).lambda_
    values = criterion(errors, lambda_).reshape(count, -1)
    # Every number depends on the models of all pairs, as they decide λ.
    every = np.full(values.shape, proved)
    return PairCriterion(values, every, lambda_, study.status_of(proved))


def _losses(
    study: Study,
    learner: SparseRidgeLearner,
    proofs: list[bool],
    tasks: list[Task],
    blocks_after: int,
) -> Iterator[tuple[int, Array]]:
    """Fit the models of one block of γ, and yield the numbers of tasks with their losses.

    proofs: Takes, for every task, whether all models of the task are proved.
    blocks_after: The number of blocks of γ to come, which have at most as many tasks each.
    """
    # Units that share the remaining time with these: later tasks, and the chosen model's proof.
    after = blocks_after * len(tasks) + 1.0
    unit = Late.AFTER_GRACE.unit(SparseRidgeLearner.losses_within)
    for index, found in study.units("fitting pairs of folds", unit, learner, tasks, after):
        if found is None:
            raise OutOfTime
        losses, proved = found
        proofs.append(proved)
        yield index, losses


def corrected_errors(study: Study, result: CVResult) -> PairCriterion:
    """Bias-corrected CV errors (Burman 1989): h + e − ē.

    e is the mean squared error, on all rows, of the model of all rows; ē is that of a fold's model,
    on all rows as well, averaged over folds. A fold of weight 0 counts as no fold.

    result: h(γ, τ) of the first partition.
    Raises OutOfTime: The time is over, and the grace after it, before all models are fitted.
    """
    total, counted = study.data.total, np.flatnonzero(study.data.fold_weight > 0.0)
    trained = np.stack([_trained(study, result, j) for j in counted.tolist()], axis=2)
    without = (trained + result.table("fold_error")[:, :, counted]) / total
    of_all = _trained(study, result, None) / total
    proved = result.table("exact").astype(bool) & result.table("model_proved").astype(bool)
    return PairCriterion(bias_corrected(result.table("cv_error"), of_all, without), proved)


def _trained(study: Study, result: CVResult, j: int | None) -> Array:
    """||y − Xβ||² (γ, τ) of fold j's models on its training rows; with None those of all rows."""
    if Late.AFTER_GRACE.leaves_out(study.plan.estimates):
        raise OutOfTime
    problem = study.data.problem(study.data.folds.k if j is None else j)
    supports = np.stack([one.padded(j) for one in result.by_gamma])
    path = known_path(problem, result.gammas, result.taus, supports)
    # The objective of a fit is ||y − Xβ||² + (γ/2)||β||².
    penalty = 0.5 * result.gammas[:, None] * (path.coef**2).sum(axis=2)
    return np.asarray(path.objective - penalty)
