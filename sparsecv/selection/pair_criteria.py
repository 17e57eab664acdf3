"""The number that the rule corrected minimises over pairs (γ, τ) in place of the CV error h(γ, τ).

It adds a correction for models of all rows being fitted to more rows than those of folds.
"""

from __future__ import annotations

import numpy as np

from ..cv.executor import Late, OutOfTime
from ..cv.results import Array, CVResult, bias_corrected
from ..solvers.ridge_fits import SupportPath
from .rules import PairCriterion
from .study import Study


def corrected_errors(study: Study, result: CVResult) -> PairCriterion:
    """Bias-corrected CV errors (Burman 1989): h + e − ē.

    e is the mean squared error, on all rows, of the model of all rows; ē is that of a fold's model,
    on all rows as well, averaged over folds. A fold of weight 0 counts as no fold.

    result: h(γ, τ) of the first partition, whose folds hold out every row once.
    Raises OutOfTime: The time is over, and the grace after it, before all models are fitted.
    """
    total, counted = study.data.total, np.flatnonzero(study.data.fold_weight > 0.0)
    trained = np.stack([_trained(study, result, j) for j in counted.tolist()], axis=2)
    without = (trained + result.table("fold_error")[:, :, counted]) / total
    of_all = _trained(study, result, None) / total
    proved = result.table("exact").astype(bool) & result.table("model_proved").astype(bool)
    return PairCriterion(bias_corrected(result.table("cv_error"), of_all, without), proved)


def _trained(study: Study, result: CVResult, j: int | None) -> Array:
    """||y − Xβ||² (γ, τ) of fold j's models on its training rows; with None those of all rows.

    Raises OutOfTime: The time is over, and the grace after it.
    """
    if Late.AFTER_GRACE.leaves_out(study.plan.estimates):
        raise OutOfTime
    problem = study.data.problem(study.data.folds.k if j is None else j)
    supports = np.stack([one.padded(j) for one in result.by_gamma])
    path = SupportPath.of(problem, result.gammas, result.taus, supports)
    # The objective of a fit is ||y − Xβ||² + (γ/2)||β||².
    penalty = 0.5 * result.gammas[:, None] * (path.coef**2).sum(axis=2)
    return np.asarray(path.objective - penalty)
