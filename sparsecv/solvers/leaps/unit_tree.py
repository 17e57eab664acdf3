"""Leaps and bounds over units of columns, with bounds on coefficients.

A unit is a group of columns that enter together and count once. A node is a set of units, some of
which may not be dropped any more. A child drops one free unit, and the free units before it become
fixed. Every allowed subset of a node lacks some first unit in this order, so that every allowed
subset is below exactly one child. With A = (G_S + γ/2 I)⁻¹ and the ridge fit β = A b_S of a node,
dropping the columns D adds β_Dᵀ(A_DD)⁻¹β_D to the objective.

Bounds on coefficients only raise objectives, so that the ridge fit of a node bounds all supports
below it. Where the ridge fit is outside the bounds on coefficients, the fit within them, less what
it lacks to the optimum, is a tighter bound. As in ``tree`` losses are objectives less the objective
of the ridge fit on all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.bounded_fit import LACKING_SHARE, BoundedFit, fit_inside, new_bounded_fit, outside
from ..core.problem import SparseRidgeProblem
from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import (
    EPS,
    Array,
    Ints,
    allocated,
    order_steps,
    record,
    trailing_inverse,
)
from .leaps_node import LEAST_DIAGONAL_SHARE, Lists, enter_support, forget_supports, new_lists
from .open_nodes import OpenNode
from .tree import Search

FREE, FIXED, OUT = 0, 1, 2  # states of a unit at a node
RULES = np.dtype(
    [
        ("bounded", "i8"),  # 1 where coefficients have bounds
        ("ridge", "f8"),  # γ/2
    ],
    align=True,
)


class UnitTree(NamedTuple):
    """The path of a tree over m units of p columns, and the incumbents of every size.

    Columns are ordered by unit. Level 0 is the root; each level drops one unit.
    """

    lists: Lists  # of supports as bit masks of units
    first: NDArray[np.int64]  # (m+1,) columns of unit u are first[u] … first[u+1] − 1
    fit: BoundedFit  # fits within the bounds, whose arrays are work space of other steps too
    rules: Any  # of RULES
    columns_of: Array  # (p+1, p+1) the triangular factor R, one column per row; its last entry is 0
    state: Annotated[NDArray[np.int8], "levels m"]  # FREE, FIXED or OUT
    order: Annotated[Ints, "levels m"]  # free units, the one of largest added loss first
    cursor: Annotated[Ints, "levels"]  # place of the unit whose child comes next
    n_units: Annotated[Ints, "levels"]  # units that are not out
    n_fixed: Annotated[Ints, "levels"]  # units that may not be dropped
    A: Annotated[Array, "levels p p"]  # in the places of the node's columns
    beta: Annotated[Array, "levels p"]
    factorised_diagonal: Annotated[Array, "levels p"]  # diagonal of A at the last factorisation
    child_bound: Annotated[Array, "levels m"]  # a bound on the losses of supports without a unit
    loss: Annotated[Array, "levels"]  # of the ridge fit
    bound: Annotated[Array, "levels"]  # the largest bound of the node and of those above
    inside: Annotated[Array, "levels p"]  # coefficients within the bounds on coefficients
    least_bound: Array  # (m+2,) least bound of a support within bounds on coefficients
    dropped: Annotated[Ints, "p"]  # columns that the child at hand lacks
    units: Annotated[Ints, "m"]  # work space
    steps: Annotated[Array, "m"]
    block: Annotated[Array, "1 p p"]


def new_unit_tree(problem: SparseRidgeProblem, sizes: NDArray[np.intp], n_best: int) -> UnitTree:
    """Allocate a tree over the units of a problem that are not excluded.

    At most 16 supports of a size are kept whose losses are equal up to rounding: a choice.

    sizes: Numbers of units wanted.
    n_best: How many of the best supports of each size are wanted.
    """
    asked, ridge, left = problem.constraints, problem.gamma / 2.0, problem.constraints.left
    R, p, m = problem.factor(left.columns), left.columns.size, left.units.size
    columns_of = np.ascontiguousarray(R.T)
    columns_of[p, p] = 0.0
    fit = new_bounded_fit(R, asked.lower[left.columns], asked.upper[left.columns])
    bounded = bool(np.isfinite([fit.lower, fit.upper]).any())
    lists = new_lists(m, sizes, 1, 16, n_best, n_best > 1)
    lists.now["least_pivot"], lists.now["full"] = np.sqrt(ridge), R[p, p] ** 2
    # Many supports tie within bounds, as coefficients at bounds of 0 may be left out. A node is
    # searched for supports that are better by more than 1e-9 of the objective: a choice.
    lists.now["improvement"] = 1e-9 if bounded else 0.0
    return allocated(
        UnitTree,
        {"p": p, "m": m, "levels": m + 1},
        lists=lists,
        first=left.first,
        fit=fit,
        rules=record(RULES, bounded=bounded, ridge=ridge),
        columns_of=columns_of,
        least_bound=np.full(m + 2, np.inf),
    )


@kernel(inner=True)
def make_child(tree, level, j, fixing):
    """Write the states of the child without the j-th unit of ``order`` one level below.

    fixing: Whether the units before the j-th become fixed.
    The numbers of its units, and of those that are fixed, are written for that level too.
    """
    child = tree.state[level + 1]
    for u in range(child.shape[0]):
        child[u] = tree.state[level, u]
    child[tree.order[level, j]] = OUT
    for a in range(j if fixing else 0):
        child[tree.order[level, a]] = FIXED
    tree.n_units[level + 1] = tree.n_units[level] - 1
    tree.n_fixed[level + 1] = tree.n_fixed[level] + (j if fixing else 0)


@kernel(inner=True)
def list_columns(tree, state, columns):
    """Write the columns of the units that are not out to ``columns``, increasing; their number."""
    count = 0
    for u in range(state.shape[0]):
        if state[u] != OUT:
            for c in range(tree.first[u], tree.first[u + 1]):
                columns[count] = c
                count += 1
    return count


@kernel(inner=True)
def list_dropped(tree, unit):
    """Write the columns of a unit to ``tree.dropped``; their number."""
    count = tree.first[unit + 1] - tree.first[unit]
    for c in range(count):
        tree.dropped[c] = tree.first[unit] + c
    return count


@kernel(inner=True)
def factorise_units(tree, level, m):
    """Compute A and β of a level, whose columns are ``tree.fit.columns[:m]``, from the factor."""
    T, work, columns = tree.fit.triangle, tree.fit.work, tree.fit.columns
    least = tree.lists.now[0].least_pivot
    ridge_triangle(T, tree.columns_of, columns, m, 0.0, True, work, 0.0)
    for c in range(m):  # In exact arithmetic no pivot is smaller than √(γ/2).
        T[c, c] = min(T[c, c], -least)
    trailing_inverse(T, 0, m, tree.block, work, 0)
    for a in range(m):
        tree.beta[level, columns[a]] = work[0, a]
        tree.factorised_diagonal[level, columns[a]] = tree.block[0, a, a]
        for c in range(m):
            tree.A[level, columns[a], columns[c]] = tree.block[0, a, c]


@kernel(inner=True)
def drop_columns(tree, level, m, n):
    """Compute A and β one level below by dropping one column after the other.

    The level's columns are ``tree.fit.columns[:m + n]``, of which the child keeps the first m. What
    dropping each of the others adds to the loss is added to ``tree.loss`` of the level below.
    :func:`added_loss` may know only a part of it, which bounds the child and is not its loss.

    Returns: False where too many digits cancel; then :func:`factorise_units` has to compute them.
    """
    A, beta, columns, below = tree.A, tree.beta, tree.fit.columns, level + 1
    for a in range(m + n):
        i = columns[a]
        beta[below, i] = beta[level, i]
        tree.factorised_diagonal[below, i] = tree.factorised_diagonal[level, i]
        for c in range(m + n):
            A[below, i, columns[c]] = A[level, i, columns[c]]
    for left in range(m + n - 1, m - 1, -1):
        j = columns[left]
        if not A[below, j, j] > LEAST_DIAGONAL_SHARE * A[level, j, j]:
            return False
        pivot = 1.0 / A[below, j, j]
        tree.loss[below] += beta[below, j] ** 2 * pivot
        for a in range(left):
            i = columns[a]
            weight = A[below, i, j] * pivot
            beta[below, i] -= weight * beta[below, j]
            for c in range(left):
                A[below, i, columns[c]] -= weight * A[below, j, columns[c]]
    fresh = True
    for a in range(m):
        i = columns[a]
        least = LEAST_DIAGONAL_SHARE * tree.factorised_diagonal[below, i]
        fresh = fresh and A[below, i, i] > least
    return fresh


@kernel(inner=True)
def added_loss(tree, level, n, beta):
    """β_Dᵀ(A_DD)⁻¹β_D for the n columns D = ``tree.dropped`` of the level, by elimination.

    A column of which elimination leaves too few digits stays: the sum without it is not larger.
    """
    D, coef, total = tree.block[0], tree.fit.coef, 0.0
    for d in range(n):
        j = tree.dropped[d]
        coef[d] = beta[j]
        for e in range(n):
            D[d, e] = tree.A[level, j, tree.dropped[e]]
    for d in range(n):
        pivot = D[d, d]
        j = tree.dropped[d]
        if not pivot > LEAST_DIAGONAL_SHARE * tree.A[level, j, j]:
            continue
        total += coef[d] * coef[d] / pivot
        for e in range(d + 1, n):
            weight = D[d, e] / pivot
            coef[e] -= weight * coef[d]
            for f in range(d + 1, n):
                D[e, f] -= weight * D[d, f]
    return total


@kernel(inner=True)
def order_units(tree, level, own):
    """List the free units of a level by what dropping them adds, the largest first, with bounds.

    own: A bound on the losses of the level's supports within the bounds on coefficients.
    """
    n = 0
    for u in range(tree.state.shape[1]):
        if tree.state[level, u] != FREE:
            continue
        count = list_dropped(tree, u)
        rise = added = added_loss(tree, level, count, tree.beta[level])
        if tree.rules[0].bounded > 0:
            rise = added_loss(tree, level, count, tree.inside[level])
            rise *= 1.0 - 2.0 * LACKING_SHARE
        tree.units[n], tree.steps[n] = u, rise
        least = max(tree.loss[level] + added, own + rise, tree.bound[level])
        tree.child_bound[level, u] = least
        n += 1
    order_steps(tree.steps, n, tree.order[level])
    for a in range(n):
        tree.order[level, a] = tree.units[tree.order[level, a]]
    tree.cursor[level], tree.n_fixed[level] = n - 1, tree.n_units[level] - n


@kernel(inner=True)
def may_hold_better(lists, bound, low, high):
    """Whether supports of this bound with a wanted size from ``low`` to ``high`` may be wanted."""
    s = lists.next_wanted[low]
    while lists.now[0].each_size == 1 and s < high and bound > lists.max_searched[s, 0]:
        s = lists.next_wanted[s + 1]
    return s <= high and bound <= lists.max_searched[s, 0]


@kernel(inner=True)
def begin_level(tree, level, m, above):
    """Complete a level whose A, β, state and loss are known: its bound, incumbent and children.

    m: Number of its columns ``tree.fit.columns``. With bounds on coefficients ``tree.inside`` holds
        coefficients of these columns within the bounds.
    above: The bound of its parent.
    """
    loss, fit, size = tree.loss[level], tree.fit, tree.n_units[level]
    own, value, bounded = loss, loss, tree.rules[0].bounded > 0
    if bounded and outside(fit, tree.beta[level], m):
        inflation = 0.0
        for a in range(m):
            i = fit.columns[a]
            fit.coef[i] = tree.inside[level, i]
            inflation += tree.A[level, i, i] * fit.lengths[i] ** 2
        # The least eigenvalue of the Gram matrix at unit length is at least 1/inflation; half of
        # that is taken. From 1e13 on A has at best three digits, and γ/2 alone bounds it.
        curvature = 0.5 / inflation if inflation < 1e13 else 0.0
        value, lacking = fit_inside(fit, m, tree.rules[0].ridge, curvature)
        own = max(value - lacking, 0.0)
        for a in range(m):
            tree.inside[level, fit.columns[a]] = fit.coef[fit.columns[a]]
    elif bounded:
        for a in range(m):
            tree.inside[level, fit.columns[a]] = tree.beta[level, fit.columns[a]]
    tree.bound[level] = max(own, loss, above)
    for w in range(tree.lists.support.shape[0]):
        tree.lists.support[w] = np.uint64(0)
    for u in range(tree.state.shape[1]):
        if tree.state[level, u] != OUT:
            tree.lists.support[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
    enter_support(tree.lists, size, 0, value)
    if bounded:
        tree.least_bound[size] = min(tree.least_bound[size], own)
    order_units(tree, level, own)


@kernel
def begin_units(tree, included):
    """Make all units the root, of which those with ``included`` (m,) = 1 are fixed."""
    p, m, now = tree.fit.coef.shape[0], tree.state.shape[1], tree.lists.now[0]
    now.level, now.nodes = 0, 1
    forget_supports(tree.lists)
    for u in range(m):
        if included[u] == 1:
            tree.state[0, u] = FIXED
    list_columns(tree, tree.state[0], tree.fit.columns)
    factorise_units(tree, 0, p)
    inflation, now.reach = 0.0, 1.0
    for i in range(p):
        factor = tree.A[0, i, i] * tree.fit.lengths[i] ** 2
        inflation = max(inflation, factor)
        # Within bounds on coefficients a fit explains at most ‖Xβ‖ ≤ 2|y|.
        now.reach += (2.0 if tree.rules[0].bounded > 0 else 1.0) * np.sqrt(factor)
    now.tie, now.tied_loss = min(1e-11 + 20.0 * EPS * inflation, 1e-5), 2.0 * EPS * now.full
    tree.n_units[0] = m
    begin_level(tree, 0, p, 0.0)


@kernel(inner=True)
def descend(tree, level, j):
    """Complete the child without the j-th unit of ``order`` one level below, whose state is set.

    A, β, loss, bound, incumbents and the order of children are written for that level.
    """
    below, columns = level + 1, tree.fit.columns
    m = list_columns(tree, tree.state[below], columns)
    n = list_dropped(tree, tree.order[level, j])
    for a in range(n):
        columns[m + a] = tree.dropped[a]
    tree.loss[below] = tree.loss[level]
    if not drop_columns(tree, level, m, n):
        factorise_units(tree, below, m)
        tree.loss[below] = tree.fit.triangle[m, m] ** 2
    for a in range(m):
        tree.inside[below, columns[a]] = tree.inside[level, columns[a]]
    begin_level(tree, below, m, tree.bound[level])


@kernel
def drop_one_by_one(tree, keep):
    """Enter the supports on a path from the root that drops the unit that adds the least loss.

    Only incumbents and the levels below the root are written.

    keep: (m,), units with 1 are dropped after all others.
    """
    level = 0
    while True:
        chosen = tree.cursor[level]
        for a in range(chosen - 1, -1, -1):
            if keep[tree.order[level, a]] < keep[tree.order[level, chosen]]:
                chosen = a
        if chosen < 0 or tree.n_units[level] == 1:
            return
        make_child(tree, level, chosen, False)
        descend(tree, level, chosen)
        level += 1


@kernel
def advance_units(tree, max_nodes):
    """Search on, depth first, for at most ``max_nodes`` nodes; whether the tree is exhausted."""
    now = tree.lists.now[0]
    level, done = now.level, 0
    while level >= 0 and done < max_nodes:
        j = tree.cursor[level]
        if j < 0:
            level -= 1
            continue
        tree.cursor[level] = j - 1
        done += 1
        bound, size = tree.child_bound[level, tree.order[level, j]], tree.n_units[level] - 1
        fixed = tree.n_fixed[level] + j
        low = max(fixed, 1)
        if size < 1 or not may_hold_better(tree.lists, bound, low, size):
            continue
        make_child(tree, level, j, True)
        descend(tree, level, j)
        if fixed < size and may_hold_better(tree.lists, tree.bound[level + 1], low, size - 1):
            level += 1
    now.level, now.nodes = level, now.nodes + done
    return level < 0


class UnitLeaps(Search):
    """One tree for the best allowed supports of some sizes, numbers of units, of a problem.

    n_best: With 1 the best support of at most every size is wanted. With more, so many of the best
        supports that have exactly every size.
    """

    def __init__(self, problem: SparseRidgeProblem, sizes: NDArray[np.intp], n_best: int) -> None:
        self.problem, self.sizes, self.n_best = problem, sizes, n_best
        self.rules = problem.constraints
        self.tree = new_unit_tree(problem, sizes, n_best)
        self.lists = self.tree.lists
        begin_units(self.tree, self.rules.left.include)
        # Some tens of milliseconds pass between two looks.
        self.chunk = max(int(2e7 / (self.rules.left.columns.size + 10.0) ** 2), 1)

    def seed(self, starts: Sequence[NDArray[np.intp]]) -> None:
        """Enter incumbents by backward elimination, of any units and of those outside a start.

        starts: Good supports, as columns of the problem.
        """
        for start in [np.empty(0, dtype=np.intp), *starts]:
            keep = np.zeros(self.rules.left.units.size, dtype=np.int8)
            keep[self.rules.left.place[self.rules.units(start)]] = 1
            drop_one_by_one(self.tree, keep)

    def advance(self, most: int) -> bool:
        """Search at most so many nodes more; whether no node is open then."""
        return bool(advance_units(self.tree, most))

    def candidates(self, n: int) -> list[list[NDArray[np.intp]]]:
        """For every size the n best supports, and supports that tie with the last up to rounding.

        With n = 1 supports of fewer units are filled up to the size.
        """
        least = self.rules.columns_of(np.flatnonzero(self.rules.include))
        found, losses, best = [], self.lists.loss[:, 0, 0].tolist(), [0]
        for size in range(1, len(losses)):  # the size up to each whose best support is best
            before = best[-1]
            best.append(size if before == 0 or losses[size] <= losses[before] else before)
        for size in self.sizes.tolist():
            of_size = best[size] if n == 1 else size
            units = [self.rules.left.units[some] for some in self.listed(of_size, n)]
            supports = [self.rules.columns_of(some) for some in units]
            if n == 1:
                supports = [self.rules.padded(s, size) for s in supports or [least]]
            found.append(supports)
        return found

    def open_nodes(self) -> list[OpenNode]:
        """The node of all supports where a node is open; intervals are not made of single nodes."""
        if int(self.now("level")) < 0:
            return []
        p = self.problem.p
        return [OpenNode(np.empty(0, dtype=np.intp), np.arange(p, dtype=np.intp), -1)]

    def open_bound(self) -> Array:
        """For every size a lower bound on the objective of supports that were not searched.

        With ``n_best`` = 1 and bounds on coefficients that bounds the supports that were searched,
        too. Rounding is not taken off.
        """
        tree, sizes = self.tree, self.sizes
        bound = np.full(sizes.size, np.inf)
        for level in range(int(self.now("level")) + 1):
            for j in range(int(tree.cursor[level]) + 1):
                low = max(tree.n_fixed[level] + j, 1)
                below = (low <= sizes) & (sizes < tree.n_units[level])
                loss = tree.child_bound[level, tree.order[level, j]]
                bound[below] = np.minimum(bound[below], loss)
        if tree.rules[0].bounded > 0 and self.n_best == 1:
            for limit in (tree.least_bound, self.lists.max_searched[:, 0]):
                bound = np.minimum(bound, np.minimum.accumulate(limit)[sizes])
        return bound + float(self.now("full"))
