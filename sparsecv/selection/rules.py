"""Rules that choose (τ, γ) from exact surfaces, or average the models of many.

A rule says what it needs, and chooses; what it needs is asked of the study, which evaluates it
once. A new rule is a subclass of :class:`Rule` in ``RULES``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from ..cv.results import TIE, Array, CVResult, least
from ..cv.settings import Settings
from ..design.fold_data import FoldData, RowFolds
from ..design.model import FittedModel
from ..errors import InputError
from ..solvers.leaps.all_sizes import TREE_ONLY
from .averaging import averaged_model, model_weights
from .choice import Choice
from .criterion import criterion
from .inner import refuse_inner
from .partial_errors import checked_partition
from .partitions import redrawn
from .study import Study

MOST_PAIRS = 25_000_000  # rows of all pairs of folds together: 200 MB


class Rule(ABC):
    """One way to choose.

    least: What is least, for a table.
    every_tau: It needs h at every τ, not only the best.
    partitions: It asks for the surfaces of other partitions.
    averages: It averages models: beyond 45 columns good ones, not proofs of the least CV error.
    all_sizes: It needs the models of all sizes, whichever were asked for.
    """

    name: str
    least: str
    every_tau = True
    partitions = False
    averages = False
    all_sizes = False

    def refuse(self, data: FoldData) -> None:  # noqa: B027 - most rules take any folds
        """Raise an InputError where these folds do not allow the rule."""

    def free(self, study: Study) -> bool:
        """Whether the study knows by now all that the rule needs."""
        return False

    @abstractmethod
    def choose(self, study: Study) -> Choice:
        """The choice, from what the study evaluates for it."""


class _Minimum(Rule):
    """Least h; of equal ones the smaller τ, then the larger γ."""

    name, least, every_tau = "minimum", "CV error", False

    def free(self, study: Study) -> bool:
        return True

    def choose(self, study: Study) -> Choice:
        best = study.surface.best()
        return _choice(
            self, study.surface, best.gamma_index, best.tau_index, best.cv_error, best.certified
        )


class _OneStandardError(Rule):
    """Least τ whose h, at its best γ, is within one standard error of the least."""

    name, least = "one-se", "τ within a standard error"

    def free(self, study: Study) -> bool:
        return not study.settings.searches

    def choose(self, study: Study) -> Choice:
        result, best = study.surface, study.surface.best()
        t = int(np.flatnonzero(result.taus == best.one_se)[0])
        g = best.one_se_gamma_index
        value = float(result.by_gamma[g].cv_error[t])
        return _choice(self, result, g, t, value, result.complete)


class _Stability(Rule):
    """Least h + λ·μ̂_h, λ by nested folds (Algorithm 1, stability paper)."""

    name, least = "stability", "CV error + λ·stability"

    def refuse(self, data: FoldData) -> None:
        folds = data.folds
        if not isinstance(data, RowFolds):
            raise InputError("rule stability needs the rows in memory: this table is too large")
        checked_partition(folds.label, folds.n)
        if folds.k < 3:
            raise InputError(f"rule stability needs at least 3 folds; got {folds.k}")
        if data.weights is not None:
            raise InputError("rule stability takes no weights: choose another rule")
        pairs = folds.k * (folds.k - 1) // 2
        if pairs * folds.n > MOST_PAIRS:
            raise InputError(
                f"rule stability solves every pair of folds, {pairs:,} here: use fewer folds"
            )

    def choose(self, study: Study) -> Choice:
        result = study.surface
        errors, selection = study.stability
        weight = selection.lambda_
        surface = criterion(errors, weight).reshape(len(result.by_gamma), -1)
        found = _least(self, result, surface, result.complete and _models_proved(result))
        return replace(found, lambda_=weight)


class _Corrected(Rule):
    """Least bias-corrected CV error (Burman 1989)."""

    name, least = "corrected", "bias-corrected CV error"

    def refuse(self, data: FoldData) -> None:
        if not data.folds.is_partition:
            raise InputError("rule corrected needs folds that hold out every row once")

    def choose(self, study: Study) -> Choice:
        result = study.surface
        return _least(self, result, study.corrected, result.complete and _models_proved(result))


class _Repeated(Rule):
    """Least h on average over several partitions; leave-one-out has only one."""

    name, least, partitions = "repeated", "CV error averaged over partitions", True

    def refuse(self, data: FoldData) -> None:
        if not (data.folds.leave_one_out or redrawn(data.folds)):
            raise InputError(
                f"rule {self.name} draws partitions of its own: give the folds as a number K or "
                "size:M"
            )

    def free(self, study: Study) -> bool:
        return "others" in vars(study) and study.redraws

    def choose(self, study: Study) -> Choice:
        result, at = study.surface, study.apart
        surface, low, high = study.mean_surface
        g, t = least(surface, result.taus, result.gammas[at])
        proved = _whole(study) and bool(low.min() >= high[g, t] * (1.0 - 2.0 * TIE))
        return _choice(self, result, int(at[g]), t, float(surface[g, t]), proved)


class _Averaged(_Repeated):
    """The average of the grid's models with weights h^(−n/10), h averaged over partitions."""

    name, least, averages = "averaged", "no pair: all models, weighted by their errors", True

    def refuse(self, data: FoldData) -> None:
        refuse_inner(data)  # else any folds serve: one partition, where no others can be drawn

    def free(self, study: Study) -> bool:
        return "inner" in vars(study)

    def choose(self, study: Study) -> Choice:
        found = super().choose(study)
        result, at = study.surface, study.apart
        surface = study.mean_surface[0]
        weights = np.zeros((result.gammas.size, result.taus.size))
        weights[at] = model_weights(surface, result.gammas[at], result.folds.n)
        pairs = np.argwhere(weights > 0.0)
        columns = [result.by_gamma[g].models[t] for g, t in pairs]
        models = all(bool(result.by_gamma[g].model_proved[t]) for g, t in pairs)
        used = weights[at] > 0.0
        bound = float((weights[at][used] * surface[used]).sum())
        every = [result, *study.others]
        return replace(
            found,
            gamma=float("nan"),
            tau=int(np.unique(np.concatenate(columns)).size),
            cv_error=study.average_error[0],
            lower=study.average_error[0],
            upper=study.average_error[0],
            criterion=bound,
            certified=_whole(study)
            and models
            and study.inner[1]
            and all(one.complete for one in every),
            weights=weights,
        )


class _Projected(_Averaged):
    """The average, projected onto the least size that stays close to it on held-out rows."""

    name, least, all_sizes = "projected", "held-out distance to the average", True

    def free(self, study: Study) -> bool:
        return False

    def choose(self, study: Study) -> Choice:
        found = super().choose(study)
        assert found.weights is not None
        best = study.surface.best()
        projection = study.projection(found.weights, (best.tau, best.cv_error))
        t, error = projection.chosen, projection.of_size(projection.cv_error)
        return replace(
            found,
            gamma=float(projection.gammas[projection.at[t]]),
            tau=int(projection.sizes[t]),
            cv_error=float(error[t]),
            lower=float(error[t]),
            upper=float(error[t]),
            criterion=float(projection.of_size(projection.distance)[t]),
            certified=found.certified and projection.proved,
            weights=None,
            projection=projection,
        )


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        _Minimum(),
        _OneStandardError(),
        _Stability(),
        _Corrected(),
        _Repeated(),
        _Averaged(),
        _Projected(),
    )
}


def checked_rule(rule: str) -> None:
    """Refuse an unknown rule."""
    if rule != "auto" and rule not in RULES:
        raise InputError(f"rule must be auto or one of {', '.join(RULES)}; got {rule!r}")


def resolved_rule(rule: str, data: FoldData, settings: Settings) -> str:
    """The rule that "auto" stands for: projected beyond 45 columns that vary, else minimum.

    The methods search and bounds look for the least CV error and nothing else, so that "auto"
    stands for minimum there.
    """
    if rule != "auto":
        return rule
    return "projected" if data.p > TREE_ONLY and not settings.searches else "minimum"


def rule_reason(rule: str, data: FoldData, settings: Settings) -> str:
    """Why a rule is taken, in words that can stand behind its name.

    rule: As it was asked for.
    """
    if rule != "auto":
        return "as asked"
    if settings.searches:
        return f"method {settings.method} looks for the least CV error alone"
    many = f"more than {TREE_ONLY}" if data.p > TREE_ONLY else f"at most {TREE_ONLY}"
    return f"the default for {data.p} feature{'s' if data.p > 1 else ''}, {many}"


def refuse_rule(rule: str, data: FoldData, settings: Settings) -> None:
    """Refuse what cannot be chosen by here, before anything is computed.

    Raises InputError: An unknown rule, one that these folds do not allow, or one that needs h at
        every τ where only the best is searched for.
    """
    checked_rule(rule)
    rule = resolved_rule(rule, data, settings)
    if RULES[rule].every_tau and settings.searches:
        raise InputError(f"rule {rule} needs h at every tau: use method exact or grid")
    RULES[rule].refuse(data)


def choose(study: Study, rule: str, *, compare: bool = False) -> tuple[str, dict[str, Choice]]:
    """Choose by a rule.

    rule: "auto": see :func:`resolved_rule`.
    compare: Also evaluate what the other rules need.
    Returns rule: "auto" resolved.
    Returns choices: That of the rule, and of others that cost nothing more or were asked for.
    Raises InputError: A rule that is unknown or that these folds do not allow.
    """
    refuse_rule(rule, study.data, study.settings)
    rule = resolved_rule(rule, study.data, study.settings)
    asked = RULES[rule]
    study.expect(asked.partitions, asked.averages, asked.all_sizes)
    choices = {rule: RULES[rule].choose(study)}
    for name, other in RULES.items():
        if name in choices or not (compare or other.free(study)):
            continue
        if name == "repeated" and redrawn(study.data.folds) and not study.redraws:
            continue  # the average took one partition
        try:
            refuse_rule(name, study.data, study.settings)
        except InputError:
            continue
        choices[name] = other.choose(study)
    return rule, {name: choices[name] for name in RULES if name in choices}


def chosen_model(study: Study, choice: Choice) -> FittedModel:
    """Fit what a rule chooses to all rows."""
    if choice.projection is not None:
        return choice.projection.models[choice.projection.chosen]
    if choice.weights is None:
        return study.model(choice.gamma_index, choice.tau_index)
    return averaged_model(
        study.design, study.data.full(), study.surface, choice.weights, choice.certified
    )


def _models_proved(result: CVResult) -> bool:
    return all(bool(one.model_proved.all()) for one in result.by_gamma)


def _whole(study: Study) -> bool:
    """Whether all partitions asked for are there."""
    return len(study.others) == (study.repeats - 1 if study.redraws else 0)


def _least(rule: Rule, result: CVResult, surface: Array, certified: bool) -> Choice:
    g, t = least(surface, result.taus, result.gammas)
    return _choice(rule, result, g, t, float(surface[g, t]), certified)


def _choice(rule: Rule, result: CVResult, g: int, t: int, value: float, certified: bool) -> Choice:
    one = result.by_gamma[g]
    return Choice(
        rule.name,
        g,
        t,
        float(result.gammas[g]),
        int(result.taus[t]),
        float(one.cv_error[t]),
        float(one.lower[t]),
        float(one.upper[t]),
        value,
        certified,
    )
