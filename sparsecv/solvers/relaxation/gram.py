"""The Gram form of a problem, with a diagonal extracted from it, and the residual form.

The columns of a group without bounds may be rotated: a model with the group has the same fits, and
the penalty (γ/2)|β|² the same value, when the group's columns are replaced by their principal
components. Within a group the components are orthogonal, so that a diagonal of XᵀX is a block of it
for every group, and components without length are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.rounding import COMPONENT_SHARE
from ..kernels.linalg import EPS, Array
from .dual_bound import BoundTerms, QuadraticForm, relative_rounding, unit_terms, weights
from .extraction import MAX_COLUMNS, extraction, largest_diagonal
from .gram_rounding import Rounding

# Rotating k columns moves each of them by at most this many units of rounding for each of the k, as
# a share of the group's length: a singular value decomposition and a product are exact for such
# columns (Higham 2002, Section 3.5, with a constant of 1 for each).
ROTATION_UNITS = 16.0
# A D of the least eigenvalue that takes off at most this share of the squared lengths closes few
# nodes, as where columns nearly depend on each other. The number is a choice.
LEAST_SHARE_OF_LENGTHS = 0.01


@dataclass(frozen=True)
class Grouping:
    """Columns that enter a model together, sorted by group, and bounds on coefficients.

    first, shape (m + 1,): Columns of the u-th unit are first[u] … first[u+1] − 1.
    lower, upper, shape (p,): Bounds on the coefficients, infinite where there is none.
    turns: For every unit the problem's columns, and the matrix that rotates them to the unit's
        columns here.
    """

    first: NDArray[np.int64]
    lower: Array
    upper: Array
    turns: tuple[tuple[NDArray[np.intp], Array], ...]

    @property
    def widths(self) -> NDArray[np.int64]:
        """The number of columns of every unit, shape (m,)."""
        return np.diff(self.first)

    @property
    def conical(self) -> bool:
        """Whether every bound is 0 or infinite, so that multiples of coefficients obey them."""
        ends = np.append(-self.lower, self.upper)
        return bool(((ends == 0.0) | (ends == np.inf)).all())

    def columns(self, units: NDArray[np.intp]) -> NDArray[np.intp]:
        """The columns of some units, unit after unit."""
        return np.concatenate([np.arange(self.first[u], self.first[u + 1]) for u in units])

    @property
    def unit(self) -> NDArray[np.intp]:
        """The unit of every column, shape (p,)."""
        return np.repeat(np.arange(self.widths.size), self.widths)

    def spread(self, Q: Array) -> Array:
        """Σ |Q_jc| over the columns c of column j's unit, shape (p,)."""
        found = np.zeros(self.lower.size)
        for begin, end in pairwise(self.first.tolist()):
            found[begin:end] = np.abs(Q[begin:end, begin:end]).sum(axis=1)
        return found

    def on(self, units: NDArray[np.intp]) -> Grouping:
        """The same for some of the units, in the order given; columns are numbered anew."""
        columns = self.columns(units)
        first = np.append(0, np.cumsum(self.widths[units]))
        turns = tuple(self.turns[u] for u in units.tolist())
        return Grouping(first, self.lower[columns], self.upper[columns], turns)

    def turned(self, rows: Array) -> Array:
        """Rows with a value for each of the problem's columns, (r, p), in the columns here."""
        return np.column_stack([rows[:, columns] @ turn for columns, turn in self.turns])


@dataclass(frozen=True)
class GramForm:
    """G = XᵀX, b = Xᵀy, yᵀy and a diagonal D of a problem, for any γ and τ.

    ``D`` (p,) has G − D ⪰ 0. Moved from the quadratic part of the objective into the weights, D
    makes the perspective relaxation far tighter where n > p. ``rounding`` says what the matrices
    are off by. ``grouping`` is None where every unit is a single column without bounds.
    """

    G: Array
    b: Array
    yy: float
    D: Array
    rounding: Rounding
    grouping: Grouping | None = None

    @classmethod
    def of(
        cls,
        problem: SparseRidgeProblem,
        columns: NDArray[np.intp] | None = None,
        extract: bool = True,
        limits: Limits | None = None,
    ) -> GramForm:
        """Form the matrices of some columns, by default of all, in O(np²) operations.

        D is 0 where ``extract`` is false, or ``limits`` leave no time for an eigenproblem.
        """
        head, y = problem.rows[:, : problem.p], problem.rows[:, problem.p]
        if columns is not None:
            head = head[:, columns]
        G = np.asarray(head.T @ head)
        eps = relative_rounding(problem.rows.shape[0], problem.p, problem.data.lost)
        rounding = Rounding(eps=eps, squares=np.diag(G).copy(), yy=problem.yy)
        form = cls(G=G, b=head.T @ y, yy=problem.yy, D=np.zeros(G.shape[0]), rounding=rounding)
        return form._extracted(problem, limits) if extract else form

    @classmethod
    def of_units(
        cls,
        problem: SparseRidgeProblem,
        units: NDArray[np.intp],
        limits: Limits | None = None,
    ) -> GramForm:
        """Form the matrices of units: groups of columns, columns with bounds, or single columns.

        units: Numbers of units of the problem, increasing.
        limits: Where they leave no time for eigenvalues, the diagonal D is 0.
        """
        asked, rows = problem.constraints, problem.rows
        if not (asked.grouped or asked.bounded):
            whole = units.size == asked.n_units
            return cls.of(problem, None if whole else units, limits=limits)
        turns, squares, low, high, off, dropped = [], [], [], [], 0.0, 0.0
        for u in units.tolist():
            columns = asked.columns[u]
            X, lower, upper = rows[:, columns], asked.lower[columns], asked.upper[columns]
            square, turn = np.einsum("ij,ij->j", X, X), np.eye(columns.size)
            if columns.size > 1 and not np.isfinite(np.append(lower, upper)).any():
                turn, lost = _components(X)
                dropped += (columns.size - turn.shape[1]) * lost * lost * square.sum()
                square, off = np.full(turn.shape[1], square.sum()), max(off, lost)
                lower, upper = lower[: turn.shape[1]], upper[: turn.shape[1]]
            turns.append((columns, turn))
            squares.append(square)
            low.append(lower)
            high.append(upper)
        widths = [turn.shape[1] for _, turn in turns]
        grouping = Grouping(
            first=np.append(0, np.cumsum(widths)),
            lower=np.concatenate(low),
            upper=np.concatenate(high),
            turns=tuple(turns),
        )
        X = grouping.turned(rows)
        G = np.asarray(X.T @ X)
        # Components of squared lengths that sum to d explain at most the share d/(γ/2) of the
        # objective without them, which is at most yᵀy. At γ = 0 they count as 0.
        if problem.given_gamma > 0.0:
            off += dropped / (problem.gamma / 2.0)
        eps = relative_rounding(rows.shape[0], G.shape[0], problem.data.lost + off)
        form = cls(
            G=G,
            b=X.T @ rows[:, problem.p],
            yy=problem.yy,
            D=np.zeros(G.shape[0]),
            rounding=Rounding(eps=eps, squares=np.concatenate(squares), yy=problem.yy),
            grouping=grouping,
        )
        return form._extracted(problem, limits)

    def _extracted(self, problem: SparseRidgeProblem, limits: Limits | None) -> GramForm:
        """The form with D of its own, if there is time for eigenvalues, some 2p³ operations.

        D is that of the least eigenvalue, or under a grouping of nearly the largest trace if D is
        small otherwise.

        D is in units of the columns' squared lengths. What G is off by is a share of the groups'
        lengths and not of the components' lengths. As the components of a group are orthogonal, a
        diagonal takes off a block for every group.
        """
        if limits is not None and not limits.affords(2.0 * self.b.size**3):
            return self
        squares, rounding, rank = np.diag(self.G), self.rounding, problem.rank_bound
        if self.grouping is None or rank < squares.size or not (squares > 0.0).all():
            return replace(self, D=extraction(self.G, rank, rounding.eps))
        D = extraction(self.G, squares.size, rounding.at_unit_length(squares))
        if D.sum() <= LEAST_SHARE_OF_LENGTHS * squares.sum():
            D = largest_diagonal(self.G, problem.gamma / 2.0, rounding.of_trace(squares), D)
        return replace(self, D=D)

    def on(self, units: NDArray[np.intp], problem: SparseRidgeProblem, limits: Limits) -> GramForm:
        """The form of some of the columns or units, with a diagonal of its own if there is time.

        Otherwise it keeps its part of D, which serves the smaller matrix, too.

        units: Numbers among the units of this form, and not of the problem.
        problem: Gives the rank of the rows, and γ.
        """
        grouping, columns = self.grouping, self.columns_of(units)
        form = GramForm(
            G=np.ascontiguousarray(self.G[np.ix_(columns, columns)]),
            b=self.b[columns],
            yy=self.yy,
            D=self.D[columns],
            rounding=self.rounding.on(columns),
            grouping=None if grouping is None else grouping.on(units),
        )
        return form._extracted(problem, limits)

    def columns_of(self, units: NDArray[np.intp]) -> NDArray[np.intp]:
        """The form's columns of some of the form's units, unit after unit."""
        return units if self.grouping is None else self.grouping.columns(units)

    def by_unit(self, values: Array) -> Array:
        """Values of the form's columns, shape (…, p), added up for every unit, shape (…, m)."""
        if self.grouping is None:
            return values
        return np.asarray(np.add.reduceat(values, self.grouping.first[:-1], axis=-1))

    @property
    def fits(self) -> bool:
        """Whether ``diagonal.fit_diagonal`` may start from D, which is to be positive.

        Bounds on coefficients have to be 0 or infinite, as the relaxation bends at others.
        """
        allowed = self.grouping is None or self.grouping.conical
        return allowed and self.b.size <= MAX_COLUMNS and bool((self.D > 0.0).all())

    @property
    def n_units(self) -> int:
        """How many units may be chosen: columns, or groups of columns."""
        return self.b.size if self.grouping is None else self.grouping.widths.size

    @property
    def scaled(self) -> bool:
        """Whether D = 0, so that the dual bound may use multiples of the residual."""
        return not self.D.any()

    def quadratic(self, half: float = 0.0) -> Array:
        """Q = G − D + half·I, or G itself where that is Q: the matrix must not be written to."""
        if self.scaled and half == 0.0:
            return np.ascontiguousarray(self.G)
        Q = np.array(self.G, order="C")
        Q.flat[:: Q.shape[0] + 1] -= self.D - half
        return Q

    def terms(self, ridge: float, half: float = 0.0) -> BoundTerms:
        """The terms of the dual bound at γ = 2·ridge, where half·I stays in Q (``quadratic``)."""
        terms = BoundTerms(
            w=weights(ridge - half, self.D),
            length=self.rounding.lengths(ridge),
            b=self.b,
            yy=self.yy,
            reach_y=self.rounding.length_of_y,
            eps=self.rounding.eps,
            scaled=self.scaled,
        )
        if self.grouping is None:
            return terms
        first, lower, upper = self.grouping.first, self.grouping.lower, self.grouping.upper
        units = unit_terms(first, lower, upper, self.grouping.spread(self.quadratic(half)))
        return terms._replace(scaled=terms.scaled and self.grouping.conical, units=units)

    def most_columns(self, tau: int) -> int:
        """The largest number of columns of a support of τ units."""
        return tau if self.grouping is None else int(np.sort(self.grouping.widths)[-tau:].sum())

    def overlooked(self, ridge: float, tau: int, upper: float) -> float:
        """How far below ``upper`` enumeration may overlook a support of τ units; ridge = γ/2."""
        w, most = weights(ridge, self.D), self.most_columns(tau)
        return float(self.rounding.overlooked(w, ridge, most, np.array(upper)))


def wants_gram(problem: SparseRidgeProblem) -> bool:
    """Whether a search starts from the Gram matrix of all columns, and not in residual form.

    It does with at most 400 columns, or with at most two columns for each unit of the bound on the
    rank of the rows. Both numbers are choices: bounds hold in either form.
    """
    return problem.p <= max(400, 2 * problem.rank_bound)


def _components(X: Array) -> tuple[Array, float]:
    """The principal components of a group that are not nearly 0, and how far products are off.

    A component of at most the share ``COMPONENT_SHARE`` of the group's length is left out.

    X, shape (n, k): The columns of the group.
    Returns: Directions V, shape (k, components), where XV are the components, and what products of
        components are off by, as a share of the product of two groups' lengths.
    """
    _, values, V = sla.svd(X, full_matrices=False)
    kept = values > COMPONENT_SHARE * np.linalg.norm(X)
    kept[0] = True
    lost = ROTATION_UNITS * X.shape[1] * EPS + 2.0 * COMPONENT_SHARE * float(not kept.all())
    return np.ascontiguousarray(V[kept].T), lost


def residual_form(
    problem: SparseRidgeProblem, columns: NDArray[np.intp], half: float, tall: bool = False
) -> tuple[QuadraticForm, BoundTerms]:
    """The quadratic part and the terms of the dual bound in residual form, on some columns.

    half: ε/2 of eq. (5), the part of γ/2 that stays in the quadratic part Q = XᵀX + (ε/2)I.
    tall: Whether to take the rows as they were given, and not a triangular factor of the rows.
    """
    rows, ridge = problem.rows if tall else problem.triangle, problem.gamma / 2.0
    X, y = np.ascontiguousarray(rows[:, columns].T), rows[:, problem.p].copy()
    squares, yy = np.einsum("ij,ij->i", X, X), float(y @ y)
    form = QuadraticForm(
        Q=np.zeros((0, 0)), X=X, y=y, residual=y.copy(), extra=half, diagonal=squares + half
    )
    terms = BoundTerms(
        w=np.full(columns.size, ridge - half),
        length=np.sqrt(squares + ridge),
        b=X @ y,
        yy=yy,
        reach_y=float(np.sqrt(yy)),
        eps=relative_rounding(y.size, 0, problem.data.lost),
        scaled=True,
    )
    return form, terms
