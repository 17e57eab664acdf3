"""Compiled depth-first search of the all-sizes tree (leaps and bounds on XᵀX + γ/2 I).

f_S bounds every support below node S from below (Furnival & Wilson 1974). Everything is kept as
loss above the full ridge fit: f_S − f_full is a sum of positive terms β_j²/A_jj, so it keeps its
digits whether γ is 1e-8 or 1e8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array
from .leaps_node import Tree, drop, factorise, highest_rank, name_child, new_tree, pause, remember

TIES = 64
KEPT = 4  # supports of a size that are worth knowing where ``margin`` asks for more than the best


class TreeState(NamedTuple):
    """Everything the search needs to stop after any node and go on later.

    ``best`` is the least loss known per size, ``keep`` the loss up to which supports of that size
    are entered, ``cut`` the loss above which a node can be dropped, ``slack`` the least bound among
    nodes dropped within the tolerance.
    """

    tree: Tree
    loss: Array  # (levels,)
    best: Array  # (p+2,)
    keep: Array  # (p+2,)
    cut: Array  # (p+2,)
    slack: Array  # (p+2,)


SEARCH = np.empty(0, dtype=np.int64)  # no ranks: search rather than walk


def new_state(
    R: Array, sizes: NDArray[np.intp], tie: float, tolerance: float, ridge: float
) -> TreeState:
    """Allocate the search for one problem with factor ``R`` and the wanted ``sizes``."""
    p = R.shape[0] - 1
    settings = {"tie": tie, "tolerance": tolerance, "least": np.sqrt(ridge)}
    state = TreeState(
        tree=new_tree(R, sizes, 1, TIES, **settings),
        loss=np.zeros(p),
        best=np.full(p + 2, np.inf),
        keep=np.full(p + 2, np.inf),
        cut=np.full(p + 2, np.inf),
        slack=np.full(p + 2, np.inf),
    )
    factorise(state.tree, 0)
    state.best[p] = state.keep[p] = state.cut[p] = state.cut[p + 1] = 0.0
    return state


@kernel(inner=True)
def after_kept(st, size):  # type: ignore[no-untyped-def]
    """The least loss known after ``KEPT`` lower ones of this size; infinite without so many."""
    tree = st.tree
    loss = -np.inf
    for _ in range(KEPT + 1):
        least = np.inf
        for t in range(tree.found_n[size, 0]):
            if loss < tree.found_loss[size, 0, t] < least:
                least = tree.found_loss[size, 0, t]
        loss = least
    return loss


@kernel(inner=True)
def offer(st, level, j, size, loss):  # type: ignore[no-untyped-def]
    """Enter the node without free member j as a candidate of its size."""
    tree = st.tree
    name_child(tree, level, j)
    tie, margin = tree.settings[0].tie, tree.settings[0].margin
    kept = remember(tree.found, tree.found_loss, tree.found_n, tree.support, size, 0, loss, tie)
    if not kept or (loss >= st.best[size] and margin == 0.0):
        return
    best = min(st.best[size], loss)
    cut = best * (1.0 + tie)
    if margin > 0.0:
        cut = max(cut, min(best * (1.0 + margin), after_kept(st, size) * (1.0 + tie)))
    st.best[size], st.keep[size] = best, cut
    tolerance = tree.settings[0].tolerance
    if tolerance > 0.0:
        cut = min(cut, max(0.0, best - tolerance * (tree.settings[0].full_loss + best)))
    for s in range(size, st.cut.shape[0]):
        # a larger support never fits worse, so a bound above cut[size] is useless there too
        st.cut[s] = min(st.cut[s], cut)


@kernel
def advance(st, max_nodes, rank):  # type: ignore[no-untyped-def]
    """Search on for at most ``max_nodes`` nodes; True once the tree is exhausted.

    With ``rank`` (one per column) it walks instead, from the root, before the search starts: drop
    the column of highest rank, among equals the one that costs least, until one is left, and enter
    every support on the way.
    """
    tree = st.tree
    p = tree.A.shape[0]
    walking = rank.shape[0] > 0
    cursor, fixed, losses, step = tree.cursor, tree.fixed, st.loss, tree.step
    keep, cut, want, slack = st.keep, st.cut, tree.want, st.slack
    tolerance = tree.settings[0].tolerance
    level = 0 if walking else tree.counts[0].level
    done = 0
    while level >= 0 and done < max_nodes:
        size = p - level - 1
        j = cursor[level]
        if walking:
            if size == 0:
                return False
            j = highest_rank(tree, level, rank)
        elif j < 0:
            level -= 1
            continue
        else:
            cursor[level] = j - 1
            done += 1
        loss = losses[level] + step[level, j]
        if size >= 1 and loss <= keep[size]:
            offer(st, level, j, size, loss)
        if not walking:
            k = fixed[level] + j
            if k >= size:
                continue  # every remaining member is fixed
            low = want[k]
            if low >= size:
                continue
            if loss > cut[low]:
                if tolerance > 0.0:
                    for s in range(low, size):
                        slack[s] = min(slack[s], loss)
                continue
        losses[level + 1] = loss
        if not drop(tree, level, j, walking):
            factorise(tree, level + 1)
        level += 1
    return pause(tree, level, done)
