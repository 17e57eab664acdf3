"""What a fit tells of its sizes, subsets, rules and columns, as data frames of pandas.

Estimators return these frames, and the command prints them and writes them as JSON. In every frame
"columns" holds the positions of a model's columns, as a list, and "names" their names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..design.design import Array
from ..design.folds import Index
from ..design.model import Model, values_of
from ..selection.choice import Choice
from ..selection.near_best import Importance
from ..selection.result import Result
from ..solvers.core.result import Status, worst
from ..solvers.leaps.gathering import NearBestAnswers

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..selection.inference import Inference

# A smaller value of these criteria is better.
CRITERIA = ("aic", "bic", "ebic", "cp")


def frame_of(values: Mapping[str, Any], labels: list[Any] | range | None = None) -> DataFrame:
    """A frame of some columns, with rows 0, 1 and so on, or with labels of its rows."""
    from pandas import DataFrame  # Only who asks for a frame waits for pandas.

    return DataFrame(values, index=labels)


def columns_and_names(supports: Iterable[Index], names: Sequence[str]) -> dict[str, Any]:
    """The two entries that say which columns models have: their positions, and their names."""
    columns = [support.tolist() for support in supports]
    return {"columns": columns, "names": [[names[c] for c in some] for some in columns]}


def path_frame(sizes: Sequence[Model], names: Sequence[str]) -> DataFrame:
    """The model of every size: "coef" has the coefficients of "columns", in the same order."""
    found: dict[str, Any] = {
        "tau": values_of(sizes, "tau"),
        "gamma": values_of(sizes, "gamma"),
        **columns_and_names((model.support for model in sizes), names),
        "coef": [model.coef[model.support].tolist() for model in sizes],
    }
    for name in ("intercept", "cv_error", "std_error", "proved"):
        found[name] = values_of(sizes, name)
    distance = values_of(sizes, "distance")
    return frame_of(found if np.isnan(distance).all() else found | {"distance": distance})


def criteria_frame(
    sizes: Sequence[Model], values: Mapping[str, Array], names: Sequence[str]
) -> DataFrame:
    """The criteria of the model of every size, beside its CV error."""
    supports = columns_and_names((model.support for model in sizes), names)
    tau, error = values_of(sizes, "tau"), values_of(sizes, "cv_error")
    return frame_of({"tau": tau, **supports, "cv_error": error, **values})


def alternatives_frame(found: Mapping[str, Any], names: Sequence[str]) -> DataFrame:
    """The n best subsets of every size, of which ``found`` has the entries."""
    values: dict[str, Any] = {}
    for name, entries in found.items():
        values |= columns_and_names(entries, names) if name == "columns" else {name: entries}
    return frame_of(values)


def choices_frame(
    choices: Mapping[str, Choice], supports: Iterable[Index], names: Sequence[str]
) -> DataFrame:
    """What rules choose, a row for every rule."""
    every = list(choices.values())
    own: Any = ("cv_error", "lower", "upper", "criterion", "certified")
    found = {
        "tau": [one.tau for one in every],
        "gamma": [one.gamma for one in every],
        **columns_and_names(supports, names),
        **{name: [getattr(one, name) for one in every] for name in own},
        "lambda_": [np.nan if one.lambda_ is None else one.lambda_ for one in every],
    }
    return frame_of(found, list(choices)).rename_axis("rule")


def least_criteria_frame(
    sizes: Sequence[Model], values: Mapping[str, Array], names: Sequence[str]
) -> DataFrame:
    """The size at which each criterion is least, in the columns of :func:`choices_frame`."""
    rules = [name for name in CRITERIA if not np.isnan(values[name]).all()]
    at = [int(np.nanargmin(values[name])) for name in rules]
    unknown = np.full(len(rules), np.nan)
    found = {
        "tau": [sizes[t].tau for t in at],
        "gamma": [sizes[t].gamma for t in at],
        **columns_and_names((sizes[t].support for t in at), names),
        **dict.fromkeys(("cv_error", "lower", "upper"), unknown),
        "criterion": [float(values[name][t]) for name, t in zip(rules, at, strict=True)],
        "certified": all(model.proved for model in sizes),
        "lambda_": unknown,
    }
    return frame_of(found, rules).rename_axis("rule")


def coefficients_frame(
    coef: Array, support: Index, names: Sequence[str], spread: Array, spread_of_y: float
) -> DataFrame:
    """The coefficients of a model, those of the largest effects first.

    coef, shape (p,): Coefficients of all columns.
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


def inference_frame(found: Inference, level: float, names: Sequence[str]) -> DataFrame:
    """p-values and intervals of the tested columns of a model, in the order of the columns.

    level: Of the confidence intervals.
    """
    rows = [
        (one.column, one.coef, one.std_error, *one.p_value(), *ends)
        for one, ends in zip(found.columns, found.intervals(level).tolist(), strict=True)
    ]
    heads = "position", "coef", "std_error", "p_low", "p_high", "low", "high"
    labels = [names[one.column] for one in found.columns]
    values = {head: [row[i] for row in rows] for i, head in enumerate(heads)}
    made = frame_of(values, labels).rename_axis("column")
    kept = "what the response has across the tested coefficient"
    known = found.tests.spread.degrees == math.inf
    kept = f"and {kept}" if known else f"{kept}, and the response's sum of squares"
    made.attrs = {
        "level": float(level),
        "sigma": found.tests.spread.value,
        "sigma_source": found.tests.spread.source,
        "event": found.tests.event,
        "conditional_on": (
            f"these columns are selected ({found.tests.event}), {kept}; "
            "errors are independent and normal with one variance"
        ),
        "complete": found.status is Status.OPTIMAL,
        "status": str(found.status),
        "n_nodes": found.work.n_nodes,
        "regions": {
            name: one.region.tolist() for name, one in zip(labels, found.columns, strict=True)
        },
    }
    return made


def near_best_frame(found: NearBestAnswers, result: Result, within: float) -> DataFrame:
    """Every support that fits nearly as well as the best, the best first."""
    answers, least = found.answers, float(found.value[0])
    supports = [result.design.kept[one.support] for one in answers]
    made = frame_of(
        {
            "tau": [one.size for one in answers],
            **columns_and_names(supports, result.names),
            "objective": [one.objective for one in answers],
            "excess": found.value / least - 1.0 if least > 0.0 else np.zeros(len(answers)),
        }
    )
    made.attrs.update(about(result), within=float(within), complete=answers[0].proved)
    made.attrs["status"] = str(answers[0].status)
    return made


def importance_frame(found: Importance, result: Result) -> DataFrame:
    """What each column is worth to the best fit, those first without which it loses most."""
    columns = result.design.kept[np.concatenate(found.units)]
    at = np.repeat(np.arange(len(found.units)), [unit.size for unit in found.units])
    values = {
        "position": columns,
        "without": found.without[at],
        "with_": found.having[at],
        "proved": [found.status[u] is Status.OPTIMAL for u in at],
    }
    order = np.lexsort((found.having[at], -np.nan_to_num(found.without[at], nan=np.inf)))
    made = frame_of(values, [result.names[c] for c in columns]).rename_axis("column").iloc[order]
    made.attrs.update(about(result), status=str(worst(found.status)))
    return made


def about(result: Result) -> dict[str, Any]:
    """What tables of other supports are about."""
    model, by = result.model, result.criterion
    how = f"of up to {model.tau} columns" if by is None else f"of all sizes by {by.upper()}"
    words = f"least training objective {how} at gamma = {model.gamma:g}; nothing is held out"
    return {"tau": model.tau, "gamma": model.gamma, "criterion": by, "about": words}
