"""What is asked of a result besides its sections, as frames and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..design.design import Array
from ..errors import InputError
from ..selection.alternatives import alternatives, alternatives_table, ranked_by_size
from ..selection.choice import known_model, other_choices
from ..selection.criteria import criteria
from ..selection.near_best import importance, near_best
from ..selection.result import Result
from ..selection.sizes import subsets_by_size
from ..solvers.core.column_rules import ResolvedRules
from .frames import (
    alternatives_frame,
    choices_frame,
    criteria_frame,
    importance_frame,
    inference_frame,
    least_criteria_frame,
    near_best_frame,
)

if TYPE_CHECKING:
    from pandas import DataFrame


def criteria_of_sizes(result: Result) -> DataFrame:
    """The criteria of the model of every size."""
    return criteria_frame(result.sizes, _criteria(result), result.names)


def _criteria(result: Result) -> dict[str, Array]:
    """The values of all criteria, each for every size."""
    supports = [model.support for model in result.sizes]
    return criteria(result.problem, result.design, supports)


def alternatives_of_sizes(result: Result, n: int, seconds: float | None) -> DataFrame:
    """The n best subsets of every size, a row of the frame for each.

    They are ranked by the fit to all rows, or by the CV error where rows were held out.

    seconds: As of :func:`~sparsecv.selection.alternatives.ranked_by_size`.
    """
    if result.held_out is not None:
        study, surface, choice = result.held_out
        subsets = subsets_by_size(study, surface, choice)
        found = alternatives(study, surface, subsets, n, seconds)
    else:
        known = result.problem, result.design, result.sizes
        found = alternatives_table(*known, ranked_by_size(*known, n, seconds), None)
    return alternatives_frame(found, result.names)


def comparison(result: Result) -> DataFrame:
    """What every rule chooses; where nothing is held out, every criterion."""
    if result.held_out is None or result.first is None:
        return least_criteria_frame(result.sizes, _criteria(result), result.names)
    study, surface, choice = result.held_out
    choices = other_choices(study.again(), result.first, choice, every=True)
    supports = (known_model(study, surface, one).support for one in choices.values())
    return choices_frame(choices, supports, result.names)


def inference_of(
    result: Result, level: float, sigma: float | None, seconds: float | None
) -> DataFrame:
    """p-values and intervals of the columns of a model that know of the search.

    level: Of the intervals.
    """
    from ..selection.inference import infer  # Few calls need what this imports of SciPy.

    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1; got {level!r}")
    return inference_frame(infer(result, sigma, seconds), level, result.names)


def near_best_of(result: Result, within: float, seconds: float | None) -> DataFrame:
    """Every support that fits nearly as well as the best."""
    return near_best_frame(near_best(result, within, seconds), result, within)


def importance_of(result: Result, seconds: float | None) -> DataFrame:
    """What each column is worth to the best fit."""
    return importance_frame(importance(result, seconds), result)


def constraints(asked: ResolvedRules | None, names: Sequence[str]) -> dict[str, Any] | None:
    """The constraints on columns as JSON values; None where there are none.

    Groups of one column are left out. The sizes are those that a model may have.
    """
    if asked is None:
        return None
    by_position = asked.by_position()
    return {
        "include": [names[j] for j in by_position.include],
        "exclude": [names[j] for j in by_position.exclude],
        "groups": {name: [names[j] for j in g] for name, g in asked.groups.items() if len(g) > 1},
        "bounds": {
            names[j]: [None if np.isinf(end) else end for end in ends]
            for j, ends in by_position.bounds.items()
        },
        "sizes": list(asked.sizes),
    }
