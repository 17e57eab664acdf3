"""The Gram form of a problem with constraints on columns, for the dual bound over units.

The columns of a group without bounds may be rotated: a model with the group has the same fits, and
the penalty (γ/2)|β|² the same value, when the group's columns are replaced by their principal
components. Within a group the components are orthogonal, so that a diagonal of XᵀX is a block of it
for every group, and components without length are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.constraints import UnitsLeft
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.linalg import EPS, Array, allocated
from .diagonal import largest_diagonal
from .dual_bound import BoundTerms, relative_rounding
from .gram import GramForm, extraction
from .unit_relaxation import Units

# Principal components of a group that are shorter than this share of the group's length are left
# out, and count as rounding of the data.
COMPONENT_SHARE = 1e-14
# Rotating k columns moves each of them by at most this many units of rounding for each of the k, as
# a share of the group's length: a singular value decomposition and a product are exact for such
# columns (Higham 2002, Section 3.5, with a constant of 1 for each).
ROTATION_UNITS = 16.0
# A D of the least eigenvalue that takes off at most this share of the squared lengths closes few
# nodes, as where columns nearly depend on each other. The number is a choice.
LEAST_SHARE_OF_LENGTHS = 0.01


@dataclass(frozen=True, kw_only=True)
class UnitForm(GramForm):
    """The Gram form of rotated columns, sorted by unit, and what is asked of the units.

    The lengths that rounding is measured by are those of the groups (``before``).

    left: Units of the problem that are not excluded; numbers of units here are their new numbers.
    first, shape (m + 1,): Columns of the u-th unit are first[u] … first[u+1] − 1.
    lower, upper, shape (q,): Bounds on the coefficients.
    """

    left: UnitsLeft
    first: NDArray[np.int64]
    lower: Array
    upper: Array

    @classmethod
    def of_units(cls, problem: SparseRidgeProblem, limits: Limits | None = None) -> UnitForm:
        """The form of a problem's constraints, in O(np²) operations."""
        asked, rows = problem.constraints, problem.rows
        blocks, squares, low, high, first, off = [], [], [], [], [0], 0.0
        for u in asked.left.units.tolist():
            columns = asked.columns[u]
            X, lower, upper = rows[:, columns], asked.lower[columns], asked.upper[columns]
            square = np.einsum("ij,ij->j", X, X)
            if columns.size > 1 and not np.isfinite(np.append(lower, upper)).any():
                X, lost = _components(X)
                square, off = np.full(X.shape[1], square.sum()), max(off, lost)
                lower = upper = np.full(X.shape[1], np.inf)
                lower = -lower
            blocks.append(X)
            squares.append(square)
            low.append(lower)
            high.append(upper)
            first.append(first[-1] + X.shape[1])
        X = np.column_stack(blocks)
        G = np.asarray(X.T @ X)
        own = cls(
            G,
            X.T @ rows[:, problem.p],
            problem.yy,
            np.zeros(G.shape[0]),
            relative_rounding(rows.shape[0], G.shape[0], problem.data.lost + off),
            (np.concatenate(squares), problem.yy),
            left=asked.left,
            first=np.array(first, dtype=np.int64),
            lower=np.concatenate(low),
            upper=np.concatenate(high),
        )
        if limits is not None and not limits.affords(2.0 * G.shape[0] ** 3):
            return own
        return replace(own, D=own._extracted(problem))

    def _extracted(self, problem: SparseRidgeProblem) -> Array:
        """D of the least eigenvalue, or of nearly the largest trace where that D is small.

        D is in units of the columns' squared lengths. What G is off by is a share of the groups'
        lengths and not of the components' lengths. As the components of a group are orthogonal, a
        diagonal takes off a block for every group.
        """
        squares, scale = np.diag(self.G), (self.before or (np.diag(self.G), 0.0))[0]
        if problem.rank_bound < squares.size or not (squares > 0.0).all():
            return np.zeros(squares.size)
        D = extraction(self.G, squares.size, self.eps * float((scale / squares).mean()))
        if D.sum() > LEAST_SHARE_OF_LENGTHS * squares.sum():
            return D
        eps = self.eps * float(scale.sum() / squares.sum())
        return largest_diagonal(self.G, problem.gamma / 2.0, eps, D)

    def terms(self, ridge: float, half: float = 0.0) -> BoundTerms:
        """The terms of the dual bound; bounds on coefficients may forbid multiples."""
        found, ends = super().terms(ridge, half), np.append(-self.lower, self.upper)
        return found._replace(
            scaled=found.scaled and bool(((ends == 0.0) | (ends == np.inf)).all())
        )

    def arrays(self) -> Units:
        """The units for kernels."""
        lengths = {"m": self.left.units.size, "p": self.b.size}
        return allocated(
            Units,
            lengths,
            first=self.first,
            lower=self.lower,
            upper=self.upper,
            spread=self.spread(),
        )

    def spread(self) -> Array:
        """Σ |Q_jc| over the columns c of column j's unit."""
        Q, found = self.quadratic(), np.zeros(self.b.size)
        for begin, end in zip(self.first[:-1], self.first[1:], strict=True):
            found[begin:end] = np.abs(Q[begin:end, begin:end]).sum(axis=1)
        return found


def _components(X: Array) -> tuple[Array, float]:
    """A group's principal components with a length, and what their products are off by.

    The second number is a share of the product of two groups' lengths.
    """
    _, values, V = sla.svd(X, full_matrices=False)
    kept = values > COMPONENT_SHARE * np.linalg.norm(X)
    kept[0] = True
    lost = ROTATION_UNITS * X.shape[1] * EPS + 2.0 * COMPONENT_SHARE * float(not kept.all())
    return X @ V[kept].T, lost
