"""Compiled enumeration of every support of k columns, by the columns of a triangular factor.

The columns x_j of the factor have length 1 and y is their response. With the picks so far projected
out, C_ij = x_iᵀx_j and c_j = x_jᵀy are updated from pick to pick, and the last pick j beside i
leaves the objective

    f − c_i²/d_i − (c_j − c_iC_ij/d_i)² / (d_j − C_ij²/d_i),   d_j = C_jj.

These differences lose digits where columns nearly depend on each other. Eliminating a support S
from a matrix that is off by η is off by at most η(|y| + Σ|β_j|)² in the objective, and with unit
columns |β| ≤ |y|/σ and σ² ≥ det/e, where σ is the least singular value of S and det the product of
its pivots: the arithmetic mean of the other k − 1 eigenvalues is at most k/(k − 1), and
(k/(k − 1))^(k − 1) < e. So a support is passed over only where

    objective − η·4ek·yᵀy/det ≥ the incumbent's objective,

and only where that margin is less than what the picks but the last lack of the incumbent: then
det ≥ 4ekη, no pivot is lost in rounding, and the elimination is exact for a matrix off by η.

Any other support is computed afresh from the columns themselves, by modified Gram–Schmidt, which
is as stable as Householder's QR (Björck 1967): what it says of S is exact for columns off by η of
their length, so that |r| is off by at most η(|y| + Σ|β_j|). The least value of |r| less that error
is kept: its square bounds every objective from below. A support whose
|r|, less η(1 + 4√(ek/det))|y| and what the last difference loses, is above that least value is
passed over before its last column is computed (:func:`hopeless`).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from .compiled import kernel
from .linalg import Array, Ints, allocated, dot, record

STATE = np.dtype(
    [
        ("level", np.int64),  # picks made; -1 once every support has been visited
        ("visited", np.int64),  # supports visited
        ("dependent_supports", np.int64),  # supports passed over as their columns are dependent
        ("objective", np.float64),  # of the incumbent
        ("gain", np.float64),  # yᵀy less the incumbent's objective, as a sum of squares
        ("least_root", np.float64),  # the least √objective that rounding leaves any support
        ("yy", np.float64),  # yᵀy
        ("off", np.float64),  # η, relative to the lengths of the columns
        ("dependent", np.float64),  # a squared length left below which a column is dependent
    ],
    align=True,
)
E_TIMES_4 = 4.0 * math.e


class Enumeration(NamedTuple):
    """Columns, and what is kept of the current picks; level ℓ holds what ℓ picks leave."""

    X: Array  # (p, r): unit columns, one per row
    y: Array  # (r,)
    C: Annotated[Array, "levels p p"]  # above the diagonal
    d: Annotated[Array, "levels p"]  # the diagonal of C
    c: Annotated[Array, "levels p"]
    Q: Annotated[Array, "levels+1 r"]  # orthonormal directions of the picks
    left: Annotated[Array, "levels+2 r"]  # the residual of y
    objective: Array  # (levels + 2,): the squared length of the residual of y
    gain: Annotated[Array, "levels+2"]  # what the picks explain of yᵀy, as a sum of squares
    det: Array  # (levels + 1,): product of the picks' pivots
    picks: Ints  # (k + 1,)
    found: Ints  # (k,): the incumbent; -1 in front where there is none
    P: Annotated[Array, "p r"]  # the columns with all but the last two picks projected out
    projected: Annotated[Ints, "1"]  # whether P belongs to the current picks
    length: Annotated[Array, "p"]  # squared lengths of the columns of P
    row: Annotated[Array, "p"]
    along_y: Annotated[Array, "p"]
    triangle: Annotated[Array, "k k+1"]
    now: Any  # of STATE


def new_enumeration(X: Array, y: Array, k: int, off: float, dependent: float) -> Enumeration:
    """Allocate the enumeration of supports of k ≥ 1 of p columns, of which none is visited yet.

    The incumbent is the empty support, whose objective is yᵀy. A caller that knows a better support
    lowers ``now["objective"]`` and raises ``now["gain"]``.

    X, shape (r, p): The columns, each of length 1.
    y, shape (r,): The response.
    off: What rounding has changed the columns and y by, as a share of their lengths.
    dependent: A column whose length, once other columns are projected out, is at most this counts
        as dependent on them. ``now["dependent"]`` holds the square, as lengths are kept squared.
    """
    (r, p), levels, yy = X.shape, max(k - 1, 1), float(y @ y)
    work = allocated(
        Enumeration,
        {"p": p, "r": r, "k": k, "levels": levels},
        X=np.ascontiguousarray(X.T),
        y=np.ascontiguousarray(y),
        objective=np.full(levels + 2, yy),
        det=np.ones(levels + 1),
        picks=np.full(k + 1, -1, dtype=np.int64),
        found=np.full(k, -1, dtype=np.int64),
        now=record(STATE, objective=yy, yy=yy, least_root=np.sqrt(yy), off=off),
    )
    work.C[0], work.c[0], work.left[0] = X.T @ X, X.T @ y, y
    work.d[0] = work.C[0].diagonal()
    work.now["dependent"] = dependent * dependent
    return work


@kernel(inner=True)
def subtract(target, source, pivot, weight):
    """target = source − weight·pivot, by which a pick is projected out of a column or of y."""
    for j in range(source.shape[0]):
        target[j] = source[j] - weight * pivot[j]


@kernel(inner=True)
def normalised(work, level):
    """Bring the direction of a level to unit length, unless it is dependent on the picks above.

    Returns: The squared length it had.
    """
    q = work.Q[level]
    square = dot(q, q, q.shape[0])
    if square > work.now[0].dependent:
        inverse = 1.0 / np.sqrt(square)
        for t in range(q.shape[0]):
            q[t] *= inverse
    return square


@kernel(inner=True)
def direction(work, level, i):
    """Put column i, the picks above ``level`` projected out, into Q at unit length.

    Returns: The squared length of what is left of the column.
    """
    q = work.Q[level]
    for t in range(q.shape[0]):
        q[t] = work.X[i, t]
    for a in range(level):
        work.triangle[a, level] = dot(work.Q[a], q, q.shape[0])
        subtract(q, q, work.Q[a], work.triangle[a, level])
    square = normalised(work, level)
    work.triangle[level, level] = np.sqrt(square)
    return square


@kernel(inner=True)
def explain(work, level):
    """Take the pick's direction out of the residual of y, and note the objective and the gain.

    The direction is the unit vector in ``work.Q[level]``.
    """
    q, old, new = work.Q[level], work.left[level], work.left[level + 1]
    r = q.shape[0]
    weight = dot(q, old, r)
    subtract(new, old, q, weight)
    work.gain[level + 1] = work.gain[level] + weight * weight
    work.objective[level + 1] = dot(new, new, r)


@kernel(inner=True)
def eliminate(work, level, i):
    """Eliminate column i from those after it: level → level + 1."""
    C, c, d = work.C, work.c, work.d
    p, inverse = c.shape[1], 1.0 / max(d[level, i], work.now[0].dependent)
    for a in range(i + 1, p):
        weight = C[level, i, a] * inverse
        c[level + 1, a] = c[level, a] - weight * c[level, i]
        d[level + 1, a] = d[level, a] - weight * C[level, i, a]
        subtract(C[level + 1, a, a + 1 :], C[level, a, a + 1 :], C[level, i, a + 1 :], weight)


@kernel(inner=True)
def along(P, q, first, row):
    """row_j = qᵀP_j for the columns from ``first`` on."""
    for j in range(first, row.shape[0]):
        row[j] = dot(q, P[j], q.shape[0])


@kernel(inner=True)
def project(work, level, first):
    """Columns from ``first`` on with the picks above ``level`` projected out, in P."""
    r = work.y.shape[0]
    for j in range(first, work.X.shape[0]):
        column = work.P[j]
        for t in range(r):
            column[t] = work.X[j, t]
        for a in range(level):
            subtract(column, column, work.Q[a], dot(work.Q[a], column, r))
        work.length[j] = dot(column, column, r)


@kernel(inner=True)
def any_open(C, c, d, weight, inverse, need, margin):
    """Whether, beside column i, a later column may explain ``need`` after ``margin`` for rounding.

    C, c, d: C_ij, c_j and d_j of the later columns. weight: c_i/d_i. inverse: 1/d_i.
    """
    hits = 0
    squares = need * inverse
    for j in range(C.shape[0]):
        rest = c[j] - weight * C[j]
        hits += rest * rest + margin + squares * (C[j] * C[j]) >= need * d[j]
    return hits > 0


@kernel(inner=True)
def reach(work, k, j):
    """|y| + Σ|β| of the picks, j the last of them."""
    T, r = work.triangle, work.y.shape[0]
    for a in range(k - 2):
        T[a, k - 1] = dot(work.Q[a], work.X[j], r)
    total = np.sqrt(work.now[0].yy)
    for a in range(k - 1, -1, -1):
        beta = dot(work.Q[a], work.left[a], r)
        for b in range(a + 1, k):
            beta -= T[a, b] * T[b, k]
        T[a, k] = beta / T[a, a]
        total += abs(T[a, k])
    return total


@kernel(inner=True)
def needed(work, level):
    """What the first ``level`` picks lack of the incumbent's gain; below 0 where they have more.

    The difference of objectives or of gains, whichever are the smaller numbers.
    """
    now = work.now[0]
    if now.gain < now.objective:
        return now.gain - work.gain[level]
    return work.objective[level] - now.objective


@kernel(inner=True)
def evaluate(work, k, j):
    """Compute the picks with j as the last one from the columns, and note what that says."""
    now = work.now[0]
    work.picks[k - 1] = j
    if k == 1:
        square = direction(work, 0, j)
    else:
        q, before = work.Q[k - 1], work.Q[k - 2]
        for t in range(q.shape[0]):
            q[t] = work.P[j, t] - work.row[j] * before[t]
        square = normalised(work, k - 1)
        work.triangle[k - 2, k - 1], work.triangle[k - 1, k - 1] = work.row[j], np.sqrt(square)
    if square <= now.dependent:
        now.dependent_supports += 1
        return
    explain(work, k - 1)
    root, length = np.sqrt(work.objective[k]), np.sqrt(now.yy)
    below = min(now.least_root, np.sqrt(now.objective))
    det = work.det[k - 1] * square
    if root - now.off * length * (1.0 + np.sqrt(E_TIMES_4 * k / det)) < below:
        now.least_root = min(now.least_root, root - now.off * reach(work, k, j))
    if needed(work, k) < 0.0:
        now.objective, now.gain = work.objective[k], work.gain[k]
        for a in range(k):
            work.found[a] = work.picks[a]


@kernel(inner=True)
def hopeless(work, k, j, rest, square):
    """Whether j as the last pick is clearly worse than the incumbent, however rounding falls.

    The root of the objective is known up to η(|y| + Σ|β|), as where :func:`evaluate` computes it.
    Here the difference ``square`` takes another η·d/square of the objective, d what the picks but
    two leave of the squared length of j.

    rest: What the other picks leave of x_jᵀy. square: What they leave of the squared length of j.
    """
    now = work.now[0]
    loss = 8.0 * now.off * work.length[j]
    if square <= now.dependent or loss > 0.01 * square:
        return False
    left = work.objective[k - 1] - rest * rest / square - loss / square * work.objective[k - 2]
    if left <= 0.0:
        return False
    spread = np.sqrt(2.0 * E_TIMES_4 * k / (work.det[k - 1] * square))
    lost = now.off * np.sqrt(now.yy) * (1.0 + spread)
    return np.sqrt(left) - lost >= min(now.least_root, np.sqrt(now.objective))


@kernel(inner=True)
def last_picks(work, level, i):
    """Visit the supports of the picks above ``level``, column i and one after it."""
    now, k = work.now[0], level + 2
    d, c, row = work.d[level], work.c[level], work.row
    square = max(d[i], now.dependent)
    weight = c[i] / square
    margin = 2.0 * E_TIMES_4 * k * now.off * now.yy / (work.det[level] * square)
    need = needed(work, level) - weight * c[i]
    later = work.C[level, i, i + 1 :]
    # Below ``need`` the pivots of the elimination are far above what rounding takes from them.
    if margin < need and not any_open(
        later, c[i + 1 :], d[i + 1 :], weight, 1.0 / square, need, margin
    ):
        return
    # The projections on the picked columns come from the columns themselves, once for each pick.
    if work.projected[0] == 0:
        project(work, level, i)
        along(work.P, work.left[level], i, work.along_y)
        work.projected[0] = 1
    square = direction(work, level, i)
    if square <= now.dependent:
        now.dependent_supports += 1
        return
    work.det[level + 1] = work.det[level] * square
    explain(work, level)
    along(work.P, work.Q[level], i + 1, row)
    ci = work.along_y[i] / np.sqrt(square)
    margin = E_TIMES_4 * k * now.off * now.yy / work.det[level + 1]
    for j in range(i + 1, row.shape[0]):
        rest = work.along_y[j] - ci * row[j]
        need = needed(work, level + 1)
        square = work.length[j] - row[j] * row[j]
        if rest * rest + margin >= need * square and not hopeless(work, k, j, rest, square):
            evaluate(work, k, j)


@kernel
def advance(work, k, budget):
    """Visit at least ``budget`` more supports; whether none is left."""
    now, p = work.now[0], work.X.shape[0]
    stop = now.visited + budget
    if k == 1:
        for j in range(p):
            evaluate(work, 1, j)
        now.visited, now.level = p, -1
    while now.level >= 0 and now.visited < stop:
        level = now.level
        work.picks[level] += 1
        i = work.picks[level]
        if i > p - (k - level):
            now.level -= 1
        elif level == k - 2:
            last_picks(work, level, i)
            now.visited += p - 1 - i
        else:
            square = direction(work, level, i)
            if square <= now.dependent:
                now.dependent_supports += 1
            else:
                explain(work, level)
                work.det[level + 1] = work.det[level] * square
                eliminate(work, level, i)
                now.level += 1
                work.picks[level + 1] = i
                work.projected[0] = 0
    return now.level < 0
