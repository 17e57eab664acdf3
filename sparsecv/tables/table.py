"""Tables of named features and a response, with the weights and groups of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .coding import Coding
from .columns import FloatArray, exclude_option, is_finite, quoted
from .faults import Faults
from .marks import AS_SHOWN


class Table:
    """A table in memory: n rows of p features and a response.

    Parameters
    ----------
    X, y : ndarray of float, shape (n, p) and (n,)
        The rows. They are not copied, and :meth:`load` returns them, so nobody may write to them.
    feature_names : list of str
        Names of the columns of X, which the caller has checked.
    **facts
        Other attributes by their names, such as ``weights``; they are not checked.

    Attributes
    ----------
    name : str
        The table's name in output, such as the stem of its file.
    label : str
        The table's name in messages where it is another, such as the name of its file.
    n, p : int
        Number of rows and of features (columns of X: each 0/1 column of a factor is one).
    feature_names, target_name : list of str, str
        Names of the features in the order of the columns, and of the response.
    coding : Coding
        Which features the columns of the table have become.
    weights, weights_name : ndarray, shape (n,), and str, or None
        Weights >= 0 of the rows, and the name of their column.
    groups, groups_name : ndarray, shape (n,), and str, or None
        The group of every row, a number or a text, and the name of the groups' column; a fold holds
        whole groups.
    offset_name : str or None
        The name of what was taken off the response: y is what is left. None where nothing was.
    left_out : str or None
        Name of the column that was left out because it only counts or names the rows.
    source_notes : list of str
        What a user should know of how the file was read.
    missing : "mean" or None
        Where features may be NaN, what fills them from training rows.
    rows_left_out : int
        Number of rows that were left out because values are missing.
    data_rows : ndarray of int, shape (n,), or None
        The number of every row among the data rows of the file, from 1, as messages count them;
        None where the rows are those of arrays or of a data frame.
    reading : Reading
        How the text in the file was read; its usual decimal mark is that of the file.
    """

    name = "data"
    label = ""
    n: int
    feature_names: list[str]
    target_name = "y"
    coding = Coding()
    weights: FloatArray | None = None
    groups: NDArray[Any] | None = None
    weights_name: str | None = None
    groups_name: str | None = None
    offset_name: str | None = None
    left_out: str | None = None
    source_notes: Sequence[str] = ()
    missing: str | None = None
    rows_left_out = 0
    data_rows: NDArray[np.intp] | None = None
    reading = AS_SHOWN

    def __init__(
        self, X: FloatArray, y: FloatArray, feature_names: Sequence[str], **facts: Any
    ) -> None:
        self._X, self._y, self.n = X, y, len(y)
        self.feature_names = list(feature_names)
        vars(self).update(facts)

    def check_values(self) -> None:
        """Raise an InputError that names the columns in which values are missing or infinite.

        Features may be missing where the attribute ``missing`` says what fills them.
        """
        if is_finite(self._X, self._y):
            return
        faults = Faults(self.label or self.name, self.target_name, self.missing is not None)
        faults.values(self._X, self.feature_names)
        faults.values(self._y, [self.target_name])
        faults.check()

    def load(self) -> tuple[FloatArray, FloatArray]:
        """X of shape (n, p) and y of shape (n,), less the offset if there is one, not copied.

        X may hold NaN where :attr:`missing` is not None.
        """
        return self._X, self._y

    def without_rows(self) -> Self:
        """A copy with the names and facts of the table alone, which :meth:`load` does not serve."""
        made = copy(self)
        for name in ("_X", "_y", "chunks"):
            vars(made).pop(name, None)
        return made

    @property
    def response(self) -> str:
        """What y is, in words: the name of the response, less that of its offset."""
        less = "" if self.offset_name is None else f" less {self.offset_name}"
        return f"{self.target_name}{less}"

    def take_off(self, offset: FloatArray, name: str) -> None:
        """Take an offset off the response; y is what is left from here on.

        offset, shape (n,): The offset, which is finite, as y is.
        name: The name of the offset.
        Raises InputError: What is left is too large for a number; the table is of no use then.
        """
        with np.errstate(over="ignore"):
            self._y = self._y - offset
        self.offset_name = name
        if not is_finite(self._y):
            what = f"{self.label or self.name}: {self.response}"
            raise InputError(f"{what} is too large for a number")

    @property
    def p(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    def notes(self) -> list[str]:
        """Remarks for the user: on the file, on rows left out, and one on each of some columns.

        These columns are the unnamed index of an exported table, factors of two levels, which
        became a single 0/1 column, and columns that may be identifiers. Such a column numbers the
        rows 0, 1, ... or 1, 2, ... (with gaps where rows were left out), or has another whole
        number in every row, in no order, and the largest and the least of them differ by less than
        twice the number of rows. Only columns that do so in the first 1000 rows are looked at
        further, and none in tables of fewer than 10 rows.
        """
        remarks = [*self.source_notes]
        if self.left_out is not None:
            remarks.append(
                "the first column has no name and counts or names the rows: it is left out"
            )
        if self.rows_left_out:
            lost, why = self.rows_left_out, "the response is" if self.missing else "values are"
            be = "is" if lost == 1 else "are"
            remarks.append(f"{lost:,} of {self.n + lost:,} rows {be} left out, as {why} missing")
        remarks += [
            f"factor {quoted(name)} has two levels: one 0/1 column for "
            f"{quoted(self.coding.levels[name][1])}, none for {quoted(level)}"
            for name, level in self.coding.first_levels.items()
        ]
        if self.n < 10:
            return remarks
        # Few columns look like identifiers in the first rows, and these alone are looked at whole.
        some = np.flatnonzero(_may_identify(self._X[:1000], self.rows_left_out).any(axis=0))
        counts, mixed = _may_identify(self._X[:, some], self.rows_left_out)
        return remarks + [
            f"column {quoted(self.feature_names[j])} "
            f"{'counts the rows' if number else 'has another whole number in every row'}: if it "
            f"is an identifier, leave it out with {exclude_option([self.feature_names[j]])}"
            for j, number, other in zip(some.tolist(), counts, mixed, strict=True)
            if number or other
        ]


def _may_identify(X: FloatArray, left_out: int) -> NDArray[np.bool_]:
    """Whether columns number their rows, and have another whole number in every row, shape (2, p).

    X, shape (n, p), n >= 2: Rows in their order; of them, and of later ones, so many are left out.
    """
    # Numbers of rows are whole and grow by 1, or by more where rows between were left out. The
    # first is 0 or 1 and the last len(X) - 1 or len(X), both at most that many rows further on.
    steps, last = np.diff(X, axis=0), 1 + left_out
    counts = ((steps >= 1.0) & (steps % 1.0 == 0.0)).all(axis=0) & (X[0] % 1.0 == 0.0)
    counts &= (X[0] >= 0.0) & (X[0] <= last) & (X[-1] <= X[0] + len(X) - 2 + last)
    # Years of a series are in order. Different measurements that are whole spread more widely.
    whole = (X % 1.0 == 0.0).all(axis=0) & (np.ptp(X, axis=0) < 2 * (len(X) + last))
    mixed = whole & (steps > 0.0).any(axis=0) & (steps < 0.0).any(axis=0)
    mixed[mixed] = (np.diff(np.sort(X[:, mixed], axis=0), axis=0) > 0.0).all(axis=0)
    return np.array([counts, mixed])


def joined(*blocks: FloatArray) -> FloatArray:
    """Columns, and blocks of columns, side by side in one array, whose rows are contiguous.

    Nothing is copied where the blocks are all columns of one array, as tables of files are: nobody
    may write to the array.

    blocks: Arrays of shape (n,) or (n, m), at least one, with the same number n of rows.
    """
    # The blocks are compared with the array's columns from the first one on.
    table, start = blocks[0].base, 0
    if not (isinstance(table, np.ndarray) and table.ndim == 2 and table.flags.c_contiguous):
        return np.column_stack(blocks)
    for block in blocks:
        end = start + (1 if block.ndim == 1 else block.shape[1])
        if end > table.shape[1]:
            return np.column_stack(blocks)
        own = table[:, start] if block.ndim == 1 else table[:, start:end]
        if block.__array_interface__ != own.__array_interface__:
            return np.column_stack(blocks)
        start = end
    return table if start == table.shape[1] else np.column_stack(blocks)
