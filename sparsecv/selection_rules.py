"""Rules that choose (τ, γ) from one exact surface: the least error, one standard error, corrected.

The bias-corrected K-fold error (Burman 1989; Section 5 of "Consistent Cross Validation with Stable
Learners") adds to h the mean loss of the full model on the rows it has seen less that of the folds'
models on all rows. Both follow from what is known already: the folds' supports and errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .fold_data import FoldData
from .results import Array, CVResult, GammaResult
from .solvers import SparseRidgeProblem

RULES = ("minimum", "one-se", "corrected")
QUICK = 20_000  # fits of folds' supports that are made without being asked for


@dataclass(frozen=True)
class Choice:
    """What a rule chooses.

    Attributes
    ----------
    rule : str
    gamma_index, tau_index : int
    gamma : float
    tau : int
    cv_error : float
        h(γ, τ) of the choice.
    criterion : float
        What the rule minimises: h, or the corrected error.
    """

    rule: str
    gamma_index: int
    tau_index: int
    gamma: float
    tau: int
    cv_error: float
    criterion: float


def checked_rule(rule: str) -> str:
    """Refuse an unknown rule.

    Raises
    ------
    InputError
    """
    if rule not in RULES:
        raise InputError(f"rule must be one of {', '.join(RULES)}; got {rule!r}")
    return rule


def corrected_errors(data: FoldData, result: GammaResult) -> Array:
    """Bias-corrected CV error at one γ, for every τ.

    h + R̂(full model) − mean over folds of R̂(fold's model), R̂ the mean squared error on all rows.

    Parameters
    ----------
    data : FoldData
    result : GammaResult
        With every fold's support.

    Returns
    -------
    ndarray, shape (τ,)
    """
    n, k = data.folds.n, data.folds.k
    full = data.full().replace(gamma=result.gamma)
    trained = np.array([_residual_sum(full, model) for model in result.models])
    seen = np.zeros(result.taus.size)
    for j in range(k):
        fold = data.training(j).replace(gamma=result.gamma)
        known: dict[int, float] = {}
        for t, number in enumerate(result.choice[:, j].tolist()):
            if number not in known:
                known[number] = _residual_sum(fold, result.supports[number])
            seen[t] += known[number]
    everywhere = (seen + result.fold_error.sum(axis=1)) / (k * n)
    return np.asarray(result.cv_error + trained / n - everywhere)


def _residual_sum(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> float:
    """||y − Xβ||² of the ridge fit on a support."""
    if support.size == 0:
        return problem.yy
    fit = problem.replace(tau=int(support.size)).fit(support)
    return fit.objective - problem.gamma / 2.0 * float(fit.coef @ fit.coef)


def quick_rules(result: CVResult) -> tuple[str, ...]:
    """Rules whose choices cost next to nothing."""
    if result.tolerance is not None:  # h is not known at every τ
        return ("minimum",)
    fits = result.folds.k * result.taus.size * result.gammas.size
    partition = result.folds.label is not None
    return RULES if partition and fits <= QUICK else RULES[:2]


def choose(result: CVResult, data: FoldData, rules: Sequence[str] = RULES) -> dict[str, Choice]:
    """The choice of each rule.

    Parameters
    ----------
    result : CVResult
    data : FoldData
    rules : sequence of str
        "minimum": least h. "one-se": least τ at the same γ within one standard error of it.
        "corrected": least bias-corrected error; of equal ones the smaller τ.

    Raises
    ------
    InputError
        An unknown rule, or one that needs h at every τ where only the best was searched for.
    """
    best = result.best()
    found = {}
    for rule in rules:
        checked_rule(rule)
        if rule != "minimum" and result.tolerance is not None:
            raise InputError(f"rule {rule} needs h at every tau: use method exact or grid")
        g, t, value = best.gamma_index, best.tau_index, best.cv_error
        if rule == "one-se":
            t = int(np.flatnonzero(result.taus == best.one_se)[0])
            value = float(result.by_gamma[g].cv_error[t])
        elif rule == "corrected":
            if data.folds.label is None:
                raise InputError("rule corrected needs folds that hold out every row once")
            surface = np.array([corrected_errors(data, one) for one in result.by_gamma])
            g, t = (int(i) for i in np.unravel_index(int(np.argmin(surface)), surface.shape))
            value = float(surface[g, t])
        error = float(result.by_gamma[g].cv_error[t])
        gamma, tau = float(result.gammas[g]), int(result.taus[t])
        found[rule] = Choice(rule, g, t, gamma, tau, error, value)
    return found
