"""The sections below the answer: every size, other choices, other subsets, criteria, the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..cv.results import Array, CVResult, bounds_text
from ..design.folds import Folds
from ..selection.alternatives import selected_by_folds
from ..selection.choice import Choice
from ..selection.projection import Projection
from ..selection.rules import RULES
from ..selection.sizes import SizeModels, changes, gamma_positions
from ..selection.study import Study
from ..solvers.core.plan import TREE_ONLY
from .answer import answer
from .sections import Column, Fact, Result, Section, Table, errors, filled, number, percent
from .size_path import draw_errors
from .style import in_style, new_figure

# A subset counts as good if the CV error of its size exceeds the least of all sizes by at most this
# share, and its own that of the best subset of its size. The number is a choice.
GOOD = 0.02
WORDS = (
    Fact("τ", "", "the largest number of features that a model may have"),
    Fact("γ", "", "the ridge weight: a penalty (γ/2)‖β‖² that shrinks the coefficients"),
    Fact("proved", "", "a search has ruled out every other set of features"),
    Fact("≈", "", "an estimate, not proved: another set of features may change it"),
)


def sections(result: Result, *, whole: bool = False, page: bool = False) -> Iterator[Section]:
    """Yield all sections of a result.

    whole: With the steps of the search, with the table of all pairs (τ, γ) however large it is, and
        with other subsets of every size.
    page: With what only a page has: lasso and ridge on the same folds, and what folds select.
    """
    study, choice, found = result.study, result.choice, result.answers
    yield from answer(result)
    sizes = None if result.sizes is None else result.sizes()
    if sizes is not None:
        peers = _peers(study, sizes) if page and study is not None else {}
        yield _every_size(result, sizes, peers)
        if peers and choice is not None:
            yield _other_methods(result, choice, sizes, peers)
    if len(result.choices) > 1:
        yield _choices(result)
    if study is not None:
        surface = study.surface
        # The screen shows the table of all pairs (τ, γ) unasked up to this many pairs. The number
        # is a choice: so many pairs of six digits take about forty lines.
        few = surface.taus.size * len(surface.gammas) <= 360 and not surface.trace
        if len(surface.gammas) > 1 and (whole or few):
            yield _pairs(surface)
        if surface.trace and whole:
            yield _search(surface)
    if "criteria_" in found:
        yield _criteria(found["criteria_"], result.tau)
    if "forward_steps_" in found:
        yield _forward_steps(result, found["forward_steps_"])
    if "alternatives_" in found:
        yield _alternatives(result, found["alternatives_"], None if whole else result.tau)
    if "column_table" in found:
        yield _in_good_subsets(result, found["column_table"])
    if page and study is not None:
        yield _selected_by_folds(result, study)
    proved = result.model.proved
    if study is not None and choice is not None:
        proved = proved and choice.certified and study.surface.complete
    yield Section("", facts=WORDS[:-1] if proved else WORDS, sentences=list(_work(result)))


def _work(result: Result) -> Iterator[str]:
    """Yield sentences on the sizes that were left out, on the end of the grid, and on the work."""
    study, p = result.study, result.design.p
    if study is not None:
        if not study.sizes_named and study.sizes[-1] < p and p > TREE_ONLY:
            yield (
                f"Sizes up to {study.sizes[-1]} of {p} were tried, as far as larger ones may be "
                "worth it; --tau, or taus, names others."
            )
        if study.surface.edge:
            yield study.surface.edge
    if result.work:
        yield result.work


def _peers(study: Study, sizes: SizeModels) -> dict[str, Array]:
    """CV errors of lasso and ridge at every size, on the same folds."""
    from .peers import linear_peers

    every: list[Folds] = [study.data.folds]
    return linear_peers(study.data, every, sizes.tau)


def _every_size(result: Result, sizes: SizeModels, peers: dict[str, Array]) -> Section:
    """The section of all sizes: CV errors or objectives, what is proved, and what changes."""
    study, choice, t = result.study, result.choice, result.chosen(sizes)
    proved, sentences = [model.proved for model in sizes.models], []
    columns = [
        Column("features", list(map(str, sizes.tau))),
        Column("γ", [f"{gamma:.4g}" for gamma in sizes.gamma]),
    ]
    if study is None or choice is None:
        objectives = [model.objective for model in sizes.models]
        columns.append(Column("objective", errors(objectives, proved)))
    else:
        columns += _held_out(result, study, choice, sizes, t)
        if choice.projection is not None and sizes.distance is not None:
            sentences.append(_aim(choice.projection, sizes.distance))
    supports = [np.empty(0, dtype=np.intp), *(model.support for model in sizes.models)]
    steps = [changes(*pair, result.names) for pair in pairwise(supports)]
    columns.append(Column("what changes", [" ".join(step) for step in steps], "words"))
    if all(proved):
        sentences.append("No other set of as many columns fits all rows better at its γ.")
    else:
        words = ["yes" if one else "no" for one in proved]
        columns.insert(-1, Column("columns proved", words, "words"))
    picture = None if study is None else partial(_picture, sizes, t, peers)
    table = Table(filled(*columns), t, "sizes")
    return Section("Every size", table=table, sentences=sentences, picture=picture)


def _held_out(
    result: Result, study: Study, choice: Choice, sizes: SizeModels, t: int | None
) -> Iterator[Column]:
    """Yield what folds say of every size: CV errors, R², distances or bounds, and marks.

    t: Position of the chosen size.
    """
    surface, found = study.surface, choice.projection
    marks, known = [""] * sizes.tau.size, [""] * sizes.tau.size
    if found is not None:
        exact = [found.proved] * sizes.tau.size
    else:
        best, at = surface.best(), (gamma_positions(study, choice), np.arange(sizes.tau.size))
        exact = surface.table("exact")[at].tolist()
        ends = zip(*(surface.table(n)[at] for n in ("lower", "cv_error", "upper")), strict=True)
        known = ["" if e else bounds_text(*b) for e, b in zip(exact, ends, strict=True)]
        marks[int(np.flatnonzero(surface.taus == best.one_se)[0])] = "1 s.e."
        marks[best.tau_index] = "least"
    if t is not None:
        marks[t] = "chosen"
    yield Column("CV error", errors(sizes.cv_error, exact))
    yield Column("± s.e.", [number(error) for error in sizes.std_error])
    if found is None or sizes.distance is None:
        r2 = [result.r_squared(error) for error in sizes.cv_error]
        yield Column("R²", ["" if one is None else f"{one:.3f}" for one in r2])
    else:
        yield Column("distance", [percent(one) for one in _shares(found, sizes.distance)])
    yield Column("bounds", known)
    yield Column("", marks, "words")


def _shares(found: Projection, distance: Array) -> Array:
    """Distances to the average over the average's CV error."""
    nothing = np.zeros(distance.size)
    return distance / found.reference if found.reference > 0.0 else nothing


def _aim(found: Projection, distance: Array) -> str:
    """What the distance is, and why the chosen size is chosen."""
    most = found.max_share[found.chosen]
    aim = f"the fewest features that stay within {percent(most)} of that"
    if _shares(found, distance)[found.chosen] > most:
        aim = "the size that comes closest"
    return (
        f"The average of all models has CV error {number(found.reference, found.proved)} ± "
        f"{number(found.reference_std)}; a model of fewer features is at a distance from it, the "
        f"mean squared difference of their predictions on held-out rows. Chosen: {aim}."
    )


@in_style
def _picture(sizes: SizeModels, chosen: int | None, peers: dict[str, Array]) -> tuple[Any, str]:
    """The CV error of every size, with ridge and lasso on the same folds."""
    figure, ((axes,),) = new_figure(figsize=(5.6, 3.6))
    draw_errors(axes, sizes, chosen, peers)
    return figure, "CV error against the number of columns; the star marks the chosen size."


def _other_methods(
    result: Result, choice: Choice, sizes: SizeModels, peers: dict[str, Array]
) -> Section:
    """The section of ridge and lasso on the same folds."""
    t, lasso, ridge = result.chosen(sizes), peers["lasso"], peers["ridge"]
    least = int(np.argmin(lasso))
    rows = [
        ("this model", str(result.model.support.size), choice.cv_error),
        ("lasso, its best penalty", f"≤ {sizes.tau[least]}", lasso[least]),
        ("ridge, its best penalty", str(result.design.p), ridge[0]),
    ]
    if t is not None:
        rows.insert(1, ("lasso, at most as many columns", str(sizes.tau[t]), lasso[t]))
    methods, sizes_of, held_out = zip(*rows, strict=True)
    sentences = (
        "All are held out on the same folds, and each penalty is the best of its path, so all "
        "four errors have been chosen by these folds. Lasso and ridge are scikit-learn's.",
    )
    columns = [
        Column("method", methods, "words"),
        Column("columns", sizes_of),
        Column("CV error", [number(error) for error in held_out]),
    ]
    title = "Ridge and lasso on the same folds"
    return Section(title, table=Table(columns, 0), sentences=sentences)


def _choices(result: Result) -> Section:
    """What each rule chooses, with the value of the criterion that a rule minimises.

    An average of models has no γ of its own, and its cell is empty.
    """
    names, every, aims = list(result.choices), list(result.choices.values()), []
    for name, choice in result.choices.items():
        aim = RULES[name].aim
        if choice.is_pair and name != "one-se" and np.isfinite(choice.criterion):
            aim += f": {number(choice.criterion)}"
        if choice.lambda_ is not None:
            aim += f" at λ = {choice.lambda_:.3g}"
        aims.append(aim + ("" if choice.certified else ", not proved"))
    columns = [
        Column("rule", names, "words"),
        Column("τ", [str(choice.tau) for choice in every]),
        Column("γ", [number(choice.gamma) for choice in every]),
        Column("CV error", [number(one.cv_error, _is_exact(one)) for one in every]),
        Column("what the rule looks for", aims, "words"),
    ]
    chosen = names.index(result.choice.rule) if result.choice is not None else None
    return Section("What each rule chooses", table=Table(columns, chosen, "rules"))


def _is_exact(choice: Choice) -> bool:
    """Whether the CV error of a choice is exact; that of an average always is."""
    if choice.projection is not None:
        return choice.projection.proved
    return choice.weights is not None or choice.lower == choice.upper


def _pairs(surface: CVResult) -> Section:
    """The CV error of every pair (τ, γ)."""
    columns = [Column("τ", list(map(str, surface.taus)))]
    for one in surface.by_gamma:
        columns.append(Column(f"γ={one.gamma:.4g}", errors(one.cv_error, one.exact)))
    return Section("CV error at every τ and γ", table=Table(columns, what="sizes"))


def _search(surface: CVResult) -> Section:
    """The iterations of the alternating minimisation over τ and γ."""
    steps = surface.trace
    columns = [
        Column("γ", [number(step.gamma) for step in steps]),
        Column("τ", [str(step.tau) for step in steps]),
        Column("CV error", [number(step.cv_error, step.certified) for step in steps]),
        Column("next γ", [number(step.next_gamma) for step in steps]),
        Column("for τ", [str(step.next_tau) for step in steps]),
        Column("predicted", [number(step.predicted) for step in steps]),
    ]
    title = "Search of γ: the best τ at γ, then the best γ for those features"
    return Section(title, table=Table(columns), sentences=(f"Ended: {surface.ended}.",))


def _criteria(found: Mapping[str, Any], tau: int) -> Section:
    """Criteria of the subset of every size, with a star at the least of each."""
    heads = {"cv_error": "CV error", "aic": "AIC", "bic": "BIC", "ebic": "EBIC", "cp": "Cp"}
    columns = [Column("features", list(map(str, found["tau"])))]
    for name in [name for name in heads if name in found]:
        least = np.nanmin(found[name]) if np.isfinite(found[name]).any() else np.nan
        cells = [number(value) + ("*" if value == least else "") for value in found[name]]
        columns.append(Column(heads[name], cells))
    chosen = int(np.searchsorted(found["tau"], tau))
    sentences = (
        "AIC, BIC (as R's lm), EBIC and Cp (as leaps) of a least-squares fit on the features of "
        "each size; a star marks the least. They do not know that the features were searched for, "
        "and are too small.",
    )
    table = Table(columns, chosen if chosen < len(found["tau"]) else None, "sizes")
    return Section("Criteria by number of features", table=table, sentences=sentences)


def _forward_steps(result: Result, found: Mapping[str, Any]) -> Section:
    """Forward steps against the best subset of every size."""
    above = [percent(excess) if excess != 0.0 else "" for excess in found["excess"]]
    columns = [
        Column("features", list(map(str, found["tau"]))),
        Column("best", errors(found["best"], found["proved"])),
        Column("forward", [number(value) for value in found["objective"]]),
        Column("above", above),
        Column("missed", [result.called(missed) for missed in found["missed"]], "words"),
    ]
    title = "Forward steps against the best subset, by training objective"
    return Section(title, table=Table(columns, what="sizes"))


def _alternatives(result: Result, found: Mapping[str, Any], tau: int | None) -> Section:
    """The best subsets of one size, or of every size, by training objective."""
    at = np.flatnonzero(found["tau"] == tau)
    at = at if at.size else np.arange(found["tau"].size)
    shown = {name: [values[i] for i in at] for name, values in found.items()}
    columns = filled(
        Column("features", list(map(str, shown["tau"]))),
        Column("rank", list(map(str, shown["rank"]))),
        Column("objective", errors(shown["objective"], shown["proved"])),
        Column("CV error", [number(error) for error in shown["cv_error"]]),
        Column("± s.e.", [number(error) for error in shown["std_error"]]),
        Column("columns", [result.called(columns) for columns in shown["columns"]], "words"),
    )
    sentences = []
    if not all(shown["proved"]):
        sentences.append("≈: the search ended before this rank was proved.")
    if np.isfinite(shown["cv_error"]).any():
        sentences.append(
            "Every fold fits the same features, which all rows have chosen: these CV errors are "
            "mostly lower than those of a size, whose folds choose features of their own, and are "
            "not to be quoted."
        )
    title = "Alternatives: the best subsets, by training objective"
    return Section(title, table=Table(columns, what="subsets"), sentences=sentences)


def _in_good_subsets(result: Result, found: Mapping[str, Any]) -> Section:
    """How often each column is in a good subset, and how often folds select it."""
    order = np.lexsort((-found["in_folds"], -found["in_good"]))
    names = [result.names[c] for c in found["column"][order]]
    columns = [
        Column("column", names, "words"),
        Column("in good subsets", [f"{100.0 * share:.0f} %" for share in found["in_good"][order]]),
        Column("in folds", [f"{100.0 * share:.0f} %" for share in found["in_folds"][order]]),
    ]
    sentences = (
        f"Shares of the {found['n_good']} subsets within {percent(GOOD)} of the best CV errors, "
        f"and of {found['n_folds']} models of folds. They describe this table and these folds. "
        "They are no probabilities: neither that a column matters, nor what other data would "
        "select. Columns that stand in for each other share their counts.",
    )
    table = Table(columns, what="columns")
    return Section("Columns of good subsets", table=table, sentences=sentences)


def _selected_by_folds(result: Result, study: Study) -> Section:
    """How often folds select a column, over the partitions that were evaluated."""
    every: list[CVResult] = [study.surface, *vars(study).get("others", [])]
    counts, n_folds = selected_by_folds(study, every)
    own = set(result.model.support.tolist())
    ranked = np.argsort(-counts, kind="stable").tolist()
    # A page shows at most this many columns in the table of what folds select. The number is a
    # choice.
    shown = [c for c in ranked if counts[c] > 0.0 or c in own][:24]
    shares = [float(counts[c] / n_folds) for c in shown]
    columns = [
        Column("column", [result.names[c] for c in shown], "words"),
        Column("in the model", ["yes" if c in own else "" for c in shown], "words"),
        Column("selected by", [f"{100 * share:.0f} %" for share in shares]),
        Column("share of folds", shares, "bar"),
    ]
    parts = f"{len(every)} partition{'s' * (len(every) > 1)} of the rows into folds"
    sentences = (
        f"How many of {n_folds} folds ({parts}) select a column in their model of least CV error. "
        "These shares describe these rows and folds; they are no probabilities that a column "
        "matters.",
    )
    table = Table(columns, what="columns")
    return Section("How stable the columns are", table=table, sentences=sentences)
