"""The first sections of a result: the choice, its error, what is proved, and the coefficients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..cv.results import GlobalMinimum, bounds_text
from ..design.model import FittedModel
from ..selection.choice import Choice
from ..selection.nested import can_nest
from ..selection.rules import RULES, rule_reason
from ..selection.study import Study
from ..solvers.core.result import Status
from .outcome import Result, constraint_lines, constraints
from .sections import Column, Fact, Section, Table, counted, listed, number, percent

# At most this many ranges of γ that cannot be excluded are shown for a τ; --json has all. The
# number is a choice.
MAX_SHOWN_RANGES = 4


def answer(result: Result) -> Iterator[Section]:
    """Yield the sections that every report begins with."""
    study, choice = result.study, result.choice
    asked = constraints(result.design.asked, result.names)
    lines = [Fact("", "", text) for text in (*constraint_lines(asked), *result.remarks)]
    facts = [*_chosen(result, study, choice), Fact("data", "", _data(result)), *lines]
    yield Section("", facts, entries=lambda: {"constraints": asked})
    if study is None or choice is None:
        yield Section("How sure", [_best_of_size(result)])
    else:
        yield Section(
            "The error to expect",
            list(_errors(result, study, choice)),
            entries=lambda: _chosen_entries(result, study, choice),
        )
        yield Section("How sure", list(_sure(result, study, choice)))
    yield _model(result)


def _chosen(result: Result, study: Study | None, choice: Choice | None) -> Iterator[Fact]:
    """Yield what is chosen, by which rule."""
    model = result.model
    figure = f"τ = {result.tau} of {result.selectable}, γ = {number(result.gamma)}"
    yield Fact("chosen", figure)
    # The line of the chosen columns names at most this many; the table of coefficients has all.
    yield Fact("columns", "", listed(result.called(model.support[result.by_effect]), 12))
    if study is not None and choice is not None:
        why = rule_reason(study.rule_asked, study.data, study.settings)
        given = f"; size {choice.tau} as asked" if choice.size_given else ""
        yield Fact("rule", "", f"{choice.rule} ({why}): {RULES[choice.rule].aim}{given}")
        return
    objective = number(model.objective, model.proved)
    if not model.proved and model.shows_gap:
        objective += f" (proved lower bound {number(model.lower_bound)})"
    yield Fact("objective", objective, "‖y − Xβ‖² + (γ/2)‖β‖² on scaled columns")


def _data(result: Result) -> str:
    """The rows, features and response of the table, and how its columns are scaled."""
    protocol = result.design.protocol
    text = f"{result.name}: {result.design.total:g} rows, {counted(result.design.p)}"
    text += f", response {result.target}"
    scaled = {"unit-norm": ", features scaled to unit length", "none": ", features not scaled"}
    text += scaled.get(protocol.scale, "")
    text += ", response scaled, too (--protocol paper)" if protocol.name == "paper" else ""
    return text + ("" if protocol.intercept else ", no intercept")


def _errors(result: Result, study: Study, choice: Choice) -> Iterator[Fact]:
    """Yield the choice's CV error, its root, R², and the error to expect on new data."""
    folds, (spread, exact) = study.data.folds, result.spread(study, choice)
    kind = "leave-one-out" if folds.leave_one_out else counted(folds.k, "fold")
    meaning = f"mean squared held-out error, {kind}. It compares models and chose among them: "
    meaning += "expect more on new data."
    settled = result.expected is not None or choice.size_given or not can_nest(study.data)
    meaning += "" if settled else " --nested, or nested=True, tells how much."
    yield Fact("CV error", f"{number(choice.cv_error, exact)} ± {number(spread)} (s.e.)", meaning)
    known = bounds_text(choice.lower, choice.cv_error, choice.upper)
    if choice.is_pair and not exact and known:
        yield Fact("", "", f"proved bounds of this CV error: {known}")
    root = number(float(np.sqrt(choice.cv_error)), exact)
    yield Fact("RMSE", root, f"the square root of the CV error, in the units of {result.target}")
    if not np.isnan(r2 := result.r_squared(choice.cv_error)):
        worse = "" if r2 > 0.0 else "; the mean alone predicts as well"
        formula = f"1 − CV error / variance of {result.target} about its mean{worse}"
        yield Fact("R²", f"{'' if exact else '≈'}{r2:.3f}", formula)
    if (expected := result.expected) is not None:
        figure = f"{number(expected.error)} ± {number(expected.std_error)} (s.e.)"
        meaning = "the error to expect on new data: the whole procedure, choice included, "
        yield Fact("to quote", figure, meaning + f"held out in {expected.folds} outer folds")


def _chosen_entries(result: Result, study: Study, choice: Choice) -> dict[str, Any]:
    """The choice, its rule and its errors as entries of the JSON document.

    "nested" is the error to expect on new data, or null. "rule" stands in "chosen" and beside it.
    """
    proof = {name: getattr(choice, name) for name in ("lower", "upper", "certified")}
    return {
        "method": study.settings.method,
        "backend": study.settings.backend,
        "chosen": {
            "rule": study.rule,
            **pair(choice),
            "rmse": np.sqrt(choice.cv_error),
            "r2": result.r_squared(choice.cv_error),
            **proof,
        },
        "rule": study.rule,
        "rule_status": study.status,
        "nested": None if result.expected is None else result.expected._asdict(),
    }


def pair(choice: Choice) -> dict[str, Any]:
    """The chosen τ and γ, and their CV error."""
    return {"tau": choice.tau, "gamma": choice.gamma, "cv_error": choice.cv_error}


def _sure(result: Result, study: Study, choice: Choice) -> Iterator[Fact]:
    """Yield what is proved of the choice, of a range of γ, and of the model's columns."""
    surface, span = study.surface, study.surface.minimum
    tolerance, pairs = surface.tolerance, "no pair (τ, γ) "
    pairs += "that was tried" if surface.trace else "of the grid"
    if span is not None:
        tolerance = span.tolerance
        pairs = f"no τ and no γ from {span.low:g} to {span.high:g}"
        yield from _range(span)
    within = f" by more than {100 * tolerance:g} %" if tolerance else ""
    nearer = f"no other {counted(choice.tau)} predict more like the average{result.within}"
    proofs = {
        "minimum": f"{pairs} {'have' if span else 'has'} a smaller CV error{within}",
        "one-se": "every CV error that was compared",
        "projected": nearer,
    }
    if choice.size_given:
        pairs = f"no γ {'that was tried' if surface.trace else 'of the grid'}"
        pairs += f" with τ = {choice.tau}"
        proofs = {"projected": nearer}
    if choice.certified:
        yield Fact("proved", "", proofs.get(choice.rule, f"{pairs} is better by this rule"))
    else:
        best = surface.best()
        known = bounds_text(best.lower_bound, best.cv_error, best.upper)
        least = f"; proved bounds of the least CV error: {known}" if known else ""
        text = "not proved: with all CV errors proved another model might be chosen"
        yield Fact("≈", "", text + least)
    if choice.is_pair:
        yield _best_of_size(result)


def _range(span: GlobalMinimum) -> Iterator[Fact]:
    """Yield what is known of the least CV error over a range of γ."""
    seconds = f"{span.seconds:.2g} s"
    yield Fact("bounds", "", f"{span.lower:.9g} ≤ least CV error ≤ {span.upper:.9g} ({seconds})")
    if span.status is Status.UNPROVED:
        text = "rounding allows no closer bounds: errors of this size cannot be told apart"
        yield Fact("", "", text)
    for tau in np.unique(span.left[:, 0]):
        cells = span.left[span.left[:, 0] == tau, 1:]
        some = ", ".join(f"[{low:.4g}, {high:.4g}]" for low, high in cells[:MAX_SHOWN_RANGES])
        more = ", …" if len(cells) > MAX_SHOWN_RANGES else ""
        yield Fact("", "", f"not excluded: τ = {tau:g}, γ in {some}{more}")


def _best_of_size(result: Result) -> Fact:
    """Whether the model's features are proved to fit all rows best."""
    model, tau, within = result.model, result.tau, result.within
    if model.proved:
        others = f"{counted(tau)} fit" if tau > 1 else "single feature fits"
        return Fact("proved", "", f"no other {others} all rows better at this γ{within}")
    most = f", by at most {percent(model.gap)} of the objective" if model.shows_gap else ""
    text = f"not proved: other {counted(tau)} may fit all rows better at this γ{most}"
    return Fact("≈", "", text)


def _model(result: Result) -> Section:
    """The coefficients in the table's units, in the order of their effects."""
    model, order = result.model, result.by_effect
    effects, columns = result.effects[order], model.support[order]
    spread = float(result.design.spread[-1]) or np.nan
    most = float(np.abs(effects).max(initial=0.0)) or 1.0
    table = [
        Column("column", result.called(columns), "words"),
        Column("coefficient", model.coef[columns]),
        Column("× s.d.", effects),
        Column("standardised", effects / spread),
        Column("size of effect", np.abs(effects) / most, "bar"),
    ]
    sentences = (
        f"The intercept is {number(model.intercept)}. “× s.d.” is the change of {result.target} "
        "when the column grows by one standard deviation; “standardised” is the same in standard "
        f"deviations of {result.target}.",
    )
    bounds = {name: getattr(model, name) for name in ("objective", "lower_bound", "gap")}
    own = {"standardized_coef": result.effects, **bounds}
    return Section(
        "The model, fitted to all rows",
        table=Table(table, what="columns"),
        sentences=sentences,
        entries=lambda: {"model": coefficients(result, model) | own},
    )


def coefficients(result: Result, model: FittedModel) -> dict[str, Any]:
    """Names and coefficients of a model's features, in lists of the same order."""
    return {
        "support": result.called(model.support),
        "coef": model.coef[model.support],
        "intercept": model.intercept,
        "proved": model.proved,
    }
