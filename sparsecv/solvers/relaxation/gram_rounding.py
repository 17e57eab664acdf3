"""What the matrices of a Gram form are off by, as a value."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..kernels.completion import elimination_loss
from ..kernels.linalg import Array
from .dual_bound import relative_rounding


@dataclass(frozen=True)
class Rounding:
    """Shares of squared lengths that G, Xᵀy and yᵀy are off by at most.

    The lengths are those of the data that the matrices were formed from: G_ij is off by at most
    (ε/4)ℓ_iℓ_j, (Xᵀy)_i by (ε/4)ℓ_iℓ_y, and yᵀy by (ε/4)ℓ_y². Rows that are subtracted later make
    the matrices smaller, and not what these are off by.

    eps: ε, from :func:`~.dual_bound.relative_rounding`.
    squares, shape (p,): ℓ_i², of a rotated group's columns the squared length of the whole group.
    yy: ℓ_y².
    rows_deleted: Whether rows were subtracted from the matrices.
    """

    eps: float
    squares: Array
    yy: float
    rows_deleted: bool = False

    def on(self, columns: NDArray[np.intp]) -> Rounding:
        """The rounding of the matrices of some of the columns."""
        return replace(self, squares=self.squares[columns])

    def without_rows(self, n: int) -> Rounding:
        """The rounding of the matrices once some of n rows are subtracted from them.

        ε doubles at least, as the sums over the rows that are subtracted round as those of all do.
        """
        eps = 2.0 * max(self.eps, relative_rounding(n, self.squares.size))
        return replace(self, eps=eps, rows_deleted=True)

    def lengths(self, ridge: float) -> Array:
        """√(ℓ_i² + γ/2), shape (p,), for ridge = γ/2."""
        return np.asarray(np.sqrt(np.maximum(self.squares, 0.0) + ridge))

    @property
    def length_of_y(self) -> float:
        """ℓ_y."""
        return float(np.sqrt(max(self.yy, 0.0)))

    def at_unit_length(self, diagonal: Array) -> float:
        """ε once every column is divided by the root of its diagonal entry of G."""
        return self.eps * float((self.squares / diagonal).mean())

    def of_trace(self, diagonal: Array) -> float:
        """ε as a share of the trace of G, whose diagonal is given."""
        return self.eps * float(self.squares.sum() / diagonal.sum())

    def overlooked(self, w: Array, ridge: float, most_columns: int, upper: Array) -> Array:
        """What rounding may hide from an enumeration that has found no objective below ``upper``.

        A support that it passes over has at least the objective ``upper`` less the result.

        w: The weights γ/2 + D, shape (p,) of one problem; shape (k, 1) of k problems, each with the
            same D for all columns.
        ridge: γ/2.
        most_columns: The most columns of a support.
        upper: A number, or one for every problem, shape (k,).
        Returns: A number, or shape (k,), in the units of objectives.
        """
        squares = np.maximum(self.squares, 0.0) + ridge
        loss = elimination_loss(squares, w, ridge, self.yy, self.eps, most_columns, upper)
        return np.asarray(loss)
