"""The first sections of a result: the choice, its error, what is proved, and the coefficients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..cv.results import CVResult, GlobalMinimum, bounds_text, rounded_bound
from ..design.features import Features
from ..design.folds import Index
from ..selection.claims import Claim, Statement, aim_of, of_model
from ..selection.nested import NestedError
from ..selection.result import HeldOut, Result
from ..solvers.core.plan import TREE_ONLY, one_tree_proves
from ..solvers.core.result import Status
from ..tables.coding import MISSING_LEVEL
from .document import constraints
from .sections import (
    Fact,
    Section,
    SectionColumn,
    SectionTable,
    counted,
    listed,
    number,
    percent,
    percent_bound,
    with_error,
)

# A line of names has at most so many characters, about two lines of a screen, and says how many
# more names there are. The number is a choice.
MAX_CHARACTERS = 150
# Of the ranges of γ that cannot be excluded, at most this many are shown for a τ, and for at most
# this many τ; --json has all. The number is a choice.
MAX_SHOWN_RANGES = 4


def answer(result: Result) -> Iterator[Section]:
    """Yield the sections that every report begins with: choice, errors, proofs and coefficients."""
    remarks = [*_constraint_lines(result), *_row_lines(result)]
    facts = [*_chosen(result), Fact("data", meaning=_data(result))]
    yield Section(facts=[*facts, *(Fact(meaning=text) for text in remarks)])
    if result.held_out is None:
        yield Section("How sure", [_model_said(result)])
    else:
        yield Section("The CV error", list(_errors(result, result.held_out)))
        if result.expected is not None:
            yield Section("The error to expect", [_to_quote(result.expected)])
        yield Section("How sure", list(_sure(result, result.held_out)))
    yield _model(result)
    if set(result.features.called(result.model.support)) & set(result.features.several):
        yield _levels(result)


def _chosen(result: Result) -> Iterator[Fact]:
    """Yield the chosen τ and γ, the names of the model's features, and how they were chosen.

    After a cross-validation that is the rule. Where no rows were held out, it is the criterion that
    has chosen the size, if one has, and the training objective: after ≈ and with a lower bound
    where the columns are not proved to be the best.
    """
    model = result.model
    every = counted(result.design.largest_size, result.design.counts)
    weight = f", γ = {number(model.gamma)}" if model.tau > 0 else ""
    yield Fact("chosen", f"τ = {model.tau} of {every}{weight}")
    names = result.features.called(_by_feature(result))
    offset = result.table.source.offset_name
    own = number(model.intercept) + (f" plus {offset}" if offset is not None else "")
    none = f"none: the model predicts {own} for every row"
    yield Fact("columns", meaning=listed(names, MAX_CHARACTERS) if names else none)
    if (held_out := result.held_out) is not None:
        choice = held_out.choice
        how = f"{choice.rule} ({held_out.study.reason}): {aim_of(choice, result.design.counts)}"
        yield Fact("rule", meaning=how)
        return
    if result.criterion is not None:
        yield Fact("size", meaning=f"that of least {result.criterion.upper()}, of all sizes")
    objective = number(model.objective, exact=model.proved)
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
    if result.design.constraints.weighted:
        size = counted(result.design.largest_size, "coefficient")
        own = f"{counted(p, 'column')} of {features} with {size}, which a size counts"
    # ``shown.name`` is that of an estimator. The rows that it was given have no name of their own.
    text = "" if result.shown.name else f"{result.name}: "
    rows = f"{result.design.total:,.2f}".removesuffix(".00")
    text += f"{rows} rows × {own}, response {result.target}"
    scaled = {"unit-norm": ", features scaled to unit length", "none": ", features not scaled"}
    text += scaled.get(protocol.scale, "")
    text += ", response scaled, too (--protocol paper)" if protocol.name == "paper" else ""
    return text + ("" if protocol.intercept else ", no intercept")


def _counting(result: Result) -> str:
    """How the groups of a fit count in its sizes, in words that follow what names them."""
    asked, rules = result.design.asked, result.design.constraints
    if rules.weighted:
        return ", each of which counts its coefficients"
    if asked is not None and asked.in_coefficients and not one_tree_proves(rules):
        return f" and count once: with more than {TREE_ONLY} features sizes count groups"
    return " and count once"


def _constraint_lines(result: Result) -> Iterator[str]:
    """Yield a line for every kind of constraint on columns that the user has asked for."""
    asked = constraints(result.design.asked, result.names)
    if asked is None:
        return
    bounds = asked["bounds"].items()
    together = f"columns that enter together{_counting(result)}"
    for what, texts in (
        ("in every model", asked["include"]),
        ("in no model", asked["exclude"]),
        (together, result.features.several),
        (
            "coefficients that are not negative",
            [name for name, (low, high) in bounds if low == 0.0 and high is None],
        ),
        (
            "bounds",
            [
                f"{name} in [{'−∞' if low is None else f'{low:g}'}, "
                f"{'∞' if high is None else f'{high:g}'}]"
                for name, (low, high) in bounds
                if low != 0.0 or high is not None
            ],
        ),
    ):
        if texts:
            yield f"{what}: {listed(texts, MAX_CHARACTERS)}"


def _row_lines(result: Result) -> Iterator[str]:
    """Yield sentences on the rows: their weights, groups and offsets, and what is missing."""
    source, holes = result.table.source, result.table.holes
    named = {"weights": source.weights_name, "groups": source.groups_name}
    if roles := [f"{what} {name}" for what, name in named.items() if name is not None]:
        yield ", ".join(roles)
    if source.offset_name is not None:
        yield (
            f"{source.offset_name} was taken off {source.target_name}: errors and coefficients are "
            "those of what is left, and predictions add it again."
        )
    if source.rows_left_out:
        # Where missing values are filled, only rows without a response are left out.
        lost = "their response is" if source.missing else "values are"
        were = "was" if source.rows_left_out == 1 else "were"
        rows = counted(source.rows_left_out, "row")
        yield f"{rows} {were} left out, as {lost} missing."
    if holes is None:
        return
    lacking = [
        (int(holes[own].max()), name)
        for name, own in zip(result.features.names, result.features.columns, strict=True)
    ]
    texts = [f"{count:,} in {name}" for count, name in lacking if count]
    if levels := source.coding.with_missing:
        names = listed(levels, MAX_CHARACTERS)
        yield f"Missing values are a level of their own, {MISSING_LEVEL}, of {names}."
    elif not texts:
        yield f"No value is missing; new rows are filled by the {source.missing} of all rows."
    if not texts:
        return
    what = f"by the {source.missing} of all rows"
    if result.held_out is not None:
        what = f"by the {source.missing} of each fold's training rows, and for the model {what}"
    yield f"Missing values were filled {what}: {listed(texts, MAX_CHARACTERS)}."


def _errors(result: Result, held_out: HeldOut) -> Iterator[Fact]:
    """Yield the choice's CV error, its root, and R²; each is after ≈ where it is not proved."""
    choice, folds = held_out.choice, held_out.surface.folds
    std_error, exact = choice.spread(held_out.surface)
    kind = "leave-one-out" if folds.leave_one_out else counted(folds.k, "fold")
    meaning = f"mean squared held-out error, {kind}. It compares models and chose among them: "
    meaning += "expect more on new data."
    # The nested error tells how much more. It is not offered where it is there, and where no
    # choice of a size or no fold allows it.
    if result.expected is None and not choice.size_given and result.ended.nests:
        meaning += " --nested, or nested=True, tells how much."
    yield Fact(
        "CV error", f"{number(choice.cv_error, exact)} ± {number(std_error)} (s.e.)", meaning
    )
    known = bounds_text(choice.lower, choice.cv_error, choice.upper)
    if choice.is_pair and not exact and known:
        yield Fact(meaning=f"proved bounds of this CV error: {known}")
    root = number(float(np.sqrt(choice.cv_error)), exact)
    yield Fact("RMSE", root, f"the square root of the CV error, in {_units_of_errors(result)}")
    if not np.isnan(r2 := result.r_squared(choice.cv_error)):
        worse, surface = "", held_out.surface
        if choice.tau == 0:
            worse = ". A fold's training rows have a mean of their own"
        elif r2 <= 0.0:
            # Where the mean alone is a size, its CV error is known.
            mean = surface.table("cv_error")[0, 0] if surface.taus[0] == 0 else 0.0
            worse = "; the mean alone predicts as well" if choice.cv_error >= mean else ""
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


def _to_quote(nested: NestedError) -> Fact:
    """The error to expect on new data."""
    meaning = "the error to expect on new data: the whole procedure, choice included, held out in "
    meaning += counted(nested.folds, "outer fold")
    return Fact("to quote", with_error(number(nested.error), nested.std_error, " (s.e.)"), meaning)


def _sure(result: Result, held_out: HeldOut) -> Iterator[Fact]:
    """Yield what is proved of the choice, of a range of γ, and of the model's columns.

    A projected model is no pair (τ, γ) of the grid: what is proved of it says all of its columns.
    """
    surface, choice, claim = held_out.surface, held_out.choice, result.claim
    if (span := surface.minimum) is not None:
        yield from _range(span, claim)
    known = "" if claim.proved else bounds_text(claim.lower, surface.best().cv_error, claim.upper)
    yield _said(claim, f"; proved bounds of the least CV error: {known}" if known else "")
    if choice.is_pair:
        yield _model_said(result)
    if held_out.study.plan.proves != "nothing" and not surface.complete:
        yield Fact("open", meaning=_open_errors(surface))


def _open_errors(surface: CVResult) -> str:
    """How many CV errors of a surface are not proved, and how wide their intervals are."""
    some = ~surface.table("exact").astype(bool)
    error, lower, upper = (surface.table(name)[some] for name in ("cv_error", "lower", "upper"))
    bounded = np.isfinite(upper) & (error > 0.0)
    are = "is" if error.size == 1 else "are"
    text = f"{counted(error.size, 'CV error')} of {some.size:,} {are} not proved"
    if not bounded.any():
        return f"{text}, and {'has' if error.size == 1 else 'have'} no interval"
    width = float(np.max((upper - lower)[bounded] / error[bounded]))
    text += f"; the widest interval is {percent(width)} of its error"
    without = error.size - int(np.count_nonzero(bounded))
    return f"{text}, and {without:,} have none" if without else text


def _said(what: Statement, open_part: str = "") -> Fact:
    """A statement as a fact, after ≈ where it is not proved.

    open_part: Words on what is open, for a statement that is not proved.
    """
    if what.proved:
        return Fact("proved", meaning=what.text)
    return Fact("≈", meaning=f"it is not proved that {what.text}{open_part}")


def _range(span: GlobalMinimum, claim: Claim) -> Iterator[Fact]:
    """Yield what is known of the least CV error over a range of γ, and where it may lie.

    Each row of ``span.left`` has a τ and the ends of a range of γ that is not excluded.
    """
    lower = rounded_bound(claim.lower, up=False, digits=9)
    upper = rounded_bound(claim.upper, up=True, digits=9)
    known = f"{lower} ≤ least CV error ≤ {upper}"
    yield Fact("bounds", meaning=f"{known}, by a search of {span.seconds:.2g} s")
    if span.status is Status.UNPROVED:
        text = "rounding allows no closer bounds: errors of this size cannot be told apart"
        yield Fact(meaning=text)
    taus = np.unique(span.left[:, 0])
    for tau in taus[:MAX_SHOWN_RANGES]:
        ranges = span.left[span.left[:, 0] == tau, 1:]
        shown = ", ".join(f"[{low:.4g}, {high:.4g}]" for low, high in ranges[:MAX_SHOWN_RANGES])
        more = ", …" if len(ranges) > MAX_SHOWN_RANGES else ""
        yield Fact(meaning=f"not excluded: τ = {tau:g}, γ in {shown}{more}")
    if taus.size > MAX_SHOWN_RANGES:
        yield Fact(meaning=f"nor are ranges of γ for {taus.size - MAX_SHOWN_RANGES} more τ")


def _model_said(result: Result) -> Fact:
    """Whether the model's features are proved to be the best, and else by how much they may not be.

    Where a criterion has chosen the size, they are compared with all features of all sizes.
    """
    model, criterion = result.model, result.criterion
    shows = model.shows_gap and criterion is None
    gap = ""
    if shows:
        gap = (
            f"; the objective may be too large by at most {percent_bound(model.gap, up=True)} of it"
        )
    return _said(of_model(model, result.design, criterion), gap)


def _by_feature(result: Result) -> Index:
    """The columns of the model, by the effects of their features, and then by their own."""
    features, columns = result.features, result.model.support[result.by_effect]
    of_feature = np.abs(result.feature_effects(result.model))[features.number[columns]]
    # Features of one effect stay together, as their numbers decide where effects tie.
    order = np.lexsort((np.arange(columns.size), features.number[columns], -of_feature))
    return columns[order]


def _model(result: Result) -> Section:
    """The coefficients in the table's units, in the order of the features' effects.

    A factor or a group is one line; :func:`_levels` has its columns.
    """
    model, features, title = result.model, result.features, "The model, fitted to all rows"
    if model.support.size == 0:
        return Section()  # The intercept is said beside the columns.
    shown = features.among(_by_feature(result))
    own = [features.columns[u] for u in shown]
    effects = result.feature_effects(model)[shown]
    alone = np.array([columns.size == 1 for columns in own], dtype=bool)
    coef = [
        model.coef[columns[0]] if one else np.nan for columns, one in zip(own, alone, strict=True)
    ]
    spread_of_y = float(result.design.spread[-1]) or np.nan
    largest = float(np.abs(effects).max(initial=0.0)) or 1.0
    table = [
        SectionColumn("column" if alone.all() else "feature", _in_cells(features, shown), "names"),
        SectionColumn("coefficient", np.array(coef, dtype=np.float64)),
        SectionColumn("× s.d.", effects),
        SectionColumn("standardised", effects / spread_of_y, minor=True),
        SectionColumn("size of effect", np.abs(effects) / largest, "bar"),
    ]
    sentence = (
        f"The intercept is {number(model.intercept)}. “× s.d.” is the change of {result.target} "
        "when the column grows by one standard deviation; “standardised” is the same in standard "
        f"deviations of {result.target}."
    )
    if not alone.all():
        sentence += (
            " Where several columns are one feature, “× s.d.” is the standard deviation of what "
            "they add to a prediction."
        )
    what = "columns" if alone.all() else "features"
    return Section(title, table=SectionTable(table, what=what), sentences=(sentence,), main=True)


def _in_cells(features: Features, numbers: Index) -> list[list[str]]:
    """The names of features as the cells of a column of names."""
    return [[features.names[u]] for u in numbers.tolist()]


def _levels(result: Result) -> Section:
    """The columns of the model's factors and groups, those of the largest effects first."""
    features, design = result.features, result.design
    columns = result.model.support[result.by_effect]
    columns = np.array(
        [c for c in columns.tolist() if features.columns[features.number[c]].size > 1],
        dtype=np.intp,
    )
    coef = result.model.coef[columns]
    table = [
        SectionColumn("column", [[result.names[c]] for c in columns.tolist()], "names"),
        SectionColumn("coefficient", coef),
        SectionColumn("× s.d.", coef * design.raw_spread[columns]),
    ]
    title = "The columns of these features, those of the largest effects first"
    return Section(title, table=SectionTable(table, what="columns"))
