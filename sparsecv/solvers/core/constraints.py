"""Constraints on the columns of one training problem: groups, columns in or out, bounds.

A *unit* is a group of columns that enter a model together; by default every column is a unit of
its own. A size is the sum of what its units count: 1 for every unit, or the number of its
coefficients, so that a factor counts more than a number. A support lists columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InputError
from ..kernels.linalg import from_mask
from .threads import cached

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


class UnitsLeft(NamedTuple):
    """The units that are not excluded, under new numbers 0, 1, …, as kernels take them.

    units, shape (m,): The numbers of the m units that are left among all units.
    place, shape (all units,): The new number of every unit, −1 for excluded units.
    columns: The columns of the units that are left, sorted by unit.
    first, shape (m + 1,): The columns of the u-th unit are columns[first[u]:first[u + 1]].
    include, shape (m,): 1 for units that must be in.
    """

    units: Index
    place: Index
    columns: Index
    first: NDArray[np.int64]
    include: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class UnitConstraints:
    """What a support and its coefficients must obey; :meth:`of` makes and checks it.

    Attributes
    ----------
    unit : ndarray of int, shape (p,)
        Unit of each column; units 0..m−1 are numbered in the order of their first columns.
    include, exclude : ndarray of bool, shape (m,)
        Units that must be in every model, and units that may be in none.
    cost : ndarray of int, shape (m,)
        What a unit counts in a size, at least 1; it is 1 for every unit where sizes count units.
    lower, upper : ndarray of float, shape (p,)
        Bounds on the coefficients, lower ≤ 0 ≤ upper, infinite where there is none.
    """

    unit: Index
    include: Mask
    exclude: Mask
    cost: Index
    lower: Array
    upper: Array

    @classmethod
    @lru_cache(maxsize=64)
    def none(cls, p: int) -> UnitConstraints:
        """The record of p columns without constraints."""
        return cls.of(p)

    @classmethod
    def of(
        cls,
        p: int,
        *,
        unit: ArrayLike | None = None,
        include: Iterable[int] = (),
        exclude: Iterable[int] = (),
        cost: ArrayLike = 1,
        bounds: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf),
        called: Callable[[int], str] = "column {}".format,
    ) -> UnitConstraints:
        """Make the record of p columns; the caller has checked the bounds.

        Parameters
        ----------
        p : int
            Number of columns.
        unit : array of int, shape (p,), optional
            Columns with the same number are one unit; by default each column is one.
        include, exclude : iterables of int
            Columns whose units must be in every model, or in none.
        cost : array of int, shape (p,), or a number
            For every column what its unit counts in a size.
        bounds : pair of arrays, shape (p,), or of numbers
            Least and greatest coefficient of every column, low ≤ 0 ≤ high.
        called : callable
            Takes a column and returns what messages call that column.

        Returns
        -------
        UnitConstraints

        Raises
        ------
        InputError
            A unit must be both in and out, or every unit is excluded.
        """
        given = np.arange(p) if unit is None else np.asarray(unit)
        _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
        units = np.argsort(np.argsort(first))[inverse].astype(np.intp)
        low, high = (np.full(p, ends, dtype=np.float64) for ends in bounds)
        inside, out = np.zeros((2, first.size), dtype=bool)
        inside[units[[*include]]] = True
        out[units[[*exclude]]] = True
        for column in np.flatnonzero((inside & out)[units]).tolist():
            raise InputError(f"{called(column)} is both included and excluded: ask for one of them")
        if out.all():
            raise InputError("every column is excluded: there is nothing to select from")
        counts = np.broadcast_to(np.asarray(cost, dtype=np.intp), p)[np.sort(first)]
        return cls(units, inside, out, counts, low, high)

    @property
    def p(self) -> int:
        """Number of columns."""
        return int(self.unit.size)

    @property
    def n_units(self) -> int:
        """Number of units, excluded units included."""
        return int(self.include.size)

    @cached
    def bounded(self) -> bool:
        """Whether a coefficient has a bound."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @cached
    def grouped(self) -> bool:
        """Whether a unit has more than one column."""
        return self.n_units < self.p

    @cached
    def weighted(self) -> bool:
        """Whether a unit counts more than once in a size."""
        return bool((self.cost != 1).any())

    @cached
    def by_units(self) -> UnitConstraints:
        """The same constraints, with sizes that count units."""
        return replace(self, cost=np.ones_like(self.cost)) if self.weighted else self

    def size_of(self, support: ArrayLike) -> int:
        """What the units that the columns of a support belong to count together."""
        return int(self.cost[self.units(support)].sum())

    def sizes_of(self, rows: Index) -> Index:
        """The sizes of several supports, which are rows (s, most) filled up with −1."""
        row, place = np.nonzero(rows >= 0)
        inside = np.zeros((rows.shape[0], self.n_units), dtype=bool)
        inside[row, self.unit[rows[row, place]]] = True
        return inside @ self.cost

    @cached
    def kinds(self) -> list[str]:
        """What is asked, in words."""
        asked = {
            "included columns": self.include.any(),
            "excluded columns": self.exclude.any(),
            "groups of columns": self.grouped or self.weighted,
            "signs or bounds": self.bounded,
        }
        return [words for words, there in asked.items() if there]

    @property
    def plain(self) -> bool:
        """Whether nothing is asked: every subset is allowed, and its columns are its size."""
        return not self.kinds

    @cached
    def atoms(self) -> Index:
        """A number for each column, shape (p,); columns with equal numbers are in fits together.

        The columns of a unit without bounds have the unit's number. In a unit with a bound one
        coefficient may be at 0 while the others are not, so that each of its columns has a number
        of its own. Excluded columns have the number −1.
        """
        found, bounds = self.unit.copy(), np.isfinite(self.lower) | np.isfinite(self.upper)
        alone = np.isin(self.unit, self.unit[bounds])
        found[alone] = self.n_units + np.flatnonzero(alone)
        found[self.exclude[self.unit]] = -1
        return found

    @cached
    def columns(self) -> tuple[Index, ...]:
        """The columns of every unit, in increasing order."""
        order = np.argsort(self.unit, kind="stable")
        return tuple(np.split(order, np.searchsorted(self.unit[order], np.arange(1, self.n_units))))

    @cached
    def left(self) -> UnitsLeft:
        """The units that are not excluded, at least one."""
        units = np.flatnonzero(~self.exclude)
        place = np.full(self.n_units, -1)
        place[units] = np.arange(units.size)
        columns = [self.columns[u] for u in units]
        return UnitsLeft(
            units,
            place,
            np.concatenate(columns),
            np.cumsum([0, *(some.size for some in columns)]).astype(np.int64),
            self.include[units].astype(np.int8),
        )

    @cached
    def max_size(self) -> int:
        """The largest size of a model; every size from ``min_size`` on has a model."""
        return int(self.cost[~self.exclude].sum())

    @cached
    def min_size(self) -> int:
        """The least size of a model: that of the units that are included."""
        return int(self.cost[self.include].sum())

    @cached
    def sizes(self) -> Index:
        """The sizes ≥ 1 that the units of some model count together, increasing."""
        found = np.zeros(self.max_size + 1, dtype=bool)
        found[self.min_size] = True
        for cost in self.cost[~(self.include | self.exclude)].tolist():
            found[cost:] |= found[:-cost].copy()
        return np.flatnonzero(found[1:]) + 1

    @cached
    def _choosable(self) -> list[int]:
        """The units that may be in a model and need not, those that count most first."""
        free = np.flatnonzero(~(self.include | self.exclude))
        return [int(u) for u in free[np.argsort(-self.cost[free], kind="stable")]]

    def count_models(self, size: int) -> int:
        """How many supports :meth:`models` names at most; 0 for a size below ``min_size``."""
        free, room = self._choosable, size - self.min_size
        if not self.weighted:
            return comb(len(free), max(room, 0))
        ways = [1] + [0] * max(room, 0)  # by what is counted: sets of the units so far
        for cost in self.cost[free].tolist():
            for total in range(len(ways) - 1, cost - 1, -1):
                ways[total] += ways[total - cost]
        return sum(ways) if room >= 0 else 0

    def models(self, size: int) -> Iterator[list[int]]:
        """The units of every support of a size, one support after the other.

        Where a unit counts more than once, these are the supports of at most the size that no
        further unit fits into, as others are no better.

        size: At least ``min_size``.
        """
        inside, free = np.flatnonzero(self.include).tolist(), self._choosable
        room = size - self.min_size
        if not self.weighted:
            yield from ([*inside, *more] for more in combinations(sorted(free), room))
            return
        costs = self.cost[free].tolist()
        # Each entry: units, what is left of the size, the next unit, the least that was left out.
        open_sets = [(inside, room, 0, math.inf)]
        while open_sets:
            units, left, i, least = open_sets.pop()
            if i == len(free):
                if left < least:
                    yield units
                continue
            open_sets.append((units, left, i + 1, min(least, costs[i])))
            if costs[i] <= left:
                open_sets.append(([*units, free[i]], left - costs[i], i + 1, least))

    def units(self, support: ArrayLike) -> Index:
        """The units that the columns of a support belong to, in increasing order."""
        return np.unique(self.unit[np.asarray(support, dtype=np.intp)])

    def columns_of(self, units: ArrayLike) -> Index:
        """The columns of some units, in increasing order."""
        return np.flatnonzero(self._mask(units)[self.unit])

    def _mask(self, units: ArrayLike) -> Mask:
        """A mask (m,) of all units that is True for the given numbers."""
        chosen = np.zeros(self.n_units, dtype=bool)
        chosen[np.asarray(units, dtype=np.intp)] = True
        return chosen

    def allowed(self, support: ArrayLike) -> bool:
        """Whether the columns may be a support: whole units, the included, none of the excluded."""
        columns = np.unique(np.asarray(support, dtype=np.intp))
        inside = self._mask(self.unit[columns])
        if int(np.sum(inside[self.unit])) != columns.size:
            return False
        return not ((inside & self.exclude).any() or (self.include & ~inside).any())

    def mask(self, support: ArrayLike) -> np.uint64:
        """The units of a support as the bits of a number; there are at most 64 units in all."""
        bits = np.uint64(1) << self.units(support).astype(np.uint64)
        return np.uint64(np.bitwise_or.reduce(bits))

    def columns_in(self, mask: np.uint64) -> Index:
        """The columns of the units that are bits of a number."""
        return self.columns_of(from_mask(np.array([mask])))

    def padded(self, support: ArrayLike, size: int) -> Index:
        """The columns of a support of ``size`` units, with the first other units added as needed.

        Where a unit counts more than once nothing is added: the best support of a size is that of
        at most the size.

        support: Columns of an allowed support. One of at least ``size`` units is returned as it is.
        """
        if self.weighted:
            return np.unique(np.asarray(support, dtype=np.intp))
        inside = self._mask(self.unit[np.asarray(support, dtype=np.intp)])
        missing = size - int(np.count_nonzero(inside))
        if missing > 0:
            inside[np.flatnonzero(~(inside | self.exclude))[:missing]] = True
        return np.flatnonzero(inside[self.unit])

    def restricted(self, columns: ArrayLike) -> UnitConstraints:
        """The constraints of a sub-problem on some of the columns, in the order given.

        A unit stays with those of its columns that are among ``columns``. A unit without such a
        column is left out, even if it was included. All other constraints stay.

        Raises InputError: Every unit that stays is excluded.
        """
        at = np.asarray(columns, dtype=np.intp)
        unit = self.unit[at]
        return UnitConstraints.of(
            at.size,
            unit=unit,
            include=np.flatnonzero(self.include[unit]),
            exclude=np.flatnonzero(self.exclude[unit]),
            cost=self.cost[unit],
            bounds=(self.lower[at], self.upper[at]),
        )

    def most_columns(self, size: int) -> int:
        """A bound on the number of columns of a model of at most a size.

        It is attained where no unit is included; included units are not looked at.
        """
        widths = np.bincount(self.unit[~self.exclude[self.unit]], minlength=self.n_units)
        if not self.weighted:
            return int(np.sort(widths)[::-1][:size].sum())
        most = np.zeros(min(size, self.max_size) + 1, dtype=np.intp)  # by what is counted so far
        for width, cost in zip(widths.tolist(), self.cost.tolist(), strict=True):
            if cost < most.size:
                most[cost:] = np.maximum(most[cost:], most[:-cost] + width)
        return int(most[-1])

    def scaled(self, lengths: Array) -> UnitConstraints:
        """The constraints of columns divided by ``lengths``, shape (p,): bounds are multiplied."""
        if not self.bounded:
            return self
        return replace(self, lower=self.lower * lengths, upper=self.upper * lengths)

    def checked_size(self, size: int) -> int:
        """The size itself.

        Raises InputError: The size is below ``min_size`` or above ``max_size``.
        """
        if size < self.min_size:
            raise InputError(
                f"a size of {size} is too small: the included columns take {self.min_size}"
            )
        if size > self.max_size:
            raise InputError(
                f"a size of {size} is too large: {self.max_size} can be in, where {self._counts} "
                "and excluded columns do not count"
            )
        return size

    @property
    def _counts(self) -> str:
        """How a group of columns counts in a size, in words."""
        if self.weighted:
            return "a group of columns counts its coefficients"
        return "a group of columns counts once"

    def digest(self) -> str:
        """A hash of the record that is the same in every process."""
        arrays: tuple[NDArray[Any], ...] = self.unit, self.include, self.exclude
        arrays = *arrays, self.lower, self.upper, *([self.cost] if self.weighted else [])
        return sha256(repr([values.tobytes() for values in arrays]).encode()).hexdigest()
