"""Rules that choose (τ, γ): the least error, one standard error, stability, corrected, repeated.

The bias-corrected K-fold error (Burman 1989; Section 5 of "Consistent Cross Validation with Stable
Learners") adds to h the mean loss of the full model on the rows it has seen less that of the folds'
models on all rows. Both follow from what is known already: the folds' supports and errors. What the
rules stability and repeated need besides is gathered by :mod:`sparsecv.rule_evidence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .cross_validation import Settings
from .errors import InputError
from .fold_data import FoldData, RowFolds
from .results import TIE, Array, CVResult, GammaResult, least
from .rule_evidence import Evidence, redrawn
from .solvers import SparseRidgeProblem
from .stability_criterion import criterion

RULES = ("minimum", "one-se", "stability", "corrected", "repeated")
QUICK = 20_000  # fits of folds' supports that are made without being asked for,
QUICK_COLUMNS, QUICK_LOSSES = 20, 50_000_000  # and the columns and losses they may have


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
        What the rule minimises: h, h + λ·stability, the corrected error or the mean of h over
        partitions.
    certified : bool
        Whether no pair of the grid can be better by that criterion; for one-se, whether every h is
        exact.
    lambda_ : float or None
        λ of the rule stability, chosen by nested folds.
    """

    rule: str
    gamma_index: int
    tau_index: int
    gamma: float
    tau: int
    cv_error: float
    criterion: float
    certified: bool
    lambda_: float | None = None


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


def quick_rules(
    result: CVResult, data: FoldData, settings: Settings, repeats: int
) -> tuple[str, ...]:
    """Rules whose choices cost little beside a cross-validation, in the order of ``RULES``.

    Least error and one standard error cost nothing; the corrected error a fit per fold, γ and τ;
    stability and repeated further cross-validations, which are made without being asked for where
    trees are small, time is not limited and no outside solver is to be called.
    """
    if settings.searches:  # h is not known at every τ
        return ("minimum",)
    folds = result.folds
    fits = folds.k * result.taus.size * result.gammas.size
    found = ["minimum", "one-se"]
    small = data.p <= QUICK_COLUMNS and settings.time_limit is None and not settings.grid
    once = folds.label is not None
    if once and small and isinstance(data, RowFolds) and folds.k >= 3:
        pairs = fits * (folds.k + 3) // 2
        if pairs <= QUICK and pairs * folds.n <= QUICK_LOSSES:
            found.append("stability")
    if once and fits <= QUICK:
        found.append("corrected")
    if folds.leave_one_out or (redrawn(folds) and small and repeats * fits <= QUICK):
        found.append("repeated")
    return tuple(found)


def choose(
    result: CVResult,
    data: FoldData,
    rules: Sequence[str],
    evidence: Evidence | None = None,
) -> dict[str, Choice]:
    """The choice of each rule.

    Parameters
    ----------
    result : CVResult
    data : FoldData
    rules : sequence of str
        "minimum": least h. "one-se": least τ at the same γ within one standard error of it.
        "stability": least h + λ·μ̂_h, λ by nested folds (Algorithm 1, stability paper).
        "corrected": least bias-corrected error. "repeated": least h on average over several
        partitions; leave-one-out has only one. Of equal ones the smaller τ, then the larger γ.
    evidence : Evidence, optional
        What stability and repeated need, by :func:`sparsecv.rule_evidence.gather`.

    Raises
    ------
    InputError
        An unknown rule, or one that needs h at every τ where only the best was searched for.
    """
    found = {}
    for rule in rules:
        checked_rule(rule)
        if rule != "minimum" and result.tolerance is not None:
            raise InputError(f"rule {rule} needs h at every tau: use method exact or grid")
        found[rule] = _choice(rule, result, data, evidence or Evidence())
    return found


def _choice(rule: str, result: CVResult, data: FoldData, evidence: Evidence) -> Choice:
    best, weight = result.best(), None
    g, t, certified = best.gamma_index, best.tau_index, result.complete
    if rule == "minimum" or (rule == "repeated" and not evidence.others):
        value, certified = best.cv_error, best.certified
    elif rule == "one-se":
        t = int(np.flatnonzero(result.taus == best.one_se)[0])
        value = float(result.by_gamma[g].cv_error[t])
    else:
        if rule == "repeated":
            every = [result, *evidence.others]
            surface, low, high = (
                np.mean([one.table(name) for one in every], axis=0)
                for name in ("cv_error", "lower", "upper")
            )
        elif rule == "corrected":
            if data.folds.label is None:
                raise InputError("rule corrected needs folds that hold out every row once")
            surface = np.array([corrected_errors(data, one) for one in result.by_gamma])
        elif evidence.selection is None or evidence.errors is None:
            raise InputError("rule stability needs models without two folds: gather them first")
        else:
            weight = evidence.selection.lambda_
            surface = criterion(evidence.errors, weight).reshape(len(result.by_gamma), -1)
            certified = certified and evidence.exact
        g, t = least(surface, result.taus, result.gammas)
        value = float(surface[g, t])
        if rule == "repeated":
            certified = bool(low.min() >= high[g, t] - 2.0 * TIE * abs(high[g, t]))
    one = result.by_gamma[g]
    return Choice(
        rule,
        g,
        t,
        float(result.gammas[g]),
        int(result.taus[t]),
        float(one.cv_error[t]),
        value,
        certified,
        weight,
    )
