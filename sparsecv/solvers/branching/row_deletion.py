"""Many problems that differ by the rows left out of one Gram matrix: what they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from ..kernels.completion import elimination_loss
from ..kernels.linalg import EPS, Array, record
from ..relaxation.dual_bound import relative_rounding
from ..relaxation.gram import GramForm
from ..relaxation.perspective import Relaxation
from . import row_deletion_kernels as left_out_kernels


@dataclass(frozen=True)
class LeftOut:
    """One problem's Gram matrices and the rows each neighbour leaves out of them.

    gram: Of all rows.
    rows, targets, shape (R, p) and (R,): The rows left out, neighbour after neighbour, scaled so
        that leaving them out subtracts rowsᵀrows from G.
    start, shape (k + 1,): ``rows[start[j]:start[j + 1]]`` belong to neighbour j.
    n: Rows of the data: what rounding is relative to.
    """

    gram: GramForm
    rows: Array
    targets: Array
    start: NDArray[np.int64]
    n: int

    @property
    def count(self) -> int:
        """Number of neighbours."""
        return int(self.start.size - 1)

    def of(self, j: int) -> slice:
        """Rows of neighbour j.

        Returns, slice.
        """
        return slice(int(self.start[j]), int(self.start[j + 1]))

    @cached_property
    def yy(self) -> Array:
        """Squared length of y in every neighbour, shape (k,)."""
        squares = np.concatenate([[0.0], np.cumsum(self.targets**2)])
        return np.asarray(self.gram.yy - (squares[self.start[1:]] - squares[self.start[:-1]]))

    @cached_property
    def length(self) -> Array:
        """Lengths of the columns, all rows in, shape (p,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.gram.G), 0.0)))

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Eigenvalues of G, rounded down, and its eigenvectors."""
        values, vectors = np.linalg.eigh(self.gram.G)
        return values - self._eps * max(float(values[-1]), 0.0), vectors

    @cached_property
    def _turned(self) -> Array:
        """``rows`` in the basis of the eigenvectors."""
        return np.asarray(self.rows @ self.eigen[1])

    @property
    def _eps(self) -> float:
        return 2.0 * max(self.gram.eps, relative_rounding(self.n, self.gram.b.size))

    @cached_property
    def least(self) -> Array:
        """Lower bounds ≥ 0 on the least eigenvalue of every neighbour's Gram matrix, shape (k,)."""
        values, turned = self.eigen[0], self._turned
        k = self.count
        if self.n <= values.size or values[0] <= 0.0:
            return np.zeros(k)
        low, high = np.zeros(k), np.full(k, values[0] * (1.0 - 1e-9))
        single = np.diff(self.start) == 1
        squares = turned[self.start[:-1][single]] ** 2
        below, above = np.zeros(squares.shape[0]), high[single].copy()
        # G − μI − ddᵀ ⪰ 0 while dᵀ(G − μI)⁻¹d ≤ 1
        for _ in range(50):
            middle = 0.5 * (below + above)
            fits = np.sum(squares / (values - middle[:, None]), axis=1) <= 1.0 - 1e-9
            below, above = np.where(fits, middle, below), np.where(fits, above, middle)
        low[single] = below
        for j in np.flatnonzero(~single):
            D = self.rows[self.of(int(j))]
            fold = sla.eigvalsh(self.gram.G - D.T @ D, check_finite=False)
            low[j] = max(0.0, float(fold[0]) - 1e-9 * float(values[-1]))
        return np.asarray(np.maximum(low - self._eps * float(values[-1]), 0.0))

    @cached_property
    def levers(self) -> tuple[float, Array]:
        """A multiple s of I and, per neighbour, the norm of (I − D(G + sI)⁻¹Dᵀ)⁻¹ from above.

        s is minus half of the least eigenvalue: most of what extraction gains is kept, and the
        leverages stay below twice those of G.
        """
        values, turned = self.eigen[0], self._turned
        nothing = np.full(self.count, np.inf)
        if self.n <= values.size or values[0] <= 0.0:
            return 0.0, nothing
        shift = -0.5 * float(values[0])
        scaled = turned / np.sqrt(values + shift)
        found = np.empty(self.count)
        for j in range(self.count):
            here = scaled[self.of(j)]
            inside = here @ here.T if here.shape[0] <= here.shape[1] else here.T @ here
            most = float(np.linalg.eigvalsh(inside)[-1]) if inside.shape[0] > 1 else inside[0, 0]
            left = 1.0 - most * (1.0 + 1e-9)
            found[j] = (1.0 + 1e-7) / left if left > 1e-6 else np.inf
        return shift, found

    def rounding(self, ridge: float, tau: int, upper: Array) -> Array:
        """What enumeration may overlook below every neighbour's ``upper``, shape (k,).

        ridge: γ/2.
        Returns, shape (k,).
        """
        squares, yy, w = self.length**2 + ridge, self.gram.yy, ridge + self.least[:, None]
        return elimination_loss(squares, w, ridge, yy, self._eps, tau, np.minimum(upper, yy))

    def form(self, j: int) -> GramForm:
        """Gram matrices of neighbour j, with the diagonal that :attr:`least` allows."""
        D, t = self.rows[self.of(j)], self.targets[self.of(j)]
        gram = self.gram
        return GramForm(
            gram.G - D.T @ D,
            gram.b - D.T @ t,
            max(float(self.yy[j]), 0.0),
            np.full(gram.b.size, self.least[j]),
            self._eps,
            (self.length**2, gram.yy),
        )

    def neighbours(
        self, ridge: float, tau: int, shift: Array, margin: float
    ) -> left_out_kernels.Neighbours:
        """State of the kernels, nothing known of any neighbour yet.

        ridge: γ/2.
        shift, shape (k,): Multiples of I added to every G_j and taken off the perspective's weight.
        margin: What objectives may be off by.
        """
        p, widest = self.gram.b.size, max(int(np.diff(self.start).max(initial=1)), 1)
        columns = max(p, tau)
        inflation = (float(self.length.max()) ** 2 + ridge) / (float(self.gram.D.min()) + ridge)
        return left_out_kernels.Neighbours(
            D=self.rows,
            T=self.targets,
            start=self.start,
            yy=self.yy,
            shift=np.ascontiguousarray(shift, dtype=np.float64),
            length=np.sqrt(self.length**2 + ridge),
            lever=self.levers[1],
            settings=record(
                left_out_kernels.SETTINGS,
                ridge=ridge,
                eps=self._eps,
                margin=margin,
                shift=self.levers[0],
                yy=self.gram.yy,
                inflated=20.0 * EPS * inflation,
            ),
            upper=np.full(self.count, np.inf),
            support=np.zeros((self.count, tau), dtype=np.int64),
            doubt=np.zeros(self.count, dtype=np.int32),
            beta=np.zeros(p),
            c=np.zeros(p),
            inside=np.zeros(p),
            free=np.zeros(p),
            now=record(left_out_kernels.NODE),
            residual=np.zeros(self.targets.size),
            fitted=np.zeros(self.targets.size),
            active=np.zeros(p, dtype=np.int64),
            inverse=np.zeros((p, p)),
            moved=np.zeros(p),
            v=np.zeros(p),
            top=np.zeros(p + 2),
            V=np.zeros((widest, columns)),
            S=np.zeros((widest, widest)),
            e=np.zeros(widest),
            L=np.zeros((tau, tau)),
            w=np.zeros(tau),
        )

    def centres(
        self, relaxation: Relaxation, ridge: float, tau: int, shift: Array
    ) -> tuple[Array, Array]:
        """Coefficients for every neighbour near its relaxation's optimum, and bounds at them.

        relaxation: Of all rows.
        ridge: γ/2.
        shift, shape (k,): ε/2 of the main paper's eq. (5): multiple of I added to the neighbour's G
            and taken off the perspective; negative ones at most :attr:`least`.
        Returns beta, shape (k, p).
        Returns bound, shape (k,): objective(β') ≥ bound + (β' − β)ᵀ(G_j + shift_j I)(β' − β) for
            every β' of at most τ non-zeros.
        """
        nb = self.neighbours(ridge, tau, shift, 0.0)
        p = self.gram.b.size
        free = np.zeros(p, dtype=np.int8)
        d = -float(np.median(shift))
        level = relaxation.multiplier * (ridge + d)
        left_out_kernels.load_node(nb, self.gram.G, self.gram.b, free, relaxation.beta, tau, level)
        beta, bound = np.empty((self.count, p)), np.empty(self.count)
        left_out_kernels.centres(
            nb,
            self.gram.G,
            self.gram.b,
            d,
            float(np.sqrt(relaxation.multiplier)),
            beta,
            bound,
            np.empty(p),
        )
        return beta, bound

    def spreads(self, H: Array, shift: float, of: NDArray[np.intp]) -> Array:
        """xᵀ(G_j + shift·I)⁻¹x from above for one row x of H (r, p) in neighbour ``of`` (r,) each.

        For neighbours that leave out one row. Infinite where nothing bounds it.

        H, shape (r, p).
        of, shape (r,).
        Returns, shape (r,).
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
            grown = np.where(left > 1e-6, hh + hd * hd / left, np.inf)
        lost = 1e-13 * np.sum(H * H, axis=1) / float(scale.min())
        return np.asarray(grown * (1.0 + 1e-7) + lost)
