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
from ..kernels.linalg import EPS, Array, record, zeros
from .descent import LIMITS
from .dual_bound import EXTRA, OUT, BoundTerms, relative_rounding
from .gram import GramForm, extraction
from .unit_relaxation import Units, relax_units

# Principal components of a group that are shorter than this share of the group's length are left
# out, and count as rounding of the data.
COMPONENT_SHARE = 1e-14
# Rotating k columns moves each of them by at most this many units of rounding for each of the k, as
# a share of the group's length: a singular value decomposition and a product are exact for such
# columns (Higham 2002, Section 3.5, with a constant of 1 for each).
ROTATION_UNITS = 16.0
RULES = np.dtype([("strong", "i8")], align=True)


@dataclass(frozen=True, kw_only=True)
class UnitForm(GramForm):
    """The Gram form of rotated columns, sorted by unit, and what is asked of the units.

    The lengths that rounding is measured by are those of the groups (``before``).

    left: Units of the problem that are not excluded; numbers of units here are their new numbers.
    first, shape (m + 1,): Columns of the u-th unit are first[u] … first[u+1] − 1.
    lower, upper, shape (q,): Bounds on the coefficients.
    strong: Whether a unit needs all its parents, and not one alone.
    """

    left: UnitsLeft
    first: NDArray[np.int64]
    lower: Array
    upper: Array
    strong: bool

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
            relative_rounding(rows.shape[0], G.shape[0], problem.distortion + off),
            (np.concatenate(squares), problem.yy),
            left=asked.left,
            first=np.array(first, dtype=np.int64),
            lower=np.concatenate(low),
            upper=np.concatenate(high),
            strong=asked.strong,
        )
        if limits is not None and not limits.affords(2.0 * G.shape[0] ** 3):
            return own
        return replace(own, D=own.extracted(problem.rank_bound))

    def extracted(self, rank: int) -> Array:
        """A diagonal D with G − D ⪰ 0, in units of the columns' squared lengths.

        rank: Below the number of columns XᵀX is singular, and D is 0.
        """
        squares, scale = np.diag(self.G), (self.before or (np.diag(self.G), 0.0))[0]
        if not (squares > 0.0).all():
            return np.zeros(squares.size)
        # What G is off by is a share of the groups' lengths and not of the components' lengths.
        return extraction(self.G, rank, self.eps * float((scale / squares).mean()))

    def terms(self, ridge: float, half: float = 0.0) -> BoundTerms:
        """The terms of the dual bound; bounds on coefficients may forbid multiples."""
        found, ends = super().terms(ridge, half), np.append(-self.lower, self.upper)
        return found._replace(
            scaled=found.scaled and bool(((ends == 0.0) | (ends == np.inf)).all())
        )

    def arrays(self, gap: float, rounds: int, shortfall_share: float) -> Units:
        """The units for kernels; the numbers limit a relaxation as in ``descent.LIMITS``."""
        m, p = self.left.units.size, self.b.size
        stops = {"gap": gap, "rounds": rounds, "shortfall_share": shortfall_share}
        return Units(
            first=self.first,
            lower=self.lower,
            upper=self.upper,
            spread=self.spread(),
            parent_at=self.left.parent_at,
            parents=self.left.parents,
            rules=record(RULES, strong=self.strong),
            ones=np.ones(m),
            **zeros("theta rho", p),
            **zeros("listed active", m, of=np.int64),
            **zeros("worth share size least_share scratch", m),
            limits=record(LIMITS, target=np.inf, **stops),
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


class UnitRelaxer:
    """Coefficients of the relaxation of a node, with the arrays that its kernels improve.

    state: (m,), free (0), included (1) and excluded (2) units.
    """

    def __init__(
        self,
        form: UnitForm,
        ridge: float,
        state: NDArray[np.int8],
        k: int,
        gap: float = 1e-5,
        rounds: int = 200,
    ) -> None:
        self.form, self.terms, self.state, self.k = form, form.terms(ridge), state, k
        self.ridge, self.inside = (
            ridge,
            np.flatnonzero(np.repeat(state != OUT, np.diff(form.first))),
        )
        self.Q, self.units = form.quadratic(), form.arrays(gap, rounds, 0.0)
        q = form.b.size
        self.beta, self.g, self.lam = np.zeros(q), form.b.copy(), np.zeros(1)
        self.top = np.zeros(k + EXTRA)

    def start(self, other: UnitRelaxer) -> UnitRelaxer:
        """Go on from the coefficients and √λ of another relaxation; returns itself."""
        self.beta[:], self.lam[:] = other.beta, other.lam
        return self

    @property
    def share(self) -> Array:
        """The share z of every column's unit, shape (p,)."""
        return np.repeat(self.units.share, np.diff(self.form.first))

    def relax(self, target: float) -> float:
        """The best bound found; the search ends where it reaches the target."""
        self.units.limits["target"] = target
        here = (self.state, self.k, self.beta, self.g, self.lam, self.top)
        best, _ = relax_units(self.Q, self.terms, self.units, *here)
        return float(best)
