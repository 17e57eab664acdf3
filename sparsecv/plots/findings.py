"""What a report says of a model: its columns, the error to expect, how sure it is, other models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..cv.results import CVResult, bounds_text
from ..design.design import Array, Design
from ..design.model import FittedModel
from ..selection.alternatives import selected_by_folds
from ..selection.choice import Choice
from ..selection.nested import NestedError
from ..selection.rules import RULES, rule_reason
from ..selection.sizes import SizeModels, changes
from ..selection.study import Study
from . import page
from .projected_sizes import linear_peers
from .size_path import draw_errors
from .style import in_style, new_figure

# A table of more rows shows this many of them around the chosen row, and all rows when it is
# unfolded.
MAX_ROWS = 24


@dataclass
class Findings:
    """What a report is made from.

    names: Names of all columns; ``design.kept`` of them vary.
    n: Number of rows, or the sum of their weights.
    gamma: The ridge weight of the model; NaN for an average of models.
    sizes: The model of every size; None where these models are not known.
    expected: The error to expect on new data, where it was computed.
    alternatives: The n best subsets of every size, where they were asked for.
    remarks: Sentences on the rows, such as which are never held out.
    """

    title: str
    names: list[str]
    target: str
    n: float
    design: Design
    model: FittedModel
    gamma: float
    sizes: SizeModels | None
    study: Study | None = None
    choice: Choice | None = None
    expected: NestedError | None = None
    alternatives: dict[str, Any] | None = None
    remarks: tuple[str, ...] = ()

    @property
    def chosen(self) -> int | None:
        """Position of the model's size among all sizes; None where it has no place there."""
        average = self.choice is not None and self.choice.weights is not None
        if average or self.sizes is None:
            return None
        tau = self.choice.tau if self.choice is not None else int(self.sizes.tau[-1])
        at = np.flatnonzero(self.sizes.tau == tau)
        return int(at[0]) if at.size else None

    def effects(self) -> Array:
        """Coefficients of the model's support times the standard deviations of their columns."""
        return np.asarray((self.model.coef * self.design.raw_spread)[self.model.support])

    def called(self, columns: NDArray[np.intp]) -> str:
        """The names of some columns, with commas between."""
        return ", ".join(self.names[c] for c in columns)


def number(value: float, exact: bool = True) -> str:
    """A number with five significant digits, after ≈ where it is an estimate; empty for NaN.

    Numbers of five to nine digits are whole and have no exponent: 106,781 and not 1.0678e+05.
    """
    form = ",.0f" if 9_999.5 <= abs(value) < 1e9 else ".5g"
    return "" if np.isnan(value) else ("" if exact else "≈ ") + f"{value + 0.0:{form}}"


def whole_report(found: Findings) -> str:
    """The page of a whole report."""
    return page.whole_page(found.title, short(found) + "\n" + "\n".join(_rest(found)))


def short(found: Findings) -> str:
    """The beginning of a report, which notebooks show: the model, its error, and how sure it is."""
    parts = [f"<h1>{escape(found.title)}</h1>", page.paragraph(_lead(found))]
    parts += [page.paragraph(text, "muted") for text in found.remarks]
    parts += [_model(found), _errors(found), _sure(found)]
    return "\n".join(part for part in parts if part)


def _lead(found: Findings) -> str:
    """One sentence on the table, the folds and the rule."""
    tau, p = found.model.support.size, found.design.p
    text = f"{tau} of {p} columns predict {found.target}, from {found.n:g} rows"
    if found.study is None or found.choice is None:
        return f"{text}, at ridge weight γ = {number(found.gamma)}. The size and γ were given."
    study, folds = found.study, found.study.data.folds
    kind = "leave-one-out" if folds.leave_one_out else f"{folds.k} folds"
    why = rule_reason(study.rule_asked, study.data, study.settings)
    aim = RULES[study.rule].aim
    return f"{text} ({kind}). Rule {study.rule} ({why}) looks for {aim}."


def _model(found: Findings) -> str:
    """The section of the model's columns and coefficients."""
    effects, spread = found.effects(), float(found.design.spread[-1])
    most = float(np.abs(effects).max(initial=0.0)) or 1.0
    rows = []
    for i in np.argsort(-np.abs(effects), kind="stable"):
        column = found.model.support[i]
        beta = number(effects[i] / spread if spread > 0.0 else np.nan)
        cells = found.names[column], number(found.model.coef[column]), number(effects[i]), beta
        rows.append((*cells, page.bar(abs(effects[i]) / most)))
    heads = ("column", "coefficient", "per s.d.", "standardised", "size of effect")
    words = (
        f"The coefficient is in the table's units. “Per s.d.” is the change of {found.target} "
        "when the column grows by one standard deviation; “standardised” is the same in standard "
        f"deviations of {found.target}. The intercept is {number(found.model.intercept)}."
    )
    table = page.table(heads, rows, left=("column", "size of effect"))
    return page.section("The model", table, page.paragraph(words, "muted"))


def _errors(found: Findings) -> str:
    """The section of the error to expect; empty where nothing was held out."""
    study, choice, expected = found.study, found.choice, found.expected
    if study is None or choice is None:
        return ""
    spread, exact = _spread(found)
    variance = (float(found.design.spread[-1]) / found.design.y_scale) ** 2
    boxes = []
    if expected is not None:
        figure = f"{number(expected.error)} ± {number(expected.std_error)}"
        meaning = (
            f"The figure to quote. The whole procedure, choice included, was held out in "
            f"{expected.folds} outer folds; ± is a standard error."
        )
        boxes.append(("error to expect on new data", figure, meaning))
    figure = f"{number(choice.cv_error, exact)} ± {number(spread)}"
    best = study.surface.best()
    is_least = (best.tau, best.gamma) == (choice.tau, choice.gamma)
    least = ", the least of every (τ, γ) tried" if is_least else ""
    meaning = f"Mean squared held-out error of the chosen model{least}."
    if expected is None:
        meaning += (
            " It served to choose the model, so expect more on new data. The figure to quote was "
            "not computed: nested=True, or --nested, computes it."
        )
    boxes.append(("CV error of the choice", figure, meaning))
    error = expected.error if expected is not None else choice.cv_error
    rmse = f"{number(np.sqrt(error), exact)}"
    what = "root of the error to expect" if expected is not None else "root of the CV error"
    boxes.append((what, rmse, f"In the units of {found.target}."))
    if variance > 0.0:
        share = f"{'' if exact else '≈ '}{1.0 - error / variance:.3f}"
        of = "the error to expect" if expected is not None else "the CV error"
        boxes.append(("R²", share, f"1 − {of} / variance of {found.target} about its mean."))
    if not is_least:
        figure = number(
            best.cv_error, bool(study.surface.table("exact")[best.gamma_index, best.tau_index])
        )
        meaning = f"Of every (τ, γ) tried; at τ = {best.tau}, γ = {number(best.gamma)}."
        boxes.append(("least CV error found", figure, meaning))
    title = "The error to expect" if expected is not None else "The error on held-out rows"
    return page.section(title, page.cards(boxes))


def _spread(found: Findings) -> tuple[float, bool]:
    """The standard error of the choice's CV error, and whether that error is exact."""
    study, choice = found.study, found.choice
    assert study is not None
    assert choice is not None
    if choice.weights is not None:
        return study.average_error[1], choice.certified
    if (own := choice.projection) is not None:
        return float(own.of_size(own.std_error)[own.chosen]), own.proved
    one = study.surface.by_gamma[choice.gamma_index]
    return float(one.std_error[choice.tau_index]), bool(one.exact[choice.tau_index])


def _sure(found: Findings) -> str:
    """The section on what is proved."""
    model, texts = found.model, []
    within = "" if found.design.rules is None else ", within the constraints asked for"
    if np.isnan(model.objective):
        texts.append("The model is an average of models; it minimises no training objective.")
    elif model.proved:
        texts.append(
            f"Proved: no other {model.support.size} columns fit all rows better at this γ{within}."
        )
    else:
        most = f", by at most {100 * model.gap:.2g} % of the training objective"
        most = most if model.shows_gap else ""
        texts.append(f"Not proved: other columns may fit all rows better{most}{within}.")
    study, choice = found.study, found.choice
    if study is not None and choice is not None:
        best = study.surface.best()
        if choice.certified:
            texts.append(
                "Proved: every fold was solved, or bounded, to proof where it matters for the "
                "choice; no evaluated pair (τ, γ) is better by this rule."
            )
        else:
            texts.append(
                "Not proved: some CV errors are estimates (≈); with all of them proved another "
                "model might be chosen."
            )
        least = "the least CV error over everything searched"
        if best.certified:
            texts.append(f"Proved: {least} is {number(best.cv_error)}.")
        elif known := bounds_text(best.lower_bound, best.cv_error, best.upper):
            texts.append(f"Proved bounds of {least}: {known}.")
        if study.surface.complete:
            texts.append("Every CV error of the search is exact.")
    return page.section("How sure", *map(page.paragraph, texts))


def _rest(found: Findings) -> Iterator[str]:
    """Yield the sections that follow the short report."""
    if found.sizes is not None:
        peers = _peers(found, found.sizes)
        yield _every_size(found, found.sizes, peers)
        if peers:
            yield _other_methods(found, found.sizes, peers)
    if found.alternatives is not None:
        yield _alternatives(found)
    if found.study is not None:
        yield _stability(found, found.study)
    words = f"sparsecv {__version__}. ≈ marks an estimate that no search has proved."
    yield page.paragraph(words, "muted")


def _peers(found: Findings, sizes: SizeModels) -> dict[str, Array]:
    """CV errors of lasso and ridge at every size, on the same folds."""
    if found.study is None:
        return {}
    folds = found.study.data.folds
    return linear_peers(found.study.data, [folds], sizes.tau)


def _every_size(found: Findings, sizes: SizeModels, peers: dict[str, Array]) -> str:
    """The section of all sizes: a picture, and a table."""
    t = found.chosen
    held_out = found.study is not None
    rows, before = [], sizes.models[0].support
    for i, model in enumerate(sizes.models):
        change = ", ".join(changes(before, model.support, found.names))
        if i == 0:
            change = found.called(model.support)
        before = model.support
        error = f"{number(sizes.cv_error[i])} ± {number(sizes.std_error[i])}"
        middle = (number(sizes.gamma[i]), error) if held_out else (number(model.objective),)
        rows.append((str(sizes.tau[i]), *middle, "yes" if model.proved else "no", change))
    names = ("γ", "CV error ± s.e.") if held_out else ("objective",)
    heads = ("columns", *names, "proved", "what changes")
    parts = [_picture(found, sizes, peers)] if held_out else []
    centre = 0 if t is None else t
    start = max(0, min(centre - MAX_ROWS // 2, len(rows) - MAX_ROWS))
    shown = rows[start : start + MAX_ROWS]
    chosen = None if t is None else t - start
    parts.append(page.table(heads, shown, left=("what changes",), chosen=chosen))
    if len(rows) > len(shown):
        every = page.table(heads, rows, left=("what changes",), chosen=t)
        parts.append(f"<details><summary>All {len(rows)} sizes</summary>{every}</details>")
    words = (
        "“Proved” says that no other set of this many columns fits all rows better at this γ. "
        "“What changes” compares a size with the size before."
    )
    return page.section("Every size", *parts, page.paragraph(words, "muted"))


@in_style
def _picture(found: Findings, sizes: SizeModels, peers: dict[str, Array]) -> str:
    """The CV error of every size, with ridge and lasso on the same folds."""
    figure, ((axes,),) = new_figure(figsize=(5.6, 3.6))
    draw_errors(axes, sizes, found.chosen, peers)
    words = "CV error against the number of columns; the star marks the chosen size."
    return page.picture(figure, 1, words)


def _other_methods(found: Findings, sizes: SizeModels, peers: dict[str, Array]) -> str:
    """The section of ridge and lasso on the same folds."""
    assert found.choice is not None
    t, lasso, ridge = found.chosen, peers["lasso"], peers["ridge"]
    least = int(np.argmin(lasso))
    rows = [("this model", str(found.model.support.size), number(found.choice.cv_error))]
    if t is not None:
        rows.append(("lasso, at most as many columns", str(sizes.tau[t]), number(lasso[t])))
    rows.append(("lasso, its best penalty", f"≤ {sizes.tau[least]}", number(lasso[least])))
    rows.append(("ridge, its best penalty", str(found.design.p), number(ridge[0])))
    words = (
        "All are held out on the same folds, and each penalty is the best of its path, so all "
        "four errors have been chosen by these folds. Lasso and ridge are scikit-learn's."
    )
    table = page.table(("method", "columns", "CV error"), rows, left=("method",), chosen=0)
    return page.section("Ridge and lasso on the same folds", table, page.paragraph(words, "muted"))


def _alternatives(found: Findings) -> str:
    """The section of other subsets of the chosen size."""
    other, t = found.alternatives, found.chosen
    assert other is not None
    tau = int(other["tau"][-1])
    if found.sizes is not None and t is not None:
        tau = int(found.sizes.tau[t])
    at = np.flatnonzero(other["tau"] == tau)
    best, rows = other["columns"][at[0]], []
    for i in at:
        own = other["columns"][i]
        text = ", ".join(changes(best, own, found.names)) or found.called(own)
        error = number(other["cv_error"][i])
        proved = "yes" if other["proved"][i] else "no"
        rows.append((str(other["rank"][i]), number(other["objective"][i]), error, proved, text))
    heads = ("rank", "training objective", "CV error", "proved", "columns, against the best")
    words = (
        f"The best {len(at)} sets of {tau} columns, in order of their training objective. They are "
        "close to each other where columns stand in for one another. Their CV errors are those of "
        "given columns, which were found with all rows, the held-out ones too: they are mostly too "
        "small, and are not to be quoted."
    )
    table = page.table(heads, rows, left=heads[-1:])
    return page.section("Alternatives", table, page.paragraph(words, "muted"))


def _stability(found: Findings, study: Study) -> str:
    """The section of how often folds select a column, over the partitions that were evaluated."""
    every: list[CVResult] = [study.surface, *vars(study).get("others", [])]
    counts, n_folds = selected_by_folds(study, every)
    own = set(found.model.support.tolist())
    ranked = np.argsort(-counts, kind="stable").tolist()
    order = [c for c in ranked if counts[c] > 0.0 or c in own][:MAX_ROWS]
    rows = [
        (
            found.names[c],
            "yes" if c in own else "",
            f"{100 * counts[c] / n_folds:.0f} %",
            page.bar(counts[c] / n_folds),
        )
        for c in order
    ]
    parts = f"{len(every)} partition{'s' * (len(every) > 1)} of the rows into folds"
    words = (
        f"How many of {n_folds} folds ({parts}) select a column in their model of least CV error. "
        "These shares describe these rows and folds; they are no probabilities that a column "
        "matters."
    )
    heads = ("column", "in the model", "selected by", "share of folds")
    table = page.table(heads, rows, left=("column", "share of folds"))
    return page.section("How stable the columns are", table, page.paragraph(words, "muted"))
