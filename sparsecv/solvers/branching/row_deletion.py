"""Many problems that differ by the rows deleted from one Gram matrix, and what they share.

With rows D and responses T deleted, problem j has G − DᵀD, Xᵀy − DᵀT and yᵀy − |T|².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.threads import cached
from ..kernels.completion import elimination_loss
from ..kernels.linalg import Array, record, zeros
from ..relaxation.dual_bound import EXTRA, relative_rounding
from ..relaxation.gram import TOLERANCE, GramForm
from ..relaxation.perspective import Relaxation
from . import row_deletion_kernels as kernels
from .node import IN
from .search import Nodes
from .search_settings import ROW_DELETION


@dataclass(frozen=True)
class LeftOut:
    """The Gram matrix of all rows, and the rows that each problem lacks.

    gram: Gram matrix of all rows.
    rows, targets, shape (R, p) and (R,): The rows deleted, problem after problem, scaled so that
        deleting rows D subtracts DᵀD from G.
    start, shape (k + 1,): Problem j lacks ``rows[start[j]:start[j + 1]]``.
    n: Number of rows of the data; sums over the rows lose up to n roundings.
    """

    gram: GramForm
    rows: Array
    targets: Array
    start: NDArray[np.int64]
    n: int

    @property
    def count(self) -> int:
        """Number of problems."""
        return int(self.start.size - 1)

    def of(self, j: int) -> slice:
        """The places of problem j's rows in ``rows``."""
        return slice(int(self.start[j]), int(self.start[j + 1]))

    @cached
    def yy(self) -> Array:
        """Squared length of y in every problem, shape (k,)."""
        squares = np.concatenate([[0.0], np.cumsum(self.targets**2)])
        return np.asarray(self.gram.yy - (squares[self.start[1:]] - squares[self.start[:-1]]))

    @cached
    def squares(self) -> Array:
        """Squared lengths of the columns on all rows, shape (p,)."""
        return np.asarray(np.maximum(np.diag(self.gram.G), 0.0))

    @cached
    def eigen(self) -> tuple[Array, Array]:
        """Eigenvalues of G, rounded down, and the eigenvectors."""
        values, vectors = np.linalg.eigh(self.gram.G)
        return values - self._eps * max(float(values[-1]), 0.0), vectors

    @cached
    def _turned(self) -> Array:
        """``rows`` in the basis of the eigenvectors."""
        return np.asarray(self.rows @ self.eigen[1])

    @property
    def _eps(self) -> float:
        return 2.0 * max(self.gram.eps, relative_rounding(self.n, self.gram.b.size))

    @property
    def _full_rank(self) -> bool:
        """Whether G is known to be positive definite."""
        return self.n > self.gram.b.size and bool(self.eigen[0][0] > 0.0)

    @cached
    def least(self) -> Array:
        """Lower bounds ≥ 0 on the least eigenvalue of every problem's Gram matrix, shape (k,).

        For one row d, G − ddᵀ ⪰ μI as long as dᵀ(G − μI)⁻¹d ≤ 1: bisection finds the largest μ.
        """
        k = self.count
        if not self._full_rank:
            return np.zeros(k)
        values, largest = self.eigen[0], float(self.eigen[0][-1])
        single = np.diff(self.start) == 1
        squares = self._turned[self.start[:-1][single]] ** 2
        low = np.zeros(k)
        below = np.zeros(squares.shape[0])
        above = np.full(squares.shape[0], values[0] * (1.0 - 1e-9))
        for _ in range(ROW_DELETION.bisections):
            middle = 0.5 * (below + above)
            fits = np.sum(squares / (values - middle[:, None]), axis=1) <= 1.0 - 1e-9
            below, above = np.where(fits, middle, below), np.where(fits, above, middle)
        low[single] = below
        for j in np.flatnonzero(~single):
            D = self.rows[self.of(int(j))]
            fold = sla.eigvalsh(self.gram.G - D.T @ D, check_finite=False)
            low[j] = max(0.0, float(fold[0]) - 1e-9 * largest)
        return np.asarray(np.maximum(low - self._eps * largest, 0.0))

    def rounding(self, ridge: float, tau: int, upper: Array) -> Array:
        """By how much a support that enumeration overlooks may be better than ``upper``.

        ridge: γ/2.
        upper, shape (k,): Objective of every problem's incumbent; the result has the same shape.
        """
        squares, yy, w = self.squares + ridge, self.gram.yy, ridge + self.least[:, None]
        return elimination_loss(squares, w, ridge, yy, self._eps, tau, np.minimum(upper, yy))

    def form(self, j: int) -> GramForm:
        """Gram matrices of problem j, with the multiple of I that :attr:`least` allows."""
        D, t, gram = self.rows[self.of(j)], self.targets[self.of(j)], self.gram
        return GramForm(
            gram.G - D.T @ D,
            gram.b - D.T @ t,
            max(float(self.yy[j]), 0.0),
            np.full(gram.b.size, self.least[j]),
            self._eps,
            (self.squares, gram.yy),
        )

    def problems(self, ridge: float, shift: Array) -> kernels.DeletedProblems:
        """The record that compiled bounds of these problems work on.

        ridge: γ/2.
        shift, shape (k,): Multiple of I added to every problem's G and taken off γ/2.
        """
        gram, p = self.gram, self.gram.b.size
        widest = max(int(np.diff(self.start).max(initial=1)), 1)
        return kernels.DeletedProblems(
            G=np.ascontiguousarray(gram.G),
            all_rows=gram.terms(ridge)._replace(eps=self._eps, w=np.ones(p)),
            D=self.rows,
            T=self.targets,
            start=self.start,
            yy=self.yy,
            shift=np.ascontiguousarray(shift, dtype=np.float64),
            ridge=ridge,
            now=record(kernels.NODE),
            state=np.zeros(p, dtype=np.int8),
            **zeros("columns active", p, of=np.int64),
            inverse=np.zeros((p, p)),
            top=np.zeros(p + EXTRA),
            U=np.zeros((widest, p)),
            S=np.zeros((widest, widest)),
            **zeros("beta c inside free moved moved_c g", p),
            **zeros("error e", widest),
        )

    def open_leaves(
        self,
        leaves: Nodes,
        problem: SparseRidgeProblem,
        most: int,
        limits: Limits,
        upper: Array,
        asked: NDArray[np.bool_],
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The leaves of a search on all rows that may hold a better support of a problem.

        problem: The problem on all rows, which gives γ and τ.
        most: A problem with more open leaves than this has none in the result.
        upper, shape (k,): Objectives of the problems' incumbents.
        asked, shape (k,): Whether a problem is bounded.
        Returns: Increasing numbers m·problem + leaf for the open ones of m leaves; and for every
            problem whether all its open leaves are among these.
        """
        state, beta, lam, bound, _ = leaves
        ridge, target = problem.gamma / 2.0, upper * (1.0 - TOLERANCE)
        dp = self.problems(ridge, -self.least)
        extracted = float(np.median(self.gram.D))
        to_choose = problem.tau - np.count_nonzero(state == IN, axis=1)
        left = np.where(asked, 0, most + 1)
        order, found = np.argsort(bound, kind="stable"), [np.zeros(0, dtype=np.intp)]
        block = max(1, ROW_DELETION.block_entries // (self.count * problem.p))
        for first in range(0, order.size, block):
            if limits.reached(0) is not None:
                left[:] = most + 1
                break
            at = order[first : first + block]
            is_open = np.zeros((at.size, self.count), dtype=np.int8)
            here = (state[at], beta[at], lam[at], to_choose[at])
            kernels.rebound(dp, here, extracted, target, most, left, is_open)
            which, problems = np.nonzero(is_open)
            found.append(order.size * problems + at[which])
        pairs, known = np.sort(np.concatenate(found)), left <= most
        return pairs[known[pairs // order.size]], known

    def centres(
        self, relaxation: Relaxation, ridge: float, tau: int, shift: Array
    ) -> tuple[Array, Array]:
        """Coefficients near the optimum of every problem's relaxation, and bounds there.

        relaxation: The solved relaxation on all rows.
        ridge: γ/2.
        shift, shape (k,): ε/2 of the first paper's eq. (5), a multiple of I that is added to the
            problem's G and taken off the perspective; no multiple is below −:attr:`least`.
        Returns: β, shape (k, p), and bounds, shape (k,), with objective(β') ≥ bound +
            (β' − β)ᵀ(G_j + shift_j I)(β' − β) for every β' of at most τ non-zeros.
        """
        dp, p = self.problems(ridge, shift), self.gram.b.size
        root_lam, extracted = float(np.sqrt(relaxation.multiplier)), -float(np.median(shift))
        free = np.zeros(p, dtype=np.int8)
        kernels.load_node(dp, free, relaxation.beta, tau, root_lam, extracted)
        beta, bound = np.empty((self.count, p)), np.empty(self.count)
        kernels.centres(dp, beta, bound)
        return beta, bound

    def spreads(self, H: Array, shift: float, of: NDArray[np.intp]) -> Array:
        """Upper bounds on xᵀ(G_j + shift·I)⁻¹x for row x = H[i] and problem j = of[i].

        The root of such a number times the radius of an ellipsoid around some coefficients is how
        far the predictions xᵀβ of all β in the ellipsoid reach: it gives a fold's interval.
        Every problem has to lack one row.

        By the Sherman–Morrison formula, with d the one row that the problem lacks and M the matrix
        with d, the value is xᵀM⁻¹x + (xᵀM⁻¹d)²/(1 − dᵀM⁻¹d).

        H, shape (r, p); of, shape (r,).
        Returns, shape (r,): ∞ where 1 − dᵀM⁻¹d is too small.
        """
        values, vectors = self.eigen
        scale = values + shift
        if scale.min() <= 0.0:
            return np.full(of.size, np.inf)
        row, inner = self._turned[self.start[:-1][of]], H @ vectors
        hh = np.sum(inner * inner / scale, axis=1)
        hd = np.sum(inner * row / scale, axis=1)
        left = 1.0 - np.sum(row * row / scale, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            sure = left > ROW_DELETION.min_leverage_left
            grown = np.where(sure, hh + hd * hd / left, np.inf)
        lost = 1e-13 * np.sum(H * H, axis=1) / float(scale.min())
        return np.asarray(grown * (1.0 + 1e-7) + lost)
