"""Local search by exchanges of one unit of a support, on the arrays of ``members``.

The gain of a single swap of single columns follows from the arrays in O(1); units of several
columns take the Schur complement of their block. The docstring of ``members`` defines A, V, β, c
and d of a support, and its gain. Within bounds on coefficients the gain that a swap promises is a
guess, as it passes over the bounds of other columns.
"""

from __future__ import annotations

import numpy as np

from ..kernels.compiled import kernel
from ..kernels.linalg import GAIN_SHARE, LEAST_PIVOT, add, column_worth, dot, factor_row
from .members import attained_gain, invert_on, join, leave, load_members, recompute

# Within bounds swaps from one support end after this many swaps in all that promised a gain and did
# not raise it. The number is a choice.
MAX_BROKEN_PROMISES = 4


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

    The complement is G + ridge·I on the unit's columns with the support's columns projected out.
    On entry the arrays of ``s`` belong to the k members. ``units.left`` gets the complements, and
    ``units.factor`` the factors; the first complement of a unit that may not join is infinite.
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
            factor_row(
                units.factor[begin:end], i - begin, LEAST_PIVOT * (s.G[i, i] + ridge) + 1e-300
            )


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
    """Write to ``units.c`` and ``units.d`` what c and ``lengths`` become when unit u leaves.

    A coefficient of the unit that is held at a bound other than 0 becomes 0 first. Without the
    column in place m, c_j is c_j + V_mj β_m/A_mm and d_j is d_j + V_mj²/A_mm. ``units.rows`` get
    the rows of V of the unit's free columns, each with the columns before it removed. Leaving adds
    to a Schur complement the products of each row's entries times ``inverse``, one over the row's
    pivot. On entry ``units.lengths`` has d, or ∞ where a column may not join alone; a caller that
    reads the loss only need not fill it.

    Returns: The loss of gain, and the number of these rows.
    """
    p, number, loss, columns = s.c.shape[0], 0, 0.0, units.columns
    first, last, rows = units.of[u].first, units.of[u + 1].first, units.rows
    inverse, coef, c, d = units.inverse, units.slope, units.c, units.d
    V, old_c, lengths, block = s.V, s.c, units.lengths, units.block
    G, A, beta, support = s.G, s.A, s.beta, s.support
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
    """The gain of a unit of several columns that joins a support that a member has left.

    With the Schur complement from before the member left the gain comes out at least as large.
    Where that is at most ``enough``, which is too little for a swap, it is returned in place of the
    gain. Within bounds the gain is what the columns promise one by one.

    c, shape (p,): Products of the columns with the residual once the member has left.
    number: So many of ``units.rows`` belong to the member that has left.
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
            length = max(length, LEAST_PIVOT * (s.G[j, j] + ridge) + 1e-300)
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
        factor_row(block, a, LEAST_PIVOT * block[a, a] + 1e-300)
    return explained(block, slope, size)


@kernel(inner=True)
def best_swap(s, units, ridge, k, least):
    """The swap that gains most: the number of the member to remove, and the unit to add.

    On entry the arrays of ``s`` belong to the k members; they stay as they are. Of ``units`` the
    kernel writes ``lengths`` and, where it looks at a member in full (:func:`without`), ``c``,
    ``d``, ``rows``, ``inverse``, ``slope`` and ``block``. Where units have several columns, it
    writes ``left`` and ``factor``, too.
    Returns: (−1, −1) where no swap gains more than ``least``.
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
        if better > 0 or n_wide > 0:
            cost, number = without(s, units, ridge, u)
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
    """:func:`swap_search` from a support whose arrays are computed and whose gain is given.

    At the end the arrays belong to the members that were found, whose gain is returned.
    """
    of, broken = units.of, 0
    for _ in range(most):
        i, u = best_swap(s, units, ridge, k, GAIN_SHARE * abs(gain))
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


@kernel(inner=True)
def swap_search(s, units, ridge, k, most):
    """Make the best swap of one of the k members, over and over.

    On entry the first k of ``units.of`` name the members. All arrays of ``s`` and ``units`` are
    written; the members are then those of the support that was found. With ``most`` = 0 and no
    bounds only places, A and β are written, and V, c and d stay as they were.

    most: The search ends after this many swaps, and where no swap promises more than 1e-10 of the
        gain. A swap that then does not raise the gain is undone. Without bounds it ends the search,
        and within bounds ``MAX_BROKEN_PROMISES`` of them do.
    Returns: The gain of the support.
    """
    if most == 0 and not units.now[0].bounded:
        return invert_on(s, ridge, load_members(s, units, k))
    return swap_from(s, units, ridge, k, most, recompute(s, units, ridge, k))
