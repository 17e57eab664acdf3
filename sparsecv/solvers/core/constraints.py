"""Constraints on the columns of one training problem: groups, columns in or out, heredity, bounds.

A *unit* is a group of columns that enter a model together and count once; by default every column
is a unit of its own. A size counts units, a support lists columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
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
class Constraints:
    """What a support and its coefficients must obey; :meth:`of` makes and checks it.

    Attributes
    ----------
    unit : ndarray of int, shape (p,)
        Unit of each column; units 0..m−1 are numbered in the order of their first columns.
    include, exclude : ndarray of bool, shape (m,)
        Units that must be in every model, and units that may be in none. What follows by heredity
        is marked too, except a parent that one of several units may serve as.
    parents : ndarray of int, shape (e, 2)
        Pairs (child unit, parent unit).
    strong : bool
        Whether a child needs all its parents; otherwise a child needs at least one.
    lower, upper : ndarray of float, shape (p,)
        Bounds on the coefficients, lower ≤ 0 ≤ upper, infinite where there is none.
    """

    unit: Index
    include: Mask
    exclude: Mask
    parents: Index
    strong: bool
    lower: Array
    upper: Array

    @classmethod
    @lru_cache(maxsize=64)
    def none(cls, p: int) -> Constraints:
        """The record of p columns on which nothing is asked."""
        nothing, far = np.zeros(p, dtype=bool), np.full(p, np.inf)
        pairs = np.zeros((0, 2), dtype=np.intp)
        return cls(np.arange(p), nothing, nothing, pairs, True, -far, far)

    @classmethod
    def of(
        cls,
        p: int,
        *,
        unit: ArrayLike | None = None,
        include: Iterable[int] = (),
        exclude: Iterable[int] = (),
        parents: Iterable[tuple[int, int]] = (),
        strong: bool = True,
        bounds: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf),
        called: Callable[[int], str] = "column {}".format,
    ) -> Constraints:
        """Make the record of p columns, with all that follows by heredity, and check it.

        Parameters
        ----------
        p : int
            Number of columns.
        unit : array of int, shape (p,), optional
            Columns with the same number are one unit; by default each column is one.
        include, exclude : iterables of int
            Columns whose units must be in every model, or in none.
        parents : iterable of (int, int)
            Pairs (child column, parent column). A child and a parent of one unit ask for nothing.
        strong : bool
        bounds : pair of arrays, shape (p,), or of numbers
            Least and greatest coefficient of every column.
        called : callable
            Takes a column and returns what messages call that column.

        Returns
        -------
        Constraints

        Raises
        ------
        InputError
            A bound that leaves out 0, columns that must be both in and out, or a circle of parents.
        """
        given = np.arange(p) if unit is None else np.asarray(unit)
        _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
        units = np.argsort(np.argsort(first))[inverse].astype(np.intp)
        m, at_first = first.size, np.sort(first)
        low, high = (np.full(p, ends, dtype=np.float64) for ends in bounds)
        for j in np.flatnonzero(~((low <= 0.0) & (high >= 0.0))).tolist():
            raise InputError(
                f"the bounds of {called(j)} must hold 0, the value of a column that is left out; "
                f"got {low[j]:g} to {high[j]:g}"
            )
        pairs = [(int(units[c]), int(units[a])) for c, a in parents]
        served = {c for c, a in pairs if c == a} if not strong else set()
        kept = sorted({(c, a) for c, a in pairs if c != a and c not in served})
        made = cls(
            units,
            _marked(m, units, include),
            _marked(m, units, exclude),
            np.array(kept, dtype=np.intp).reshape(len(kept), 2),
            strong,
            low,
            high,
        )
        return made._with_consequences(lambda u: called(int(at_first[u])))

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
    def plain(self) -> bool:
        """Whether nothing is asked, so that every subset of columns is allowed."""
        asked = self.include.any() or self.exclude.any() or self.parents.size
        return not (self.grouped or asked or self.bounded)

    @property
    def kinds(self) -> list[str]:
        """What is asked, in words."""
        asked = {
            "included columns": self.include.any(),
            "excluded columns": self.exclude.any(),
            "groups of columns": self.grouped,
            "heredity": self.parents.size > 0,
            "signs or bounds": self.bounded,
        }
        return [words for words, there in asked.items() if there]

    @cached
    def columns(self) -> tuple[Index, ...]:
        """The columns of every unit, in increasing order."""
        order = np.argsort(self.unit, kind="stable")
        return tuple(np.split(order, np.searchsorted(self.unit[order], np.arange(1, self.n_units))))

    @cached
    def parents_of(self) -> dict[int, list[int]]:
        """The parents of every unit that has some."""
        found: dict[int, list[int]] = {}
        for child, parent in self.parents.tolist():
            found.setdefault(child, []).append(parent)
        return found

    @cached
    def left(self) -> UnitsLeft:
        """The units that are not excluded."""
        units = np.flatnonzero(~self.exclude)
        place = np.full(self.n_units, -1)
        place[units] = np.arange(units.size)
        above = [place[self.parents_of.get(u, [])] for u in units.tolist()]
        parents = [some[some >= 0] for some in above]
        lengths = [self.columns[u].size for u in units]
        return UnitsLeft(
            units,
            place,
            np.concatenate([self.columns[u] for u in units]),
            np.cumsum([0, *lengths]).astype(np.int64),
            np.cumsum([0, *(some.size for some in parents)]).astype(np.int64),
            np.concatenate(parents).astype(np.int64),
            self.include[units].astype(np.int8),
        )

    @property
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
        wanting = [
            u for u in np.flatnonzero(self.include).tolist() if self.lacks_parent(u, self.include)
        ]
        if not wanting:  # Under strong heredity all parents are marked already.
            return self.include
        from scipy.optimize import LinearConstraint, milp  # Half a second that few need.

        m, rows = self.n_units, np.zeros((len(self.parents_of), self.n_units))
        for row, (child, parents) in zip(rows, self.parents_of.items(), strict=True):
            row[child], row[parents] = 1.0, -1.0
        between = np.column_stack([self.include, ~self.exclude]).astype(float)
        found = milp(
            np.ones(m),
            integrality=np.ones(m),
            bounds=(between[:, 0], between[:, 1]),
            constraints=LinearConstraint(rows, -np.inf, 0.0),
        )
        if found.x is None:
            raise RuntimeError(f"no smallest model was found: {found.message}")
        return np.asarray(found.x > 0.5)

    def units(self, support: ArrayLike) -> Index:
        """The units that the columns of a support belong to, in increasing order."""
        return np.unique(self.unit[np.asarray(support, dtype=np.intp)])

    def columns_of(self, units: ArrayLike) -> Index:
        """The columns of some units, in increasing order."""
        chosen = np.zeros(self.n_units, dtype=bool)
        chosen[np.asarray(units, dtype=np.intp)] = True
        return np.flatnonzero(chosen[self.unit])

    def allowed(self, support: ArrayLike) -> bool:
        """Whether the columns may be a support: whole units, and all that must be with them."""
        columns = np.unique(np.asarray(support, dtype=np.intp))
        inside = np.zeros(self.n_units, dtype=bool)
        inside[self.unit[columns]] = True
        if int(np.sum(inside[self.unit])) != columns.size:
            return False
        if (inside & self.exclude).any() or (self.include & ~inside).any():
            return False
        return not any(inside[u] and self.lacks_parent(u, inside) for u in self.parents_of)

    def closed(self, units: ArrayLike, worth: Array | None = None) -> Index:
        """The units with all included units and all parents that heredity asks for.

        units: Units that are not excluded.
        worth, shape (m,): Of several parents under weak heredity the one of most worth is taken, or
            by default the first one.
        """
        inside = self.least.copy()
        new = [int(u) for u in np.asarray(units, dtype=np.intp).ravel()]
        inside[new] = True
        while new:
            unit = new.pop()
            inside[unit] = True
            if self.lacks_parent(unit, inside):
                parents = [a for a in self.parents_of[unit] if not self.exclude[a]]
                if not self.strong and worth is not None:
                    parents.sort(key=lambda a: -worth[a])
                new += [a for a in parents if not inside[a]] if self.strong else parents[:1]
        return np.flatnonzero(inside)

    def padded(self, support: ArrayLike, size: int, worth: Array | None = None) -> Index:
        """The columns of an allowed support with further units, until it has ``size`` units.

        support: Columns of a support that is allowed, of at most ``size`` units.
        worth, shape (m,): Units of most worth come first, or by default the first units.
        """
        inside = np.zeros(self.n_units, dtype=bool)
        inside[self.units(support)] = True
        order = range(self.n_units) if worth is None else np.argsort(-worth, kind="stable").tolist()
        wanted = min(size, self.max_size)
        while int(inside.sum()) < wanted:
            at = next(
                u
                for u in order
                if not (inside[u] or self.exclude[u] or self.lacks_parent(u, inside))
            )
            inside[at] = True
        return np.flatnonzero(inside[self.unit])

    def restricted(
        self, columns: ArrayLike, called: Callable[[int], str] = "column {}".format
    ) -> Constraints:
        """The constraints of a sub-problem on some of the columns, in the order given.

        A unit without a column left is out: children that need it are excluded, and where it was
        included nothing stands for it. What else was asked stays.

        called: What messages call a column of the whole problem.
        Raises InputError: An included unit needs a unit that is out, or nothing is left.
        """
        at = np.asarray(columns, dtype=np.intp)
        here = np.zeros(self.n_units, dtype=bool)
        here[self.unit[at]] = True
        place = np.full(self.p, -1)
        place[at[::-1]] = np.arange(at.size)[::-1]
        first = [int(place[c][place[c] >= 0].min(initial=self.p)) for c in self.columns]
        out = self.exclude | ~here
        shut = out | self._shut(out)
        for unit in np.flatnonzero(self.include & shut & here).tolist():
            lost = next(a for a in self.parents_of[unit] if shut[a])
            own, parent = (called(int(self.columns[u][0])) for u in (unit, lost))
            raise InputError(f"{own} cannot be included: its parent {parent} cannot be in")
        return Constraints.of(
            at.size,
            unit=self.unit[at],
            include=[first[u] for u in np.flatnonzero(self.include & here)],
            exclude=[first[u] for u in np.flatnonzero(shut & here)],
            parents=[(first[c], first[a]) for c, a in self.parents.tolist() if here[c] and here[a]],
            strong=self.strong,
            bounds=(self.lower[at], self.upper[at]),
            called=lambda j: called(int(at[j])),
        )

    def most_columns(self, size: int) -> int:
        """The largest number of columns of a model of ``size`` units."""
        widths = np.sort(np.bincount(self.unit[~self.exclude[self.unit]], minlength=self.n_units))
        return int(widths[::-1][:size].sum())

    def scaled(self, lengths: Array) -> Constraints:
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

    def lacks_parent(self, unit: int, inside: Mask) -> bool:
        """Whether a unit needs a parent that is not inside."""
        parents = self.parents_of.get(unit)
        if not parents:
            return False
        found = inside[parents]
        return not (found.all() if self.strong else found.any())

    def _shut(self, out: Mask) -> Mask:
        """Units that cannot be in because of parents that are out; shape (m,)."""
        shut = out.copy()
        new = True
        while new:
            more = [u for u in self.parents_of if not shut[u] and self.lacks_parent(u, ~shut)]
            shut[more] = True
            new = bool(more)
        return shut

    def _with_consequences(self, called: Callable[[int], str]) -> Constraints:
        """The record with the units that heredity puts in or out.

        Raises InputError: A unit would have to be in and out, no unit may be in, or parents run in
            a circle.
        """
        for unit in np.flatnonzero(self.include & self.exclude).tolist():
            raise InputError(f"{called(unit)} is both included and excluded: ask for one of them")
        height = self._generations(called)
        out = self._shut(self.exclude)
        inside = self.include.copy()
        for unit in np.argsort(-height, kind="stable").tolist():  # children before their parents
            if inside[unit] and out[unit]:
                lost = next(a for a in self.parents_of[unit] if out[a])
                raise InputError(
                    f"{called(unit)} cannot be in every model, because its parent {called(lost)} "
                    "is excluded"
                )
            if inside[unit] and unit in self.parents_of:
                parents = self.parents_of[unit]
                left = [a for a in parents if not out[a]]
                if self.strong or len(left) == 1:
                    inside[parents if self.strong else left] = True
        if out.all():
            raise InputError("every column is excluded: there is nothing to select from")
        return replace(self, include=inside, exclude=out)

    def _generations(self, called: Callable[[int], str]) -> Index:
        """The longest chain of parents above every unit, shape (m,).

        Raises InputError: Parents run in a circle.
        """
        height = np.zeros(self.n_units, dtype=np.intp)
        for _ in range(self.n_units + 1):
            above = height.copy()
            np.maximum.at(above, self.parents[:, 0], height[self.parents[:, 1]] + 1)
            if (above == height).all():
                return height
            height = above
        unit = int(height.argmax())
        raise InputError(
            f"{called(unit)} is an ancestor of itself: parents may not run in a circle"
        )

    def digest(self) -> str:
        """A hash of the record that is the same in every process."""
        return sha256(repr(self._key()).encode()).hexdigest()

    def _key(self) -> tuple[object, ...]:
        arrays = self.unit, self.include, self.exclude, self.parents, self.lower, self.upper
        return (self.strong, *(values.tobytes() for values in arrays))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraints) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _marked(m: int, units: Index, columns: Iterable[int]) -> Mask:
    """Which of m units hold one of the columns."""
    found = np.zeros(m, dtype=bool)
    found[units[np.fromiter(columns, dtype=np.intp)]] = True
    return found
