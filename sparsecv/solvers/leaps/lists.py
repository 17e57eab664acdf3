"""Lists of the best supports of every size that a leaps-and-bounds tree knows of a problem."""

from __future__ import annotations

import numpy as np

from ..kernels.compiled import kernel
from ..kernels.linalg import GAIN_SHARE, later


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

    A list is in increasing order of loss. Its last place in memory is free on entry and on exit,
    so a list is full when it has one support fewer than places.

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
