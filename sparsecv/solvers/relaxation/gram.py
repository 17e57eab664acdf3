"""The Gram form of a problem, with a diagonal extracted from it, and the residual form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..kernels.completion import elimination_loss
from ..kernels.linalg import EPS, Array
from .dual_bound import BoundTerms, relative_rounding, weights

# The least relative gap, a share of the incumbent's objective, at which a node is pruned and a
# search ends. It replaces a smaller gap that a caller gives, as the margins for rounding are of
# that order. The bounds of the shared tree for deleted rows are lowered by the same share.
TOLERANCE = 1e-9

Form = tuple[Any, ...]  # the quadratic part of a relaxation, as ``descent.Sweeps.form`` has it


@dataclass(frozen=True)
class GramForm:
    """G = XᵀX, b = Xᵀy, yᵀy and a diagonal D of a problem, for any γ and τ.

    ``D`` (p,) has G − D ⪰ 0. Moved from the quadratic part of the objective into the weights, D
    makes the perspective relaxation far tighter where n > p. ``eps`` is the ε of
    :func:`~.dual_bound.relative_rounding`. Where rows were subtracted from G and b, ``before``
    holds diag(G) and yᵀy of all rows, as rounding errors are relative to these.
    """

    G: Array
    b: Array
    yy: float
    D: Array
    eps: float
    before: tuple[Array, float] | None = None

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
        extract = extract and _affordable(G.shape[0], limits)
        D = extraction(G, problem.rank_bound, eps) if extract else np.zeros(G.shape[0])
        return cls(G, head.T @ y, problem.yy, D, eps)

    def on(self, columns: NDArray[np.intp], rank: int, limits: Limits) -> GramForm:
        """The Gram form of some of the columns, with a diagonal of their own where there is time.

        rank: An upper bound on the rank of the problem's rows.
        """
        G = np.ascontiguousarray(self.G[np.ix_(columns, columns)])
        affordable = _affordable(columns.size, limits)
        D = extraction(G, rank, self.eps) if affordable else self.D[columns]
        return GramForm(G, self.b[columns], self.yy, D, self.eps)

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
        squares, yy = self.before or (np.diag(self.G), self.yy)
        length = np.sqrt(np.maximum(squares, 0.0) + ridge)
        reach_y, w = float(np.sqrt(max(yy, 0.0))), weights(ridge - half, self.D)
        return BoundTerms(w, length, self.b, self.yy, reach_y, self.eps, self.scaled)

    def rounding(self, ridge: float, tau: int, upper: float) -> float:
        """How far below ``upper`` enumeration may overlook a support of τ columns; ridge = γ/2."""
        terms = self.terms(ridge)
        yy = terms.reach_y**2
        squares, at = terms.length**2, np.array(upper)
        return float(elimination_loss(squares, terms.w, ridge, yy, self.eps, tau, at))


def _affordable(p: int, limits: Limits | None) -> bool:
    """Whether there is time for the eigenvalues of a p × p matrix, some 2p³ operations."""
    return limits is None or limits.affords(2.0 * p**3)


def wants_gram(problem: SparseRidgeProblem) -> bool:
    """Whether a search starts from the Gram matrix of all columns, and not in residual form.

    It does with at most 400 columns, or with at most two columns for each unit of the bound on the
    rank of the rows. Both numbers are choices: bounds hold in either form.
    """
    return problem.p <= max(400, 2 * problem.rank_bound)


def extraction(G: Array, rank: int, eps: float) -> Array:
    """Diagonal D with G − D ⪰ 0: λ·diag(G), λ ≥ 0 the least eigenvalue of G at unit diagonal.

    The exact G is meant, whose entries the matrix at hand may differ from by ``eps`` of the lengths
    of two columns; eigenvalues are computed to p·u of the largest, for which 8p·u is taken off.

    G, shape (p, p).
    rank: Below p the exact G is singular, and D is 0.
    Returns, shape (p,).
    """
    p, squares = G.shape[0], np.diag(G)
    if rank < p or not (squares > 0.0).all():
        return np.zeros(p)
    lengths = np.sqrt(squares)
    values = sla.eigvalsh(G / lengths / lengths[:, None], check_finite=False)
    least = values[0] - 4.0 * p * EPS * values[-1] - 2.0 * eps * p
    return squares * max(0.0, float(least)) * (1.0 - 4.0 * EPS)


def residual_form(
    problem: SparseRidgeProblem, columns: NDArray[np.intp], half: float, tall: bool = False
) -> tuple[Form, BoundTerms]:
    """The quadratic part and the terms of the dual bound in residual form, on some columns.

    half: ε/2 of eq. (5), the part of γ/2 that stays in the quadratic part Q = XᵀX + (ε/2)I.
    tall: Whether to take the rows as they were given, and not a triangular factor of the rows.
    """
    rows, ridge = problem.rows if tall else problem.triangle, problem.gamma / 2.0
    X, y = np.ascontiguousarray(rows[:, columns].T), rows[:, problem.p].copy()
    squares, yy = np.einsum("ij,ij->i", X, X), float(y @ y)
    form = (np.zeros((0, 0)), X, y, y.copy(), half, squares + half)
    eps = relative_rounding(y.size, 0, problem.data.lost)
    w = np.full(columns.size, ridge - half)
    lengths = np.sqrt(squares + ridge)
    return form, BoundTerms(w, lengths, X @ y, yy, float(np.sqrt(yy)), eps, True)
