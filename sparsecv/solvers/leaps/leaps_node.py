"""One node of a leaps-and-bounds tree: the arrays of the path to the node, and the step to a child.

A node is a support S, a set of units whose first k members may not be dropped. A unit is a column,
or a group of columns that enter together. Each child drops one free member and fixes the free
members before the dropped member. Level ℓ of a tree of m units holds the current node with m − ℓ
members. For this node A = (G_S + γ/2 I)⁻¹ and the ridge fit β = A b_S are kept, as dropping the
columns D of a member adds β_Dᵀ(A_DD)⁻¹β_D to the objective. Entries of A and β that belong to fixed
members are never used again and are not stored. Most children are not searched; therefore a row of
A is computed only when the child without its column is, and the blocks A_DD of the members alone
are computed before.

A column leaves a node by one update of rank 1. A member of several columns leaves by as many, one
after the other. What only such members need is in functions of their own (:func:`drop_rest`,
:func:`unit_loss`), so that a tree of single columns takes the time of one update alone.
"""

from __future__ import annotations

from math import comb
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.bounded_fit import BoundedFit, new_bounded_fit
from ..core.rounding import BOUND_SHARE
from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import (
    Array,
    Ints,
    Mask,
    allocated,
    mask_words,
    member_columns,
    order_steps,
    trailing_inverse,
)
from .inverse import (
    LEAST_DIAGONAL_SHARE,
    drop_rest,
    factor_members,
    factorised_units,
    inverse_row,
    order_columns,
    sum_steps,
)
from .lines import Gathering
from .lists import Lists, new_lists
from .table import TreeTable


@by_reference()
class Chain(NamedTuple):
    """What members of several columns need; w is the largest number of columns of a unit.

    On the way to a child the columns of the member that is dropped leave one after the other. In
    A of the node after the first d of them have left, the row of the next column is row d − 1 of
    ``leaving``; the row of the first is a row of the node's own A.
    """

    leaving: Annotated[Array, "rest p"]  # these rows, at the parent's places
    scaled: Annotated[Array, "p w"]  # by free column of the child, before it is put in order: its
    # entry in the row of every column that leaves, over the root of that column's diagonal entry
    rows: Annotated[Array, "m rest p"]  # by level of the child: ``leaving`` at the child's places
    pivot: Annotated[Array, "m rest"]  # by level of the child: one over their diagonal entries
    width: Annotated[Ints, "m"]  # by level of the child: number of columns that were dropped
    block: Annotated[Array, "m p rest"]  # by level: A between a column and those before it in its
    # unit
    whole: NDArray[np.int8]  # (m, m), by level: 1 where ``added_loss`` has all columns
    child_block: Annotated[Array, "p rest"]  # the same of a child before it is put in order
    child_whole: Annotated[NDArray[np.int8], "m"]
    source: Annotated[Ints, "m"]  # a child's free members in its parent's order
    start: Annotated[Ints, "m"]  # where their columns begin, before the child is put in order
    places: Annotated[Ints, "p"]  # the order in which a child takes over its columns
    square: Annotated[Array, "w w"]  # work space
    coef: Annotated[Array, "w"]  # work space
    W: Annotated[Array, "w n"]  # rows of W of the columns of a member, as they leave
    remain: Annotated[Array, "n"]  # 1 − h_i without the member
    deleted: Annotated[Array, "n"]  # r_i/(1−h_i) without the member


@by_reference()
class Within(NamedTuple):
    """What a tree with bounds on coefficients keeps besides; without bounds arrays are empty.

    A node's fit within the bounds has a larger loss than its ridge fit, or the same.
    """

    fit: BoundedFit  # fits within the bounds
    inside: Annotated[Array, "m p"]  # by level: coefficients within the bounds, by column
    value: Annotated[Array, "m"]  # by level: their loss
    own: Annotated[Array, "m"]  # by level: the same, less what it may lack to the optimum
    bound: Annotated[Array, "m"]  # by level: the largest bound of the node and of those above
    least_bound: Array  # (m+2,) by size: the least ``own`` of the supports that were fitted
    placed: Annotated[Array, "p"]  # ``inside`` of free columns, at their places


@by_reference()
class Counting(NamedTuple):
    """What a tree keeps whose units count more than once in a size.

    The size of a node is the sum of what its members count, and a support answers every size from
    its own on. Where every unit counts once, a size is a number of members.
    """

    cost: Ints  # (m,): what each unit counts
    total: Annotated[Ints, "m"]  # by level: the size of the node
    low: Annotated[Ints, "m m"]  # by level: the size of the members that the child without each
    # free member may not drop: those that are fixed, and the free members before it


@by_reference()
class LeapsTree(NamedTuple):
    """Everything a search among m units of p columns needs to stop at any node and go on later.

    Level ℓ, one of m, holds a node with m − ℓ members. With n = 0 deleted rows there is one
    problem; otherwise there are n problems. Losses are objectives less the objective of the full
    ridge fit. A node is open for the problems whose incumbents it may still improve: level ℓ lists
    ``n_open[ℓ]`` problems in ``problem_of[ℓ]``, and entries of ``loss``, ``W``,
    ``one_minus_leverage`` and ``deleted_residual`` are in this order.

    Free members have places 0, 1, … in their order at a node, and so have their columns. Where
    every unit is one column the two are the same.
    """

    lists: Lists
    first: Ints  # (m+1,): columns of unit u are first[u] … first[u+1] − 1
    included: NDArray[np.int8]  # (m,): 1 for units that may not be dropped
    scale: Array  # (p,): lengths that the rounding of columns is relative to, if above their own
    extracted: Annotated[Array, "p"]  # a diagonal D ≥ 0 with XᵀX − D ⪰ 0; 0 in trees of groups
    worth: Annotated[Array, "p"]  # γ/2 + D, less what rounding takes of a sum of (γ/2 + D_j)β_j²
    root_diagonal: Annotated[Array, "p"]  # diagonal of A at the root, by column
    dependent_from: Annotated[Array, "p"]  # others determine a column from this ``diagonal`` on
    wide: int  # 1 where a unit has several columns
    weighted: int  # 1 where a unit counts more than once in a size
    bounded: int  # 1 where coefficients have bounds
    gathers: int  # 1 where the supports that are entered are handed out and not listed
    columns_of: Annotated[Array, "p+1 p+1"]  # the triangular factor R, one column of R per row,
    # without what columns leave of y
    A: Annotated[Array, "m p p"]  # by level, columns of free members only
    diagonal: Annotated[Array, "m p"]  # by level: diagonal of A
    known_row: Annotated[Ints, "m p"]  # by level: 1 where the column's row of A is computed
    dropped: Annotated[Ints, "m"]  # by level: place at the parent of the first column dropped
    parent_place: Annotated[Ints, "m p"]  # by level: places of free columns in the parent's arrays
    factorised_diagonal: Annotated[Array, "m p"]  # diagonal of A at the last factorisation
    beta: Annotated[Array, "m p"]  # by level
    added_loss: Annotated[Array, "m p"]  # the loss added by dropping a free member
    least_added: Array  # (m, p) what supports without a free member have above ``loss`` at least;
    # without bounds on coefficients the same array
    free: Annotated[Ints, "m m"]  # by level: the free members
    start: Ints  # (m, m), by level: places of their first columns
    n_columns: Annotated[Ints, "m"]  # by level: how many columns they have
    fixed: Annotated[Ints, "m"]  # by level: number k of fixed members
    cursor: Annotated[Ints, "m"]  # by level: free member whose child comes next
    mask: Annotated[Mask, "m words"]  # by level: the members of the node
    triangle: Annotated[Array, "p+1 p+1"]  # triangular factor of the node factorised last
    work: Annotated[Array, "p+1 p+1"]
    members: Annotated[Ints, "m"]  # members of the node factorised last, fixed members first
    columns: Annotated[Ints, "p"]  # their columns
    source: Annotated[Ints, "p"]  # places of a child's free columns in its parent's arrays
    path: Annotated[Ints, "m"]  # places of one column at the levels, as a row of A is computed
    order: Annotated[Ints, "m"]  # order of a child's free members, those that add most first
    rank: Annotated[Ints, "m"]  # work space of the order
    child_added_loss: Annotated[Array, "p"]  # ``added_loss`` of a child before it is put in order
    child_key: Annotated[Array, "p"]  # what decides the order where it is not ``child_added_loss``
    child_beta: Annotated[Array, "p"]  # ``beta`` of a child before it is put in order
    child_diagonal: Annotated[Array, "p"]  # ``diagonal`` of a child before it is put in order
    step: Annotated[Array, "p"]  # what free members add to the loss at least
    open_from: Annotated[Ints, "m sizes"]  # by level: the least size ≥ s that a search below the
    # node is for; of one problem without deleted rows
    pruned_up_to: int  # nodes of more members are always searched
    loss: Annotated[Array, "m problems"]  # losses of the nodes on the path
    child_loss: Annotated[Array, "problems"]  # losses of the child that is evaluated
    child_value: Array  # (problems,) its losses within the bounds; without bounds the same array
    n_open: Ints  # (m,), by level: number of problems that the node is open for
    problem_of: Ints  # (m, problems), by level: these problems' numbers
    parent_place_of: Annotated[Ints, "problems"]  # the child's problems in its parent's order
    Z: Array  # (p, n): deleted rows, transposed
    targets: Array  # (n,): responses of the deleted rows; empty in a tree for one problem
    V: Annotated[Array, "p n"]  # T⁻ᵀZ_Sᵀ of the node factorised last, RᵀR = G_S + γ/2 I, T the
    # leading R
    W: Annotated[Array, "buffer n"]  # rows of A Z_Sᵀ of free columns, level after level
    offset: Ints  # (m,), by level: first row in W
    one_minus_leverage: Annotated[Array, "m n"]  # 1 − h_i
    deleted_residual: Annotated[Array, "m n"]  # r_i/(1−h_i)
    chain: Any  # a ``Chain``; None in a plain tree, and so below
    within: Any  # a ``Within``
    gathering: Any  # a ``Gathering``
    counting: Any  # a ``Counting``


@by_reference(zeros=("wide", "weighted", "bounded", "gathers"))
class PlainTree(LeapsTree):
    """A tree of single columns without bounds, which lists the best supports.

    Kernels are compiled for such trees alone, which takes two thirds of the time.
    """


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


def new_tree(
    table: TreeTable,
    sizes: NDArray[np.intp],
    rows: Array | None,
    targets: Array | None,
    n_best: int,
    room: int = 0,
    cost: NDArray[np.intp] | None = None,
) -> LeapsTree:
    """Allocate the search for the wanted ``sizes`` among the units of a table.

    At most 64 supports of a size are kept whose losses are equal up to rounding, 16 within bounds
    on coefficients, and 4 for each of several problems: a choice.

    rows, targets, shape (n, p) and (n,): Rows to delete in turn, or None; columns as in the table.
    n_best: How many of the best supports of each size are wanted, for each problem.
    room: With a number above 0 the tree hands out supports, at most so many at a time; rows then
        stand for lines of responses.
    cost, shape (m,): What each unit counts in a size, where that is not 1 for every unit.
    """
    m, p, bounded = table.units.size, table.columns.size, table.bounded
    wide, most = p > m, m if cost is None else int(cost.sum())
    plain = not (wide or bounded or room > 0 or cost is not None)
    Z = np.empty((p, 0)) if rows is None else np.ascontiguousarray(rows.T)
    t = np.empty(0) if targets is None else targets
    n, problems = t.size, max(t.size, 1)
    offset = np.zeros(m + 1, dtype=np.int64)
    if n:  # At most so many free columns stand at the levels before each, together.
        widest = np.sort(np.diff(table.first))[::-1]
        offset[1:] = np.cumsum(np.cumsum(widest)[::-1])
    lengths = {"m": m, "p": p, "n": n, "problems": problems, "words": mask_words(m)}
    lengths["buffer"], lengths["sizes"] = int(offset[-1]), most + 2
    added, losses = np.zeros((m, p)), np.zeros(problems)
    ties = 4 if n else 16 if bounded else 64
    # Many supports tie within bounds, as coefficients at bounds of 0 may be left out. A node is
    # searched for supports that are better by more than ``BOUND_SHARE``.
    lists = new_lists(m, sizes, problems, ties, n_best, BOUND_SHARE if bounded else 0.0, cost)
    return allocated(
        PlainTree if plain else LeapsTree,
        lengths,
        lists=lists,
        first=table.first,
        included=table.included,
        scale=table.scale,
        wide=int(wide),
        weighted=int(cost is not None),
        bounded=int(bounded),
        gathers=int(room > 0),
        added_loss=added,
        least_added=np.zeros((m, p)) if bounded else added,
        child_loss=losses,
        child_value=np.zeros(problems) if bounded else losses,
        start=np.zeros((m, m), dtype=np.int64) if wide else np.tile(np.arange(m), (m, 1)),
        # The n-th best support of at most a size is the worse the smaller the size.
        pruned_up_to=pruned_up_to(m, n_best) if cost is None else most,
        n_open=np.full(m, problems, dtype=np.int64),
        problem_of=np.arange(m * problems).reshape(m, problems) % problems,
        Z=Z,
        targets=t,
        offset=offset[:-1],
        chain=None if plain else new_chain(m, p, n, int(np.diff(table.first).max())),
        within=None if plain else new_within(m, most, table.lower, table.upper),
        gathering=None if plain else new_gathering(m, n, room),
        counting=None if plain else new_counting(m, cost),
    )


def new_chain(m: int, p: int, n: int, width: int) -> Chain:
    """Allocate what members of up to ``width`` columns need in a tree of m units, p columns.

    n: Number of deleted rows.
    """
    lengths = {"m": m, "p": p, "n": n, "w": width, "rest": width - 1}
    return allocated(Chain, lengths, whole=np.ones((m, m), dtype=np.int8))


def new_within(m: int, most: int, lower: Array, upper: Array) -> Within:
    """Allocate what bounds on the coefficients of p columns need in a tree of m units.

    most: The size of all units together.
    """
    p = lower.size
    fit = new_bounded_fit(np.zeros((p + 1, p + 1)), lower, upper)
    least = np.full(most + 2, np.inf)
    return allocated(Within, {"m": m, "p": p}, fit=fit, least_bound=least)


def new_gathering(m: int, lines: int, room: int) -> Gathering:
    """Allocate what a tree of m units needs to hand out supports, ``room`` of them at a time.

    lines: Number of lines of responses. What known supports leave of one has at most 16 intervals,
        a choice: in tests none has more than 8.
    """
    lengths = {"sizes": m + 2, "problems": lines, "room": room}
    return allocated(Gathering, {**lengths, "words": mask_words(m), "length": 16})


def new_counting(m: int, cost: NDArray[np.intp] | None) -> Counting:
    """Allocate what a tree of m units needs where they count more than once in a size."""
    each = np.ones(m) if cost is None else cost
    return allocated(Counting, {"m": m}, cost=each.astype(np.int64))


@kernel(inner=True)
def size_of_all(tree):
    """The size of all units together."""
    m, total = tree.mask.shape[0], 0
    if tree.weighted == 0:
        return m
    for unit in range(m):
        total += tree.counting.cost[unit]
    return total


@kernel(inner=True)
def sum_costs(tree, level, total):
    """Write the size ``total`` of the level's node, and what its children may not drop, to ``low``.

    The free members are in order.
    """
    counting, free, size = tree.counting, tree.free, total
    v = tree.mask.shape[0] - level - tree.fixed[level]
    counting.total[level] = total
    for a in range(v):
        size -= counting.cost[free[level, a]]
    for a in range(v):
        counting.low[level, a] = size
        size += counting.cost[free[level, a]]


@kernel(inner=True)
def size_without(tree, level, j):
    """The size of the child without free member j of the level's node."""
    if tree.weighted > 0:
        return tree.counting.total[level] - tree.counting.cost[tree.free[level, j]]
    return tree.mask.shape[0] - level - 1


@kernel(inner=True)
def mask_child(tree, level, j):
    """Write the members of the level's node without free member j to ``tree.lists.support``."""
    for w in range(tree.lists.support.shape[0]):
        tree.lists.support[w] = tree.mask[level, w]
    unit = tree.free[level, j]
    tree.lists.support[unit >> 6] &= ~(np.uint64(1) << np.uint64(unit & 63))


@kernel(inner=True)
def factorise(tree, level):
    """Compute A, β and added losses of the level's node afresh, from the factor of all columns.

    The node's mask, number of fixed members and list of free members are set before.
    """
    first, free, T = tree.first, tree.free, tree.triangle
    m = tree.mask.shape[0] - level
    v, u = m - tree.fixed[level], 0
    member_columns(tree.mask, level, free, v, tree.members)
    for a in range(v):
        if tree.wide > 0:
            tree.start[level, a] = u
        u += first[free[level, a] + 1] - first[free[level, a]]
    tree.n_columns[level] = u
    n = factor_members(tree, m)
    trailing_inverse(T, n - u, n, tree.A, tree.beta, level)
    for a in range(u):
        tree.factorised_diagonal[level, a] = tree.diagonal[level, a] = tree.A[level, a, a]
        tree.known_row[level, a] = 1
    if tree.wide > 0:
        factorised_units(tree, level, v)
    else:
        for a in range(u):
            tree.added_loss[level, a] = tree.beta[level, a] ** 2 / tree.A[level, a, a]
    tree.cursor[level] = v - 1


@kernel(inline=True)
def drop(tree, level, j, one_path):
    """Begin the child without free member j of the level's node, one level below.

    Writes its mask, the number of its fixed members and, for each of its u free columns, the place
    at the parent, the coefficient and the diagonal of A, to ``source``, ``child_beta`` and
    ``child_diagonal``, and added losses to ``child_added_loss``. :func:`put_in_order` has to
    follow.

    one_path: Whether all other free members stay free; otherwise the members before j become fixed.
    Returns: False where too many digits cancel: then :func:`factorise` has to compute the rest.
    """
    A, beta, diagonal, source = tree.A, tree.beta, tree.diagonal, tree.source
    child_beta, child_diagonal = tree.child_beta, tree.child_diagonal
    child_added_loss, factorised = tree.child_added_loss, tree.factorised_diagonal
    member, i, below, u = tree.free[level, j], tree.start[level, j], level + 1, 0
    after = i + tree.first[member + 1] - tree.first[member]
    inverse_row(tree, level, i)
    for a in range(0 if one_path else after, tree.n_columns[level]):
        if a < i or a >= after:
            source[u] = a
            u += 1
    tree.n_columns[below] = u
    tree.fixed[below] = tree.fixed[level] + (0 if one_path else j)
    mask_child(tree, level, j)
    for w in range(tree.mask.shape[1]):
        tree.mask[below, w] = tree.lists.support[w]
    pivot = 1.0 / A[level, i, i]
    ratio = beta[level, i] * pivot
    fresh = True
    for a in range(u):
        c = source[a]
        off = A[level, i, c]
        left = diagonal[level, c] - off * pivot * off
        shifted = beta[level, c] - off * ratio
        child_beta[a], child_diagonal[a] = shifted, left
        if left > LEAST_DIAGONAL_SHARE * factorised[level, c]:
            child_added_loss[a] = shifted * shifted / left
        else:
            child_added_loss[a], fresh = tree.added_loss[level, c], False
    if tree.wide > 0:
        fresh = drop_rest(tree, level, j, u, fresh, one_path)
    return fresh


@kernel(inner=True)
def order_key(tree, column, diagonal, added):
    """The number by which a free column is put in order, the largest first: its loss, or more.

    A column that others determine can leave at next to no loss, so that the node with all of them
    ties with its children, and nearly every node below prunes by one size too few. Where such
    columns leave first, no node below has all of them free: with the indicators of all levels of
    three factors, 1,000 rows and 38 columns a tree takes a seventieth of the nodes.

    diagonal: The column's entry of the diagonal of A. added: Its loss, at most ``now.dependent``.
    """
    if diagonal >= tree.dependent_from[column]:
        return added + tree.lists.now[0].dependent
    return added


@kernel(inner=True)
def put_in_order(tree, level, j):
    """Write the arrays of the child that :func:`drop` has begun, those that add most first.

    Single columns that others determine come before all others, see :func:`order_key`.
    Where digits have cancelled, :func:`factorise` overwrites all but the order.
    """
    source, order, below = tree.source, tree.order, level + 1
    v = tree.mask.shape[0] - below - tree.fixed[below]
    key = tree.child_key if tree.bounded > 0 else tree.child_added_loss
    if tree.lists.now[0].dependent > 0:
        for a in range(v):
            tree.child_key[a] = order_key(
                tree, tree.free[level, source[a]], tree.child_diagonal[a], tree.child_added_loss[a]
            )
        key = tree.child_key
    order_steps(key, v, order, tree.rank)
    members, places = source, order
    if tree.wide > 0:
        members, places = tree.chain.source, tree.chain.places
        order_columns(tree, level, j, v)
    # Arrays are taken from the record before a loop, as code that writes to an array must read the
    # record anew after every number that it writes.
    free, added_loss, child_added_loss = tree.free, tree.added_loss, tree.child_added_loss
    for a in range(v):
        free[below, a] = free[level, members[order[a]]]
        added_loss[below, a] = child_added_loss[order[a]]
    beta, diagonal = tree.beta, tree.diagonal
    child_beta, child_diagonal = tree.child_beta, tree.child_diagonal
    parent_place, factorised, known = tree.parent_place, tree.factorised_diagonal, tree.known_row
    for a in range(tree.n_columns[below]):
        place = places[a]
        c = source[place]
        parent_place[below, a] = c
        beta[below, a] = child_beta[place]
        diagonal[below, a] = child_diagonal[place]
        factorised[below, a] = factorised[level, c]
        known[below, a] = 0
    tree.cursor[below] = v - 1
    tree.dropped[below] = tree.start[level, j]


@kernel(inline=True)
def open_sizes(tree, level, loss, updated):
    """Write the sizes that a search below the child is for to ``open_from``; whether there are any.

    A support T that lacks d free members of the child S has f_T ≥ f_S + Σ w_jβ_j² over their
    columns, with w_j = γ/2 + D_j and XᵀX − D ⪰ 0: f_T − f_S is at least
    (b − β)ᵀ(XᵀX + (γ/2)I)(b − β) for the coefficients b of T, which are 0 there. So f_S and the d
    smallest sums of w_jβ_j² over a member's columns bound all objectives of T's size from below.
    The size is closed if that is more than ``max_searched`` allows.

    On entry :func:`drop` has begun the child, and ``open_from`` of its parent is complete.

    loss: f_S less the objective of the fit on all columns.
    updated: Whether β has its digits; otherwise f_S alone bounds objectives.
    """
    step, searched, k = tree.step, tree.lists.max_searched, tree.fixed[level]
    m, opened, before = tree.mask.shape[0] - level, tree.open_from[level], tree.open_from[level - 1]
    child_beta, order = tree.child_beta, tree.order
    free, source, worth = tree.free[level - 1], tree.source, tree.worth
    for a in range(tree.n_columns[level]):
        # In a tree of groups all columns are worth the same.
        column = 0 if tree.wide > 0 else free[source[a]]
        step[a] = worth[column] * child_beta[a] * child_beta[a] if updated else 0.0
    if tree.wide > 0:
        sum_steps(tree, level, m - k)
    order_steps(step, m - k, order, tree.rank)
    least, every = tree.mask.shape[0] + 1, m > tree.pruned_up_to
    for d in range(1, m - k + 1):
        s = m - d
        loss += step[order[m - k - d]]
        if before[s] == s and (every or loss <= searched[s, 0]):
            least = s
        opened[s] = least
    return least < m


@kernel(inner=True)
def highest_rank(tree, level, rank):
    """The free member of highest rank; of members of equal rank, the member of least added loss.

    rank, shape (m,): One number per unit.
    """
    best, added = 0, tree.least_added[level]
    for a in range(1, tree.mask.shape[0] - level - tree.fixed[level]):
        rank_here, rank_best = rank[tree.free[level, a]], rank[tree.free[level, best]]
        if rank_here > rank_best or (rank_here == rank_best and added[a] < added[best]):
            best = a
    return best
