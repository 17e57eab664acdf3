"""One node of a leaps-and-bounds tree: the arrays of the path to the node, and the step to a child.

A node is a support S whose first k members may not be dropped. Each child drops one free member
and fixes the free members before the dropped member. Level ℓ of a tree holds the current node with
m = p − ℓ members. For this node A = (G_S + γ/2 I)⁻¹ and the ridge fit β = A b_S are kept, as
dropping member j adds β_j²/A_jj to the objective. Entries of A and β that belong to fixed members
are never used again and are not stored. Most nodes have no child that is searched; therefore A is
computed only when the first child is searched, and its diagonal alone is computed before.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import (
    EPS,
    Array,
    dot,
    later,
    mask_words,
    member_columns,
    order_steps,
    record,
    trailing_inverse,
    zeros,
)

# A node is factorised afresh, and not updated from its parent, if the update would shrink a
# diagonal entry of A below this share of its value at the last factorisation. At the limit the
# entry has lost four of its sixteen digits. The value is a choice.
LEAST_DIAGONAL_SHARE = 1e-4
COUNTS = np.dtype([("level", np.int64), ("nodes", np.int64)], align=True)
OPTIONS = np.dtype(
    [
        ("tie", np.float64),  # relative difference below which rounding may reverse an order
        ("reach", np.float64),  # Σ ℓ_j|β_j| + |y| is at most this number times |y| in any fit
        ("least_pivot", np.float64),  # √(γ/2): no pivot is smaller in exact arithmetic
        ("rank", np.int64),  # how many of the best supports of each size are wanted
        ("margin", np.float64),  # of these, the ones whose loss is above the least by this share
        ("pruned_up_to", np.int64),  # nodes of more members are always searched
    ],
    align=True,
)


class Tree(NamedTuple):
    """The path of a tree, where level ℓ holds a node with p − ℓ members, and the incumbents.

    Supports are bit masks of 64 columns a word. ``found[s, i]`` lists the wanted supports of size s
    of problem i and those that tie with them, by increasing ``found_loss[s, i]``; beyond the list
    losses are ∞. The last entry of ``found[s, i]`` is scratch space.
    """

    columns_of: Array  # (p+1, p+1): the triangular factor R, one column of R per row
    A: Array  # (levels, p, p), free members only
    diagonal: Array  # (levels, p): diagonal of A
    drop_pending: NDArray[np.int64]  # (levels,): where A is not computed yet, the parent's member j
    # that the node drops; -1 where A is computed
    parent_place: NDArray[np.int64]  # (levels, p): positions of free members in the parent's arrays
    factorised_diagonal: Array  # (levels, p): diagonal of A at the last factorisation
    beta: Array  # (levels, p)
    added_loss: Array  # (levels, p): β_j²/A_jj, the loss added by dropping free member j
    free: NDArray[np.int64]  # (levels, p): columns of the free members
    fixed: NDArray[np.int64]  # (levels,): number k of fixed members
    cursor: NDArray[np.int64]  # (levels,): free member whose child comes next
    mask: NDArray[np.uint64]  # (levels, words): the columns of the node
    next_wanted: NDArray[np.int64]  # (p+2,): the least wanted size ≥ s, for every s
    found: NDArray[np.uint64]  # (p+1, problems, ties + 1, words)
    found_loss: Array  # (p+1, problems, ties)
    found_n: NDArray[np.int64]  # (p+1, problems)
    counts: Any  # of COUNTS
    options: Any  # of OPTIONS
    triangle: Array  # (p+1, p+1): triangular factor of the node factorised last
    work: Array  # (p+1, p+1)
    columns: NDArray[np.int64]  # (p,): columns of the node factorised last, fixed columns first
    source: NDArray[np.int64]  # (p,): positions of a child's free members in its parent's arrays
    order: NDArray[np.int64]  # (p,): order of ``child_added_loss``, the largest first
    child_added_loss: Array  # (p,): ``added_loss`` of a child before the values are put in order
    support: NDArray[np.uint64]  # (words,): columns of the child that is evaluated


def pruned_up_to(p: int, n_best: int) -> int:
    """Members of the largest node that may be pruned by the n-th best losses of smaller sizes.

    A search for the n best supports prunes by the n-th best loss of the least size that a node
    reaches. That bounds the n-th best loss of a larger size where n supports of a size have at
    least n supersets of one member more, whose losses are no larger. Leaving r = p − s columns out,
    they have if n ≤ C(2r − 1, r), by the theorem of Kruskal and Katona in the form of Lovász. With
    r the least such number, the n-th best loss falls along sizes up to p − r + 1, and a node of
    one member more reaches no larger size. Nodes of even more members, which leave out at most
    r − 2 columns, are all searched. For n = 1 every node may be pruned.
    """
    r = 1
    while comb(2 * r - 1, r) < n_best:
        r += 1
    return p - r + 2


def new_tree(p: int, sizes: NDArray[np.intp], problems: int, ties: int, n_best: int) -> Tree:
    """Allocate a tree over p columns; :func:`begin_tree` makes the root from ``columns_of``.

    sizes: Support sizes wanted.
    problems: How many problems share the tree.
    ties: How many supports are kept for each size and problem.
    n_best: How many of the best supports of each size are wanted.
    """
    words = mask_words(p)
    wanted = {"rank": n_best, "margin": np.inf, "pruned_up_to": pruned_up_to(p, n_best)}
    return Tree(
        A=np.empty((p, p, p)),
        mask=np.zeros((p, words), dtype=np.uint64),
        next_wanted=wanted_from(sizes, p),
        found=np.zeros((p + 1, problems, ties + 1, words), dtype=np.uint64),
        found_loss=np.empty((p + 1, problems, ties)),
        found_n=np.zeros((p + 1, problems), dtype=np.int64),
        counts=record(COUNTS),
        options=record(OPTIONS, **wanted),
        child_added_loss=np.empty(p),
        support=np.zeros(words, dtype=np.uint64),
        **zeros("columns_of triangle work", p + 1, p + 1),
        **zeros("diagonal factorised_diagonal beta added_loss", p, p),
        **zeros("parent_place free", p, p, of=np.int64),
        **zeros("drop_pending fixed cursor columns source order", p, of=np.int64),
    )


def wanted_from(sizes: NDArray[np.intp], p: int) -> NDArray[np.int64]:
    """Least wanted size ≥ s for s = 0..p+1; p + 1 where there is none.

    Returns, shape (p + 2,).
    """
    next_wanted = np.full(p + 2, p + 1, dtype=np.int64)
    next_wanted[sizes] = sizes
    return np.minimum.accumulate(next_wanted[::-1])[::-1].copy()


@kernel(inner=True)
def begin_tree(tree, ridge):
    """Forget all supports and make the full set of columns the root, from ``tree.columns_of``.

    ridge: γ/2. With M = G + γ/2 I and A = M⁻¹, supports are compared by fresh fits where their
    losses differ by a share of at most min(1e-11 + 40u·max_j A_jj M_jj, 1e-5), u the rounding unit;
    what is proved does not depend on this window. As |β_j| ≤ √A_jj |y| on all columns, and A_jj
    is smaller on fewer columns, Σ_j √(A_jj M_jj) bounds Σ ℓ_j|β_j|/|y| for the fits of all nodes.
    """
    p, words, options = tree.A.shape[0], tree.mask.shape[1], tree.options[0]
    options.least_pivot = np.sqrt(ridge)
    tree.counts[0].level, tree.counts[0].nodes, tree.fixed[0] = 0, 1, 0
    for w in range(words):
        tree.mask[0, w] = np.uint64(0)
    for a in range(p):
        tree.free[0, a] = a
        tree.mask[0, a >> 6] |= np.uint64(1) << np.uint64(a & 63)
    factorise(tree, 0)
    inflation, options.reach = 0.0, 1.0
    for a in range(p):
        column = tree.columns_of[tree.free[0, a]]
        factor = tree.A[0, a, a] * dot(column, column, p)
        inflation = max(inflation, factor)
        options.reach += np.sqrt(factor)
    options.tie = min(1e-11 + 20.0 * EPS * inflation, 1e-5)
    tree.found_n[:] = 0
    tree.found_loss[:] = np.inf
    for i in range(tree.found.shape[1]):  # the full set is the only support of its size
        tree.found_n[p, i], tree.found_loss[p, i, 0] = 1, 0.0
        for w in range(words):
            tree.found[p, i, 0, w] = tree.mask[0, w]


@kernel(inner=True)
def mask_child(tree, level, j):
    """Write the columns of the level's node without free member j to ``tree.support``."""
    for w in range(tree.support.shape[0]):
        tree.support[w] = tree.mask[level, w]
    column = tree.free[level, j]
    tree.support[column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))


@kernel(inner=True)
def move_listed(tree, size, i, source, target):
    """Copy entry ``source`` of a list of supports, with its loss, to entry ``target``."""
    for w in range(tree.support.shape[0]):
        tree.found[size, i, target, w] = tree.found[size, i, source, w]
    tree.found_loss[size, i, target] = tree.found_loss[size, i, source]


@kernel(inner=True)
def place_in_full_list(tree, size, i, loss):
    """The entry of a full list that makes way for ``tree.support``; −1 where none does.

    That is the lexicographically last of the supports that tie with the worst. Supports tie here if
    their losses differ by a share of at most 1e-10, a choice that is far above the rounding of
    updates along one path, about 1e-12 in tests, or by ``tie`` where that is less.
    """
    found, losses, ties = tree.found, tree.found_loss[size, i], tree.found_loss.shape[2]
    tied = 1.0 + min(tree.options[0].tie, 1e-10)
    place = ties - 1
    if losses[place] * tied < loss:
        return -1
    for t in range(ties - 1):
        if losses[t] * tied >= losses[ties - 1] and later(found, size, i, t, place):
            place = t
    if loss * tied < losses[ties - 1]:
        return place
    for w in range(tree.support.shape[0]):
        found[size, i, ties, w] = tree.support[w]
    return place if later(found, size, i, place, ties) else -1


@kernel(inner=True)
def enter_support(tree, size, i, loss):
    """Enter ``tree.support``, of this size and loss, in the list of problem i's best supports.

    Returns: Whether the support has entered the list.
    """
    found, losses, support = tree.found, tree.found_loss[size, i], tree.support
    n = tree.found_n[size, i]
    for t in range(n):
        equal = True
        for w in range(support.shape[0]):
            equal = equal and found[size, i, t, w] == support[w]
        if equal:
            return False
    place = n
    if n == losses.shape[0]:
        place = place_in_full_list(tree, size, i, loss)
        if place < 0:
            return False
    else:
        tree.found_n[size, i] = n = n + 1
    for t in range(place, n - 1):
        move_listed(tree, size, i, t + 1, t)
    place = n - 1
    while place > 0 and losses[place - 1] > loss:
        move_listed(tree, size, i, place - 1, place)
        place -= 1
    for w in range(support.shape[0]):
        found[size, i, place, w] = support[w]
    losses[place] = loss
    return True


@kernel(inner=True)
def last_wanted(tree, size, i):
    """The loss up to which supports of a size are wanted for problem i; ∞ until all are listed."""
    losses, options = tree.found_loss[size, i], tree.options[0]
    last = losses[options.rank - 1]
    if options.margin < np.inf:
        last = min(last, losses[0] * (1.0 + options.margin))
    return last * (1.0 + options.tie)


@kernel(inner=True)
def factorise(tree, level):
    """Compute A, β and added losses of the level's node afresh, from the factor of all columns.

    The node's mask, number of fixed members and list of free members are set before.
    """
    k = tree.fixed[level]
    m = tree.A.shape[0] - level
    u = m - k
    free, order, T, least = tree.free, tree.order, tree.triangle, tree.options[0].least_pivot
    # The root is factorised twice: the first time shows in which order its members are to stand.
    for turn in range(2 if level == 0 else 1):
        if turn == 1:
            order_steps(tree.child_added_loss, u, order)
            for a in range(u):
                tree.source[a] = free[level, order[a]]
            for a in range(u):
                free[level, a] = tree.source[a]
        member_columns(tree.mask, level, free, u, tree.columns)
        ridge_triangle(T, tree.columns_of, tree.columns, m, 0.0, True, tree.work, 0.0)
        for c in range(m):  # In exact arithmetic no pivot is smaller than √(γ/2).
            T[c, c] = min(T[c, c], -least)
        trailing_inverse(T, k, m, tree.A, tree.beta, level)
        for a in range(u):
            tree.factorised_diagonal[level, a] = tree.diagonal[level, a] = tree.A[level, a, a]
            tree.added_loss[level, a] = tree.child_added_loss[a] = (
                tree.beta[level, a] ** 2 / tree.A[level, a, a]
            )
    tree.cursor[level] = u - 1
    tree.drop_pending[level] = -1


@kernel(inner=True)
def update_inverse(tree, level):
    """Compute A of a node that :func:`drop` made: A − A_j A_jᵀ/A_jj of its parent's A."""
    A, parent_place = tree.A, tree.parent_place
    above, j = level - 1, tree.drop_pending[level]
    pivot = 1.0 / A[above, j, j]
    u = A.shape[0] - level - tree.fixed[level]
    for a in range(u):
        c = parent_place[level, a]
        weight = A[above, j, c] * pivot
        for b in range(u):
            other = parent_place[level, b]
            A[level, a, b] = A[above, c, other] - weight * A[above, j, other]
    tree.drop_pending[level] = -1


@kernel(inner=True)
def drop(tree, level, j, one_path):
    """Make the child without free member j of the level's node, one level below.

    one_path: Whether all other free members stay free; otherwise the members before j become fixed.
    Returns: False where too many digits cancel: then the child's columns are listed, and
        :func:`factorise` has to compute the rest.
    """
    if tree.drop_pending[level] >= 0:
        update_inverse(tree, level)
    A, beta, diagonal = tree.A, tree.beta, tree.diagonal
    factorised_diagonal = tree.factorised_diagonal
    source, order, added = tree.source, tree.order, tree.child_added_loss
    below = level + 1
    u = 0
    for a in range(0 if one_path else j + 1, A.shape[0] - level - tree.fixed[level]):
        if a != j:
            source[u] = a
            u += 1
    tree.fixed[below] = A.shape[0] - below - u
    mask_child(tree, level, j)
    for w in range(tree.mask.shape[1]):
        tree.mask[below, w] = tree.support[w]
    pivot = 1.0 / A[level, j, j]
    ratio = beta[level, j] * pivot
    fresh = True
    for a in range(u):
        c = source[a]
        off = A[level, j, c]
        left = diagonal[level, c] - off * pivot * off
        shifted = beta[level, c] - off * ratio
        if left > LEAST_DIAGONAL_SHARE * factorised_diagonal[level, c]:
            added[a] = shifted * shifted / left
        else:
            added[a], fresh = tree.added_loss[level, c], False
    order_steps(added, u, order)
    for a in range(u):
        tree.free[below, a] = tree.free[level, source[order[a]]]
    if not fresh:
        return False
    for a in range(u):
        c = source[order[a]]
        off = A[level, j, c]
        tree.parent_place[below, a] = c
        tree.added_loss[below, a] = added[order[a]]
        beta[below, a] = beta[level, c] - off * ratio
        diagonal[below, a] = diagonal[level, c] - off * pivot * off
        factorised_diagonal[below, a] = factorised_diagonal[level, c]
    tree.cursor[below] = u - 1
    tree.drop_pending[below] = j
    return True


@kernel(inner=True)
def highest_rank(tree, level, rank):
    """The free member of highest rank; of members of equal rank, the member of least added loss.

    rank, shape (p,): One number per column.
    """
    best, added = 0, tree.added_loss[level]
    for a in range(1, tree.A.shape[0] - level):
        rank_here, rank_best = rank[tree.free[level, a]], rank[tree.free[level, best]]
        if rank_here > rank_best or (rank_here == rank_best and added[a] < added[best]):
            best = a
    return best


@kernel(inner=True)
def interrupt(tree, level, done):
    """Note at which level the search stops after ``done`` more nodes; whether no node is open."""
    while level >= 0 and tree.cursor[level] < 0:
        level -= 1
    tree.counts[0].level = level
    tree.counts[0].nodes += done
    return level < 0
