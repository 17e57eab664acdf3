"""Local search by exchanges of one unit of a support, on Gram matrices G and b = Xᵀy.

A unit is a group of columns that join and leave a support together, by default a single column. For
a support S of n columns the search stores A = (G_S + ridge·I)⁻¹, β = A b_S and, for all p
columns, V = A G_{S,·}, c = b − G_{·,S}β and d = diag(G) + ridge − colsum(G_{S,·} ∘ V), the Schur
complements. The gain of a single swap of single columns then follows in O(1); units of several
columns take the Schur complement of their block. Adding or removing a column updates the arrays in
O(np); computing them anew takes O(n²p). The gain of a support is yᵀy less its objective.

With bounds on coefficients S holds the free columns of the units, whose coefficients are between
their bounds. The other columns of the units are held at a bound, and b is Xᵀ of what they leave of
y. The gain that a swap promises is then a guess, as it passes over the bounds of other columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints, add, allocated, column_worth, dot, factor_row, record

# The normal equations (G_S + ridge·I)β = b_S may be off by this share of the largest |b_j| after
# updates of β; where they are off by more, β is refined. A gain errs by the square of that share.
# The equations of a column that is added may be off by this share of its Schur complement.
MAX_RESIDUAL_SHARE = 1e-9
# A β that is off after this many refinements by A, each of which costs n², belongs to an A that has
# lost its digits: all arrays are then computed anew, which costs n²p. The number was chosen by
# timing nearly dependent columns.
REFINEMENTS = 2
# Within bounds swaps from one support end after this many swaps in a row that did not keep what
# they promised. The number is a choice.
MAX_BROKEN_PROMISES = 4


@by_reference()
class Swaps(NamedTuple):
    """Gram matrices, a support, and the arrays of the support that the module's docstring names.

    Columns of the support are in the first n of ``capacity`` places.
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
        ("allowed", "i8"),  # 1 for a unit that may join, else 0; −1 where it has joined in vain
        ("kept", "i8"),  # 1 for a unit that never leaves
        ("member", "i8"),  # the first k are the units of the support
        ("wide", "i8"),  # the first ``n_wide`` are the units of several columns
    ]
)
COLUMN = np.dtype(
    [
        ("unit", "i8"),
        ("place", "i8"),  # that in the support, −1 for a column that is not free or not in it
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
    left: Annotated[Array, "p widest"]  # Schur complements of the units of several columns
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
    """Allocate the arrays for units that may all join; the arguments as in ``UNIT``, ``COLUMN``."""
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
    """Allocate the arrays for supports of up to ``capacity`` columns."""
    G, b = np.ascontiguousarray(G), np.ascontiguousarray(b)
    return allocated(Swaps, {"p": b.size, "capacity": capacity}, G=G, b=b)


def swapped(
    G: Array,
    b: Array,
    ridge: float,
    starts: Sequence[NDArray[np.intp]],
    kept: NDArray[np.bool_] | bool = False,
) -> list[NDArray[np.intp]]:
    """Supports after single swaps until no swap helps, or 200 swaps; each increasing.

    G, b: XᵀX (p, p) and Xᵀy (p,). ridge: γ/2.
    starts: Supports of one size. kept: (p,), columns that stay in a support.
    """
    size, units, found = starts[0].size, new_units(np.arange(b.size + 1), kept), []
    s = new_swaps(G, b, size)
    for start in starts:
        units.of["member"][:size] = start
        swap_search(s, units, ridge, size, 200)
        found.append(np.sort(s.support).astype(np.intp))
    return found


@kernel(inner=True)
def invert_on(s, ridge, n):
    """Compute A and β of the support's n columns by Gauss–Jordan elimination; returns b_Sᵀβ."""
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
    """Compute V, c and d of the support's n columns from A and β."""
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
        add_columns(row, G, support, A[a], 1.0, n)
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
    """Move the member in place n to the empty ``place``."""
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
    """Make all columns of the k members the support, none held; only their places are written.

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
    """Compute all arrays of the k members anew; returns the support's gain."""
    n = load_members(s, units, k)
    gain = invert_on(s, ridge, n)
    fill_columns(s, ridge, n)
    if units.now[0].bounded:
        settle(s, units, ridge, k)
        gain = attained_gain(s, units, ridge, k, -np.inf)
    return gain


@kernel(inner=True)
def free_column(s, units, ridge, column):
    """Put a column that is in no place into the place after the last one."""
    n = units.now[0].count
    add_member(s, ridge, n + 1, n, column)
    units.columns[column].place, units.now[0].count = n, n + 1


@kernel(inner=True)
def drop_column(s, units, place):
    """Remove the column in a place, which the last column takes."""
    n = units.now[0].count - 1
    remove_member(s, n + 1, place)
    units.columns[s.support[place]].place = -1
    if place < n:
        move_last_member(s, n, place)
        units.columns[s.support[place]].place = place
    units.now[0].count = n


@kernel(inner=True)
def leave(s, units, k, i):
    """Let the i-th of k members leave; the last member takes its number."""
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
    """Let a unit join as the last of k members, and fit within the bounds."""
    units.of[k - 1].member = u
    for j in range(units.of[u].first, units.of[u + 1].first):
        free_column(s, units, ridge, j)
    if units.now[0].bounded:
        settle(s, units, ridge, k)


@kernel(inner=True)
def shift_held(s, n, column, by):
    """Take ``by`` off the coefficient of a held column, and change b, c and β as follows."""
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
        most, freed = 1e-10 * abs(gain), -1
        for i in range(k):
            u = of[i].member
            for j in range(of[u].first, of[u + 1].first):
                value, length = columns[j].value, s.d[j]
                slope = s.c[j] - ridge * value
                room = value < columns[j].upper if slope > 0.0 else value > columns[j].lower
                independent = length > 1e-9 * (s.G[j, j] + ridge)
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
    """What the held columns of the k members add to the gain b_Sᵀβ of the free columns."""
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
    where that does not help, A has lost its digits too, and all arrays are computed anew. Of a
    support whose gain then is at most ``least`` only A and β are.
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
    if not gain <= least:
        fill_columns(s, ridge, n)
    return gain + (held_gain(s, units, ridge, k) if units.now[0].bounded else 0.0)


@kernel(inner=True)
def is_member(units, u, k):
    """Whether a unit is one of the k members."""
    found = False
    for i in range(k):
        found = found or units.of[i].member == u
    return found


@kernel(inner=True)
def factor_units(s, units, ridge, k):
    """Write the Schur complements of units of several columns, and their Cholesky factors.

    The first entry of those that may not join the k members is infinite.
    """
    for a in range(units.now[0].n_wide):
        u = units.of[a].wide
        begin, end = units.of[u].first, units.of[u + 1].first
        if units.of[u].allowed != 1 or is_member(units, u, k):
            units.left[begin, 0] = np.inf
            continue
        for i in range(begin, end):
            for e in range(i - begin + 1):
                j = begin + e
                total = s.G[i, j] + (ridge if i == j else 0.0)
                for q in range(units.now[0].count):
                    total -= s.V[q, i] * s.G[s.support[q], j]
                units.left[i, e] = units.factor[i, e] = total
            factor_row(units.factor[begin:end], i - begin, 1e-12 * (s.G[i, i] + ridge) + 1e-300)


@kernel(inner=True)
def explained(L, slope, n):
    """|L⁻¹·slope|² of a lower triangular L; ``slope`` (n,) becomes L⁻¹·slope."""
    total = 0.0
    for a in range(n):
        slope[a] = (slope[a] - dot(L[a], slope, a)) / L[a, a]
        total += slope[a] * slope[a]
    return total


@kernel(inner=True)
def without(s, units, ridge, u):
    """Write c and ``lengths`` as they are once a member has left to ``units.c`` and ``units.d``.

    Without the column in place m, c_j is c_j + V_mj β_m/A_mm and d_j is d_j + V_mj²/A_mm. Of a unit
    of several columns ``units.rows`` get the rows of V of the free columns, each with the columns
    before it removed. Leaving adds to a Schur complement the products of each row's entries times
    ``inverse``.
    Returns: The loss of gain, and the number of these rows.
    """
    p, number, loss, columns = s.c.shape[0], 0, 0.0, units.columns
    first, last, rows = units.of[u].first, units.of[u + 1].first, units.rows
    inverse, coef, c, d = units.inverse, units.slope, units.c, units.d
    V, old_c, lengths, block = s.V, s.c, units.lengths, units.block
    G, A, beta, support = s.G, s.A, s.beta, s.support
    m = columns[first].place
    if last - first == 1 and m >= 0:
        more = 1.0 / max(A[m, m], 1e-300)
        inverse[0], ratio = more, beta[m] * more
        for j in range(p):
            v = V[m, j]
            c[j] = old_c[j] + v * ratio
            d[j] = lengths[j] + v * v * more
        for j in range(p if units.now[0].n_wide > 0 else 0):
            rows[0, j] = V[m, j]
        return beta[m] * ratio, 1
    for j in range(p):
        c[j], d[j] = old_c[j], lengths[j]
    for i in range(first, last):
        value = columns[i].value
        if columns[i].place < 0 and value != 0.0:  # held at a bound other than 0
            loss += value * (2.0 * (c[i] - ridge * value) + s.d[i] * value)
            add(c, G[i], value, p)
            for e in range(units.now[0].count):
                add(c, G[support[e]], -value * V[e, i], p)
    for i in range(first, last):
        m = columns[i].place
        if m < 0:
            continue
        coef[number] = beta[m]
        for j in range(p):
            rows[number, j] = V[m, j]
        filled = 0
        for j in range(first, last):
            if columns[j].place >= 0:
                block[number, filled] = A[m, columns[j].place]
                filled += 1
            else:
                coef[number] += columns[j].value * V[m, j]
        number += 1
    for a in range(number):
        more = 1.0 / max(block[a, a], 1e-300)
        own, ratio, inverse[a] = coef[a], coef[a] * more, more
        loss += own * ratio
        add(c, rows[a], ratio, p)
        for j in range(p):
            v = rows[a, j]
            d[j] += v * v * more
        for e in range(a + 1, number):
            weight = block[e, a] * more
            coef[e] -= weight * own
            add(rows[e], rows[a], -weight, p)
            for q in range(a + 1, number):
                block[e, q] -= weight * block[a, q]
    return loss, number


@kernel(inner=True)
def wide_gain(s, units, ridge, c, number, u, enough):
    """The gain of a unit of several columns that joins, or any number from it up to ``enough``.

    Within bounds it is what the columns promise one by one.

    c: That of all columns. number: So many of ``units.rows`` belong to the member that has left.
    """
    begin, slope, block = units.of[u].first, units.slope, units.block
    size, gain = units.of[u + 1].first - begin, 0.0
    rows, inverse, remaining = units.rows, units.inverse, units.left
    if units.now[0].bounded:
        for j in range(begin, begin + size):
            length = remaining[j, j - begin]
            for r in range(number):
                v = rows[r, j]
                length += v * v * inverse[r]
            length = max(length, 1e-12 * (s.G[j, j] + ridge) + 1e-300)
            gain += column_worth(c[j], length, units.columns[j].lower, units.columns[j].upper)
        return gain
    for a in range(size):
        slope[a] = c[begin + a]
    gain = explained(units.factor[begin : begin + size], slope, size)
    if number == 0 or gain <= enough:
        return gain
    for a in range(size):
        slope[a] = c[begin + a]
        for e in range(a + 1):
            total = remaining[begin + a, e]
            for r in range(number):
                total += rows[r, begin + a] * rows[r, begin + e] * inverse[r]
            block[a, e] = total
        factor_row(block, a, 1e-12 * block[a, a] + 1e-300)
    return explained(block, slope, size)


@kernel(inner=True)
def without_for_wide(s, units, m):
    """Write what :func:`without` does for the columns of units of several columns alone.

    m: The place of the member that leaves, which is a unit of one column.
    """
    of, row, inverse = units.of, units.rows[0], 1.0 / max(s.A[m, m], 1e-300)
    units.inverse[0] = inverse
    for e in range(units.now[0].n_wide):
        for j in range(of[of[e].wide].first, of[of[e].wide + 1].first):
            row[j] = s.V[m, j]
            units.c[j] = s.c[j] + row[j] * (s.beta[m] * inverse)


@kernel(inner=True)
def best_swap(s, units, ridge, k, least):
    """The swap that gains most: the number of the member to remove, and the unit to add.

    Returns (−1, −1) where no swap gains more than ``least``.
    """
    best, leaving, entering, n_wide = least, -1, -1, units.now[0].n_wide
    of, columns, lengths, c, d = units.of, units.columns, units.lengths, units.c, units.d
    old_c, old_d, V = s.c, s.d, s.V
    for j in range(c.shape[0]):
        lengths[j] = old_d[j]
    for e in range(k + n_wide):  # an infinite length keeps a column from joining alone
        u = of[e].member if e < k else of[e - k].wide
        for j in range(of[u].first, of[u + 1].first):
            lengths[j] = np.inf
    if n_wide > 0:
        factor_units(s, units, ridge, k)
    for i in range(k):
        u = of[i].member
        m, alone = columns[of[u].first].place, of[u + 1].first - of[u].first == 1
        if of[u].kept == 1:
            continue
        better = 1
        if alone and m >= 0:
            inverse = 1.0 / s.A[m, m]
            ratio = s.beta[m] * inverse
            cost, number = s.beta[m] * ratio, 1
            better = 0  # mostly no column is better, which a loop without branches finds faster
            for j in range(c.shape[0]):
                v = V[m, j]
                left = old_c[j] + v * ratio
                length = lengths[j] + v * v * inverse
                better += left * left > (best + cost) * length
        if better > 0:
            cost, number = without(s, units, ridge, u)
        elif n_wide > 0:
            without_for_wide(s, units, m)
        for j in range(c.shape[0] if better > 0 else 0):
            left, length = c[j], d[j]
            allowed = of[columns[j].unit].allowed == 1
            if left * left > (best + cost) * length and allowed and 0.0 < length < np.inf:
                gain = left * left / length
                if units.now[0].bounded:
                    gain = column_worth(left, length, columns[j].lower, columns[j].upper)
                if gain - cost > best:
                    best, leaving, entering = gain - cost, i, columns[j].unit
        for e in range(n_wide):
            if units.left[of[of[e].wide].first, 0] < np.inf:
                gain = wide_gain(s, units, ridge, c, number, of[e].wide, best + cost)
                if gain - cost > best:
                    best, leaving, entering = gain - cost, i, of[e].wide
    return leaving, entering


@kernel(inner=True)
def swap_from(s, units, ridge, k, most, gain):
    """:func:`swap_search` from a support whose arrays are computed and whose gain is given."""
    of, broken = units.of, 0
    for _ in range(most):
        i, u = best_swap(s, units, ridge, k, 1e-10 * abs(gain))
        if i < 0:
            break
        before = of[i].member
        leave(s, units, k, i)
        join(s, units, ridge, k, u)
        new = attained_gain(s, units, ridge, k, gain)
        if new > gain:
            gain = new
            continue
        # Rounding, or bounds on other columns, made the swap look better.
        of[k - 1].member, of[u].allowed, broken = before, -1, broken + 1
        gain = recompute(s, units, ridge, k)
        if not units.now[0].bounded or broken == MAX_BROKEN_PROMISES:
            break
    for u in range(of.shape[0] if broken > 0 else 0):
        of[u].allowed = abs(of[u].allowed)
    return gain


@kernel
def swap_search(s, units, ridge, k, most):
    """Make the best swap of one of the k members, over and over; returns the gain.

    most: The search ends after this many swaps, or where no swap gains more than 1e-10 of the gain.
    """
    if most == 0 and not units.now[0].bounded:
        return invert_on(s, ridge, load_members(s, units, k))
    return swap_from(s, units, ridge, k, most, recompute(s, units, ridge, k))
