"""Compiled completion of a node: with k picks left, visit every way to choose them.

After the included set I is projected out, column i has c_i = (what of b_i is left), d_i = its
squared length left plus γ/2, and C_ij the inner products left. One pick gains c_i²/d_i; two gain
c_i²/d_i + (c_j − c_iC_ij/d_i)²/(d_j − C_ij²/d_i), in this form as it loses least in rounding;
a pick before those is a rank-one update of C, c and d. Columns are scaled to d_i = 1, and a pair is
divided out only when it may be a hit.

Where a dual bound says what each column's share of it is (EC.1, main paper), supports are passed
over whose shares add up to too little: with the columns in order of their shares, what is left to
look at are the first ones of every row.

**What rounding can lose.** All of this is Cholesky's elimination of S from the joint matrix of
G + γ/2 I, b and yᵀy, columns rescaled on the way: an entry takes a product, a difference and at
most six roundings of scales for each column eliminated, of numbers no larger than ℓ_iℓ_j. So what
it says of S is exact for matrices off by η ℓ_iℓ_j, η = 16(τ + 2)u and what the matrices at hand are
off already (Higham 2002, Theorems 10.3 and 10.5), and an objective it finds is at most
f_S + η·reach², the reach being ℓ_y + Σ ℓ_i|β_i| at the fit on S: see :func:`elimination_loss`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import kernel
from .linalg import EPS, Array, add, cholesky

# Elimination takes no pivot of less than 1e-13 ℓ², and no exact pivot is below w: up to this ℓ²/w
# exact pivots are a hundred times above the least one taken. Beyond, no bound on rounding is given.
MAX_LENGTH_RATIO = 1e11
# A pair is divided out where the test without a division puts it within this factor of the record:
# the two ways of computing its gain differ by far less, so that rounding hides no better pair.
RECORD_FACTOR = 1.0 - 1e-10


class Completion(NamedTuple):
    """Work space of :func:`complete`."""

    V: Array  # (tau + 1, n)
    c: Array  # (n,)
    d: Array
    L: Array  # (tau + 1, tau + 1)
    C: Array  # (levels, n, n)
    unit: Array  # (levels, n)
    share: Array  # (n,) of the dual bound, by position among the free columns, falling
    total: Array  # (tau + 1,) shares of the picks above a level
    ends: NDArray[np.int64]  # (tau + 1,) positions in use at a level
    picks: NDArray[np.int64]  # (tau + 1,)
    found: NDArray[np.int64]  # (tau + 1,) positions among the free columns


def completion_work(tau: int, n: int, levels: int) -> Completion:
    """Allocate the work space for supports of τ columns, n of them free.

    levels: One less than the picks that may be left, at least 1.
    """
    return Completion(
        V=np.empty((tau + 1, n)),
        c=np.empty(n),
        d=np.empty(n),
        L=np.empty((tau + 1, tau + 1)),
        C=np.empty((levels, n, n)),
        unit=np.empty((levels, n)),
        share=np.zeros(n),
        total=np.zeros(tau + 1),
        ends=np.zeros(tau + 1, dtype=np.int64),
        picks=np.zeros(tau + 1, dtype=np.int64),
        found=np.zeros(tau + 1, dtype=np.int64),
    )


def elimination_loss(
    squares: Array, w: Array, ridge: float, yy: float, eps: float, tau: int, upper: Array
) -> Array:
    """How far below ``upper`` a support may be that is not below it by elimination.

    The fit on S has (γ/2)|β|² ≤ f_S, and Σ w_iβ_i² ≤ yᵀy as G − D ⪰ 0; were f_S < upper, the reach
    would be bounded by both.

    squares, shape (p,): ℓ² = G_ii + γ/2, of the data the matrices were formed from.
    w, shape (p,) or (k, 1): γ/2 + D, of one problem or, D being the same for every column, of
        several.
    ridge: γ/2.
    yy: Of the data as well.
    eps: ε of the matrices, as the dual bound has it: four times what they are off.
    upper, shape () or (k,).
    Returns, shape () or (k,): At most ``upper``: where pivots may be lost in rounding nothing is
        said.
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
def project_out(G, b, ridge, chosen, m, columns, n, work):  # type: ignore[no-untyped-def]
    """Cholesky factor L of the m chosen columns I; V = L⁻¹G_{I,F}, c and d of the n free ones F.

    Returns: The gain of I, which is yᵀy less its objective.
    """
    V, c, d, L, gain = work.V, work.c, work.d, work.L, 0.0
    cholesky(G, ridge, chosen, m, L)
    for f in range(n):
        c[f] = b[columns[f]]
        d[f] = G[columns[f], columns[f]] + ridge
    for a in range(m):
        w = b[chosen[a]]
        for q in range(a):
            w -= L[a, q] * L[q, m]
        w /= L[a, a]
        L[a, m] = w
        gain += w * w
        for f in range(n):
            V[a, f] = G[chosen[a], columns[f]]
        for q in range(a):
            add(V[a], V[q], -L[a, q], n)
        inverse = 1.0 / L[a, a]
        for f in range(n):
            v = V[a, f] * inverse
            V[a, f] = v
            c[f] -= w * v
            d[f] -= v * v
    for f in range(n):
        floor = max(0.5 * ridge, 1e-13 * (G[columns[f], columns[f]] + ridge))
        d[f] = max(d[f], floor)
    return gain


@kernel(inner=True)
def best_single(c, d, n, gain, record, picks):  # type: ignore[no-untyped-def]
    """Best last pick; returns the record gain, its column position in ``picks[0]``."""
    for f in range(n):
        value = gain + c[f] * c[f] / d[f]
        if value > record:
            record = value
            picks[0] = f
    return record


@kernel(inner=True)
def any_hit(rho, c, ci, need):  # type: ignore[no-untyped-def]
    """Whether one of some unit columns may gain more than ``need`` beside one that gains ci²."""
    hits = 0
    for j in range(c.shape[0]):
        left = c[j] - ci * rho[j]
        hits += left * left + need * (rho[j] * rho[j]) > need
    return hits > 0


@kernel(inner=True)
def scan_pairs(C, level, row, i, n, c, gain, record, picks):  # type: ignore[no-untyped-def]
    """Best last two picks of which unit column i is the first; returns the record gain.

    row: Row of this level of C that has the inner products of i with later columns.
    picks: The two positions are put where the columns chosen before, one per level, end.
    """
    ci = c[level, i]
    need = (record - gain) * RECORD_FACTOR - ci * ci
    if not any_hit(C[level, row, i + 1 : n], c[level, i + 1 : n], ci, need):
        return record
    for j in range(i + 1, n):
        rho = C[level, row, j]
        unexplained = c[level, j] - ci * rho
        value = gain + (ci * ci + unexplained * unexplained / max(1.0 - rho * rho, 1e-14))
        if value > record:
            record = value
            picks[level] = i
            picks[level + 1] = j
    return record


@kernel(inner=True)
def project_row(target, row, pivot, scales, rho, scale):  # type: ignore[no-untyped-def]
    """(row − rho·pivot), each product rescaled."""
    for e in range(row.shape[0]):
        target[e] = (row[e] - rho * pivot[e]) * scale * scales[e]


@kernel(inner=True)
def pick_first(C, c, level, i, n):  # type: ignore[no-untyped-def]
    """Project unit column i out of the later ones: level → level + 1, rescaled to unit length."""
    ci = c[level, i]
    for j in range(i + 1, n):
        rho = C[level, i, j]
        scale = 1.0 / np.sqrt(max(1.0 - rho * rho, 1e-14))
        C[level + 1, i, j] = scale  # row i of the next level is free: park the scales there
        c[level + 1, j] = (c[level, j] - ci * rho) * scale
    for j in range(i + 1, n - 1):
        rho, scale = C[level, i, j], C[level + 1, i, j]
        project_row(
            C[level + 1, j, j + 1 : n],
            C[level, j, j + 1 : n],
            C[level, i, j + 1 : n],
            C[level + 1, i, j + 1 : n],
            rho,
            scale,
        )


@kernel
def order_by_share(columns, share, n):  # type: ignore[no-untyped-def]
    """Sort columns by their shares, the largest first (Shell's sort)."""
    gap = 1
    while 3 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for f in range(gap, n):
            value, i, e = share[f], columns[f], f
            while e >= gap and share[e - gap] < value:
                share[e], columns[e] = share[e - gap], columns[e - gap]
                e -= gap
            share[e], columns[e] = value, i
        gap //= 3


@kernel(inner=True)
def reach(share, first, end, k, least):  # type: ignore[no-untyped-def]
    """End of the positions that, with the best k − 1 others from ``first`` on, pass ``least``."""
    others = 0.0
    for f in range(first, min(first + k - 1, end)):
        others += share[f]
    while end > first and share[end - 1] + others <= least:
        end -= 1
    return end


@kernel(inner=True)
def last_pairs(C, level, first, gain, total, least, record, work):  # type: ignore[no-untyped-def]
    """Best last two picks from position ``first`` on of a level; returns the record gain."""
    share, end = work.share, work.ends[level]
    for j in range(first, end - 1):
        end = reach(share, j + 1, end, 1, least - total - share[j])
        if end <= j + 1:
            break
        record = scan_pairs(C, level, j, j, end, work.unit, gain, record, work.picks)
    return record


@kernel(inner=True)
def enumerate_picks(C, n, k, gain, record, least, work):  # type: ignore[no-untyped-def]
    """Best k ≥ 3 picks among n unit columns of level 0; positions in ``work.found``.

    ``C`` is (k − 1, n, n).
    """
    c, share, picks = work.unit, work.share, work.picks
    C[0, 0, 0] = gain  # diagonals are free: park there what the picks above gain
    level = 0
    picks[0], work.total[0], work.ends[0] = -1, 0.0, n
    while level >= 0:
        picks[level] += 1
        i, end, left = picks[level], work.ends[level], k - level
        total = work.total[level]
        if i > end - left or reach(share, i, i + left, left, least - total) < i + left:
            level -= 1  # not enough columns, or not enough of a share, left for the other picks
            continue
        gain = C[level, 0, 0] + c[level, i] * c[level, i]
        total += share[i]
        end = reach(share, i + 1, end, left - 1, least - total)
        work.ends[level + 1] = end
        pick_first(C, c, level, i, end)
        if left == 3:
            value = last_pairs(C, level + 1, i + 1, gain, total, least, record, work)
            if value > record:
                record = value
                for a in range(k):
                    work.found[a] = picks[a]
        else:
            level += 1
            C[level, 0, 0], work.total[level] = gain, total
            picks[level] = i
    return record


@kernel(inner=True)
def scaled_products(row, products, columns, scales, scale):  # type: ignore[no-untyped-def]
    """Some of a column's inner products, rescaled."""
    for e in range(columns.shape[0]):
        row[e] = products[columns[e]] * (scale * scales[e])


@kernel
def complete(G, b, ridge, chosen, m, columns, n, k, record, least, work):  # type: ignore[no-untyped-def]
    """Best completion of the m chosen columns by k of the n free ones.

    Supports are passed over whose picks' shares (``work.share``, in the order of ``columns``) add
    up to no more than ``least``; −∞ passes over none. Returns the best gain (``record`` where none
    is better); ``work.found`` then holds k positions in ``columns``.
    """
    V, c, d, C, unit, share, found = (
        work.V,
        work.c,
        work.d,
        work.C,
        work.unit,
        work.share,
        work.found,
    )
    if k > 1:
        n = max(reach(share, 0, n, k, least), min(n, k))
    gain = project_out(G, b, ridge, chosen, m, columns, n, work)
    if k == 0:
        return max(gain, record)
    if k == 1:
        return best_single(c, d, n, gain, record, found)
    for f in range(n):
        d[f] = 1.0 / np.sqrt(d[f])
        unit[0, f] = c[f] * d[f]
    for a in range(m):
        for f in range(n):
            V[a, f] *= d[f]
    end = n
    for f in range(n - 1):
        if k == 2:  # pairs ask for one row at a time: it stays in the cache
            end = reach(share, f + 1, end, 1, least - share[f])
            if end <= f + 1:
                break
        row = 0 if k == 2 else f
        left = C[0, row, f + 1 : end]
        scaled_products(left, G[columns[f]], columns[f + 1 : end], d[f + 1 : end], d[f])
        for a in range(m):
            add(left, V[a, f + 1 : end], -V[a, f], end - f - 1)
        if k == 2:
            record = scan_pairs(C, 0, row, f, end, unit, gain, record, found)
    if k == 2:
        return record
    return enumerate_picks(C, n, k, gain, record, least, work)
