"""How every rule chooses, from a study, a pair (τ, γ) or a projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..cv.needs import Known, of_one_se
from ..cv.results import Array, CVResult, least
from ..design.model import FittedModel
from ..errors import InputError
from ..solvers.core.result import Status
from ..stability.algorithm import criterion
from .projection import Projection, project_average
from .rules import RULES, checked_rule
from .study import Study


@dataclass(frozen=True)
class Choice:
    """What a rule chooses: a pair (γ, τ) with its CV error, or a projection.

    Attributes
    ----------
    rule : str
        The rule that chooses.
    gamma, tau : float, int
        The pair that the rule chooses.
    gamma_index, tau_index : int
        Position of the pair on the surface that was evaluated.
    cv_error : float
        h(γ, τ) of the choice: exact where ``lower`` and ``upper`` agree, else an estimate.
    lower, upper : float
        Bounds on ``cv_error``.
    criterion : float
        The number that the rule minimises: h, h + λ·stability, or the corrected error.
    certified : bool
        Whether no evaluated pair can have a smaller criterion; for one-se, whether exact CV errors
        would give the same pair. For projected, whether every support that carries weight in the
        average, inner folds included, and every projection of the chosen size, in the folds and of
        all rows, is the best one.
    lambda_ : float or None
        λ of the rule stability, chosen by nested folds.
    projection : Projection or None
        What the rule projected found. ``gamma`` then is γ⊥, ``cv_error`` is the error of the
        projections against y, and ``criterion`` their held-out distance to the average.
    size_given : bool
        Whether the user has named the size, so that the rule has chosen among its models alone.
    is_pair : bool
        Whether the choice is a pair (γ, τ) of the grid.
    """

    rule: str
    gamma_index: int
    tau_index: int
    gamma: float
    tau: int
    cv_error: float
    lower: float
    upper: float
    criterion: float
    certified: bool
    lambda_: float | None = None
    projection: Projection | None = field(default=None, compare=False, repr=False)
    size_given: bool = False

    @property
    def is_pair(self) -> bool:
        """Whether the choice is a pair (γ, τ) of the grid."""
        return self.projection is None

    def is_least(self, result: CVResult) -> bool:
        """Whether the choice is the pair of least CV error of a surface."""
        best = result.best()
        pair = best.gamma_index, best.tau_index
        return self.is_pair and (self.gamma_index, self.tau_index) == pair


def of_pair(rule: str, result: CVResult, g: int, t: int, value: float, certified: bool) -> Choice:
    """The choice of the pair at position (g, t) of a surface; ``value`` is its criterion."""
    one = result.by_gamma[g]
    error, low, high = (float(values[t]) for values in (one.cv_error, one.lower, one.upper))
    gamma, tau = float(result.gammas[g]), int(result.taus[t])
    return Choice(rule, g, t, gamma, tau, error, low, high, float(value), certified)


def _least(rule: str, result: CVResult, surface: Array) -> Choice:
    """The choice of the pair at which a criterion, given as ``surface`` (γ, τ), is least."""
    g, t = least(surface, result.taus, result.gammas, result.rounding)
    proved = all(bool(one.model_proved.all()) for one in result.by_gamma)
    return of_pair(rule, result, g, t, surface[g, t], result.complete and proved)


def _minimum(study: Study) -> Choice:
    """The pair of least h; of equal values the smaller τ, then the larger γ."""
    best = study.surface.best()
    at = best.gamma_index, best.tau_index
    return of_pair("minimum", study.surface, *at, best.cv_error, best.certified)


def _one_se(study: Study) -> Choice:
    """The least τ whose h, at the best γ for that τ, is within a standard error of the least h."""
    result, best = study.surface, study.surface.best()
    g, t = best.one_se_gamma_index, int(np.flatnonzero(result.taus == best.one_se)[0])
    known = Known.of(result)
    proved = bool(known.exact[of_one_se(known).errors].all())
    return of_pair("one-se", result, g, t, result.by_gamma[g].cv_error[t], proved)


def criterion_of_pairs(study: Study, rule: str) -> Array:
    """The number that a rule minimises, of every pair, shape (γ, τ).

    The rules one-se and projected have no such number, and the CV error stands for it.
    """
    result = study.surface
    if rule == "stability":
        errors, selection, _ = study.stability
        return criterion(errors, selection.lambda_).reshape(result.gammas.size, -1)
    if rule == "corrected":
        return study.corrected
    return result.table("cv_error")


def _stability(study: Study) -> Choice:
    """The pair of least h + λ·μ̂_h, with λ chosen by nested folds (Algorithm 1, stability paper)."""
    found = _least("stability", study.surface, criterion_of_pairs(study, "stability"))
    _, selection, proved = study.stability
    return replace(found, lambda_=selection.lambda_, certified=found.certified and proved)


def _corrected(study: Study) -> Choice:
    """The pair of least bias-corrected CV error (Burman 1989, ``Study.corrected``)."""
    return _least("corrected", study.surface, criterion_of_pairs(study, "corrected"))


def _projected(study: Study) -> Choice:
    """The average of all models, replaced by a sparse model that predicts almost alike.

    A projection is the model of a given size that is fitted to the predictions of the average in
    place of y. The least size is chosen whose projections are close enough to the average on
    held-out rows, as :func:`~sparsecv.selection.projection.project_average` says. A size that has
    both more columns and a larger CV error than the pair of least CV error is not chosen.
    """
    result, mean, weights = study.surface, study.mean_surface, study.average_weights
    best = result.best()
    found = project_average(study, weights, (best.tau, best.cv_error))
    g, t = least(mean, result.taus, result.gammas[study.gamma_subset], result.rounding)
    pair = of_pair("projected", result, int(study.gamma_subset[g]), t, mean[g, t], False)
    return of_projection(pair, found)


def of_projection(choice: Choice, found: Projection) -> Choice:
    """A choice with the chosen projection, its size, γ⊥, distance, CV error and what is proved."""
    t, sizes = found.chosen, found.sizes
    assert sizes.distance is not None
    error = float(sizes.cv_error[t])
    return replace(
        choice,
        gamma=float(sizes.gamma[t]),
        tau=int(sizes.tau[t]),
        cv_error=error,
        lower=error,
        upper=error,
        criterion=float(sizes.distance[t]),
        certified=bool(found.proved[t]),
        projection=found,
    )


CHOOSERS: dict[str, Callable[[Study], Choice]] = {
    "minimum": _minimum,
    "one-se": _one_se,
    "stability": _stability,
    "corrected": _corrected,
    "projected": _projected,
}


def choose(study: Study, *, compare: bool = False, rest: bool = True) -> dict[str, Choice]:
    """The choice of the study's rule, and of other rules that need no further computations.

    The model of the chosen pair is proved after the choice, and then the rest of the surface, as
    far as the plan of the study has time for either.

    compare: Whether the choices of all rules are computed.
    rest: Whether the rest of the surface is proved.
    Returns: Choices under the names of the rules.
    """
    _ = study.surface  # Every rule reads the surface of the first partition, evaluated here.
    choices = {study.rule: CHOOSERS[study.rule](study)}
    _ = chosen_model(study, choices[study.rule])
    if rest:
        study.prove_rest()
    for name in RULES:
        if name not in choices and _shown(study, name, compare):
            choices[name] = CHOOSERS[name](study)
    return {name: choices[name] for name in RULES if name in choices}


def _shown(study: Study, name: str, compare: bool) -> bool:
    """Whether the choice of another rule is computed beside that of the study's rule."""
    try:
        checked_rule(name, study.data, study.settings)
    except InputError:
        return False
    return compare or RULES[name].free


def choice_status(study: Study, choice: Choice, model: FittedModel) -> Status:
    """Optimal where a choice and its model are proved, else the worst limit that was reached."""
    if choice.certified and model.proved:
        return Status.OPTIMAL
    return Status.UNPROVED if study.status is Status.OPTIMAL else study.status


def chosen_model(study: Study, choice: Choice) -> FittedModel:
    """The model of all rows that belongs to a choice."""
    if choice.projection is not None:
        return choice.projection.sizes.models[choice.projection.chosen]
    return study.model(choice.gamma_index, choice.tau_index)
