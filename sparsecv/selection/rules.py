"""Rules that choose (τ, γ) from exact surfaces, or average the models of many.

The bias-corrected K-fold error (Burman 1989; Section 5 of "Consistent Cross Validation with Stable
Learners") adds to h the mean loss of the full model on the rows it has seen less that of the folds'
models on all rows. Both follow from what is known already: the folds' supports and errors. What the
rules stability and repeated need besides is gathered by :mod:`sparsecv.selection.evidence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..cv.engine import Settings
from ..cv.results import TIE, Array, CVResult, GammaResult, least
from ..design.design import Design
from ..design.fold_data import FoldData, RowFolds
from ..design.model import FittedModel, fitted_model
from ..errors import InputError
from ..solvers import SparseRidgeProblem
from .averaging import averaged_model, model_weights
from .criterion import criterion
from .evidence import AVERAGES, Evidence, redrawn, refuse_rule

RULES = ("minimum", "one-se", "stability", "corrected", "repeated", "averaged")
QUICK = 20_000  # fits of folds' supports that are made without being asked for,
QUICK_COLUMNS, QUICK_LOSSES = 20, 50_000_000  # the columns and losses they may have,
QUICK_TREES = 400  # and the trees of further folds
AUTO_COLUMNS, AUTO_NODES = 30, 5_000_000  # up to which other partitions are solved by default


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
        partitions. Of the rule averaged: Σ w·h, which the CV error of the average does not exceed.
    certified : bool
        Whether no pair that was looked at can be better by that criterion: of the grid, or after
        an alternation, with repeated, of the γ that are not too close. For one-se and averaged,
        whether everything they look at is proved.
    lambda_ : float or None
        λ of the rule stability, chosen by nested folds.
    weights : ndarray, shape (γ, τ), or None
        Of the rule averaged (:mod:`sparsecv.selection.averaging`); ``tau`` then is the number of
        columns in the average, ``gamma`` is NaN, and ``cv_error`` is the same bound as
        ``criterion``.
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
    weights: Array | None = field(default=None, compare=False, repr=False)


def allowed_rule(rule: str, data: FoldData, settings: Settings) -> None:
    """Refuse what cannot be chosen by here.

    Raises
    ------
    InputError
        An unknown rule, one that these folds do not allow, or one that needs h at every τ where
        only the best is searched for.
    """
    checked_rule(rule)
    if rule not in ("auto", "minimum") and settings.searches:
        raise InputError(f"rule {rule} needs h at every tau: use method exact or grid")
    refuse_rule(rule, data)


def resolved_rule(rule: str, data: FoldData, settings: Settings, result: CVResult) -> str:
    """The rule that is meant, "auto" resolved.

    "auto" is "repeated", whose models had the least test errors of all that choose one pair (the
    README's table), where partitions of rows in memory are drawn here, columns are at most 30, the
    first partition took few nodes, time is not limited and no outside solver is to be called; else
    "minimum".
    """
    if rule != "auto":
        return rule
    here = redrawn(data.folds) and isinstance(data, RowFolds) and settings.time_limit is None
    if not here or data.p > AUTO_COLUMNS or settings.grid or settings.searches:
        return "minimum"
    nodes = sum(one.n_nodes for one in result.by_gamma)
    return "repeated" if nodes <= AUTO_NODES else "minimum"


def checked_rule(rule: str) -> None:
    """Refuse an unknown rule.

    Raises
    ------
    InputError
    """
    if rule not in (*RULES, "auto"):
        raise InputError(f"rule must be auto or one of {', '.join(RULES)}; got {rule!r}")


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
    trees = folds.k * result.gammas.size
    once = folds.label is not None
    if once and small and isinstance(data, RowFolds) and folds.k >= 3:
        pairs = fits * (folds.k + 3) // 2
        few = trees * (folds.k - 1) // 2 <= QUICK_TREES
        if few and pairs <= QUICK and pairs * folds.n <= QUICK_LOSSES:
            found.append("stability")
    if once and fits <= QUICK:
        found.append("corrected")
    few = small and isinstance(data, RowFolds) and trees * (repeats - 1) <= QUICK_TREES
    if redrawn(folds) and few:
        found.append("repeated")
    if folds.leave_one_out or (redrawn(folds) and few):
        found.append("averaged")
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
        "stability": least error + λ·μ̂_h, λ by nested folds (Algorithm 1, stability paper, where
        folds count equally whatever their rows).
        "corrected": least bias-corrected error. "repeated": least h on average over several
        partitions; leave-one-out has only one. Of equal ones the smaller τ, then the larger γ.
        "averaged": the average of the grid's models with weights h^(−n/10), h averaged like that.
    evidence : Evidence, optional
        What stability and repeated need, by :func:`sparsecv.selection.evidence.gather`.

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


def chosen_model(
    design: Design, full: SparseRidgeProblem, result: CVResult, choice: Choice
) -> FittedModel:
    """Fit what a rule chooses to all rows."""
    if choice.weights is not None:
        return averaged_model(design, full, result, choice.weights, choice.certified)
    one, t = result.by_gamma[choice.gamma_index], choice.tau_index
    return fitted_model(
        design,
        full.replace(gamma=choice.gamma),
        one.models[t],
        float(one.model_bound[t]),
        bool(one.model_proved[t]),
    )


def _average(result: CVResult, at: NDArray[np.intp], surface: Array, choice: Choice) -> Choice:
    """The rule averaged, from the rule repeated and its surface."""
    weights = np.zeros((result.gammas.size, result.taus.size))
    weights[at] = model_weights(surface, result.gammas[at], result.folds.n)
    pairs = np.argwhere(weights > 0.0)
    columns = [result.by_gamma[g].models[t] for g, t in pairs]
    proved = choice.certified and all(bool(result.by_gamma[g].model_proved[t]) for g, t in pairs)
    bound = float((weights[at] * surface).sum())
    return replace(
        choice,
        rule="averaged",
        gamma=float("nan"),
        tau=int(np.unique(np.concatenate(columns)).size),
        cv_error=bound,
        criterion=bound,
        certified=proved,
        weights=weights,
    )


def _choice(rule: str, result: CVResult, data: FoldData, evidence: Evidence) -> Choice:
    best, weight = result.best(), None
    g, t, certified = best.gamma_index, best.tau_index, result.complete
    at = np.arange(result.gammas.size) if evidence.at is None else evidence.at
    every = [result, *evidence.others]
    if rule == "minimum":
        value, certified = best.cv_error, best.certified
    elif rule == "one-se":
        t = int(np.flatnonzero(result.taus == best.one_se)[0])
        value = float(result.by_gamma[g].cv_error[t])
    else:
        certified = certified and all(bool(one.model_proved.all()) for one in result.by_gamma)
        if rule in AVERAGES:
            surface, low, high = (
                np.mean([one.table(name) for one in _at(every, at)], axis=0)
                for name in ("upper", "lower", "upper")
            )
        elif rule == "corrected":
            surface = np.array([corrected_errors(data, one) for one in result.by_gamma])
            surface += result.table("upper") - result.table("cv_error")
        elif evidence.selection is None or evidence.errors is None:  # time ran out
            weight, surface, certified = 0.0, result.table("upper"), False
        else:
            weight = evidence.selection.lambda_
            surface = criterion(evidence.errors, weight).reshape(len(result.by_gamma), -1)
            surface = surface + result.table("upper") - result.table("cv_error")
        g, t = least(surface, result.taus, result.gammas[at] if rule in AVERAGES else result.gammas)
        value = float(surface[g, t])
        if rule in AVERAGES:
            certified = evidence.whole and bool(
                low.min() >= high[g, t] - 2.0 * TIE * abs(high[g, t])
            )
            g = int(at[g])
    one = result.by_gamma[g]
    found = Choice(
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
    if rule != "averaged":
        return found
    proved = evidence.whole and all(one.complete for one in every)
    return _average(result, at, surface, replace(found, certified=proved))


def _at(every: Sequence[CVResult], at: NDArray[np.intp]) -> list[CVResult]:
    """The first cross-validation at the γ that the others were asked about, and the others."""
    first = every[0]
    chosen = replace(first, gammas=first.gammas[at], by_gamma=[first.by_gamma[g] for g in at])
    return [chosen, *every[1:]]
