"""What a fit tells of its sizes, subsets, rules and columns, as data frames of pandas.

Estimators return these frames, and the command prints them and writes them as JSON. In every frame
"columns" holds the positions of a model's columns, as a list, and "names" the names of its
features, of which a factor or a group is one. Where a function takes ``seconds``, its searches end
after so many; None is no limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..design.design import Array
from ..design.features import Features
from ..design.folds import Index
from ..design.model import Model, values_of
from ..errors import InputError
from ..selection.alternatives import alternatives, alternatives_table, ranked_by_size
from ..selection.choice import known_model, other_choices
from ..selection.claims import claim_of
from ..selection.criteria import criteria
from ..selection.near_best import importance, near_best
from ..selection.result import Result
from ..selection.sizes import subsets_by_size, told_sizes
from ..solvers.core.limits import Limits
from ..solvers.core.quick_fits import fit_supports
from ..solvers.core.result import Status, worst
from ..solvers.core.ties import ties_in_order

if TYPE_CHECKING:
    from pandas import DataFrame

# A smaller value of these criteria is better.
CRITERIA = ("aic", "bic", "ebic", "cp")


def frame_of(values: Mapping[str, Any], labels: list[Any] | range | None = None) -> DataFrame:
    """A frame of some columns, whose rows are 0, 1 and so on, or have labels."""
    from pandas import DataFrame  # Only who asks for a frame waits for pandas.

    return DataFrame(values, index=labels)


def columns_and_names(supports: Iterable[Index], features: Features) -> dict[str, Any]:
    """The two entries that say what models have: positions of columns, and names of features."""
    kept = [np.asarray(support, dtype=np.intp) for support in supports]
    names = [features.called(support) for support in kept]
    return {"columns": [support.tolist() for support in kept], "names": names}


def path_frame(sizes: Sequence[Model], features: Features, average: float) -> DataFrame:
    """The model of every size: "coef" has the coefficients of "columns", in the same order.

    A size whose columns are those of the size before has no row.

    average: The CV error of the average that sizes are projected from; NaN where they are not.
    """
    sizes = [sizes[t] for t in told_sizes(list(sizes))]
    values: dict[str, Any] = {
        "tau": values_of(sizes, "tau"),
        "gamma": values_of(sizes, "gamma"),
        **columns_and_names((model.support for model in sizes), features),
        "coef": [model.coef[model.support].tolist() for model in sizes],
    }
    for name in ("intercept", "cv_error", "std_error", "proved"):
        values[name] = values_of(sizes, name)
    distance = values_of(sizes, "distance")
    if not np.isnan(distance).all():  # Only projections have a distance.
        values["distance"] = shares_of(distance, average)
    return frame_of(values)


def shares_of(distance: Array, average: float) -> Array:
    """Distances to the average as shares of the average's CV error; 0 where that is 0."""
    return distance / average if average > 0.0 else np.zeros_like(distance)


def criteria_of_sizes(result: Result) -> DataFrame:
    """The criteria of the model of every size, beside its CV error."""
    sizes = result.sizes
    supports = columns_and_names((model.support for model in sizes), result.features)
    tau, error = values_of(sizes, "tau"), values_of(sizes, "cv_error")
    return frame_of({"tau": tau, **supports, "cv_error": error, **_criteria(result)})


def _criteria(result: Result) -> dict[str, Array]:
    """The values of all criteria, each for every size; NaN where a criterion is not defined."""
    supports = [model.support for model in result.sizes]
    return criteria(result.problem, result.design, supports)


def alternatives_of_sizes(result: Result, n: int, seconds: float | None) -> DataFrame:
    """The n best subsets of every size, a row of the frame for each.

    They are ranked by the objective on all rows. Where rows were held out, the frame has their CV
    errors, too.
    """
    if (held_out := result.held_out) is not None:
        subsets = subsets_by_size(*held_out)
        entries = alternatives(held_out.study.again(), held_out.surface, subsets, n, seconds)
    else:
        fit = result.problem, result.design, result.sizes
        entries = alternatives_table(*fit, ranked_by_size(*fit, n, seconds), errors=None)
    values: dict[str, Any] = {}
    for name, entry in entries.items():
        own = columns_and_names(entry, result.features) if name == "columns" else {name: entry}
        values |= own  # The frame keeps the order of the entries.
    return frame_of(values)


def comparison(result: Result, limits: Limits | None = None) -> DataFrame:
    """What every rule chooses; where nothing is held out, the size of least criterion of each.

    limits: Those of a call that has begun already; by default the fit's time limit begins now.
    """
    if result.held_out is None:
        return _least_criteria(result)
    assert result.first is not None  # Only a run that Ctrl-C has ended has none.
    study, surface, choice = result.held_out
    choices = other_choices(study.again(limits), result.first, choice, every=True)
    every = list(choices.values())
    supports = (known_model(study, surface, one).support for one in every)
    own: Any = ("cv_error", "lower", "upper", "criterion")
    values = {
        "tau": [one.tau for one in every],
        "gamma": [one.gamma for one in every],
        **columns_and_names(supports, result.features),
        **{name: [getattr(one, name) for one in every] for name in own},
        "certified": [claim_of(study, surface, one).proved for one in every],
        "lambda_": [np.nan if one.lambda_ is None else one.lambda_ for one in every],
    }
    return frame_of(values, list(choices)).rename_axis("rule")


def _least_criteria(result: Result) -> DataFrame:
    """The size at which each criterion is least, in the columns of :func:`comparison`."""
    values = _criteria(result)
    rules = [name for name in CRITERIA if not np.isnan(values[name]).all()]
    models = [result.sizes[int(np.nanargmin(values[name]))] for name in rules]
    unknown = np.full(len(rules), np.nan)
    found = {
        "tau": values_of(models, "tau"),
        "gamma": values_of(models, "gamma"),
        **columns_and_names((model.support for model in models), result.features),
        **dict.fromkeys(("cv_error", "lower", "upper"), unknown),
        "criterion": [float(np.nanmin(values[name])) for name in rules],
        "certified": all(model.proved for model in result.sizes),
        "lambda_": unknown,
    }
    return frame_of(found, rules).rename_axis("rule")


def coefficients_frame(
    coef: Array, support: Index, names: Sequence[str], spread: Array, spread_of_y: float
) -> DataFrame:
    """The coefficients of a model, those of the largest effects first.

    coef, shape (p,): Coefficients of all columns.
    support: Positions of the columns of the model, and ``names`` the names of all p columns.
    spread, shape (p,): Standard deviations of the columns; NaN where they are not known.
    spread_of_y: The standard deviation of the response.
    """
    effects = coef[support] * spread[support]
    order = np.argsort(-np.abs(effects), kind="stable")
    columns, effects = support[order], effects[order]
    found = {
        "position": columns,
        "coef": coef[columns],
        "effect": effects,
        "standardised": effects / (spread_of_y or np.nan),
    }
    return frame_of(found, [names[c] for c in columns]).rename_axis("column")


def inference_of(
    result: Result, level: float, sigma: float | None, seconds: float | None
) -> DataFrame:
    """p-values and intervals of the tested columns of a model, in the order of the columns.

    They know of the search that has selected the columns; "conditional_on" of the attributes says
    what they condition on, and "complete" whether all searches have ended.

    level: Of the confidence intervals, between 0 and 1.
    sigma: Standard deviation of the errors; None where it is estimated.
    """
    from ..selection.inference import infer  # Few calls need what this imports of SciPy.

    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1; got {level!r}")
    limits = Limits(seconds)
    found = infer(result, sigma, limits)
    ends, ended = found.intervals(level, limits)
    columns, event, spread = found.tests.columns, found.tests.event, found.tests.spread
    labels = result.called(columns)
    status = worst([found.status, ended])
    (p_low, p_high), (low, high) = found.p_values().T, ends.T
    values = {
        "position": columns,
        "coef": found.coef,
        "std_error": found.tests.std_errors,
        "p_low": p_low,
        "p_high": p_high,
        "low": low,
        "high": high,
    }
    frame = frame_of(values, labels).rename_axis("column")
    kept = "what the response has across the tested coefficient"
    # A standard deviation that was given has infinitely many degrees of freedom.
    known = spread.degrees == math.inf
    kept = f"and {kept}" if known else f"{kept}, and the response's sum of squares"
    frame.attrs = {
        "level": float(level),
        "sigma": spread.value,
        "sigma_source": spread.source,
        "event": event,
        "conditional_on": (
            f"these columns are selected ({event}), {kept}; "
            "errors are independent and normal with one variance"
        ),
        "left_out": result.features.called(np.setdiff1d(result.model.support, columns)),
        "hidden": [label for label, one in zip(labels, found.hidden(level), strict=True) if one],
        "complete": status is Status.OPTIMAL,
        "status": str(status),
        "n_nodes": found.work.n_nodes,
        "regions": dict(zip(labels, [one.tolist() for one in found.regions()], strict=True)),
    }
    return frame


def near_best_of(result: Result, within: float, seconds: float | None) -> DataFrame:
    """Every support that fits nearly as well as the best, the best first.

    within: The largest share by which the objective may exceed the least.
    """
    found = near_best(result, within, seconds)
    answers, least = found.answers, float(found.value[0])
    supports = [result.design.kept[one.support] for one in answers]
    made = frame_of(
        {
            "tau": [one.size for one in answers],
            **columns_and_names(supports, result.features),
            "objective": [one.objective for one in answers],
            "coef": _coefficients(result, [one.support for one in answers]),
            "excess": found.value / least - 1.0 if least > 0.0 else np.zeros(len(answers)),
        }
    )
    made.attrs.update(_about(result), within=float(within), complete=found.complete)
    made.attrs["status"] = str(answers[0].status)
    return made


def _coefficients(result: Result, supports: Sequence[Index]) -> list[list[float]]:
    """The coefficients of fits on supports, at the model's γ, in the units of the table.

    supports: Columns of the problem, each in increasing order.
    """
    design, most = result.design, max(one.size for one in supports)
    table = np.full((len(supports), max(most, 1)), -1, dtype=np.int64)
    for row, one in zip(table, supports, strict=True):
        row[: one.size] = one
    coef, _ = fit_supports(result.problem, np.array([result.model.gamma]), table[None])
    units = design.y_scale / design.scale[: design.p]
    rows = zip(supports, coef[0], strict=True)
    return [(own[: one.size] * units[one]).tolist() for one, own in rows]


def importance_of(result: Result, seconds: float | None) -> DataFrame:
    """What each feature is worth to the best fit, those first without which it loses most."""
    found = importance(result, seconds)
    first = result.design.kept[[unit[0] for unit in found.units]]
    values = {
        "position": first,
        "without": found.without,
        "with_": found.having,
        "proved": [status is Status.OPTIMAL for status in found.status],
    }
    # Where no fit may lack a feature, its number is NaN, and it stands first. Features whose
    # numbers tie, such as two that the same best fit lacks, are in the order of their columns.
    large = np.finfo(np.float64).max
    having, without = (
        np.nan_to_num(one, nan=large, posinf=large) for one in (found.having, found.without)
    )
    rank = np.empty(first.size, dtype=np.intp)
    rank[ties_in_order(having, first.tolist())] = np.arange(first.size)
    order = ties_in_order(-without, rank.tolist())
    labels = [result.features.called(first[[u]])[0] for u in range(first.size)]
    made = frame_of(values, labels).rename_axis("column").iloc[order]
    made.attrs.update(_about(result), status=str(worst(found.status)))
    return made


def _about(result: Result) -> dict[str, Any]:
    """What frames of other supports compare, as the attributes of a frame."""
    model, criterion = result.model, result.criterion
    which = f"of up to {model.tau} columns"
    if criterion is not None:
        which = f"of all sizes by {criterion.upper()}"
    words = f"least training objective {which} at gamma = {model.gamma:g}; nothing is held out"
    return {"tau": model.tau, "gamma": model.gamma, "criterion": criterion, "about": words}
