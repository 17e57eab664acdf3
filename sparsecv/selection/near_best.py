"""What fits nearly as well as a model, and what each column is worth to the best fit.

Both are about the fit to the response of all rows, at the γ and the size of a model, or by the
criterion that has chosen its size. Nothing is held out.

The module adds what ``near_best`` and ``importance`` return. Without it nobody knows how far the
best subset leads.
"""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.leaps.gathering import Comparison, NearBestAnswers
from .criteria import check_one_tree, criterion_weights
from .result import Result


def compared(result: Result, what: str) -> tuple[SparseRidgeProblem, Comparison]:
    """The problem that a model is the best of, and how supports are compared with it.

    Without a criterion supports of up to the model's size are compared by their objectives at the
    model's γ. By a criterion supports of all sizes are compared, by least squares.

    what: Words that name what is asked for, for messages.
    Raises InputError: The columns are a projection, coefficients have bounds, or there are too many
        columns for one tree.
    """
    result.refuse_projection()
    model, design = result.model, result.design
    problem = result.problem.replace(gamma=model.gamma)
    check_one_tree(problem, what, instead="go without it")
    if result.criterion is not None:
        own = int(design.protocol.intercept)
        return problem, criterion_weights(result.criterion, design.total, problem.p, own)
    return problem, Comparison(np.ones(model.tau + 1))


def near_best(result: Result, within: float, seconds: float | None) -> NearBestAnswers:
    """Every support whose value exceeds the least by a share of at most ``within``.

    The value is the objective f of supports of up to the model's size, or w·f where a criterion has
    chosen the size, w its weight of the size. At most 100,000 supports are listed; ``complete`` of
    the answer says whether the list is proved to lack none.

    seconds: The search ends after so many seconds; None is no limit.
    Raises InputError: ``within`` is no number ≥ 0, or as :func:`compared` says.
    """
    if not (isinstance(within, Real) and 0.0 <= within < math.inf):
        raise InputError(f"within must be a number >= 0; got {within!r}")
    problem, comparison = compared(result, "near_best")
    return comparison.near_best(problem, float(within), Limits(seconds))


class Importance(NamedTuple):
    """What each unit of columns is worth to the best fit.

    units: For each of the k units its columns, as columns of the problem.
    without, having, shape (k,): The least value of supports that lack the unit, and that have it,
        over the least value of all, where 0/0 is 1; NaN where there are none, and where the time
        was up before a search.
    status: How the searches for each have ended.
    """

    units: list[NDArray[np.intp]]
    without: Array
    having: Array
    status: list[Status]


def importance(result: Result, seconds: float | None) -> Importance:
    """What a fit loses without each unit, and what it loses by having each.

    Every unit takes one tree: without a unit of the best support, and with any other.

    seconds: The searches share so many seconds; None is no limit. What a search that ends early has
        found is returned, with its status.
    Raises InputError: As :func:`compared` says.
    """
    problem, comparison = compared(result, "importance")
    limits, rules = Limits(seconds), problem.constraints
    k = rules.n_units
    found = comparison.best(problem, limits.share(k + 1.0))
    assert found is not None  # The model is one of the supports.
    best, least = found
    inside = np.isin(np.arange(k), rules.units(best.support))
    values, statuses = np.full((2, k), np.nan), [best.status] * k
    values[inside.astype(int), np.arange(k)] = least
    met = [(inside, least)]
    for u in np.flatnonzero(~(rules.include | rules.exclude)).tolist():
        if (ended := limits.reached(0)) is not None:
            statuses[u] = Status.worst([statuses[u], ended])
            continue
        out, into = rules.exclude.copy(), rules.include.copy()
        (out if inside[u] else into)[u] = True
        if out.all():  # Nothing is left to fit.
            values[0, u] = problem.yy * comparison.weight[0]
            continue
        asked = replace(rules, include=into, exclude=out)
        own: dict[str, Any] = {"gamma": problem.given_gamma, "constraints": asked}
        other = SparseRidgeProblem.from_rows(problem.data, **own)
        found = comparison.best(other, limits.share(float(k - u)))
        if found is not None:
            statuses[u] = Status.worst([statuses[u], found[0].status])
            values[0 if inside[u] else 1, u] = found[1]
            met.append((np.isin(np.arange(k), rules.units(found[0].support)), found[1]))
    # A limit may have ended the first search, and a later one have met a better support, which has
    # some units and lacks the others.
    for has, value in () if best.proved else met:
        at = has.astype(int), np.arange(k)
        values[at], least = np.minimum(values[at], value), min(least, value)
    with np.errstate(divide="ignore", invalid="ignore"):
        without, having = np.where(values == least, 1.0, values / least)
    return Importance(list(rules.columns), without, having, statuses)
