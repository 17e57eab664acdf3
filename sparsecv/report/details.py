"""The sections below the answer: p-values, every size, other choices and subsets, criteria."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cv.results import Array, CVResult, bounds_text
from ..design.model import Model, values_of
from ..plots.size_path import draw_errors
from ..plots.style import in_style, new_figure
from ..selection.choice import Choice
from ..selection.projection import Projection, choose_size
from ..selection.result import Result
from ..selection.rules import RULES
from ..selection.sizes import SizeMarks, changes, gamma_positions
from .answer import answer
from .peers import linear_peers
from .robustness import robustness
from .sections import Fact, Section, SectionColumn, SectionTable, counted, number, numbers, percent

if TYPE_CHECKING:
    from pandas import DataFrame

PEERS = (
    "On the same folds the lasso has CV error {} at its best penalty, and ridge with all columns "
    "has {}. In the column “lasso” it has the best penalty that selects at most as many columns. "
    "The folds have chosen all these penalties. Lasso and ridge are scikit-learn's."
)
WORDS = (
    Fact("τ", "", "the largest number of features that a model may have"),
    Fact("γ", "", "the ridge weight: a penalty (γ/2)‖β‖² that shrinks the coefficients"),
    Fact("proved", "", "a search has ruled out every other set of features"),
    Fact("≈", "", "an estimate, not proved: another set of features may change it"),
)


def sections(result: Result, *, fits: bool = True, peers: bool = False) -> Iterator[Section]:
    """Yield all sections of a result.

    fits: Whether models of other sizes may be fitted for them, where no search is needed.
    peers: Whether lasso and ridge are fitted on the same folds.
    """
    found, proved = result.answers, result.model.proved
    yield from answer(result)
    if "inference" in found:
        yield _inference(result, found["inference"])
    if result.knows_sizes or (fits and result.held_out is not None):
        yield _every_size(result, peers)
    if result.held_out is not None:
        _, surface, choice = result.held_out
        proved = proved and choice.certified and surface.complete
        if len(result.choices) > 1:
            yield _choices(result, choice)
        yield from _surface(surface)
    if "criteria" in found:
        yield _criteria(found["criteria"], result.model.tau)
    if "alternatives" in found:
        yield _alternatives(found["alternatives"], result.model.tau)
    yield from robustness(result)
    yield Section("Words", WORDS[:-1] if proved else WORDS, explains=True)
    yield Section("", sentences=list(_work(result)))


def _work(result: Result) -> Iterator[str]:
    """Yield sentences on the sizes that were left out, on the end of the grid, and on the work."""
    if result.held_out is not None:
        study, surface, _ = result.held_out
        largest = study.data.constraints.max_size
        if study.request.taus is None and surface.taus[-1] < largest:
            yield (
                f"Sizes up to {surface.taus[-1]} of {largest} were tried, as far as larger ones "
                "may be worth it; --tau, or taus, names others."
            )
        if surface.edge:
            yield surface.edge
    if result.shown.searches:
        yield result.shown.searches
    if (seconds := result.shown.seconds) is not None:
        yield f"The whole call took {seconds:.3g} s, without the start of Python."


def _every_size(result: Result, with_peers: bool) -> Section:
    """The section of all sizes, where asked for with lasso and ridge on the same folds.

    A plain fit has no study, and shows objectives in place of CV errors.
    """
    sizes, marks = result.sizes, result.marks
    proved, sentences = [model.proved for model in sizes], []
    taus = values_of(sizes, "tau")
    peers: dict[str, Array] = {}
    columns = [SectionColumn("size", taus)]
    if result.held_out is None:
        objectives = [model.objective for model in sizes]
        columns.append(SectionColumn("objective", numbers(objectives, proved)))
    else:
        study, surface, choice = result.held_out
        peers = linear_peers(study.data, [study.data.folds], taus) if with_peers else {}
        columns += _held_out(result, surface, choice, sizes, marks)
        if peers:
            # The column stands after that of the CV errors.
            columns.insert(2, SectionColumn("lasso", peers["lasso"], minor=True))
            sentences.append(PEERS.format(*map(number, (peers["lasso"].min(), peers["ridge"][0]))))
        if choice.projection is not None:
            sentences.append(_aim(choice, choice.projection))
    supports = [np.empty(0, dtype=np.intp), *(model.support for model in sizes)]
    steps = [changes(*two, result.names) for two in pairwise(supports)]
    columns.append(SectionColumn("what changes", steps, "names"))
    if all(proved):
        sentences.append("No other set of as many columns fits all rows better at its γ.")
    elif not any(proved):
        sentences.append("Of no size is it proved that no other columns fit all rows better.")
    else:
        words = ["yes" if one else "no" for one in proved]
        columns.insert(-1, SectionColumn("proved", words, "words"))
    table = SectionTable(columns, marks.chosen, "sizes").filled()
    picture = None if result.held_out is None else partial(_picture, sizes, marks, peers)
    return Section("Every size", (), table, sentences, picture)


def _held_out(
    result: Result, surface: CVResult, choice: Choice, sizes: Sequence[Model], marks: SizeMarks
) -> Iterator[SectionColumn]:
    """Yield what folds say of every size: CV errors, R², distances or bounds, and marks."""
    found = choice.projection
    words, known = [""] * len(sizes), [""] * len(sizes)
    if found is not None:
        exact = found.proved.tolist()
    else:
        at = gamma_positions(surface, choice), np.arange(len(sizes))
        exact = surface.table("exact")[at].tolist()
        ends = zip(*(surface.table(n)[at] for n in ("lower", "cv_error", "upper")), strict=True)
        known = ["" if e else bounds_text(*b) for e, b in zip(exact, ends, strict=True)]
    for t, word in ((marks.one_se, "1 s.e."), (marks.least, "least"), (marks.chosen, "chosen")):
        if t is not None:
            words[t] = word
    yield SectionColumn("CV error", numbers(values_of(sizes, "cv_error"), exact))
    yield SectionColumn("± s.e.", values_of(sizes, "std_error"), minor=True)
    if found is None:
        r2 = [result.r_squared(model.cv_error) for model in sizes]
        yield SectionColumn("R²", ["" if np.isnan(one) else f"{one:.3f}" for one in r2], minor=True)
    else:
        yield SectionColumn("distance", [percent(one) for one in _shares(found)])
    yield from _own_gammas(values_of(sizes, "gamma"), minor=True)
    yield SectionColumn("bounds", known)
    yield SectionColumn("", words, "words")


def _own_gammas(gammas: Array, minor: bool) -> Iterator[SectionColumn]:
    """Yield the column of γ where it is not the same in every row; ``minor`` as of a column."""
    if np.unique(gammas).size > 1:
        yield SectionColumn("γ", [f"{gamma:.4g}" for gamma in gammas], minor=minor)


def _shares(found: Projection) -> Array:
    """Distances of all sizes to the average over the average's CV error."""
    distance = values_of(found.sizes, "distance")
    return distance / found.average.error if found.average.error > 0.0 else np.zeros(distance.size)


def _aim(choice: Choice, found: Projection) -> str:
    """The sentences that say what the distance is, and by which rule the size is chosen."""
    # Each size has a largest distance, as a share of the average's CV error.
    most = found.max_share[found.chosen]
    if choice.size_given:
        aim = "the size that was asked for"
    elif _shares(found)[found.chosen] <= most:
        aim = f"the fewest features whose distance is at most {percent(most)} of that CV error"
    else:
        least = percent(found.max_share.max())
        aim = f"the size of least distance, as no distance is small (at most {least} of that error)"
    others = choose_size(values_of(found.sizes, "distance"), found.max_share * found.average.error)
    left_out = int(np.count_nonzero(~found.allowed))
    if not choice.size_given and others != found.chosen:
        aim += (
            f". The rule leaves out {counted(left_out, 'size')} of more "
            "features and more CV error than the model of least CV error has"
        )
    reference = number(found.average.error, bool(found.proved[found.chosen]))
    return (
        f"The average of all models has CV error {reference} ± {number(found.average.std_error)}; "
        "a model of fewer features is at a distance from it, the "
        f"mean squared difference of their predictions on held-out rows. Chosen: {aim}."
    )


@in_style
def _picture(sizes: Sequence[Model], marks: SizeMarks, peers: dict[str, Array]) -> tuple[Any, str]:
    """The CV error of every size, with ridge and lasso on the same folds."""
    figure, ((axes,),) = new_figure(figsize=(5.6, 3.6))
    draw_errors(axes, sizes, marks, peers)
    return figure, "CV error against the number of columns; the star marks the chosen size."


def _choices(result: Result, chosen: Choice) -> Section:
    """What each rule chooses, with the value of the criterion that a rule minimises."""
    names, every, aims = list(result.choices), list(result.choices.values()), []
    for name, choice in result.choices.items():
        aim = RULES[name].aim
        if choice.is_pair and name != "one-se":
            aim += f": {number(choice.criterion)}"
        if choice.lambda_ is not None:
            aim += f" at λ = {choice.lambda_:.3g}"
        aims.append(aim + ("" if choice.certified else ", not proved"))
    columns = [
        SectionColumn("rule", names, "words"),
        SectionColumn("τ", [choice.tau for choice in every]),
        SectionColumn("γ", [choice.gamma for choice in every]),
        SectionColumn("CV error", numbers([one.cv_error for one in every], map(_is_exact, every))),
        SectionColumn("what the rule looks for", aims, "words"),
    ]
    table = SectionTable(columns, names.index(chosen.rule), "rules")
    return Section("What each rule chooses", table=table)


def _is_exact(choice: Choice) -> bool:
    """Whether the CV error of a choice is exact."""
    if choice.projection is not None:
        return choice.certified
    return choice.lower == choice.upper


def _surface(surface: CVResult) -> Iterator[Section]:
    """Yield the CV error of every pair (τ, γ), and the steps of the search of γ."""
    steps = surface.trace
    if surface.gammas.size > 1:
        columns = [SectionColumn("τ", surface.taus)]
        for one in surface.by_gamma:
            columns.append(SectionColumn(f"γ={one.gamma:.4g}", numbers(one.cv_error, one.exact)))
        title = "CV error at every τ and γ"
        yield Section(title, table=SectionTable(columns, what="sizes"), long=True)
    if steps:
        columns = [
            SectionColumn("γ", [step.gamma for step in steps]),
            SectionColumn("τ", [step.tau for step in steps]),
            SectionColumn("CV error", [number(step.cv_error, step.certified) for step in steps]),
            SectionColumn("next γ", [step.next_gamma for step in steps]),
            SectionColumn("for τ", [step.next_tau for step in steps]),
            SectionColumn("predicted", [step.predicted for step in steps]),
        ]
        title = "Search of γ: the best τ at γ, then the best γ for those features"
        ended = (f"Ended: {surface.ended}.",)
        yield Section(title, table=SectionTable(columns, what="steps"), sentences=ended, long=True)


def _first_of_size(found: DataFrame, tau: int) -> int | None:
    """The number of the first row of a size; None where the frame does not have the size."""
    at = np.flatnonzero(found["tau"].to_numpy() == tau)
    return int(at[0]) if at.size else None


def _criteria(found: DataFrame, tau: int) -> Section:
    """Criteria of the subset of every size, with a star at the least of each."""
    heads = {"cv_error": "CV error", "aic": "AIC", "bic": "BIC", "ebic": "EBIC", "cp": "Cp"}
    columns = [SectionColumn("size", found["tau"].tolist())]
    for name, head in heads.items():
        values = found[name].to_numpy()
        least = np.nanmin(values) if np.isfinite(values).any() else np.nan
        cells = [number(value) + ("*" if value == least else "") for value in values.tolist()]
        columns.append(SectionColumn(head, cells))
    sentences = (
        "AIC, BIC (as R's lm), EBIC and Cp (as leaps) of a least-squares fit on the features of "
        "each size; a star marks the least. They do not know that the features were searched for, "
        "and are too small.",
    )
    table = SectionTable(columns, _first_of_size(found, tau), "sizes").filled()
    return Section("Criteria by number of features", table=table, sentences=sentences)


def _alternatives(found: DataFrame, tau: int) -> Section:
    """The best subsets of every size, by training objective."""
    columns = [
        SectionColumn("size", found["tau"].tolist()),
        SectionColumn("rank", found["rank"].tolist()),
        *_own_gammas(found["gamma"].to_numpy(), minor=False),
        SectionColumn("objective", numbers(found["objective"], found["proved"])),
        SectionColumn("CV error", found["cv_error"].to_numpy()),
        SectionColumn("± s.e.", found["std_error"].to_numpy(), minor=True),
        SectionColumn("columns", found["names"].tolist(), "names"),
    ]
    sentences = []
    if not found["proved"].all():
        sentences.append("≈: the search ended before this rank was proved.")
    if found["gamma"].nunique() > 1:
        sentences.append("Each size has its own γ, so that the objective may rise with the size.")
    if np.isfinite(found["cv_error"]).any():
        sentences.append(
            "Every fold fits the same features, which all rows have chosen. These CV errors are "
            "therefore mostly lower than those of a size, whose folds choose features of their "
            "own. They are not to be quoted."
        )
    title = "Alternatives: the best subsets, by training objective"
    table = SectionTable(columns, _first_of_size(found, tau), "subsets").filled()
    return Section(title, table=table, sentences=sentences)


def _inference(result: Result, found: DataFrame) -> Section:
    """p-values and intervals of the columns of the model, and what they condition on."""
    about, model = found.attrs, result.model
    level = f"{100.0 * about['level']:g} %"
    facts = [
        Fact("σ", number(about["sigma"]), about["sigma_source"]),
        Fact("given", "", about["conditional_on"]),
    ]
    if about["complete"]:
        text = "every set of columns that might be selected in their place was compared"
        facts.append(Fact("proved", "", text))
    else:
        text = "the search has ended early: p-values lie between two numbers, and intervals are "
        facts.append(Fact("≈", "", text + "wider than they would be"))
    ends = list(zip(found["low"].tolist(), found["high"].tolist(), strict=True))
    columns = [
        SectionColumn("column", found.index.tolist(), "words"),
        SectionColumn("least squares", found["coef"].to_numpy()),
        SectionColumn("p-value", [*map(_p_value, found["p_low"], found["p_high"])], "words"),
        SectionColumn(f"{level} interval", [_interval(*one) for one in ends], "words"),
    ]
    sentences = []
    if model.gamma > 0.0 and len(found):
        sentences.append(
            f"Least squares on these columns, not shrunk by γ = {number(model.gamma)}."
        )
    if np.isinf(ends).any():
        sentences.append(
            "An end is infinite where the estimate cannot be told from an edge of the values at "
            "which these columns are selected, or where the search has left too much open."
        )
    if np.isnan(ends).any():
        sentences.append("A column that the others determine has no coefficient of its own.")
    if model.support.size > len(found):
        sentences.append("Columns that enter together are searched for, but not tested.")
    if not model.support.size:
        sentences.append("No column is selected, so that there is nothing to test.")
    table = SectionTable(columns, what="columns") if len(found) else None
    return Section("p-values and intervals that know about the search", facts, table, sentences)


def _p_value(low: float, high: float) -> str:
    """The p-value that lies between two numbers: one number where they differ by rounding alone."""
    if math.isnan(low) or math.isclose(low, high, rel_tol=1e-6):
        return "" if math.isnan(low) else f"{high:.3g}"
    return f"{low:.3g} to {high:.3g}"


def _interval(low: float, high: float) -> str:
    """An interval, in words where an end is infinite."""
    if math.isnan(low):
        return ""
    if math.isinf(low):
        return "every number" if math.isinf(high) else f"every number up to {number(high)}"
    if math.isinf(high):
        return f"every number from {number(low)}"
    return f"{number(low)} to {number(high)}"
