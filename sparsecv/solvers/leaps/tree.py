"""Depth-first search of a leaps-and-bounds tree (Furnival & Wilson 1974), on XᵀX + γ/2 I.

The objective f_S of the ridge fit on a node S is a lower bound for every support below the node.
Objectives are kept as the loss above the full ridge fit: f_S − f_full is a sum of positive terms
β_j²/A_jj, so that it keeps its digits whether γ is 1e-8 or 1e8.

One tree answers one problem, or the n problems that each lack one row. Then the Gram matrices of
problem i are those of the full problem less row (z_i, t_i). On a node S with ridge fit β,
A = (G_S + γ/2 I)⁻¹, W = A Z_Sᵀ, residuals r and leverages h, the objective of problem i is
f_S − r_i²/(1 − h_i); dropping member m adds (β_m − W_mi r_i/(1−h_i))² / (A_mm + W_mi²/(1−h_i)).
A child is pruned only if no support below the child can improve a problem's incumbent of any size.
Of one problem without deleted rows, sizes are closed one by one (:func:`~.leaps_node.open_sizes`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.leaves import FREE, IN, OUT, Leaves
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status
from ..kernels.compiled import kernel
from ..kernels.linalg import EPS, Array, Mask, dot, from_mask, has_bit, order_steps
from ..supports.rounding import forward_order, stacked
from .inverse import evaluate_columns, solve_rows, update_columns
from .leaps_node import (
    NOW,
    drop,
    enter_support,
    factorise,
    forget_supports,
    highest_rank,
    is_listed,
    mask_child,
    new_tree,
    open_sizes,
    put_in_list,
    put_in_order,
    wanted_from,
)
from .lines import hand_out, narrow_lines
from .table import TreeTable
from .within import begin_within, bound_members, fit_child, key_members

# Within bounds a unit whose coefficients are 0 changes an objective by rounding alone, which is at
# most this share of it; the value is a choice.
SAME_SHARE = 1e-12
# No path and no supports, for :func:`proceed`.
NO_PATH, NOTHING = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64)


@kernel(inner=True)
def begin(tree):
    """Forget all supports and make the full set of columns the root.

    On entry ``tree.triangle`` holds the upper triangular R with RᵀR = [X y]ᵀ[X y], γ/2 added to the
    first p diagonal entries, and ``now.least_pivot`` is √(γ/2). With M = G + γ/2 I and A = M⁻¹,
    supports are compared by fresh fits where their losses differ by a share of at most
    min(1e-11 + 40u·v, 1e-5) and 4u·full, with v = max_j A_jj M_jj, u the rounding unit and ``full``
    the objective of the fit on all columns: β_j of size √(A_jj·full) is off by about u√v of it, and
    a loss by about 2u√(v·loss·full) ≤ u(v·loss + full). What is proved does not depend on this
    window. As |β_j| ≤ √A_jj |y| on all columns, and A_jj is smaller on fewer columns,
    Σ_j √(A_jj M_jj) bounds Σ ℓ_j|β_j|/|y| for the fits of all nodes.
    """
    lists, now, m, p = tree.lists, tree.lists.now[0], tree.mask.shape[0], tree.scale.shape[0]
    now.level, now.nodes, tree.fixed[0] = 0, 1, 0
    now.full = tree.triangle[p, p] ** 2
    for c in range(p + 1):
        for a in range(p + 1):
            tree.columns_of[c, a] = tree.triangle[a, c]
    tree.columns_of[p, p] = 0.0
    for w in range(tree.mask.shape[1]):
        tree.mask[0, w] = np.uint64(0)
    for a in range(m):
        tree.free[0, a] = a
        tree.mask[0, a >> 6] |= np.uint64(1) << np.uint64(a & 63)
    factorise(tree, 0)
    inflation, total, now.reach, shrunk = 0.0, 0.0, 1.0, 0.0
    for a in range(p):
        shrunk += now.least_pivot**2 * tree.A[0, a, a] / p
        column = tree.columns_of[a]
        square = max(dot(column, column, p), tree.scale[a] ** 2)
        factor = tree.A[0, a, a] * square
        inflation = max(inflation, factor)
        total += factor
        # Within bounds on coefficients a fit explains at most ‖Xβ‖ ≤ 2|y|.
        now.reach += (2.0 if tree.bounded > 0 else 1.0) * np.sqrt(factor)
    now.tie, now.tied_loss = min(1e-11 + 20.0 * EPS * inflation, 1e-5), 2.0 * EPS * now.full
    # As (γ/2)A_jj ≤ 1, s = (γ/2)Σ β_j² of d members is off by at most 2u√(v·d·s·full), which is at
    # most u·v·d·s + u·full.
    now.share = now.least_pivot**2 * (1.0 - p * now.tie)
    # Where the ridge is less, the bound closes too few sizes for its time (30 to 45 columns).
    if shrunk < 1.0 / 3.0:
        now.share = 0.0
    tree.loss[0, 0] = 0.0
    if tree.bounded > 0:
        begin_within(tree, total)
    # The root is factorised twice: the first time shows in which order its members are to stand.
    order_members(tree)
    factorise(tree, 0)
    if tree.bounded > 0:
        bound_members(tree, 0)
    forget_supports(lists)
    value = tree.within.value[0] if tree.bounded > 0 else 0.0
    lists.max_kept[m:] = lists.max_searched[m:] = value
    for w in range(tree.mask.shape[1]):
        lists.support[w] = tree.mask[0, w]
    for i in range(lists.n.shape[1]):  # The full set is the only support of its size.
        put_in_list(lists, m, i, value)
    if tree.t.shape[0] > 0:
        fit_rows(tree, 0)


@kernel(inner=True)
def order_members(tree):
    """List the free members of the root, which are all units, those that add most first.

    Units that are included become fixed.
    """
    m, v = tree.mask.shape[0], 0
    order_steps(tree.least_added[0], m, tree.order)
    for a in range(m):
        unit = tree.free[0, tree.order[a]]
        if tree.included[unit] == 0:
            tree.members[v] = unit
            v += 1
    for a in range(v):
        tree.free[0, a] = tree.members[a]
    tree.fixed[0] = m - v


@kernel(inner=True)
def fit_rows(tree, level):
    """Compute leverages, residuals and W of the open problems at a node just factorised."""
    u, m = tree.n_columns[level], 0
    for a in range(tree.mask.shape[0] - level):
        m += tree.first[tree.members[a] + 1] - tree.first[tree.members[a]]
    k = m - u
    triangle = tree.triangle
    # Of V = T⁻ᵀ Z_Sᵀ leverages and residuals are sums over members.
    remain, deleted, V, W = tree.one_minus_leverage, tree.deleted_residual, tree.V, tree.W
    n, problem_of = tree.n_open[level], tree.problem_of
    for i in range(n):
        remain[level, i] = 1.0
        deleted[level, i] = tree.t[problem_of[level, i]]
    solve_rows(tree, level, m)
    for a in range(m):
        z = triangle[a, m]
        for i in range(n):
            v = V[a, i]
            remain[level, i] -= v * v
            deleted[level, i] -= z * v
    for i in range(n):
        deleted[level, i] /= remain[level, i]
    # The rows of W = T⁻¹V that belong to free members need the trailing triangle only.
    base = tree.offset[level]
    for a in range(u - 1, -1, -1):
        for i in range(n):
            W[base + a, i] = V[k + a, i]
        for c in range(a + 1, u):
            weight = triangle[k + a, k + c]
            for i in range(n):
                W[base + a, i] -= weight * W[base + c, i]
        inverse = 1.0 / triangle[k + a, k + a]
        for i in range(n):
            W[base + a, i] *= inverse


@kernel(inner=True)
def list_open_problems(tree, level, low, improved):
    """List the problems that the child is open for; whether some of its parent's are left out.

    A child that can improve three quarters of its parent's problems keeps all of them; otherwise
    the problems that it can improve are copied together. The share is measured for leave-one-out.

    low: Least wanted size that the child reaches.
    improved: How many problems the child can improve at that size.
    """
    count, below = tree.n_open[level], level + 1
    problem_of, losses, most = tree.problem_of, tree.child_loss, tree.lists.max_searched
    every = improved >= 0.75 * count
    n_open = 0
    for i in range(count):
        if every or losses[i] <= most[low, problem_of[level, i]]:
            tree.parent_place_of[n_open] = i
            problem_of[below, n_open] = problem_of[level, i]
            tree.loss[below, n_open] = losses[i]
            n_open += 1
    tree.n_open[below] = n_open
    return not every


@kernel(inner=True)
def update_rows(tree, level, j, some):
    """Compute leverages, residuals and W of the child without free member j from its parent's.

    Dropping member j takes A_cj A_jᵀ/A_jj off row c of A. So with W_j the row of W of member j, row
    c of W loses W_j A_cj/A_jj, 1 − h_i grows by W_ji²/A_jj, and r_i grows by W_ji β_j/A_jj.

    On entry the parent's arrays at ``level`` are complete. ``drop`` has written the number of the
    child's fixed members and, in ``parent_place``, the place of each of its free members among the
    parent's. :func:`list_open_problems` has written which of the parent's problems the child is
    open for: their number to ``n_open``, their places to ``parent_place_of``. Writes the child's
    rows of ``W``, which begin at ``offset`` of its level, ``one_minus_leverage`` and
    ``deleted_residual``, which is r/(1 − h).

    some: Whether the child is open for only some of its parent's problems; otherwise their places
        are those of the parent.
    """
    A, W, parent_place, place = tree.A, tree.W, tree.parent_place, tree.parent_place_of
    below = level + 1
    n = tree.n_open[below]
    if tree.wide > 0:
        update_columns(tree, level, j)
        return
    pivot = 1.0 / A[level, j, j]
    ratio = tree.beta[level, j] * pivot
    dropped, target, origin = tree.offset[level] + j, tree.offset[below], tree.offset[level]
    for a in range(tree.n_columns[below]):
        c = parent_place[below, a]
        weight = A[level, j, c] * pivot
        if some:
            for i in range(n):
                W[target + a, i] = W[origin + c, place[i]] - weight * W[dropped, place[i]]
        else:
            for i in range(n):
                W[target + a, i] = W[origin + c, i] - weight * W[dropped, i]
    remain, deleted = tree.one_minus_leverage, tree.deleted_residual
    for i in range(n):
        o = place[i]
        w = W[dropped, o]
        grown = remain[level, o] + w * w * pivot  # a sum of positive terms: no digits cancel
        deleted[below, i] = (deleted[level, o] * remain[level, o] + w * ratio) / grown
        remain[below, i] = grown


@kernel(inline=True)
def evaluate(tree, level, j, size, low):
    """Losses of the child without free member j for every open problem, in ``tree.child_loss``.

    size, low: Columns of the child, and the least wanted size that the child reaches.
    Returns: How many problems the child improves at its own size, and how many at size ``low`` a
        support below the child may improve.
    """
    W, loss, losses, problem_of = tree.W, tree.loss, tree.child_loss, tree.problem_of
    remain, deleted = tree.one_minus_leverage, tree.deleted_residual
    kept, searched = tree.lists.max_kept, tree.lists.max_searched
    n, better, promising = tree.n_open[level], 0, 0
    alone = tree.t.shape[0] == 0
    if tree.wide > 0:
        evaluate_columns(tree, level, j)
    elif alone:
        losses[0] = loss[level, 0] + tree.added_loss[level, j]
    else:
        row, b, d = tree.offset[level] + j, tree.beta[level, j], tree.diagonal[level, j]
        for i in range(n):
            w = W[row, i]
            shifted = b - w * deleted[level, i]
            losses[i] = loss[level, i] + shifted * shifted / (d + w * w / remain[level, i])
    if alone:
        better += losses[0] <= kept[size, 0]
        promising += losses[0] <= searched[low, 0] or size > tree.pruned_up_to
        return better, promising
    if n == losses.shape[0]:
        for i in range(n):
            better += losses[i] <= kept[size, i]
            promising += losses[i] <= searched[low, i]
    else:
        for i in range(n):
            better += losses[i] <= kept[size, problem_of[level, i]]
            promising += losses[i] <= searched[low, problem_of[level, i]]
    return better, n if size > tree.pruned_up_to else promising


@kernel(inline=True)
def make_child(tree, level, j, low, promising, one_path):
    """Make the child without free member j the node one level below.

    low: Least wanted size that the child reaches.
    promising: How many problems a support below the child may improve at that size.
    one_path: Whether all other free members stay free, and all problems open.
    Returns: False where no support below the child can improve an incumbent: then the child is not
        completed.
    """
    updated = drop(tree, level, j, one_path)
    below, alone = level + 1, tree.t.shape[0] == 0
    if alone:
        loss = tree.loss[below, 0] = tree.child_loss[0]
        share = tree.lists.now[0].share
        closes = share > 0.0 and not one_path
        if closes and not open_sizes(tree, below, loss, share if updated else 0.0):
            return False
    if tree.bounded > 0:
        key_members(tree, level, tree.mask.shape[0] - below - tree.fixed[below], updated)
    put_in_order(tree, level, j)
    if not updated:
        factorise(tree, below)
    if tree.bounded > 0:
        bound_members(tree, below)
    if alone:
        return True
    fewer = list_open_problems(tree, level, low, tree.n_open[level] if one_path else promising)
    if updated:
        update_rows(tree, level, j, fewer)
    else:
        fit_rows(tree, below)
    return True


@kernel(inner=True)
def enter_child(tree, level, j, size):
    """Enter the child without free member j, whose losses are in ``child_value``, where wanted."""
    mask_child(tree, level, j)
    if tree.gathers > 0:
        hand_out(tree)
        return
    for i in range(tree.n_open[level]):
        enter_support(tree.lists, size, tree.problem_of[level, i], tree.child_value[i])


@kernel(inner=True)
def enter_path(tree, rank):
    """Enter the supports on one path from the root that drops one member after the other.

    rank, shape (≥ m,): The member of highest rank is dropped, of members of equal rank the member
        that adds the least loss, until one member, or those that are fixed, are left.
    """
    m = tree.mask.shape[0]
    for level in range(m - max(tree.fixed[0], 1)):
        size, j = m - level - 1, highest_rank(tree, level, rank)
        evaluate(tree, level, j, size, size)
        if tree.bounded > 0:
            mask_child(tree, level, j)
            fit_child(tree, level, j, size, size)
        enter_child(tree, level, j, size)
        make_child(tree, level, j, size, 0, True)


@kernel(inner=True)
def advance(tree, max_nodes):
    """Search on for at most ``max_nodes`` nodes, depth first, from where the call before left.

    A node's children drop one free member each; ``cursor`` is the member whose child comes next,
    ``loss`` the node's objective.

    Returns: Whether the tree is exhausted.
    """
    lists, now, m = tree.lists, tree.lists.now[0], tree.mask.shape[0]
    cursor, fixed, least, wanted = tree.cursor, tree.fixed, tree.least_added, lists.next_wanted
    loss, searched, alone = tree.loss, lists.max_searched, tree.t.shape[0] == 0
    closes = alone and now.share > 0.0
    level, done = now.level, 0
    for size in range(m if now.nodes == 1 else 0):
        tree.open_from[0, size] = wanted[size]
    while level >= 0 and (done < max_nodes or cursor[level] < 0):
        size = m - level - 1
        j = cursor[level]
        if j < 0:
            level -= 1
            continue
        if closes:
            wanted = tree.open_from[level]
        # Children that are pruned are skipped.
        if alone and size <= tree.pruned_up_to:
            last = max(j - max_nodes + done + 1, 0)
            base, k, high = loss[level, 0], fixed[level], lists.max_kept[size, 0]
            while j > last and base + least[level, j] > max(high, searched[wanted[k + j], 0]):
                j -= 1
                done += 1
        cursor[level] = j - 1
        done += 1
        if size < 1:
            continue
        k = fixed[level] + j
        low = wanted[k]
        deeper = k < size and low < size  # The child has a free member and reaches a wanted size.
        if not deeper:
            low = size
        better, promising = evaluate(tree, level, j, size, low)
        if tree.gathers > 0 and not alone:
            better, promising = narrow_lines(tree, level, j, size, low)
        if tree.bounded > 0 and better + promising > 0:
            mask_child(tree, level, j)
            better, promising = fit_child(tree, level, j, size, low)
        if better > 0:
            enter_child(tree, level, j, size)
        if deeper and promising > 0 and make_child(tree, level, j, low, promising, False):
            level += 1
    now.level, now.nodes = level, now.nodes + done
    return level < 0


@kernel(inner=True)
def enter_paths(tree, rank, known):
    """Enter the supports on a path from the root, and those on paths to known supports.

    A path to a known support drops the columns outside the support first, and then those inside.

    rank, int64 (m,): That of the first path, as :func:`enter_path` takes it; it is overwritten.
        Without entries there is no path at all.
    known, int64 (supports, m): Members of supports of any size, ended by −1.
    """
    lists, m = tree.lists, rank.shape[0]
    if m > 0:
        enter_path(tree, rank)
    for i in range(known.shape[0] if m > 0 else 0):
        size = 0
        for w in range(lists.support.shape[0]):
            lists.support[w] = np.uint64(0)
        for a in range(m):
            rank[a] = 1
        while size < m and known[i, size] >= 0:
            unit = known[i, size]
            rank[unit] = 0
            lists.support[unit >> 6] |= np.uint64(1) << np.uint64(unit & 63)
            size += 1
        if size > 0 and not is_listed(lists, size, 0):
            enter_path(tree, rank)


@kernel(inner=True)
def write_best(tree, best):
    """Write the members of the best support of every wanted size to the size's row of ``best``."""
    lists, m = tree.lists, tree.mask.shape[0]
    size = lists.next_wanted[1]
    while size <= m:
        position = 0
        for unit in range(m):
            if has_bit(lists.found[size, 0], 0, unit):
                best[size, position] = unit
                position += 1
        size = lists.next_wanted[size + 1]


@kernel
def proceed(tree, rank, known, max_nodes, best):
    """Begin a tree that has no node yet, enter supports, and search on; whether it is exhausted.

    All three are one kernel, because Python hands over some forty arrays: numba compiles code for
    that, for half a second, in every kernel that Python calls.

    rank, known: As :func:`enter_paths` takes them.
    max_nodes: As :func:`advance` takes it.
    best, int64 (m + 1, m): Receives the best support of every wanted size in the size's row, in the
        first entries. Without rows nothing is written.
    """
    if tree.lists.now[0].nodes == 0:
        begin(tree)
    enter_paths(tree, rank, known)
    exhausted = advance(tree, max_nodes)
    if best.shape[0] > 0:
        write_best(tree, best)
    return exhausted


class Leaps:
    """One tree for the best supports of some sizes of a problem, or of problems that lack a row.

    The tree numbers the units of ``table``. ``inner`` holds the sizes that it searches for: those
    of ``sizes``, at most the number of these units, as zero columns fill a support up. The search
    may stop after any node, and :meth:`run` goes on from there.

    problem: The problem, with all rows.
    sizes, shape (τ,): Support sizes wanted, numbers of units.
    rows, targets, shape (n, p) and (n,): Rows to delete in turn; none by default.
    n_best: How many of the best supports of each size are wanted, for each problem. Within bounds
        on coefficients the best support of at most every size is wanted if it is 1.
    gathers: Whether the search hands out every support that it enters, and keeps no lists.
    begun: Whether the first step makes the root at the problem's γ; otherwise :meth:`at_ridge` has
        to say at which.
    lists: The best supports known, and the state of the search.
    chunk: Nodes between two looks at the clock.
    best, shape (m + 1, m): Where a caller sets this array, :meth:`enter` writes the best support of
        every wanted size to it, as :func:`proceed` says; at first it has no rows.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        rows: Array | None = None,
        targets: Array | None = None,
        n_best: int = 1,
        begun: bool = True,
        gathers: bool = False,
    ) -> None:
        self.problem, self.sizes, self.table = problem, sizes, TreeTable(problem)
        self.n_best, m = n_best, self.table.units.size
        self.inner = np.minimum(sizes, m)
        inside = None if rows is None else self.table.rows(rows)
        # Nodes between two looks at the clock, a choice: these take a few milliseconds, or with n
        # deleted rows, where a node's work grows like n·p, some tens of milliseconds.
        n, p = 0 if targets is None else targets.size, self.table.columns.size
        self.chunk = max(20_000_000 // (n * p), 1) if n else 20_000
        if p > m or self.table.bounded:
            self.chunk = min(self.chunk, max(20_000_000 // (p + 10) ** 2, 1))
        room = self.chunk if gathers else 0
        self.tree = new_tree(self.table, np.unique(self.inner), inside, targets, n_best, room)
        self.lists, self.best = self.tree.lists, NOTHING
        # A view of the record, by which fields are read in a tenth of the time.
        self._now = self.lists.now.view(NOW)[0]
        if begun:
            self.tree.triangle[:] = self.table.factor(problem.gamma / 2.0)
            self.at_ridge(problem.gamma / 2.0)

    def at_ridge(self, ridge: float) -> None:
        """Forget what was searched: the next step begins with the root at γ/2 = ``ridge``.

        The factor of all columns at this γ has to be in ``tree.triangle``.
        """
        self.lists.now["least_pivot"], self.lists.now["nodes"] = math.sqrt(ridge), 0

    def begin(self) -> None:
        """Make the root, see :func:`begin`."""
        proceed(self.tree, NO_PATH, NOTHING, 0, NOTHING)

    def seed(self, starts: Sequence[NDArray[np.intp]] = ()) -> None:
        """Enter incumbents by backward elimination, and from given supports or forward selection.

        starts: Good supports, as columns of the problem; without any, columns are selected forward.
        """
        m = self.table.units.size
        self.enter(stacked([self.table.members(start) for start in starts], m))
        if not (starts or self.tree.wide or self.tree.bounded):
            R = self.tree.columns_of.T  # The root is made.
            order = forward_order(R[:, :m], R[:, m], int(self.inner.max()))
            rank = np.full(m, m, dtype=np.int64)
            rank[order] = np.arange(order.size)
            proceed(self.tree, rank, NOTHING, 0, NOTHING)

    def enter(self, known: NDArray[np.int64]) -> None:
        """Enter the supports of backward elimination, and those on paths to known supports.

        known, shape (supports, m): Units of the tree, ended by −1.
        """
        rank = np.zeros(self.table.units.size, dtype=np.int64)
        proceed(self.tree, rank, known, 0, self.best)

    def exclude(self, problems: NDArray[np.intp]) -> None:
        """Leave problems out: no support is entered and no node is open for them."""
        self.lists.max_kept[:, problems] = -1.0
        self.lists.max_searched[:, problems] = -1.0

    def now(self, name: str) -> Any:
        """A field of the record ``NOW`` of the search."""
        return self._now[name]

    @property
    def n_nodes(self) -> int:
        """Nodes searched so far."""
        return int(self.now("nodes"))

    @property
    def reach(self) -> float:
        """Σ ℓ_j|β_j| + |y| is at most this number times |y| in the fits of all nodes."""
        return float(self.now("reach"))

    @property
    def stretch(self) -> float:
        """What the number ``coefficient_spread`` of the problem is multiplied by for this tree."""
        return self.table.stretch

    def left_out(self, at: SparseRidgeProblem) -> float:
        """The share of an objective that columns left out by turning units may take off it.

        A column of length ℓ takes at most ℓ²/(ℓ² + γ/2) of it. At a working γ they count as 0.

        at: The problem at the γ that is asked about.
        """
        return 0.0 if at.gamma > at.given_gamma else 2.0 * self.table.lost / at.gamma

    def run(self, limits: Limits, known: NDArray[np.int64] | None = None) -> Status:
        """Search until no node is open, which is OPTIMAL, or return the limit that was reached.

        known: As :meth:`enter` takes them, which are entered first; by default nothing is entered.
        """
        nodes, rank, starts = self.n_nodes, NO_PATH, NOTHING
        if known is not None:
            rank, starts = np.zeros(self.table.units.size, dtype=np.int64), known
        while True:
            most = limits.nodes_left(nodes, self.chunk)
            reached = limits.reached(nodes)
            if reached is not None:
                if rank.size:
                    proceed(self.tree, rank, starts, 0, self.best)
                return reached
            if proceed(self.tree, rank, starts, most, self.best):
                return Status.OPTIMAL
            nodes, rank, starts = self.n_nodes, NO_PATH, NOTHING

    def step(self, limits: Limits) -> bool:
        """Search on until the next look at the clock; whether the tree is exhausted."""
        most = limits.nodes_left(self.n_nodes, self.chunk)
        return bool(proceed(self.tree, NO_PATH, NOTHING, most, NOTHING))

    def handed_out(self) -> Mask:
        """The supports that were entered since the call before, shape (k, words)."""
        gathering = self.tree.gathering
        found = gathering.found[: gathering.n_found[0]].copy()
        gathering.n_found[0] = 0
        return found

    def narrow(self, wanted: NDArray[np.bool_]) -> None:
        """Search on for some of the sizes alone; what the tree says of the others is no proof.

        wanted, shape (τ,): A size that is left out once stays out.
        """
        sizes, m = np.unique(self.inner[wanted]), self.table.units.size
        self.lists.next_wanted[:] = wanted_from(sizes, m)
        for row in self.tree.open_from:
            row[:] = wanted_from(sizes[row[sizes] == sizes], m)

    def listed(self, size: int, n: int = 1) -> list[NDArray[np.intp]]:
        """The n best supports of a size, and those that tie with the last up to rounding.

        They are those of the tree's first problem, as units of the tree.
        """
        losses = self.lists.loss[size, 0, : int(self.lists.n[size, 0])]
        found = self.lists.found[size, 0, : losses.size]
        return [from_mask(mask) for mask in found[losses <= self.tied(losses[:n].max(initial=0.0))]]

    def tied(self, loss: Any) -> Any:
        """The largest loss that is equal to a loss, or to each of an array, up to rounding."""
        return loss * (1.0 + 2.0 * float(self.now("tie"))) + 2.0 * float(self.now("tied_loss"))

    def best_sizes(self) -> NDArray[np.intp]:
        """For every size up to the number of units, the size of the support that answers it.

        Within bounds on coefficients a support of fewer units may be as good as any; it then
        answers the larger size if one support of every size is wanted.
        """
        best = np.arange(self.lists.loss.shape[0])
        if not self.tree.bounded or self.n_best > 1:
            return best
        losses, full = self.lists.loss[:, 0, 0].tolist(), float(self.now("full"))
        for size in range(2, best.size):
            fewer = losses[best[size - 1]]
            if fewer < math.inf and fewer - losses[size] <= SAME_SHARE * (full + fewer):
                best[size] = best[size - 1]
        return best

    def candidates(self, n: int) -> list[list[NDArray[np.intp]]]:
        """For every size the n best supports, and supports that tie with the last up to rounding.

        The supports are those of the first problem, filled up to the size.
        """
        best, found = self.best_sizes(), []
        for size, within in zip(self.sizes.tolist(), self.inner.tolist(), strict=True):
            supports = [self.table.support(members) for members in self.listed(best[within], n)]
            if best[within] < size:
                supports = [self.problem.constraints.padded(some, size) for some in supports]
            found.append(supports)
        return found

    def open_leaves(self) -> Leaves:
        """The nodes that are not searched yet, over the problem's own columns.

        Their parents lie on the tree's current path. A tree of groups names the node of all
        supports, as a leaf counts columns.
        """
        tree, last, p = self.tree, int(self.now("level")), self.problem.p
        if self.problem.constraints.grouped and last >= 0:
            return Leaves.root(p, p)
        states, columns = [np.empty((0, p), dtype=np.int8)], self.table.columns
        # The child without a free column keeps those before it, and may lose those after it.
        place = np.arange(columns.size)
        kept = np.array([IN, OUT, FREE], dtype=np.int8)[np.sign(place - place[:, None]) + 1]
        for level in range(last + 1):
            pending, n = int(tree.cursor[level]) + 1, int(tree.n_columns[level])
            members = np.full(p, OUT, dtype=np.int8)
            members[columns[from_mask(tree.mask[level])]] = IN
            below = np.repeat(members[None], pending, axis=0)
            below[:, columns[tree.free[level, :n]]] = kept[:pending, :n]
            states.append(below)
        return Leaves.at_zero(np.concatenate(states), p)

    def open_bound(self) -> Array:
        """For every size a lower bound on the objective of the supports that were not searched.

        With bounds on coefficients that bounds the supports that were searched, too, if the best
        of at most every size is wanted. It is ∞ where no support is left. Rounding is not taken
        off.
        """
        bound = np.full(self.sizes.size, np.inf)
        tree, m = self.tree, self.table.units.size
        for level in range(int(self.now("level")) + 1):
            for j in range(int(tree.cursor[level]) + 1):
                low = max(tree.fixed[level] + j, 1)
                below = (low <= self.inner) & (self.inner <= m - level - 1)
                loss = tree.loss[level, 0] + tree.least_added[level, j]
                bound[below] = np.minimum(bound[below], loss)
        if tree.bounded and self.n_best == 1:
            for limit in (tree.within.least_bound, self.lists.max_searched[:, 0]):
                bound = np.minimum(bound, np.minimum.accumulate(limit)[self.inner])
        return bound + float(self.now("full"))
