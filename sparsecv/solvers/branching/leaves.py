"""Nodes of a tree over included and excluded columns, in the form in which a search hands them out.

Whoever takes the leaves of a search bounds them for a problem of its own: a search that goes on,
problems that lack rows, cuts of a master, the intervals of folds, and certificates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.linalg import Array
from ..relaxation.dual_bound import FREE


class Leaves(NamedTuple):
    """Some nodes, m of them.

    state, shape (m, units): Free (0), included (1) and excluded (2) columns, or units of columns.
    beta, shape (m, p): Coefficients to bound the nodes at; bounds hold at any coefficients.
    lam, shape (m,): √λ, λ the multiplier of the cardinality constraint.
    bound, shape (m,): Lower bounds on the objectives of the nodes' supports, of the problem that
        was searched.
    unsolved, shape (m,): 1 for a node whose relaxation is solved only when the node is taken up.
    """

    state: NDArray[np.int8]
    beta: Array
    lam: Array
    bound: Array
    unsolved: NDArray[np.int8]

    @classmethod
    def of(
        cls,
        state: NDArray[np.int8],
        beta: Array,
        lam: Array,
        bound: float = -np.inf,
        unsolved: int = 1,
    ) -> Leaves:
        """Nodes with the same bound; without a bound nothing is known of them."""
        m = state.shape[0]
        return cls(state, beta, lam, np.full(m, bound), np.full(m, unsolved, dtype=np.int8))

    @classmethod
    def root(cls, units: int, columns: int, lam: float) -> Leaves:
        """The node below which every support lies, with all coefficients 0."""
        free = np.zeros((1, units), dtype=np.int8)
        return cls.of(free, np.zeros((1, columns)), np.array([lam]))

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return int(self.state.shape[0])

    def some(self, rows: NDArray[np.intp] | slice) -> Leaves:
        """The nodes of some numbers."""
        state, beta, lam, bound, unsolved = self
        return Leaves(state[rows], beta[rows], lam[rows], bound[rows], unsolved[rows])

    def afresh(self) -> Leaves:
        """The same nodes for another problem, which knows no bound of them yet."""
        return Leaves.of(self.state, self.beta, self.lam)

    def of_one_support(self) -> NDArray[np.bool_]:
        """Which nodes hold one support, as no column of theirs is free."""
        return np.asarray(~(self.state == FREE).any(axis=1))
