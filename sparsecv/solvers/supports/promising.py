"""Which columns a search for good supports looks at, and their Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import LEAST_PIVOT, Array
from .rounding import Support, complete_support

# Supports are searched among the columns that are most correlated with y. Their number is
# CORRELATED_COLUMNS_TIMES_ROWS divided by the number of rows, but at least 50 and at most 200. The
# more rows there are, the fewer columns are correlated with y by chance. This was measured: with 50
# columns in place of 200, four tables of up to 155 rows had objectives that were 8 to 40 % larger
# on average, and two tables of 800 rows and more had objectives less than .4 % larger.
MAX_CORRELATED_COLUMNS = 200
LEAST_CORRELATED_COLUMNS = 50
CORRELATED_COLUMNS_TIMES_ROWS = 40_000
# After a step of forward selection the search also uses the units that are most correlated with the
# step's residual: this many, but not more units than columns are taken for their correlation with
# y. The number is a choice.
MAX_UNITS_OF_A_STEP = 100
# A search goes this many sizes beyond those that are wanted, because a good support may come from a
# larger one by leaving columns out. The number is a choice.
LOOK_AHEAD = 3


def correlated_columns(n: int | None) -> int:
    """How many columns that are correlated with y are searched, from n rows.

    n: None where rows are not known, which then count as few.

    Examples
    --------
    >>> correlated_columns(100), correlated_columns(400), correlated_columns(10_000)
    (200, 100, 50)
    """
    most = CORRELATED_COLUMNS_TIMES_ROWS // (n or 1)
    return max(LEAST_CORRELATED_COLUMNS, min(MAX_CORRELATED_COLUMNS, most))


def promising_columns(
    problem: SparseRidgeProblem, most: int, starts: Sequence[Support], share: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Array, Array]:
    """The columns of the units among which supports of up to ``most`` units are searched.

    They are the units that are included or in ``starts``, those of about ``share`` columns that are
    most correlated with y, and at every size 1, 2, 4, 8, … those of the columns that are most
    correlated with the residual of forward selection among the columns so far. The gains of all
    p columns are thus computed once for every doubling of the size, after which there are units for
    twice the size and ``LOOK_AHEAD`` more. All units are returned where they have at most ``share``
    columns, or where fewer than ``most`` units would be.

    A size here is a number of columns that forward selection takes, also where units have several.
    Sizes end at ``most``, at the largest rank or at the number of columns so far, whichever is
    least, or once all units are in.

    starts: Supports, as columns of the problem.
    Returns: The units, numbered among those that no constraint excludes (``constraints.left``),
        increasing; for every unit, the size of the forward selection that added it, 0 for units
        that are there from the beginning; their columns C, by unit; X_CᵀX_C; and X_Cᵀy. Every
        product of two columns is computed once.
    """
    # Where rows are few, their products cost less than products of a triangular factor of them.
    rules, left = problem.constraints, problem.constraints.left
    head, y = problem.data.X, problem.data.y
    m, widths, none = left.units.size, np.diff(left.first), np.empty(0, dtype=np.intp)

    def every_unit() -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Array, Array]:
        within = np.asarray(head) if rules.plain else head[:, left.columns]
        since = np.zeros(m, dtype=np.intp)
        return np.arange(m), since, left.columns, within.T @ within, within.T @ y

    def columns_of(units: NDArray[np.intp]) -> NDArray[np.intp]:
        ends = np.cumsum(widths[units])
        places = np.repeat(left.first[units] - ends + widths[units], widths[units])
        return left.columns[places + np.arange(places.size)]

    def nearest(slopes: Array) -> NDArray[np.intp]:
        """All units, those with the column most correlated with a residual first."""
        worth = np.abs(slopes) / lengths
        if rules.bounded:  # A column whose coefficient may not have the sign of the slope is last.
            worth[np.where(slopes > 0.0, rules.upper <= 0.0, rules.lower >= 0.0)] = 0.0
        by_unit = np.maximum.reduceat(worth[left.columns], left.first[:-1])
        return np.argsort(-by_unit, kind="stable")

    if left.columns.size <= share:
        return every_unit()
    lengths = np.maximum(np.sqrt(problem.squared_lengths), 1e-300)
    order = nearest(np.asarray(y @ head))
    first = order[: max(int(np.sum(np.cumsum(widths[order]) <= share)), 1)]
    given = left.place[rules.unit[np.concatenate([none, *starts])]]
    units = np.union1d(np.append(first, np.flatnonzero(left.include)), given[given >= 0])
    since = np.full(m, m)  # m marks a unit that is not searched.
    since[units] = 0
    columns = columns_of(units)
    within = head[:, columns]
    G, b = within.T @ within, within.T @ y
    size, ridge, step = 1, problem.gamma / 2.0, min(MAX_UNITS_OF_A_STEP, share)
    while units.size < m and size <= min(most, problem.rank_bound, b.size):
        order = complete_support(G, b, ridge, none, size)
        normal = G[np.ix_(order, order)] + ridge * np.eye(size)
        # At γ = 0 the columns may depend on each other, which least squares can take.
        coef = np.linalg.lstsq(normal, b[order], rcond=None)[0]
        order = nearest(np.asarray((y - within[:, order] @ coef) @ head))
        number = max(int((since[order[:step]] == m).sum()), 2 * size + LOOK_AHEAD - units.size)
        new = np.sort(order[since[order] == m][:number])
        since[new], units = size, np.append(units, new)
        columns = np.append(columns, columns_of(new))
        more = head[:, columns[b.size :]]
        cross = within.T @ more
        G, b = np.block([[G, cross], [cross.T, more.T @ more]]), np.append(b, more.T @ y)
        within, size = np.hstack([within, more]), 2 * size
    if units.size < most:
        return every_unit()
    units, order = np.sort(units), np.argsort(left.place[rules.unit[columns]], kind="stable")
    return units, since[units], columns[order], G[np.ix_(order, order)], b[order]


def principal_directions(
    G: Array, b: Array, first: NDArray[np.int64]
) -> tuple[Array, Array, NDArray[np.int64]]:
    """The Gram matrix of each unit's principal directions in place of its columns.

    The penalty of a unit does not change. Directions without length are left out, such as one of
    the centred indicators of all levels of a factor. One direction of a unit stays in any case.

    G, b: XᵀX and Xᵀy. first: The columns of unit u are first[u] … first[u+1] − 1.
    Returns: G, b and first of the directions.
    """
    G, b, stay, ends = G.copy(), b.copy(), np.ones(b.size, dtype=bool), [0]
    for begin, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
        if end - begin > 1:
            squares, directions = np.linalg.eigh(G[begin:end, begin:end])
            G[:, begin:end] = G[:, begin:end] @ directions
            G[begin:end] = directions.T @ G[begin:end]
            b[begin:end] = directions.T @ b[begin:end]
            stay[begin : end - 1] = squares[:-1] > LEAST_PIVOT * squares[-1]
        ends.append(ends[-1] + int(stay[begin:end].sum()))
    return G[np.ix_(stay, stay)], b[stay], np.array(ends)
