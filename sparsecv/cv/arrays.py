"""The arrays of a ledger: their first axis is γ, and they grow by rows that know nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Support = NDArray[np.intp]
Shape = tuple[int, int]
# What is known of a model: its training objective, its squared error on the held-out rows, and the
# number of its support.
MODEL = ("objective", "error", "choice")


class GammaArrays:
    """Arrays of one row for every γ, which have no rows at first."""

    def __init__(self, **empty: NDArray[Any]) -> None:
        """Take for every array, by name, the row in which nothing is known."""
        self._empty = empty
        for name, row in empty.items():
            setattr(self, name, row[None][:0])

    def grow(self, rows: int) -> None:
        """Give every array so many rows more."""
        for name, row in self._empty.items():
            more = np.repeat(row[None], rows, axis=0)
            setattr(self, name, np.concatenate([getattr(self, name), more]))

    def named(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in self._empty}


class Models(GammaArrays):
    """A model of every problem at every γ and τ, in arrays of shape (γ, τ, k + 1).

    objective: Its training objective, which is ∞ until there is a model.
    error: Its squared error on the held-out rows, which is 0 for the problem of all rows.
    choice: The number of its support.
    """

    objective: Array
    error: Array
    choice: NDArray[np.intp]

    def __init__(self, shape: Shape) -> None:
        choice = np.zeros(shape, dtype=np.intp)
        super().__init__(objective=np.full(shape, np.inf), error=np.zeros(shape), choice=choice)

    def of(self, at: Any) -> tuple[NDArray[Any], ...]:
        """Objectives, errors and numbers of some models.

        at: An index into arrays of shape (γ, τ, k + 1).
        """
        return self.objective[at], self.error[at], self.choice[at]

    def put(self, at: Any, values: tuple[Any, ...], where: NDArray[np.bool_]) -> None:
        """Replace some models.

        at: An index into arrays of shape (γ, τ, k + 1).
        values: Objectives, errors and numbers, as of :meth:`of`.
        where: Which of these models are replaced.
        """
        for array, new in zip((self.objective, self.error, self.choice), values, strict=True):
            array[at] = np.where(where, new, array[at])


class CellProofs(GammaArrays):
    """What is proved and was searched of every problem, in arrays of shape (γ, τ, k + 1).

    lower, upper: Bounds on the fold's error h_j; 0 and ∞ until something is known.
    bound: Lower bound on the optimal objective of the problem of all rows; 0 for folds.
    margin: How far rounding may have moved the error of the answer; NaN until it is asked for.
    exact: Whether the answer is proved optimal.
    searched: Whether a tree was searched for this problem, γ and τ alone.
    left_open: Whether the search of the problem's own rows, which gave its first answer, has proved
        nothing. A later proof leaves this unchanged.
    imprecise: Whether a tree of the problem's sizes has ended without a proof, which rounding has
        prevented or the room that it needs.
    """

    lower: Array
    upper: Array
    bound: Array
    margin: Array
    exact: NDArray[np.bool_]
    searched: NDArray[np.bool_]
    left_open: NDArray[np.bool_]
    imprecise: NDArray[np.bool_]

    def __init__(self, shape: Shape) -> None:
        nothing, no, upper = np.zeros(shape), np.zeros(shape, dtype=bool), np.full(shape, np.inf)
        upper[:, -1] = 0.0  # The problem of all rows holds nothing out.
        bounds = {"lower": nothing, "upper": upper, "bound": nothing}
        bounds["margin"] = np.full(shape, np.nan)
        super().__init__(**bounds, exact=no, searched=no, left_open=no, imprecise=no)


class SearchWork(GammaArrays):
    """What the searches at every γ have taken.

    n_mio, n_nodes, seconds, shape (γ,): Mixed-integer problems, nodes and seconds so far.
    trees, shape (γ, τ): Number of trees that all problems share.
    """

    n_mio: NDArray[np.intp]
    n_nodes: NDArray[np.intp]
    seconds: Array
    trees: NDArray[np.intp]

    def __init__(self, sizes: int) -> None:
        none, trees = np.array(0), np.zeros(sizes, dtype=np.intp)
        super().__init__(n_mio=none, n_nodes=none, seconds=np.array(0.0), trees=trees)


class Supports(list[Support]):
    """Distinct supports in the order of their first use; their positions are their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[bytes, int] = {}

    def number(self, support: Support) -> int:
        """The number of a support, which is added where it is new."""
        key = support.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self)
            self.append(support)
        return self._numbers[key]
