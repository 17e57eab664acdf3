"""What is claimed of a fit: what is proved, over which range, and by which rule.

This module alone decides whether a choice is proved, and it alone says so in words. A claim is made
from a study, the evaluated surface h(γ, τ) of its first partition, and a choice; estimators,
screen, pages, JSON files and pictures read the claim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..cv.needs import Known, of_one_se
from ..cv.results import Array, CVResult, GlobalMinimum, Step
from ..design.design import Design
from ..design.folds import Index
from ..design.model import Model, values_of
from ..solvers.core.gamma_span import GammaSpan
from ..solvers.core.rounding import EQUAL_SHARE
from .choice import Choice, least_error, position_of_one_se
from .rules import RULES
from .study import Study

# A list of sizes or of γ is written out up to this many numbers, and else by its ends. The number
# is a choice.
MAX_LISTED = 4


# Why the rule projected takes the size 0 where the average of all models is not near the mean.
WITHOUT_COLUMNS = "the mean alone, as no size that may be chosen has less CV error"


@dataclass(frozen=True)
class Statement:
    """A statement, and whether it is proved.

    text: What is stated, in words that can follow "it is proved that".
    proved: Whether it is proved.
    """

    text: str
    proved: bool

    @property
    def sentence(self) -> str:
        """The sentence that says whether the statement is proved."""
        return f"It is {'' if self.proved else 'not '}proved that {self.text}."


@dataclass(frozen=True)
class Claim(Statement):
    """What is claimed of a choice.

    rule: The rule by which the choice was made.
    sizes: The sizes τ that are compared, that of the choice among them, increasing; of a projection
        its own size alone.
    gammas: The values of γ of the surface: those of the pairs that are compared, or averaged.
    span: The range of γ, all of which the statement is about; None where it is about ``gammas``.
    tolerance: The statement counts CV errors as smaller only where they are smaller by more than
        this share, beside rounding.
    lower, upper: Bounds of the least CV error over all that was searched: every pair (γ, τ), every
        γ of the range if there is one, and, where an average was projected, the projections that
        were found.
    """

    rule: str
    sizes: Index
    gammas: Array
    span: GammaSpan | None
    tolerance: float
    lower: float
    upper: float


def claim_of(study: Study, result: CVResult, choice: Choice) -> Claim:
    """What is claimed of a choice.

    result: h(γ, τ) of the first partition of the study, with all that is proved by now.
    """
    # Where the user has named the size of a pair, the pair was compared with this size alone.
    some = [choice.position[1]] if choice.size_given and choice.is_pair else slice(None)
    span = None
    if choice.rule == "minimum" and not choice.size_given and result.minimum is not None:
        span = result.minimum.span
    lower, upper = _least_error(result, choice)
    tolerance = _tolerance(result, ranges=span is not None)
    over = f"{_sizes(result.taus[some])}; {_gammas(study, result, span)}"
    if not choice.is_pair:
        averaged = result.taus[result.taus > 0]
        over = f"the average is over {_sizes(averaged)}; {_gammas(study, result, span)}"
    return Claim(
        f"{_statement(study, choice, tolerance)} (rule {choice.rule}; {over})",
        not choice.cut_short and _is_proved(result, choice, some, ranges=span is not None),
        rule=choice.rule,
        sizes=result.taus[some] if choice.is_pair else np.array([choice.tau]),
        gammas=result.gammas,
        span=span,
        tolerance=tolerance,
        lower=lower,
        upper=upper,
    )


# What is proved.


def least_is_proved(result: CVResult) -> bool:
    """Whether no pair (γ, τ) of a surface has a smaller CV error than the pair of least estimate.

    Errors that differ by rounding alone count as equal, and so do errors that differ by less than
    the tolerance of a search of the least error.
    """
    return _no_smaller(result, least_error(result).position, slice(None), ranges=False)


def range_is_proved(minimum: GlobalMinimum) -> bool:
    """Whether no τ and γ of a range have an error that is smaller by more than the tolerance."""
    return minimum.gap <= minimum.tolerance


def step_is_proved(result: CVResult, step: Step) -> bool:
    """Whether no size has a smaller CV error than that of a step at the step's γ.

    result: The surface on which τ and γ were minimised in turn.
    """
    (g,), (t,) = np.nonzero(result.gammas == step.gamma), np.nonzero(result.taus == step.tau)
    return bool(g.size) and _no_smaller(result.at(g[:1]), (0, int(t[0])), slice(None), ranges=False)


def _is_proved(result: CVResult, choice: Choice, sizes: slice | list[int], ranges: bool) -> bool:
    """Whether what is stated of a choice is proved; parameters as of :func:`_no_smaller`."""
    if choice.projection is not None:
        return bool(choice.projection.proved[choice.projection.chosen])
    if choice.pairs is not None:
        # The criteria of the rules stability and corrected have no bounds, so that every number
        # that was compared has to be exact.
        exact, models = (result.table(name).astype(bool) for name in ("exact", "model_proved"))
        return bool((choice.pairs.proved & exact & models)[:, sizes].all())
    if choice.rule == "one-se" and not choice.size_given:
        known, own = Known.of(result), position_of_one_se(result)
        return choice.position == own and bool(known.exact[of_one_se(known).errors].all())
    return _no_smaller(result, choice.position, sizes, ranges)


def _no_smaller(
    result: CVResult, position: tuple[int, int], sizes: slice | list[int], ranges: bool
) -> bool:
    """Whether no error is smaller than that of the pair at a position.

    This is proved where the least of all lower bounds is no less than the pair's upper bound, but
    for what rounding explains, and the tolerance of a search of the least error.

    sizes: Positions of the sizes that are compared.
    ranges: Whether every γ of the range that was searched is compared, and not those of the surface
        alone.
    """
    tolerance, minimum = _tolerance(result, ranges), result.minimum
    lower, upper = (
        float(result.table("lower")[:, sizes].min()),
        float(result.table("upper")[position]),
    )
    if ranges and minimum is not None:
        lower = min(lower, minimum.lower)
    # Without a tolerance the error that is reported must be exact: bounds on it do not suffice.
    sure = bool(result.table("exact")[position]) or result.tolerance is not None
    return (
        sure and lower >= upper - max(2.0 * EQUAL_SHARE, tolerance) * abs(upper) - result.rounding
    )


def _tolerance(result: CVResult, ranges: bool) -> float:
    """The share by which an error may be smaller than one that counts as the least.

    It is that of the search at every γ of the surface, or of the search over the range of γ where
    this is larger; 0 where every h(γ, τ) was evaluated.

    ranges: Whether every γ of the range counts, and not those of the surface alone.
    """
    own = result.tolerance or 0.0
    return max(own, result.minimum.tolerance) if ranges and result.minimum is not None else own


def _least_error(result: CVResult, choice: Choice) -> tuple[float, float]:
    """Lower and upper bound of the least CV error over all that was searched.

    That is every pair of the surface, every γ of a range that was searched, and the projections
    that were found.
    """
    lower, upper = [float(result.table("lower").min())], [float(result.table("upper").min())]
    if (minimum := result.minimum) is not None:
        lower.append(minimum.lower)
        upper.append(minimum.upper)
    if choice.projection is not None:
        # The error of a projection is that of the models that were found, and needs no bounds.
        found = float(values_of(choice.projection.sizes, "cv_error").min())
        lower.append(found)
        upper.append(found)
    return min(lower), min(upper)


# What is said.


def aim_of(choice: Choice, counts: str) -> str:
    """What the rule of a choice has looked for, in words that can stand behind the rule's name.

    counts: What a size counts, as a word.
    """
    aim, projection = RULES[choice.rule].aim.format(f"{counts}s"), choice.projection
    if projection is None or (projection.near[projection.chosen] and not choice.size_given):
        return aim + (f"; size {choice.tau} as asked" if choice.size_given else "")
    most = f"the {counts} that predicts"
    if choice.tau > 1:
        most = f"the {choice.tau:,} {counts}s that predict"
    most += " most like the average of all models"
    if choice.size_given:
        return f"{most}; size {choice.tau} as asked"
    if choice.tau == 0:
        return WITHOUT_COLUMNS
    return f"{most}, as no size that may be chosen predicts nearly like it"


def of_model(model: Model, design: Design, criterion: str | None = None) -> Statement:
    """What is stated of a model that was fitted to all rows, at its γ and size.

    criterion: The criterion that has chosen the size; None for a size that was chosen otherwise.
    """
    if criterion is not None:
        text = f"no other set of features has a smaller {criterion.upper()}"
    elif model.tau == 0:
        return Statement(_alone(design), model.proved)
    elif design.constraints.weighted:
        what = "single coefficient fits"
        if model.tau > 1:
            what = f"set of at most {model.tau:,} coefficients fits"
        text = f"no other {what} all rows better at this γ"
    elif model.tau == 1:
        text = "no other single feature fits all rows better at this γ"
    else:
        text = f"no other {model.tau:,} features fit all rows better at this γ"
    return Statement(text + _within(design), model.proved)


def of_every_size(models: list[Model], design: Design, projected: bool) -> str:
    """A sentence that says of which sizes it is proved that no other set is better.

    projected: Whether the models are projections of the average of all models. Other models are
        fitted to all rows at the γ of their size.
    """
    most = "at most as many" if design.constraints.weighted else "as many"
    does = "predicts more like the average" if projected else "fits all rows better at its γ"
    better = f"o other set of {most} {design.counts}s {does}{_within(design)}."
    proved = [model.proved for model in models]
    if all(proved):
        return f"N{better}"
    if any(proved):
        return f"Where a size is proved, n{better}"
    return f"Of no size is it proved that n{better}"


def beyond_certificate(result: CVResult, choice: Choice, claim: Claim) -> str:
    """What a certificate of the least CV error of a surface leaves out of a choice; else empty.

    claim: What is claimed of the choice.
    """
    if not choice.is_pair or choice.position != least_error(result).position:
        text = "the certificate is of the pair of least CV error, which rule minimum chooses, and "
        what = "the size that was asked for" if choice.size_given else f"rule {choice.rule}"
        return f"{text}says nothing of the model of {what}"
    if claim.span is not None:
        n = result.gammas.size
        return f"the certificate is of the {n} γ that it names, and not of every γ of the range"
    return ""


def _statement(study: Study, choice: Choice, tolerance: float) -> str:
    """What is stated of a choice, without the range that it is stated of."""
    design, within = study.design, _within(study.design)
    if choice.projection is not None and choice.tau == 0:
        return f"{_alone(design)}, and every subset in the average is the best of its size"
    if choice.projection is not None:
        return (
            f"no other {_features(choice.tau, design)} more like the average{within}, and "
            "every subset in the average is the best of its size"
        )
    if choice.rule == "one-se" and not choice.size_given:
        return (
            f"no fewer {design.counts}s have a CV error within one standard error of the least, "
            f"and no γ has a smaller one with as many{within}"
        )
    what = f"with τ = {choice.tau} no γ has" if choice.size_given else "no pair (τ, γ) has"
    criteria = {
        "stability": "a smaller sum of CV error and λ times instability",
        "corrected": "a smaller bias-corrected CV error",
    }
    least = criteria.get(choice.rule, "a smaller CV error")
    share = f" by more than {100.0 * tolerance:g} %" if tolerance else ""
    return f"{what} {least} than the chosen one{share}{within}"


def _alone(design: Design) -> str:
    """Words that say that the size 0 has one model."""
    what = "the mean alone" if design.protocol.intercept else "which predicts 0"
    return f"τ = 0 has one model, {what}"


def _features(count: int, design: Design) -> str:
    """A number of features, or of coefficients, that predict."""
    if design.constraints.weighted:
        more = f"set of at most {count:,} coefficients predicts"
        return "single coefficient predicts" if count == 1 else more
    return "single feature predicts" if count == 1 else f"{count:,} features predict"


def _within(design: Design) -> str:
    """Words to add where a statement is about the models that obey constraints; else none.

    Groups alone, such as the levels of a factor, leave no models out: a group counts as one
    feature, or as its coefficients.
    """
    asked = design.constraints
    narrow = asked.include.any() or asked.exclude.any() or asked.bounded
    return ", within the constraints" if narrow else ""


def _sizes(sizes: Index) -> str:
    """The sizes that a statement is about."""
    if sizes.size == 1:
        return f"τ = {sizes[0]}"
    if sizes[-1] - sizes[0] == sizes.size - 1:
        return f"τ from {sizes[0]} to {sizes[-1]}"
    if sizes.size <= MAX_LISTED:
        return f"τ of {', '.join(map(str, sizes))}"
    return f"{sizes.size:,} sizes τ from {sizes[0]} to {sizes[-1]}"


def _gammas(study: Study, result: CVResult, span: GammaSpan | None) -> str:
    """The values of γ that a statement is about.

    span: The range of γ where the statement is about all of it.
    """
    if span is not None:
        return f"every γ from {span.low:g} to {span.high:g}"
    gammas = np.unique(result.gammas)
    if gammas.size <= MAX_LISTED:
        return f"γ {'=' if gammas.size == 1 else 'of'} {', '.join(f'{one:g}' for one in gammas)}"
    ends = f"from {gammas[0]:g} to {gammas[-1]:g}"
    if isinstance(study.gammas, GammaSpan):
        return f"the {gammas.size} γ {ends} that were compared"
    tried = "that the search of γ tried" if result.trace else "of the grid"
    return f"the {gammas.size} γ {ends} {tried}"
