"""The columns that a leaps-and-bounds tree drops, by unit, and what they stand for."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.problem import SparseRidgeProblem
from ..core.rows import LOST_SHARE, Rows
from ..core.subset_fit import augmented_triangle
from ..core.threads import cached
from ..kernels.linalg import Array, placed
from ..relaxation.gram import GramForm
from ..supports.coefficients import Coefficients


class TreeTable:
    """The units of a problem that a tree drops, numbered 0, 1, …, and their columns.

    Excluded units are left out, and without constraints the columns that are zero.

    A unit of several columns without bounds is turned until its columns are orthogonal: its columns
    X become XV, with X = USVᵀ. That changes neither what the unit can fit nor its penalty, as
    |Vᵀβ| = |β|. Columns of XV that are 0 are left out, as one is for all levels of a factor, whose
    centred indicators add up to 0.

    units, shape (m,): For every unit of the tree its number among the units of the problem.
    first, shape (m + 1,): Columns of the tree's unit u are first[u] … first[u + 1] − 1.
    included, shape (m,): 1 for units that may not be dropped.
    cost, shape (m,): What each unit counts in a size.
    weighted: Whether a unit counts more than once.
    data, columns: The tree's columns are these columns of ``data.X``.
    bounded: Whether coefficients have bounds.
    lower, upper: The bounds on the coefficients of the tree's columns.
    scale, shape (columns of the tree,): The length that rounding of a column is relative to: the
        largest singular value of a unit that was turned, and 0 for a column's own length.
    stretch: The root of Σ ℓ_j² over these lengths divided by that over the columns' own lengths.
    lost: The sum of the squared lengths of columns that were left out when units were turned.
    """

    def __init__(self, problem: SparseRidgeProblem) -> None:
        asked, left = problem.constraints, problem.constraints.left
        self.problem, self.data, self.bounded = problem, problem.data, asked.bounded
        self.units, self.columns, self.first = left.units, left.columns, left.first
        self.included, self.stretch, self.lost = left.include, 1.0, 0.0
        self._turns: list[tuple[int, Array]] = []  # by unit turned: its first column, and V
        self._kept: NDArray[np.bool_] | None = None
        if asked.plain:
            self.units = self.columns = problem.data.active
            self.first, self.included = np.arange(self.units.size + 1), left.include[self.units]
        self.cost, self.weighted = asked.cost[self.units], asked.weighted
        self.scale, self.lower, self.upper = np.zeros(self.columns.size), asked.lower, asked.upper
        if not asked.plain:
            self.lower, self.upper = asked.lower[self.columns], asked.upper[self.columns]
        if self.columns.size > self.units.size:
            self._turn()

    @cached
    def place(self) -> NDArray[np.intp]:
        """The unit of the tree that a unit of the problem is, −1 for those left out."""
        found = np.full(self.problem.constraints.n_units, -1)
        found[self.units] = np.arange(self.units.size)
        return found

    @cached
    def coefficients(self) -> Coefficients:
        """The numbers of coefficients of sets of the tree's units."""
        units = [self.support(np.array([u])) for u in range(self.units.size)]
        return Coefficients(self.problem.data, units)

    def _turn(self) -> None:
        """Turn the units of several columns without bounds."""
        table = self.data.triangle[:, np.append(self.columns, self.problem.p)]
        squares = np.einsum("ij,ij->j", table, table)[:-1]
        kept, free = np.ones(squares.size, dtype=bool), np.isinf(self.lower) & np.isinf(self.upper)
        total = float(squares.sum()) or 1.0
        for u in np.flatnonzero(np.diff(self.first) > 1).tolist():
            a, b = self.first[u : u + 2].tolist()
            if not (free[a:b].all() and squares[a:b].any()):
                continue
            _, values, V = np.linalg.svd(table[:, a:b], full_matrices=False)
            self._turns.append((a, V.T))
            count = int((values > LOST_SHARE * values[0]).sum())
            kept[a + count : b] = False
            # What rounding of the columns may hide of a component that is left out.
            hidden = values[count:] + self.data.off * float(np.linalg.norm(values))
            self.lost += float(hidden @ hidden)
            self.scale[a:b], squares[a:b] = values[0], values[0] ** 2
        self._kept = kept
        self.stretch = math.sqrt(max(float(squares.sum()) / total, 1.0))
        self.first = np.append(0, np.cumsum(kept))[self.first]
        X = self._turned(table[:, :-1])
        self.data, self.columns = Rows(np.column_stack([X, table[:, -1]])), np.arange(X.shape[1])
        self.lower, self.upper, self.scale = self.lower[kept], self.upper[kept], self.scale[kept]

    def _turned(self, columns: Array) -> Array:
        """The columns of all units, turned as those of the problem are."""
        turned = columns.copy()
        for a, V in self._turns:
            turned[:, a : a + V.shape[1]] = columns[:, a : a + V.shape[0]] @ V
        return turned if self._kept is None else turned[:, self._kept]

    def rows(self, rows: Array) -> Array:
        """Rows of the problem, shape (n, columns of the problem), as rows of the tree's columns.

        Where units are turned, the rows are turned with them.
        """
        if not self._turns:
            return rows[:, self.columns]
        return self._turned(rows[:, self.problem.constraints.left.columns])

    def factor(self, ridge: float) -> Array:
        """The triangular factor of the tree's columns and y, with ``ridge`` = γ/2."""
        return augmented_triangle(self.data, self.columns, ridge)

    def gram(self) -> GramForm:
        """XᵀX of the tree's columns in their order, where every unit is one column."""
        return GramForm.of(self.problem, self.columns)

    def members(self, support: NDArray[np.intp]) -> NDArray[np.intp]:
        """The units of the tree that columns of the problem belong to, increasing.

        Units of the problem that the tree leaves out are left out here as well.
        """
        found = self.place[self.problem.constraints.units(support)]
        return found[found >= 0]

    def support(self, members: NDArray[np.intp]) -> NDArray[np.intp]:
        """The columns of the problem that units of the tree stand for, increasing."""
        if not self.problem.constraints.grouped:
            return self.columns[members]
        return self.problem.constraints.columns_of(self.units[members])

    def supports(
        self, members: NDArray[np.int64], sizes: NDArray[np.intp], most: int
    ) -> NDArray[np.int64]:
        """What :meth:`support` says of every row of units, as rows of ``most`` columns at most.

        members, shape (k, m): Units of the tree; −1 ends a row, there and in the result.
        sizes, shape (k,): A support of fewer units gets the first units that it lacks, where every
            unit counts once in a size.
        """
        rules = self.problem.constraints
        if not rules.grouped and ((members >= 0).sum(axis=1) == sizes).all():
            return np.where(members < 0, -1, self.columns[members])[:, :most]
        rows = np.arange(members.shape[0])[:, None]
        holds = np.zeros((rows.size, rules.n_units + 1), dtype=bool)
        holds[rows, np.append(self.units, rules.n_units)[members]] = True
        holds = holds[:, :-1]  # The number −1, which ends a row, is the last place.
        spare = ~holds & ~rules.exclude & (not rules.weighted)
        missing = sizes - holds.sum(axis=1)
        holds |= spare & (np.cumsum(spare, axis=1) <= missing[:, None])
        return placed(holds[:, rules.unit], most)
