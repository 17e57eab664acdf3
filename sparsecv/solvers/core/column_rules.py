"""What a user asks of the columns, by names or positions, turned into one record of constraints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .constraints import Array, Constraints, Index

HEREDITIES = ("strong", "weak")


class ResolvedRules(NamedTuple):
    """Constraints of the columns that are penalised, and what the penalty weighs.

    counted: Columns with a penalty factor above 0, in increasing order.
    constraints: Constraints of the counted columns.
    factors, shape (p,): Penalty factors of all columns.
    groups: The columns of every group that was named.
    """

    counted: Index
    constraints: Constraints
    factors: Array
    groups: Mapping[str, list[int]] = MappingProxyType({})

    @property
    def plain(self) -> bool:
        """Whether nothing is asked and every column is penalised alike."""
        return self.constraints.plain and bool((self.factors == 1.0).all())

    @property
    def sizes(self) -> tuple[int, int]:
        """The least and the largest size that a model may have."""
        return max(1, self.constraints.min_size), self.constraints.max_size

    def by_position(self) -> dict[str, Any]:
        """The parameters that ask for the same, with positions for names.

        Columns that follow by heredity are among ``include`` and ``exclude``.
        """
        found: dict[str, Any] = {}
        own, at = self.constraints, self.counted
        first = [int(at[columns[0]]) for columns in own.columns]
        for name, units in (("include", own.include), ("exclude", own.exclude)):
            if units.any():
                found[name] = at[own.columns_of(np.flatnonzero(units))].tolist()
        if own.grouped:
            labels: list[str | None] = [None] * self.factors.size
            for u, columns in enumerate(own.columns):
                for j in at[columns].tolist() if columns.size > 1 else ():
                    labels[j] = f"group {u}"
            found["column_groups"] = labels
        if own.parents.size:
            pairs = {first[c]: [first[a] for a in above] for c, above in own.parents_of.items()}
            found["heredity"] = ("strong" if own.strong else "weak"), pairs
        if own.bounded:
            ends = zip(at.tolist(), own.lower.tolist(), own.upper.tolist(), strict=True)
            found["bounds"] = {j: (a, b) for j, a, b in ends if min(-a, b) < math.inf}
        if (self.factors != 1.0).any():
            found["penalty_factors"] = self.factors.tolist()
        return found


@dataclass(frozen=True)
class ColumnRules:
    """What is asked of the columns of a table.

    Columns are given by name or position; the name of a group stands for all its columns.

    include, exclude: Columns that are in every model, and columns that are in none; or None.
    column_groups: A label for every column, or a mapping from group names to columns. Columns of
        one label enter together and count once. A label of None leaves a column by itself.
    heredity: "strong" or "weak", where names like ``a:b`` say what the parents are; or a mapping
        from children to their parents (strong); or a pair of "strong" or "weak" and a mapping.
    positive: True, or the columns whose coefficients may not be negative.
    bounds: A mapping from columns to (low, high), low ≤ 0 ≤ high.
    penalty_factors: p numbers ≥ 0, or a mapping from columns to numbers, 1 for the others. A column
        with factor 0 is in every model, is not penalised and does not count.
    """

    include: Any = None
    exclude: Any = None
    column_groups: Any = None
    heredity: Any = None
    positive: Any = False
    bounds: Any = None
    penalty_factors: Any = None

    @property
    def asked(self) -> list[str]:
        """Names of the parameters that ask for something, in the order above."""
        return [name for name, value in vars(self).items() if _asks(value)]

    def resolve(self, p: int, names: Sequence[str] | None = None) -> ResolvedRules:
        """The constraints of p columns.

        names: Names of the columns, if they have some.
        Raises InputError: A column is unknown, or the rules cannot be obeyed together.
        """
        if not self.asked:
            return ResolvedRules(np.arange(p), Constraints.none(p), np.ones(p))
        return _Resolver(p, names).resolve(self)


class _Resolver:
    """Reads rules on p columns: ``groups`` maps names of groups to columns."""

    def __init__(self, p: int, names: Sequence[str] | None) -> None:
        self.p, self.named = p, names is not None
        self.names = list(names) if names is not None else [str(j) for j in range(p)]
        self.place: dict[str, int] = {}
        for j, name in enumerate(self.names if self.named else ()):
            self.place.setdefault(name, j)
        self.groups: dict[str, list[int]] = {}

    def resolve(self, rules: ColumnRules) -> ResolvedRules:
        unit = self.units(rules.column_groups)
        include = self.columns(rules.include, "include")
        exclude = self.columns(rules.exclude, "exclude")
        pairs, strong = self.parents(rules.heredity)
        lower, upper = self.intervals(rules)
        factors = self.factors(rules.penalty_factors)
        free = factors == 0.0
        counted = np.flatnonzero(~free)
        self._check_unpenalised(free, unit, exclude, lower, upper)
        include += [a for c, a in pairs if free[c] and not free[a]]
        always = {c for c, a in pairs if free[a]} if not strong else set()
        self._check_unpenalised_children(free, pairs, strong)
        at = np.cumsum(~free) - 1
        made = Constraints.of(
            counted.size,
            unit=unit[counted],
            include=[int(at[j]) for j in include if not free[j]],
            exclude=[int(at[j]) for j in exclude],
            parents=[
                (int(at[c]), int(at[a]))
                for c, a in pairs
                if not (free[c] or free[a] or c in always)
            ],
            strong=strong,
            bounds=(lower[counted], upper[counted]),
            called=lambda j: self.called(int(counted[j])),
        )
        return ResolvedRules(counted, made, factors, self.groups)

    def called(self, column: int) -> str:
        """What messages call a column."""
        return f"column {self.names[column]!r}" if self.named else f"column {column}"

    def one(self, given: Any, what: str) -> list[int]:
        """The columns that one name or position stands for."""
        if isinstance(given, str):
            if given in self.place:
                return [self.place[given]]
            if given in self.groups:
                return self.groups[given]
            if not self.named:
                raise InputError(
                    f"{what}: the columns have no names here, so {given!r} is unknown: give "
                    "positions, or a data frame"
                )
            raise InputError(f"{what}: there is no column {given!r}; {_near(given, self.names)}")
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            if 0 <= given < self.p:
                return [int(given)]
            raise InputError(f"{what}: there is no column {given}; columns are 0 to {self.p - 1}")
        raise InputError(f"{what}: a column is a name or a position; got {given!r}")

    def columns(self, given: Any, what: str) -> list[int]:
        """The columns of a list of names and positions, a single one, or a mask of p truths."""
        if given is None or given is False:
            return []
        if isinstance(given, (str, int, np.integer)) and not isinstance(given, bool):
            return self.one(given, what)
        if isinstance(given, np.ndarray) and given.dtype == bool and given.shape == (self.p,):
            return [int(j) for j in np.flatnonzero(given)]
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            raise InputError(f"{what} must list columns by name or position; got {given!r}")
        return [j for one in given for j in self.one(one, what)]

    def units(self, given: Any) -> Index:
        """The number of the unit of every column."""
        unit = np.arange(self.p)
        if given is None:
            return unit
        if isinstance(given, Mapping):
            found = {str(name): self.columns(cols, "column_groups") for name, cols in given.items()}
        elif isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"column_groups must be labels or a mapping; got {given!r}")
        else:
            labels = list(given)
            if len(labels) != self.p:
                raise InputError(
                    f"column_groups has {len(labels)} labels for {self.p} columns: give one each"
                )
            found = {}
            for j, label in enumerate(labels):
                if label is not None and label == label:  # NaN is no label, too
                    found.setdefault(str(label), []).append(j)
        taken: dict[int, str] = {}
        for name, columns in found.items():
            for j in columns:
                if taken.setdefault(j, name) != name:
                    raise InputError(
                        f"column_groups: {self.called(j)} is in the groups {taken[j]!r} and "
                        f"{name!r}"
                    )
            unit[columns] = min(columns, default=0)
        self.groups = found
        return unit

    def parents(self, given: Any) -> tuple[list[tuple[int, int]], bool]:
        """Pairs (child, parent) of columns, and whether all parents are needed."""
        if given is None or given is False:
            return [], True
        kind, mapping = given, None
        if isinstance(given, Mapping):
            kind, mapping = "strong", given
        elif isinstance(given, (tuple, list)) and len(given) == 2:
            kind, mapping = given
        if not (isinstance(kind, str) and kind in HEREDITIES) or not (
            mapping is None or isinstance(mapping, Mapping)
        ):
            raise InputError(
                "heredity must be 'strong', 'weak', a mapping from children to parents, or a pair "
                f"of both; got {given!r}"
            )
        if mapping is None:
            pairs = self._named_parents()
        else:
            pairs = [
                (c, a)
                for child, parents in mapping.items()
                for c in self.one(child, "heredity")
                for a in self.columns(parents, "heredity")
            ]
        return pairs, kind == "strong"

    def _named_parents(self) -> list[tuple[int, int]]:
        """Parents from names like ``a:b`` or ``a:b:c``, whose factors may stand in any order."""
        if not self.named:
            raise InputError("heredity: the columns have no names a:b here: give a mapping")
        products = {frozenset(name.split(":")): j for name, j in self.place.items()}
        pairs: list[tuple[int, int]] = []
        for name, child in self.place.items():
            parts = name.split(":")
            if len(parts) < 2 or "" in parts:
                continue
            known = [part for part in parts if part in self.place or part in self.groups]
            if not known:
                continue  # a colon in a name that is no product of columns
            if len(known) < len(parts):
                lost = next(part for part in parts if part not in known)
                raise InputError(
                    f"heredity: column {name!r} has the parent {lost!r}, which is no column: add "
                    "it, or give heredity as a mapping from children to parents"
                )
            fewer = {frozenset(some) for some in combinations(parts, len(parts) - 1)}
            above = [some for some in fewer if len(some) > 1 and some in products]
            left = set(parts).difference(*above)
            pairs += [(child, products[some]) for some in above]
            pairs += [(child, a) for part in sorted(left) for a in self.one(part, "heredity")]
        if not pairs:
            raise InputError(
                "heredity: no column is named like a:b after two others: give heredity as a "
                "mapping from children to parents"
            )
        return [(c, a) for c, a in pairs if c != a]

    def intervals(self, rules: ColumnRules) -> tuple[Array, Array]:
        """Lower and upper bounds of all coefficients."""
        low, high = np.full(self.p, -np.inf), np.full(self.p, np.inf)
        if not (rules.bounds is None or isinstance(rules.bounds, Mapping)):
            raise InputError(f"bounds must map columns to (low, high); got {rules.bounds!r}")
        for given, pair in (rules.bounds or {}).items():
            try:
                ends = [float(value) for value in pair]
            except (TypeError, ValueError):
                ends = []
            if len(ends) != 2 or not ends[0] <= 0.0 <= ends[1]:
                raise InputError(
                    f"bounds of {given!r}: give (low, high) with low <= 0 <= high, as a column "
                    f"that is left out has coefficient 0; got {pair!r}"
                )
            for j in self.one(given, "bounds"):
                low[j], high[j] = max(low[j], ends[0]), min(high[j], ends[1])
        if rules.positive is True:
            low[:] = 0.0
        else:
            low[self.columns(rules.positive, "positive")] = 0.0
        return low, high

    def factors(self, given: Any) -> Array:
        """The penalty factor of every column."""
        factors = np.ones(self.p)
        if given is None:
            return factors
        if isinstance(given, Mapping):
            for column, value in given.items():
                factors[self.one(column, "penalty_factors")] = _number(value, column)
        elif isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"penalty_factors must be {self.p} numbers; got {given!r}")
        else:
            values = list(given)
            if len(values) != self.p:
                raise InputError(
                    f"penalty_factors has {len(values)} numbers for {self.p} columns: give one each"
                )
            factors[:] = [_number(value, self.names[j]) for j, value in enumerate(values)]
        if not factors.any():
            raise InputError(
                "penalty_factors: every factor is 0, so that nothing is left to select"
            )
        return factors

    def _check_unpenalised(
        self, free: NDArray[np.bool_], unit: Index, exclude: list[int], lower: Array, upper: Array
    ) -> None:
        """Refuse what an unpenalised column cannot obey: it is in every model at any value."""
        for j in exclude:
            if free[j]:
                raise InputError(
                    f"{self.called(j)} is excluded, and its penalty factor 0 puts it in every "
                    "model: ask for one of them"
                )
        bounded = np.isfinite(lower) | np.isfinite(upper)
        for j in np.flatnonzero(free & bounded).tolist():
            raise InputError(
                f"{self.called(j)} has penalty factor 0 and a bound or sign, which cannot be held "
                "together: include it with a small factor instead"
            )
        for j in np.flatnonzero(free).tolist():
            mates = np.flatnonzero((unit == unit[j]) & ~free)
            if mates.size:
                raise InputError(
                    f"{self.called(j)} has penalty factor 0 and {self.called(int(mates[0]))} of "
                    "the same group has not: give all columns of a group a factor of 0, or none"
                )

    def _check_unpenalised_children(
        self, free: NDArray[np.bool_], pairs: list[tuple[int, int]], strong: bool
    ) -> None:
        """Refuse an unpenalised child under weak heredity none of whose parents is in for sure."""
        if strong:
            return
        for child in {c for c, _ in pairs if free[c]}:
            parents = [a for c, a in pairs if c == child]
            if len(parents) > 1 and not free[parents].any():
                raise InputError(
                    f"{self.called(child)} has penalty factor 0, so it is in every model, and weak "
                    "heredity leaves open which parent is in: include one of them, or give one "
                    "factor 0"
                )


def _asks(value: Any) -> bool:
    """Whether the value of a parameter asks for something."""
    if value is None or value is False:
        return False
    return not (isinstance(value, (list, tuple, dict, str)) and len(value) == 0)


def _number(value: Any, column: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 <= number < math.inf:
        raise InputError(
            f"penalty_factors: the factor of {column!r} must be a finite number >= 0; got {value!r}"
        )
    return number


def _near(given: str, names: Sequence[str]) -> str:
    """Words that offer the names most like the given name."""
    from difflib import get_close_matches

    close = get_close_matches(given, names, n=3)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "columns are " + ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
