"""How many coefficients a support has: the joint rank of its columns over the rows at hand.

A coefficient that the others of a support can replace is none: all levels but one of a factor
decide the last level, and two factors that share a level decide it twice. R counts the coefficients
of ``lm`` in the same way. Criteria, trees, deleted rows and inference all count here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.rounding import TOUCHED
from ..core.rows import Rows


class Coefficients:
    """The numbers of coefficients of sets of units, each of which is some columns of ``data.X``.

    each, shape (m,): The number of every unit by itself.
    every: The number of all units together.
    joined, shape (m,): False where a unit has as many coefficients beside any others as by itself.
        It may be True, too, of a unit whose columns depend on each other alone.
    """

    def __init__(self, data: Rows, units: Sequence[NDArray[np.intp]]) -> None:
        self.data, self.units = data, units
        self.each = data.ranks(units)
        columns = np.concatenate([np.empty(0, dtype=np.intp), *units])
        self.every = int(data.ranks([columns])[0])
        self.joined = np.zeros(len(units), dtype=bool)
        self._known: dict[bytes, int] = {}
        if self.every < self.each.sum():
            # A unit that no dependence touches is 0 in the null space of all columns.
            null = np.linalg.svd(data.unit.X[:, columns])[2][self.every :]
            unit = np.repeat(np.arange(len(units)), [one.size for one in units])
            self.joined[unit[np.abs(null).max(axis=0) > TOUCHED]] = True

    def of(self, members: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The numbers of coefficients, shape (k,), of k sets of units.

        members, shape (k, m): A row marks the units of a set.
        """
        count = np.asarray(members[:, ~self.joined] @ self.each[~self.joined], dtype=np.intp)
        if not self.joined.any():
            return count
        some = members[:, self.joined]
        keys = [row.tobytes() for row in np.packbits(some, axis=1)]
        new, place = {}, np.flatnonzero(self.joined)
        for key, row in zip(keys, some, strict=True):
            if key not in self._known and key not in new:
                units = [self.units[u] for u in place[row]]
                new[key] = np.concatenate([np.empty(0, dtype=np.intp), *units])
        ranks = self.data.ranks(list(new.values()))
        self._known.update(zip(new, ranks.tolist(), strict=True))
        return count + np.array([self._known[key] for key in keys], dtype=np.intp)

    def least(self, included: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Lower bounds on the numbers of coefficients of sets of units without redundant units.

        A unit is redundant if the others of the set have as many coefficients without it. A unit
        that is in every set never counts as redundant. Each further unit of a set without redundant
        units adds a coefficient or more. The number of a set is less than the sum of the numbers of
        its units by no more than the number of all units together is less than their sum. A set of
        k further units also has at least the k-th smallest number of a further unit.

        included, shape (m,): Marks the units that are in every set.
        Returns: Bounds for sets of 0, 1, … further units.
        """
        own, free = self.each[included], np.sort(self.each[~included])
        together, sums = int(self.of(included[None])[0]), np.cumsum(free)
        lacking = int(self.each.sum()) - self.every
        bound = np.maximum(together + np.arange(1, free.size + 1), own.sum() + sums - lacking)
        return np.append(together, np.maximum(bound, free)).astype(np.intp)

    def spanned(self, members: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The units, increasing, that are not in a set and add no coefficient to it.

        members, shape (m,): Marks the units of the set. Every unit is tried by itself.
        """
        others = np.flatnonzero(~members & (self.joined | (self.each == 0)))
        wider = np.repeat(members[None], others.size + 1, axis=0)
        wider[np.arange(others.size), others] = True
        counts = self.of(wider)
        return np.asarray(others[counts[:-1] == counts[-1]], dtype=np.intp)
