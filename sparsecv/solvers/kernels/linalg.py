"""Small compiled functions that other kernels share: products, bit masks, factors, worths.

A column's *worth* bounds what the column gains a model, for a given slope of the objective. The
dual bound of branch and bound and the search for supports use it under constraints on columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .compiled import kernel

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.uint64]
Record = TypeVar("Record")
EPS = float(np.finfo(np.float64).eps)  # 2⁻⁵²: twice the unit roundoff u of double precision
# The shares that kernels leave to rounding stand here, as kernels import nothing of the package.
# All others stand in ``core/rounding.py``. Objectives tie that differ by at most this share of the
# smaller of the objective f and the gain yᵀy − f. It is the error of a QR factorisation, about
# 1e-12 in tests.
TIE = 1e-12
# A pivot, what elimination leaves of a squared length, has no digits left below this share of that
# squared length, and is replaced by it. So are the squared lengths of principal directions.
LEAST_PIVOT = 1e-12
# The least share of a squared length that enumeration leaves of it, as rounding may leave less than
# 0. Exact shares are larger where elimination proves something. The number is a choice.
LEAST_LEFT = 1e-14
# Two ways of computing a gain agree far more closely than by this share of it. Enumeration divides
# a pair out where the test without a division says that the pair gains at least what is needed less
# this share. An exchange of members has to gain more than this share, as exchanges could else run
# in a circle; and losses that a tree has updated along one path, some 1e-12 off, tie up to this
# share. The number is a choice.
GAIN_SHARE = 1e-10
# A matrix whose factor only gives a direction in which to look, or coefficients at which a bound is
# computed, gets pivots of at least this share of its mean or its largest diagonal entry: a choice.
REGULAR_SHARE = 1e-10
# Newton's steps, which a line search ends, take pivots of at least this share of a diagonal entry.
# A coefficient that a step brings to at most the second share of the step becomes 0, as rounding
# has left none of its digits. Both are choices.
LEAST_NEWTON_PIVOT, TINY_SHARE_OF_A_STEP = 1e-11, 1e-13
# The normal equations (G_S + ridge·I)β = b_S may be off by this share of the largest |b_j| after
# updates of β; where they are off by more, β is refined. A gain errs by the square of that share.
# The equations of a column that is added may be off by this share of its Schur complement.
MAX_RESIDUAL_SHARE = 1e-9
# A column counts as determined by others, so that formulas for exchanges say nothing of it, where
# they leave at most this share of its squared length. It is a choice.
DETERMINED_SHARE = 1e-9
# Where t = γ/2 is below this share of the squared lengths of columns, γ is lost beside them, and
# columns that depend on each other up to rounding explain no more than if they were dependent.
LOST_GAMMA_SHARE = 1e-26
# A share that is divided by t takes t to be at least the first share of the columns' squared
# lengths, and a gain of which a multiple is divided is at least the second share of yᵀy, so that
# quotients stay finite.
LEAST_DIVISOR_SHARE, LEAST_GAIN_SHARE = 1e-60, 1e-16


def mask_words(p: int) -> int:
    """How many 64-bit words a bit mask of p columns takes."""
    return (p + 63) // 64


def from_mask(words: Mask) -> NDArray[np.intp]:
    """The columns whose bits are set in a mask of 64-bit words, increasing."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.intp)


def mask_rows(masks: Mask, width: int) -> NDArray[np.bool_]:
    """Masks (m, words) as rows that mark columns, shape (m, width)."""
    bits = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")
    return np.asarray(bits[:, :width], dtype=bool)


def stacked(sets: Sequence[NDArray[np.intp]], most: int) -> NDArray[np.int64]:
    """Sets of at most ``most`` columns as rows of ``most`` entries, −1 behind the columns."""
    rows = np.full((len(sets), most), -1, dtype=np.int64)
    for row, columns in zip(rows, sets, strict=True):
        row[: columns.size] = columns
    return rows


def placed(holds: NDArray[np.bool_], most: int) -> NDArray[np.int64]:
    """The places that are True in each row of ``holds``, increasing, filled up with −1.

    most: The number of entries of a row of the result; no row of ``holds`` has more True places.
    """
    rows = np.full((holds.shape[0], most), -1)
    rows[np.arange(most) < holds.sum(axis=1)[:, None]] = np.nonzero(holds)[1]
    return rows


def record(dtype: np.dtype[Any], size: int = 1, /, **values: Any) -> Any:
    """An array of records, whose fields are ``array[i].name`` to kernels, and ``array[name]``.

    **values: The fields that are not 0, by name.
    """
    made = np.zeros(size, _of_records(dtype))
    for name, value in values.items():
        made[name] = value
    return made


@cache
def _of_records(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type whose records have ``dtype``'s fields as attributes, without compiling as well."""
    return np.dtype((np.record, dtype))


def allocated(kind: Callable[..., Record], lengths: dict[str, int], /, **given: Any) -> Record:
    """A record of arrays of zeros, and of the fields that are given.

    kind: A NamedTuple whose arrays say their shapes: ``Annotated[Array, "levels p+1"]``.
    lengths: What the names in these shapes stand for.
    """
    for name, dtype, shape in _arrays(kind, **lengths):
        if name not in given:
            given[name] = np.zeros(shape, dtype)
    return kind(**given)


@lru_cache(maxsize=256)
def _arrays(kind: Any, **lengths: int) -> list[tuple[str, Any, tuple[int, ...]]]:
    """Name, type of numbers and shape of every array of a record that says its shape."""
    found = []
    for name, dtype, sums in _shapes(kind):
        shape = (sum(lengths[x] if x in lengths else int(x) for x in terms) for terms in sums)
        found.append((name, dtype, tuple(shape)))
    return found


@cache
def _shapes(kind: Any) -> list[tuple[str, Any, list[list[str]]]]:
    """Name and type of numbers of these arrays, and the terms whose sums are their lengths."""
    found = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            # From numpy 2.5 on NDArray[T] names T itself; before, it names dtype[T] after a shape.
            entries = get_args(hint.__origin__)[-1]
            dtype = np.dtype(next(iter(get_args(entries)), entries))
            found.append((name, dtype, [x.split("+") for x in hint.__metadata__[0].split()]))
    return found


@kernel(inner=True, reorder=True)
def dot(a, b, n):
    """Σ a_i b_i over the first n entries, in any order, so that the loop may be vectorised."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@kernel(inner=True)
def add(target, row, step, n):
    """Add step·row to ``target`` in the first n entries."""
    for i in range(n):
        target[i] += step * row[i]


@kernel(inner=True)
def factor_row(L, a, least):
    """Replace row a of a symmetric matrix by that row of its Cholesky factor L.

    The rows above row a must hold rows of L already, and row a the entries 0..a of the matrix; no
    other entry is read. The diagonal entry becomes √max(pivot, least), the pivot being
    L_aa − Σ_c L_ac² before the root; ``least`` is above 0. Returns the pivot.
    """
    for c in range(a):
        L[a, c] = (L[a, c] - dot(L[a], L[c], c)) / L[c, c]
    pivot = L[a, a] - dot(L[a], L[a], a)
    L[a, a] = np.sqrt(max(pivot, least))
    return pivot


@kernel(inner=True)
def invert_factor(L, n, row):
    """Replace a lower triangular n × n matrix L by its inverse; ``row`` (n,) is work space.

    With L⁻¹ of a Cholesky factor at hand, products replace triangular solves when rows are deleted
    from the data, for each of many problems.
    """
    for a in range(n):
        inverse = 1.0 / L[a, a]
        for c in range(a):
            row[c], L[a, c] = L[a, c], 0.0
        for q in range(a):
            add(L[a], L[q], -row[q] * inverse, q + 1)
        L[a, a] = inverse


@kernel(inner=True)
def has_bit(mask, row, column):
    """Whether bit ``column`` is set in ``mask[row]``, a bit mask of 64-bit words."""
    return (mask[row, column >> 6] >> np.uint64(column & 63)) & np.uint64(1) != 0


@kernel(inner=True)
def later(masks, size, i, a, b):
    """Whether support ``masks[size, i, a]`` comes after ``masks[size, i, b]`` lexicographically.

    Supports are bit masks of 64-bit words. The support that has the first column in which they
    differ comes first. Equal supports give False.
    """
    for w in range(masks.shape[3]):
        first, second = masks[size, i, a, w], masks[size, i, b, w]
        if first != second:
            differ = first ^ second
            lowest = differ & (~differ + np.uint64(1))
            return (second & lowest) != 0
    return False


@kernel(inner=True)
def trailing_inverse(R, k, m, A, beta, level):
    """Write the block k..m−1 of (RᵀR)⁻¹ to ``A[level]``, and β of that block to ``beta[level]``.

    R (m, m + 1) is upper triangular, its last column is the right side. The block of the inverse is
    T⁻¹T⁻ᵀ with the trailing triangle T = R[k:m, k:m].
    """
    u = m - k
    for a in range(u - 1, -1, -1):
        row = A[level, a]
        for c in range(u):
            row[c] = 0.0
        for q in range(a + 1, u):
            after, weight = A[level, q], R[k + a, k + q]
            for c in range(q, u):
                row[c] += weight * after[c]
        for c in range(a + 1, u):
            row[c] = -row[c] / R[k + a, k + a]
        row[a] = 1.0 / R[k + a, k + a]
    # A product of T⁻¹ and the right side would lose the digits of β beside dependent columns.
    for a in range(u - 1, -1, -1):
        total = R[k + a, m]
        for q in range(a + 1, u):
            total -= R[k + a, k + q] * beta[level, q]
        beta[level, a] = total / R[k + a, k + a]
    # Below the diagonal stands T⁻ᵀ, so that every loop runs along memory. The product overwrites
    # row a of T⁻¹, which column a of T⁻ᵀ still has; the rows after it need neither.
    for a in range(u):
        for c in range(a):
            A[level, a, c] = A[level, c, a]
    for a in range(u):
        row = A[level, a]
        row[a] *= row[a]
        for c in range(a + 1, u):
            row[c] = 0.0
        for q in range(a + 1, u):
            after = A[level, q]
            weight = after[a]
            for c in range(a, q + 1):
                row[c] += weight * after[c]
    for a in range(u):
        for c in range(a):
            A[level, a, c] = A[level, c, a]


@kernel(inner=True)
def order_steps(step, u, order, rank):
    """Write 0..u−1 to ``order``, sorted by falling ``step``; equal steps are in increasing order.

    Every step is compared with all, as that takes half the time of a sort of some ten numbers. The
    loops have no sums, so that a processor compares several numbers at once.

    step, shape (≥ u,): The rise of the objective when a free member leaves the support, not NaN.
    rank, int64 (≥ u,): Work space.
    """
    for a in range(u):
        rank[a] = 0
    for b in range(u):
        value = step[b]
        for a in range(u):
            rank[a] += value > step[a]
    total = 0
    for a in range(u):
        total += rank[a]
    if total < u * (u - 1) // 2:  # Some steps are equal.
        for b in range(u):
            for a in range(b + 1, u):
                rank[a] += step[b] == step[a]
    for a in range(u):
        order[rank[a]] = a


@kernel(inner=True)
def member_columns(mask, level, free, u, columns):
    """Write the columns of the support ``mask[level]`` to ``columns``.

    The columns that are not free come first, increasing, and then ``free[level, :u]`` as listed.
    """
    position = 0
    for column in range(64 * mask.shape[1]):
        if not has_bit(mask, level, column):
            continue
        listed = False
        for a in range(u):
            listed = listed or free[level, a] == column
        if not listed:
            columns[position] = column
            position += 1
    for a in range(u):
        columns[position + a] = free[level, a]


@kernel(inner=True)
def least_of_parabola(a, b, c, low, high):
    """The least a + bx + cx² for low ≤ x ≤ high, which are finite."""
    least = min(a + b * low + c * low * low, a + b * high + c * high * high)
    if c > 0.0 and low < -b / (2.0 * c) < high:
        least = min(least, a - b * b / (4.0 * c))
    return least


@kernel(inner=True)
def column_worth(slope, w, low, high):
    """The largest 2·slope·β − wβ² over low ≤ β ≤ high, where low ≤ 0 ≤ high and w > 0.

    This is the convex conjugate of wβ² on [low, high] at 2·slope. Without bounds it is slope²/w.
    """
    beta = min(max(slope / w, low), high)
    return beta * (2.0 * slope - w * beta)


@kernel(inner=True)
def most_worth(slope, off, w, low, high):
    """The largest :func:`column_worth` of slopes from slope − off to slope + off.

    The worth is a convex function of the slope, so that one of the ends has the largest.
    """
    return max(
        column_worth(slope + off, w, low, high),
        column_worth(slope - off, w, low, high),
    )
