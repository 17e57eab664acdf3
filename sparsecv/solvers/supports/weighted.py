"""Good supports of sizes in which a unit may count more than once, without a proof.

Supports of every number of units are grown by :class:`~.path.SupportGrower`: among all units, and
among those that count at most so much, for every such number. A size takes the best of them that
it can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem, checked_sizes
from ..core.quick_fits import fit_supports
from ..kernels.linalg import stacked
from .path import GrownUnits, SupportGrower
from .rounding import Support


class WeightedGrower:
    """Good supports of several sizes of one problem, at one γ after the other.

    problem, sizes, starts: As of :class:`~.path.SupportGrower`.
    """

    def __init__(
        self, problem: SparseRidgeProblem, sizes: Iterable[int], starts: Sequence[Support] = ()
    ) -> None:
        self._problem, rules = problem, problem.constraints
        self._wanted = checked_sizes(problem, list(sizes)).tolist()
        self._growers, self._found = list[SupportGrower](), list[Support]()
        for most in np.unique(rules.cost[~rules.exclude]).tolist():
            out = rules.exclude | ((rules.cost > most) & ~rules.include)
            some = replace(rules.by_units, exclude=out)
            at = SparseRidgeProblem.from_rows(
                problem.data, gamma=problem.given_gamma, constraints=some
            )
            numbers = range(max(some.min_size, 1), some.max_size + 1)
            self._growers.append(SupportGrower(at, numbers, starts))

    def at(self, gamma: float, starts: Sequence[Support], limits: Limits) -> dict[int, Support]:
        """One support of at most each size at one γ, by size; starts and limits as of ``find``."""
        self.find(gamma, starts, limits)
        return dict(zip(self._wanted, self._found, strict=True))

    def table(self, most: int) -> NDArray[np.int64]:
        """One support of at most each size at the γ of the last search, shape (τ, most)."""
        return stacked(self._found, most)

    def find(
        self,
        gamma: float,
        starts: Sequence[Support],
        limits: Limits,
        before: GrownUnits | None = None,
    ) -> None:
        """Search for one support of at most each size at one γ, which :meth:`table` then gives.

        starts: Supports to improve; those that the constraints allow also count as they are.
        limits: As of :meth:`SupportGrower.find`, for every number of units.
        before: None, as :meth:`grown` returns.
        """
        assert before is None
        rules = self._problem.constraints
        found = [rules.columns_of(np.flatnonzero(rules.include))]
        found += [start for start in starts if rules.allowed(start)]
        for grower in self._growers:
            found += grower.at(gamma, starts, limits).values()
        rows = stacked(found, max(1, *(one.size for one in found)))
        _, objective = fit_supports(self._problem, np.array([gamma]), rows[None])
        count = rules.sizes_of(rows)
        best = [int(np.where(count <= k, objective[0], np.inf).argmin()) for k in self._wanted]
        self._found = [found[i] for i in best]

    def grown(self) -> None:
        """None: a search of more sizes begins anew."""


def support_grower(
    problem: SparseRidgeProblem, sizes: Iterable[int], starts: Sequence[Support] = ()
) -> SupportGrower | WeightedGrower:
    """What grows supports of some sizes of a problem."""
    kind = WeightedGrower if problem.constraints.weighted else SupportGrower
    return kind(problem, sizes, starts)
