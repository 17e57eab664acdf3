"""The arrays of a support, on Gram matrices G and b = Xᵀy, and how units join and leave it.

A unit is a group of columns that join and leave a support together, by default a single column. For
a support S of n columns the arrays are A = (G_S + ridge·I)⁻¹, β = A b_S and, for all p columns,
V = A G_{S,·}, c = b − G_{·,S}β and d = diag(G) + ridge − colsum(G_{S,·} ∘ V), the Schur
complements; ridge is γ/2. Adding or removing a column updates the arrays in O(np); computing them
anew takes O(n²p). The gain of a support is yᵀy less its objective.

With bounds on coefficients S holds the free columns of the units, whose coefficients are between
their bounds. The other columns of the units are held at a bound, and b is Xᵀ of what they leave of
y.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import (
    DETERMINED_SHARE,
    GAIN_SHARE,
    LEAST_PIVOT,
    MAX_RESIDUAL_SHARE,
    Array,
    Ints,
    add,
    allocated,
    dot,
    record,
)

# A β that is off after this many refinements by A, each of which costs n², belongs to an A that has
# lost its digits: all arrays are then computed anew, which costs n²p. The number was chosen by
# timing nearly dependent columns.
REFINEMENTS = 2


@by_reference()
class Swaps(NamedTuple):
    """Gram matrices, a support, and the arrays of the support that the module's docstring names.

    Columns of the support are in the first n of ``capacity`` places, counted from 0. What other
    places hold means nothing. Within bounds on coefficients kernels write to ``b``.
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


# Facts about the units of a search and its current support. Row u is of unit u, but for the fields
# ``member`` and ``wide``, which are lists. There is one row more than units.
UNIT = np.dtype(
    [
        ("first", "i8"),  # columns of unit u are first[u] … first[u+1] − 1
        # 1 for a unit that may join, else 0; −1 for one that joined without raising the gain, and
        # may not join again before the swaps from this support have ended
        ("allowed", "i8"),
        ("kept", "i8"),  # 1 for a unit that never leaves
        ("member", "i8"),  # a list, whose first k entries are the units of the support
        ("wide", "i8"),  # a list, whose first ``n_wide`` entries are the units of several columns
    ]
)
COLUMN = np.dtype(
    [
        ("unit", "i8"),
        ("place", "i8"),  # the place in the support, −1 for a column that is held or in no member
        ("lower", "f8"),  # bounds on the coefficient
        ("upper", "f8"),
        ("given", "f8"),  # Xᵀy, where there are bounds
        ("value", "f8"),  # with bounds: the coefficient within the bounds, 0 outside the support
    ]
)
SUPPORT = np.dtype(
    [
        ("count", "i8"),  # number of free columns, which are in the first places
        ("n_wide", "i8"),
        ("bounded", "i8"),  # 1 where there are bounds on coefficients
    ]
)


@by_reference()
class Units(NamedTuple):
    """The units of the p columns, and those of the current support.

    Columns are ordered by unit. ``widest`` is the largest number of columns of a unit.
    """

    of: Any  # (m+1,) of UNIT
    columns: Any  # (p,) of COLUMN
    now: Any  # (1,) of SUPPORT
    c: Annotated[Array, "p"]  # c and d after a unit has left
    d: Annotated[Array, "p"]
    lengths: Annotated[Array, "p"]  # d, infinite for members and for columns that do not join alone
    rows: Annotated[Array, "widest p"]  # rows of V of the unit that leaves, made orthogonal
    # Schur complements of the units of several columns: row j has column j's entries for the
    # columns of its unit, the first one in entry 0, up to column j itself.
    left: Annotated[Array, "p widest"]
    factor: Annotated[Array, "p widest"]  # their Cholesky factors
    block: Annotated[Array, "widest widest"]  # work space
    slope: Annotated[Array, "widest"]
    inverse: Annotated[Array, "widest"]  # what the products of two of ``rows`` are multiplied by


def new_units(
    first: NDArray[np.int64],
    kept: NDArray[Any] | bool,
    bounds: tuple[Array, Array] | None = None,
    given: Array | float = 0.0,
) -> Units:
    """Allocate the arrays for m units of p columns that may all join.

    first, shape (m + 1,): Columns of unit u are first[u] … first[u + 1] − 1.
    kept, shape (m,): Units that never leave.
    bounds, shape (p,) each: Bounds on coefficients, lower and upper ones; None without bounds.
    given, shape (p,): Xᵀy, which is read where there are bounds.
    """
    widths, p = first[1:] - first[:-1], int(first[-1])
    wide = np.flatnonzero(widths > 1)
    of, unit = record(UNIT, first.size, first=first), np.repeat(np.arange(widths.size), widths)
    of["allowed"][:-1], of["kept"][:-1], of["wide"][: wide.size] = 1, kept, wide
    lower, upper = (-np.inf, np.inf) if bounds is None else bounds
    columns = record(COLUMN, p, unit=unit, place=-1, lower=lower, upper=upper, given=given)
    now = record(SUPPORT, n_wide=wide.size, bounded=bounds is not None)
    lengths = {"p": p, "widest": int(widths.max(initial=1))}
    return allocated(Units, lengths, of=of, columns=columns, now=now)


def new_swaps(G: Array, b: Array, capacity: int) -> Swaps:
    """Allocate the arrays for supports of up to ``capacity`` columns.

    The record holds G and b themselves where these lie row by row in memory. Within bounds on
    coefficients kernels write to ``b``, so that the caller gives an array of its own.
    """
    G, b = np.ascontiguousarray(G), np.ascontiguousarray(b)
    return allocated(Swaps, {"p": b.size, "capacity": capacity}, G=G, b=b)


@kernel(inner=True)
def invert_on(s, ridge, n):
    """Compute A and β of the support's n columns by Gauss–Jordan elimination; returns b_Sᵀβ.

    On entry ``s.support[:n]`` has the columns. A pivot below 1e-300 is replaced by 1e-300, so that
    nothing is divided by 0; of dependent columns A and β then mean little.
    """
    G, b, support, A, beta = s.G, s.b, s.support, s.A, s.beta
    for a in range(n):
        for e in range(n):
            A[a, e] = G[support[a], support[e]]
        A[a, a] += ridge
    for q in range(n):
        pivot = max(A[q, q], 1e-300)
        inverse = 1.0 / pivot
        A[q, q] = 1.0
        for e in range(n):
            A[q, e] *= inverse
        for a in range(n):
            if a != q:
                weight = A[a, q]
                A[a, q] = 0.0
                add(A[a], A[q], -weight, n)
    gain = 0.0
    for a in range(n):
        total = 0.0
        for e in range(n):
            total += A[a, e] * b[support[e]]
        beta[a] = total
        gain += total * b[support[a]]
    return gain


@kernel(inner=True)
def fill_columns(s, ridge, n):
    """Compute V, c and d of the support's n columns from A and β, which belong to them on entry."""
    G, b, support, A, beta = s.G, s.b, s.support, s.A, s.beta
    V, c, d = s.V, s.c, s.d
    p = b.shape[0]
    for j in range(p):
        c[j] = b[j]
        d[j] = G[j, j] + ridge
    for a in range(n):
        row = V[a]
        for j in range(p):
            row[j] = 0.0
        for e in range(n):
            add(row, G[support[e]], A[a, e], p)
        for j in range(p):
            d[j] -= G[support[a], j] * row[j]
        add(c, G[support[a]], -beta[a], p)


@kernel(inner=True)
def remove_member(s, k, a):
    """Take the column in place a out of the k columns of the support.

    On entry places 0 to k − 1 hold columns and A_aa > 0. A, β, V, c and d are updated. Place a is
    empty afterwards: its rows of A and V, its β and its entry of ``support`` stay as they were, and
    mean nothing.
    """
    A, beta, V, c, d = s.A, s.beta, s.V, s.c, s.d
    p = c.shape[0]
    inverse = 1.0 / A[a, a]
    ratio = beta[a] * inverse
    for j in range(p):
        v = V[a, j]
        c[j] += v * ratio
        d[j] += v * v * inverse
    for e in range(k):
        if e != a:
            weight = A[e, a] * inverse
            beta[e] -= weight * beta[a]
            add(A[e], A[a], -weight, k)
            add(V[e], V[a], -weight, p)


@kernel(inner=True)
def move_last_member(s, n, place):
    """Move the column in place n, the last one, to the empty ``place`` before it.

    On entry the arrays have lost the column that was in ``place`` (:func:`remove_member`). β, A, V
    and ``support`` follow; c and d do not depend on places.
    """
    s.support[place], s.beta[place] = s.support[n], s.beta[n]
    for j in range(s.c.shape[0]):
        s.V[place, j] = s.V[n, j]
    for e in range(n + 1):
        s.A[place, e] = s.A[n, e]
    for e in range(n + 1):
        s.A[e, place] = s.A[e, n]


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
    G, support, A, beta, V = s.G, s.support, s.A, s.beta, s.V
    c, d, spare = s.c, s.d, s.spare
    p = c.shape[0]
    for j in range(p):
        V[a, j] = G[column, j]
    for e in range(k):
        if e != a:
            A[a, e] = V[e, column]
    A[a, a] = 0.0
    for e in range(k):
        add(V[a], G[support[e]], -A[a, e], p)
    for number in range(REFINEMENTS + 1):
        length = max(V[a, column] + ridge, LEAST_PIVOT * (G[column, column] + ridge))
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
    own = beta[a]
    for j in range(p):
        v = V[a, j]
        c[j] -= own * v
        d[j] -= v * v * inverse
        V[a, j] = v * inverse
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
def load_members(s, units, k):
    """Make all columns of the k members the support, with no column held at a bound.

    Writes ``s.support`` and the places of columns. Every coefficient becomes 0, and where there are
    bounds Xᵀy becomes that of the data again. Products and factors of the columns are not written.

    Returns: The number of columns.
    """
    of, columns, n = units.of, units.columns, 0
    for j in range(columns.shape[0]):
        columns[j].place, columns[j].value = -1, 0.0
        if units.now[0].bounded:
            s.b[j] = columns[j].given
    for i in range(k):
        u = of[i].member
        for j in range(of[u].first, of[u + 1].first):
            s.support[n], columns[j].place = j, n
            n += 1
    units.now[0].count = n
    return n


@kernel(inner=True)
def recompute(s, units, ridge, k):
    """Compute all arrays of the k members anew; returns the support's gain.

    On entry the first k of ``units.of`` name the members. Within bounds their columns are then
    held or freed until the fit is within the bounds (:func:`settle`).
    """
    n = load_members(s, units, k)
    gain = invert_on(s, ridge, n)
    fill_columns(s, ridge, n)
    if units.now[0].bounded:
        settle(s, units, ridge, k)
        gain = attained_gain(s, units, ridge, k, -np.inf)
    return gain


@kernel(inner=True)
def free_column(s, units, ridge, column):
    """Put a column that is in no place into the place after the last one, and update all arrays.

    On entry the support has fewer columns than places, and a column that was held at a bound has
    been taken off b (:func:`shift_held`).
    """
    n = units.now[0].count
    add_member(s, ridge, n + 1, n, column)
    units.columns[column].place, units.now[0].count = n, n + 1


@kernel(inner=True)
def drop_column(s, units, place):
    """Remove the column in a place, which the last column takes; update all arrays."""
    n = units.now[0].count - 1
    remove_member(s, n + 1, place)
    units.columns[s.support[place]].place = -1
    if place < n:
        move_last_member(s, n, place)
        units.columns[s.support[place]].place = place
    units.now[0].count = n


@kernel(inner=True)
def leave(s, units, k, i):
    """Let member i of k leave, counted from 0; the last member takes its number.

    Within bounds the coefficients that stay are not brought within them again: the caller has a
    unit join, or calls :func:`settle`.
    """
    of, columns = units.of, units.columns
    u = of[i].member
    for j in range(of[u].first, of[u + 1].first):
        if columns[j].place >= 0:
            drop_column(s, units, columns[j].place)
        else:
            shift_held(s, units.now[0].count, j, columns[j].value)
        columns[j].value = 0.0
    of[i].member = of[k - 1].member


@kernel(inner=True)
def join(s, units, ridge, k, u):
    """Let unit u join as the last of k members, itself counted, and fit within the bounds."""
    units.of[k - 1].member = u
    for j in range(units.of[u].first, units.of[u + 1].first):
        free_column(s, units, ridge, j)
    if units.now[0].bounded:
        settle(s, units, ridge, k)


@kernel(inner=True)
def shift_held(s, n, column, by):
    """Take ``by`` off the coefficient of a held column, and change b, c and β as that asks.

    n: Number of free columns, which are in the first places.
    """
    if by == 0.0:
        return
    p = s.c.shape[0]
    add(s.b, s.G[column], by, p)
    add(s.c, s.G[column], by, p)
    for e in range(n):
        change = by * s.V[e, column]
        s.beta[e] += change
        add(s.c, s.G[s.support[e]], -change, p)


@kernel(inner=True)
def settle(s, units, ridge, k):
    """Fit the k members within the bounds: hold columns at a bound, or free them, one by one.

    ``value`` has coefficients within the bounds, and goes towards the fit β of the free columns
    as far as the bounds allow. The column that stops it is held. Where β is within the bounds, the
    held column that gains most is freed. A fit costs a few rounds for each column; their limit ends
    what rounding would let run in a circle.
    """
    of, columns = units.of, units.columns
    for _ in range(4 * s.support.shape[0]):
        n, step, stopped, bound, gain = units.now[0].count, 1.0, -1, 0.0, 0.0
        for a in range(n):
            column, beta = columns[s.support[a]], s.beta[a]
            gain += beta * column.given
            nearest = min(max(beta, column.lower), column.upper)
            if nearest != beta:
                share = max((nearest - column.value) / (beta - column.value), 0.0)
                if share < step or stopped < 0:
                    step, stopped, bound = min(share, 1.0), a, nearest
        for a in range(n):
            column = columns[s.support[a]]
            column.value += step * (s.beta[a] - column.value)
        if stopped >= 0:
            j = s.support[stopped]
            drop_column(s, units, stopped)
            columns[j].value = bound
            shift_held(s, n - 1, j, -bound)
            continue
        most, freed = GAIN_SHARE * abs(gain), -1
        for i in range(k):
            u = of[i].member
            for j in range(of[u].first, of[u + 1].first):
                value, length = columns[j].value, s.d[j]
                slope = s.c[j] - ridge * value
                room = value < columns[j].upper if slope > 0.0 else value > columns[j].lower
                independent = length > DETERMINED_SHARE * (s.G[j, j] + ridge)
                held = columns[j].place < 0
                if held and room and independent and slope * slope > most * length:
                    most, freed = slope * slope / length, j
        if freed < 0:
            return
        shift_held(s, n, freed, columns[freed].value)
        free_column(s, units, ridge, freed)


@kernel(inner=True)
def moved_products(s, units):
    """Whether b differs from Xᵀy, as it does once a column was held at a bound other than 0."""
    moved = False
    for j in range(s.b.shape[0] if units.now[0].bounded else 0):
        moved = moved or s.b[j] != units.columns[j].given
    return moved


@kernel(inner=True)
def held_gain(s, units, ridge, k):
    """What the held columns of the k members add to the gain b_Sᵀβ of the free columns.

    With the residual r the gain of all columns is Σ β_j(x_jᵀy + x_jᵀr − ridge·β_j), which for a
    free column is β_j·x_jᵀy, as x_jᵀr = ridge·β_j at its fit.
    """
    total = 0.0
    for i in range(k):
        u = units.of[i].member
        for j in range(units.of[u].first, units.of[u + 1].first):
            column = units.columns[j]
            if column.place < 0:
                total += column.value * (column.given + s.c[j] - ridge * column.value)
            else:
                total += s.beta[column.place] * (column.given - s.b[j])
    return total


@kernel(inner=True)
def attained_gain(s, units, ridge, k, least):
    """The gain of the support; β is refined where updates have lost its digits.

    With the residual r = b_S − (G_S + ridge·I)β of the normal equations, β attains b_Sᵀβ + βᵀr,
    which is less than the best gain by rᵀAr. Where r is too large, Ar is added to β and c follows;
    where that does not help, A has lost its digits too, and all arrays are computed anew. Without
    bounds only A and β are, of a support whose gain then is at most ``least``: its V, c and d mean
    nothing afterwards, and the caller recomputes them before it goes on.
    """
    G, b, support, A, beta = s.G, s.b, s.support, s.A, s.beta
    c, spare = s.c, s.spare
    n = units.now[0].count
    for number in range(REFINEMENTS + 1):
        gain, worst, scale = 0.0, 0.0, 0.0
        for a in range(n):
            left = b[support[a]] - ridge * beta[a]
            for e in range(n):
                left -= G[support[a], support[e]] * beta[e]
            gain += beta[a] * (b[support[a]] + left)
            worst, scale = max(worst, abs(left)), max(scale, abs(b[support[a]]))
            spare[a] = left
        if worst <= MAX_RESIDUAL_SHARE * scale:
            if number > 0:
                for j in range(c.shape[0]):
                    c[j] = b[j]
                for a in range(n):
                    add(c, G[support[a]], -beta[a], c.shape[0])
            return gain + (held_gain(s, units, ridge, k) if units.now[0].bounded else 0.0)
        for a in range(n):
            beta[a] += dot(A[a], spare, n)
    gain = invert_on(s, ridge, n)
    if units.now[0].bounded or not gain <= least:  # What held columns add is read from c.
        fill_columns(s, ridge, n)
    return gain + (held_gain(s, units, ridge, k) if units.now[0].bounded else 0.0)
