"""What a user asks of the columns, by names or positions, turned into one record of constraints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from .constraints import Array, Index, UnitConstraints

# What a size may count; the first is the default.
COUNTS = ("coefficients", "groups")


class ResolvedRules(NamedTuple):
    """Constraints of the columns of a table, once names are places.

    groups: The columns of every group that was named.
    in_coefficients: Whether sizes are to count coefficients, once the rows are known.
    """

    constraints: UnitConstraints
    groups: Mapping[str, list[int]] = MappingProxyType({})
    in_coefficients: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """The least and the largest size that a model may have."""
        return max(1, self.constraints.min_size), self.constraints.max_size

    def by_position(self) -> Constraints:
        """Constraints that ask for the same, with positions for names."""
        own = self.constraints
        labels: list[str | None] = [None] * own.p
        for u, some in enumerate(own.columns):
            for j in some.tolist() if some.size > 1 else ():
                labels[j] = f"group {u}"
        bounds = enumerate(zip(own.lower.tolist(), own.upper.tolist(), strict=True))
        return Constraints(
            include=own.columns_of(np.flatnonzero(own.include)).tolist(),
            exclude=own.columns_of(np.flatnonzero(own.exclude)).tolist(),
            groups=labels if own.grouped else None,
            count=COUNTS[0 if own.weighted else 1],
            bounds={j: (a, b) for j, (a, b) in bounds if min(-a, b) < math.inf},
        )


@dataclass(frozen=True, eq=False, repr=False)
class Constraints:
    """What a model must obey: which columns enter, which enter together, signs and bounds.

    Parameters
    ----------
    include, exclude : list of str or int, or None
        Columns that are in every model, and columns that are in none, by name or position; the name
        of a group stands for its columns. A numpy array of p truths, one for each column of the
        table, is taken, too.
    groups : list, dict or None
        A label for each column, or from names of groups to columns. The columns of a group, such as
        the 0/1 columns of a factor, enter together. A label of None leaves a column by itself.
    count : str
        What a size counts. With "coefficients" a group counts the rank of its centred columns over
        all rows: a number counts 1, and a factor of L levels L − 1. With "groups" a group counts
        once. More than 45 columns and groups, groups whose tree has no room, tables of Dask, ranges
        of γ, outside solvers and the methods "search" and "grid" have sizes in groups.
    positive : bool or list of str or int
        True, or the columns whose coefficients may not be negative.
    bounds : dict or None
        From columns to (low, high), low ≤ 0 ≤ high, in the units of the coefficients; None in place
        of an end is no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv import Constraints, SparseRidge
    >>> rules = Constraints(include=[1], bounds={0: (0.0, 1.5)})
    >>> rules
    Constraints(include=[1], bounds={0: (0.0, 1.5)})
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]])
    >>> model = SparseRidge(tau=2, gamma=0.1, constraints=rules).fit(X, 2.0 * X[:, 0])
    >>> model.support_, float(model.coef_[0])
    (array([0, 1]), 1.5)
    """

    include: Any = None
    exclude: Any = None
    groups: Any = None
    positive: Any = False
    bounds: Any = None
    count: Any = COUNTS[0]

    def __repr__(self) -> str:
        asked = (f"{name}={value!r}" for name, value in vars(self).items() if self._asks(name))
        return f"Constraints({', '.join(asked)})"

    def resolve(
        self,
        p: int,
        names: Sequence[str] | None = None,
        places: Sequence[tuple[str, list[int]]] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> ResolvedRules:
        """Return what is asked of the p columns of a table, once names are places.

        Parameters
        ----------
        p : int
            Number of columns.
        names : list of str, optional
            Names of the columns, if they have some.
        places : list of (name, positions), optional
            Of each column of the user's table its name, and the columns among the p that stand for
            it. Names and positions that the user gives then mean the table's columns, and columns
            that stand for one column enter together unless a group names one of them.
        numbers : list of int, optional
            The names of the columns of the user's table, where these are numbers. A number in the
            rules then means the column of that name, whatever its position.

        Returns
        -------
        ResolvedRules

        Raises
        ------
        InputError
            A column is unknown, or the rules cannot be obeyed together.
        """
        if self.count not in COUNTS:
            raise InputError(f"count must be {' or '.join(map(repr, COUNTS))}; got {self.count!r}")
        if places is None and not any(map(self._asks, vars(self))):
            return ResolvedRules(UnitConstraints.none(p))
        return _Resolver(p, names, places, numbers).resolve(self)

    def _asks(self, name: str) -> bool:
        """Whether the value of a parameter asks for something that is not so by itself."""
        value = getattr(self, name)
        return value != COUNTS[0] if name == "count" else _asks(value)


# The columns of groups, by the names of the groups.
Groups = dict[str, list[int]]


class _Resolver:
    """Turns names and positions in a user's rules into positions among the p columns solved for.

    p, names: The number of these columns, and their names, if they have any.
    places: The name of every column of the user's table, with those of the p columns that stand for
        it. None where the p columns are themselves the columns of the table.
    numbers: The number by which the user's rules call each column of the table; None for 0, 1, ….

    given: ``given[i]`` lists the columns, among the p, that a user's position i means.
    numbered: The columns, among the p, that a number in the user's rules means.
    table: The same by the names of the table's columns; empty without ``places``.
    names, named: What messages call the p columns, and whether the user gave these names.
    place: The column of every given name; of columns that share a name it is the first.
    """

    def __init__(
        self,
        p: int,
        names: Sequence[str] | None,
        places: Sequence[tuple[str, list[int]]] | None,
        numbers: Sequence[int] | None,
    ) -> None:
        self.given = [[j] for j in range(p)] if places is None else [at for _, at in places]
        self.table = dict(places or ())
        known = range(len(self.given)) if numbers is None else numbers
        self.numbered = dict(zip(known, self.given, strict=True))
        self.p, self.named = p, names is not None
        self.names = [str(j) for j in range(p)] if names is None else list(names)
        self.place: dict[str, int] = {}
        for j, name in enumerate(self.names if self.named else ()):
            self.place.setdefault(name, j)

    def resolve(self, rules: Constraints) -> ResolvedRules:
        """The constraints that the rules ask for; sizes count units until the rows are known.

        Raises InputError: A column is unknown, or the rules cannot be obeyed together.
        """
        groups = self.groups(rules.groups)
        made = UnitConstraints.of(
            self.p,
            unit=self.units(groups),
            include=self.columns(rules.include, "include", groups),
            exclude=self.columns(rules.exclude, "exclude", groups),
            bounds=self.intervals(rules, groups),
            called=self.called,
        )
        return ResolvedRules(made, groups, rules.count == COUNTS[0])

    def called(self, column: int) -> str:
        """What messages call a column."""
        return f"column {self.names[column]!r}" if self.named else f"column {column}"

    def one(self, given: Any, what: str, groups: Groups) -> list[int]:
        """The columns that one name or position stands for; ``groups`` have names, too.

        Where a column and a group share a name, the column is meant.
        Raises InputError: There is no such column.
        """
        if isinstance(given, str):
            if given in self.place:
                return [self.place[given]]
            if given in groups:
                return groups[given]
            if given in self.table:
                return self.table[given]
            if not self.named:
                raise InputError(
                    f"{what}: the columns have no names here, so {given!r} is unknown: give "
                    "positions, or a data frame"
                )
            known = [*self.table, *self.names]
            raise InputError(f"{what}: there is no column {given!r}; {_near(given, known)}")
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            if (number := int(given)) in self.numbered:
                return self.numbered[number]
            known = list(map(str, self.numbered))
            in_order = list(self.numbered) == list(range(len(known)))
            words = f"0 to {known[-1]}" if in_order else _some(known)
            raise InputError(f"{what}: there is no column {given}; columns are {words}")
        raise InputError(f"{what}: a column is a name or a position; got {given!r}")

    def columns(self, given: Any, what: str, groups: Groups) -> list[int]:
        """The columns of a list of names and positions, one position, or a mask with p booleans.

        given: What the user wrote; None and False stand for no column.
        what: The name of the user's argument, for messages.
        groups: The columns of every group, by the name of the group.
        Raises InputError: ``given`` is nothing of this kind, or names a column that is not there.
        """
        if given is None or given is False:
            return []
        if isinstance(given, str):
            raise InputError(
                f"{what} must be a list of columns, such as [{given!r}]; got {given!r}"
            )
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            return self.one(given, what, groups)
        mask = isinstance(given, np.ndarray) and given.dtype == bool
        if mask and given.shape == (len(self.given),):
            return [c for j in np.flatnonzero(given) for c in self.given[j]]
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            raise InputError(f"{what} must list columns by name or position; got {given!r}")
        return [j for one in given for j in self.one(one, what, groups)]

    def labels(self, given: Any) -> list[Any]:
        """The labels of groups that are given one for every column of the table.

        Raises InputError: They are no list, or not as many as the columns.
        """
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"groups must be labels for all columns or a mapping; got {given!r}")
        values = list(given)
        p = len(self.given)
        if len(values) != p:
            raise InputError(f"groups has {len(values)} labels for {p} columns: give one each")
        return values

    def groups(self, given: Any) -> Groups:
        """The columns of every group that is named, and of table columns that several stand for."""
        found: Groups = {}
        if isinstance(given, Mapping):
            found = {str(n): self.columns(some, "groups", {}) for n, some in given.items()}
            if len(found) < len(given):
                raise InputError("groups has two names of the same text: give each group its own")
        elif given is not None:
            for j, label in enumerate(self.labels(given)):
                if label is not None and label == label:  # NaN is no label, too
                    found.setdefault(str(label), []).extend(self.given[j])
        grouped = {j for columns in found.values() for j in columns}
        for name, columns in self.table.items():
            if len(columns) > 1 and not grouped & set(columns):
                if name in found:
                    raise InputError(
                        f"groups: {name!r} is a column of the table that is a group by itself: "
                        "give the group of other columns another name"
                    )
                found[name] = columns
        return found

    def units(self, groups: Groups) -> Index:
        """The number of the unit of every column, shape (p,): the first column of its group.

        Raises InputError: A column is in two groups.
        """
        unit, taken = np.arange(self.p), dict[int, str]()
        for name, columns in groups.items():
            for j in columns:
                if taken.setdefault(j, name) != name:
                    raise InputError(
                        f"groups: {self.called(j)} is in the groups {taken[j]!r} and {name!r}"
                    )
            unit[columns] = min(columns, default=0)
        return unit

    def intervals(self, rules: Constraints, groups: Groups) -> tuple[Array, Array]:
        """Lower and upper bounds of all coefficients, shape (p,) each, infinite without a bound.

        Where several entries bound a column, as its own name and its group's do, all of them hold.
        Raises InputError: An entry is no pair of numbers with low ≤ 0 ≤ high, or names no column.
        """
        low, high = np.full(self.p, -np.inf), np.full(self.p, np.inf)
        if not (rules.bounds is None or isinstance(rules.bounds, Mapping)):
            raise InputError(f"bounds must map columns to (low, high); got {rules.bounds!r}")
        for given, pair in (rules.bounds or {}).items():
            try:
                least, most = list(() if isinstance(pair, str) else pair)
            except (TypeError, ValueError):
                least, most = np.nan, np.nan
            if any(isinstance(end, (bool, np.bool_)) for end in (least, most)):
                raise InputError(
                    f"bounds of {given!r}: True and False are no numbers; give (low, high), each a "
                    f"number or None for no bound; got {pair!r}"
                )
            ends = (
                _number(-np.inf if least is None else least),
                _number(np.inf if most is None else most),
            )
            if not ends[0] <= 0.0 <= ends[1]:
                raise InputError(
                    f"bounds of {given!r}: give (low, high) with low <= 0 <= high, each a number "
                    "or None: the coefficient of a column that is left out is 0; got "
                    f"{pair!r}"
                )
            for j in self.one(given, "bounds", groups):
                low[j], high[j] = max(low[j], ends[0]), min(high[j], ends[1])
        if rules.positive is True:
            low[:] = 0.0
        else:
            low[self.columns(rules.positive, "positive", groups)] = 0.0
        return low, high


def _asks(value: Any) -> bool:
    """Whether the value of a parameter asks for something."""
    if value is None or value is False:
        return False
    return not (isinstance(value, (list, tuple, dict, str)) and len(value) == 0)


def _number(value: Any) -> float:
    """A value as a number; NaN where it is none, as a text is none even if it shows a number."""
    if isinstance(value, (str, bytes)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _near(given: str, names: Sequence[str]) -> str:
    """Words that offer the names most like the given name."""
    from difflib import get_close_matches

    close = get_close_matches(given, names, n=3)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return f"columns are {_some(names)}"


def _some(names: Sequence[str]) -> str:
    """The first eight names, in words."""
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
