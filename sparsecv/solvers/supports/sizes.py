"""The best few supports of every size, which give supports of the sizes next to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import LEAST_PIVOT, TIE, Array, Ints, allocated, column_worth, record
from .members import (
    Swaps,
    Units,
    attained_gain,
    join,
    leave,
    moved_products,
    new_swaps,
    new_units,
    recompute,
    settle,
)
from .swaps import factor_units, swap_from, wide_gain, without

# A support gives a start for the next size only if the start's objective is at most this many times
# the best objective of that size. The number is measured. With 2, objectives of 100 spectral
# columns were no lower, and the search took about 1.6 times as long.
MAX_OBJECTIVE_RATIO = 1.2
# Swaps from one support end after this many exchanges of one member.
MAX_SWAPS = 100

GROWTH = np.dtype(
    [
        ("kept", "i8"),  # how many supports of a size are kept, at most ``width``
        ("size", "i8"),  # number of units of the current support
        ("swaps", "i8"),  # swaps from one support end after so many
        # So many passes over the sizes low + 1 … top are made. Of every ``period`` passes the last
        # one exchanges members; the others extend supports upwards and downwards in turn, upwards
        # first.
        ("low", "i8"),
        ("top", "i8"),
        ("passes", "i8"),
        ("period", "i8"),
        ("step", "i8"),  # sizes that all passes have come to so far, together
    ]
)


@by_reference()
class Sizes(NamedTuple):
    """The best supports of every size, and the arrays of one support, the current support.

    Supports are lists of units. ``most`` is the largest size, ``width`` the number of supports that
    are kept of every size. In arrays that end in 2, entry 0 is for the next larger size and entry 1
    for the next smaller size, and gains are those before any swap.
    """

    now: Any  # (1,) of GROWTH
    supports: Ints  # (most + 1, width, most) by size and rank, ended by −1
    gains: Annotated[Array, "most+1 width"]  # gains of the supports, −∞ where there is none
    next_gain: Annotated[Array, "most+1 width 2"]  # with the next unit added, or removed
    next_unit: Annotated[Ints, "most+1 width 2"]  # the unit to add, and to remove
    unused: Annotated[NDArray[np.int8], "most+1 width 2"]  # 1 until the support has given the next
    # size's
    goal: Annotated[Ints, "most+1"]  # a support that the current support is to become
    mark: Annotated[NDArray[np.int8], "m"]  # marks of units, all 0 between two calls
    units: Units  # all units, and those of the current support
    current: Swaps  # the current support with its arrays


def new_sizes(current: Swaps, units: Units, most: int, width: int) -> Sizes:
    """Allocate room for ``width`` supports of every size up to ``most``, without any support."""
    return allocated(
        Sizes,
        {"m": units.of.size - 1, "most": most, "width": width},
        now=record(GROWTH, kept=1),
        supports=np.full((most + 1, width, most), -1, dtype=np.int64),
        gains=np.full((most + 1, width), -np.inf),
        units=units,
        current=current,
    )


def after_swaps(
    G: Array,
    b: Array,
    ridge: float,
    starts: Sequence[NDArray[np.intp]],
    included: NDArray[np.bool_] | bool = False,
) -> NDArray[np.intp]:
    """The best support, increasing, after single swaps from each start.

    Swaps end where none helps, or after twice as many as ``MAX_SWAPS``, which other searches take.

    G, b: XᵀX (p, p) and Xᵀy (p,). ridge: γ/2.
    starts: Supports of one size. included: (p,), columns that stay in a support.
    """
    size, units = starts[0].size, new_units(np.arange(b.size + 1), included)
    known = new_sizes(new_swaps(G, b, size), units, size, 1)
    for start in starts:
        known.goal[:size] = start
        enter_goal(known, ridge, size, 2 * MAX_SWAPS)
    return np.sort(known.supports[size, 0]).astype(np.intp)


@kernel(inner=True)
def move_to(s, ridge, k):
    """Make ``goal[:k]`` the current support, by few updates or anew; returns the support's gain.

    On entry ``now.size`` is the number of units of the current support, 0 where its arrays are not
    to be used, and ``mark`` is 0, as it is afterwards. All arrays of ``current`` are written.
    """
    n, current, units, mark, goal = s.now[0].size, s.current, s.units, s.mark, s.goal
    columns = 0
    for a in range(k):
        mark[goal[a]] = 1
        columns += units.of[goal[a] + 1].first - units.of[goal[a]].first
    updates = columns
    for a in range(n):
        u = units.of[a].member
        updates += (1 - 2 * mark[u]) * (units.of[u + 1].first - units.of[u].first)
    s.now[0].size = k
    # More updates cost more than to compute all anew. A column that is held at a bound other than 0
    # changes b. Rounding errors of b would stay, because ``attained_gain`` corrects β and c alone;
    # so all is computed anew where b is not as it was given.
    if n == 0 or 2.5 * updates > columns or moved_products(current, units):
        for a in range(k):
            mark[goal[a]], units.of[a].member = 0, goal[a]
        return recompute(current, units, ridge, k)
    for a in range(n - 1, -1, -1):
        u = units.of[a].member
        if mark[u] == 0:
            leave(current, units, n, a)
            n -= 1
        mark[u] = 0
    if n == k and units.now[0].bounded:
        settle(current, units, ridge, k)  # A unit that joins would do so.
    for a in range(k):
        if mark[goal[a]] == 1:
            mark[goal[a]] = 0
            n += 1
            join(current, units, ridge, n, goal[a])
    return attained_gain(current, units, ridge, k, -np.inf)


@kernel(inner=True)
def most_helpful(s, ridge, k):
    """The allowed unit that raises the current support's gain most, and by how much; −1: none.

    A column j alone adds c_j²/d_j, less within bounds: c and d are its product with the residual
    and its squared length, ridge included, with the support's columns projected out. Within bounds
    the gain is what the unit promises while the other coefficients stay where they are. On entry
    ``current`` is that of the k members, and ``mark`` is 0, as it is afterwards. Where units have
    several columns ``units.left`` and ``units.factor`` are written.

    ridge: γ/2. k: Units of the current support.
    """
    current, units = s.current, s.units  # ``units.of`` is by unit, but ``member`` and ``wide``.
    for a in range(k):
        s.mark[units.of[a].member] = 1
    if units.now[0].n_wide > 0:
        factor_units(current, units, ridge, k)
    best, which, c, bounded = 0.0, -1, current.c, units.now[0].bounded
    for j in range(c.shape[0]):
        square = max(current.d[j], LEAST_PIVOT * (current.G[j, j] + ridge))
        score = c[j] * c[j] / square
        if which >= 0 and score <= best:  # as most columns are; bounds only lower what one gains
            continue
        u = units.columns[j].unit
        alone = units.of[u + 1].first - units.of[u].first == 1
        if s.mark[u] == 1 or units.of[u].allowed != 1 or not alone:
            continue
        if bounded and square > 0.0:
            score = column_worth(c[j], square, units.columns[j].lower, units.columns[j].upper)
        if which < 0 or score > best:
            best, which = max(0.0, score), u
    for a in range(units.now[0].n_wide):
        u = units.of[a].wide
        if s.mark[u] == 0 and units.of[u].allowed == 1:
            score = wide_gain(current, units, ridge, c, 0, u, best)
            if which < 0 or score > best:
                best, which = max(0.0, score), u
    for a in range(k):
        s.mark[units.of[a].member] = 0
    return which, best


@kernel(inner=True)
def least_helpful(s, ridge, k):
    """The unit that lowers the current support's gain least, and by how much.

    The result is −1 and ∞ where every one of the k members is kept. ``current`` stays as it is.
    """
    current, units, least, which = s.current, s.units, np.inf, -1
    for i in range(k):
        u = units.of[i].member
        a = units.columns[units.of[u].first].place
        if units.of[u].kept == 1:
            continue
        if units.of[u + 1].first - units.of[u].first == 1 and a >= 0:
            loss = current.beta[a] * current.beta[a] / max(current.A[a, a], 1e-300)
        else:
            loss, _ = without(current, units, ridge, u)
        if loss < least:
            least, which = loss, u
    return which, least


@kernel(inner=True)
def improve_and_keep(s, ridge, k, gain, most):
    """Improve the current support by at most ``most`` swaps, and keep a result among the best.

    It is not kept where as many better ones are, or where a gain within the share ``TIE`` of its
    own is there already: most such supports are the same. With a support that is kept the units
    that it gives the sizes next to it are written, too.

    gain: That of the current support, which has k units.
    """
    gains, width = s.gains, s.now[0].kept
    gain = swap_from(s.current, s.units, ridge, k, most, gain)
    gain = gain if gain >= 0.0 else 0.0  # NaN becomes 0 as well
    rank = width
    while rank > 0 and not gains[k, rank - 1] * (1.0 + TIE) >= gain:
        rank -= 1
    if rank == width or (rank > 0 and gain >= gains[k, rank - 1] * (1.0 - TIE)):
        return
    for r in range(width - 1, rank, -1):
        gains[k, r] = gains[k, r - 1]
        for e in range(2):
            s.next_gain[k, r, e] = s.next_gain[k, r - 1, e]
            s.next_unit[k, r, e] = s.next_unit[k, r - 1, e]
            s.unused[k, r, e] = s.unused[k, r - 1, e]
        for a in range(k):
            s.supports[k, r, a] = s.supports[k, r - 1, a]
    gains[k, rank] = gain
    for a in range(k):
        s.supports[k, rank, a] = s.units.of[a].member
    s.next_unit[k, rank, 0], more = most_helpful(s, ridge, k)
    s.next_unit[k, rank, 1], less = least_helpful(s, ridge, k)
    s.next_gain[k, rank, 0], s.next_gain[k, rank, 1] = gain + more, gain - less
    s.unused[k, rank, 0] = k + 1 < gains.shape[0] and s.next_unit[k, rank, 0] >= 0
    s.unused[k, rank, 1] = k > 1 and s.next_unit[k, rank, 1] >= 0


@kernel(inner=True)
def promising(s, yy, k, gain):
    """Whether a support of size k with this gain is new, and its objective near enough the best.

    It is new if no kept gain is within the share ``TIE`` of its own. Its objective, ``yy`` less the
    gain, may be up to ``MAX_OBJECTIVE_RATIO`` times the least of the size.
    """
    if s.gains[k, 0] == -np.inf:
        return True
    for rank in range(s.now[0].kept):
        if abs(gain - s.gains[k, rank]) <= TIE * gain:
            return False
    return yy - gain <= MAX_OBJECTIVE_RATIO * (yy - s.gains[k, 0])


@kernel(inner=True)
def extend(s, ridge, yy, k, way):
    """Make supports of k units from those of the size before.

    Each support whose ``unused`` is 1 gives one support, unless that is not worth its swaps (see
    :func:`promising`), and is then used.

    way: 1 to add the unit that raises a support's gain most; −1 to remove the unit whose
        removal lowers the gain least.
    """
    to, before = (1 - way) // 2, k - way  # 0 for the next larger size, 1 for the next smaller one
    for rank in range(s.now[0].kept):
        if s.unused[before, rank, to] == 0:
            continue
        s.unused[before, rank, to] = 0
        if promising(s, yy, k, s.next_gain[before, rank, to]):
            m, unit = 0, s.next_unit[before, rank, to]
            for a in range(before):
                if s.supports[before, rank, a] != unit:
                    s.goal[m] = s.supports[before, rank, a]
                    m += 1
            if way > 0:
                s.goal[m] = unit
            improve_and_keep(s, ridge, k, move_to(s, ridge, k), s.now[0].swaps)


@kernel(inner=True)
def may_leave(units, a):
    """Whether member a, counted from 0, may leave, and come back later."""
    u = units.of[a].member
    return units.of[u].allowed == 1 and units.of[u].kept == 0


@kernel(inner=True)
def exchange(s, ridge, yy, k, number):
    """Exchange members of a support of k units, if its objective is above the mean of both sizes'.

    The members that leave may not come back until swaps of the other columns have ended. ``goal``
    is work space: it takes the support, and then the members that have left.

    yy: yᵀy, or infinity where members are exchanged whatever the objective. Otherwise the sizes
        next to k have supports as well.
    number: Decides which members of which support leave, and how many. On entry size k has a
        support.
    """
    current, units, width = s.current, s.units, s.now[0].kept
    if yy < np.inf:
        middle = yy - 0.5 * (s.gains[k - 1, 0] + s.gains[k + 1, 0])
        if not yy - s.gains[k, 0] > 1.001 * middle:
            return
    rank = number % (width + 1) - 1  # every other exchange or so is of the best support
    if rank < 0 or s.gains[k, rank] == -np.inf:
        rank = 0
    for a in range(k):
        s.goal[a] = s.supports[k, rank, a]
    move_to(s, ridge, k)
    outside, inside, seed = -k, 0, number
    for u in range(s.mark.shape[0]):
        outside += units.of[u].allowed
    for a in range(k):
        inside += may_leave(units, a)
    # Of the units outside at least one is left to join for every member that leaves.
    leaving = min(1 + number % max(1, k // 2), outside, inside)
    for e in range(leaving):
        for _ in range(3):  # numbers that look random, by a linear congruence
            seed = (seed * 1103515245 + 12345) % 2147483648
        a = (seed // 1024) % k
        while not may_leave(units, a):
            a = (a + 1) % k
        s.goal[e] = units.of[a].member
        units.of[s.goal[e]].allowed = 0
        leave(current, units, k, a)
        which, _ = most_helpful(s, ridge, k - 1)
        join(current, units, ridge, k, which)
    gain = attained_gain(current, units, ridge, k, -np.inf)
    gain = swap_from(current, units, ridge, k, MAX_SWAPS, gain)
    for e in range(leaving):
        units.of[s.goal[e]].allowed = 1
    improve_and_keep(s, ridge, k, gain, MAX_SWAPS)


@kernel
def enter_goal(s, ridge, k, most):
    """Keep the support ``s.goal[:k]`` among the best of its size, after at most ``most`` swaps."""
    improve_and_keep(s, ridge, k, move_to(s, ridge, k), most)


@kernel
def grow(s, ridge, yy, steps):
    """Go on with the passes over the sizes.

    A pass goes over the sizes ``low`` + 1 to ``top`` of ``s.now``. It extends the supports of each
    size by a unit, or takes a unit from them, or exchanges members of them. ``s`` takes what is
    found.

    yy: yᵀy, with which a pass exchanges members of a size whose objective is large beside those of
        its neighbours. Infinity stands for exchanges of every size.
    steps: The kernel returns after so many sizes of passes.
    Returns: Whether all passes have ended.
    """
    now = s.now[0]
    sizes, period = now.top - now.low, now.period
    last = sizes * now.passes
    for _ in range(min(steps, last - now.step)):
        number, place = now.step // sizes + 1, now.step % sizes
        now.step += 1
        k = now.low + 1 + place
        if number % period == 0:
            if yy == np.inf or (1 < k < now.top):
                exchange(s, ridge, yy, k, number // period - 1)
        elif number % period % 2 == 1:
            extend(s, ridge, yy, k, 1)
        elif place > 0:  # No pass down changes the largest size.
            extend(s, ridge, yy, now.top - place, -1)
    return now.step >= last
