"""Depth-first search of a leaps-and-bounds tree (Furnival & Wilson 1974), on XᵀX + γ/2 I.

The objective f_S of the ridge fit on a node S is a lower bound for every support below the node.
Objectives are kept as the loss above the full ridge fit: f_S − f_full is a sum of positive terms
β_j²/A_jj, so that it keeps its digits whether γ is 1e-8 or 1e8.

One tree answers one problem, or the n problems that each lack one row. Then the Gram matrices of
problem i are those of the full problem less row (z_i, t_i). On a node S with ridge fit β,
A = (G_S + γ/2 I)⁻¹, W = A Z_Sᵀ, residuals r and leverages h, the objective of problem i is
f_S − r_i²/(1 − h_i); dropping member m adds (β_m − W_mi r_i/(1−h_i))² / (A_mm + W_mi²/(1−h_i)).
A child is pruned only if no support below the child can improve a problem's incumbent of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status
from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import Array, field, from_mask, has_bit, zeros
from ..supports.rounding import forward_order, pad_support, stacked
from .leaps_node import (
    Tree,
    begin_tree,
    drop,
    enter_support,
    factorise,
    highest_rank,
    interrupt,
    last_wanted,
    mask_child,
    new_tree,
    wanted_from,
)
from .open_nodes import OpenNode

SEARCH = np.empty(0, dtype=np.int64)  # ranks with which :func:`advance` searches the whole tree


class State(NamedTuple):
    """Everything the search needs to stop after any node and go on later.

    With n = 0 deleted rows there is one problem; otherwise there are n problems. Losses are
    objectives less the objective of the full ridge fit. A node is open for the problems whose
    incumbents it may still improve: level ℓ lists ``n_open[ℓ]`` problems in ``problem_of[ℓ]``, and
    entries of ``loss``, ``W``, ``one_minus_leverage`` and ``deleted_residual`` are in this order.
    """

    tree: Tree
    max_loss_kept: Array  # (p+2, problems): a support of larger loss is not entered
    max_loss_searched: Array  # (p+2, problems): a node of larger loss is not searched for this size
    loss: Array  # (levels, problems): losses of the nodes on the path
    child_loss: Array  # (problems,): losses of the child that is evaluated
    n_open: NDArray[np.int64]  # (levels,): number of problems that the node is open for
    problem_of: NDArray[np.int64]  # (levels, problems): these problems' numbers
    parent_place_of: NDArray[np.int64]  # (problems,): the child's problems in its parent's order
    Z: Array  # (p, n): deleted rows, transposed
    t: Array  # (n,): responses of the deleted rows
    V: Array  # (p, n): T⁻ᵀZ_Sᵀ of the node factorised last, RᵀR = G_S + γ/2 I, T the leading R
    W: Array  # (buffer rows, n): rows of A Z_Sᵀ of free members, level after level
    offset: NDArray[np.int64]  # (levels,): first row of a level in W
    one_minus_leverage: Array  # (levels, n): 1 − h_i
    deleted_residual: Array  # (levels, n): r_i/(1−h_i)


def new_state(
    p: int,
    sizes: NDArray[np.intp],
    rows: Array | None = None,
    targets: Array | None = None,
    n_best: int = 1,
) -> State:
    """Allocate the search for the wanted ``sizes`` among p columns.

    At most 64 supports of a size are kept whose losses are equal up to rounding, and 4 for each of
    several problems: a choice.

    rows, targets, shape (n, p) and (n,): Rows to delete in turn; none by default.
    n_best: How many of the best supports of each size are wanted, for each problem.
    """
    Z = np.empty((p, 0)) if rows is None else np.ascontiguousarray(rows.T)
    t = np.empty(0) if targets is None else targets
    n, problems = t.size, max(t.size, 1)
    levels, problem_of = np.arange(p), np.empty((p, problems), dtype=np.int64)
    problem_of[:] = np.arange(problems)
    return State(
        tree=new_tree(p, sizes, problems, (4 if n else 64) + n_best - 1, n_best),
        loss=np.zeros((p, problems)),
        child_loss=np.empty(problems),
        n_open=np.full(p, problems, dtype=np.int64),
        problem_of=problem_of,
        parent_place_of=np.zeros(problems, dtype=np.int64),
        Z=Z,
        t=t,
        V=np.empty((p, n)),
        W=np.empty((p * (p + 1) // 2, n)),
        offset=levels * (2 * p + 1 - levels) // 2,
        **zeros("max_loss_kept max_loss_searched", p + 2, problems),
        **zeros("one_minus_leverage deleted_residual", p, n),
    )


@kernel
def begin(st, ridge):
    """Forget all incumbents and make the root from ``tree.columns_of``; ridge: γ/2."""
    begin_tree(st.tree, ridge)
    p = st.tree.A.shape[0]
    st.max_loss_kept[:p] = st.max_loss_searched[:p] = np.inf
    st.max_loss_kept[p:] = st.max_loss_searched[p:] = 0.0
    if st.t.shape[0] > 0:
        fit_rows(st, 0)


@kernel
def restart(st, columns, ridge, triangular, work):
    """Set the tree up for another γ.

    columns, shape (p + 1, rows): A factor of [X y], one column of the factor per row.
    ridge: γ/2.
    triangular: Whether that factor is upper triangular.
    work, shape (p + 1, rows): Work space.
    Returns: False where columns are so nearly dependent that rounding loses γ.
    """
    tree = st.tree
    p, R = tree.A.shape[0], tree.triangle
    for a in range(p):
        tree.columns[a] = a
    if not ridge_triangle(R, columns, tree.columns, p, ridge, triangular, work, 0.0):
        return False
    for c in range(p + 1):
        for a in range(p + 1):
            tree.columns_of[c, a] = R[a, c]
    begin(st, ridge)
    return True


@kernel(inner=True)
def enter_child(st, level, j, size):
    """Enter the child without free member j for every open problem whose incumbents it improves.

    size: Columns of the child, whose losses are in ``st.child_loss``.
    """
    tree, max_loss_kept = st.tree, st.max_loss_kept
    mask_child(tree, level, j)
    for position in range(st.n_open[level]):
        i, loss = st.problem_of[level, position], st.child_loss[position]
        if loss > max_loss_kept[size, i] or not enter_support(tree, size, i, loss):
            continue
        max_loss_kept[size, i] = most = last_wanted(tree, size, i)
        for s in range(size, st.max_loss_searched.shape[0]):
            # The best support of a larger size has no larger loss than this support. Nor has the
            # n-th best of a larger size, up to ``options.pruned_up_to`` (see `leaps_node`).
            st.max_loss_searched[s, i] = min(st.max_loss_searched[s, i], most)


@kernel(inner=True)
def fit_rows(st, level):
    """Compute leverages, residuals and W of the open problems at a node just factorised."""
    tree = st.tree
    m = tree.A.shape[0] - level
    k = tree.fixed[level]
    u = m - k
    triangle = tree.triangle
    # Of V = T⁻ᵀ Z_Sᵀ leverages and residuals are sums over members.
    remain, deleted, V, W = st.one_minus_leverage, st.deleted_residual, st.V, st.W
    n, problem_of = st.n_open[level], st.problem_of
    for i in range(n):
        remain[level, i] = 1.0
        deleted[level, i] = st.t[problem_of[level, i]]
    for a in range(m):
        for i in range(n):
            V[a, i] = st.Z[tree.columns[a], problem_of[level, i]]
        for c in range(a):
            weight = triangle[c, a]
            for i in range(n):
                V[a, i] -= weight * V[c, i]
        inverse = 1.0 / triangle[a, a]
        z = triangle[a, m]
        for i in range(n):
            v = V[a, i] * inverse
            V[a, i] = v
            remain[level, i] -= v * v
            deleted[level, i] -= z * v
    for i in range(n):
        deleted[level, i] /= remain[level, i]
    # The rows of W = T⁻¹V that belong to free members need the trailing triangle only.
    base = st.offset[level]
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
def list_open_problems(st, level, low, improved):
    """List the problems that the child is open for; whether some of its parent's are left out.

    A child that can improve three quarters of its parent's problems keeps all of them; otherwise
    the problems that it can improve are copied together. The share is measured for leave-one-out.

    low: Least wanted size that the child reaches.
    improved: How many problems the child can improve at that size.
    """
    count, below = st.n_open[level], level + 1
    problem_of, losses, most = st.problem_of, st.child_loss, st.max_loss_searched
    every = improved >= 0.75 * count
    n_open = 0
    for i in range(count):
        if every or losses[i] <= most[low, problem_of[level, i]]:
            st.parent_place_of[n_open] = i
            problem_of[below, n_open] = problem_of[level, i]
            st.loss[below, n_open] = losses[i]
            n_open += 1
    st.n_open[below] = n_open
    return not every


@kernel(inner=True)
def update_rows(st, level, j, some):
    """Compute leverages, residuals and W of the child without free member j from its parent's.

    some: Whether the child is open for only some of its parent's problems.
    """
    tree = st.tree
    A, W, parent_place, place = tree.A, st.W, tree.parent_place, st.parent_place_of
    below = level + 1
    n = st.n_open[below]
    pivot = 1.0 / A[level, j, j]
    ratio = tree.beta[level, j] * pivot
    dropped, target, origin = st.offset[level] + j, st.offset[below], st.offset[level]
    for a in range(A.shape[0] - below - tree.fixed[below]):
        c = parent_place[below, a]
        weight = A[level, j, c] * pivot
        if some:
            for i in range(n):
                W[target + a, i] = W[origin + c, place[i]] - weight * W[dropped, place[i]]
        else:
            for i in range(n):
                W[target + a, i] = W[origin + c, i] - weight * W[dropped, i]
    remain, deleted = st.one_minus_leverage, st.deleted_residual
    for i in range(n):
        o = place[i]
        w = W[dropped, o]
        grown = remain[level, o] + w * w * pivot  # a sum of positive terms: no digits cancel
        deleted[below, i] = (deleted[level, o] * remain[level, o] + w * ratio) / grown
        remain[below, i] = grown


@kernel(inline=True)
def evaluate_rows(st, level, j, size, low):
    """Losses of the child without free member j for every open problem, in ``st.child_loss``.

    size, low: Columns of the child, and the least wanted size that the child reaches.
    Returns: How many problems the child improves at its own size, and how many at size ``low`` a
        support below the child may improve.
    """
    tree, W, loss, losses, problem_of = st.tree, st.W, st.loss, st.child_loss, st.problem_of
    remain, deleted = st.one_minus_leverage, st.deleted_residual
    kept, searched = st.max_loss_kept, st.max_loss_searched
    n, better, promising = st.n_open[level], 0, 0
    row, b, d = st.offset[level] + j, tree.beta[level, j], tree.diagonal[level, j]
    for i in range(n):
        w = W[row, i]
        shifted = b - w * deleted[level, i]
        losses[i] = loss[level, i] + shifted * shifted / (d + w * w / remain[level, i])
    if n == losses.shape[0]:
        for i in range(n):
            better += losses[i] <= kept[size, i]
            promising += losses[i] <= searched[low, i]
    else:
        for i in range(n):
            better += losses[i] <= kept[size, problem_of[level, i]]
            promising += losses[i] <= searched[low, problem_of[level, i]]
    return better, promising


@kernel
def advance(st, max_nodes, rank):
    """Search on for at most ``max_nodes`` nodes, or enter the supports on one path from the root.

    The search goes depth first, from where the call before left it. A node's children drop one free
    member each; ``cursor`` is the member whose child comes next, ``loss`` the node's objective.

    rank, shape (0,) or (p,): ``SEARCH`` to search. Otherwise, one rank per column, the member of
    highest rank is dropped, of members of equal rank the member that adds the least loss, until one
    member is left; every support on the way is entered.
    Returns: Whether the tree is exhausted.
    """
    tree = st.tree
    p, n = st.Z.shape
    one_path = rank.shape[0] > 0
    cursor, fixed, added_loss, wanted = tree.cursor, tree.fixed, tree.added_loss, tree.next_wanted
    loss, max_kept, max_searched = st.loss, st.max_loss_kept, st.max_loss_searched
    pruned_up_to = tree.options[0].pruned_up_to
    level = 0 if one_path else tree.counts[0].level
    done = 0
    while level >= 0 and done < max_nodes:
        size = p - level - 1
        j = cursor[level]
        if one_path:
            if size == 0:
                return False
            j = highest_rank(tree, level, rank)
        elif j < 0:
            level -= 1
            continue
        else:
            # Children that are pruned are skipped.
            if n == 0 and size <= pruned_up_to:
                last = max(j - max_nodes + done + 1, 0)
                base, k, high = loss[level, 0], fixed[level], max_kept[size, 0]
                while j > last and base + added_loss[level, j] > max(
                    high, max_searched[wanted[k + j], 0]
                ):
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
        better, promising, value = 0, 0, 0.0
        if n == 0:
            value = loss[level, 0] + added_loss[level, j]
            better += value <= max_kept[size, 0]
            promising += value <= max_searched[low, 0] or size > pruned_up_to
        else:
            better, promising = evaluate_rows(st, level, j, size, low)
        if better > 0:
            if n == 0:
                st.child_loss[0] = value
            enter_child(st, level, j, size)
        if one_path:
            promising = st.n_open[level]
        elif not deeper or promising == 0:
            continue
        some = False
        if n == 0:
            loss[level + 1, 0] = value
        else:
            some = list_open_problems(st, level, low, promising)
        updated = drop(tree, level, j, one_path)
        if not updated:
            factorise(tree, level + 1)
        if n > 0 and updated:
            update_rows(st, level, j, some)
        elif n > 0:
            fit_rows(st, level + 1)
        level += 1
    return interrupt(tree, level, done)


@kernel
def enter_incumbents(st, supports, sizes, known, rank):
    """Enter the supports of backward elimination, and the supports on paths to known supports.

    A path drops the columns outside the known support first, and then the columns inside.

    supports, int64 (≥ known, p); sizes, int (≥ known,): The first ``sizes[i]`` entries of row i are
        known support i.
    known: Number of known supports.
    rank, int64 (p,): Work space.
    """
    tree = st.tree
    p = tree.A.shape[0]
    for a in range(p):
        rank[a] = 0
    advance(st, 1, rank)
    for i in range(known):
        size = sizes[i]
        if size == 0 or size == p:
            continue
        for w in range(tree.support.shape[0]):
            tree.support[w] = np.uint64(0)
        for a in range(p):
            rank[a] = 1
        for a in range(size):
            column = supports[i, a]
            rank[column] = 0
            tree.support[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
        new = True
        for t in range(tree.found_n[size, 0]):
            equal = True
            for w in range(tree.support.shape[0]):
                equal = equal and tree.found[size, 0, t, w] == tree.support[w]
            new = new and not equal
        if new:
            advance(st, 1, rank)


@kernel
def best_supports(st, sizes, supports, n_tied, wanted):
    """Write the best support of every wanted size, and how many supports tie with it.

    sizes, wanted, shape (τ,): Sizes, and which of these are wanted; other rows stay as they are.
    supports, int64 (τ, p): Receives the columns of the support of ``sizes[i]`` in row i.
    n_tied, int64 (τ,): Receives how many supports are equally good up to rounding.
    """
    tree = st.tree
    for i in range(sizes.shape[0]):
        if not wanted[i]:
            continue
        losses = tree.found_loss[sizes[i], 0]
        n_tied[i] = 0
        for t in range(tree.found_n[sizes[i], 0]):
            n_tied[i] += losses[t] <= losses[0] * (1.0 + 2.0 * tree.options[0].tie)
        position = 0
        for column in range(tree.A.shape[0]):
            if has_bit(tree.found[sizes[i], 0], 0, column):
                supports[i, position] = column
                position += 1


class Search:
    """What trees over columns and trees over units of columns have in common.

    The search may stop after any node. :meth:`run` goes on from there.
    """

    tree: Any  # lists of supports, counts and options as in ``leaps_node.Tree``
    chunk: int  # nodes between two looks at the clock

    @property
    def n_nodes(self) -> int:
        """Nodes searched so far."""
        return int(field(self.tree.counts, "nodes"))

    @property
    def reach(self) -> float:
        """Σ ℓ_j|β_j| + |y| is at most this number times |y| in the fits of all nodes."""
        return float(field(self.tree.options, "reach"))

    def advance(self, most: int) -> bool:
        """Search at most so many nodes more; whether no node is open then."""
        raise NotImplementedError

    def run(self, limits: Limits) -> Status:
        """Search until no node is open, which is OPTIMAL, or return the limit that was reached."""
        while True:
            reached = limits.reached(self.n_nodes)
            if reached is not None:
                return reached
            if self.advance(limits.nodes_left(self.n_nodes, self.chunk)):
                return Status.OPTIMAL

    def listed(self, size: int, n: int = 1) -> list[NDArray[np.intp]]:
        """The n best supports of a size, and those that tie with the last up to rounding.

        They are those of the tree's first problem, as columns, or units, of the tree.
        """
        losses = self.tree.found_loss[size, 0, : int(self.tree.found_n[size, 0])]
        most = losses[:n].max(initial=0.0) * (1.0 + 2.0 * float(field(self.tree.options, "tie")))
        return [from_mask(mask) for mask in self.tree.found[size, 0, : losses.size][losses <= most]]


class Leaps(Search):
    """One tree for the best supports of some sizes of a problem, or of problems that lack a row.

    problem: The problem, with all rows. Columns that are zero never enter a fit and are left out.
    sizes, shape (τ,): Support sizes wanted.
    rows, targets, shape (n, p) and (n,): Rows to delete in turn; none by default.
    n_best: How many of the best supports of each size are wanted, for each problem.
    """

    def __init__(
        self,
        problem: SparseRidgeProblem,
        sizes: NDArray[np.intp],
        rows: Array | None = None,
        targets: Array | None = None,
        n_best: int = 1,
    ) -> None:
        self.problem, self.sizes, self.active = problem, sizes, active_columns(problem)
        p = self.active.size
        # Zero columns fill supports up to their size.
        self.inner = np.minimum(sizes, p)
        R = problem.factor(self.active)
        inside = None if rows is None else rows[:, self.active]
        self.state = new_state(p, np.unique(self.inner), inside, targets, n_best)
        self.tree = self.state.tree
        # Looks are a few milliseconds apart, or with deleted rows some tens.
        n = self.state.t.size
        self.chunk = max(20_000_000 // (n * p), 1) if n else 20_000
        self.tree.columns_of[:] = R.T
        begin(self.state, problem.gamma / 2.0)

    @property
    def full(self) -> float:
        """The objective of the ridge fit on all columns and all rows."""
        return float(self.tree.columns_of[-1, -1] ** 2)

    def seed(self, starts: Sequence[NDArray[np.intp]] = ()) -> None:
        """Enter incumbents by backward elimination, and from given supports or forward selection.

        starts: Good supports, as columns of the problem; without any, columns are selected forward.
        """
        p = self.active.size
        local = [np.searchsorted(self.active, np.intersect1d(s, self.active)) for s in starts]
        sizes = np.array([s.size for s in local], dtype=np.int64)
        rank = np.empty(p, dtype=np.int64)
        enter_incumbents(self.state, stacked(local, p), sizes, len(local), rank)
        if not starts:
            R = self.tree.columns_of.T
            order = forward_order(R[:, :p], R[:, p], int(self.inner.max()))
            rank[:] = p
            rank[order] = np.arange(order.size)
            advance(self.state, 1, rank)

    def exclude(self, problems: NDArray[np.intp]) -> None:
        """Leave problems out: no support is entered and no node is open for them."""
        self.state.max_loss_kept[:, problems] = -1.0
        self.state.max_loss_searched[:, problems] = -1.0

    def advance(self, most: int) -> bool:
        """Search at most so many nodes more; whether no node is open then."""
        return bool(advance(self.state, most, SEARCH))

    def narrow(self, wanted: NDArray[np.bool_]) -> None:
        """Search on for some of the sizes alone; what the tree says of the others is no proof.

        wanted, shape (τ,): A size that is left out once stays out.
        """
        inner = np.unique(self.inner[wanted])
        self.tree.next_wanted[:] = wanted_from(inner, self.active.size)

    def candidates(self, n: int = 1) -> list[list[NDArray[np.intp]]]:
        """For every size the n best supports, and supports that tie with the last up to rounding.

        The supports are those of the first problem, filled up to the size.
        """
        return [
            [pad_support(self.active[s], int(size), self.problem.p) for s in found]
            for size, found in zip(
                self.sizes, (self.listed(int(s), n) for s in self.inner), strict=True
            )
        ]

    def open_nodes(self) -> list[OpenNode]:
        """The nodes with children that are not searched yet, in the problem's own columns.

        Only nodes on the tree's current path can have any.
        """
        nodes, tree, p = [], self.tree, self.active.size
        for level in range(int(field(tree.counts, "level")) + 1):
            pending = int(tree.cursor[level]) + 1
            if pending > 0:
                free = tree.free[level, : p - level - tree.fixed[level]]
                fixed = np.setdiff1d(from_mask(tree.mask[level]), free)
                nodes.append(OpenNode(self.active[fixed], self.active[free], pending))
        return nodes

    def open_bound(self) -> Array:
        """For every size the least objective of an open child; ∞ where no such child is open.

        Rounding is not taken off.
        """
        bound = np.full(self.sizes.size, np.inf)
        tree, p = self.tree, self.active.size
        for level in range(int(field(tree.counts, "level")) + 1):
            for j in range(int(tree.cursor[level]) + 1):
                low = max(tree.fixed[level] + j, 1)
                below = (low <= self.inner) & (self.inner <= p - level - 1)
                loss = self.state.loss[level, 0] + tree.added_loss[level, j]
                bound[below] = np.minimum(bound[below], self.full + loss)
        return bound


def active_columns(problem: SparseRidgeProblem) -> NDArray[np.intp]:
    """Columns that are not identically zero, increasing; other columns never enter a fit.

    Where y or every column is zero, all supports are equally good and column 0 alone is returned.
    """
    return problem.data.active
