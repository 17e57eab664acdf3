"""What a fit tells of its sizes, subsets, rules and columns, as data frames of pandas.

Estimators return these frames, and the command prints them and writes them as JSON. In every frame
"columns" holds the positions of a model's columns, as a list, and "names" their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..design.design import Array
from ..design.folds import Index
from ..design.model import Model, values_of
from ..selection.choice import Choice

if TYPE_CHECKING:
    from pandas import DataFrame

# A smaller value of these criteria is better.
CRITERIA = ("aic", "bic", "ebic", "cp")


def frame_of(values: Mapping[str, Any], labels: list[str] | None = None) -> DataFrame:
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
