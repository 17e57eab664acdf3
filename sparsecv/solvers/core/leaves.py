"""Leaves of a search: together they hold every support that the search has not closed.

Whoever takes the leaves of a search bounds them for a problem of its own: a search that goes on,
problems that lack rows, cuts of a master, the intervals of folds, and certificates.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels.by_reference import by_reference
from ..kernels.linalg import Array

FREE, IN, OUT = 0, 1, 2  # states of a column or unit at a node: free, included, excluded


class DualForm(Protocol):
    """A problem that leaves are bounded for, whatever its data and γ are."""

    def parts(self, beta: Array) -> tuple[Array, Array]:
        """The dual bound at some coefficients, shape (m, p), as a constant and worths of units.

        Returns: The constants, shape (m,), and the worths, shape (m, units). A support has at least
            the objective constant − Σ worth over its units.
        """


@by_reference()
class Leaves(NamedTuple):
    """Some nodes, m of them.

    The supports below a node hold all its included columns and none of its excluded ones.

    Attributes
    ----------
    state : ndarray of int8, shape (m, units)
        Free (0), included (1) and excluded (2) columns, or units of columns.
    beta : ndarray of float, shape (m, p)
        Coefficients to bound the nodes at; bounds hold at any coefficients that are 0 on excluded
        columns.
    lam : ndarray of float, shape (m,)
        √λ, λ the multiplier of the cardinality constraint.
    bound : ndarray of float, shape (m,)
        Lower bounds on the objectives of the nodes' supports, of the problem that was searched.
    unsolved : ndarray of int8, shape (m,)
        1 for a node whose relaxation is solved only when the node is taken up.
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
        return cls(
            state=state,
            beta=beta,
            lam=lam,
            bound=np.full(m, bound),
            unsolved=np.full(m, unsolved, dtype=np.int8),
        )

    @classmethod
    def one(
        cls, state: NDArray[np.int8], beta: Array, lam: float, bound: float, unsolved: int = 0
    ) -> Leaves:
        """One node, of states (units,), whose relaxation is solved by β (p,) and √λ."""
        return cls.of(state[None], beta[None], np.array([lam]), bound, unsolved)

    @classmethod
    def at_zero(cls, state: NDArray[np.int8], columns: int, lam: float = 0.0) -> Leaves:
        """Nodes with all coefficients 0 and nothing known of them.

        The coefficients are one 0 in memory, which nobody may write to: :meth:`write` needs
        :meth:`rows`.
        """
        m = state.shape[0]
        return cls.of(state, np.broadcast_to(0.0, (m, columns)), np.full(m, lam))

    @classmethod
    def root(cls, units: int, columns: int, lam: float = 0.0) -> Leaves:
        """The node below which every support lies, with all coefficients 0."""
        return cls.at_zero(np.full((1, units), FREE, dtype=np.int8), columns, lam)

    @classmethod
    def rows(cls, m: int, units: int, columns: int) -> Leaves:
        """Room for m nodes, filled with zeros."""
        state = np.zeros((m, units), dtype=np.int8)
        return cls.of(state, np.zeros((m, columns)), np.zeros(m), 0.0, 0)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return int(self.state.shape[0])

    def write(self, rows: NDArray[np.intp] | slice, nodes: Leaves) -> None:
        """Write other nodes over the nodes of some numbers."""
        arrays: Any = zip(self, nodes, strict=True)
        for ours, theirs in arrays:
            ours[rows] = theirs

    def some(self, rows: NDArray[np.intp] | slice) -> Leaves:
        """The nodes of some numbers (from 0): a copy by an array, a view by a slice."""
        arrays: Any = (of_all[rows] for of_all in self)
        return Leaves(*arrays)

    def afresh(self) -> Leaves:
        """The same nodes for another problem, which knows no bound of them yet."""
        return Leaves.of(self.state, self.beta, self.lam)

    def of_one_support(self) -> NDArray[np.bool_]:
        """Which nodes hold one support, as no column of theirs is free."""
        return np.asarray(~(self.state == FREE).any(axis=1))

    def most_worth(self, worth: Array, k: int) -> Array:
        """The most that supports of k units below each node are worth, shape (m,).

        A node that includes more than k units has the worth of all that it includes.

        worth, shape (m, units): Worths of units, at least 0.
        """
        inside = self.state == IN
        ranked = np.sort(np.where(self.state == FREE, worth, 0.0), axis=1)[:, ::-1]
        chosen = np.arange(ranked.shape[1]) < (k - inside.sum(axis=1))[:, None]
        total = np.where(inside, worth, 0.0).sum(axis=1)
        return np.asarray(total + np.where(chosen, ranked, 0.0).sum(axis=1))

    def bounds(self, form: DualForm, k: int) -> Array:
        """Lower bounds on the objectives of supports of k units below each node, shape (m,).

        form: The problem, which may have other data and another γ than the problem searched.
        """
        constant, worth = form.parts(self.beta)
        return np.asarray(constant - self.most_worth(worth, k))
