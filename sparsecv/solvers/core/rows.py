"""The table [X y] of a problem: its rows or a factor of them, and what only the table decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..kernels.linalg import EPS, stacked
from .threads import cached

Array = NDArray[np.float64]
Index = NDArray[np.intp]
# A table of [X y] with more rows per column of X than this is held as the triangle of its QR
# factorisation; for shorter tables the triangle costs more than it saves (measured).
MAX_ROWS_PER_COLUMN = 4
# Columns of the largest tree of all sizes, counted without columns of zeros. Such a tree keeps a
# matrix for each column, 38 MB at this limit, which is a choice. Up to so many columns the choice
# of a search needs the triangle of a table (``plan.loses_digits``). A search of more columns needs
# little more than XᵀX. This product takes a fifth of the time of the triangle (measured), so that a
# longer table that a single problem has is held as it is.
MAX_COLUMNS = 168
# Searches replace γ if √(γ/2) is below this share of the longest column's length: QR factorisation
# loses 1e-15 of the length, so that three digits of the share are left.
ZERO_SHARE = 1e-12
# Bounds square products of a column and y, and divide them by γ/2. Searches take γ/2 of at least
# ZERO_SHARE² times the longest squared length. With products from this number on, what underflows
# is below 1e-19 of yᵀy, a thousandth of what rounding is allowed.
LEAST_PRODUCT = 1e-140
# Squares of products up to this number are finite.
MOST_PRODUCT = 1e150
# At γ = 0 a column that, with the other columns of a support projected out, keeps at most this
# share of its length counts as dependent on the other columns: 64-bit numbers keep a column's
# digits to 1e-16 of its length, centring a column far from 0 loses two digits, and factorisations
# lose one or two more. Fits of least norm drop singular values below this share of the largest,
# which decides the rank of every support that is fitted. The value is a choice.
DEPENDENT_SHARE = 1e-12
# An objective up to this share of yᵀy leaves nothing to prove: rounding alone keeps it from 0.
NOTHING_LEFT_OF_YY = (64.0 * EPS) ** 2
# With γ > 0 no column depends on others. A fit whose columns at length 1 have a singular value
# below this share of the largest has lost its digits, and counts as one of dependent columns.
# Columns of a group that are left out when the group is turned, and slopes, are 0 up to this share.
LOST_SHARE = 1e-13
# Entries of null vectors of columns of length 1 count as 0 where they are only rounding, and are at
# most this number, or 64 rounding units over the least singular value that counts, where that is
# more. Both are choices: a fit within bounds may move by this share of its terms.
ZERO_IN_COMBINATION = 1e-10
# A slope of the loss up to this share of what its products sum to counts as 0 where dependent
# columns have bounds. Rounding leaves some 1e-14 of it; the value is a choice.
FLAT_SLOPE = 1e-10
# Where dependences connect many columns, sets of them are looked at whose matrices have together
# at most this many entries: some 0.1 s. The value is a choice.
MAX_ENTRIES_OF_SETS = 2_000_000
# With more columns than this, dependent columns are not looked into: the projection on the null
# space is a p × p matrix, of 8 MB here. Where there are more columns than rows, almost all columns
# depend on each other, and the second limit holds. Both values are choices.
MAX_DEPENDENT_COLUMNS, MAX_COLUMNS_BEYOND_ROWS = 1000, 200
# So many sets of columns have their singular values computed at a time, which takes some 10 MB. It
# is a choice.
SETS_OF_A_BATCH = 2000


class GramError(NamedTuple):
    """What the square root of a Gram matrix J = [X y]ᵀ[X y] is off by, its columns at length 1.

    off: The largest error of an entry of rootᵀroot.
    least: A lower bound on the least eigenvalue of J.
    squares, shape (p + 1,): The squared lengths of the columns before they were scaled.
    """

    off: float
    least: float
    squares: Array


class Independence(NamedTuple):
    """A bound on coefficients that fit any y: some fit of any set of atoms has |β| ≤ |y|/least.

    An atom is a column, or several that are in a set together or not at all.

    least: No singular value of the columns of any set of atoms, at length 1, lies between 0 and
        this number; 0 where nothing is known.
    moved: The columns are off by at most this, in the spectral norm, from a table of which that
        holds and in which columns that are dependent up to rounding are dependent.
    full: Whether all columns are independent.
    """

    least: float
    moved: float
    full: bool


class UnitColumns:
    """The columns of X at length 1, which all γ and all units of a table share.

    X, shape (m, p): The columns of a factor of X, of any lengths; zero columns stay zero.
    triangular: Whether X is known to be upper triangular.
    gram: For a factor that is the root of a Gram matrix, what the root is off by.
    """

    def __init__(self, X: Array, triangular: bool, gram: GramError | None) -> None:
        lengths = np.linalg.norm(X, axis=0)
        self.used, self.triangular, self.gram = lengths > 0.0, triangular, gram
        self.X = X / np.where(self.used, lengths, 1.0)
        self._known: dict[bytes, Independence] = {}

    def independence(self, atoms: Index) -> Independence:
        """How independent the columns are that are not 0.

        Where they are the root of a Gram matrix of q columns, whose entries are off by at most
        ``off``, eigenvalues are off by at most q·off. Of a singular matrix nothing is known then.

        atoms, shape (p,): The atom of every column, −1 for columns that are in no set.
        """
        key = atoms.tobytes()
        if key not in self._known:
            at = self.used & (atoms >= 0)
            found = independence(self.X[:, at], atoms[at])
            if self.gram is not None:
                least = math.sqrt(max(found.least**2 - int(at.sum()) * self.gram.off, 0.0))
                found = found._replace(least=least if found.full else 0.0)
            self._known[key] = found
        return self._known[key]

    @cached
    def left(self) -> Array:
        """What projecting out all earlier columns leaves of the squared lengths, shape (p,)."""
        triangle = self.X if self.triangular else triangle_of(self.X)
        left, diagonal = np.zeros(self.used.size), triangle.diagonal()
        left[: diagonal.size] = diagonal**2
        return left


class Rows:
    """The rows of [X y], or of a long table a triangular factor; nobody may change them.

    rows, shape (m, p + 1): Of more than ``MAX_ROWS_PER_COLUMN`` p rows the triangle is held, with
        many columns only where problems at several γ and τ have the table (``shared``).
    X, y: The columns of ``rows``, shape (m, p) and (m,).
    n: The number of rows of the table; None where only matrices are known.
    gram: For a problem that was made from a Gram matrix, what its root is off by; else None.
    lost: Bounds the error of a product of two columns of the factor, relative to the product of
        their lengths: :meth:`stand_for`.
    zero_share: Searches replace γ where √(γ/2) is below this share of the longest length.
    """

    def __init__(self, rows: Array, shared: bool = False) -> None:
        m, width = rows.shape
        needed = shared or width - 1 <= MAX_COLUMNS
        self.rows = triangle_of(rows) if self.are_long(m, width) and needed else rows
        self.n: int | None = m
        self.gram: GramError | None = None
        self.lost = 0.0
        self.zero_share = ZERO_SHARE
        if m > width:
            self.stand_for(m, m)

    @staticmethod
    def are_long(m: int, width: int) -> bool:
        """Whether problems hold the triangle of a table of shape (m, width), and not its rows."""
        return m > max(MAX_ROWS_PER_COLUMN * (width - 1), width)

    def stand_for(self, n: int, height: int) -> Rows:
        """These rows, from now on as the triangle of n rows of a table.

        Householder's QR of m rows moves each column by at most m·u of its length, u the rounding
        unit (Higham 2002, Theorem 19.4, with a constant of 1), so that products of two columns lose
        twice that share of their lengths.

        height: The number m, of the rows that were factored one after the other.
        """
        self.n, self.lost = n, 2.0 * height * EPS
        return self

    def predicting(self, coef: Array) -> Rows:
        """The columns of ``rows`` with y = Xβ, as the table of as many rows has them.

        The terms x_jβ_j of y have the errors of their columns. Where the terms are longer than y,
        that is a larger share of y: ``lost`` is raised by the ratio of the lengths.

        coef, shape (p,): β.
        """
        made = Rows(np.column_stack([self.X, self.X @ coef]))
        made.n = self.n
        terms = float(np.abs(coef) @ np.sqrt(self.squares))
        length = math.sqrt(made.yy) or terms or 1.0
        made.lost = max(made.lost, self.lost * max(1.0, terms / length))
        if self.gram is not None:
            squares = np.append(self.gram.squares[:-1], terms * terms)
            # y depends on the columns, so that the least eigenvalue is 0.
            made.gram = GramError(off=self.gram.off, least=0.0, squares=squares)
        return made

    @property
    def off(self) -> float:
        """What a fit of columns may owe to rounding, in units of the lengths of columns and y.

        Householder's QR of a fit is exact for columns and y that are off by some tens of rounding
        units (Higham 2002, Theorem 19.4), for which 64 are taken. Half of ``lost`` is what the
        factor of a long table is off by.
        """
        return 32.0 * EPS + 0.5 * self.lost

    @property
    def X(self) -> Array:
        """The columns of X."""
        return self.rows[:, :-1]

    @property
    def y(self) -> Array:
        """The response."""
        return self.rows[:, -1]

    @property
    def reduced(self) -> bool:
        """Whether ``rows`` are a triangle of the table's rows, whose columns QR has moved."""
        return self.lost > 0.0 and self.rows.shape[0] <= self.rows.shape[1]

    @cached
    def triangle(self) -> Array:
        """A factor with at most as many rows as columns: ``rows`` where they are no more.

        Only a factor that is made here, or was made when the table was taken, is triangular.
        """
        return self.rows if self.rows.shape[0] <= self.rows.shape[1] else triangle_of(self.rows)

    @cached
    def active(self) -> NDArray[np.intp]:
        """The columns of X that are not zero; column 0 where every column or y is zero."""
        found = np.flatnonzero(self.squares)
        return found if found.size and self.yy > 0.0 else np.zeros(1, dtype=np.intp)

    @cached
    def columns(self) -> tuple[Array, bool]:
        """The columns of ``triangle``, one per row, and whether all below the diagonal is 0."""
        return np.ascontiguousarray(self.triangle.T), not np.tril(self.triangle, -1).any()

    @cached
    def singular(self) -> tuple[Array, Array, Array]:
        """The thin singular value decomposition of X, which every γ shares.

        Singular values keep the digits of a small γ that XXᵀ + γ/2 I would bury.
        """
        U, s, Vt = sla.svd(self.triangle[:, :-1], full_matrices=False)
        return U, s, Vt

    def release(self) -> None:
        """Drop the singular vectors, which can be computed again."""
        self.__dict__.pop("singular", None)

    @cached
    def squares(self) -> Array:
        """Squared lengths of the columns of X, shape (p,)."""
        return np.asarray(np.einsum("ij,ij->j", self.rows, self.rows)[:-1])

    @cached
    def sum_of_squares(self) -> float:
        """Σ ℓ_j² over the columns of X, of lengths ℓ_j."""
        return float(self.squares.sum())

    @cached
    def yy(self) -> float:
        """Squared length of y."""
        return float(self.y @ self.y)

    @cached
    def longest(self) -> float:
        """Length of the longest column of X; 1 where every column is zero."""
        return float(np.sqrt(self.squares.max(initial=0.0))) or 1.0

    @cached
    def out_of_range(self) -> bool:
        """Whether bounds would lose digits, as squares of products of X and y under- or overflow.

        The length of y times that of the longest column must be 0, or between ``LEAST_PRODUCT`` and
        ``MOST_PRODUCT``. The longest column must have at least the length ``LEAST_PRODUCT``, and at
        least that share of the length of y: a tree divides by γ/2, and squares coefficients.
        """
        lengths = math.sqrt(float(self.squares.max(initial=0.0))), math.sqrt(self.yy)
        if 0.0 < lengths[0] < LEAST_PRODUCT * max(lengths[1], 1.0):
            return True
        if min(lengths) > 0.0:
            return not LEAST_PRODUCT <= lengths[0] * lengths[1] <= MOST_PRODUCT
        return bool((lengths[0] == 0.0 and self.X.any()) or (lengths[1] == 0.0 and self.y.any()))

    @cached
    def unit(self) -> UnitColumns:
        """The columns of X at length 1."""
        return UnitColumns(self.triangle[:, :-1], self.lost > 0.0, self.gram)

    @property
    def dependent_share(self) -> float:
        """The share of the largest singular value, columns at length 1, up to which values are 0.

        A singular value of a matrix root is the root of an eigenvalue, which is off by at most p
        times the error of a product.
        """
        if self.gram is None:
            return DEPENDENT_SHARE
        return max(DEPENDENT_SHARE, math.sqrt(self.rows.shape[1] * self.gram.off))

    @property
    def zero_share_of_dependent(self) -> float:
        """``zero_share`` where columns are dependent up to rounding, over √σ.

        Here σ is the number ``Independence.least``. Rounding moves the p columns by η = off·√p of
        their lengths, so that a dependence has a singular value of up to η. With γ/2 = 2ησ, in
        units of the longest column's squared length, a fit has coefficients of at most η/(γ/2) =
        1/(2σ) along it, less than the 1/σ along other directions, and the working γ adds at most
        (γ/2)/σ² = 2η/σ of yᵀy to an objective.
        """
        return math.sqrt(2.0 * self.off * math.sqrt(self.X.shape[1]))

    def rank_share(self, s: int) -> float:
        """Singular values of s columns of length 1 count as 0 up to this share of the largest.

        It is ``DEPENDENT_SHARE``, or what rounding of the columns can make of 0 if that is more.
        """
        lost = self.off * np.sqrt(s)
        if self.gram is not None:  # Eigenvalues are off by up to s times an entry.
            lost = max(lost, np.sqrt(s * self.gram.off))
        return float(max(DEPENDENT_SHARE, lost))

    def ranks(self, sets: Sequence[Index]) -> Index:
        """How many coefficients fits on some sets of columns have: the joint ranks of each set."""
        most, found = max([0, *(one.size for one in sets)]), np.zeros(len(sets), dtype=np.intp)
        columns = np.vstack([self.unit.X.T, np.zeros(len(self.triangle))])
        table = stacked(sets, most)
        for here in np.array_split(np.arange(len(sets)), 1 + len(sets) // SETS_OF_A_BATCH):
            if most:
                values = np.linalg.svd(columns[table[here]], compute_uv=False)
                found[here] = (values > self.rank_share(most) * values[:, :1]).sum(axis=1)
        return found

    def share_of_fits(self, ridge: float) -> float:
        """The share of the largest singular value up to which a fit at γ/2 = ``ridge`` takes 0.

        With a ridge no column depends on others, whatever the data are off by.
        """
        return self.dependent_share if ridge == 0.0 else LOST_SHARE

    def scaled(self, lengths: Array, atoms: Index) -> Rows:
        """The rows with the columns of X divided by ``lengths``, for searches at a tiny γ.

        These rows themselves are returned where nothing changes. Where columns are dependent,
        ``zero_share``, which sets the working γ, is the one that leaves bounds the most digits.

        lengths: (p,), powers of 2, so that nothing is rounded and ``unit`` can be shared.
        atoms: As :meth:`UnitColumns.independence` takes them.
        """
        share = ZERO_SHARE
        if lengths.size <= MAX_DEPENDENT_COLUMNS:
            least, _, full = self.unit.independence(atoms)
            if least > 0.0 and not full:
                share = self.zero_share_of_dependent * math.sqrt(least)
        if (lengths == 1.0).all() and share == self.zero_share:
            return self
        whole = np.append(lengths, 1.0)
        scaled = Rows(self.triangle / whole)
        scaled.n, scaled.lost, scaled.zero_share = self.n, self.lost, share
        scaled.unit = self.unit
        if self.gram is not None:
            scaled.gram = self.gram._replace(squares=self.gram.squares / whole**2)
        return scaled


def gram_root(joint: Array) -> tuple[Array, GramError]:
    """A factor of a symmetric matrix J = [X y]ᵀ[X y].

    Raises ValueError: J is clearly not positive semidefinite.
    """
    # Columns are scaled to length 1, so that short columns keep their digits beside long ones.
    m, squares = joint.shape[0], np.maximum(np.diag(joint), 0.0)
    scale = np.sqrt(np.where(squares == 0.0, 1.0, squares))
    scaled = joint / scale / scale[:, None]
    values, vectors = np.linalg.eigh(scaled)
    # No entry of the row of a column of length 0 may differ from 0, however little.
    if values[0] < -1e-8 * m or joint[squares == 0.0].any():
        raise ValueError("[[G, b], [bᵀ, yy]] is not positive semidefinite")
    unit = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    unit[:, squares == 0.0] = 0.0  # Rounding has left small numbers here.
    off = float(np.abs(unit.T @ unit - scaled).max()) + 8.0 * m * EPS
    root = unit * scale
    first: dict[bytes, int] = {}  # Eigenvectors and QR do not keep equal columns equal.
    same = [first.setdefault(column.tobytes(), j) for j, column in enumerate(joint.T)]
    error = GramError(off, float(values[0]) - 8.0 * m * m * EPS, squares)
    return triangle_of(root[:, same])[:, same], error


def independence(X: Array, atoms: Index | None = None) -> Independence:
    """The :class:`Independence` of columns of length 1, an array of shape (m, p).

    Where all columns are independent, the least singular value σ of all is also a bound for some
    of them. Else let Z (p, d) be an orthonormal basis of the null space, and σ the least singular
    value above 0. Let S be a union of atoms, and T the other columns. Coefficients v of S that are
    orthogonal to every dependence within S have |Xv| ≥ σ|v − ZZᵀv|, and |v − ZZᵀv| ≥ s|v|, where s
    is the least singular value of the rows Z_T that is not 0: the singular values of Z_S and of Z_T
    are cosines and sines of the same angles, and those of Z_S that are 1 belong to dependences
    within S. Columns that no dependence connects are looked at apart.

    atoms, shape (p,): Columns of the same number are in a set together or not at all; by default
        every column may be in a set without the others.
    """
    m, p = X.shape
    if p == 0:
        return Independence(1.0, 0.0, full=True)
    rounding = 8.0 * p * EPS
    if p > m and p > MAX_COLUMNS_BEYOND_ROWS:
        return Independence(0.0, 0.0, full=False)
    values = np.zeros(p)
    values[: min(m, p)] = np.linalg.svd(X, compute_uv=False)
    rank = int((values > DEPENDENT_SHARE / np.sqrt(p)).sum())
    if rank == p:
        return Independence(max(float(values[-1]) - rounding, 0.0), 0.0, full=True)
    if p > MAX_DEPENDENT_COLUMNS:
        return Independence(0.0, 0.0, full=False)
    null = np.linalg.svd(X)[2][rank:]
    # Rounding moves the null space by so much, an angle.
    off = max(rounding / float(values[rank - 1]), DEPENDENT_SHARE / p)
    least, off = _least_angle(null.T @ null, np.arange(p) if atoms is None else atoms, off)
    # A set that is dependent but for the angle ``off`` counts as dependent.
    moved = float(values[rank]) + rounding + math.sqrt(p) * off
    return Independence(max(least * float(values[rank - 1]) - rounding, 0.0), moved, full=False)


def _least_angle(P: Array, atoms: Index, off: float) -> tuple[float, float]:
    """The least sine s of :func:`independence` over all sets of atoms; P = ZZᵀ, shape (p, p).

    P falls into blocks, one for each set of columns that dependences connect. The trace d of a
    block is the dimension of its null space. A set T of atoms that contains one of the same rank
    has no smaller s, so that T has at most d atoms. Where all atoms are single columns, a set of d
    columns of full rank has no larger s than the sets within it.

    off: Entries of P and sines up to this number are rounding of 0.
    Returns: The number, or 0 where a block has too many sets; and ``off``, with what entries of P
        between blocks add to it.
    """
    least = 1.0
    from scipy.sparse.csgraph import connected_components  # Few problems need the import.

    _, part = connected_components(np.abs(P) > off, directed=False)
    off += float(np.linalg.norm(P[part[:, None] != part]))
    for number in range(int(part.max()) + 1):
        members = np.flatnonzero(part == number)
        d = round(float(P[members, members].sum()))
        if d == 0:
            continue
        _, atom, sizes = np.unique(atoms[members], return_inverse=True, return_counts=True)
        single = int(sizes.max()) == 1
        counts = [d] if single else range(1, min(d, sizes.size) + 1)
        height = min(int(sizes.max()), d)
        entries = sum(comb(sizes.size, k) * k for k in counts) * height * d
        if entries > MAX_ENTRIES_OF_SETS:
            return 0.0, off
        Z = np.linalg.eigh(P[np.ix_(members, members)])[1][:, -d:]
        rows = np.zeros((sizes.size, height, d))
        for a in range(sizes.size):
            own = Z[atom == a]
            own = own if len(own) <= d else triangle_of(own)
            rows[a, : len(own)] = own
        for k in counts:
            chosen = np.array(list(combinations(range(sizes.size), k)))
            values = np.linalg.svd(rows[chosen].reshape(len(chosen), -1, d), compute_uv=False)
            if single:  # Where the least one is 0, the other columns are no basis.
                values = values[:, -1]
            least = min(least, float(values[values > off].min(initial=1.0)))
    return max(least - off, 0.0), off


def triangle_of(M: Array) -> Array:
    """R of the QR factorisation, at most square."""
    n = M.shape[1]
    factored = sla.lapack.dgeqrf(M, lwork=64 * n)[0]  # Numpy's function copies the rows thrice.
    return np.ascontiguousarray(np.triu(factored[:n]))
