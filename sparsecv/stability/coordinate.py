"""Algorithm 1 with candidates θ found by coordinate descent, each fitted at its first use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..selection.partial_errors import (
    Array,
    FoldLosses,
    PartialErrors,
    Selection,
    Subset,
    checked_lambdas,
    subsets,
)


class Grid(Sequence[dict[str, Any]]):
    """Candidates θ as points of a product of lists, numbered in row-major order.

    values: The values of every hyperparameter.
    start: Values that the descent starts from; a hyperparameter without a start begins at its first
        value. The descent minimises over hyperparameters without a start first.
    Raises InputError: There is no hyperparameter, a hyperparameter has no values, or ``start``
        names a hyperparameter that ``values`` does not have.

    Examples
    --------
    >>> from sparsecv.stability.coordinate import Grid
    >>> Grid({"depth": [1, 2, 3], "width": [1, 5]})[3]
    {'depth': 2, 'width': 5}
    """

    def __init__(
        self, values: Mapping[str, Sequence[Any]], start: Mapping[str, Any] | None = None
    ) -> None:
        self.values = {name: list(each) for name, each in values.items()}
        if not self.values or not all(self.values.values()):
            raise InputError("param_grid needs at least one value for every hyperparameter")
        self.shape = tuple(map(len, self.values.values()))
        given = dict(start or {})
        for name in given:
            if name not in self.values:
                raise InputError(f"start names {name!r}, which param_grid does not have")
        self.start = tuple(
            _nearest(each, given[name]) if name in given else 0
            for name, each in self.values.items()
        )
        self.order = sorted(range(len(self.shape)), key=lambda axis: [*self.values][axis] in given)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, number: Any) -> Any:
        """The hyperparameters of the candidate with this number."""
        point = np.unravel_index(number, self.shape)
        return {name: each[i] for (name, each), i in zip(self.values.items(), point, strict=True)}

    def line(self, point: tuple[int, ...], axis: int) -> list[int]:
        """Numbers of the candidates that agree with a point in all but the hyperparameter ``axis``.

        point: Positions of the values of all hyperparameters.
        """
        points = [(*point[:axis], i, *point[axis + 1 :]) for i in range(self.shape[axis])]
        found: list[int] = np.ravel_multi_index(np.transpose(points), self.shape).tolist()
        return found


def _nearest(values: Sequence[Any], wanted: Any) -> int:
    """Position of ``wanted`` among the values, or of the number that is nearest to it."""
    if wanted in values:
        return values.index(wanted)
    try:
        return int(np.argmin(np.abs(np.asarray(values, dtype=np.float64) - float(wanted))))
    except (TypeError, ValueError):
        raise InputError(f"start {wanted!r} is not in param_grid") from None


def descend(grid: Grid, value: Callable[[list[int]], Array], max_rounds: int = 10) -> int:
    """Minimise over one hyperparameter after the other until a point stays or comes back.

    value: Returns the criterion of some candidates, given by their numbers.
    max_rounds: Largest number of rounds over all hyperparameters.
    Returns: The number of the best candidate that was evaluated.
    """
    point, seen = grid.start, set()
    best, least = int(np.ravel_multi_index(point, grid.shape)), np.inf
    for _ in range(max_rounds):
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


class Descent:
    """Algorithm 1 with coordinate descent over a grid; fits are made and kept by ``losses``."""

    def __init__(self, losses: FoldLosses, grid: Grid) -> None:
        self.losses, self.grid = losses, grid

    def inside(self, t: int, weight: float) -> int:
        """The candidate chosen with outer fold t left out, for the weight λ of the stability."""
        pairs: list[Subset] = [(min(t, j), max(t, j)) for j in range(self.losses.k) if j != t]

        def value(candidates: list[int]) -> Array:
            self.losses.need([(t,), *pairs], candidates)
            score, change = self.losses.inner(t, candidates)
            return np.asarray(score + weight * change)

        return descend(self.grid, value)

    def outside(self, weight: float) -> int:
        """The candidate chosen on all rows, for the weight λ of the stability."""

        def value(candidates: list[int]) -> Array:
            self.losses.need(subsets(self.losses.k, nested=False), candidates)
            held, change = self.losses.outer(candidates)
            return np.asarray(held.mean(axis=1) + weight * change)

        return descend(self.grid, value)

    def select(self, lambdas: ArrayLike | None = None) -> Selection:
        """Algorithm 1: λ by nested cross-validation, then θ on all rows, for λ = 0 and the best λ.

        Raises InputError: A λ is negative.
        """
        weights, folds = checked_lambdas(lambdas), range(self.losses.k)
        inner = np.array([[self.inside(t, weight) for t in folds] for weight in weights.tolist()])
        held, known = [self.losses.label == t for t in folds], self.losses
        outer = np.array(
            [
                [known.mean(known.single[t, row[t], held[t]], held[t]) for t in folds]
                for row in inner
            ]
        )
        chosen = Selection(weights, inner, outer, np.full(weights.size, -1))
        for a in {0, chosen.best}:
            chosen.choice[a] = self.outside(float(weights[a]))
        return chosen

    def visited(self) -> tuple[list[int], PartialErrors]:
        """Candidates fitted to all rows and without each fold, and their errors."""
        known = (self.losses.known[subset] for subset in subsets(self.losses.k, nested=False))
        at = sorted(set.intersection(*known))
        return at, self.losses.errors(at, nested=False)
