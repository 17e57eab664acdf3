"""Rows of numbers with named columns, handed out whole or in blocks; and rows held in memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .column_errors import Faults, is_finite
from .columns import BLOCK_ROWS, FloatArray, check_names, check_rows, is_integer, shown
from .weights_groups import Column


class Part(NamedTuple):
    """Some rows of a table, from row ``start`` on, which can be sent to where they are read.

    rows: What :func:`as_source` takes.
    """

    start: int
    rows: Any


def as_source(rows: Any, start: int) -> "RowSource":
    """The rows of a part as a table of their own.

    rows: A RowSource, or (X, y, names of features, name of the response), which Dask may have still
        to compute.
    start: Row of the whole table that the part begins with, for messages.
    Raises InputError: A value is missing or infinite.
    """
    if isinstance(rows, RowSource):
        return rows
    if hasattr(rows, "__dask_graph__"):
        rows = rows.compute()
    X, y, names, target = rows
    return ArraySource(X, y, names, target, least=1, first_row=start)


class RowSource(ABC):
    """n rows of p features and a response, read in row order.

    name: Label for output, such as the stem of the file.
    levels: The levels of every text column that 0/1 columns stand for.
    left_out: The level of a text column of two levels that has no 0/1 column.
    weights, shape (n,), or None: Weights >= 0 of the rows.
    groups, shape (n,), or None: Numbers of groups; the rows of a group are held out together.
    divisible: The table comes in parts, of which there may be only one.
    counted: The rows had to be counted in a pass of their own.
    """

    name: str
    n: int
    feature_names: list[str]
    target_name: str
    levels: Mapping[str, Sequence[str]] = MappingProxyType({})
    left_out: Mapping[str, str] = MappingProxyType({})
    weights: FloatArray | None = None
    groups: NDArray[np.intp] | None = None
    weights_name: str | None = None
    groups_name: str | None = None
    divisible = False
    counted = False

    def set_aside(self, weights: Column | None, groups: Column | None) -> None:
        """Take the weights and the groups of the rows from columns that are no features."""
        for column in (weights, groups):
            if column is not None and column.codes.size != self.n:
                raise self.changed(self.n)
        if weights is not None:
            self.weights, self.weights_name = weights.weights(), weights.name
        if groups is not None:
            self.groups, self.groups_name = groups.groups(), groups.name

    def _check_columns(self, least: int = 2) -> None:
        """Refuse a table in memory of too few rows, without features, or with repeated names."""
        check_rows(self.name, self.n, least)
        if not self.p:
            raise InputError(f"{self.name}: no feature columns in X; at least 1 is needed")
        check_names(self.name, [*self.feature_names, self.target_name])

    @property
    def p(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @abstractmethod
    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield blocks of at most ``rows`` rows, not yet checked for finite values."""

    @property
    def _label(self) -> str:
        """What messages call the table."""
        return self.name

    def parts(self) -> list[Part]:
        """Parts of the table that may be read independently of each other, in row order."""
        return [Part(0, self)]

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Iterate over the rows in order, in blocks (X, y) of at most ``rows`` rows.

        Yields X, shape (m, p), and y, shape (m,): Finite numbers, with 1 <= m <= rows.
        Raises InputError: A value is missing or infinite, or ``rows`` is not a positive integer.
        """
        if not is_integer(rows) or rows < 1:
            raise InputError(f"rows must be a positive integer, not {rows!r}")
        return self._checked(int(rows))

    def changed(self, n: int) -> InputError:
        """The error to raise where a table of ``n`` rows has another number of rows when read."""
        return InputError(
            f"{self._label}: the table had {n:,} rows when it was opened and has another number "
            "now: run again once nothing writes to it"
        )

    def _checked(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        done = 0
        for X, y in self._read(rows):
            done += len(y)
            if done > self.n or not len(y):
                break
            if not is_finite(X, y):
                self._refuse(self._read(rows))
            yield X, y
        if done != self.n:
            raise self.changed(self.n)

    def _refuse(self, blocks: Iterator[tuple[FloatArray, FloatArray]], first_row: int = 0) -> None:
        """Raise an InputError that names every column with missing or infinite values, if any."""
        faults, done = Faults(self._label, self.target_name), first_row
        for X, y in blocks:
            faults.values(X, self.feature_names, done)
            faults.values(y, [self.target_name], done)
            done += len(y)
        faults.check()

    def notes(self) -> list[str]:
        """What a user should know of the columns, a sentence each.

        The notes name text columns of two levels, which have a single 0/1 column, and columns that
        count the rows, which are likely to be identifiers.
        """
        found = [
            f"text column {shown(name)} has two levels: one 0/1 column for "
            f"{shown(next(one for one in self.levels[name] if one != level))}, none for "
            f"{shown(level)} (--all-levels keeps both)"
            for name, level in self.left_out.items()
        ]
        X, _ = next(self._read(min(self.n, 1000)))
        if len(X) >= 10:
            counted = (X[0] + np.arange(len(X))[:, None] == X).all(axis=0) & np.isin(X[0], (0, 1))
            found += [
                f"column {shown(self.feature_names[j])} counts the rows: if it is an identifier, "
                f"leave it out with --drop {shown(self.feature_names[j])}"
                for j in np.flatnonzero(counted)
            ]
        return found

    def load(self) -> tuple[FloatArray, FloatArray]:
        """Read all rows: X of shape (n, p) and y of shape (n,), finite.

        Raises InputError: A value is missing or infinite.
        """
        X, y = np.empty((self.n, self.p)), np.empty(self.n)
        row = 0
        for block, response in self.blocks():
            X[row : row + len(response)] = block
            y[row : row + len(response)] = response
            row += len(response)
        return X, y


class ArraySource(RowSource):
    """Rows held in memory: X of shape (n, p) and y of shape (n,).

    Arrays that are float64 already are not copied, and ``load`` and ``blocks`` hand out the arrays
    themselves and views of them: do not write to the arrays.

    name: Label for output.
    least: Number of rows that are needed.
    first_row: Number of the first row, from 0, where the rows are a part of a larger table.
    Raises InputError: The shapes do not fit, rows or features are too few, names are empty or
        repeated, or a value is no finite number.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        feature_names: Sequence[str],
        target_name: str = "y",
        name: str = "data",
        least: int = 2,
        first_row: int = 0,
    ) -> None:
        try:
            if np.iscomplexobj(X) or np.iscomplexobj(y):  # float64 would drop the imaginary part
                raise TypeError("complex ones are not: pass real parts")
            self._X, self._y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: X and y must be arrays of numbers ({error})") from error
        if self._X.ndim != 2 or self._y.shape != self._X.shape[:1]:
            raise InputError(
                f"{name}: X must have shape (n, p) and y shape (n,), "
                f"not {self._X.shape} and {self._y.shape}"
            )
        self.name, self.target_name = name, target_name
        self.n, self.feature_names = len(self._y), list(feature_names)
        if self._X.shape[1] != self.p:
            raise InputError(
                f"{name}: {self.p} feature names for {self._X.shape[1]} columns of X; "
                "give one name per column"
            )
        self._check_columns(least)
        self._refuse(iter([(self._X, self._y)]), first_row)

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        for start in range(0, self.n, rows):
            yield self._X[start : start + rows], self._y[start : start + rows]

    # The values were checked when the source was made.
    _checked = _read

    def load(self) -> tuple[FloatArray, FloatArray]:
        """X of shape (n, p) and y of shape (n,), not copied."""
        return self._X, self._y
