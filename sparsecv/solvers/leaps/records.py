"""The arrays of a leaps-and-bounds tree: what each of them holds, and how they are allocated.

Kernels take them in records: :class:`LeapsTree` has everything that a search needs to stop at any
node and go on later, with the lists of the best supports known (:class:`Lists`) in it.
"""

from __future__ import annotations

from math import comb
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.bounded_fit import BoundedFit, new_bounded_fit
from ..core.rounding import BOUND_SHARE
from ..kernels.by_reference import by_reference
from ..kernels.linalg import Array, Ints, Mask, allocated, mask_words, record
from .lines import Gathering
from .table import TreeTable

NOW = np.dtype(
    [
        ("level", np.int64),  # the level of the node whose child comes next
        ("nodes", np.int64),  # how many nodes were searched so far
        ("tie", np.float64),  # relative difference of losses below which rounding may reverse an
        # order, beside the difference ``tied_loss``
        ("tied_loss", np.float64),  # difference of losses that rounding of ``full`` alone makes
        ("reach", np.float64),  # Σ ℓ_j|β_j| + |y| is at most this number times |y| in any fit
        ("least_pivot", np.float64),  # √(γ/2): no pivot is smaller in exact arithmetic
        ("closes", np.int64),  # 1 where sizes are closed below nodes (``open_sizes``)
        ("inflation", np.float64),  # sum of the variance inflation factors of all columns
        ("full", np.float64),  # objective of the ridge fit on all columns
        ("dependent", np.float64),  # |y|² where columns are determined by others, which leave
        # first; 0 where there are none, and where units have several columns or bounds
        ("rank", np.int64),  # how many of the best supports of each size are wanted
        ("margin", np.float64),  # supports are listed up to this share above the least loss
        ("improvement", np.float64),  # share of the objective that a support must be better by
    ],
    align=True,
)


@by_reference()
class Lists(NamedTuple):
    """The best supports known of every size, for one or several problems, and what is wanted.

    Supports are bit masks of 64 units a word. ``found[s, i]`` lists the wanted
    supports of size s of problem i and those that tie with them, by increasing ``loss[s, i]``;
    beyond the list losses are ∞. The last entry of a list is always free.
    """

    found: Annotated[Mask, "sizes problems length words"]
    loss: Annotated[Array, "sizes problems length"]
    n: Annotated[Ints, "sizes problems"]  # the length of every list
    max_kept: Annotated[Array, "sizes problems"]  # a support of larger loss is not entered
    max_searched: Annotated[Array, "sizes problems"]  # a size skips nodes of larger loss
    next_wanted: Ints  # (sizes,): the least wanted size ≥ s, for every s
    weighted: int  # 1 where a unit counts more than once in a size: a support then answers every
    # size from its own on
    support: Annotated[Mask, "words"]  # the support that is entered next
    now: Any  # the state of the search, a record of the type NOW


def new_lists(
    m: int,
    sizes: NDArray[np.intp],
    problems: int,
    ties: int,
    rank: int,
    improvement: float = 0.0,
    cost: NDArray[np.intp] | None = None,
) -> Lists:
    """Allocate lists of supports of at most ``m`` units.

    :func:`~.lists.forget_supports` has to set their losses.

    sizes: Support sizes wanted.
    ties: At least 1; one of these places stays free, so that ``ties`` − 1 supports of a size and
        problem are kept beyond the rank-th.
    rank: How many of the best supports of each size are wanted.
    improvement: Nodes are searched for supports that are better by this share of the objective.
    cost, shape (m,): What each unit counts in a size, where that is not 1 for every unit.
    """
    most = m if cost is None else int(cost.sum())
    lengths = {"sizes": most + 2, "problems": problems, "length": ties + rank}
    lengths["words"] = mask_words(m)
    now = record(NOW, rank=rank, margin=np.inf, improvement=improvement)
    wanted, weighted = wanted_from(sizes, most), int(cost is not None)
    return allocated(Lists, lengths, next_wanted=wanted, weighted=weighted, now=now)


def wanted_from(sizes: NDArray[np.intp], p: int) -> NDArray[np.int64]:
    """Least wanted size ≥ s for s = 0..p+1; p + 1 where there is none.

    Returns, shape (p + 2,).
    """
    next_wanted = np.full(p + 2, p + 1, dtype=np.int64)
    next_wanted[sizes] = sizes
    return np.minimum.accumulate(next_wanted[::-1])[::-1].copy()


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
    start: Annotated[Ints, "m"]  # a member's columns begin here until the child is put in order
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
    columns_of: Annotated[Array, "p+1 p+1"]  # row j has column j of R; what is left of y is 0
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
