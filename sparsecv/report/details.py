"""The sections below the answer: p-values, every size, other choices and subsets, criteria."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..cv.results import Array, CVResult, bounds_text
from ..design.model import values_of
from ..plots.size_path import draw_errors
from ..plots.style import page_picture
from ..selection.choice import Choice
from ..selection.claims import WITHOUT_COLUMNS, aim_of, of_every_size, step_is_proved
from ..selection.projection import Projection
from ..selection.result import HeldOut, Result
from ..selection.sizes import gamma_positions, told_sizes
from .answer import MAX_CHARACTERS, answer
from .frames import shares_of
from .peers import linear_peers
from .robustness import robustness
from .sections import (
    Fact,
    Section,
    SectionColumn,
    SectionTable,
    counted,
    interval_text,
    listed,
    number,
    numbers,
    p_value_text,
    percent,
)

if TYPE_CHECKING:
    from pandas import DataFrame

# The two blanks are the CV errors of the lasso and of ridge regression.
PEERS = (
    "On the same folds the lasso has CV error {} at its best penalty, and ridge with all columns "
    "has {}. In the column “lasso” it has the best penalty that selects at most as many features. "
    "The folds have chosen all these penalties. Lasso and ridge are scikit-learn's."
)
WORDS = (
    Fact("γ", meaning="the ridge weight: a penalty (γ/2)‖β‖² that shrinks the coefficients"),
    Fact("proved", meaning="a search has ruled out every other set of features"),
)
# The rule minimum is named where it has this share less CV error than the choice: a choice.
CLEARLY_LESS = 0.1
# This word is explained only where a number of the result is an estimate.
ESTIMATE = Fact("≈", meaning="an estimate, not proved: another set of features may change it")


def sections(result: Result, *, fits: bool = True, peers: bool = False) -> Iterator[Section]:
    """Yield all sections of a result.

    fits: Whether models of other sizes may be fitted for them, where no search is needed.
    peers: Whether lasso and ridge are fitted on the same folds.
    """
    frames, proved, held_out = result.answers, result.model.proved, result.held_out
    yield from answer(result)
    if "inference" in frames:
        yield _inference(result, frames["inference"])
    # Where nothing was held out, models of other sizes need a search, which a section never starts.
    if result.knows_sizes or (fits and held_out is not None):
        yield _every_size(result, peers)
    if held_out is not None:
        proved = proved and result.claim.proved and held_out.surface.complete
        if len(result.choices) > 1:
            yield _choices(result, held_out.choice)
        yield from _surface(held_out.surface)
    if "criteria" in frames:
        yield _criteria(frames["criteria"], result.model.tau)
    if "alternatives" in frames:
        yield _alternatives(frames["alternatives"], result.model.tau)
    yield from robustness(result)
    what = f"the largest number of {result.design.counts}s that a model may have"
    words = Fact("τ", meaning=what), *WORDS
    yield Section("Words", words if proved else (*words, ESTIMATE), explains=True)
    yield Section(sentences=[*_next(result), *_work(result)])


def _next(result: Result) -> Iterator[str]:
    """Yield what a reader does next after a cross-validation: the likeliest doubt, and its answer.

    Clearly behind is a choice whose CV error the rule minimum undercuts by CLEARLY_LESS of it.
    """
    held_out, choices = result.held_out, result.choices
    if held_out is None or held_out.choice.size_given:
        return
    own = held_out.choice
    least, fewest = choices.get("minimum"), choices.get("one-se")
    if least is not None and least.cv_error < (1.0 - CLEARLY_LESS) * own.cv_error:
        less = percent(1.0 - least.cv_error / own.cv_error)
        yield f"Next: minimum has {less} less CV error here: --rule minimum, or rule='minimum'."
    elif fewest is not None and fewest.tau < own.tau and own.rule != "one-se":
        yield (
            f"Next: the fewest {result.design.counts}s within one standard error of the least CV "
            f"error are {fewest.tau}: --rule one-se, or rule='one-se'."
        )
    elif own.tau == 0:
        return  # An audit is about the columns of a model.
    elif own.is_pair:
        yield "Next: report(path, audit=True), or --audit, says which columns can be trusted."
    else:
        yield "Next: --rule minimum --audit, or report(path, audit=True), audits the columns."


def _work(result: Result) -> Iterator[str]:
    """Yield sentences on the sizes that were left out, on the end of the grid, and on the work."""
    if result.held_out is not None:
        study, surface = result.held_out.study, result.held_out.surface
        largest = study.data.constraints.max_size
        if study.settings.taus is None and surface.taus[-1] < largest:
            yield (
                f"Sizes up to {surface.taus[-1]} of {largest} were tried, as far as larger ones "
                "may be worth it; --tau, or taus, names others."
            )
        if surface.edge:  # A sentence: the least CV error lies at an end of the grid of γ.
            yield surface.edge
    if result.shown.searches:
        yield result.shown.searches
    if (seconds := result.shown.seconds) is not None:
        yield f"The whole call took {seconds:.3g} s, without the start of Python."


def _every_size(result: Result, with_peers: bool) -> Section:
    """The section of all sizes, with CV errors, or with objectives where nothing was held out.

    with_peers: Whether lasso and ridge are fitted on the same folds, for a column and the picture.
    """
    sizes, marks, held_out = result.sizes, result.marks, result.held_out
    proved, taus = [model.proved for model in sizes], values_of(sizes, "tau")
    columns, sentences, picture = [SectionColumn("size", taus)], list[str](), None
    if held_out is None:
        objectives = [model.objective for model in sizes]
        columns.append(SectionColumn("objective", numbers(objectives, proved)))
    else:
        peers = linear_peers(held_out.study.data, taus) if with_peers else {}
        words = f"CV error against the number of {result.design.counts}s. {why_chosen(result)}"
        picture = partial(page_picture, words, draw_errors, sizes, marks, peers)
        columns += _errors_of_sizes(result, held_out, peers)
        if peers:
            least = number(peers["lasso"].min()), number(peers["ridge"].min())
            sentences.append(PEERS.format(*least))
        if held_out.choice.projection is not None:
            sentences.append(
                _aim(held_out.choice, held_out.choice.projection, result.design.counts)
            )
    projected = held_out is not None and held_out.choice.projection is not None
    sentences.append(of_every_size(sizes, result.design, projected))
    if any(proved) and not all(proved):
        columns.append(SectionColumn("proved", ["yes" if p else "no" for p in proved], "words"))
    told = told_sizes(sizes, marks)
    columns = [one._replace(cells=[one.cells[t] for t in told]) for one in columns]
    names = [result.features.called(sizes[t].support) for t in told]
    columns.append(SectionColumn("what changes", names, "changes"))
    # A table that is cut still shows size 1, the least CV error, and one standard error from it.
    kept = [position for position in (0, marks.least, marks.one_se) if position is not None]
    if taus[0] == 0 and taus.size > 1:
        kept[0] = 1
    kept = [told.index(position) for position in kept if position in told]
    chosen = None if marks.chosen is None else told.index(marks.chosen)
    table = SectionTable(columns, chosen, "sizes", kept).filled()
    return Section("Every size", table=table, sentences=sentences, picture=picture)


def _errors_of_sizes(
    result: Result, held_out: HeldOut, peers: dict[str, Array]
) -> Iterator[SectionColumn]:
    """Yield what folds say of every size: CV errors, R², distances or bounds, and marks.

    Projections have a distance to the average of all models. Pairs (γ, τ) of the grid have R², and
    bounds where their CV error is an estimate.

    peers: CV errors of lasso and ridge at the same sizes; it may be empty.
    """
    sizes, marks, surface, choice = result.sizes, result.marks, held_out.surface, held_out.choice
    bounds, words = [""] * len(sizes), [""] * len(sizes)
    if choice.projection is not None:
        exact = choice.projection.proved.tolist()
    else:
        pairs = gamma_positions(surface, choice), np.arange(len(sizes))
        exact = surface.table("exact")[pairs].tolist()
        known = (surface.table(name)[pairs] for name in ("lower", "cv_error", "upper"))
        for t, (lower, error, upper) in enumerate(zip(*known, strict=True)):
            bounds[t] = "" if exact[t] else bounds_text(lower, error, upper)
    # Where one size has several marks, the last of these is shown.
    marked = (marks.one_se, "1 s.e."), (marks.least, "least"), (marks.chosen, "chosen")
    for position, word in marked:
        if position is not None:
            words[position] = word
    yield SectionColumn("CV error", numbers(values_of(sizes, "cv_error"), exact))
    if peers:
        yield SectionColumn("lasso", peers["lasso"], minor=True)
    yield SectionColumn("± s.e.", values_of(sizes, "std_error"), minor=True)
    if choice.projection is not None:
        shares = _shares(choice.projection).tolist()
        yield SectionColumn("distance", [percent(share) for share in shares])
    else:
        r2 = [result.r_squared(model.cv_error) for model in sizes]
        yield SectionColumn("R²", ["" if np.isnan(one) else f"{one:.3f}" for one in r2], minor=True)
    yield from _own_gammas(values_of(sizes, "own_gamma"), minor=True)
    yield SectionColumn("bounds", bounds)
    yield SectionColumn("", words, "words")


def _own_gammas(gammas: Array, minor: bool) -> Iterator[SectionColumn]:
    """Yield the column of γ where it is not the same in every row; the cell of the size 0 is empty.

    gammas: NaN for the size 0, which has no γ.
    minor: Whether a narrow screen leaves the column out.
    """
    if np.unique(gammas[np.isfinite(gammas)]).size > 1:
        cells = ["" if np.isnan(gamma) else f"{gamma:.4g}" for gamma in gammas]
        yield SectionColumn("γ", cells, minor=minor)


def _shares(projection: Projection) -> Array:
    """Distances of all sizes to the average, as shares of the average's CV error; 0 where it is."""
    return shares_of(values_of(projection.sizes, "distance"), projection.average.error)


def _aim_of_size(choice: Choice, projection: Projection, counts: str) -> str:
    """Words that say by which distance to the average the size of a projection is chosen.

    counts: What a size counts, in one word.
    """
    if choice.size_given:
        return "the size that was asked for"
    # Each size has a largest distance, as a share of the average's CV error. A smaller size may be
    # nearer than the chosen one may be, and still too far for itself.
    most, tau = percent(projection.max_share[projection.chosen]), projection.model.tau
    small = f"small for their number (at most {most} of that CV error for {tau})"
    if projection.near[projection.chosen]:
        return f"the fewest {counts}s whose distance is {small}"
    if choice.tau == 0:
        return WITHOUT_COLUMNS
    aim = "the size of least distance of those that may be chosen, as no such distance is "
    return f"{aim}{small}"


def why_chosen(result: Result) -> str:
    """A sentence that says why a star is where it is in pictures; empty without held-out rows."""
    choice = result.choice
    if choice is None:
        return ""
    tau, projection = f"Chosen: τ = {result.model.tau}", choice.projection
    if projection is None:
        aim = "as was asked for" if choice.size_given else aim_of(choice, result.design.counts)
        return f"{tau}, {aim}."
    share = percent(float(_shares(projection)[projection.chosen]))
    aim = _aim_of_size(choice, projection, result.design.counts)
    aim = aim.replace("that CV error", "the average's CV error")
    return f"{tau}, {aim}. Its distance to the average of all models is {share}."


def _aim(choice: Choice, projection: Projection, counts: str) -> str:
    """The sentences that say what the distance is, and by which rule the size is chosen.

    projection: That of the choice.
    counts: What a size counts, in one word.
    """
    aim = _aim_of_size(choice, projection, counts)
    distance, average = values_of(projection.sizes, "distance"), projection.average
    near = projection.near
    of_all_sizes = int(near.argmax() if near.any() else distance.argmin())
    if not choice.size_given and of_all_sizes != projection.chosen:
        left_out = int(np.count_nonzero(~projection.allowed))
        # Where a pair shows a signal, sizes may be chosen that have more CV error than the mean.
        errors = values_of(projection.sizes, "cv_error")
        below_mean = bool((errors[projection.allowed] <= errors[0]).all())
        mean = " or the mean alone" if projection.sizes[0].tau == 0 and below_mean else ""
        aim += (
            f". The rule leaves out {counted(left_out, 'size')} of more "
            f"{counts}s and more CV error than the model of least CV error{mean} has"
        )
    error = number(average.error, exact=bool(projection.proved[projection.chosen]))
    return (
        f"The average of all models has CV error {error} ± {number(average.std_error)}; a model of "
        f"fewer {counts}s is at a distance from it, the mean squared difference of their "
        f"predictions on held-out rows. Chosen: {aim}."
    )


def _choices(result: Result, chosen: Choice) -> Section:
    """What each rule chooses, with the value of the criterion that a rule minimises."""
    names, every, aims = list(result.choices), list(result.choices.values()), list[str]()
    claims = result.claims
    exact = [one.lower == one.upper for one in every]
    for name, choice in result.choices.items():
        aim = aim_of(choice, result.design.counts)
        # The rule one-se minimises nothing, and a projection's distance is said of every size.
        if choice.is_pair and name != "one-se":
            aim += f": {number(choice.criterion)}"
        if choice.lambda_ is not None:
            aim += f" at λ = {choice.lambda_:.3g}"
        aims.append(aim + ("" if claims[name].proved else ", not proved"))
    columns = [
        SectionColumn("rule", names, "words"),
        SectionColumn("τ", [choice.tau for choice in every]),
        SectionColumn("γ", [choice.own_gamma for choice in every]),
        SectionColumn("CV error", numbers([choice.cv_error for choice in every], exact)),
        SectionColumn("what the rule looks for", aims, "words", minor=True),
    ]
    # Where every rule takes the mean alone, no row has a γ.
    table = SectionTable(columns, names.index(chosen.rule), "rules").filled()
    return Section("What each rule chooses", table=table)


def _surface(surface: CVResult) -> Iterator[Section]:
    """Yield the CV error of every pair (τ, γ), and the steps of the search of γ."""
    if surface.gammas.size > 1:
        columns = [SectionColumn("τ", surface.taus)]
        for one in surface.by_gamma:
            columns.append(SectionColumn(f"γ={one.gamma:.4g}", numbers(one.cv_error, one.exact)))
        table = SectionTable(columns, what="sizes")
        yield Section("CV error at every τ and γ", table=table, long=True)
    if steps := surface.trace:
        errors = [number(step.cv_error, step_is_proved(surface, step)) for step in steps]
        columns = [
            SectionColumn("γ", [step.gamma for step in steps]),
            SectionColumn("τ", [step.tau for step in steps]),
            SectionColumn("CV error", errors),
            SectionColumn("next γ", [step.next_gamma for step in steps]),
            SectionColumn("for τ", [step.next_tau for step in steps]),
            SectionColumn("predicted", [step.predicted for step in steps]),
        ]
        title = "Search of γ: the best τ at γ, then the best γ for those features"
        ended = (f"Ended: {surface.ended}.",)
        yield Section(title, table=SectionTable(columns, what="steps"), sentences=ended, long=True)


def _first_of_size(frame: DataFrame, tau: int) -> int | None:
    """The number of the first row of a size; None where the frame does not have the size."""
    rows = np.flatnonzero(frame["tau"].to_numpy() == tau)
    return int(rows[0]) if rows.size else None


def _criteria(frame: DataFrame, tau: int) -> Section:
    """Criteria of the subset of every size, with a star at the least of each.

    frame: That of :func:`~.frames.criteria_of_sizes`.
    tau: The size of the model, which is emphasised.
    """
    heads = {"cv_error": "CV error", "aic": "AIC", "bic": "BIC", "ebic": "EBIC", "cp": "Cp"}
    columns = [SectionColumn("size", frame["tau"].tolist())]
    for name, head in heads.items():
        values = frame[name].to_numpy()
        least = np.nanmin(values) if np.isfinite(values).any() else np.nan
        cells = [number(value) + ("*" if value == least else "") for value in values.tolist()]
        columns.append(SectionColumn(head, cells))
    sentences = (
        "AIC, BIC (as R's lm), EBIC and Cp (as leaps) of a least-squares fit on the features of "
        "each size; a star marks the least. They do not know that the features were searched for, "
        "and are too small.",
    )
    table = SectionTable(columns, _first_of_size(frame, tau), "sizes").filled()
    return Section("Criteria of every size", table=table, sentences=sentences)


def _alternatives(frame: DataFrame, tau: int) -> Section:
    """The best subsets of every size, by training objective.

    frame: That of :func:`~.questions.alternatives_of_sizes`: a row for each subset, by size and
        rank. Its CV errors are NaN where no rows were held out; columns without numbers are left
        out.
    tau: The size of the model, whose best subset is emphasised.
    """
    columns = [
        SectionColumn("size", frame["tau"].tolist()),
        SectionColumn("rank", frame["rank"].tolist()),
        *_own_gammas(frame["gamma"].to_numpy(), minor=False),
        SectionColumn("objective", numbers(frame["objective"], frame["proved"])),
        SectionColumn("CV error", frame["cv_error"].to_numpy()),
        SectionColumn("± s.e.", frame["std_error"].to_numpy(), minor=True),
        SectionColumn("columns", frame["names"].tolist(), "names"),
    ]
    sentences = []
    if not frame["proved"].all():
        sentences.append("≈: the search ended before this rank was proved.")
    if frame["gamma"].nunique() > 1:
        sentences.append("Each size has its own γ, so that the objective may rise with the size.")
    if np.isfinite(frame["cv_error"]).any():
        sentences.append(
            "Every fold fits the same features, which all rows have chosen. These CV errors are "
            "therefore mostly lower than those of a size, whose folds choose features of their "
            "own. They are not to be quoted."
        )
    title = "Alternatives: the best subsets, by training objective"
    table = SectionTable(columns, _first_of_size(frame, tau), "subsets").filled()
    return Section(title, table=table, sentences=sentences)


def _inference(result: Result, frame: DataFrame) -> Section:
    """p-values and intervals of the columns of the model, and what they condition on.

    frame: That of :func:`~.questions.inference_of`. A column of a group is selected and not tested.
    """
    about, model = frame.attrs, result.model
    level = f"{100.0 * about['level']:g} %"
    facts = [
        Fact("σ", number(about["sigma"]), about["sigma_source"]),
        Fact("given", meaning=about["conditional_on"]),
    ]
    if about["complete"]:
        text = "every set of columns that might be selected in their place was compared"
        facts.append(Fact("proved", meaning=text))
    else:
        text = "the search has ended early: p-values lie between two numbers, and intervals are "
        facts.append(Fact("≈", meaning=text + "wider than they would be"))
    ends = list(zip(frame["low"].tolist(), frame["high"].tolist(), strict=True))
    p_values = zip(frame["p_low"].tolist(), frame["p_high"].tolist(), strict=True)
    columns = [
        SectionColumn("column", [[name] for name in frame.index], "names"),
        SectionColumn("least squares", frame["coef"].to_numpy()),
        SectionColumn("p-value", [p_value_text(low, high) for low, high in p_values], "words"),
        SectionColumn(
            f"{level} interval", [interval_text(low, high) for low, high in ends], "words"
        ),
    ]
    sentences = []
    if model.gamma > 0.0 and len(frame):
        sentences.append(
            f"Least squares on these columns, not shrunk by γ = {number(model.gamma)}."
        )
    if hidden := about["hidden"]:
        text = "the p-value is large because of what it conditions on: no search finds such a "
        text = f"{', '.join(hidden)}: {text}coefficient by chance."
        if about["event"].startswith("least") and about["sigma_source"] != "given":
            text += " A given σ (in Python inference(sigma=...)) or a given size tells more."
        sentences.append(text)
    if np.isinf(ends).any():
        sentences.append(
            "An end is infinite where the estimate cannot be told from an edge of the values at "
            "which these columns are selected, or where the search has left too much open."
        )
    if np.isnan(ends).any():
        sentences.append("A column that the others determine has no coefficient of its own.")
    if about["left_out"]:
        names = listed(about["left_out"], MAX_CHARACTERS)
        sentences.append(
            "Columns that enter together are searched for, but not tested. Left out are therefore: "
            f"{names}."
        )
    if not model.support.size:
        sentences.append("No column is selected, so that there is nothing to test.")
    title = "p-values and intervals that know about the search"
    table = SectionTable(columns, what="columns") if len(frame) else None
    return Section(title, facts, table, sentences)
