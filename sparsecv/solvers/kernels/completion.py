"""The best k columns to add to a support, by the compiled enumeration of every choice.

The gain of a support is yᵀy less the objective of the ridge fit. The chosen columns I are projected
out of the free columns. Of the free column i the projection leaves c_i of b_i = x_iᵀy, d_i of
ℓ_i² = ‖x_i‖² + γ/2, and C_ij of the product with another free column. A dual bound may say which
share of the bound each column has (EC.1, first paper).

**What rounding can lose.** The computation is Cholesky's elimination of S from the joint matrix of
G + (γ/2)I, b and yᵀy. For each column eliminated an entry takes a quotient, two products and a
difference, of numbers no larger than ℓ_iℓ_j. The result is therefore exact for matrices off by
η ℓ_iℓ_j, η being at most 16(τ + 2)u plus what the given matrices are off by (Higham 2002, Theorems
10.3 and 10.5), and the objective found on S is at most f_S + η·(ℓ_y + Σ ℓ_i|β_i|)² at the fit β on
S: see :func:`elimination_loss`.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from .by_reference import by_reference
from .compiled import kernel
from .enumeration import Enumeration, end_of_visited, last_picks, new_enumeration, restart, visit
from .linalg import EPS, LEAST_PIVOT, Array, Ints, add, allocated, factor_row

# Enumeration proves nothing where the ratio ℓ_i²/w_i exceeds this number, because rounding is not
# bounded there. Here ℓ_i² = G_ii + γ/2 and w_i = γ/2 + D_i. Elimination replaces smaller pivots
# than LEAST_PIVOT ℓ². Exact pivots are at least w, and at this ratio w is ten times LEAST_PIVOT ℓ².
MAX_LENGTH_RATIO = 1e11
# More choices than any enumeration visits.
MOST_VISITS = 2**62


@by_reference()
class Completion(NamedTuple):
    """Work space of :func:`complete` for n free columns, with up to τ chosen ones."""

    V: Annotated[Array, "tau+1 n"]  # L⁻¹ G_{I,F}, with chosen columns I and free columns F
    # Cholesky factor of G + (γ/2)I on the m chosen columns; column m holds L⁻¹ b_I.
    L: Annotated[Array, "tau+1 tau+1"]
    spare: Annotated[Array, "n"]
    free: Enumeration  # of the free columns, with the chosen ones projected out


class PartialSupport(NamedTuple):
    """A support's first m columns, and the n free columns of which it gets k more."""

    chosen: Ints  # The first m are the columns that the support has already.
    m: int
    columns: Ints  # The first n are the free columns.
    n: int
    k: int  # not more than n


def completion_work(tau: int, n: int, levels: int) -> Completion:
    """Allocate the work space for supports of τ columns, to be chosen among n free columns.

    levels: One less than the largest number of columns to add, at least 1.
    """
    free = new_enumeration(n, tau, levels)
    return allocated(Completion, {"tau": tau, "n": n}, free=free)


def elimination_loss(
    squares: Array, w: Array, ridge: float, yy: float, eps: float, tau: int, upper: Array
) -> Array:
    """How far below ``upper`` an objective may be where enumeration found none below ``upper``.

    That is (ε/4 + 16(τ + 2)u)·(ℓ_y + Σ ℓ_i|β_i|)². The fit β on S has (γ/2)|β|² ≤ f_S, and
    Σ w_iβ_i² ≤ yᵀy as G − D ⪰ 0: with f_S < upper and Cauchy's inequality, both bound the sum.

    squares: (p,), ℓ_i² = G_ii + γ/2 of the data the matrices were formed from, as is ``yy`` = yᵀy.
    w: (p,), γ/2 + D of one problem; or (k, 1) for k problems, D being the same for every column.
    eps: ε. The entry ij of G is off by at most (ε/4) ℓ_iℓ_j, and b alike.
    upper: An objective, or (k,) of them.
    Returns: One number for each ``upper``; ``upper`` itself where rounding may have lost pivots,
        so that enumeration proves nothing.
    """
    upper = np.maximum(upper, 0.0)
    most = np.sort(squares)[-tau:]
    ratio = np.sort(squares / w, axis=-1)[..., -tau:]
    largest, total = ratio[..., -1], ratio.sum(axis=-1)
    off = 0.25 * eps + 8.0 * (tau + 2) * EPS
    known = (largest <= MAX_LENGTH_RATIO) & (off * total <= 0.25)
    spread = np.minimum(np.where(known, total, 0.0) * yy, most.sum() / ridge * upper)
    loss = 1.01 * off * (np.sqrt(yy) + np.sqrt(spread)) ** 2
    return np.where(known, np.minimum(loss, upper), upper)


@kernel(inner=True)
def project_out(G, b, ridge, which, n, work):
    """Project the chosen columns I of a ``PartialSupport`` out of its first n free columns F.

    L, V, and c[0] and d[0] of ``work.free`` are written. The products C[0] of free columns are not
    written, as :func:`complete` needs few of them.

    ridge: γ/2.
    Returns: The gain of the support I, which is yᵀy less its objective.
    """
    V, c, d, L, gain = work.V, work.free.c[0], work.free.d[0], work.L, 0.0
    chosen, m, columns = which.chosen, which.m, which.columns
    for f in range(n):
        c[f] = b[columns[f]]
        d[f] = G[columns[f], columns[f]] + ridge
    for a in range(m):
        i = chosen[a]
        for q in range(a):
            L[a, q] = G[i, chosen[q]]
        L[a, a] = G[i, i] + ridge
        factor_row(L, a, LEAST_PIVOT * L[a, a])
        along = b[i]
        for q in range(a):
            along -= L[a, q] * L[q, m]
        along /= L[a, a]
        L[a, m] = along
        gain += along * along
        for f in range(n):
            V[a, f] = G[chosen[a], columns[f]]
        for q in range(a):
            add(V[a], V[q], -L[a, q], n)
        inverse = 1.0 / L[a, a]
        for f in range(n):
            v = V[a, f] * inverse
            V[a, f] = v
            c[f] -= along * v
            d[f] -= v * v
    for f in range(n):
        # The exact d is at least γ/2. Rounding has left no digits of a d below half of that, or
        # below a tenth of the least pivot.
        least = max(0.5 * ridge, 0.1 * LEAST_PIVOT * (G[columns[f], columns[f]] + ridge))
        d[f] = max(d[f], least)
    return gain


@kernel(inner=True)
def order_by_share(columns, share, n):
    """Sort the first n columns and their shares by share, the largest first (Shell's sort).

    Columns of equal shares may change places; the result is the same in every run.
    """
    step = 1
    while 3 * step < n:
        step = 3 * step + 1
    while step > 0:
        for f in range(step, n):
            value, i, e = share[f], columns[f], f
            while e >= step and share[e - step] < value:
                share[e], columns[e] = share[e - step], columns[e - step]
                e -= step
            share[e], columns[e] = value, i
        step //= 3


@kernel(inner=True)
def list_products(row, products, columns):
    """Write to ``row`` the entries of ``products`` at ``columns``, in their order."""
    for e in range(columns.shape[0]):
        row[e] = products[columns[e]]


@kernel(inner=True)
def complete(G, b, ridge, which, best, least, work):
    """Best support of the first m chosen columns and k of the first n free ``columns``.

    On entry shares do not increase along ``columns`` if ``least`` is finite. Columns at the end
    are passed over whose share adds up to at most ``least`` with the k − 1 largest ones.

    G, b: XᵀX and Xᵀy of all columns. ridge: γ/2. which: A ``PartialSupport``.
    best: The gain to exceed, yᵀy less an objective.
    least: Supports whose free columns' shares add up to at most ``least`` are passed over; −∞
        passes over none. ``work.free.share`` has the shares, in the order of ``columns``.
    Returns: The largest gain, or ``best`` where none is larger. Where a gain is larger,
        ``work.free.found`` has the k places in ``columns``.
    """
    V, free, columns, k = work.V, work.free, which.columns, which.k
    C, share, now, m, n = free.C, free.share, free.now[0], which.m, which.n
    if k > 1:
        n = max(end_of_visited(share, 0, n, k, least), min(n, k))
    free.gain[0] = project_out(G, b, ridge, which, n, work)
    if k == 0:
        return max(free.gain[0], best)
    now.gain, now.objective, now.least = best, np.inf, least
    restart(free, n)
    end = n
    for f in range(n - 1 if k > 1 else 0):
        if k == 2:  # Pairs need one row at a time, which then stays in the processor's cache.
            end = end_of_visited(share, f + 1, end, 1, least - share[f])
            if end <= f + 1:
                break
        row = 0 if k == 2 else f
        products = C[0, row, f + 1 : end]
        list_products(products, G[columns[f]], columns[f + 1 : end])
        for a in range(m):
            add(products, V[a, f + 1 : end], -V[a, f], end - f - 1)
        if k == 2:
            last_picks(free, 0, row, f, end)
    if k != 2:
        visit(free, k, MOST_VISITS)
    return now.gain
