"""Which columns of numbers the columns of a table become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

MISSING_LEVEL = "(missing)"
"""The level of the missing cells of a factor, where missing values are no faults."""


class Coding(NamedTuple):
    """How the columns of a table become columns of numbers.

    A factor becomes a 0/1 column for every level, and every other column stays.

    names: Names of the table's columns.
    levels: The levels of every factor, in order.
    single: Whether a factor of two levels becomes the 0/1 column of its second level alone.
    missing: Whether a missing cell of a factor has the level ``MISSING_LEVEL``, where the factor
        has that level.
    cells: Of every factor the distinct cells that the table held, each with its level; empty where
        the levels alone are known.
    """

    names: Sequence[str] = ()
    levels: Mapping[str, Sequence[str]] = MappingProxyType({})
    single: bool = False
    missing: bool = False
    cells: Mapping[str, Sequence[tuple[Any, str]]] = MappingProxyType({})

    @property
    def first_levels(self) -> dict[str, str]:
        """The first level of every factor of two levels that has no 0/1 column for it."""
        return {name: own[0] for name, own in self.levels.items() if self.single and len(own) == 2}

    @property
    def with_missing(self) -> list[str]:
        """The factors whose missing cells are a level of their own."""
        return [name for name, own in self.levels.items() if self.missing and MISSING_LEVEL in own]

    @property
    def columns(self) -> dict[str, list[str]]:
        """The names of the columns of numbers that each column of the table becomes."""
        left_out, columns = self.first_levels, dict[str, list[str]]()
        for name in self.names:
            levels = self.levels.get(name, ())
            shown = levels[1:] if name in left_out else levels
            columns[name] = [f"{name}={level}" for level in shown] or [name]
        return columns

    @property
    def features(self) -> list[str]:
        """The names of all columns of numbers, in their order."""
        return [feature for own in self.columns.values() for feature in own]

    @property
    def places(self) -> list[tuple[str, list[int]]]:
        """Of each column of the table the name, and the positions of its columns of numbers."""
        places, first = list[tuple[str, list[int]]](), 0
        for name, own in self.columns.items():
            places.append((name, list(range(first, first + len(own)))))
            first += len(own)
        return places
