"""Compiled enumeration: every choice of k of n columns, the best of them, and what bounds all.

With the picks so far projected out, C_ij = x_iᵀx_j, c_j = x_jᵀy and d_j = C_jj are updated from
pick to pick, and the last pick j beside i leaves the objective

    f − c_i²/d_i − (c_j − c_iC_ij/d_i)² / (d_j − C_ij²/d_i),

in this form as it loses least in rounding. A pair is divided out only where a test without a
division says that it may be better than the incumbent.

The columns come from a node of a tree (``completion``), where a pair is worth what this formula
says. Or they are the columns x_j of a triangular factor, all of length 1, and y their response
(:class:`Columns`); then the supports that are not passed over are computed from the columns.

Where shares of the columns are given, choices whose shares add up to too little are passed over.
Columns are ordered by falling share, so that only the first columns of every row are visited.

**What rounding can lose where columns are given.** The differences lose digits where columns nearly
depend on each other. Eliminating a support S from a matrix that is off by η is off by at most
η(|y| + Σ|β_j|)² in the objective, and with unit columns |β| ≤ |y|/σ and σ² ≥ det/e, where σ is the
least singular value of S and det the product of its pivots: the arithmetic mean of the other k − 1
eigenvalues is at most k/(k − 1), and (k/(k − 1))^(k − 1) < e. So a support is passed over where

    objective − η·4ek·yᵀy/det ≥ the incumbent's objective,

and only where that margin is less than what the picks but the last lack of the incumbent: then
det ≥ 4ekη, no pivot is lost in rounding, and the elimination is exact for a matrix off by η.

Any other support is computed afresh from the columns themselves, by modified Gram–Schmidt, which
is as stable as Householder's QR (Björck 1967): what it says of S is exact for columns off by η of
their length, so that |r| is off by at most η(|y| + Σ|β_j|). The least value of |r| less that error
is kept: its square bounds every objective from below. A support whose |r|, less
η(1 + 4√(ek/det))|y| and what the last difference loses, is above that least value is passed over
before its last column is computed (:func:`hopeless`).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from .by_reference import by_reference
from .compiled import kernel
from .linalg import GAIN_SHARE, LEAST_LEFT, Array, Ints, allocated, dot, record

STATE = np.dtype(
    [
        ("level", np.int64),  # picks made; -1 once every choice has been visited
        ("visited", np.int64),  # choices visited, or passed over by the test of pairs
        ("dependent_supports", np.int64),  # supports passed over as their columns are dependent
        ("objective", np.float64),  # of the incumbent; ∞ where gains alone are compared
        ("gain", np.float64),  # yᵀy less the incumbent's objective, as a sum of squares
        ("least", np.float64),  # choices whose shares add up to at most this are passed over
        ("least_root", np.float64),  # the least √objective that rounding leaves any support
        ("yy", np.float64),  # yᵀy
        ("off", np.float64),  # η, relative to the lengths of the columns; 0 where none are given
        ("dependent", np.float64),  # a squared length left below which a column is dependent
    ],
    align=True,
)
E_TIMES_4 = 4.0 * math.e


@by_reference()
class Columns(NamedTuple):
    """The columns themselves, and what the current picks leave of them and of y."""

    X: Array  # (n, r): unit columns, one per row; (0, 0) where only products are known
    y: Array  # (r,)
    Q: Annotated[Array, "levels+1 r"]  # orthonormal directions of the picks
    left: Annotated[Array, "levels+2 r"]  # the residual of y
    P: Annotated[Array, "n r"]  # the columns with all but the last two picks projected out
    projected: Annotated[Ints, "1"]  # whether P belongs to the current picks
    length: Annotated[Array, "n"]  # squared lengths of the columns of P
    row: Annotated[Array, "n"]
    along_y: Annotated[Array, "n"]
    triangle: Annotated[Array, "k k+1"]  # R of the picks' QR factors; coefficients in one column


@by_reference()
class Enumeration(NamedTuple):
    """Products of n columns, and what is kept of the current picks; level ℓ is after ℓ picks."""

    C: Annotated[Array, "levels n n"]  # above the diagonal
    d: Annotated[Array, "levels n"]  # squared lengths
    c: Annotated[Array, "levels n"]  # products with y
    share: Annotated[Array, "n"]  # falling; 0 where no choice is passed over
    total: Annotated[Array, "levels+2"]  # sum of the shares of the picks
    ends: Annotated[Ints, "levels+2"]  # how many of the columns a level looks at
    objective: Annotated[Array, "levels+2"]  # squared length of the residual of y
    gain: Annotated[Array, "levels+2"]  # what the picks explain of yᵀy, as a sum of squares
    det: Annotated[Array, "levels+1"]  # product of the picks' pivots
    picks: Annotated[Ints, "k+1"]
    found: Annotated[Ints, "k+1"]  # the incumbent; -1 in front where there is none
    columns: Columns
    now: Any  # of STATE


def new_enumeration(
    n: int, k: int, levels: int, columns: Columns | None = None, **now: float
) -> Enumeration:
    """Allocate an enumeration of choices of columns out of n; all numbers are 0 at first.

    k: The largest size of a support, for which there are places.
    levels: How many levels have products, at least 1. Choices have at most ``levels`` + 1 columns,
        fewer than k where the other columns of a support are chosen elsewhere.
    columns: The columns themselves; None where products alone are known.
    now: Fields of STATE that are not 0.
    """
    if columns is None:
        none = {"n": 0, "r": 0, "k": 0, "levels": 0}
        columns = allocated(Columns, none, X=np.zeros((0, 0)), y=np.zeros(0))
    sizes = {"n": n, "k": k, "levels": levels}
    return allocated(Enumeration, sizes, columns=columns, now=record(STATE, **now))


def every_support(X: Array, y: Array, k: int, off: float, dependent: float) -> Enumeration:
    """The enumeration of supports of k ≥ 1 of n columns, of which none is visited yet.

    The incumbent is the empty support, whose objective is yᵀy. A caller that knows a better support
    lowers ``now["objective"]`` and raises ``now["gain"]``.

    X, shape (r, n): The columns, each of length 1.
    y, shape (r,): The response.
    off: What rounding has changed the columns and y by, as a share of their lengths.
    dependent: A column whose length, once other columns are projected out, is at most this counts
        as dependent on them. ``now["dependent"]`` holds the square, as lengths are kept squared.
    """
    (r, n), levels, yy = X.shape, max(k - 1, 1), float(y @ y)
    given = {"X": np.ascontiguousarray(X.T), "y": np.ascontiguousarray(y)}
    columns = allocated(Columns, {"n": n, "r": r, "k": k, "levels": levels}, **given)
    now = {"objective": yy, "yy": yy, "least_root": np.sqrt(yy), "off": off, "least": -np.inf}
    work = new_enumeration(n, k, levels, columns, dependent=dependent * dependent, **now)
    work.C[0], work.c[0], columns.left[0] = X.T @ X, X.T @ y, y
    work.d[0] = np.maximum(work.C[0].diagonal(), dependent * dependent)
    work.objective[0], work.det[0] = yy, 1.0
    work.picks[0], work.found[0], work.ends[0] = -1, -1, n
    return work


@kernel(inner=True)
def restart(work, n):
    """Visit no choice of the first n columns yet."""
    now = work.now[0]
    now.level, now.visited = 0, 0
    work.picks[0], work.ends[0], work.total[0] = -1, n, 0.0


@kernel(inner=True)
def subtract(target, source, pivot, weight):
    """target = source − weight·pivot, by which a pick is projected out of a column or of y."""
    for j in range(source.shape[0]):
        target[j] = source[j] - weight * pivot[j]


@kernel(inner=True)
def eliminate(C, c, d, level, i, end):
    """Eliminate column i from those after it and before ``end``: level → level + 1."""
    inverse = 1.0 / d[level, i]
    for a in range(i + 1, end):
        weight = C[level, i, a] * inverse
        c[level + 1, a] = c[level, a] - weight * c[level, i]
        d[level + 1, a] = max(d[level, a] - weight * C[level, i, a], LEAST_LEFT * d[level, a])
        row = C[level + 1, a, a + 1 : end]
        subtract(row, C[level, a, a + 1 : end], C[level, i, a + 1 : end], weight)


@kernel(inline=True)
def end_of_visited(share, first, end, k, least):
    """The place after the last column that can be one of k columns with a large sum of shares.

    The k columns have places from ``first`` on and before ``end``, and their shares must add up to
    more than ``least``. On entry ``share`` falls, so that the k − 1 other columns have at most the
    sum of the k − 1 shares from ``first`` on.
    """
    others = 0.0
    for f in range(first, min(first + k - 1, end)):
        others += share[f]
    while end > first and share[end - 1] + others <= least:
        end -= 1
    return end


@kernel(inner=True)
def normalised(by, level, dependent):
    """Bring the direction of a level to unit length, unless it is dependent on the picks above.

    Returns: The squared length it had.
    """
    q = by.Q[level]
    square = dot(q, q, q.shape[0])
    if square > dependent:
        inverse = 1.0 / np.sqrt(square)
        for t in range(q.shape[0]):
            q[t] *= inverse
    return square


@kernel(inner=True)
def direction(work, level, i):
    """Put column i, the picks above ``level`` projected out, into Q at unit length.

    Returns: The squared length of what is left of the column.
    """
    by = work.columns
    q = by.Q[level]
    for t in range(q.shape[0]):
        q[t] = by.X[i, t]
    for a in range(level):
        by.triangle[a, level] = dot(by.Q[a], q, q.shape[0])
        subtract(q, q, by.Q[a], by.triangle[a, level])
    square = normalised(by, level, work.now[0].dependent)
    by.triangle[level, level] = np.sqrt(square)
    return square


@kernel(inner=True)
def explain(work, level):
    """Take the pick's direction out of the residual of y, and note the objective and the gain.

    The direction is the unit vector in ``Q[level]``.
    """
    by = work.columns
    q, old, new = by.Q[level], by.left[level], by.left[level + 1]
    r = q.shape[0]
    weight = dot(q, old, r)
    subtract(new, old, q, weight)
    work.gain[level + 1] = work.gain[level] + weight * weight
    work.objective[level + 1] = dot(new, new, r)


@kernel(inner=True)
def along(P, q, first, row):
    """Write qᵀP_j to ``row[j]`` for the columns j from ``first`` on; P_j is row j of P."""
    for j in range(first, row.shape[0]):
        row[j] = dot(q, P[j], q.shape[0])


@kernel(inner=True)
def project(work, level, first):
    """Write to P the columns from ``first`` on with the first ``level`` picks projected out.

    On entry the first rows of Q are the orthonormal directions of these picks. ``length`` takes the
    squared lengths of the columns that are written.
    """
    by = work.columns
    r = by.y.shape[0]
    for j in range(first, by.X.shape[0]):
        column = by.P[j]
        for t in range(r):
            column[t] = by.X[j, t]
        for a in range(level):
            subtract(column, column, by.Q[a], dot(by.Q[a], column, r))
        by.length[j] = dot(column, column, r)


@kernel(inline=True)
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
    """|y| + Σ|β| for the least-squares coefficients β of k picks, of which j is the last.

    On entry ``Q`` has the directions of all picks, and ``triangle`` the picks before j and the last
    two entries of j's column, k − 1. The rest of that column, and β in column k, are written here.
    """
    by = work.columns
    T, r = by.triangle, by.y.shape[0]
    for a in range(k - 2):
        T[a, k - 1] = dot(by.Q[a], by.X[j], r)
    total = np.sqrt(work.now[0].yy)
    for a in range(k - 1, -1, -1):
        beta = dot(by.Q[a], by.left[a], r)
        for b in range(a + 1, k):
            beta -= T[a, b] * T[b, k]
        T[a, k] = beta / T[a, a]
        total += abs(T[a, k])
    return total


@kernel(inline=True)
def needed(work, level):
    """What the first ``level`` picks lack of the incumbent's gain; below 0 where they have more.

    The difference of objectives or of gains, whichever are the smaller numbers.
    """
    now = work.now[0]
    if now.gain < now.objective:
        return now.gain - work.gain[level]
    return work.objective[level] - now.objective


@kernel(inner=True)
def evaluate_support(work, k, j):
    """Compute the support of k − 1 picks and column j from the columns, and note what that says.

    A support of independent columns lowers ``now.least_root`` where its √objective less rounding is
    smaller, and becomes the incumbent where it is better. A support of dependent columns is only
    counted. On entry, for k > 1, ``P`` has column j with the first k − 2 picks projected out,
    ``Q`` the directions of all k − 1 picks, and ``row[j]`` the product of P_j with the last one.
    """
    now, by = work.now[0], work.columns
    work.picks[k - 1] = j
    if k == 1:
        square = direction(work, 0, j)
    else:
        q, before = by.Q[k - 1], by.Q[k - 2]
        for t in range(q.shape[0]):
            q[t] = by.P[j, t] - by.row[j] * before[t]
        square = normalised(by, k - 1, now.dependent)
        by.triangle[k - 2, k - 1], by.triangle[k - 1, k - 1] = by.row[j], np.sqrt(square)
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

    The root of the objective is known up to η(|y| + Σ|β|), as where :func:`evaluate_support`
    computes it. Here the difference ``square`` takes another η·d/square of the objective, d what
    the picks but two leave of the squared length of j.

    rest: What the other picks leave of x_jᵀy. square: What they leave of the squared length of j.
    """
    now, by = work.now[0], work.columns
    loss = 8.0 * now.off * by.length[j]
    if square <= now.dependent or loss > 0.01 * square:
        return False
    left = work.objective[k - 1] - rest * rest / square - loss / square * work.objective[k - 2]
    if left <= 0.0:
        return False
    spread = np.sqrt(2.0 * E_TIMES_4 * k / (work.det[k - 1] * square))
    lost = now.off * np.sqrt(now.yy) * (1.0 + spread)
    return np.sqrt(left) - lost >= min(now.least_root, np.sqrt(now.objective))


@kernel(inline=True)
def pick(work, level, i):
    """Pick column i after ``level`` other picks; whether it is independent of these.

    On entry ``work`` has everything of the level ℓ = ``level``, and takes the gain of the next
    level. Where only products are known, elimination keeps every column independent. Where columns
    are given, what the other picks leave of column i becomes a direction, and the next level's
    residual of y, objective and determinant are written, too. A dependent column is counted and
    not picked.
    """
    now = work.now[0]
    if work.columns.X.shape[0] == 0:
        work.gain[level + 1] = work.gain[level] + work.c[level, i] ** 2 / work.d[level, i]
        return True
    square = direction(work, level, i)
    if square <= now.dependent:
        now.dependent_supports += 1
        return False
    work.det[level + 1] = work.det[level] * square
    explain(work, level)
    return True


@kernel(inner=True)
def compare(work, level, row, i, end):
    """Make the best choice with a pair of column i and a later one the incumbent, if it is better.

    A choice is the first ``level`` picks and a pair i, j with i < j < end. On entry level ``level``
    has the products, with those earlier picks projected out, and ``work.gain`` what the earlier
    picks explain. The pair explains c_i²/d_i and what j adds once i is projected out, too.

    row: The row of ``C[level]`` that has the products of column i.
    """
    now, d, c = work.now[0], work.d[level], work.c[level]
    inverse, products = 1.0 / d[i], work.C[level, row]
    weight = c[i] * inverse
    for j in range(i + 1, end):
        rest, square = c[j] - weight * products[j], d[j] - products[j] * products[j] * inverse
        more = weight * c[i] + rest * rest / max(square, LEAST_LEFT * d[j])
        if work.gain[level] + more > now.gain:
            now.gain = work.gain[level] + more
            work.picks[level], work.picks[level + 1] = i, j
            for a in range(level + 2):
                work.found[a] = work.picks[a]


@kernel(inner=True)
def evaluate_pairs(work, level, i, end):
    """Compute supports of the picks, i and a later column from the columns, unless hopeless.

    The supports have the first ``level`` picks, i, and a column j with i < j < end. None is
    computed where i depends on the picks, which :func:`pick` counts as one support.
    """
    now, by, k = work.now[0], work.columns, level + 2
    # The projections on the picked columns come from the columns themselves, once for each pick.
    if by.projected[0] == 0:
        project(work, level, i)
        along(by.P, by.left[level], i, by.along_y)
        by.projected[0] = 1
    if not pick(work, level, i):
        return
    row = by.row
    along(by.P, by.Q[level], i + 1, row)
    ci = by.along_y[i] / by.triangle[level, level]
    margin = E_TIMES_4 * k * now.off * now.yy / work.det[level + 1]
    for j in range(i + 1, end):
        rest = by.along_y[j] - ci * row[j]
        need = needed(work, level + 1)
        square = by.length[j] - row[j] * row[j]
        if rest * rest + margin >= need * square and not hopeless(work, k, j, rest, square):
            evaluate_support(work, k, j)


@kernel(inline=True)
def last_picks(work, level, row, i, end):
    """Visit choices of the first ``level`` picks, column i, and a column j with i < j < end.

    A better choice becomes the incumbent. All are passed over at once where :func:`any_open` says
    that none is better. Where columns are given, ``picks[level]`` is i on entry.

    row: The row of ``C[level]`` that has the products of column i. It is i, or 0 where a caller
        without columns computes one row at a time.
    """
    now, k, d, c = work.now[0], level + 2, work.d[level], work.c[level]
    inverse, margin = 1.0 / d[i], 0.0
    weight = c[i] * inverse
    if now.off > 0.0:  # Twice what :func:`evaluate_pairs` takes, which tests the pairs left over.
        margin = 2.0 * E_TIMES_4 * k * now.off * now.yy * inverse / work.det[level]
    need = needed(work, level) * (1.0 - GAIN_SHARE) - weight * c[i]
    now.visited += end - 1 - i
    later = work.C[level, row, i + 1 : end]
    # Below ``need`` the pivots of the elimination are far above what rounding takes from them.
    if margin < need and not any_open(
        later, c[i + 1 : end], d[i + 1 : end], weight, inverse, need, margin
    ):
        return
    if work.columns.X.shape[0] == 0:
        compare(work, level, row, i, end)
    else:
        evaluate_pairs(work, level, i, end)


@kernel(inner=True)
def visit_singles(work):
    """Visit the choices of one of the first ``ends[0]`` columns, after which none is left."""
    now = work.now[0]
    for j in range(work.ends[0]):
        if work.columns.X.shape[0] > 0:
            evaluate_support(work, 1, j)
        elif work.gain[0] + work.c[0, j] ** 2 / work.d[0, j] > now.gain:
            now.gain, work.found[0] = work.gain[0] + work.c[0, j] ** 2 / work.d[0, j], j
    now.visited, now.level = work.ends[0], -1


@kernel
def visit(work, k, budget):
    """Visit at least ``budget`` more choices of k columns; whether none is left.

    Columns are picked in increasing order, level by level. A visit goes on where the last one has
    stopped. On entry ``work`` has the products of level 0, ``work.share`` the shares, ``ends[0]``
    the number of columns, and ``now`` what is known of the incumbent. A choice is passed over if
    its shares add up to at most ``now.least``. A better choice becomes the incumbent
    ``work.found``.
    """
    now, share, picks, ends = work.now[0], work.share, work.picks, work.ends
    stop = now.visited + budget
    if k == 1:
        visit_singles(work)
    while now.level >= 0 and now.visited < stop:
        level = now.level
        picks[level] += 1
        i, remaining, least = picks[level], k - level, now.least - work.total[level]
        if (
            i > ends[level] - remaining
            or end_of_visited(share, i, i + remaining, remaining, least) < i + remaining
        ):
            now.level -= 1  # Too few columns or shares are left.
            continue
        # Later columns of this level have smaller shares, so that they end no later.
        ends[level] = end_of_visited(share, i + 1, ends[level], remaining - 1, least - share[i])
        if remaining == 2:
            last_picks(work, level, i, i, ends[level])
        elif pick(work, level, i):
            eliminate(work.C, work.c, work.d, level, i, ends[level])
            work.total[level + 1], ends[level + 1] = work.total[level] + share[i], ends[level]
            picks[level + 1], work.columns.projected[0] = i, 0
            now.level += 1
    return now.level < 0
