"""Compiled steps at a node of one tree for many problems that differ by the rows deleted.

A node of the tree of all rows is bounded for every problem that the node is still open for: first
at the coefficients of the node's relaxation, then at coefficients changed by the rows deleted. A
node that is open for many problems is branched on by ``driver``. A node that is open for few
problems is kept, and each of these problems is searched alone from the node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.completion import complete
from ..kernels.linalg import Array
from ..relaxation.descent import relax
from .node import IN, choose_all, combinations, count_node, fill_up, round_node
from .row_deletion_kernels import DeletedProblems, closes, load_node, try_support
from .search_settings import FAMILY

COUNTS = np.dtype(
    [
        ("max_open", "i8"),  # a node open for at most this many problems is kept
        ("max_nodes_left", "i8"),  # a problem with more kept nodes than this leaves the tree
        ("excess_share", "f8"),  # a relaxation ends when its bound exceeds the incumbent's
        # objective by this share
        ("count", "i8"),  # number of problems that the current node is open for
    ]
)


class Family(NamedTuple):
    """Many problems, the nodes that are open for each problem, and work space for enumeration."""

    problems: DeletedProblems
    open_for: NDArray[np.int8]  # (rows, k) 1 where the node in that row is open for the problem
    counts: NDArray[np.void]  # (1,) of COUNTS
    nodes_left: NDArray[np.int64]  # (k,) nodes kept for each problem
    open_here: NDArray[np.int32]  # (k,) the problems that the current node is open for come first
    one: NDArray[np.int32]  # (1,) number of the problem that is enumerated
    order: NDArray[np.int64]  # (p,) included columns of the current node, then its free columns
    places: NDArray[np.int64]  # (p,) 0, 1, 2, …
    G: Array  # (p, p) Gram matrix of one problem, on the columns in ``order``
    b: Array  # (p,) Xᵀy of one problem, on the columns in ``order``


@kernel(inner=True)
def inherit(family, row):  # type: ignore[no-untyped-def]
    """Let the node in a row be open for the problems that the current node is open for."""
    for j in range(family.open_for.shape[1]):
        family.open_for[row, j] = 0
    for a in range(family.counts[0].count):
        family.open_for[row, family.open_here[a]] = 1


@kernel(inner=True)
def worth_enumerating(st, m, n, k, problems, most):  # type: ignore[no-untyped-def]
    """Whether enumerating k of n columns for each problem takes at most the time of ``most``.

    Times are measured in supports that enumeration visits. Gathering the columns and projecting the
    m included columns out takes the time of n²(m + 4)/6 supports, and of nm(m + 4)/6 supports if
    k = 1, as products of free columns are not formed then.

    problems: Number of problems.
    """
    if k > st.work.C.shape[0] + 1 or n > st.work.C.shape[1]:
        return False
    setup = n * (m + 4.0) * (m if k == 1 else n) / 6.0
    return setup * problems <= most and (combinations(n, k, most) + setup) * problems <= most


@kernel(inner=True)
def gather(st, family, j, m, size, k):  # type: ignore[no-untyped-def]
    """Form the Gram matrix and Xᵀy of problem j on the first ``size`` columns of ``family.order``.

    With k = 1 column still to choose, only the diagonal is formed for the free columns, m and on.
    Returns: yᵀy of problem j.
    """
    dp, G, b, order = family.problems, family.G, family.b, family.order
    x, yy = dp.g, st.terms.yy
    for a in range(size):
        b[a] = st.terms.b[order[a]]
        first, last = (0, size) if a < m or k > 1 else (a, a + 1)
        for q in range(first, last):
            G[a, q] = st.G[order[a], order[q]]
    for r in range(dp.start[j], dp.start[j + 1]):
        yy -= dp.T[r] * dp.T[r]
        for a in range(size):
            x[a] = dp.D[r, order[a]]
        for a in range(size):
            b[a] -= x[a] * dp.T[r]
            first, last = (0, size) if a < m or k > 1 else (a, a + 1)
            for q in range(first, last):
                G[a, q] -= x[a] * x[q]
    return yy


@kernel(inner=True)
def enumerate_for_all(st, family, m, n, k, count):  # type: ignore[no-untyped-def]
    """Enumerate every choice of k of the n free columns for each of ``count`` open problems.

    m: Number of included columns.
    Returns: How many problems stay open, as the objective of their best support could not be
        computed accurately; these problems come first in ``family.open_here``.
    """
    doubtful, dp = 0, family.problems
    for a in range(m):
        family.order[a] = st.chosen[a]
    for a in range(n):
        family.order[m + a] = st.columns[a]
    for place in range(count):
        j = family.open_here[place]
        yy = gather(st, family, j, m, m + n, k)
        before = max(yy - dp.upper[j], -1.0)  # No gain is negative.
        which = (family.places, m, family.places[m:], n, k)
        gain = complete(family.G, family.b, st.now[0].ridge, *which, before, -np.inf, st.work)
        if gain > before:
            for a in range(k):
                st.chosen[m + a] = family.order[m + st.work.found[a]]
            family.one[0] = j
            if try_support(dp, st.chosen, family.one, 1) > 0:
                family.open_here[doubtful] = j
                doubtful += 1
    return doubtful


@kernel(inner=True)
def still_open(st, family, count, value):  # type: ignore[no-untyped-def]
    """Keep in ``family.open_here`` the problems whose bounds at the node stay below the incumbent.

    count: Number of problems that the node was open for.
    value: The relaxation's objective on all rows.
    Returns: How many problems are left.
    """
    now, dp, here, m = st.now[0], family.problems, family.open_here, 0
    for i in range(st.state.shape[0]):
        m += st.state[i] == IN
    extracted = st.terms.w[0] - now.ridge
    load_node(dp, st.state, st.beta, st.support.shape[0] - m, st.lam[0], extracted)
    left = 0
    for a in range(count):
        j = here[a]
        if not closes(dp, j, dp.upper[j] * (1.0 - now.tolerance), value):
            here[left] = j
            left += 1
    return left


@kernel(inner=True)
def close_by_relaxation(st, sweeps, family, m, n, k, count):  # type: ignore[no-untyped-def]
    """Solve the relaxation on all rows, and bound the node for each of ``count`` open problems.

    The relaxation is first solved until its bound reaches the incumbent's objective on all rows. If
    the bound does, the relaxation goes on until its bound is larger by ``excess_share``, about what
    deleted rows take off the bound, and every problem is bounded. Otherwise no problem's bound can
    be expected to suffice, and the relaxation is rounded to a support.

    m, n, k: Numbers of included columns, of free columns, and of columns still to choose.
    Returns: For how many problems the node stays open.
    """
    now, limits, best = st.now[0], sweeps.limits[0], sweeps.best
    here = (st.terms, st.state, k, st.beta, st.g, st.lam, st.top)
    best[0], limits.target, limits.shortfall_share = -np.inf, now.upper, 1.0
    relax(sweeps, *here)
    if best[0] >= now.upper:
        limits.target, limits.shortfall_share = (
            now.upper * (1.0 + family.counts[0].excess_share),
            0.0,
        )
        relax(sweeps, *here)
        return still_open(st, family, count, best[1])
    if count > family.counts[0].max_open and round_node(st, m, k, n):
        try_support(family.problems, st.chosen, family.open_here, count)
    return count


@kernel
def close_for_all(st, sweeps, family, row):  # type: ignore[no-untyped-def]
    """Try to close the current node for every problem that the node is open for.

    row: Row of the table that holds the node.
    Returns: Whether the node is not branched on; whether the node is kept for some problems; the
        numbers of free columns and of columns still to choose.
    """
    counts, here, tau = family.counts[0], family.open_here, st.support.shape[0]
    st.now[0].nodes += 1
    count = 0
    for j in range(family.open_for.shape[1]):
        if family.open_for[row, j] == 1 and family.nodes_left[j] <= counts.max_nodes_left:
            here[count] = j
            count += 1
    if count == 0:
        return True, False, 0, 0
    m, n = count_node(st)
    k = tau - m
    if k <= 0 or k >= n:  # One support is the best of the node.
        fill_up(st.chosen, choose_all(st.chosen, m, k, st.columns, n), tau)
        count = try_support(family.problems, st.chosen, here, count)
        for a in range(count):
            here[a] = family.problems.doubt[a]
    elif worth_enumerating(st, m, n, k, count, FAMILY.supports_unsolved):
        count = enumerate_for_all(st, family, m, n, k, count)
    else:
        count = close_by_relaxation(st, sweeps, family, m, n, k, count)
        if worth_enumerating(st, m, n, k, count, FAMILY.supports):
            count = enumerate_for_all(st, family, m, n, k, count)
        elif count > counts.max_open:
            counts.count = count
            return False, False, n, k
    counts.count = count
    inherit(family, row)
    for a in range(count):
        family.nodes_left[here[a]] += 1
    return True, count > 0, n, k
