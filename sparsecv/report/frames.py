"""What a fit tells of its sizes, subsets, rules and columns, as data frames of pandas.

Estimators return these frames, and the command prints them and writes them as JSON. In every frame
"columns" holds the positions of a model's columns, as a list, and "names" the names of its
features, of which a factor or a group is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..design.design import Array
from ..design.features import Features
from ..design.folds import Index
from ..design.model import Model, values_of
from ..selection.choice import known_model, other_choices
from ..selection.claims import claim_of
from ..selection.criteria import criteria
from ..selection.result import Result
from ..selection.sizes import told_sizes
from ..solvers.core.limits import Limits

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
        "gamma": values_of(sizes, "own_gamma"),
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
        "gamma": [one.own_gamma for one in every],
        **columns_and_names(supports, result.features),
        **{name: [getattr(one, name) for one in every] for name in own},
        "certified": [claim_of(study, surface, one).proved for one in every],
        "lambda_": [np.nan if one.lambda_ is None else one.lambda_ for one in every],
    }
    return frame_of(values, list(choices)).rename_axis("rule")


def _least_criteria(result: Result) -> DataFrame:
    """The size at which each criterion is least, in the columns of :func:`comparison`.

    "certified" says whether the models of all sizes are proved to be the best at their γ.
    """
    values = _criteria(result)
    rules = [name for name in CRITERIA if not np.isnan(values[name]).all()]
    models = [result.sizes[int(np.nanargmin(values[name]))] for name in rules]
    unknown = np.full(len(rules), np.nan)
    found = {
        "tau": values_of(models, "tau"),
        "gamma": values_of(models, "own_gamma"),
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
    support: Positions, from 0, of the columns of the model.
    names: The names of all p columns.
    spread, shape (p,): Standard deviations of the columns; NaN where they are not known.
    spread_of_y: The standard deviation of the response; where it is 0 nothing is standardised.
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
