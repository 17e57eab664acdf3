"""One node of a leaps-and-bounds tree: the arrays of the path to the node, and the step to a child.

A node is a support S whose first k members may not be dropped. Each child drops one free member
and fixes the free members before the dropped member. Level ℓ of a tree holds the current node with
m = p − ℓ members. For this node A = (G_S + γ/2 I)⁻¹ and the ridge fit β = A b_S are kept, as
dropping member j adds β_j²/A_jj to the objective. Entries of A and β that belong to fixed members
are never used again and are not stored. Most children are not searched; therefore a row of A is
computed only when the child without its member is, and the diagonal of A alone is computed before.
"""

from __future__ import annotations

from math import comb
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.fits import ridge_triangle
from ..kernels.linalg import (
    Array,
    Ints,
    Mask,
    allocated,
    later,
    mask_words,
    member_columns,
    order_steps,
    record,
    trailing_inverse,
)

# A node is factorised afresh, and not updated from its parent, if the update would shrink a
# diagonal entry of A below this share of its value at the last factorisation. At the limit the
# entry has lost four of its sixteen digits. The value is a choice.
LEAST_DIAGONAL_SHARE = 1e-4
NOW = np.dtype(
    [
        ("level", np.int64),  # of the node whose child comes next
        ("nodes", np.int64),  # searched so far
        ("tie", np.float64),  # relative difference of losses below which rounding may reverse an
        # order, beside the difference ``tied_loss``
        ("tied_loss", np.float64),  # difference of losses that rounding of ``full`` alone makes
        ("reach", np.float64),  # Σ ℓ_j|β_j| + |y| is at most this number times |y| in any fit
        ("least_pivot", np.float64),  # √(γ/2): no pivot is smaller in exact arithmetic
        ("share", np.float64),  # γ/2, less what rounding takes of a sum of (γ/2)β_j²; 0 where
        # sizes are not closed
        ("full", np.float64),  # objective of the ridge fit on all columns
        ("rank", np.int64),  # how many of the best supports of each size are wanted
        ("margin", np.float64),  # of these, the ones whose loss is above the least by this share
        ("improvement", np.float64),  # share of the objective that a support must be better by
        ("each_size", np.int64),  # 1 where the rank-th best of a larger size may be worse
    ],
    align=True,
)


class Lists(NamedTuple):
    """The best supports known of every size, for one or several problems, and what is wanted.

    Supports are bit masks of 64 columns, or units, a word. ``found[s, i]`` lists the wanted
    supports of size s of problem i and those that tie with them, by increasing ``loss[s, i]``;
    beyond the list losses are ∞. The last entry of a list is always free.
    """

    found: Annotated[Mask, "sizes problems length words"]
    loss: Annotated[Array, "sizes problems length"]
    n: Annotated[Ints, "sizes problems"]  # the length of every list
    max_kept: Annotated[Array, "sizes problems"]  # a support of larger loss is not entered
    max_searched: Annotated[Array, "sizes problems"]  # a node of larger loss is not searched for
    # this size
    next_wanted: Ints  # (sizes,): the least wanted size ≥ s, for every s
    support: Annotated[Mask, "words"]  # the support that is entered next
    now: Any  # of NOW


class Tree(NamedTuple):
    """Everything a search among p columns needs to stop after any node and go on later.

    Level ℓ, one of p, holds a node with p − ℓ members. With n = 0 deleted rows there is one
    problem; otherwise there are n problems. Losses are objectives less the objective of the full
    ridge fit. A node is open for the problems whose incumbents it may still improve: level ℓ lists
    ``n_open[ℓ]`` problems in ``problem_of[ℓ]``, and entries of ``loss``, ``W``,
    ``one_minus_leverage`` and ``deleted_residual`` are in this order.
    """

    lists: Lists
    columns_of: Annotated[Array, "p+1 p+1"]  # the triangular factor R, one column of R per row
    A: Annotated[Array, "p p p"]  # by level, free members only
    diagonal: Annotated[Array, "p p"]  # by level: diagonal of A
    known_row: Annotated[Ints, "p p"]  # by level: 1 where the free member's row of A is computed
    dropped: Annotated[Ints, "p"]  # by level: the parent's member j that the node drops
    parent_place: Annotated[Ints, "p p"]  # by level: places of free members in the parent's arrays
    factorised_diagonal: Annotated[Array, "p p"]  # diagonal of A at the last factorisation
    beta: Annotated[Array, "p p"]  # by level
    added_loss: Annotated[Array, "p p"]  # β_j²/A_jj, the loss added by dropping free member j
    free: Annotated[Ints, "p p"]  # by level: columns of the free members
    fixed: Annotated[Ints, "p"]  # by level: number k of fixed members
    cursor: Annotated[Ints, "p"]  # by level: free member whose child comes next
    mask: Annotated[Mask, "p words"]  # by level: the columns of the node
    triangle: Annotated[Array, "p+1 p+1"]  # triangular factor of the node factorised last
    work: Annotated[Array, "p+1 p+1"]
    columns: Annotated[Ints, "p"]  # columns of the node factorised last, fixed columns first
    source: Annotated[Ints, "p"]  # places of a child's free members in its parent's arrays
    order: Annotated[Ints, "p"]  # order of ``child_added_loss``, the largest first
    child_added_loss: Annotated[Array, "p"]  # ``added_loss`` of a child before it is put in order
    child_beta: Annotated[Array, "p"]  # ``beta`` of a child before it is put in order
    step: Annotated[Array, "p"]  # what free members add to the loss at least
    open_from: Annotated[Ints, "p sizes"]  # by level: the least size ≥ s that a search below the
    # node is for; of one problem without deleted rows
    pruned_up_to: int  # nodes of more members are always searched
    loss: Annotated[Array, "p problems"]  # losses of the nodes on the path
    child_loss: Annotated[Array, "problems"]  # losses of the child that is evaluated
    n_open: Ints  # (p,), by level: number of problems that the node is open for
    problem_of: Ints  # (p, problems), by level: these problems' numbers
    parent_place_of: Annotated[Ints, "problems"]  # the child's problems in its parent's order
    Z: Array  # (p, n): deleted rows, transposed
    t: Array  # (n,): responses of the deleted rows
    V: Annotated[Array, "p n"]  # T⁻ᵀZ_Sᵀ of the node factorised last, RᵀR = G_S + γ/2 I, T the
    # leading R
    W: Annotated[Array, "buffer n"]  # rows of A Z_Sᵀ of free members, level after level
    offset: Ints  # (p,), by level: first row in W
    one_minus_leverage: Annotated[Array, "p n"]  # 1 − h_i
    deleted_residual: Annotated[Array, "p n"]  # r_i/(1−h_i)


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


def new_lists(
    most: int, sizes: NDArray[np.intp], problems: int, ties: int, rank: int, each_size: bool = False
) -> Lists:
    """Allocate lists of supports of at most ``most`` columns or units.

    :func:`forget_supports` has to set their losses.

    sizes: Support sizes wanted.
    ties: How many supports of a size and problem are kept beyond the rank-th.
    rank: How many of the best supports of each size are wanted.
    each_size: Whether the rank-th best support of a larger size may be worse.
    """
    lengths = {"sizes": most + 2, "problems": problems, "length": ties + rank}
    lengths["words"] = mask_words(most)
    now = record(NOW, rank=rank, margin=np.inf, each_size=each_size)
    return allocated(Lists, lengths, next_wanted=wanted_from(sizes, most), now=now)


def new_tree(
    p: int, sizes: NDArray[np.intp], rows: Array | None, targets: Array | None, n_best: int
) -> Tree:
    """Allocate the search for the wanted ``sizes`` among p columns.

    At most 64 supports of a size are kept whose losses are equal up to rounding, and 4 for each of
    several problems: a choice.

    rows, targets, shape (n, p) and (n,): Rows to delete in turn, or None.
    n_best: How many of the best supports of each size are wanted, for each problem.
    """
    Z = np.empty((p, 0)) if rows is None else np.ascontiguousarray(rows.T)
    t = np.empty(0) if targets is None else targets
    n, problems, levels = t.size, max(t.size, 1), np.arange(p)
    lengths = {"p": p, "n": n, "problems": problems, "words": mask_words(p)}
    lengths["buffer"], lengths["sizes"] = p * (p + 1) // 2, p + 2
    return allocated(
        Tree,
        lengths,
        lists=new_lists(p, sizes, problems, 4 if n else 64, n_best),
        pruned_up_to=pruned_up_to(p, n_best),
        n_open=np.full(p, problems, dtype=np.int64),
        problem_of=np.tile(np.arange(problems), (p, 1)),
        Z=Z,
        t=t,
        offset=levels * (2 * p + 1 - levels) // 2,
    )


def wanted_from(sizes: NDArray[np.intp], p: int) -> NDArray[np.int64]:
    """Least wanted size ≥ s for s = 0..p+1; p + 1 where there is none.

    Returns, shape (p + 2,).
    """
    next_wanted = np.full(p + 2, p + 1, dtype=np.int64)
    next_wanted[sizes] = sizes
    return np.minimum.accumulate(next_wanted[::-1])[::-1].copy()


@kernel(inner=True)
def forget_supports(lists):
    """Empty all lists; supports of any loss are wanted again."""
    lists.n[:] = 0
    lists.loss[:] = np.inf
    lists.max_kept[:] = np.inf
    lists.max_searched[:] = np.inf


@kernel(inner=True)
def move_listed(lists, size, i, source, target):
    """Copy entry ``source`` of a list of supports, with its loss, to entry ``target``."""
    for w in range(lists.support.shape[0]):
        lists.found[size, i, target, w] = lists.found[size, i, source, w]
    lists.loss[size, i, target] = lists.loss[size, i, source]


@kernel(inner=True)
def put_in_list(lists, size, i, loss):
    """Put ``lists.support``, of this size and loss, in the list of problem i's best supports.

    Where the list is full, the lexicographically last of the supports that tie with the worst makes
    way. Supports tie here if their losses differ by a share of at most 1e-10, a choice that is far
    above the rounding of updates along one path, about 1e-12 in tests, or by ``tie`` where that is
    less, and by ``tied_loss``.
    """
    found, losses, last = lists.found, lists.loss[size, i], lists.loss.shape[2] - 1
    place = lists.n[size, i]
    while place > 0 and losses[place - 1] > loss:
        move_listed(lists, size, i, place - 1, place)
        place -= 1
    losses[place] = loss
    for w in range(lists.support.shape[0]):
        found[size, i, place, w] = lists.support[w]
    lists.n[size, i] += 1
    if lists.n[size, i] <= last:
        return
    place, tied = last, 1.0 + min(lists.now[0].tie, 1e-10)
    least = losses[last] - lists.now[0].tied_loss
    for t in range(last):
        if losses[t] * tied >= least and later(found, size, i, t, place):
            place = t
    for t in range(place, last):
        move_listed(lists, size, i, t + 1, t)
    losses[last], lists.n[size, i] = np.inf, last


@kernel(inner=True)
def is_listed(lists, size, i):
    """Whether ``lists.support``, of this size, is in the list of problem i."""
    for t in range(lists.n[size, i]):
        equal = True
        for w in range(lists.support.shape[0]):
            equal = equal and lists.found[size, i, t, w] == lists.support[w]
        if equal:
            return True
    return False


@kernel(inner=True)
def enter_support(lists, size, i, loss):
    """Enter ``lists.support``, of this size and loss, for problem i if it is new and wanted.

    The lists, ``max_kept`` and ``max_searched`` are written.
    """
    now, losses = lists.now[0], lists.loss[size, i]
    if loss > lists.max_kept[size, i] or is_listed(lists, size, i):
        return
    put_in_list(lists, size, i, loss)
    most = losses[now.rank - 1]  # ∞ until so many are listed
    if now.margin < np.inf:
        most = min(most, losses[0] * (1.0 + now.margin))
    most = most * (1.0 + now.tie) + now.tied_loss
    lists.max_kept[size, i] = most
    if now.improvement > 0.0 and most < np.inf:
        most -= now.improvement * (now.full + most)
    # The best support of a larger size has no larger loss than this support. For columns that holds
    # of the rank-th best, too, in the nodes that are pruned (see `pruned_up_to`).
    for s in range(size, size + 1 if now.each_size == 1 else lists.n.shape[0]):
        lists.max_searched[s, i] = min(lists.max_searched[s, i], most)


@kernel(inner=True)
def mask_child(tree, level, j):
    """Write the columns of the level's node without free member j to ``tree.lists.support``."""
    for w in range(tree.lists.support.shape[0]):
        tree.lists.support[w] = tree.mask[level, w]
    column = tree.free[level, j]
    tree.lists.support[column >> 6] &= ~(np.uint64(1) << np.uint64(column & 63))


@kernel(inner=True)
def factorise(tree, level):
    """Compute A, β and added losses of the level's node afresh, from the factor of all columns.

    The node's mask, number of fixed members and list of free members are set before.
    """
    k = tree.fixed[level]
    m = tree.A.shape[0] - level
    u = m - k
    free, order, T, least = tree.free, tree.order, tree.triangle, tree.lists.now[0].least_pivot
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
            tree.known_row[level, a] = 1
            tree.added_loss[level, a] = tree.child_added_loss[a] = (
                tree.beta[level, a] ** 2 / tree.A[level, a, a]
            )
    tree.cursor[level] = u - 1


@kernel(inline=True)
def inverse_row(tree, level, a):
    """Compute row a of the node's A, unless it is known: A − A_j A_jᵀ/A_jj of the parent's A.

    Where the parent's row is not known either, it is computed first, and so on.
    """
    A, parent_place, known, member = tree.A, tree.parent_place, tree.known_row, tree.source
    now = level
    member[now] = a
    while known[now, member[now]] == 0:
        member[now - 1] = parent_place[now, member[now]]
        now -= 1
    while now < level:
        j, c = tree.dropped[now + 1], member[now]
        weight = A[now, j, c] * (1.0 / A[now, j, j])
        now += 1
        row = member[now]
        for b in range(A.shape[0] - now - tree.fixed[now]):
            other = parent_place[now, b]
            A[now, row, b] = A[now - 1, c, other] - weight * A[now - 1, j, other]
        known[now, row] = 1


@kernel(inline=True)
def drop(tree, level, j, one_path):
    """Begin the child without free member j of the level's node, one level below.

    Writes its mask, the number of its fixed members and, for each of its u free members, the place
    at the parent, the coefficient and the added loss, to ``source``, ``child_beta`` and
    ``child_added_loss``. :func:`put_in_order` has to follow.

    one_path: Whether all other free members stay free; otherwise the members before j become fixed.
    Returns: False where too many digits cancel: then :func:`factorise` has to compute the rest.
    """
    inverse_row(tree, level, j)
    A, beta, diagonal, source = tree.A, tree.beta, tree.diagonal, tree.source
    below, u = level + 1, 0
    for a in range(0 if one_path else j + 1, A.shape[0] - level - tree.fixed[level]):
        if a != j:
            source[u] = a
            u += 1
    tree.fixed[below] = A.shape[0] - below - u
    mask_child(tree, level, j)
    for w in range(tree.mask.shape[1]):
        tree.mask[below, w] = tree.lists.support[w]
    pivot = 1.0 / A[level, j, j]
    ratio = beta[level, j] * pivot
    fresh = True
    for a in range(u):
        c = source[a]
        off = A[level, j, c]
        left = diagonal[level, c] - off * pivot * off
        shifted = beta[level, c] - off * ratio
        tree.child_beta[a] = shifted
        if left > LEAST_DIAGONAL_SHARE * tree.factorised_diagonal[level, c]:
            tree.child_added_loss[a] = shifted * shifted / left
        else:
            tree.child_added_loss[a], fresh = tree.added_loss[level, c], False
    return fresh


@kernel(inline=True)
def put_in_order(tree, level, j):
    """Write the arrays of the child that :func:`drop` has begun, in the order of its added losses.

    Where digits have cancelled, :func:`factorise` overwrites all but the order.
    """
    A, source, order = tree.A, tree.source, tree.order
    below = level + 1
    u = A.shape[0] - below - tree.fixed[below]
    order_steps(tree.child_added_loss, u, order)
    pivot = 1.0 / A[level, j, j]
    for a in range(u):
        c = source[order[a]]
        off = A[level, j, c]
        tree.free[below, a] = tree.free[level, c]
        tree.parent_place[below, a] = c
        tree.added_loss[below, a] = tree.child_added_loss[order[a]]
        tree.beta[below, a] = tree.child_beta[order[a]]
        tree.diagonal[below, a] = tree.diagonal[level, c] - off * pivot * off
        tree.factorised_diagonal[below, a] = tree.factorised_diagonal[level, c]
        tree.known_row[below, a] = 0
    tree.cursor[below] = u - 1
    tree.dropped[below] = j


@kernel(inline=True)
def open_sizes(tree, level, loss, share):
    """Write the sizes that a search below the child is for to ``open_from``; whether there are any.

    A support T that lacks d free members of the child S has f_T ≥ f_S + (γ/2)·Σ β_j² over these
    members: f_T − f_S is at least (b − β)ᵀ(XᵀX + (γ/2)I)(b − β) for the coefficients b of T, which
    are 0 there. So f_S and γ/2 times the d smallest β_j² bound all objectives of T's size from
    below. The size is closed if that is more than ``max_searched`` allows.

    On entry :func:`drop` has begun the child, and ``open_from`` of its parent is complete.

    loss: f_S less the objective of the fit on all columns.
    share: γ/2 less what rounding takes of the sum, or less.
    """
    p, k, step, searched = tree.A.shape[0], tree.fixed[level], tree.step, tree.lists.max_searched
    m, opened, before = p - level, tree.open_from[level], tree.open_from[level - 1]
    u, total = m - k, 0.0
    for a in range(u):
        step[a] = share * tree.child_beta[a] * tree.child_beta[a]
        total += step[a]
    if loss + total <= searched[m - 1, 0] or m > tree.pruned_up_to:  # Every size stays as it is.
        for s in range(k, m):
            opened[s] = before[s]
        return opened[k] < m
    order_steps(step, u, tree.order)
    least = p + 1
    for d in range(1, u + 1):
        s = m - d
        loss += step[tree.order[u - d]]
        if before[s] == s and loss <= searched[s, 0]:
            least = s
        opened[s] = least
    return least < m


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
