"""Lists of the best supports of every size that a leaps-and-bounds tree knows of a problem."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import GAIN_SHARE, Array, Ints, Mask, allocated, later, mask_words, record

NOW = np.dtype(
    [
        ("level", np.int64),  # of the node whose child comes next
        ("nodes", np.int64),  # searched so far
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
        ("margin", np.float64),  # of these, the ones whose loss is above the least by this share
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
    max_searched: Annotated[Array, "sizes problems"]  # a node of larger loss is not searched for
    # this size
    next_wanted: Ints  # (sizes,): the least wanted size ≥ s, for every s
    weighted: int  # 1 where a unit counts more than once in a size: a support then answers every
    # size from its own on
    support: Annotated[Mask, "words"]  # the support that is entered next
    now: Any  # of NOW


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

    :func:`forget_supports` has to set their losses.

    sizes: Support sizes wanted.
    ties: How many supports of a size and problem are kept beyond the rank-th.
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
    way, but none of the ``rank`` best, on which bounds rest. Supports tie here if their losses
    differ by a share of at most ``GAIN_SHARE``, or by ``tie`` where that is less, and by
    ``tied_loss``.
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
    place, tied = last, 1.0 + min(lists.now[0].tie, GAIN_SHARE)
    least = losses[last] - lists.now[0].tied_loss
    for t in range(lists.now[0].rank, last):
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
    if lists.weighted > 0:
        for s in range(size + 1, lists.n.shape[0]):
            lists.max_kept[s, i] = min(lists.max_kept[s, i], most)
    if now.improvement > 0.0 and most < np.inf:
        most -= now.improvement * (now.full + most)
    # The best support of a larger size has no larger loss than this support. That holds of the
    # rank-th best, too, in the nodes that are pruned (see `pruned_up_to`).
    for s in range(size, lists.n.shape[0]):
        lists.max_searched[s, i] = min(lists.max_searched[s, i], most)
