"""Algorithm 1 of the stability paper: λ and θ by any way of minimising over candidates θ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..selection.partial_errors import Array, FoldLosses, Selection, Subset, subsets

# The criterion of some candidates, which are given by their numbers.
Criterion = Callable[[list[int]], Array]
# A function that returns the number of the best candidate that it evaluated.
Minimiser = Callable[[Criterion], int]


def exhaustion(m: int) -> Minimiser:
    """Minimise over all of m candidates; of equal candidates the first is the best."""
    return lambda criterion: int(np.argmin(criterion(list(range(m)))))


def descent(
    grid: Mapping[str, Sequence[Any]],
    start: Mapping[str, Any] | None = None,
    max_rounds: int = 10,
) -> Minimiser:
    """Minimise over one hyperparameter after the other until a point stays or comes back.

    grid: The values of every hyperparameter. Candidates are numbered as in scikit-learn's
        ParameterGrid: the last name of the alphabet varies fastest.
    start: Values that the descent starts from; a hyperparameter without a start begins at its first
        value. The descent minimises over hyperparameters without a start first.
    max_rounds: Largest number of rounds over all hyperparameters.
    Raises InputError: ``start`` names a hyperparameter or a text that the grid does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.stability.algorithm import descent
    >>> table = np.array([3.0, 2.0, 4.0, 2.0, 1.0, 5.0])  # depth 1, 2 and width 1, 5, 9
    >>> descent({"depth": [1, 2], "width": [1, 5, 9]})(lambda candidates: table[candidates])
    4
    """
    begin, names = dict(start or {}), sorted(grid)
    for name in begin:
        if name not in names:
            raise InputError(f"start names {name!r}, which param_grid does not have")
    shape = [len(grid[name]) for name in names]
    number = np.arange(np.prod(shape)).reshape(shape)
    first = tuple(_nearest(grid[name], begin[name]) if name in begin else 0 for name in names)
    axes = [names.index(name) for name in sorted(grid, key=lambda name: name in begin)]

    def minimise(criterion: Criterion) -> int:
        point, seen = first, set[tuple[int, ...]]()
        best, least = int(number[point]), np.inf
        for _ in range(max_rounds):
            before = point
            for axis in axes:
                along: Any = (*point[:axis], slice(None), *point[axis + 1 :])
                line = number[along].tolist()
                values = criterion(line)
                at = int(np.argmin(values))
                point = (*point[:axis], at, *point[axis + 1 :])
                if values[at] < least:
                    best, least = line[at], float(values[at])
            if point == before or point in seen:
                break
            seen.add(point)
        return best

    return minimise


def _nearest(values: Sequence[Any], wanted: Any) -> int:
    """Position of ``wanted`` among the values, or of the number that is nearest to it."""
    known = list(values)
    if wanted in known:
        return known.index(wanted)
    try:
        return int(np.argmin(np.abs(np.asarray(known, dtype=np.float64) - float(wanted))))
    except (TypeError, ValueError):
        raise InputError(f"start {wanted!r} is not in param_grid") from None


class AlgorithmOne:
    """Algorithm 1 of the stability paper, where ``losses`` makes each fit at its first use.

    A candidate θ is a number below the number of hyperparameter settings. The weight λ multiplies
    the instability, which is how much losses change when a further fold is left out.

    losses: The losses of fitted candidates: ``losses.label[i]`` is the fold of row i, and
        ``losses.single[t, θ, i]`` the loss on row i of candidate θ fitted without fold t.
    minimise: Looks for the candidate of least criterion.
    """

    def __init__(self, losses: FoldLosses, minimise: Minimiser) -> None:
        self.losses, self.minimise = losses, minimise

    def inside(self, t: int, weight: float) -> int:
        """The candidate chosen with outer fold t left out, for the weight λ of the stability."""
        pairs: list[Subset] = [(min(t, j), max(t, j)) for j in range(self.losses.k) if j != t]

        def criterion(candidates: list[int]) -> Array:
            self.losses.need([(t,), *pairs], candidates)
            score, change = self.losses.inner(t, candidates)
            return np.asarray(score + weight * change)

        return self.minimise(criterion)

    def outside(self, weight: float) -> int:
        """The candidate chosen on all rows, for the weight λ of the stability."""

        def criterion(candidates: list[int]) -> Array:
            self.losses.need(subsets(self.losses.k, nested=False), candidates)
            held, change = self.losses.outer(candidates)
            return np.asarray(held.mean(axis=1) + weight * change)

        return self.minimise(criterion)

    def select(self, weights: Array, every: bool) -> Selection:
        """Choose λ by nested cross-validation, and then θ on all rows.

        For every λ and every fold t, :meth:`inside` chooses a candidate from the other folds alone,
        and its mean loss on fold t is the outer error. The best λ has the least mean outer error.
        The models without fold t are fitted by then, because :meth:`inside` has asked for them.

        weights: The weights λ, increasing, shape (l,).
        every: Whether θ is chosen on all rows for every λ; otherwise for the first and the best λ.
        Returns: The choices and errors of all λ; the choice on all rows is −1 where none was made.
        """
        losses, folds = self.losses, range(self.losses.k)
        inner = np.array([[self.inside(t, weight) for t in folds] for weight in weights.tolist()])
        held = [losses.label == t for t in folds]
        outer = np.array(
            [
                [losses.mean(losses.single[t, row[t], held[t]], held[t]) for t in folds]
                for row in inner
            ]
        )
        chosen = Selection(weights, inner, outer, np.full(weights.size, -1))
        for a in range(weights.size) if every else {0, chosen.best}:
            chosen.choice[a] = self.outside(float(weights[a]))
        return chosen
