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
from numpy.typing import NDArray

from ..kernels.linalg import DETERMINED_SHARE, TIE, Array
from .problem import SparseRidgeProblem
from .result import Answer
from .rounding import EXCHANGED_SHARE_OF_YY
from .subset_fit import SubsetFit, inverse_and_inflation

# Exchanges are fitted where a quick formula puts the objective above that of the support by at most
# this share of yᵀy, which is far above the formula's rounding. It is a choice.
NEAR_SHARE = 1e-7


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

    ``TIE`` is a share of the larger value. The numbers returned are positions from 0.

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
    """The support that a best support becomes when units are exchanged, one for another at a time.

    An exchange is made if the support after it comes first in :func:`ranking`: its objective ties
    and it is the lexicographically first, or its objective is smaller by more than a tie. Nothing
    is exchanged where coefficients have bounds, or where the fit leaves nothing of y: rounding
    alone would order such supports.

    problem: Its τ is not used.
    support: Increasing columns.
    """
    if problem.constraints.bounded:
        return support
    best = problem.fit(support)
    # Ties are not transitive where rounding is at their limit, so that exchanges could go round in
    # a circle. At most 4p are made, a choice.
    for _ in range(4 * problem.p if best.objective > problem.nothing_left else 0):
        for other in _exchanged(problem, support):
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
    return bool(_exchanged(problem, support))


def first_answer(problem: SparseRidgeProblem, answer: Answer) -> Answer:
    """An answer that is proved, with the support that :func:`first_by_exchanges` leads to."""
    support = first_by_exchanges(problem, answer.support)
    if np.array_equal(support, answer.support):
        return answer
    objective = problem.objective(support)
    bound = min(answer.lower_bound, objective)
    return replace(answer, support=support, objective=objective, lower_bound=bound)


def _exchanged(problem: SparseRidgeProblem, support: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Supports that differ from one by one unit and may be as good, in lexicographic order."""
    rules, found = problem.constraints, list[NDArray[np.intp]]()
    own, free = rules.units(support), ~rules.exclude
    free[own] = False
    others = np.flatnonzero(free)
    if rules.grouped or others.size == 0:
        near = np.ones((own.size, others.size), dtype=np.bool_)
    else:
        near = _near(problem, support, others)
    near &= (rules.cost[others] <= rules.cost[own][:, None]) & ~rules.include[own][:, None]
    for i, k in np.argwhere(near).tolist():
        rest, other = support[rules.unit[support] != own[i]], others[k]
        found.append(np.sort(np.append(rest, np.flatnonzero(rules.unit == other))))
    return sorted(found, key=tuple)


def _near(
    problem: SparseRidgeProblem, support: NDArray[np.intp], others: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Whether another column may have as small an objective in the place of one of the support.

    Without column i of the support S the objective is larger by β_i²/d_i, d_i the entry i of the
    diagonal of (X_SᵀX_S + (γ/2) I)⁻¹. Let column j leave the residual e with S, and have the
    coefficient a_i on column i there. Then it takes (eᵀy + a_iβ_i/d_i)² / (|e|² + a_i²/d_i) off.

    others: The k columns that are not in the support.
    Returns: Shape (s, k).
    """
    s, ridge = support.size, 0.5 * problem.gamma
    if problem.gamma == problem.given_gamma:
        _, whole = problem.fit_and_factor(support)
    else:
        whole = problem.factor(support)  # The working γ keeps pivots above 0.
    inverse, inflation = inverse_and_inflation(whole[:s, :s])
    if not np.isfinite(inflation).all():
        return np.ones((s, others.size), dtype=np.bool_)
    products = (problem.rows[:, np.append(support, problem.p)].T @ problem.rows)[:, others]
    across = inverse.T @ products[:s]
    squares = problem.squared_lengths[others] + ridge
    left = squares - np.einsum("ij,ij->j", across, across)
    root = np.sqrt(np.einsum("ij,ij->i", inverse, inverse))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        on, own = inverse @ across / root, (inverse @ whole[:s, s])[:, None] / root
        left = left + on * on
        taken = (products[s] - whole[:s, s] @ across + on * own) ** 2 / left
    share = np.maximum(NEAR_SHARE, EXCHANGED_SHARE_OF_YY * np.sqrt(inflation))[:, None]
    determined = ~(left > DETERMINED_SHARE * squares)
    return np.asarray(determined | ~(own * own - taken > share * problem.yy))
