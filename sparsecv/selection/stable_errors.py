"""The number that the rule stability minimises over pairs (γ, τ): h + λ·μ̂_h.

The module adds how much models change when another fold is left out, by Algorithm 1 of the
stability paper, to the CV error h(γ, τ). Without it there is no rule stability, and no other rule
changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ..cv.executor import Late, OutOfTime
from ..cv.results import Array, CVResult
from ..solvers.core.column_rules import ResolvedRules
from ..stability.algorithm import criterion, select
from ..stability.fold_losses import PartialErrors, Task, partial_errors
from ..stability.sparse_ridge import SparseRidgeLearner
from .rules import PairCriterion
from .study import Study

# The rule stability holds at most this many losses (squared errors of a model on a row) at a time,
# which take 200 MB. With k folds and n rows, one γ has (k + 1) n losses for every τ. At least one γ
# is computed at a time. The number is a choice.
MAX_LOSSES = 25_000_000


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

    tasks: Training rows and candidates; the number of a task is its position.
    proofs: Takes, for every task, whether all models of the task are proved and rounding leaves
        their losses alone.
    blocks_after: The number of blocks of γ to come, which have at most as many tasks each.
    Raises OutOfTime: The time is over, and the grace after it, before a task begins.
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
