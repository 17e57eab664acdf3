"""Local search by exchanges of one member of a support, on Gram matrices G and b = Xᵀy.

For a support S of k columns the search stores A = (G_S + ridge·I)⁻¹, β = A b_S and, for all p
columns, V = A G_{S,·}, c = b − G_{·,S}β and d = diag(G) + ridge − colsum(G_{S,·} ∘ V), the Schur
complements. The gain of a single swap then follows in O(1). Adding or removing a column updates the
arrays in O(kp); computing them anew takes O(k²p). The gain of a support is yᵀy less its objective,
which is b_Sᵀβ.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints, add, allocated, dot

# The normal equations (G_S + ridge·I)β = b_S may be off by this share of the largest |b_j| after
# updates of β; where they are off by more, β is refined. A gain errs by the square of that share.
# The equations of a column that is added may be off by this share of its Schur complement.
MAX_RESIDUAL_SHARE = 1e-9
# A β that is off after this many refinements by A, each of which costs k², belongs to an A that has
# lost its digits: all arrays are then computed anew, which costs k²p. The number was chosen by
# timing nearly dependent columns.
REFINEMENTS = 2


class Swaps(NamedTuple):
    """Gram matrices, a support, and the arrays of the support that the module's docstring names.

    Members of the support are in the first k of ``capacity`` places.
    """

    G: Array  # (p, p)
    b: Array  # (p,)
    support: Annotated[Ints, "capacity"]
    A: Annotated[Array, "capacity capacity"]
    beta: Annotated[Array, "capacity"]
    V: Annotated[Array, "capacity p"]
    c: Annotated[Array, "p"]
    d: Annotated[Array, "p"]
    spare: Annotated[Array, "capacity"]  # work space


def new_swaps(G: Array, b: Array, capacity: int) -> Swaps:
    """Allocate the arrays for supports of up to ``capacity`` columns."""
    G, b = np.ascontiguousarray(G), np.ascontiguousarray(b)
    return allocated(Swaps, {"p": b.size, "capacity": capacity}, G=G, b=b)


def swapped(G: Array, b: Array, ridge: float, start: NDArray[np.intp]) -> NDArray[np.intp]:
    """The support ``start`` after single swaps until no swap helps, or 200 swaps; increasing.

    G, b: XᵀX (p, p) and Xᵀy (p,). ridge: γ/2.
    """
    s = new_swaps(G, b, start.size)
    s.support[:] = start
    swap_search(s, ridge, start.size, np.ones(b.size, dtype=np.int8), 200)
    return np.sort(s.support).astype(np.intp)


@kernel(inner=True)
def invert_on(s, ridge, k):
    """Compute A and β of the support's k columns by Gauss–Jordan elimination; returns b_Sᵀβ."""
    G, b, support, A, beta = s.G, s.b, s.support, s.A, s.beta
    for a in range(k):
        for e in range(k):
            A[a, e] = G[support[a], support[e]]
        A[a, a] += ridge
    for q in range(k):
        pivot = max(A[q, q], 1e-300)
        inverse = 1.0 / pivot
        A[q, q] = 1.0
        for e in range(k):
            A[q, e] *= inverse
        for a in range(k):
            if a != q:
                weight = A[a, q]
                A[a, q] = 0.0
                add(A[a], A[q], -weight, k)
    gain = 0.0
    for a in range(k):
        total = 0.0
        for e in range(k):
            total += A[a, e] * b[support[e]]
        beta[a] = total
        gain += total * b[support[a]]
    return gain


@kernel
def recompute(s, ridge, k):
    """Compute all arrays of the support's k columns anew; returns the support's gain."""
    gain = invert_on(s, ridge, k)
    fill_columns(s, ridge, k)
    return gain


@kernel(inner=True)
def fill_columns(s, ridge, k):
    """Compute V, c and d of the support's k columns from A and β."""
    G, b, support, A, beta, V, c, d, _ = s
    p = b.shape[0]
    for j in range(p):
        c[j] = b[j]
        d[j] = G[j, j] + ridge
    for a in range(k):
        row = V[a]
        for j in range(p):
            row[j] = 0.0
        add_columns(row, G, support, A[a], 1.0, k)
        for j in range(p):
            d[j] -= G[support[a], j] * row[j]
        add(c, G[support[a]], -beta[a], p)


@kernel(inner=True)
def add_columns(row, G, support, weight, sign, k):
    """Add ``sign`` times Σ weight[e] · G[support[e]] over e < k to ``row``, shape (p,)."""
    p, whole = row.shape[0], k - k % 4
    for e in range(0, whole, 4):  # four rows at a time, as ``row`` is then read and written once
        g0, g1 = G[support[e]], G[support[e + 1]]
        g2, g3 = G[support[e + 2]], G[support[e + 3]]
        w0, w1 = sign * weight[e], sign * weight[e + 1]
        w2, w3 = sign * weight[e + 2], sign * weight[e + 3]
        for j in range(p):
            row[j] = row[j] + w0 * g0[j] + w1 * g1[j] + w2 * g2[j] + w3 * g3[j]
    for e in range(whole, k):
        add(row, G[support[e]], sign * weight[e], p)


@kernel(inner=True)
def remove_member(s, k, a):
    """Remove the member in place a of k, and update all arrays; place a is empty afterwards."""
    A, beta, V, c, d = s.A, s.beta, s.V, s.c, s.d
    p = c.shape[0]
    inverse = 1.0 / A[a, a]
    ratio = beta[a] * inverse
    for j in range(p):
        c[j] += V[a, j] * ratio
        d[j] += V[a, j] * V[a, j] * inverse
    for e in range(k):
        if e != a:
            weight = A[e, a] * inverse
            beta[e] -= weight * beta[a]
            add(A[e], A[a], -weight, k)
            add(V[e], V[a], -weight, p)


@kernel(inner=True)
def add_member(s, ridge, k, a, column):
    """Put a column into the empty place a of k, and update all arrays.

    On entry the arrays are those of the members in the other k − 1 places, and the column is none
    of them. With v = A G_{S,column} the inverse of the larger matrix is, by blocks,

        [A + v vᵀ/δ, −v/δ; −vᵀ/δ, 1/δ],   δ = G_column,column + ridge − vᵀG_{S,column},

    and row a of V becomes (G_column,· − vᵀG_{S,·})/δ. A δ below 1e-12 of G_column,column + ridge
    has no correct digits left, and this least share takes its place.

    Updates leave errors in v. The residual of v is G_{S,column} − (G_S + ridge·I)v, and δ divides
    it in the new A. Where it is not small beside δ, v is refined, else a column that nearly depends
    on the others would cost A all digits.
    """
    G, _, support, A, beta, V, c, d, spare = s
    p = c.shape[0]
    for j in range(p):
        V[a, j] = G[column, j]
    for e in range(k):
        if e != a:
            A[a, e] = V[e, column]
    A[a, a] = 0.0
    add_columns(V[a], G, support, A[a], -1.0, k)
    for number in range(REFINEMENTS + 1):
        length = max(V[a, column] + ridge, 1e-12 * (G[column, column] + ridge))
        worst = 0.0
        for e in range(k):
            spare[e] = 0.0 if e == a else V[a, support[e]] - ridge * A[a, e]
            worst = max(worst, abs(spare[e]))
        if worst <= MAX_RESIDUAL_SHARE * length or number == REFINEMENTS:
            break
        for e in range(k):
            if e != a:
                step = dot(A[e], spare, k)
                A[a, e] += step
                add(V[a], G[support[e]], -step, p)
    inverse = 1.0 / length
    support[a], beta[a] = column, c[column] * inverse
    for j in range(p):
        c[j] -= beta[a] * V[a, j]
        d[j] -= V[a, j] * V[a, j] * inverse
        V[a, j] *= inverse
    for e in range(k):
        if e != a:
            weight = A[a, e]
            beta[e] -= weight * beta[a]
            add(A[e], A[a], weight * inverse, k)
            add(V[e], V[a], -weight, p)
    for e in range(k):
        if e != a:
            A[a, e] *= -inverse
            A[e, a] = A[a, e]
    A[a, a] = inverse


@kernel(inner=True)
def attained_gain(s, ridge, k, least):
    """The gain of the support; β is refined where updates have lost its digits.

    With the residual r = b_S − (G_S + ridge·I)β of the normal equations, β attains b_Sᵀβ + βᵀr,
    which is less than the best gain by rᵀAr. Where r is too large, Ar is added to β and c follows;
    where that does not help, A has lost its digits too, and all arrays are computed anew. Of a
    support whose gain then is at most ``least`` only A and β are.
    """
    G, b, support, A, beta, _, c, _, spare = s
    for number in range(REFINEMENTS + 1):
        gain, worst, scale = 0.0, 0.0, 0.0
        for a in range(k):
            left = b[support[a]] - ridge * beta[a]
            for e in range(k):
                left -= G[support[a], support[e]] * beta[e]
            gain += beta[a] * (b[support[a]] + left)
            worst, scale = max(worst, abs(left)), max(scale, abs(b[support[a]]))
            spare[a] = left
        if worst <= MAX_RESIDUAL_SHARE * scale:
            if number > 0:
                for j in range(c.shape[0]):
                    c[j] = b[j]
                for a in range(k):
                    add(c, G[support[a]], -beta[a], c.shape[0])
            return gain
        for a in range(k):
            beta[a] += dot(A[a], spare, k)
    gain = invert_on(s, ridge, k)
    if not gain <= least:
        fill_columns(s, ridge, k)
    return gain


@kernel(inner=True)
def best_swap(s, k, allowed, least):
    """The swap that gains most: the place of the member to remove, and the column to add.

    Removing member m and adding column j gains (c_j + V_mj β_m/A_mm)² / (d_j + V_mj²/A_mm) less
    β_m²/A_mm. Returns (−1, −1) where no swap gains more than ``least``.

    allowed: (p,), as :func:`swap_search` takes the array.
    """
    _, _, support, A, beta, V, c, d, spare = s
    for a in range(k):  # an infinite length keeps members from coming in
        spare[a], d[support[a]] = d[support[a]], np.inf
    best, leaving, entering = least, -1, -1
    for a in range(k):
        inverse = 1.0 / A[a, a]
        ratio = beta[a] * inverse
        cost = beta[a] * ratio
        better = 0  # mostly no column is better, which a loop without branches finds faster
        for j in range(c.shape[0]):
            left = c[j] + V[a, j] * ratio
            better += left * left > (best + cost) * (d[j] + V[a, j] * V[a, j] * inverse)
        if better == 0:
            continue
        for j in range(c.shape[0]):
            length = d[j] + V[a, j] * V[a, j] * inverse
            left = c[j] + V[a, j] * ratio
            if left * left > (best + cost) * length and allowed[j] and 0.0 < length < np.inf:
                best = left * left / length - cost
                leaving, entering = a, j
    for a in range(k):
        d[support[a]] = spare[a]
    return leaving, entering


@kernel(inner=True)
def swap_from(s, ridge, k, allowed, most, gain):
    """:func:`swap_search` from a support whose arrays are computed and whose gain is given."""
    for _ in range(most):
        place, column = best_swap(s, k, allowed, 1e-10 * abs(gain))
        if place < 0:
            break
        before = s.support[place]
        remove_member(s, k, place)
        add_member(s, ridge, k, place, column)
        new = attained_gain(s, ridge, k, gain)
        if new <= gain:  # rounding alone made the swap look better
            s.support[place] = before
            gain = recompute(s, ridge, k)
            break
        gain = new
    return gain


@kernel
def swap_search(s, ridge, k, allowed, most):
    """Make the best single swap of the support's k columns, over and over; returns the gain.

    allowed: (p,), 0 for columns that are never added, else 1.
    most: The search ends after this many swaps, or where no swap gains more than 1e-10 of the gain.
    """
    if most == 0:
        return invert_on(s, ridge, k)
    return swap_from(s, ridge, k, allowed, most, recompute(s, ridge, k))
