"""Algorithm 1 with θ found by coordinate descent: fits are made when asked for, and kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..selection.criterion import Selection, checked_lambdas
from ..selection.partial_errors import (
    Array,
    Index,
    Learner,
    PartialErrors,
    Subset,
    Table,
    checked_partition,
    losses_of,
    training_rows,
)

ITERATIONS = 10
Runner = Callable[[list[tuple[Index, list[int]]]], list[Array]]


class Grid:
    """Candidates θ as points of a product of lists, numbered in row-major order.

    Parameters
    ----------
    values : mapping of str to sequence
    start : mapping, optional
        Values the descent starts from; a hyperparameter without one starts at its first value.
        Those without a start are minimised over first.

    Raises
    ------
    InputError
        A hyperparameter without values, none at all, or a start of one that is not there.

    Examples
    --------
    >>> from sparsecv.stability import Grid
    >>> Grid({"depth": [1, 2, 3], "width": [1, 5]}).params(3)
    {'depth': 2, 'width': 5}
    """

    def __init__(
        self, values: Mapping[str, Sequence[Any]], start: Mapping[str, Any] | None = None
    ) -> None:
        self.names = list(values)
        self.values = [list(values[name]) for name in self.names]
        if not self.names or not all(self.values):
            raise InputError("param_grid needs at least one value for every hyperparameter")
        self.shape = tuple(len(v) for v in self.values)
        given = dict(start or {})
        unknown = [name for name in given if name not in self.names]
        if unknown:
            raise InputError(f"start names {unknown[0]!r}, which param_grid does not have")
        self.start = tuple(
            _nearest(v, given[name]) if name in given else 0
            for name, v in zip(self.names, self.values, strict=True)
        )
        free = [a for a, name in enumerate(self.names) if name not in given]
        self.order = free + [a for a in range(len(self.names)) if a not in free]

    @property
    def size(self) -> int:
        """Number of candidates."""
        return int(np.prod(self.shape))

    def number(self, point: tuple[int, ...]) -> int:
        """Candidate at a point.

        Parameters
        ----------
        point : tuple of int
            A position in every list.

        Returns
        -------
        int
        """
        return int(np.ravel_multi_index(point, self.shape))

    def params(self, number: int) -> dict[str, Any]:
        """Hyperparameters of a candidate.

        Parameters
        ----------
        number : int

        Returns
        -------
        dict of str to object
        """
        point = np.unravel_index(number, self.shape)
        return {name: v[int(i)] for name, v, i in zip(self.names, self.values, point, strict=True)}

    def line(self, point: tuple[int, ...], axis: int) -> list[int]:
        """Candidates that differ from a point in one hyperparameter.

        Parameters
        ----------
        point : tuple of int
        axis : int
            Which hyperparameter.

        Returns
        -------
        list of int
        """
        return [
            self.number((*point[:axis], i, *point[axis + 1 :])) for i in range(self.shape[axis])
        ]


def descend(grid: Grid, value: Callable[[list[int]], Array], most: int = ITERATIONS) -> int:
    """Minimise over one hyperparameter after the other until nothing moves or a point comes back.

    value: Criterion of some candidates.
    most: Rounds over all hyperparameters.
    Returns: The best candidate found.
    """
    point, seen = grid.start, set()
    best, least = grid.number(point), np.inf
    for _ in range(most):
        before = point
        for axis in grid.order:
            line = grid.line(point, axis)
            found = value(line)
            at = int(np.argmin(found))
            point = (*point[:axis], at, *point[axis + 1 :])
            if found[at] < least:
                best, least = line[at], float(found[at])
        if point == before or point in seen:
            break
        seen.add(point)
    return best


class Adaptive:
    """Algorithm 1 with coordinate descent; every fit is kept by (folds left out, θ).

    label, shape (n,).
    run: Losses of (rows, candidates), in order.
    """

    def __init__(self, learner: Learner, label: Any, grid: Grid, run: Runner | None = None) -> None:
        self.label, self.k = checked_partition(label, np.asarray(label).size)
        self.grid = grid
        self.run: Runner = run or (lambda tasks: losses_of(learner, tasks))
        self.table = Table(self.label, grid.size)
        self.known: dict[Subset, set[int]] = {}
        self._rows: dict[Subset, Index] = {}
        self.n_fits = 0

    def need(self, left_out: Sequence[Subset], candidates: Sequence[int]) -> None:
        """Fit what is missing.

        left_out, sequence of tuples of int: Sets of folds.
        """
        tasks = [
            (subset, c)
            for subset in left_out
            for c in candidates
            if c not in self.known.setdefault(subset, set())
        ]
        todo = [(self._training(subset), [c]) for subset, c in tasks]
        for (subset, c), losses in zip(tasks, self.run(todo), strict=True):
            self.table.enter(subset, [c], losses)
            self.known[subset].add(c)
        self.n_fits += len(tasks)

    def _training(self, subset: Subset) -> Index:
        if subset not in self._rows:
            self._rows[subset] = training_rows(self.label, subset)
        return self._rows[subset]

    def inside(self, t: int, weight: float) -> int:
        """θ chosen with outer fold t left out.

        weight: λ.
        """
        pairs: list[Subset] = [(min(t, j), max(t, j)) for j in range(self.k) if j != t]

        def value(candidates: list[int]) -> Array:
            self.need([(t,), *pairs], candidates)
            score, change = self.table.inner(t, candidates)
            return np.asarray(score + weight * change)

        return descend(self.grid, value)

    def outside(self, weight: float) -> int:
        """θ chosen on all rows.

        weight: λ.
        """
        left_out: list[Subset] = [(), *((t,) for t in range(self.k))]

        def value(candidates: list[int]) -> Array:
            self.need(left_out, candidates)
            held, change = self.table.outer(candidates)
            return np.asarray(held.mean(axis=1) + weight * change)

        return descend(self.grid, value)

    def select(self, lambdas: ArrayLike | None = None) -> Selection:
        """Algorithm 1: λ by nested cross-validation, then θ on all rows.

        Raises InputError: λ < 0, or fewer than 3 folds with more than one λ.
        """
        weights = checked_lambdas(lambdas)
        if self.k < 3:
            raise InputError(f"nested cross-validation needs at least 3 folds; got {self.k}")
        shape = (weights.size, self.k)
        inner_choice, outer = np.empty(shape, dtype=np.intp), np.empty(shape)
        choice = np.empty(weights.size, dtype=np.intp)
        for (a, weight), t in itertools.product(enumerate(weights), range(self.k)):
            chosen = self.inside(t, float(weight))
            inner_choice[a, t] = chosen
            held = self.label == t
            outer[a, t] = self.table.single[t, chosen][held].mean()
        nested = outer.mean(axis=1)
        best = int(np.argmin(nested))
        for a, weight in enumerate(weights):
            choice[a] = self.outside(float(weight)) if a in (0, best) else -1
        return Selection(weights, outer, nested, inner_choice, choice, best)

    def visited(self) -> tuple[list[int], PartialErrors]:
        """Candidates fitted on all rows and their errors.

        Returns errors: In the same order.
        """
        left_out: list[Subset] = [(), *((t,) for t in range(self.k))]
        every = set.intersection(*(self.known.get(subset, set()) for subset in left_out))
        at = sorted(every)
        return at, self.table.errors(at, nested=False)


def _nearest(values: Sequence[Any], wanted: Any) -> int:
    """Position of a value, or of the nearest number."""
    if wanted in values:
        return values.index(wanted)
    try:
        return int(np.argmin(np.abs(np.asarray(values, dtype=np.float64) - float(wanted))))
    except (TypeError, ValueError):
        raise InputError(f"start {wanted!r} is not in param_grid") from None
