"""Compiled enumeration: the best k columns to add to a support, found by visiting every choice.

The gain of a support is yᵀy less the objective of the ridge fit. With the chosen columns I
projected out, column i has c_i (its entry of b = Xᵀy that is left), d_i (its squared length that is
left, plus γ/2) and inner products C_ij with other columns. Adding column i gains c_i²/d_i. Adding i
and j gains c_i²/d_i + (c_j − c_iC_ij/d_i)²/(d_j − C_ij²/d_i), in this form as it loses least in
rounding. Every further column is a rank-one update of C, c and d. Columns are scaled to d_i = 1,
and a pair is divided out only where its gain may be the largest so far.

Where a dual bound says which share of the bound each column has (EC.1, first paper), supports whose
shares add up to too little are passed over: columns are ordered by falling share, so that only the
first columns of every row are visited.

**What rounding can lose.** The computation is Cholesky's elimination of S from the joint matrix of
G + (γ/2)I, b and yᵀy, with columns rescaled on the way. For each column eliminated an entry takes a
product, a difference and at most six roundings of scales, of numbers no larger than ℓ_iℓ_j. The
result is therefore exact for matrices off by η ℓ_iℓ_j, η being 16(τ + 2)u plus what the given
matrices are off by (Higham 2002, Theorems 10.3 and 10.5), and the objective found on S is at most
f_S + η·(ℓ_y + Σ ℓ_i|β_i|)² at the fit β on S: see :func:`elimination_loss`.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from .compiled import kernel
from .linalg import EPS, Array, Ints, add, allocated, factor_row

# Enumeration proves nothing where the ratio ℓ_i²/w_i exceeds this number, because rounding is not
# bounded there. Here ℓ_i² = G_ii + γ/2 and w_i = γ/2 + D_i. Elimination replaces pivots below
# 1e-13 ℓ². Exact pivots are at least w, and at this ratio w is a hundred times 1e-13 ℓ².
MAX_LENGTH_RATIO = 1e11
# A pair is divided out where the test without a division says that the pair gains more than this
# share of the best gain. Both ways of computing a gain agree far more closely, so that rounding
# hides no better pair. The number is a choice.
TESTED_GAIN_SHARE = 1.0 - 1e-10


class Completion(NamedTuple):
    """Work space of :func:`complete` for n free columns; a level adds one column to the support."""

    V: Annotated[Array, "tau+1 n"]  # L⁻¹ G_{I,F}, with chosen columns I and free columns F
    c: Annotated[Array, "n"]  # entries of b that are left
    d: Annotated[Array, "n"]  # squared lengths left, plus γ/2; later one over their roots
    L: Annotated[Array, "tau+1 tau+1"]  # Cholesky factor on the chosen columns
    C: Annotated[Array, "levels n n"]  # inner products of columns of unit length
    unit: Annotated[Array, "levels n"]  # entries of b for columns of unit length
    share: Annotated[Array, "n"]  # share of the dual bound that each free column has, falling
    total: Annotated[Array, "tau+1"]  # sum of the shares of the columns added above a level
    ends: Annotated[Ints, "tau+1"]  # how many of the free columns a level looks at
    place: Annotated[Ints, "tau+1"]  # the column added at a level, as a place in the free ones
    found: Annotated[Ints, "tau+1"]  # the places of the best k columns


def completion_work(tau: int, n: int, levels: int) -> Completion:
    """Allocate the work space for supports of τ columns, to be chosen among n free columns.

    levels: One less than the largest number of columns to add, at least 1.
    """
    return allocated(Completion, {"tau": tau, "n": n, "levels": levels})


def elimination_loss(
    squares: Array, w: Array, ridge: float, yy: float, eps: float, tau: int, upper: Array
) -> Array:
    """How far below ``upper`` an objective may be where enumeration found none below ``upper``.

    That is (ε/4 + 16(τ + 2)u)·(ℓ_y + Σ ℓ_i|β_i|)². The fit β on S has (γ/2)|β|² ≤ f_S, and
    Σ w_iβ_i² ≤ yᵀy as G − D ⪰ 0: with f_S < upper and Cauchy's inequality, both bound the sum.

    squares: (p,), ℓ_i² = G_ii + γ/2 of the data the matrices were formed from, as is ``yy`` = yᵀy.
    w: (p,), γ/2 + D of one problem; or (k, 1) for k problems, D being the same for every column.
    eps: ε, four times what G and b are off by: see ``relaxation.dual_bound.relative_rounding``.
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
def project_out(G, b, ridge, chosen, m, columns, n, work):
    """Project the m chosen columns I out of the n free columns F: write L, V, c and d of ``work``.

    Returns: The gain of the support I, which is yᵀy less its objective.
    """
    V, c, d, L, gain = work.V, work.c, work.d, work.L, 0.0
    for f in range(n):
        c[f] = b[columns[f]]
        d[f] = G[columns[f], columns[f]] + ridge
    for a in range(m):
        i = chosen[a]
        for q in range(a):
            L[a, q] = G[i, chosen[q]]
        L[a, a] = G[i, i] + ridge
        factor_row(L, a, 1e-12 * L[a, a])  # rounding leaves no digits of a smaller pivot
        w = b[i]
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
        # The exact d is at least γ/2. Where rounding has left less, half of that takes its place.
        least = max(0.5 * ridge, 1e-13 * (G[columns[f], columns[f]] + ridge))
        d[f] = max(d[f], least)
    return gain


@kernel(inner=True)
def best_single(c, d, n, gain, best, place):
    """Best single column to add to a support of the given gain.

    Returns: The largest gain, or ``best`` where none is larger; ``place[0]`` then is the column.
    """
    for f in range(n):
        value = gain + c[f] * c[f] / d[f]
        if value > best:
            best = value
            place[0] = f
    return best


@kernel(inner=True)
def any_hit(rho, c, ci, need):
    """Whether a column j may gain more than ``need`` beside a column that gains ci².

    rho, c: Inner products with that column, and entries of b, for columns j of unit length.
    """
    hits = 0
    for j in range(c.shape[0]):
        left = c[j] - ci * rho[j]
        hits += left * left + need * (rho[j] * rho[j]) > need
    return hits > 0


@kernel(inner=True)
def scan_pairs(C, level, row, i, n, c, gain, best, place):
    """Best pair of column i with a later column, to add to a support of the given gain.

    C, c: Inner products and entries of b for columns of unit length, by level.
    row: The row of ``C[level]`` that has the inner products of column i.
    Returns: The largest gain, or ``best`` where none is larger; ``place[level : level + 2]`` then
        is the pair.
    """
    ci = c[level, i]
    need = (best - gain) * TESTED_GAIN_SHARE - ci * ci
    if not any_hit(C[level, row, i + 1 : n], c[level, i + 1 : n], ci, need):
        return best
    for j in range(i + 1, n):
        rho = C[level, row, j]
        unexplained = c[level, j] - ci * rho
        value = gain + (ci * ci + unexplained * unexplained / max(1.0 - rho * rho, 1e-14))
        if value > best:
            best = value
            place[level] = i
            place[level + 1] = j
    return best


@kernel(inner=True)
def project_row(target, row, pivot, scales, rho, scale):
    """Write (row − rho·pivot)·scale·scales to ``target``, entry by entry."""
    for e in range(row.shape[0]):
        target[e] = (row[e] - rho * pivot[e]) * scale * scales[e]


@kernel(inner=True)
def pick_first(C, c, level, i, n):
    """Project column i out of the columns i + 1..n − 1, and rescale these to unit length.

    C and c are read at ``level`` and written at ``level + 1``.
    """
    ci = c[level, i]
    for j in range(i + 1, n):
        rho = C[level, i, j]
        scale = 1.0 / np.sqrt(max(1.0 - rho * rho, 1e-14))
        C[level + 1, i, j] = scale  # row i of the next level is not in use and takes the scales
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
def order_by_share(columns, share, n):
    """Sort the first n columns and their shares by share, the largest first (Shell's sort)."""
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
def end_of_visited(share, first, end, k, least):
    """The last place + 1 of ``share[first:end]`` whose column can be one of k with a large share.

    That column's share and the k − 1 largest from ``first`` on must exceed ``least`` together.
    """
    others = 0.0
    for f in range(first, min(first + k - 1, end)):
        others += share[f]
    while end > first and share[end - 1] + others <= least:
        end -= 1
    return end


@kernel(inner=True)
def last_pairs(C, level, first, gain, total, least, best, work):
    """Best pair of columns from place ``first`` on, to add to a support of the given gain.

    total, least: Pairs whose shares and ``total`` add up to at most ``least`` are passed over.
    Returns: The largest gain, or ``best`` where none is larger; see :func:`scan_pairs`.
    """
    share, end = work.share, work.ends[level]
    for j in range(first, end - 1):
        end = end_of_visited(share, j + 1, end, 1, least - total - share[j])
        if end <= j + 1:
            break
        best = scan_pairs(C, level, j, j, end, work.unit, gain, best, work.place)
    return best


@kernel(inner=True)
def best_of_many(C, n, k, gain, best, least, work):
    """Best k ≥ 3 of n columns of unit length to add to a support of the given gain.

    C: (k − 1, n, n), of which ``C[0]`` holds the inner products of the n columns.
    Returns: The largest gain, or ``best`` where none is larger; ``work.found`` has the k places.
    """
    c, share, place = work.unit, work.share, work.place
    C[0, 0, 0] = gain  # the diagonal is not in use: C[level, 0, 0] takes the gain of a level
    level = 0
    place[0], work.total[0], work.ends[0] = -1, 0.0, n
    while level >= 0:
        place[level] += 1
        i, end, left = place[level], work.ends[level], k - level
        total = work.total[level]
        if i > end - left or end_of_visited(share, i, i + left, left, least - total) < i + left:
            level -= 1  # too few columns are left, or the shares that are left add up to too little
            continue
        gain = C[level, 0, 0] + c[level, i] * c[level, i]
        total += share[i]
        end = end_of_visited(share, i + 1, end, left - 1, least - total)
        work.ends[level + 1] = end
        pick_first(C, c, level, i, end)
        if left == 3:
            value = last_pairs(C, level + 1, i + 1, gain, total, least, best, work)
            if value > best:
                best = value
                for a in range(k):
                    work.found[a] = place[a]
        else:
            level += 1
            C[level, 0, 0], work.total[level] = gain, total
            place[level] = i
    return best


@kernel(inner=True)
def scaled_products(row, products, columns, scales, scale):
    """Write to ``row`` the inner products at ``columns``, times scale and their own scales."""
    for e in range(columns.shape[0]):
        row[e] = products[columns[e]] * (scale * scales[e])


@kernel
def complete(G, b, ridge, chosen, m, columns, n, k, best, least, work):
    """Best support of the first m chosen columns and k of the first n free ``columns``.

    least: Supports whose free columns' shares add up to at most ``least`` are passed over; −∞
        passes over none. ``work.share`` has the shares, in the order of ``columns``.
    Returns: The largest gain, or ``best`` where none is larger. Where one is, ``work.found`` has
        the k places in ``columns``.
    """
    V, c, d, _, C, unit, share, _, _, _, found = work
    if k > 1:
        n = max(end_of_visited(share, 0, n, k, least), min(n, k))
    gain = project_out(G, b, ridge, chosen, m, columns, n, work)
    if k == 0:
        return max(gain, best)
    if k == 1:
        return best_single(c, d, n, gain, best, found)
    for f in range(n):
        d[f] = 1.0 / np.sqrt(d[f])
        unit[0, f] = c[f] * d[f]
    for a in range(m):
        for f in range(n):
            V[a, f] *= d[f]
    end = n
    for f in range(n - 1):
        if k == 2:  # pairs need one row at a time, which then stays in the processor's cache
            end = end_of_visited(share, f + 1, end, 1, least - share[f])
            if end <= f + 1:
                break
        row = 0 if k == 2 else f
        left = C[0, row, f + 1 : end]
        scaled_products(left, G[columns[f]], columns[f + 1 : end], d[f + 1 : end], d[f])
        for a in range(m):
            add(left, V[a, f + 1 : end], -V[a, f], end - f - 1)
        if k == 2:
            best = scan_pairs(C, 0, row, f, end, unit, gain, best, found)
    if k == 2:
        return best
    return best_of_many(C, n, k, gain, best, least, work)
