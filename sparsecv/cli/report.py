"""Prints the models that ``sparsecv cv`` and ``sparsecv fit`` find, and their coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..cv.minimum import GlobalMinimum
from ..cv.results import bounds_text
from ..design.design import Design
from ..design.fold_models import FoldModels
from ..design.model import FittedModel
from ..design.prepare import Prepared, Standardised
from ..selection.choice import Choice
from ..selection.nested import NestedError, can_nest
from ..selection.rules import RULES, rule_reason
from ..selection.study import Study
from ..solvers.core.result import Status
from .column_options import lines, selectable, within_constraints

# A table of more rows is cut to ROWS_AROUND rows around the choice, unless --table is given. The CV
# errors at every τ and γ (details) are not printed at all where their tables together have more
# rows.
MAX_TABLE_ROWS = 40
# A table that is cut keeps this many rows; twice the value would leave the table uncut.
ROWS_AROUND = MAX_TABLE_ROWS // 2 + 1
# At most this many ranges of γ that cannot be excluded are printed for a τ; --json has all.
MAX_SHOWN_CELLS = 4
ONLY_COMPARES = "It compares models and chose among them: expect more on new data."
SIGNS = (
    ("τ", "the largest number of features that a model may have"),
    ("γ", "the ridge weight: a penalty (γ/2)‖β‖² that shrinks the coefficients"),
    ("proved", "a search has ruled out every other set of features"),
    ("≈", "an estimate, not proved: another set of features may change it"),
)


class Run(NamedTuple):
    """The results of ``sparsecv cv`` that are printed, written as JSON and drawn.

    choices: The choice of every rule that was evaluated, by the rule's name.
    model: The chosen model, fitted to all rows.
    expected: The error to expect on new data, or None where it was not computed.
    interrupted: Ctrl-C came while the error to expect was computed.
    answers: What was asked for besides (:mod:`sparsecv.cli.answers`), under the names of the
        attributes of :class:`~sparsecv.SparseRidgeCV` that hold the same.
    intervals: What the model file keeps for prediction intervals, if it was asked for.
    """

    prepared: Prepared
    study: Study
    choices: dict[str, Choice]
    model: FittedModel
    expected: NestedError | None
    interrupted: bool = False
    answers: Mapping[str, Any] = MappingProxyType({})
    intervals: FoldModels | None = None

    @property
    def choice(self) -> Choice:
        """The choice of the study's own rule."""
        return self.choices[self.study.rule]


def number(value: float, proved: bool = True) -> str:
    """A number with six significant digits, after the sign ≈ where the number is not proved."""
    return ("" if proved else "≈") + f"{value + 0.0:.6g}"  # The sum turns −0 into 0.


def counted(features: int) -> str:
    """A number and the word "feature" or "features"."""
    return f"{features} feature{'' if features == 1 else 's'}"


def make_table(
    heads: Iterable[str],
    rows: Iterable[Sequence[Any]] = (),
    *,
    left: Sequence[str] = (),
    title: str | None = None,
) -> Table:
    """A table whose columns are aligned to the right, except the columns named in ``left``.

    heads: The columns' names.
    rows: The cells of every row: texts, or drawings by rich.
    """
    table = Table(title=title, title_justify="left", title_style="italic")
    for head in heads:
        words = head in left
        side: Any = "left" if words else "right"
        table.add_column(head, justify=side, no_wrap=not words, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def rows_shown(count: int, centre: int, whole: bool) -> range:
    """The positions of the table rows to print: all, or the rows around one of too many rows.

    count: Number of rows of the whole table.
    centre: Position of the row that the printed rows surround.
    whole: The user has asked for all rows.
    """
    if whole or count <= MAX_TABLE_ROWS:
        return range(count)
    start = min(max(centre - ROWS_AROUND // 2, 0), count - ROWS_AROUND)
    return range(start, start + ROWS_AROUND)


def print_table(console: Console, table: Table, count: int, what: str) -> None:
    """Print a table, and how many of the ``count`` rows it lacks; ``what`` names the rows."""
    console.print(table)
    if count > table.row_count:
        console.print(f"… {count - table.row_count} more {what}: --table shows them", style="dim")


def print_data(console: Console, ready: Standardised) -> None:
    """Print a sentence about the table: its rows, features, response and scale."""
    source, protocol = ready.source, ready.design.protocol
    text = f"[bold]{escape(source.name)}[/]: {source.n} rows, {counted(ready.design.p)}"
    text += f", response {escape(source.target_name)}"
    for what, name in (("weights", source.weights_name), ("groups", source.groups_name)):
        text += "" if name is None else f", {what} {escape(name)}"
    scaled = {"unit-norm": ", features scaled to unit length", "none": ", features not scaled"}
    text += scaled.get(protocol.scale, "")
    text += ", response scaled, too (--protocol paper)" if protocol.name == "paper" else ""
    console.print(text + ("" if protocol.intercept else ", no intercept"))
    for line in lines(ready.design, ready.names):
        console.print(f"  {escape(line)}")


def print_answer(console: Console, run: Run) -> None:
    """Print the rule, the model that the rule chooses, the model's errors, and what is proved."""
    study = run.study
    why = rule_reason(study.rule_asked, study.data, study.settings)
    given = f"; size {run.choice.tau} as asked" if run.choice.size_given else ""
    console.print(f"[bold]Rule {study.rule}[/] ({why}): {RULES[study.rule].aim}{given}.")
    print_data(console, run.prepared)
    lines = Table.grid(padding=(0, 2))
    for label, text in _lines(run):
        lines.add_row(f"[bold]{label}[/]", text)
    console.print(lines)


def _lines(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of every line about the choice."""
    choice, expected = run.choice, run.expected
    what = f"{choice.tau} of {selectable(run.prepared.design)}"
    if choice.weights is None:
        what += f" (τ = {choice.tau}), ridge weight γ = {number(choice.gamma)}"
    else:
        what = f"the average of all models, {what}"
    yield "chosen", f"[bold green]{what}[/]"
    settled = expected is not None or choice.size_given or not can_nest(run.study.data)
    yield from _errors(run.prepared, run.study, choice, settled)
    if expected is not None:
        figure = f"[bold]{number(expected.error)}[/] ± {number(expected.std_error)} (s.e.)"
        yield "to quote", f"{figure}, the error to expect on new data: the whole"
        yield "", f"procedure, choice included, held out in {expected.folds} outer folds"
    yield from _proofs(run.study, choice)
    if choice.is_pair:
        yield _best_of_size(run.model, choice.tau, run.prepared.design)


def _errors(
    prepared: Prepared, study: Study, choice: Choice, nested: bool
) -> Iterator[tuple[str, str]]:
    """Yield the lines of the choice's CV error with its bounds, of its RMSE and of its R².

    nested: The error to expect on new data is printed, too, or cannot be asked for.
    """
    folds, target = prepared.folds, escape(prepared.source.target_name)
    kind, known = "leave-one-out" if folds.leave_one_out else f"{folds.k} folds", ""
    if choice.weights is not None:
        spread, exact = study.average_error[1], choice.certified
    elif (found := choice.projection) is not None:
        spread, exact = found.of_size(found.std_error)[found.chosen], found.proved
    else:
        one, t = study.surface.by_gamma[choice.gamma_index], choice.tau_index
        spread, exact = one.std_error[t], bool(one.exact[t])
        known = "" if exact else bounds_text(choice.lower, choice.cv_error, choice.upper)
    error = f"[bold]{number(choice.cv_error, exact)}[/] ± {number(float(spread))} (s.e.)"
    yield "CV error", f"{error}, mean squared held-out error, {kind}"
    yield "", ONLY_COMPARES + ("" if nested else " --nested tells how much.")
    if folds.kind == "time":
        order, held = escape(prepared.source.order_name or ""), int(folds.sizes.sum())
        yield "", f"folds in order of {order} train on earlier rows, hold out later rows;"
        yield "", f"the first {folds.n - held} rows are never held out, the error is of {held} rows"
    if known:
        yield "", f"proved bounds of this CV error: {escape(known)}"
    rmse, r2 = prepared.quality(choice.cv_error)
    yield "RMSE", f"{number(rmse, exact)}, the square root of the CV error"
    if r2 is not None:
        worse = "" if r2 > 0.0 else "; the mean alone predicts as well"
        formula = f"1 − CV error / variance of {target} about its mean{worse}"
        yield "R²", f"{'' if exact else '≈'}{r2:.3f} = {formula}"


def _proofs(study: Study, choice: Choice) -> Iterator[tuple[str, str]]:
    """Yield the line that says whether the choice is proved."""
    result = study.surface
    pairs = "no pair (τ, γ) " + ("that was tried" if result.trace else "of the grid")
    tolerance = result.tolerance
    if (span := result.minimum) is not None:
        tolerance = span.tolerance
        pairs = f"no τ and no γ from {span.low:g} to {span.high:g}"
    within = f" by more than {100 * tolerance:g} %" if tolerance else ""
    proofs = {
        "minimum": f"{pairs} {'have' if span else 'has'} a smaller CV error{within}",
        "one-se": "every CV error that was compared",
        "averaged": "every model and every CV error that is averaged",
        "projected": f"no other {counted(choice.tau)} predict more like the average"
        + within_constraints(study.design),
    }
    if span is not None:
        yield from _range(span)
    if choice.size_given:
        proofs = {"projected": f"no other {counted(choice.tau)} predict more like the average"}
        pairs = f"no γ {'that was tried' if result.trace else 'of the grid'}"
        pairs += f" with τ = {choice.tau}"
    if choice.certified:
        yield "proved", proofs.get(choice.rule, f"{pairs} is better by this rule")
    else:
        best = result.best()
        known = bounds_text(best.lower_bound, best.cv_error, best.upper)
        least = f"; proved bounds of the least CV error: {escape(known)}" if known else ""
        yield "≈", f"not proved: with all CV errors proved another model might be chosen{least}"


def _range(span: GlobalMinimum) -> Iterator[tuple[str, str]]:
    """Yield the lines about the least CV error over a range of γ."""
    seconds = f"{span.seconds:.2g} s"
    yield "bounds", f"{span.lower:.9g} ≤ least CV error ≤ {span.upper:.9g} ({seconds})"
    if span.status is Status.UNPROVED:
        yield "", "rounding allows no closer bounds: errors of this size cannot be told apart"
    for tau in np.unique(span.left[:, 0]):
        cells = span.left[span.left[:, 0] == tau, 1:]
        some = ", ".join(f"[{low:.4g}, {high:.4g}]" for low, high in cells[:MAX_SHOWN_CELLS])
        more = ", …" if len(cells) > MAX_SHOWN_CELLS else ""
        yield "", f"not excluded: τ = {tau:g}, γ in {escape(some)}{more}"


def _best_of_size(model: FittedModel, tau: int, design: Design) -> tuple[str, str]:
    """The label and the text that say whether a model's features are proved the best.

    model: A model of at most ``tau`` features, fitted to all rows.
    """
    within = within_constraints(design)
    if model.proved:
        others = f"{counted(tau)} fit" if tau > 1 else "single feature fits"
        return "proved", f"no other {others} all rows better at this γ{within}"
    most = f", by at most {100 * model.gap:.2g} % of the objective"
    most = most if model.shows_gap else ""
    return "≈", f"not proved: other {counted(tau)} may fit all rows better at this γ{most}"


def print_fit(
    console: Console, ready: Standardised, model: FittedModel, tau: int, gamma: float
) -> None:
    """Print the table, τ, γ and the objective of ``sparsecv fit``, and whether it is proved."""
    print_data(console, ready)
    console.print(f"[bold green]{tau} of {selectable(ready.design)}, γ = {number(gamma)}[/]")
    bound = f" (proved lower bound {number(model.lower_bound)})"
    bound = "" if model.proved or not model.shows_gap else bound
    objective = number(model.objective, model.proved)
    console.print(f"objective ‖y − Xβ‖² + (γ/2)‖β‖² on scaled columns: {objective}{bound}")
    label, text = _best_of_size(model, tau, ready.design)
    console.print(f"[bold]{label}[/]  {text}")


def print_model(
    console: Console, ready: Standardised, model: FittedModel, whole: bool = False
) -> None:
    """Print the coefficients in the table's units, in the order of their effects.

    An effect is a coefficient times the standard deviation of its feature.

    whole: All coefficients are printed, however many there are.
    """
    console.print(
        "\ncoefficients on all rows; × s.d.: the effect of one standard deviation", style="italic"
    )
    effects = ready.effects(model)
    order = np.argsort(-np.abs(effects), kind="stable")
    table = make_table(("feature", "coefficient", "× s.d."), left=("feature",))
    for i in order[rows_shown(order.size, 0, whole)]:
        column = model.support[i]
        name = escape(ready.names[column])
        table.add_row(name, number(model.coef[column]), number(effects[i]))
    print_table(console, table, order.size, "features")
    console.print(f"intercept {number(model.intercept)}")


def print_signs(console: Console, estimates: bool) -> None:
    """Print what the words τ, γ and "proved" mean, and the sign ≈ if it was printed.

    estimates: Whether the sign ≈ was printed.
    """
    for word, meaning in SIGNS if estimates else SIGNS[:-1]:
        console.print(f"[bold]{word:>6}[/]  {meaning}", style="dim")
