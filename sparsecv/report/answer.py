"""The first sections of a result: the choice, its error, what is proved, and the coefficients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..cv.results import CVResult, GlobalMinimum, bounds_text
from ..selection.choice import Choice
from ..selection.nested import NestedError
from ..selection.result import Result
from ..selection.rules import RULES
from ..solvers.core.result import Status
from .outcome import constraints
from .sections import Fact, Section, SectionColumn, SectionTable, counted, listed, number, percent

# A line of names has at most so many characters, about two lines of a screen, and says how many
# more names there are. The number is a choice.
MAX_CHARACTERS = 150
# Of the ranges of γ that cannot be excluded so many are shown for a τ, for so many τ; --json has
# all. The number is a choice.
MAX_SHOWN_RANGES = 4


def answer(result: Result) -> Iterator[Section]:
    """Yield the sections that every report begins with."""
    asked = constraints(result.design.asked, result.names)
    lines = [Fact("", "", text) for text in (*_constraint_lines(asked), *result.shown.remarks)]
    facts = [*_chosen(result), Fact("data", "", _data(result)), *lines]
    yield Section("", facts)
    if result.held_out is None:
        yield Section("How sure", [_best_of_size(result)])
    else:
        _, surface, choice = result.held_out
        yield Section("The CV error", list(_errors(result, surface, choice)))
        if result.expected is not None:
            yield Section("The error to expect", [_expected(result.expected)])
        yield Section("How sure", list(_sure(result, surface, choice)))
    yield _model(result)


def _chosen(result: Result) -> Iterator[Fact]:
    """Yield what is chosen, by which rule."""
    model = result.model
    features = counted(result.design.n_units)
    figure = f"τ = {model.tau} of {features}, γ = {number(model.gamma)}"
    yield Fact("chosen", figure)
    columns = result.called(model.support[result.by_effect])
    yield Fact("columns", "", listed(columns, MAX_CHARACTERS))
    if result.held_out is not None:
        study, _, choice = result.held_out
        given = f"; size {choice.tau} as asked" if choice.size_given else ""
        yield Fact("rule", "", f"{choice.rule} ({study.reason}): {RULES[choice.rule].aim}{given}")
        return
    if result.criterion is not None:
        yield Fact("size", "", f"that of least {result.criterion.upper()}, of all sizes")
    objective = number(model.objective, model.proved)
    if not model.proved and model.shows_gap:
        objective += f" (proved lower bound {number(model.lower_bound)})"
    yield Fact("objective", objective, "‖y − Xβ‖² + (γ/2)‖β‖² on scaled columns")


def _data(result: Result) -> str:
    """The rows, features and response of a fit, and how its columns are scaled.

    Rows count with their weights, and columns that are constant do not count.
    """
    protocol = result.design.protocol
    p, features = result.design.p, counted(result.design.n_units)
    grouped = result.design.constraints.grouped
    own = f"{counted(p, 'column')} that count as {features}, a group once" if grouped else features
    # ``shown.name`` is that of an estimator. The rows that it was given have no name of their own.
    text = "" if result.shown.name else f"{result.name}: "
    rows = f"{result.design.total:,.2f}".removesuffix(".00")
    text += f"{rows} rows × {own}, response {result.target}"
    scaled = {"unit-norm": ", features scaled to unit length", "none": ", features not scaled"}
    text += scaled.get(protocol.scale, "")
    text += ", response scaled, too (--protocol paper)" if protocol.name == "paper" else ""
    return text + ("" if protocol.intercept else ", no intercept")


def _constraint_lines(found: dict[str, Any] | None) -> Iterator[str]:
    """Yield a line for every kind of constraint that :func:`constraints` gives."""
    if found is None:
        return
    bounds = found["bounds"].items()
    for what, texts in (
        ("in every model", found["include"]),
        ("in no model", found["exclude"]),
        (
            "columns that enter together and count once",
            [f"{name} ({len(group)} columns)" for name, group in found["groups"].items()],
        ),
        (
            "coefficients that are not negative",
            [name for name, ends in bounds if ends == [0.0, None]],
        ),
        (
            "bounds",
            [
                f"{name} in [{'−∞' if low is None else f'{low:g}'}, "
                f"{'∞' if high is None else f'{high:g}'}]"
                for name, (low, high) in bounds
                if (low, high) != (0.0, None)
            ],
        ),
    ):
        if texts:
            yield f"{what}: {listed(texts, MAX_CHARACTERS)}"


def _errors(result: Result, surface: CVResult, choice: Choice) -> Iterator[Fact]:
    """Yield the choice's CV error, its root, and R²."""
    folds, (spread, exact) = surface.folds, choice.spread(surface)
    kind = "leave-one-out" if folds.leave_one_out else counted(folds.k, "fold")
    meaning = f"mean squared held-out error, {kind}. It compares models and chose among them: "
    meaning += "expect more on new data."
    settled = result.expected is not None or choice.size_given or not result.ended.nests
    meaning += "" if settled else " --nested, or nested=True, tells how much."
    yield Fact("CV error", f"{number(choice.cv_error, exact)} ± {number(spread)} (s.e.)", meaning)
    known = bounds_text(choice.lower, choice.cv_error, choice.upper)
    if choice.is_pair and not exact and known:
        yield Fact("", "", f"proved bounds of this CV error: {known}")
    root = number(float(np.sqrt(choice.cv_error)), exact)
    yield Fact("RMSE", root, f"the square root of the CV error, in {_units_of_errors(result)}")
    if not np.isnan(r2 := result.r_squared(choice.cv_error)):
        worse = "" if r2 > 0.0 else "; the mean alone predicts as well"
        formula = f"1 − CV error / variance of {result.target} about its mean{worse}"
        yield Fact("R²", f"{'' if exact else '≈'}{r2:.3f}", formula)


def _units_of_errors(result: Result) -> str:
    """The units of held-out errors, which are those of the response that is fitted."""
    protocol = result.design.protocol
    if protocol.name != "paper":
        return f"the units of {result.target}"
    if protocol.scale == "unit-norm":
        return f"lengths of {result.target} about its mean"
    return f"standard deviations of {result.target}"


def _expected(found: NestedError) -> Fact:
    """The error to expect on new data."""
    figure = f"{number(found.error)} ± {number(found.std_error)} (s.e.)"
    meaning = "the error to expect on new data: the whole procedure, choice included, "
    return Fact("to quote", figure, meaning + f"held out in {found.folds} outer folds")


def _sure(result: Result, surface: CVResult, choice: Choice) -> Iterator[Fact]:
    """Yield what is proved of the choice, of a range of γ, and of the model's columns."""
    span = surface.minimum
    tolerance, pairs = surface.tolerance, "no pair (τ, γ) "
    pairs += "that was tried" if surface.trace else "of the grid"
    if span is not None:
        tolerance = span.tolerance
        pairs = f"no τ and no γ from {span.span.low:g} to {span.span.high:g}"
        yield from _range(span)
    within = f" by more than {100 * tolerance:g} %" if tolerance else ""
    nearer = f"no other {counted(choice.tau)} predict{'s' if choice.tau == 1 else ''} more like "
    nearer += f"the average{result.within}; every subset in the average is the best of its size"
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
    known = f"{span.lower:.9g} ≤ least CV error ≤ {span.upper:.9g}"
    yield Fact("bounds", "", f"{known}, by a search of {span.seconds:.2g} s")
    if span.status is Status.UNPROVED:
        text = "rounding allows no closer bounds: errors of this size cannot be told apart"
        yield Fact("", "", text)
    taus = np.unique(span.left[:, 0])
    for tau in taus[:MAX_SHOWN_RANGES]:
        cells = span.left[span.left[:, 0] == tau, 1:]
        some = ", ".join(f"[{low:.4g}, {high:.4g}]" for low, high in cells[:MAX_SHOWN_RANGES])
        more = ", …" if len(cells) > MAX_SHOWN_RANGES else ""
        yield Fact("", "", f"not excluded: τ = {tau:g}, γ in {some}{more}")
    if taus.size > MAX_SHOWN_RANGES:
        yield Fact("", "", f"nor are ranges of γ for {taus.size - MAX_SHOWN_RANGES} more τ")


def _best_of_size(result: Result) -> Fact:
    """Whether the model's features are proved to fit all rows best."""
    model, tau, within = result.model, result.model.tau, result.within
    if result.criterion is not None:
        less = f"a smaller {result.criterion.upper()}"
        if model.proved:
            return Fact("proved", "", f"no other set of features has {less}{within}")
        return Fact("≈", "", f"not proved: another set of features may have {less}")
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
        SectionColumn("column", result.called(columns), "words"),
        SectionColumn("coefficient", model.coef[columns]),
        SectionColumn("× s.d.", effects),
        SectionColumn("standardised", effects / spread),
        SectionColumn("size of effect", np.abs(effects) / most, "bar"),
    ]
    sentences = (
        f"The intercept is {number(model.intercept)}. “× s.d.” is the change of {result.target} "
        "when the column grows by one standard deviation; “standardised” is the same in standard "
        f"deviations of {result.target}.",
    )
    title = "The model, fitted to all rows"
    return Section(title, table=SectionTable(table, what="columns"), sentences=sentences, main=True)
