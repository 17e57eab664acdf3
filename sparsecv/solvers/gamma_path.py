"""Best supports of one small problem at many γ: the all-sizes tree without a restart in Python.

Where thousands of problems of a few columns are solved one after the other, setting a tree up costs
far more than searching it. Here its arrays are kept, its factor, seeds and answers are compiled,
and every γ starts from the supports at the γ before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .branching.sizes import HANDOVER, solve_sizes
from .kernels.compiled import kernel
from .kernels.linalg import Array, from_mask, triangularise
from .leaps import all_sizes_kernels as kernels
from .leaps.all_sizes import CHUNK, EPS, active_columns, checked_sizes, prefer
from .problem import SparseRidgeProblem

Support = NDArray[np.intp]


def gamma_path(
    problem: SparseRidgeProblem,
    gammas: Sequence[float] | Array,
    sizes: Sequence[int] | NDArray[np.intp],
) -> list[list[Support]]:
    """Optimal supports of eq. (1), main paper, for every γ and size.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Gives the data; its γ and τ are not used.
    gammas : sequence of float
        Ridge weights, best in order: each starts from the one before.
    sizes : sequence of int
        In 1..p.

    Returns
    -------
    list over γ of a list over sizes, increasing, of supports
        What :func:`best_subsets` returns: of supports tied within rounding the lexicographically
        first.

    Raises
    ------
    ValueError
        Sizes out of 1..p, γ ≤ 0, or γ too small to tell from zero.
    """
    wanted = checked_sizes(problem, np.asarray(sizes))
    values = [problem.replace(gamma=float(gamma)).gamma for gamma in gammas]
    found: list[list[Support]] = []
    if active_columns(problem).size < problem.p:
        for gamma in values:
            warm = found[-1] if found else []
            at_gamma = problem.replace(gamma=gamma)
            found.append(solve_sizes(at_gamma, sizes=wanted, warm_starts=warm).supports)
        return found
    p, base = problem.p, np.ascontiguousarray(problem._base)
    state = kernels.new_state(np.eye(p + 1), wanted, 0.0, 0.0, 1.0)
    stack = np.empty((base.shape[0] + p, p + 1))
    rank = np.empty(p, dtype=np.int64)
    supports = np.full((wanted.size, p), -1, dtype=np.int64)
    near = np.empty(wanted.size, dtype=np.int64)
    known = 0
    for gamma in values:
        if not restart(state, base, gamma / 2.0, stack, EPS):  # a single tree may know better
            warm = found[-1] if found else []
            single = solve_sizes(problem.replace(gamma=gamma), sizes=wanted, warm_starts=warm)
            found.append(single.supports)
            continue
        enter(state, supports, wanted, known, rank)
        ended = False
        while not ended and state.counts[1] < HANDOVER:
            ended = kernels.advance(state, CHUNK, kernels.SEARCH)
        answers(state, wanted, supports, near)
        at_gamma = problem.replace(gamma=gamma)
        if not ended:
            warm = [supports[i, :s].astype(np.intp) for i, s in enumerate(wanted)]
            alone = solve_sizes(at_gamma, sizes=wanted, warm_starts=warm).supports
            for i, support in enumerate(alone):
                supports[i, : support.size] = support
        else:
            for t in np.flatnonzero(near > 1):
                supports[t, : wanted[t]] = _settled(state, int(wanted[t]), at_gamma)
        known = int(wanted.size)
        found.append([supports[i, :s].astype(np.intp) for i, s in enumerate(wanted)])
    return found


def _settled(state: kernels.TreeState, size: int, problem: SparseRidgeProblem) -> Support:
    """The best of supports that are within rounding of each other, by fresh fits."""
    n = int(state.found_n[size])
    window = 1.0 + 2.0 * float(state.params[0])
    near = np.flatnonzero(state.found_loss[size, :n] <= state.best[size] * window)
    supports = [from_mask(state.found[size, t]) for t in near]
    return supports[prefer([problem.fit(s) for s in supports], supports)]


@kernel
def restart(st, base, ridge, stack, eps):  # type: ignore[no-untyped-def]
    """Set the tree up for another γ; False where γ is lost beside dependent columns."""
    p = st.A.shape[0]
    rows = base.shape[0]
    least = np.sqrt(ridge)
    total = 0.0
    for j in range(p):
        st.trial[j] = 0.0
        for a in range(rows):
            st.trial[j] += base[a, j] * base[a, j]
        total += st.trial[j]
    if ridge >= total:
        fine = cholesky_factor(st.R, base, ridge)
    else:
        fine = stacked_factor(st.R, base, least, stack)
    for j in range(p):
        pivot = abs(st.R[j, j])
        fine = fine and pivot >= max(32.0 * eps * np.sqrt(st.trial[j]), 0.5 * least)
        if pivot < least:
            st.R[j, j] = least if st.R[j, j] >= 0.0 else -least
    if not fine:
        return False
    st.params[0], st.params[1] = 0.0, 0.0
    st.params[2], st.params[3] = st.R[p, p] ** 2, least
    for s in range(p + 2):
        st.best[s] = st.cut[s] = st.slack[s] = np.inf
    for s in range(p + 1):
        st.found_n[s] = 0
        for t in range(st.found_loss.shape[1]):
            st.found_loss[s, t] = np.inf
    st.loss[0], st.fixed[0] = 0.0, 0
    for w in range(st.mask.shape[1]):
        st.mask[0, w] = np.uint64(0)
    for a in range(p):
        st.free[0, a] = a
        st.mask[0, a >> 6] |= np.uint64(1) << np.uint64(a & 63)
    st.counts[0], st.counts[1], st.counts[2] = 0, 1, 0
    kernels.factorise(st, 0)
    inflation = 0.0
    for a in range(p):
        column, length = st.free[0, a], 0.0
        for q in range(p):
            length += st.R[q, column] * st.R[q, column]
        inflation = max(inflation, st.A[0, a, a] * length)
    st.params[0] = min(1e-11 + 20.0 * eps * inflation, 1e-5)
    for w in range(st.mask.shape[1]):
        st.found[p, 0, w] = st.mask[0, w]
    st.found_loss[p, 0], st.found_n[p] = 0.0, 1
    st.best[p] = st.cut[p] = st.cut[p + 1] = 0.0
    return True


@kernel
def cholesky_factor(R, base, ridge):  # type: ignore[no-untyped-def]
    """R with RᵀR = [[XᵀX + ridge I, Xᵀy], [yᵀX, yᵀy]] from its Cholesky factorisation."""
    m = R.shape[0]
    for c in range(m):
        for a in range(c + 1):
            total = ridge if a == c and c < m - 1 else 0.0
            for row in range(base.shape[0]):
                total += base[row, a] * base[row, c]
            for q in range(a):
                total -= R[q, a] * R[q, c]
            if a < c:
                R[a, c] = total / R[a, a]
            elif c < m - 1 and total <= 0.0:
                return False
            else:
                R[c, c] = np.sqrt(max(total, 0.0))
        for a in range(c + 1, m):
            R[a, c] = 0.0
    return True


@kernel
def stacked_factor(R, base, least, stack):  # type: ignore[no-untyped-def]
    """The same by Householder's QR of [X y] over √ridge·[I 0]."""
    m = R.shape[0]
    p, rows = m - 1, base.shape[0]
    for c in range(m):
        for a in range(rows):
            stack[a, c] = base[a, c]
        for a in range(p):
            stack[rows + a, c] = least if a == c else 0.0
    triangularise(stack, rows + p, p, 0.0)  # whether pivots are large enough is looked at after
    for c in range(m):
        for a in range(m):
            R[a, c] = stack[a, c] if a <= c else 0.0
    return True


@kernel
def enter(st, supports, sizes, known, rank):  # type: ignore[no-untyped-def]
    """Incumbents: backward elimination, and what lies on the way to supports known already."""
    p = st.A.shape[0]
    for a in range(p):
        rank[a] = 0
    kernels.advance(st, 1, rank)
    for i in range(known):
        size = sizes[i]
        if size == p:
            continue
        for w in range(st.support.shape[0]):
            st.support[w] = np.uint64(0)
        for a in range(p):
            rank[a] = 1
        for a in range(size):
            column = supports[i, a]
            rank[column] = 0
            st.support[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
        new = True
        for t in range(st.found_n[size]):
            equal = True
            for w in range(st.support.shape[0]):
                equal = equal and st.found[size, t, w] == st.support[w]
            new = new and not equal
        if new:
            kernels.advance(st, 1, rank)


@kernel
def answers(st, sizes, supports, near):  # type: ignore[no-untyped-def]
    """The best support of every size, and how many are within rounding of it."""
    p = st.A.shape[0]
    for i in range(sizes.shape[0]):
        size = sizes[i]
        best, near[i] = 0, 0
        for t in range(st.found_n[size]):
            if st.found_loss[size, t] < st.found_loss[size, best]:
                best = t
            if st.found_loss[size, t] <= st.best[size] * (1.0 + 2.0 * st.params[0]):
                near[i] += 1
        position = 0
        for column in range(p):
            word = st.found[size, best, column >> 6]
            if (word >> np.uint64(column & 63)) & np.uint64(1) != 0:
                supports[i, position] = column
                position += 1
