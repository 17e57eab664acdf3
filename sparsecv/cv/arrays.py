"""What ledgers are made of: arrays whose first axis is γ, which grow by rows that know nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..solvers.supports.path import GrownUnits

Array = NDArray[np.float64]
Support = NDArray[np.intp]
Shape = tuple[int, int]
# What is known of a model: its training objective, its squared error on the held-out rows, and the
# number of its support.
MODEL = ("objective", "error", "choice")


class GammaArrays:
    """Arrays whose first axis is γ, which have no rows at first; each is an attribute by name."""

    def __init__(self, **empty: NDArray[Any]) -> None:
        """Take for every array, by name, the row in which nothing is known."""
        self._empty = empty
        for name, row in empty.items():
            setattr(self, name, row[None][:0])

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.named().values())))

    def grow(self, rows: int) -> None:
        """Give every array so many more rows, in which nothing is known."""
        for name, row in self._empty.items():
            more = np.repeat(row[None], rows, axis=0)
            setattr(self, name, np.concatenate([getattr(self, name), more]))

    def named(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in self._empty}


class GammaLedger:
    """What is known of some training problems at every γ and size, which both may be added.

    taus: The sizes, in increasing order.
    gammas: The γ of every row. The arrays may have further rows, which have no γ yet.
    grown: By problem and γ from where its search without a proof goes on to larger sizes.
    arrays: All arrays that have a row for every γ; a ledger sets them when it is made.
    sized: Those of ``arrays`` whose second axis is the size.
    """

    arrays: Sequence[GammaArrays]
    sized: Sequence[GammaArrays]

    def __init__(self, taus: NDArray[np.intp]) -> None:
        self.taus = taus
        self.gammas: list[float] = []
        self.grown = defaultdict[int, dict[float, GrownUnits]](dict)

    def rows_of(self, gammas: Sequence[float]) -> list[int]:
        """The numbers of the rows of some γ, each of which gets a row where it has none."""
        self.add([gamma for gamma in dict.fromkeys(gammas) if gamma not in self.gammas])
        return [self.gammas.index(gamma) for gamma in gammas]

    def add(self, gammas: Sequence[float]) -> list[int]:
        """Give every γ a row in which nothing is known; return the numbers of the rows.

        gammas: Distinct γ that have no row yet.
        """
        first, needed = len(self.gammas), len(self.gammas) + len(gammas)
        self.gammas += gammas
        for arrays in self.arrays:
            # The number of rows doubles, so that copies stay few.
            if needed > (rows := arrays.rows):
                arrays.grow(max(needed - rows, rows))
        return list(range(first, needed))

    def go_on_from(self, smaller: Self) -> bool:
        """Take over what a ledger of fewer sizes knows, if its sizes are the first of this ledger.

        Nothing may be known here before.

        Returns: Whether they are; else nothing is taken over.
        """
        m, rows = smaller.taus.size, len(smaller.gammas)
        if not np.array_equal(self.taus[:m], smaller.taus):
            return False
        self.add(smaller.gammas)
        for new, old in zip(self.sized, smaller.sized, strict=True):
            known = old.named()
            for name, array in new.named().items():
                array[:rows, :m] = known[name][:rows]
        self.grown.update((j, dict(of_problem)) for j, of_problem in smaller.grown.items())
        return True

    def rows_by_sizes_to_grow(
        self, rows: Sequence[int], j: int
    ) -> list[tuple[list[int], NDArray[np.intp]]]:
        """Some rows, divided by the sizes that a search of problem j has to grow supports of there.

        A search that goes on from where one of smaller sizes has ended grows the larger sizes
        alone. Rows at which no size is left are in no part.

        Returns: The parts: some of the rows, and the sizes that are left at each of them, which are
            the last ones of ``taus``.
        """
        n_left = np.array(
            [
                self.taus.size if of_gamma is None else (self.taus > of_gamma.size).sum()
                for of_gamma in (self.grown[j].get(self.gammas[g]) for g in rows)
            ],
            dtype=np.intp,
        )
        some = np.array(rows, dtype=np.intp)
        return [
            (some[n_left == number].tolist(), self.taus[-number:])
            for number in np.unique(n_left[n_left > 0]).tolist()
        ]


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
        values: Objectives, errors and numbers of supports, as :meth:`of` returns them: numbers, or
            arrays that broadcast to the indexed shape.
        where: Which of these models are replaced, in the indexed shape or one that broadcasts.
        """
        for array, new in zip((self.objective, self.error, self.choice), values, strict=True):
            array[at] = np.where(where, new, array[at])


class CellProofs(GammaArrays):
    """What is proved and was searched of every problem, in arrays of shape (γ, τ, k + 1).

    lower, upper: Bounds on the fold's error h_j, the sum of squared errors of an optimal support on
        the held-out rows; 0 and ∞ until something is known, and 0 for the problem of all rows.
    bound: Lower bound on the optimal objective of the problem of all rows; 0 for folds.
    margin: How far rounding may have moved the error of the answer, a sum of squared errors; NaN
        until it is asked for.
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
        """The number of a support, which is added where it is new.

        Supports are told apart by their bytes: each is an increasing array of the type intp.
        """
        key = support.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self)
            self.append(support)
        return self._numbers[key]
