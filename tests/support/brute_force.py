"""Best-subset ridge by enumeration, in floating point and in exact rational arithmetic.

Of the package only the problem class appears here; all numbers are computed anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv.solvers import SparseRidgeProblem

Array = NDArray[np.float64]
Matrix = list[list[Fraction]]
Support = tuple[int, ...]
EPS = float(np.finfo(np.float64).eps)
# A column counts as dependent on the columns before it where they leave at most this share of its
# squared length: in these tests columns are either farther away or equal up to rounding.
DEPENDENT = 1e-24
SQUARE = Fraction(DEPENDENT)


class Data(NamedTuple):
    """One training problem."""

    X: Array
    y: Array
    gamma: float


class Size(NamedTuple):
    """Every support of one size, in lexicographic order, with its two values."""

    supports: list[Support]
    objective: Array
    gain: Array

    @property
    def least(self) -> float:
        return float(self.objective.min())

    def of(self, support: Iterable[Any]) -> tuple[float, float]:
        """Objective and gain of one support."""
        place = self.supports.index(tuple(int(j) for j in support))
        return float(self.objective[place]), float(self.gain[place])

    def best(self, relative: float = 0.0) -> list[Support]:
        """Supports within ``relative`` of the least objective."""
        near = self.objective <= self.least * (1.0 + relative)
        return [self.supports[t] for t in np.flatnonzero(near)]


def ridge(X: Array, y: Array, gamma: float) -> Array:
    """Coefficients by least squares on the system with √(γ/2) I appended."""
    p = X.shape[1]
    stacked = np.vstack([X, math.sqrt(gamma / 2.0) * np.eye(p)])
    return np.asarray(np.linalg.lstsq(stacked, np.append(y, np.zeros(p)), rcond=None)[0])


def value(X: Array, y: Array, gamma: float, beta: Array) -> float:
    """||y − Xβ||² + (γ/2)||β||²."""
    residual = y - X @ beta
    return float(residual @ residual + gamma / 2.0 * (beta @ beta))


def enumerate_size(data: Data, s: int) -> Size:
    """All supports of size s, by one QR factorisation each (batched)."""
    X, y, gamma = data
    n, p = X.shape
    supports = list(combinations(range(p), s))
    index = np.array(supports, dtype=np.intp).reshape(len(supports), s)
    stacked = np.zeros((len(supports), n + s, s + 1))
    heavy = gamma / 2.0 > np.square(X).sum(axis=0).max()  # heavy rows first keep light rows' digits
    top, penalty = (s, 0) if heavy else (0, n)
    stacked[:, top : top + n, :s] = X.T[index].transpose(0, 2, 1)
    stacked[:, top : top + n, s] = y
    stacked[:, penalty + np.arange(s), np.arange(s)] = math.sqrt(gamma / 2.0)
    R: Array = np.linalg.qr(stacked, mode="r")
    objective, gain = R[:, s, s] ** 2, np.square(R[:, :s, s]).sum(axis=1)
    if s:
        lengths = np.linalg.norm(stacked[:, :, :s], axis=1)
        pivots = np.abs(np.diagonal(R, axis1=1, axis2=2)[:, :s])
        lost = (pivots <= 1e2 * math.sqrt(DEPENDENT) * lengths).any(axis=1)
        for i in np.flatnonzero(lost):  # the residual would lack directions that are rounding
            objective[i], gain[i] = least_squares(stacked[i, :, :s], stacked[i, :, s])
    return Size(supports, objective, gain)


def least_squares(X: Array, y: Array) -> tuple[float, float]:
    """Least squares by singular values: what is left of yᵀy, and what is explained."""
    lengths = np.linalg.norm(X, axis=0)
    U, values, _ = np.linalg.svd(X / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    U = U[:, values > math.sqrt(DEPENDENT) * values.max(initial=0.0)]
    along = U.T @ y
    left = y - U @ along
    left -= U @ (U.T @ left)
    return float(left @ left), float(along @ along)


def enumerate_all(data: Data) -> dict[int, Size]:
    """Every size 1..p."""
    return {s: enumerate_size(data, s) for s in range(1, data.X.shape[1] + 1)}


def exact_moments(X: Array, y: Array) -> Matrix:
    """[[XᵀX, Xᵀy], [yᵀX, yᵀy]] without any rounding."""
    return products([[Fraction(float(v)) for v in row] for row in np.column_stack([X, y])])


def products(rows: Matrix) -> Matrix:
    """The inner products of all columns, without any rounding."""
    columns = list(zip(*rows, strict=True))
    return [[Fraction(inner_product(u, v)) for v in columns] for u in columns]


def exact_least_norm(A: Matrix, b: list[Fraction]) -> tuple[list[Fraction], int]:
    """The coefficients of least norm among those of least squares, and the rank of A.

    Nothing is rounded. With A = CF, C the pivot columns of the elimination and F its rows, the
    coefficients are Fᵀ(FFᵀ)⁻¹(CᵀC)⁻¹Cᵀb. Here whole numbers stand for D·A and d·F.
    """
    D = math.lcm(*(v.denominator for row in A for v in row))
    whole = [[int(v * D) for v in row] for row in A]
    F, pivots, d = eliminated(whole)
    if not pivots:
        return [Fraction(0)] * len(A[0]), 0
    C = [[row[j] for row in whole] for j in pivots]
    inner = solved([[inner_product(u, v) for v in C] for u in C], [inner_product(u, b) for u in C])
    outer = solved([[inner_product(u, v) for v in F] for u in F], inner)
    columns = zip(*F, strict=True)
    return [D * d * inner_product(column, outer) for column in columns], len(pivots)


def inner_product(u: Sequence[Any], v: Sequence[Any]) -> Any:
    """uᵀv without any rounding."""
    return sum(a * b for a, b in zip(u, v, strict=True) if a and b)


def solved(M: list[list[int]], b: list[Any]) -> list[Fraction]:
    """The solution x of Mx = b for a regular matrix M of whole numbers."""
    D = math.lcm(*(v.denominator for v in b))
    rows, _, d = eliminated([[*row, int(v * D)] for row, v in zip(M, b, strict=True)])
    return [Fraction(row[-1], d * D) for row in rows]


def eliminated(M: list[list[int]]) -> tuple[list[list[int]], list[int], int]:
    """The reduced row echelon form of M as whole numbers over d, its pivot columns, and d.

    Rows of zeros are left out. Every division of Bareiss' elimination has no remainder.
    """
    rows, pivots, d = [row[:] for row in M], list[int](), 1
    for j in range(len(M[0])):
        r = len(pivots)
        found = next((i for i in range(r, len(rows)) if rows[i][j]), None)
        if found is None:
            continue
        rows[r], rows[found] = rows[found], rows[r]
        top, pivot = rows[r], rows[r][j]
        for i, row in enumerate(rows):
            if i != r:
                c = row[j]
                rows[i] = [(pivot * a - c * b) // d for a, b in zip(row, top, strict=True)]
        d = pivot
        pivots.append(j)
    return rows[: len(pivots)], pivots, d


def exact_given(G: Array, b: Array, yy: float) -> Matrix:
    """The joint moments that matrices as given stand for, G made symmetric."""
    joint = np.block([[0.5 * (G + G.T), b[:, None]], [b[None], np.array([[yy]])]])
    return [[Fraction(float(value)) for value in row] for row in joint]


def exact_objective(joint: Matrix, gamma: float, support: Sequence[int]) -> Fraction:
    """f_S(γ): the last pivot of the elimination of the columns of S from the joint moments.

    Columns that depend on earlier ones are passed over, so that f is that of the others.
    """
    order = [*(int(i) for i in support), len(joint) - 1]
    M = [[joint[i][j] for j in order] for i in order]
    for a in range(len(order) - 1):
        M[a][a] += Fraction(gamma) / 2
    whole = [M[a][a] for a in range(len(order))]
    for a in range(len(order) - 1):
        if M[a][a] <= SQUARE * whole[a]:
            continue
        for r in range(a + 1, len(order)):
            factor = M[r][a] / M[a][a]
            for c in range(a + 1, len(order)):
                M[r][c] -= factor * M[a][c]
    return M[-1][-1]


def exact_objectives(
    data: Data, deleted: tuple[Array, float] | None = None
) -> dict[Support, Fraction]:
    """Objective of every support, without any rounding; ``deleted`` = (z, t) takes a row out."""
    X, y, gamma = data
    p = X.shape[1]
    M = exact_moments(X, y)
    if deleted is not None:
        z = [Fraction(float(v)) for v in (*deleted[0], deleted[1])]
        M = [[M[a][b] - z[a] * z[b] for b in range(p + 1)] for a in range(p + 1)]
    for j in range(p):
        M[j][j] += Fraction(gamma) / 2
    whole = [M[j][j] for j in range(p)]
    out: dict[Support, Fraction] = {(): M[p][p]}

    def include(M: list[list[Fraction]], start: int, support: Support) -> None:
        for j in range(start, p):
            if M[j][j] <= SQUARE * whole[j]:
                out[(*support, j)] = M[p][p]
                include(M, j + 1, (*support, j))
                continue
            left = [*range(j + 1, p), p]
            reduced = [row[:] for row in M]
            for a in left:
                ratio = M[a][j] / M[j][j]
                for b in left:
                    reduced[a][b] = M[a][b] - ratio * M[j][b]
            out[(*support, j)] = reduced[p][p]
            include(reduced, j + 1, (*support, j))

    include(M, 0, ())
    return out


def exact_sizes(objectives: dict[Support, Fraction]) -> dict[int, dict[Support, Fraction]]:
    """The objectives sorted by the size of their supports."""
    by_size: dict[int, dict[Support, Fraction]] = {}
    for support, f in objectives.items():
        by_size.setdefault(len(support), {})[support] = f
    return by_size


def optimum(problem: SparseRidgeProblem) -> float:
    """The least objective of a problem, by fitting every support of its size."""
    return min(problem.objective(S) for S in models(problem))


def models(problem: SparseRidgeProblem) -> Iterator[NDArray[np.intp]]:
    """Every support of a problem's size that its constraints allow."""
    asked = problem.constraints
    for units in combinations(range(asked.n_units), problem.tau):
        if asked.allowed(columns := asked.columns_of(units)):
            yield columns


def rounding(objective: float, yy: float) -> float:
    """What a backward stable fit may lose: the residual's length is exact to some ulp of ||y||."""
    return 1e-9 * objective + 1e-13 * math.sqrt(objective * yy) + 1e-26 * yy


def reach(data: Data, support: Iterable[Any]) -> float:
    """The length of y and of the parts x_j β_j of a fit, of which each has its own rounding.

    Where columns depend on each other, the coefficients of least norm are counted, in the units of
    the columns and in those of their lengths, whichever reach further.
    """
    X, y = data.X[:, list(support)], data.y
    lengths = np.linalg.norm(X, axis=0)
    lengths[lengths == 0.0] = 1.0
    longest = float(np.square(lengths).max(initial=0.0)) or 1.0
    moved = np.abs(ridge(X / lengths, y, data.gamma / longest)).sum()
    if data.gamma == 0.0 and X.shape[1]:
        moved = max(moved, lengths @ np.abs(np.linalg.lstsq(X, y, rcond=None)[0]))
    return float(np.linalg.norm(y) + moved)


def fit_rounding(data: Data, support: Iterable[Any], objective: float) -> float:
    """What a backward stable fit of a support may lose, its coefficients counted.

    The residual's length is exact to some ulp of what the fit reaches, which γ = 0 leaves large
    where columns nearly depend on each other.
    """
    yy = float(data.y @ data.y) if data.gamma else reach(data, support) ** 2
    return rounding(objective, yy)
