"""Constraints on the columns of one training problem: groups, columns in or out, heredity, bounds.

A *unit* is a group of columns that enter a model together and count once; by default every column
is a unit of its own. A size counts units, a support lists columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InputError
from .threads import cached

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


class UnitsLeft(NamedTuple):
    """The units that are not excluded, under new numbers 0, 1, …, as kernels take them.

    units, shape (m,): Their numbers among all units; ``place`` has the new number of every unit,
        −1 for excluded units.
    columns, first, shape (p,) and (m + 1,): Their columns, sorted by unit; those of the u-th unit
        are columns[first[u]:first[u + 1]].
    parents, parent_at, shape (m + 1,): The parents of the u-th unit are
        parents[parent_at[u]:parent_at[u + 1]].
    include, shape (m,): 1 for units that must be in.
    """

    units: Index
    place: Index
    columns: Index
    first: NDArray[np.int64]
    parent_at: NDArray[np.int64]
    parents: NDArray[np.int64]
    include: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class UnitConstraints:
    """What a support and its coefficients must obey; :meth:`of` makes and checks it.

    Attributes
    ----------
    unit : ndarray of int, shape (p,)
        Unit of each column; units 0..m−1 are numbered in the order of their first columns.
    include, exclude : ndarray of bool, shape (m,)
        Units that must be in every model, and units that may be in none. What follows by heredity
        is marked too, except a parent that one of several units may serve as.
    parents : dict from int to list of int
        The parents of every unit that has some, in increasing order.
    strong : bool
        Whether a child needs all its parents; otherwise a child needs at least one.
    lower, upper : ndarray of float, shape (p,)
        Bounds on the coefficients, lower ≤ 0 ≤ upper, infinite where there is none.
    """

    unit: Index
    include: Mask
    exclude: Mask
    parents: Mapping[int, list[int]]
    strong: bool
    lower: Array
    upper: Array

    @classmethod
    @lru_cache(maxsize=64)
    def none(cls, p: int) -> UnitConstraints:
        """The record of p columns on which nothing is asked."""
        return cls.of(p)

    @classmethod
    def of(
        cls,
        p: int,
        *,
        unit: ArrayLike | None = None,
        include: Iterable[int] = (),
        exclude: Iterable[int] = (),
        parents: Mapping[int, Iterable[int]] = MappingProxyType({}),
        strong: bool = True,
        bounds: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf),
        called: Callable[[int], str] = "column {}".format,
    ) -> UnitConstraints:
        """Make the record of p columns, with all that follows by heredity, and check it.

        Parameters
        ----------
        p : int
            Number of columns.
        unit : array of int, shape (p,), optional
            Columns with the same number are one unit; by default each column is one.
        include, exclude : iterables of int
            Columns whose units must be in every model, or in none.
        parents : mapping from int to iterable of int
            From child columns to their parent columns. A parent in the unit of its child is always
            there.
        strong : bool
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
            Columns that must be both in and out, a circle of parents, or no column that may be in.
        """
        given = np.arange(p) if unit is None else np.asarray(unit)
        _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
        units = np.argsort(np.argsort(first))[inverse].astype(np.intp)
        above: dict[int, set[int]] = {}
        for child, some in parents.items():
            above.setdefault(int(units[child]), set()).update(units[list(some)].tolist())
        if not strong:
            above = {c: some for c, some in above.items() if c not in some}
        kept = {c: sorted(some - {c}) for c, some in sorted(above.items()) if some - {c}}
        low, high = (np.full(p, ends, dtype=np.float64) for ends in bounds)
        inside, out = np.zeros((2, first.size), dtype=bool)
        inside[units[[*include]]] = True
        out[units[[*exclude]]] = True
        made = cls(units, inside, out, kept, strong, low, high)
        made._mark_consequences(called)
        return made

    def _mark_consequences(self, called: Callable[[int], str]) -> None:
        """Mark the units that heredity puts in or out.

        Raises InputError: A unit would have to be in and out, no unit may be in, or parents run in
            a circle.
        """

        def name(unit: int) -> str:
            return called(int(self.columns[unit][0]))

        for unit in np.flatnonzero(self.include & self.exclude).tolist():
            raise InputError(f"{name(unit)} is both included and excluded: ask for one of them")
        try:
            parents_first = list(TopologicalSorter(self.parents).static_order())
        except CycleError as error:
            raise InputError(
                f"{name(error.args[1][0])} is an ancestor of itself: parents may not run in a "
                "circle"
            ) from None
        for unit in parents_first:
            self.exclude[unit] |= self.lacks_parent(unit, ~self.exclude)
        for unit in reversed(parents_first):
            left = [a for a in self.parents.get(unit, ()) if not self.exclude[a]]
            if self.include[unit] and self.exclude[unit]:
                lost = next(a for a in self.parents[unit] if self.exclude[a])
                raise InputError(
                    f"{name(unit)} cannot be in every model, because its parent {name(lost)} "
                    "is excluded"
                )
            if self.include[unit] and (self.strong or len(left) == 1):
                self.include[left] = True
        if self.exclude.all():
            raise InputError("every column is excluded: there is nothing to select from")

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
    def kinds(self) -> list[str]:
        """What is asked, in words."""
        asked = {
            "included columns": self.include.any(),
            "excluded columns": self.exclude.any(),
            "groups of columns": self.grouped,
            "heredity": bool(self.parents),
            "signs or bounds": self.bounded,
        }
        return [words for words, there in asked.items() if there]

    @property
    def plain(self) -> bool:
        """Whether nothing is asked, so that every subset of columns is allowed."""
        return not self.kinds

    @cached
    def columns(self) -> tuple[Index, ...]:
        """The columns of every unit, in increasing order."""
        order = np.argsort(self.unit, kind="stable")
        return tuple(np.split(order, np.searchsorted(self.unit[order], np.arange(1, self.n_units))))

    @cached
    def left(self) -> UnitsLeft:
        """The units that are not excluded."""
        units = np.flatnonzero(~self.exclude)
        place = np.full(self.n_units, -1)
        place[units] = np.arange(units.size)
        above = [place[self.parents.get(u, [])] for u in units.tolist()]
        parents = [some[some >= 0] for some in above]
        columns = [self.columns[u] for u in units]
        return UnitsLeft(
            units,
            place,
            np.concatenate(columns),
            np.cumsum([0, *(some.size for some in columns)]).astype(np.int64),
            np.cumsum([0, *(some.size for some in parents)]).astype(np.int64),
            np.concatenate(parents).astype(np.int64),
            self.include[units].astype(np.int8),
        )

    @cached
    def max_size(self) -> int:
        """The largest number of units of a model; every size between the two has a model."""
        return int(np.sum(~self.exclude))

    @cached
    def min_size(self) -> int:
        """The least number of units of a model: those that are included, with their parents."""
        return int(np.sum(self.least))

    @cached
    def least(self) -> Mask:
        """A smallest model, shape (m,): all included units with the parents that they need."""
        if not any(self.include[u] and self.lacks_parent(u, self.include) for u in self.parents):
            return self.include  # Under strong heredity all parents are marked already.
        from scipy.optimize import LinearConstraint, milp  # Half a second that few need.

        rows = np.zeros((len(self.parents), self.n_units))
        for row, (child, parents) in zip(rows, self.parents.items(), strict=True):
            row[child], row[parents] = 1.0, -1.0
        found = milp(
            np.ones(self.n_units),
            integrality=np.ones(self.n_units),
            bounds=(self.include.astype(float), 1.0 - self.exclude),
            constraints=LinearConstraint(rows, -np.inf, 0.0),
        )
        if found.x is None:
            raise RuntimeError(f"no smallest model was found: {found.message}")
        return np.asarray(found.x > 0.5)

    def lacks_parent(self, unit: int, inside: Mask) -> bool:
        """Whether a unit needs a parent that is not inside, a mask of units."""
        parents = self.parents.get(unit)
        if not parents:
            return False
        found = inside[parents]
        return not (found.all() if self.strong else found.any())

    def units(self, support: ArrayLike) -> Index:
        """The units that the columns of a support belong to, in increasing order."""
        return np.unique(self.unit[np.asarray(support, dtype=np.intp)])

    def columns_of(self, units: ArrayLike) -> Index:
        """The columns of some units, in increasing order."""
        return np.flatnonzero(self._mask(units)[self.unit])

    def _mask(self, units: ArrayLike) -> Mask:
        """Which units are among some, shape (m,)."""
        chosen = np.zeros(self.n_units, dtype=bool)
        chosen[np.asarray(units, dtype=np.intp)] = True
        return chosen

    def allowed(self, support: ArrayLike) -> bool:
        """Whether the columns may be a support: whole units, and all that must be with them."""
        columns = np.unique(np.asarray(support, dtype=np.intp))
        inside = self._mask(self.unit[columns])
        if int(np.sum(inside[self.unit])) != columns.size:
            return False
        if (inside & self.exclude).any() or (self.include & ~inside).any():
            return False
        return not any(inside[u] and self.lacks_parent(u, inside) for u in self.parents)

    def closed(self, units: ArrayLike, worth: Array) -> Index:
        """The units with all included units and all parents that heredity asks for.

        units: Units that are not excluded.
        worth, shape (m,): Of several parents under weak heredity the one of most worth is taken.
        """
        inside = self.least | self._mask(units)
        new = np.flatnonzero(inside).tolist()
        while new:
            unit = new.pop()
            inside[unit] = True
            if self.lacks_parent(unit, inside):
                left = [a for a in self.parents[unit] if not (self.exclude[a] or inside[a])]
                new += left if self.strong else [max(left, key=worth.__getitem__)]
        return np.flatnonzero(inside)

    def padded(self, support: ArrayLike, size: int, worth: Array | None = None) -> Index:
        """The columns of an allowed support with further units, until it has ``size`` units.

        support: Columns of a support that is allowed, of at most ``size`` units.
        worth, shape (m,): Units of most worth come first, or by default the first units.
        """
        inside = self._mask(self.units(support))
        worth = np.zeros(self.n_units) if worth is None else worth
        order = np.argsort(-worth, kind="stable").tolist()
        for _ in range(int(inside.sum()), min(size, self.max_size)):
            left = (u for u in order if not (inside[u] or self.exclude[u]))
            inside[next(u for u in left if not self.lacks_parent(u, inside))] = True
        return np.flatnonzero(inside[self.unit])

    def restricted(
        self, columns: ArrayLike, called: Callable[[int], str] = "column {}".format
    ) -> UnitConstraints:
        """The constraints of a sub-problem on some of the columns, in the order given.

        A unit without a column left is out: children that need it are excluded, and where it was
        included nothing stands for it. What else was asked stays.

        called: What messages call a column of the whole problem.
        Raises InputError: An included unit needs a unit that is out, or nothing is left.
        """
        at = np.asarray(columns, dtype=np.intp)
        here, first = self._mask(self.unit[at]), np.zeros(self.n_units, dtype=np.intp)
        first[self.unit[at][::-1]] = np.arange(at.size)[::-1]
        out = self.exclude.copy()
        for child in self.parents:
            if here[child] and self.lacks_parent(child, here):
                out[child] = True
                lost = next(a for a in self.parents[child] if not here[a])
                own, parent = (called(int(self.columns[u][0])) for u in (child, lost))
                if self.include[child]:
                    raise InputError(f"{own} cannot be included: its parent {parent} cannot be in")
        return UnitConstraints.of(
            at.size,
            unit=self.unit[at],
            include=first[self.include & here],
            exclude=first[out & here],
            parents={
                int(first[c]): first[[a for a in some if here[a]]]
                for c, some in self.parents.items()
                if here[c]
            },
            strong=self.strong,
            bounds=(self.lower[at], self.upper[at]),
            called=lambda j: called(int(at[j])),
        )

    def most_columns(self, size: int) -> int:
        """The largest number of columns of a model of ``size`` units."""
        widths = np.sort(np.bincount(self.unit[~self.exclude[self.unit]], minlength=self.n_units))
        return int(widths[::-1][:size].sum())

    def scaled(self, lengths: Array) -> UnitConstraints:
        """The constraints of columns divided by ``lengths``, shape (p,): bounds are multiplied."""
        if not self.bounded:
            return self
        return replace(self, lower=self.lower * lengths, upper=self.upper * lengths)

    def checked_size(self, size: int) -> int:
        """The size itself.

        Raises InputError: No model has so few units, or so many.
        """
        if size < self.min_size:
            raise InputError(
                f"a size of {size} is too small: the included columns with their parents "
                f"take {self.min_size}"
            )
        if size > self.max_size:
            raise InputError(
                f"a size of {size} is too large: {self.max_size} can be in, where a group of "
                "columns counts once and excluded columns do not count"
            )
        return size

    def digest(self) -> str:
        """A hash of the record that is the same in every process."""
        arrays = self.unit, self.include, self.exclude, self.lower, self.upper
        held = (self.strong, sorted(self.parents.items()), *(values.tobytes() for values in arrays))
        return sha256(repr(held).encode()).hexdigest()
