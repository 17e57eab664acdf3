"""The features of a table as names: a factor, and every group of columns, is one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.threads import cached
from ..tables.coding import Coding
from .folds import Index

# So many characters a cut name keeps before its number of levels, or it loses that number. The
# number is a choice: fewer characters do not tell names apart.
LEAST_OF_NAME = 8


@dataclass(frozen=True)
class Features:
    """What each of p columns is called in a table's answers, alone or in its group.

    number, shape (p,): The position of every column's feature among the names.
    names: What the features are called, k of them: the name of a column, or that of a factor or a
        group with the number of its levels or columns, such as "state (51 levels)".
    """

    number: Index
    names: Sequence[str]

    @classmethod
    def of(cls, names: Sequence[str], asked: ResolvedRules | None, coding: Coding) -> Self:
        """The features of columns with these names.

        asked: What is asked of the columns, such as which enter together; None for nothing.
        coding: The factors that 0/1 columns stand for.
        """
        if asked is None or not asked.constraints.grouped:
            return cls(np.arange(len(names)), names)
        factors = {name: places for name, places in coding.places if name in coding.levels}
        called = [names[own[0]] for own in asked.constraints.columns]
        for name, columns in asked.groups.items():
            if len(columns) > 1:
                levels = factors.get(name) == sorted(columns)
                what = f"{len(coding.levels[name])} levels" if levels else f"{len(columns)} columns"
                called[asked.constraints.unit[columns[0]]] = f"{name} ({what})"
        return cls(asked.constraints.unit, called)

    @cached
    def columns(self) -> list[Index]:
        """The columns of every feature, in increasing order."""
        order = np.argsort(self.number, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.number[order])) + 1)

    @cached
    def several(self) -> list[str]:
        """The names of the features that are more than one column."""
        return [name for name, own in zip(self.names, self.columns, strict=True) if own.size > 1]

    def among(self, columns: Index) -> Index:
        """The positions of the features of some columns, in the order of their first columns."""
        _, first = np.unique(self.number[columns], return_index=True)
        return np.asarray(self.number[columns][np.sort(first)])

    def called(self, columns: Index) -> list[str]:
        """The names of the features of some columns, in the order of their first columns."""
        return [self.names[u] for u in self.among(columns).tolist()]


def cut_name(name: str, characters: int) -> str:
    """A name of at most some characters, three at least: … stands for what is left out.

    That is the middle of a name. The number of levels or of columns at the end of a feature's name
    stays where LEAST_OF_NAME characters are left before it, and goes first where they are not.
    """
    if len(name) <= max(characters, 3):
        return name
    left = max(characters, 3) - 1
    behind = left // 2
    if name.endswith((" levels)", " columns)")) and (tail := name.rfind(" (")) > 0:
        if left - (len(name) - tail) >= LEAST_OF_NAME:
            behind = max(behind, len(name) - tail + 1)
        elif tail <= left:
            return f"{name[:tail]}…"
        else:
            name = name[:tail]
    return f"{name[: left - behind]}…{name[len(name) - behind :]}"
