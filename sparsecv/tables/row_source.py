"""A table's rows of features and response, their weights and groups; and tables in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .coding import Coding
from .columns import (
    BLOCK_ROWS,
    FloatArray,
    check_names,
    check_rows,
    is_finite,
    is_integer,
    quoted,
    rows_changed,
)
from .faults import Faults
from .weights import Column


class Part(NamedTuple):
    """Consecutive rows of a table, which a thread, process or Dask worker can read by itself.

    start: The table's row, numbered from 0, that is the first row of the part.
    rows: The rows, as :func:`as_source` takes them.
    """

    start: int
    rows: Any


def as_source(rows: Any, start: int) -> RowSource:
    """The rows of a :class:`Part` as a table of their own.

    rows: A RowSource; or the tuple (X, y, names of features, name of the response); or a Dask
        object that computes such a tuple.
    start: The whole table's row, numbered from 0, that is the first row; messages count from it.
    Raises InputError: A value is missing or infinite.
    """
    if isinstance(rows, RowSource):
        return rows
    if hasattr(rows, "__dask_graph__"):
        rows = rows.compute()
    X, y, names, target = rows
    return ArraySource(X, y, names, target, min_rows=1, first_row=start)


class RowSource(ABC):
    """A table of n rows of p features and a response.

    Attributes
    ----------
    name : str
        The table's name in output, such as the stem of its file.
    label : str
        The table's name in messages where it is another, such as the name of its file.
    n, p : int
        Number of rows and of features.
    feature_names, target_name : list of str, str
        Names of the features in the order of the columns, and of the response.
    coding : Coding
        Which features the columns of the table have become.
    weights, weights_name : ndarray, shape (n,), and str, or None
        Weights >= 0 of the rows, and the name of their column.
    groups, groups_name : ndarray of int, shape (n,), and str, or None
        The number of every row's group, and the name of the groups' column; a fold holds whole
        groups.
    held : bool
        Whether the rows are in memory, whatever their number.
    divisible : bool
        Whether :meth:`parts` divides the table into files or chunks, even if it has only one.
    counted : bool
        Whether a pass over the table was needed to count its rows.
    left_out : str or None
        Name of the column that was left out because it only counts the rows.
    missing : "mean" or None
        Where features may be NaN, what fills them from training rows.
    rows_left_out : int
        Number of rows that were left out because values are missing.
    """

    name: str
    label = ""
    n: int
    feature_names: list[str]
    target_name: str
    coding = Coding()
    weights: FloatArray | None = None
    groups: NDArray[np.intp] | None = None
    weights_name: str | None = None
    groups_name: str | None = None
    held = False
    divisible = False
    counted = False
    left_out: str | None = None
    missing: str | None = None
    rows_left_out = 0

    def take_columns(self, weights: Column | None, groups: Column | None) -> None:
        """Set the weights and the groups of the rows from columns of a table.

        Raises InputError: A column has another number of rows than the table had when it was
            opened.
        """
        for column in (weights, groups):
            if column is not None and column.codes.size != self.n:
                raise self.rows_changed(self.n)
        if weights is not None:
            self.weights, self.weights_name = weights.weights(), weights.name
        if groups is not None:
            self.groups, self.groups_name = groups.groups(), groups.name

    def _check_columns(self, min_rows: int = 2) -> None:
        """Refuse a table of too few rows, without features, or with empty or repeated names."""
        check_rows(self.name, self.n, min_rows)
        if not self.p:
            raise InputError(f"{self.name}: no feature columns in X; at least 1 is needed")
        check_names(self.name, [*self.feature_names, self.target_name])

    @property
    def p(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @abstractmethod
    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield blocks of at most ``rows`` rows, whose values may be missing or infinite."""

    def parts(self) -> list[Part]:
        """The table divided into parts that can be read independently, in row order."""
        return [Part(0, self)]

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the rows in order, in blocks (X, y) of m rows, where 1 <= m <= ``rows``.

        Parameters
        ----------
        rows : int
            Most rows of a block.

        Yields
        ------
        tuple of ndarray, shape (m, p) and (m,)
            Finite numbers; X may hold NaN where the attribute ``missing`` is not None.

        Raises
        ------
        InputError
            A value is missing or infinite, or ``rows`` is not a positive integer.
        """
        if not is_integer(rows) or rows < 1:
            raise InputError(f"rows must be a positive integer, not {rows!r}")
        return self._checked(int(rows))

    def rows_changed(self, n: int) -> InputError:
        """The error to raise where a table that had ``n`` rows now has another number of rows."""
        return rows_changed(self.label or self.name, n)

    def _checked(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the blocks of :meth:`_read`; refuse values that are not finite, and lost rows."""
        rows_before = 0
        for X, y in self._read(rows):
            rows_before += len(y)
            if rows_before > self.n or not len(y):
                break
            if not self._usable(X, y):
                self._refuse(self._read(rows))
            yield X, y
        if rows_before != self.n:
            raise self.rows_changed(self.n)

    def _usable(self, X: FloatArray, y: FloatArray) -> bool:
        """Whether all values are finite, or features are missing that are to be filled."""
        return is_finite(X, y) or (self.missing is not None and not np.isinf(X).any())

    def _refuse(self, blocks: Iterator[tuple[FloatArray, FloatArray]], first_row: int = 0) -> None:
        """Raise an InputError if values are missing or infinite, which names all their columns.

        first_row: The table's row, numbered from 0, that is the first row of the first block.
        """
        faults = Faults(self.label or self.name, self.target_name, self.missing is not None)
        rows_before = first_row
        for X, y in blocks:
            faults.values(X, self.feature_names, rows_before)
            faults.values(y, [self.target_name], rows_before)
            rows_before += len(y)
        faults.check()

    def notes(self) -> list[str]:
        """Remarks on the columns for the user, one sentence per column.

        The remarks name the unnamed index of an exported table, text columns of two levels, which
        became a single 0/1 column, and columns that number the rows 0, 1, ... or 1, 2, ..., which
        may be identifiers. At most 1000 rows are read for the latter, and at least 10 are needed.
        """
        found = []
        if self.left_out is not None:
            found.append("the first column has no name and counts the rows: it is left out")
        if self.rows_left_out:
            lost, why = self.rows_left_out, "the response is" if self.missing else "values are"
            be = "is" if lost == 1 else "are"
            found.append(f"{lost:,} of {self.n + lost:,} rows {be} left out, as {why} missing")
        found += [
            f"text column {quoted(name)} has two levels: one 0/1 column for "
            f"{quoted(self.coding.levels[name][1])}, none for {quoted(level)}"
            for name, level in self.coding.first_levels.items()
        ]
        X, _ = next(self._read(min(self.n, 1000)))
        if len(X) >= 10:
            counted = (X[0] + np.arange(len(X))[:, None] == X).all(axis=0) & np.isin(X[0], (0, 1))
            found += [
                f"column {quoted(self.feature_names[j])} counts the rows: if it is an identifier, "
                f"leave it out with --exclude {quoted(self.feature_names[j])}"
                for j in np.flatnonzero(counted)
            ]
        return found

    def load(self) -> tuple[FloatArray, FloatArray]:
        """Read all rows: X of shape (n, p) and y of shape (n,), finite columns of one array.

        X may be NaN where :attr:`missing` is not None.

        Returns
        -------
        tuple of ndarray
            X and y.

        Raises
        ------
        InputError
            A value is missing or infinite.
        """
        table, row = np.empty((self.n, self.p + 1)), 0
        for block, response in self.blocks():
            table[row : row + len(response), :-1] = block
            table[row : row + len(response), -1] = response
            row += len(response)
        return table[:, :-1], table[:, -1]


class ArraySource(RowSource):
    """A table in memory: X of shape (n, p) and y of shape (n,), whose shapes the caller knows.

    Arrays of float64 are not copied, and ``load`` and ``blocks`` return the arrays and views of
    them, so nobody may write to the arrays.

    name: The table's name in output.
    min_rows: Fewer rows are refused.
    first_row: Where the rows are a part of a larger table, the larger table's row, numbered from
        0, that is the first row; messages count from it.
    missing: "mean" where X may be NaN.
    Raises InputError: Rows or features are too few, names are empty or repeated, or a value is no
        finite number.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        feature_names: Sequence[str],
        target_name: str = "y",
        name: str = "data",
        min_rows: int = 2,
        first_row: int = 0,
        missing: str | None = None,
    ) -> None:
        self.missing = missing
        try:
            self._X, self._y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: X and y must be arrays of numbers ({error})") from error
        self.name, self.target_name = name, target_name
        self.n, self.feature_names = len(self._y), list(feature_names)
        self._check_columns(min_rows)
        self._refuse(iter([(self._X, self._y)]), first_row)

    @classmethod
    def checked(cls, X: FloatArray, y: FloatArray, names: Sequence[str], **facts: Any) -> Self:
        """A table in memory whose values and names the caller has checked.

        y, shape (n,).
        facts: Other attributes by their names, such as weights and groups.
        """
        made = cls.__new__(cls)
        made.name, made.target_name, made.feature_names = "data", "y", [*names]
        made._X, made._y, made.n = X, y, len(y)
        vars(made).update(facts)
        return made

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        for start in range(0, self.n, rows):
            yield self._X[start : start + rows], self._y[start : start + rows]

    # The constructor has checked the values, so the blocks are not checked again.
    _checked = _read

    def load(self) -> tuple[FloatArray, FloatArray]:
        """X of shape (n, p) and y of shape (n,), not copied."""
        return self._X, self._y
