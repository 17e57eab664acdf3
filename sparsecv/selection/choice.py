"""How every rule chooses from an evaluated surface h(γ, τ).

h(γ, τ) is the CV error of best-subset ridge regression of at most τ columns at the ridge weight γ.
A rule chooses a pair (γ, τ) of the surface or, as the rule projected does, the projection of an
average of all its models onto few columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ..cv.executor import OutOfTime
from ..cv.results import Array, CVResult, least
from ..design.model import Model
from ..errors import InputError
from ..solvers.core.result import Status
from .averaging import Average, average_of
from .pair_criteria import corrected_errors
from .projection import Projection, project_average
from .rules import RULES, PairCriterion, check_rule
from .study import Study
from .surfaces import Evaluated


@dataclass(frozen=True)
class Choice:
    """What a rule chooses: a pair (γ, τ) with its CV error, or a projection.

    Attributes
    ----------
    rule : str
        The rule that chooses.
    position : tuple of int
        Position (γ, τ) of the pair on the surface that was evaluated. With projected, that of the
        least CV error averaged over partitions, for which no model is shown.
    gamma, tau : float, int
        The pair that the rule chooses.
    cv_error : float
        h(γ, τ) of the choice: exact where ``lower`` and ``upper`` agree, else an estimate.
    lower, upper : float
        Bounds on ``cv_error``. Those of a projection are 0 and ∞ where it is not proved.
    criterion : float
        The number that the rule minimises: h, h + λ·stability, or the corrected error; the CV error
        of the pair for one-se, which minimises no number.
    pairs : PairCriterion or None
        The number that the rule minimises, of every pair; None where it is the CV error, or where
        there is no such number, as for one-se and projected.
    projection : Projection or None
        What the rule projected found. ``gamma`` then is the ridge weight of the projection,
        ``cv_error`` is the error of the projections against y, and ``criterion`` their held-out
        distance to the average.
    size_given : bool
        Whether the user has named the size, so that the rule has chosen among its models alone.
    cut_short : bool
        Whether Ctrl-C has ended the run before every pair was compared, or the time was up before
        the rule that was asked for could choose.
    """

    rule: str
    position: tuple[int, int]
    gamma: float
    tau: int
    cv_error: float
    lower: float
    upper: float
    criterion: float
    pairs: PairCriterion | None = field(default=None, compare=False, repr=False)
    projection: Projection | None = field(default=None, compare=False, repr=False)
    size_given: bool = False
    cut_short: bool = False

    @property
    def own_gamma(self) -> float:
        """γ, or NaN at the size 0: the mean alone has no coefficient that γ could shrink."""
        return self.gamma if self.tau > 0 else float("nan")

    @property
    def is_pair(self) -> bool:
        """Whether the choice is a pair (γ, τ) of the grid."""
        return self.projection is None

    @property
    def lambda_(self) -> float | None:
        """λ of the rule stability, chosen by nested folds; None of other rules."""
        return None if self.pairs is None else self.pairs.lambda_

    @property
    def status(self) -> Status:
        """Optimal, or the limit that was reached by what the rule needs beside the surface."""
        return Status.worst(one.status for one in (self.pairs, self.projection) if one is not None)

    def spread(self, result: CVResult) -> tuple[float, bool]:
        """The standard error of the choice's CV error, and whether that error is exact.

        result: The surface that the choice was made from.
        """
        if self.projection is not None:
            return self.projection.model.std_error, self.lower == self.upper
        g, t = self.position
        one = result.by_gamma[g]
        return float(one.std_error[t]), bool(one.exact[t])

    def values(self, result: CVResult) -> Array:
        """The number that the rule minimises, of every pair of a surface, shape (γ, τ).

        The rules one-se and projected have no such number, and the CV error stands for it.
        """
        return result.table("cv_error") if self.pairs is None else self.pairs.values


def of_pair(
    rule: str,
    result: CVResult,
    g: int,
    t: int,
    criterion: float,
    pairs: PairCriterion | None = None,
) -> Choice:
    """The choice of the pair at position (g, t) of a surface, with what the surface knows of h.

    criterion: The number that the rule minimises, at this pair.
    pairs: That number at every pair; None where the rule minimises h, or no number.
    """
    one = result.by_gamma[g]
    return Choice(
        rule,
        position=(g, t),
        gamma=float(result.gammas[g]),
        tau=int(result.taus[t]),
        cv_error=float(one.cv_error[t]),
        lower=float(one.lower[t]),
        upper=float(one.upper[t]),
        criterion=float(criterion),
        pairs=pairs,
    )


def least_error(result: CVResult) -> Choice:
    """The pair of least h; of equal values the smaller τ, then the larger γ."""
    best = result.best()
    g, t = best.gamma_index, best.tau_index
    return of_pair("minimum", result, g, t, best.cv_error)


def least_asked(study: Study, result: CVResult) -> Choice:
    """The pair of least h among the sizes that were asked for, where a limit ends the choice.

    Other pairs were not compared to the end.

    result: What is known of the first partition.
    """
    (asked,) = np.nonzero(np.isin(result.taus, study.sizes))
    errors = result.table("cv_error")[:, asked]
    g, t = least(errors, result.taus[asked], result.gammas, result.rounding)
    return replace(of_pair("minimum", result, g, int(asked[t]), errors[g, t]), cut_short=True)


def within_one_se(result: CVResult) -> Choice:
    """The least τ whose h, at the best γ for that τ, is within a standard error of the least h."""
    g, t = position_of_one_se(result)
    return of_pair("one-se", result, g, t, result.by_gamma[g].cv_error[t])


def position_of_one_se(result: CVResult) -> tuple[int, int]:
    """Position (γ, τ) of the pair that the rule one-se chooses from the CV errors as they are."""
    best = result.best()
    return best.one_se_gamma_index, int(np.flatnonzero(result.taus == best.one_se)[0])


def _least_criterion(
    rule: str, criterion: Callable[[Study, CVResult], PairCriterion], study: Study, first: Evaluated
) -> Choice:
    """The choice of the pair at which a criterion is least.

    criterion: Computes the criterion of every pair from a study and h(γ, τ) of its first partition.
    """
    result = first.result
    pairs = criterion(study, result)
    g, t = least(pairs.values, result.taus, result.gammas, result.rounding)
    return of_pair(rule, result, g, t, pairs.values[g, t], pairs)


def projection_of(study: Study, average: Average) -> Choice:
    """The sparse model that is chosen in place of an average of models.

    A projection is the model of a given size that is fitted to the predictions of the average in
    place of y. The least size is chosen whose projections are close enough to the average on
    held-out rows, as :func:`~sparsecv.selection.projection.project_average` says. A size that has
    both more columns and a larger CV error than the pair of least CV error is not chosen.
    """
    result, mean = average.result, average.partitions.mean
    some = average.partitions.gammas  # Positions of the γ that all partitions have.
    best = result.best()
    projection = project_average(study, average, best.tau, best.cv_error)
    g, t = least(mean, result.taus, result.gammas[some], result.rounding)
    pair = of_pair("projected", result, int(some[g]), t, mean[g, t])
    return of_projection(pair, projection)


def of_projection(choice: Choice, projection: Projection) -> Choice:
    """A choice with the size, numbers and proofs of the chosen projection.

    choice: A choice of the rule projected, of which rule, position and given size are kept.
    """
    model = projection.model
    exact = bool(projection.proved[projection.chosen])
    return replace(
        choice,
        gamma=model.gamma,
        tau=model.tau,
        cv_error=model.cv_error,
        lower=model.cv_error if exact else 0.0,
        upper=model.cv_error if exact else np.inf,
        criterion=model.distance,
        projection=projection,
    )


def _stable(study: Study, first: Evaluated) -> Choice:
    """The choice of the pair of least error and instability."""
    return _least_criterion("stability", study.wings.stable_errors, study, first)


# How every rule chooses from the evaluated first partition of a study.
CHOOSERS: dict[str, Callable[[Study, Evaluated], Choice]] = {
    "minimum": lambda study, first: least_error(first.result),
    "one-se": lambda study, first: within_one_se(first.result),
    "stability": _stable,
    "corrected": partial(_least_criterion, "corrected", corrected_errors),
    "projected": lambda study, first: projection_of(study, average_of(study, first)),
}


def chosen_from(study: Study, first: Evaluated) -> tuple[Evaluated, Choice]:
    """What the rule of a study chooses from an evaluated surface; the model of a pair is proved.

    A projection was proved, as far as the time allowed, when its size was chosen. Where the time is
    up before the rule can choose, the rule of the choice is minimum.
    Returns: The surface with all proofs, and the choice.
    """
    try:
        choice = CHOOSERS[study.rule](study, first)
    except OutOfTime:
        choice = least_asked(study, first.result)
    return with_model_of(study, first, choice), choice


def chosen_again(study: Study, first: Evaluated, choice: Choice) -> tuple[Evaluated, Choice]:
    """The choice by what the surface has proved since it was made.

    A rule that needs nothing beside the surface chooses anew. A pair of another rule stays, and
    takes the CV error that is known now; its criterion and a projection stay as they are.

    choice: What the rule of the study has chosen from the surface.
    Returns: The surface with the model of the pair proved, as far as the time allows; the choice.
    """
    if choice.cut_short:
        choice = least_asked(study, first.result)
        return with_model_of(study, first, choice), choice
    if RULES[study.rule].free:
        return chosen_from(study, first)
    if choice.is_pair:
        g, t = choice.position
        choice = of_pair(choice.rule, first.result, g, t, choice.criterion, choice.pairs)
    return first, choice


def with_model_of(study: Study, first: Evaluated, choice: Choice) -> Evaluated:
    """The surface with the model of a chosen pair proved, as far as the time allows."""
    if choice.is_pair:
        _, t = choice.position
        first.surface.with_plan(study.plan).prove_model(choice.gamma, t)
    return first.refreshed()


def other_choices(
    study: Study, first: Evaluated, choice: Choice, *, every: bool = False
) -> dict[str, Choice]:
    """What the rules choose that need nothing beside the surface, and what the study's rule does.

    first: The evaluated first partition. Rules that need more of it prove it there.
    choice: What the rule of the study chooses.
    every: Whether the choices of all rules are computed. Rules that the folds, the method or the
        time do not allow are left out.
    Returns: Choices under the names of the rules; ``choice`` under that of the rule that made it.
    """
    found = dict[str, Choice]()
    for name, rule in RULES.items():
        if name == choice.rule:
            found[name] = choice
        elif every or rule.free:
            try:
                check_rule(name, study.data, study.settings)
                found[name] = CHOOSERS[name](study, first)
            except (InputError, OutOfTime):
                continue
    return found


def known_model(study: Study, result: CVResult, choice: Choice) -> Model:
    """The model of all rows of a choice as far as it is known; nothing more is searched for.

    result: h(γ, τ) of the first partition.
    """
    if choice.projection is not None:
        return choice.projection.model
    g, t = choice.position
    return result.by_gamma[g].model(study.design, study.data.full(), t)
