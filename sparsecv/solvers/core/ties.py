"""Which of several supports is the answer where their objectives are equal up to rounding.

The rule is the same for every search: of supports that tie the lexicographically first is taken.
Two supports tie where their fits, each by a fresh QR factorisation, differ by at most ``TIE``. A
tree of all sizes lists all supports that tie, and :func:`ranking` takes the first. A search of one
size ends with any of them, and :func:`first_by_exchanges` goes from there to the first one that
differs by exchanges of units. Supports whose columns span the same space, such as copies of columns
or all levels of a factor but one, differ by such exchanges alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..kernels.linalg import TIE, Array
from .problem import SparseRidgeProblem
from .result import Answer, nothing_left
from .subset_fit import SubsetFit

# Exchanges are fitted where a quick formula puts the objective above that of the support by at most
# this share of yᵀy, which is far above the formula's rounding. It is a choice.
NEAR_SHARE = 1e-7
# A column counts as determined by others, so that the formula says nothing of it, where they leave
# at most this share of its squared length. It is a choice.
DETERMINED_SHARE = 1e-9


def ranking(fits: Sequence[SubsetFit], supports: Sequence[Any]) -> list[int]:
    """The order of some fits, the best first; those that tie are in the order of their columns.

    Where the gain yᵀy − f of the best fit is smaller than its objective f, gains are compared, as
    they keep more digits.

    supports: One per fit, increasing columns.
    """
    if not fits:
        return []
    best = min(fits, key=lambda fit: fit.objective)
    by_gain = best.gain < best.objective
    values = [-fit.gain if by_gain else fit.objective for fit in fits]
    return ties_in_order(np.array(values), [tuple(support) for support in supports])


def ties_in_order(values: Array, keys: Sequence[Any]) -> list[int]:
    """The order of some values, the least first; those tie that exceed the least by at most TIE.

    Of the values above those that tie with the least, the least is taken in the same way.

    keys: They order the values that tie.
    """
    group, least, pairs = 0, -math.inf, list[tuple[int, int]]()
    for i in np.argsort(values, kind="stable").tolist():
        if values[i] - least > TIE * abs(values[i]):
            group, least = group + 1, float(values[i])
        pairs.append((group, i))
    return [i for _, i in sorted(pairs, key=lambda pair: (pair[0], keys[pair[1]]))]


def first_by_exchanges(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> NDArray[np.intp]:
    """The support that a best support leads to by exchanges of one unit for another.

    An exchange is made where the support then ties and comes first, or has a smaller objective by
    more than a tie. Nothing is exchanged within bounds on coefficients, and of fits that leave
    nothing, as rounding alone orders these.

    problem: Its τ is not used.
    support: Increasing columns.
    """
    if problem.constraints.bounded:
        return support
    best = problem.fit(support)
    # Ties are not transitive where rounding is at their limit, so that exchanges are counted.
    for _ in range(4 * problem.p if best.objective > nothing_left(problem.yy) else 0):
        for other in _exchanged(problem, support, best.objective):
            fit = problem.fit(other)
            if ranking([best, fit], [support, other])[0] == 1:
                support, best = other, fit
                break
        else:
            break
    return support


def has_ties(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> bool:
    """Whether exchanging one unit of a support for another may leave its objective as it is."""
    if problem.constraints.bounded:
        return False
    return bool(_exchanged(problem, support, problem.objective(support)))


def first_answer(problem: SparseRidgeProblem, answer: Answer) -> Answer:
    """An answer that is proved, with the support that :func:`first_by_exchanges` leads to."""
    support = first_by_exchanges(problem, answer.support)
    if np.array_equal(support, answer.support):
        return answer
    objective = problem.objective(support)
    bound = min(answer.lower_bound, objective)
    return replace(answer, support=support, objective=objective, lower_bound=bound)


def _exchanged(
    problem: SparseRidgeProblem, support: NDArray[np.intp], objective: float
) -> list[NDArray[np.intp]]:
    """Supports that differ from one by one unit and may be as good, in lexicographic order."""
    rules, found = problem.constraints, list[NDArray[np.intp]]()
    own = rules.units(support)
    others = np.setdiff1d(np.flatnonzero(~rules.exclude), own)
    for unit in own[~rules.include[own]].tolist():
        rest = support[rules.unit[support] != unit]
        near = others if rules.grouped else _near(problem, rest, others, objective)
        for other in near[rules.cost[near] <= rules.cost[unit]].tolist():
            found.append(np.sort(np.append(rest, np.flatnonzero(rules.unit == other))))
    return sorted(found, key=tuple)


def _near(
    problem: SparseRidgeProblem, rest: NDArray[np.intp], others: NDArray[np.intp], objective: float
) -> NDArray[np.intp]:
    """The columns beside which the columns ``rest`` may have an objective, or a smaller one.

    Column i takes (x_iᵀr)² / (|x_i|² + γ/2 − |v_i|²) off the objective of the other columns, r
    their residual and v_i what they explain of x_i.
    """
    s, table, ridge = rest.size, problem.triangle, 0.5 * problem.gamma
    factor = problem.factor(rest)  # The working γ keeps pivots above 0.
    products = table[:, np.append(rest, problem.p)].T @ table[:, others]
    with np.errstate(divide="ignore", invalid="ignore"):
        across = products[:s]
        if s > 0:
            across, _ = sla.lapack.dtrtrs(factor[:s, :s], across, trans=1)
        squares = np.einsum("ij,ij->j", table[:, others], table[:, others])
        left = squares + ridge - np.einsum("ij,ij->j", across, across)
        along = products[-1] - factor[:s, s] @ across
        value = factor[s, s] ** 2 - along**2 / left
    determined = ~(left > DETERMINED_SHARE * (squares + ridge))
    near = determined | ~(value > objective + NEAR_SHARE * problem.yy)
    return np.asarray(others[near], dtype=np.intp)
