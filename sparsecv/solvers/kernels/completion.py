"""Compiled completion of a node: with k picks left, visit every way to choose them.

After the included set I is projected out, column i has c_i = (what of b_i is left), d_i = its
squared length left plus γ/2, and C_ij the inner products left. One pick gains c_i²/d_i; two gain
(c_i²d_j − 2c_ic_jC_ij + c_j²d_i)/(d_id_j − C_ij²); a pick before those is a rank-one update of
C, c and d. Columns are scaled to d_i = 1, and a pair is divided out only when it may be a hit.
"""

from __future__ import annotations

import numpy as np

from .compiled import kernel

HIT = 1.0 - 1e-10  # a pair this close to the record is looked at: rounding must hide none


@kernel(inner=True)
def project_out(G, b, ridge, chosen, m, columns, n, V, c, d, L):  # type: ignore[no-untyped-def]
    """Cholesky of the m chosen columns; V = L⁻¹G_{I,F}, c and d of the n free ones. Gain of I."""
    gain = 0.0
    for a in range(m):
        i = chosen[a]
        for e in range(a):
            total = G[i, chosen[e]]
            for q in range(e):
                total -= L[a, q] * L[e, q]
            L[a, e] = total / L[e, e]
        total = G[i, i] + ridge
        for q in range(a):
            total -= L[a, q] * L[a, q]
        L[a, a] = np.sqrt(max(total, 1e-12 * (G[i, i] + ridge)))
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
            weight = L[a, q]
            for f in range(n):
                V[a, f] -= weight * V[q, f]
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
def scan_row(C, level, i, n, c, record):  # type: ignore[no-untyped-def]
    """Whether a pair (i, j > i) of unit columns may gain more than ``record``."""
    hits = 0
    ci = c[level, i]
    base = ci * ci - record
    for j in range(i + 1, n):
        rho = C[level, i, j]
        cj = c[level, j]
        hits += base + cj * (cj - 2.0 * ci * rho) + record * rho * rho > 0.0
    return hits > 0


@kernel(inner=True)
def scan_pairs(C, level, first, n, c, gain, record, picks, depth):  # type: ignore[no-untyped-def]
    """Best last two picks among unit columns first..n−1 of a level; returns the record gain."""
    for i in range(first, n - 1):
        left = (record - gain) * HIT
        if not scan_row(C, level, i, n, c, left):
            continue
        ci = c[level, i]
        for j in range(i + 1, n):
            rho, cj = C[level, i, j], c[level, j]
            determinant = max(1.0 - rho * rho, 1e-14)
            value = gain + (ci * ci - 2.0 * ci * cj * rho + cj * cj) / determinant
            if value > record:
                record = value
                picks[depth] = i
                picks[depth + 1] = j
    return record


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
        for e in range(j + 1, n):
            C[level + 1, j, e] = (
                (C[level, j, e] - rho * C[level, i, e]) * scale * C[level + 1, i, e]
            )


@kernel(inner=True)
def enumerate_picks(C, c, n, k, gain, record, picks, best_picks):  # type: ignore[no-untyped-def]
    """Best k ≥ 2 picks among n unit columns of level 0; positions in ``best_picks``.

    ``C`` is (k − 1, n, n), ``c`` (k − 1, n), ``picks`` and ``best_picks`` (k,).
    """
    if k == 2:
        value = scan_pairs(C, 0, 0, n, c, gain, record, picks, 0)
        if value > record:
            best_picks[0], best_picks[1] = picks[0], picks[1]
        return max(value, record)
    C[0, 0, 0] = gain  # diagonals are free: park there what the picks above gain
    level = 0
    picks[0] = -1
    while level >= 0:
        picks[level] += 1
        i = picks[level]
        if i > n - (k - level):  # not enough columns left for the other picks
            level -= 1
            continue
        gain = C[level, 0, 0] + c[level, i] * c[level, i]
        pick_first(C, c, level, i, n)
        if k - level - 1 == 2:
            value = scan_pairs(C, level + 1, i + 1, n, c, gain, record, picks, level + 1)
            if value > record:
                record = value
                for a in range(k):
                    best_picks[a] = picks[a]
        else:
            level += 1
            C[level, 0, 0] = gain
            picks[level] = i
    return record


@kernel
def complete(G, b, ridge, chosen, m, columns, n, k, record, V, c, d, L, C, unit, picks, found):  # type: ignore[no-untyped-def]
    """Best completion of the m chosen columns by k of the n free ones.

    Returns the best gain (``record`` where none is better); ``found`` then holds k positions in
    ``columns``. ``C`` is (levels, n, n) with levels ≥ max(k − 1, 1), ``unit`` (levels, n).
    """
    gain = project_out(G, b, ridge, chosen, m, columns, n, V, c, d, L)
    if k == 0:
        return max(gain, record)
    if k == 1:
        return best_single(c, d, n, gain, record, found)
    for f in range(n):
        scale = 1.0 / np.sqrt(d[f])
        d[f] = scale
        unit[0, f] = c[f] * scale
    for f in range(n - 1):
        i = columns[f]
        for e in range(f + 1, n):
            C[0, f, e] = G[i, columns[e]]
        for a in range(m):
            weight = V[a, f]
            for e in range(f + 1, n):
                C[0, f, e] -= weight * V[a, e]
        for e in range(f + 1, n):
            C[0, f, e] *= d[f] * d[e]
    return enumerate_picks(C, unit, n, k, gain, record, picks, found)
