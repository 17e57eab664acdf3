"""What is wrong with the values of a table: all columns at fault, in one line.

Shared by all readers, so that the same fault reads the same in each.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import FloatArray, shown

MAX_LEVELS = 100
"""A text column with more levels is taken for an identifier and refused.

One-hot encoding makes a 0/1 column of every level; doubling the number admits twice as many."""

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "?"})
"""Cells (stripped, lower case) that stand for a missing value."""

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
# The pattern describes numbers with separators of thousands, a decimal comma, a currency or a
# per cent sign.
_DISGUISED = re.compile(
    r"[-+(]? ?[$€£¥₹]? ?[-+]?(\d+|\d{1,3}([,.'_\u00a0\u202f ]\d{3})+)([.,]\d+)? ?[$€£¥₹%‰]?\)?"
)


def is_finite(*blocks: FloatArray) -> bool:
    """Whether all values are finite.

    A sum is finite only if every term is, and costs one pass without a temporary array; only where
    the sum overflows are the values looked at one by one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.isfinite(block.sum()) or np.isfinite(block).all() for block in blocks)


def is_number(cell: str) -> bool:
    """Whether a cell is a plain number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


@dataclass
class _Fault:
    """One fault of one column: what is wrong, how to mend the fault, and in which data rows.

    rows: The first rows at fault, numbered from 1, of ``count`` in all.
    """

    what: str
    remedies: tuple[str, ...]
    rows: list[int] = field(default_factory=list)
    count: int = 0

    def __str__(self) -> str:
        if not self.rows:
            return self.what
        text = f"{self.what}, data row {self.rows[0]}"
        if self.count == 1:
            return text
        more = ", ".join(map(str, self.rows[1:])) + ", ..." * (self.count > len(self.rows))
        return f"{text} ({self.count} in all, also in {more})"


class Faults:
    """Faults of a table's columns, gathered while the table is read.

    label: What messages call the table.
    target: The response, which can be neither encoded nor dropped.

    Examples
    --------
    >>> faults = Faults("t.csv", "y")
    >>> faults.values(np.array([[1.0, np.nan], [np.nan, np.nan]]), ["a", "b"])
    >>> faults.check()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    sparsecv.errors.InputError: t.csv: 2 columns cannot be used: missing value in column 'a', ...
    """

    max_columns = 8  # A message names at most this many columns, and says how many more there are.
    max_rows = 5  # A message names at most this many rows of a column, and says how many there are.

    def __init__(self, label: str, target: str | None = None) -> None:
        self.label, self.target = label, target
        self._found: dict[str, dict[str, _Fault]] = {}

    def check(self) -> None:
        """Raise an InputError if any column is at fault.

        Raises InputError: One line names the columns and rows at fault, and what to do.
        """
        faults = [fault for one in self._found.values() for fault in one.values()]
        if not faults:
            return
        remedies = list(dict.fromkeys(text for fault in faults for text in fault.remedies))
        drop = [f"--drop {shown(name)}" for name in self._found if name != self.target]
        more = len(self._found) - self.max_columns
        if drop and more <= 0:
            what = "the column" if len(drop) == 1 else "columns"
            remedies.append(f"leave {what} out with {' '.join(drop)}")
        text = "; ".join(map(str, faults[: self.max_columns])) + f"; and {more} more" * (more > 0)
        if len(self._found) > 1:
            text = f"{len(self._found)} columns cannot be used: {text}"
        *first, last = remedies or ["correct them or leave columns out with --drop"]
        raise InputError(
            f"{self.label}: {text}; {', '.join([*first, ''])}{'or ' * bool(first)}{last}"
        )

    def add(self, column: str, what: str, *remedies: str) -> None:
        """Note that something is wrong with a column.

        what: What is wrong, in words that name the column.
        *remedies: What a user can do besides leaving the column out, best first.
        """
        self._found.setdefault(column, {}).setdefault(what, _Fault(what, remedies))

    def rows(self, column: str, kind: str, rows: Sequence[int] | NDArray[np.intp]) -> None:
        """Note values of a column that are "missing" or "infinite", in rows numbered from 0."""
        if not len(rows):
            return
        what = f"{kind} value in column {shown(column)}"
        mend = "fill it in" if kind == "missing" else "correct it"
        new = _Fault(what, (mend, "remove the row"))
        fault = self._found.setdefault(column, {}).setdefault(kind, new)
        fault.rows += [int(row) + 1 for row in rows[: self.max_rows - len(fault.rows)]]
        fault.count += len(rows)

    def values(self, block: FloatArray, names: Sequence[str], first_row: int = 0) -> None:
        """Note values that are missing (NaN) or infinite in a block of shape (m, p) or (m,).

        names: Names of the p columns, or of the single one.
        first_row: Row of the table that the block begins with, numbered from 0.
        """
        if is_finite(block):
            return
        columns = block.reshape(block.shape[0], -1)
        for j in np.flatnonzero(~np.isfinite(columns).all(axis=0)):
            for kind, test in (("missing", np.isnan), ("infinite", np.isinf)):
                self.rows(names[int(j)], kind, first_row + np.flatnonzero(test(columns[:, j])))

    def text(
        self,
        column: str,
        cells: Sequence[str],
        row: int,
        *,
        encode: bool = False,
        kind: str | None = None,
    ) -> None:
        """Note a column of text, of dates, or of numbers that are not written plainly.

        cells: Some of the column's cells, none missing; the first is the example to show.
        row: Row of the example, numbered from 0.
        encode: Text is going to be encoded: only numbers that are not written plainly are a fault.
        kind: What the cells are, where the type of the column says so.
        """
        is_target = column == self.target
        odd = [cell for cell in cells if not is_number(cell)]
        place = f"(for example {shown(cells[0])}, data row {row + 1})"
        disguised = kind is None and bool(odd) and all(map(_DISGUISED.fullmatch, odd))
        disguised = disguised and not all(map(_DATE.match, odd))
        if encode and not is_target and not disguised:
            return
        if disguised:
            kind, mend = "numbers that are not written plainly", "write digits and a point alone"
        else:
            kind = kind or ("dates" if _DATE.match(cells[0]) else "text")
            mend = "pass --one-hot to encode it"
        if is_target:
            what = f"the target column {shown(column)} is not numeric: it holds {kind} {place}"
            extra = [mend] if disguised else []
            note = "" if disguised else "; the target is never encoded"
            self.add(column, what + note, *extra, "name a numeric column with --target")
        else:
            self.add(column, f"column {shown(column)} holds {kind} {place}", mend)
