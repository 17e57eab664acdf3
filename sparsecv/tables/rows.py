"""Rows of numbers with named columns, handed out whole or in blocks; and those held in memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .column_errors import Faults
from .columns import FloatArray, check_names, check_rows, is_integer, shown
from .weights_groups import Column


class Part(NamedTuple):
    """Some of a table's rows, which can be sent to where they are read.

    start: Number of the first row.
    rows: What :func:`as_source` takes.
    """

    start: int
    rows: Any


def as_source(rows: Any, start: int) -> "RowSource":
    """A part's rows as a table of their own.

    rows, RowSource, or (X, y, names, target), which Dask may have still to compute.
    start: Number of the first row, for messages.
    Raises InputError: A value is missing or infinite.
    """
    if isinstance(rows, RowSource):
        return rows
    if hasattr(rows, "__dask_graph__"):
        rows = rows.compute()
    X, y, names, target = rows
    X, y = _real("data", X, y)
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        faults = Faults("data", target)
        faults.values(X, names, start)
        faults.values(y, [target], start)
        faults.check()
    return ArraySource(X, y, names, target, least=1)


def _real(label: str, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as float64, which would drop an imaginary part without a word."""
    try:
        if np.iscomplexobj(X) or np.iscomplexobj(y):
            raise TypeError("complex ones are not: pass real parts")
        return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{label}: X and y must be arrays of numbers ({error})") from error


class RowSource(ABC):
    """n rows of p features and a response, read in row order.

    name: Label for output, such as the stem of the file.
    n: Number of rows.
    feature_names: The p feature names.
    target_name: Name of the response.
    levels: Levels of the text columns that 0/1 columns stand for.
    left_out: The level of such a column that has no 0/1 column.
    weights, groups, shape (n,), or None: Of the rows: weights >= 0, and numbers of groups that are
        held out together.
    weights_name, groups_name: The columns they come from.
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
    divisible = False  # comes in parts, be it one
    counted = False  # its rows had to be counted in a pass of their own

    def set_aside(self, weights: Column | None, groups: Column | None) -> None:
        """Take the weights and the groups of the rows from columns that are no features."""
        for column in (weights, groups):
            if column is not None and column.codes.size != self.n:
                raise self.changed(self.n)
        if weights is not None:
            self.weights, self.weights_name = weights.weights(), weights.name
        if groups is not None:
            self.groups, self.groups_name = groups.groups(), groups.name

    @property
    def p(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @abstractmethod
    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield blocks of at most ``rows`` rows, not yet checked for finite values."""

    @property
    def _label(self) -> str:
        """What messages call the source."""
        return self.name

    def parts(self) -> list[Part]:
        """The rows in parts that may be read apart, in row order; one where they may not."""
        return [Part(0, self)]

    def blocks(self, rows: int = 65536) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Iterate over the rows in order, in blocks that fit in memory.

        rows: The largest number of rows in a block.
        Yields X, shape (m, p), float64.
        Yields y, shape (m,), float64: With 1 <= m <= rows; all values finite.
        Raises InputError: A missing or infinite value, by column and data row; or ``rows`` is not a
            positive integer.
        """
        if not is_integer(rows) or rows < 1:
            raise InputError(f"rows must be a positive integer, not {rows!r}")
        return self._checked(int(rows))

    def changed(self, n: int) -> InputError:
        """What to raise where the rows read are not the ``n`` that there were."""
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
            # A sum is finite only if every term is; finite terms that overflow are looked at again.
            with np.errstate(over="ignore", invalid="ignore"):
                if not np.isfinite(X.sum() + y.sum()):
                    self._refuse(rows)
            yield X, y
        if done != self.n:
            raise self.changed(self.n)

    def _refuse(self, rows: int) -> None:
        """Name every column that holds missing or infinite values, from the first row on."""
        faults, done = Faults(self._label, self.target_name), 0
        for X, y in self._read(rows):
            faults.values(X, self.feature_names, done)
            faults.values(y, [self.target_name], done)
            done += len(y)
        faults.check()

    def notes(self) -> list[str]:
        """What a user should know of the columns: one sentence each.

        Returns: Text columns of two levels that have one 0/1 column, and columns that count the
            rows.
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
        """Read all rows.

        Returns X, shape (n, p), float64.
        Returns y, shape (n,), float64.
        Raises InputError: A missing or infinite value, by column and data row.
        """
        X, y = np.empty((self.n, self.p)), np.empty(self.n)
        row = 0
        for block, response in self.blocks():
            X[row : row + len(response)] = block
            y[row : row + len(response)] = response
            row += len(response)
        return X, y


class ArraySource(RowSource):
    """Rows held in memory.

    Arrays that are float64 already are kept as they are, and ``load`` and ``blocks`` hand out the
    arrays themselves and views of them: do not write to them.

    X, shape (n, p).
    y, shape (n,).
    feature_names: The p feature names.
    name: Label for output.
    least: Rows there must be.
    Raises InputError: Shapes that do not fit, fewer than two rows, no feature, names that are empty
        or repeated, or values that are not finite numbers.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        feature_names: Sequence[str],
        target_name: str = "y",
        name: str = "data",
        least: int = 2,
    ) -> None:
        self._X, self._y = _real(name, X, y)
        if self._X.ndim != 2 or self._y.shape != self._X.shape[:1]:
            raise InputError(
                f"{name}: X must have shape (n, p) and y shape (n,), "
                f"not {self._X.shape} and {self._y.shape}"
            )
        self.name, self.target_name = name, target_name
        self.n = len(self._y)
        self.feature_names = list(feature_names)
        if self._X.shape[1] != self.p:
            raise InputError(
                f"{name}: {self.p} feature names for {self._X.shape[1]} columns of X; "
                "give one name per column"
            )
        check_rows(name, self.n, least)
        if not self.p:
            raise InputError(f"{name}: no feature columns in X; at least 1 is needed")
        check_names(name, [*self.feature_names, target_name])
        for _ in super()._checked(self.n):
            pass

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        for start in range(0, self.n, rows):
            yield self._X[start : start + rows], self._y[start : start + rows]

    # The values were checked when the source was made.
    _checked = _read

    def load(self) -> tuple[FloatArray, FloatArray]:
        """Return X of shape (n, p) and y of shape (n,), without copying them.

        Returns X, y, shape (n, p) and (n,).
        """
        return self._X, self._y
