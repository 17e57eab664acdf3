"""Compiled search of one tree for many neighbours at once.

A node of the whole data's tree is bounded for every neighbour it is still open for, first at the
coefficients of the node's own relaxation, then at ones that follow the rows left out. It is
branched on while it is open for many; what is open for a few is handed over to their own searches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.completion import complete
from ..kernels.linalg import Array
from ..relaxation.descent import Sweeps, relax
from .incumbent_kernels import factor_support, try_support
from .node import (
    IN,
    OUT,
    choose_all,
    combinations,
    count_node,
    fill_up,
    largest_share,
    round_node,
)
from .row_deletion_kernels import (
    bound_all_rows,
    bound_moved,
    load_node,
    passing,
    prepare_moves,
    residuals,
    worth_moving,
)

# supports visited for all neighbours together: instead of a relaxation, instead of branching
CHEAP, MOST = 2e4, 1e5

SETTINGS = np.dtype(
    [
        ("few", "i8"),  # neighbours up to which a node is handed over
        ("patience", "i8"),  # nodes handed over to a neighbour before it is left to its own tree
        ("cap", "f8"),  # relative bound at which the relaxation on all rows may stop
        ("tolerance", "f8"),
    ]
)
COUNTS = np.dtype([("leaves", "i8"), ("pairs", "i8"), ("top", "i8")])


class Joint(NamedTuple):
    """The stack of open nodes, which neighbours they are open for, and what was handed over."""

    stack: NDArray[np.int8]  # (depth, p), and the β and √λ to start from
    stack_beta: Array
    stack_lam: Array
    folds: NDArray[np.int32]  # (depth, k)
    counts: NDArray[np.int64]  # (depth,)
    settings: NDArray[np.void]  # (1,) of SETTINGS
    leaves: NDArray[np.int8]  # (leaves, p), and their β and √λ
    leaf_beta: Array
    leaf_lam: Array
    pairs: NDArray[np.int64]  # (pairs, 2): leaf, neighbour
    now: NDArray[np.void]  # (1,) of COUNTS
    load: NDArray[np.int64]  # (k,) nodes handed over to each neighbour
    here: NDArray[np.int32]  # (k,)
    retry: NDArray[np.int8]  # (k,)
    c: Array  # (p,)
    # a node's columns gathered for enumeration
    order: NDArray[np.int64]  # (p,)
    places: NDArray[np.int64]  # (p,) 0, 1, 2, …
    one: NDArray[np.int32]  # (1,)
    G: Array  # (p, p)
    b: Array  # (p,)
    sweeps: Sweeps


@kernel(inner=True)
def hand_over(st, jt, count):  # type: ignore[no-untyped-def]
    """Record the current node as open for ``jt.here[:count]``, if that is anybody."""
    if count == 0:
        return
    now = jt.now[0]
    leaf, at = now.leaves, now.pairs
    for i in range(st.state.shape[0]):
        jt.leaves[leaf, i] = st.state[i]
        jt.leaf_beta[leaf, i] = st.beta[i]
    jt.leaf_lam[leaf] = st.lam[0]
    for a in range(count):
        jt.pairs[at + a, 0], jt.pairs[at + a, 1] = leaf, jt.here[a]
        jt.load[jt.here[a]] += 1
    now.leaves, now.pairs = leaf + 1, at + count


@kernel(inner=True)
def offer(st, jt, nb, count):  # type: ignore[no-untyped-def]
    """Try ``st.chosen`` as incumbent of the neighbours the node is open for; number in doubt."""
    gain = factor_support(nb, st.G, st.terms.b, st.chosen)
    return try_support(nb, st.chosen, gain, st.terms.yy, jt.here, count)


@kernel(inner=True)
def still_open(st, jt, nb, count, d, value):  # type: ignore[no-untyped-def]
    """Keep in ``jt.here`` the neighbours whose incumbent the node's bound does not reach.

    ``value`` is the relaxation's on all rows: where it cannot be enough nothing is tried.
    """
    tau, ridge = st.support.shape[0], st.now[0].ridge
    m = 0
    for i in range(st.state.shape[0]):
        if st.state[i] == IN:
            m += 1
    level = st.lam[0] * st.lam[0] * (ridge + d)
    load_node(nb, st.G, st.terms.b, st.state, st.beta, tau - m, level)
    bound_all_rows(nb)
    for a in range(count):
        residuals(nb, nb.start[jt.here[a]], nb.start[jt.here[a] + 1])
    keep = 1.0 - jt.settings[0].tolerance
    count = passing(nb, jt.here, count, keep, value, jt.retry)
    left = 0
    for a in range(count):
        j = jt.here[a]
        if jt.retry[a] == 1:
            target = nb.upper[j] * keep
            if nb.now[0].active < 0:
                prepare_moves(nb, st.G, d, st.lam[0])
            if worth_moving(nb, j, value, target):
                _, bound = bound_moved(nb, st.G, st.terms.b, j, target, False, jt.c)
                if bound >= target:
                    continue
        jt.here[left] = j
        left += 1
    return left


@kernel(inner=True)
def few_completions(st, m, n, k, folds, most):  # type: ignore[no-untyped-def]
    """Whether enumerating k of n columns for so many neighbours is worth ``most`` supports.

    Gathering the columns and projecting the m included ones out costs n²(m + 4)/6 of them, and
    where one pick is left, for which no products of free columns are needed, nm(m + 4)/6.
    """
    if k > st.work.C.shape[0] + 1 or n > st.work.C.shape[1]:
        return False
    setup = n * (m + 4.0) * (m if k == 1 else n) / 6.0
    return setup * folds <= most and (combinations(n, k, most) + setup) * folds <= most


@kernel(inner=True)
def complete_for_all(st, jt, nb, m, n, k, count):  # type: ignore[no-untyped-def]
    """Finish the current node by enumeration, for each neighbour it is open for.

    Only its included and free columns are gathered, less what the neighbour's rows add to them.
    Returns for how many the best completion could not be judged; ``jt.here`` begins with them.
    """
    size, doubtful = m + n, 0
    for a in range(n):
        jt.order[m + a] = st.columns[a]
    for a in range(m):
        jt.order[a] = st.chosen[a]
    for place in range(count):
        j = jt.here[place]
        yy = st.terms.yy
        for a in range(size):
            i = jt.order[a]
            jt.b[a] = st.terms.b[i]
            if a < m or k > 1:
                for q in range(size):
                    jt.G[a, q] = st.G[i, jt.order[q]]
            else:
                jt.G[a, a] = st.G[i, i]
        for r in range(nb.start[j], nb.start[j + 1]):
            target = nb.T[r]
            yy -= target * target
            for a in range(size):
                jt.c[a] = nb.D[r, jt.order[a]]
            for a in range(size):
                x = jt.c[a]
                jt.b[a] -= x * target
                if a < m or k > 1:
                    for q in range(size):
                        jt.G[a, q] -= x * jt.c[q]
                else:
                    jt.G[a, a] -= x * x
        before = max(yy - nb.upper[j], -1.0)  # finite: no gain is negative
        gain = complete(
            jt.G,
            jt.b,
            st.now[0].ridge,
            jt.places,
            m,
            jt.places[m:],
            n,
            k,
            before,
            -np.inf,
            st.work,
        )
        if gain > before:
            for a in range(k):
                st.chosen[m + a] = jt.order[m + st.work.found[a]]
            jt.one[0] = j
            gain = factor_support(nb, st.G, st.terms.b, st.chosen)
            if try_support(nb, st.chosen, gain, st.terms.yy, jt.one, 1) > 0:
                jt.here[doubtful] = j
                doubtful += 1
    return doubtful


@kernel(inner=True)
def relax_node(st, jt, k, target, hopeless):  # type: ignore[no-untyped-def]
    """Go on with the current node's relaxation until its bound reaches ``target``."""
    limits = jt.sweeps.limits[0]
    limits.target, limits.hopeless = target, hopeless
    relax(jt.sweeps, st.terms, st.state, k, st.beta, st.g, st.lam, st.top)


@kernel(inner=True)
def branch(st, jt, n, count):  # type: ignore[no-untyped-def]
    """Put both children on the stack: the free column of largest z out, and in."""
    which = largest_share(st.columns, n, st.beta, st.root_w, st.chosen, 0, 0)
    st.now[0].branched += 1
    for value in (OUT, IN):
        row = jt.now[0].top
        for a in range(count):
            jt.folds[row, a] = jt.here[a]
        jt.counts[row] = count
        for j in range(st.state.shape[0]):
            jt.stack[row, j], jt.stack_beta[row, j] = st.state[j], st.beta[j]
        jt.stack[row, which] = value
        if value == OUT:
            jt.stack_beta[row, which] = 0.0
        jt.stack_lam[row] = st.lam[0]
        jt.now[0].top = row + 1


@kernel
def explore_jointly(st, jt, nb, most_nodes):  # type: ignore[no-untyped-def]
    """Search on for at most ``most_nodes`` nodes.

    Returns 0 when done, 1 when the nodes are used up, 2 when the stack is full, 3 when there is no
    room for another leaf or its pairs.
    """
    p, tau, folds = st.state.shape[0], st.support.shape[0], nb.yy.shape[0]
    now, open_nodes, state, beta = st.now[0], jt.now[0], st.state, st.beta
    d = st.terms.w[0] - now.ridge
    used = 0
    while open_nodes.top > 0:
        if used >= most_nodes:
            return 1
        if open_nodes.top + 2 > jt.stack.shape[0]:
            return 2
        if open_nodes.leaves >= jt.leaves.shape[0] or open_nodes.pairs + folds > jt.pairs.shape[0]:
            return 3
        open_nodes.top -= 1
        at = open_nodes.top
        used += 1
        now.nodes += 1
        count = 0
        for a in range(jt.counts[at]):
            if jt.load[jt.folds[at, a]] <= jt.settings[0].patience:
                jt.here[count] = jt.folds[at, a]
                count += 1
        if count == 0:
            continue
        for i in range(p):
            state[i], beta[i] = jt.stack[at, i], jt.stack_beta[at, i]
        st.lam[0] = jt.stack_lam[at]
        m, n = count_node(st)
        k = tau - m
        if k <= 0 or k >= n:  # a single support
            fill_up(st.chosen, choose_all(st.chosen, m, k, st.columns, n), tau)
            left = offer(st, jt, nb, count)
            for a in range(left):
                jt.here[a] = nb.doubt[a]
            hand_over(st, jt, left)
            continue
        if few_completions(st, m, n, k, count, CHEAP):
            hand_over(st, jt, complete_for_all(st, jt, nb, m, n, k, count))
            continue
        # first whether all rows are done with the node, then with room to spare for the others
        best = jt.sweeps.best
        best[0] = -np.inf
        relax_node(st, jt, k, now.upper, 1.0)
        closed = best[0] >= now.upper
        if closed:
            relax_node(st, jt, k, now.upper * (1.0 + jt.settings[0].cap), 0.0)
        m, n = count_node(st)
        left = count
        if closed:
            left = still_open(st, jt, nb, count, d, best[1])
        elif count > jt.settings[0].few and round_node(st, m, k, n):
            offer(st, jt, nb, count)
        if left == 0:
            continue
        if few_completions(st, m, n, k, left, MOST):
            hand_over(st, jt, complete_for_all(st, jt, nb, m, n, k, left))
            continue
        if left <= jt.settings[0].few:
            hand_over(st, jt, left)
            continue
        branch(st, jt, n, left)
    return 0
