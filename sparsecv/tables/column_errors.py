"""Errors in the columns of a table, which all readers collect and report in one message."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import FloatArray, quoted

MAX_LEVELS = 100
"""A text column with more levels (distinct texts) is refused as an identifier of the rows.

One-hot encoding makes a 0/1 column of every level, so twice the number would accept text columns
that become twice as many columns. The number was chosen, not derived."""

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "?"})
"""A cell that has one of these texts, in any case and with blanks around it, is missing."""

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
# The pattern matches numbers with separators of thousands, a decimal comma, a currency or a per
# cent sign.
_DISGUISED = re.compile(
    r"[-+(]? ?[$€£¥₹]? ?[-+]?(\d+|\d{1,3}([,.'_\u00a0\u202f ]\d{3})+)([.,]\d+)? ?[$€£¥₹%‰]?\)?"
)


def is_finite(*blocks: FloatArray) -> bool:
    """Whether all values of all blocks are finite.

    A finite sum proves that every term is finite, and takes no temporary array. Where the sum is
    not finite, which an overflow can also cause, the values are tested one by one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return all(np.isfinite(block.sum()) or np.isfinite(block).all() for block in blocks)


def is_number(cell: str) -> bool:
    """Whether a cell of text is a number that Python reads, without underscores."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


@dataclass
class _Fault:
    """One fault of one column.

    what: What is wrong, in words that name the column.
    remedies: What a user can do, best first.
    rows: The first of the ``count`` data rows at fault, numbered from 1.
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
    """Faults of a table's columns, collected while the table is read.

    label: The table's name in messages.
    target: Name of the response, which a user can neither encode nor drop.
    missing_allowed: Missing values are no fault, except where a column has no other.
    """

    # A message describes the faults of at most this many columns and counts the other columns at
    # fault.
    max_columns = 8
    # A message names at most this many rows of a column and counts all rows at fault.
    max_rows = 5
    # Readers pass at most this many cells of a text column, which decide how a message describes
    # the column.
    max_cells = 1000

    def __init__(
        self, label: str, target: str | None = None, missing_allowed: bool = False
    ) -> None:
        self.label, self.target, self.missing_allowed = label, target, missing_allowed
        self._found: dict[str, dict[str, _Fault]] = {}

    def check(self) -> None:
        """Raise an InputError that names the columns and rows at fault, if there are any."""
        faults = [fault for column in self._found.values() for fault in column.values()]
        if not faults:
            return
        remedies = list(dict.fromkeys(text for fault in faults for text in fault.remedies))
        drop = [f"--drop {quoted(name)}" for name in self._found if name != self.target]
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
        """Add a fault of a column; ``remedies`` are what helps besides leaving the column out."""
        self._found.setdefault(column, {}).setdefault(what, _Fault(what, remedies))

    def rows(self, column: str, kind: str, rows: Sequence[int] | NDArray[np.intp]) -> None:
        """Add missing or infinite values of a column.

        kind: "missing" or "infinite".
        rows: The rows of these values, numbered from 0.
        """
        if not len(rows) or (kind == "missing" and self.missing_allowed):
            return
        what = f"{kind} value in column {quoted(column)}"
        mends = ["fill it in" if kind == "missing" else "correct it", "remove the row"]
        if kind == "missing" and self.target is not None:
            mends.append("pass --missing drop, mean or median")
        new = _Fault(what, tuple(mends))
        fault = self._found.setdefault(column, {}).setdefault(kind, new)
        fault.rows += [int(row) + 1 for row in rows[: self.max_rows - len(fault.rows)]]
        fault.count += len(rows)

    def values(self, block: FloatArray, names: Sequence[str], first_row: int = 0) -> None:
        """Add the missing (NaN) and infinite values of a block of shape (m, p) or (m,).

        names: Names of the p columns, or of the single column.
        first_row: The table's row, numbered from 0, that is the first row of the block.
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
        """Add a column of text, of dates, or of numbers that are not written plainly.

        cells: Some of the column's cells, none missing; the message shows the first cell.
        row: Row of the first cell, numbered from 0.
        encode: Text columns become 0/1 columns, so text is no fault, except in the target. Dates,
            and numbers that are not written plainly, remain a fault.
        kind: "dates" where the column's type says so; None where the cells decide.
        """
        is_target = column == self.target
        odd = [cell for cell in cells if not is_number(cell)]
        place = f"(for example {quoted(cells[0])}, data row {row + 1})"
        dates = kind == "dates" or (bool(odd) and all(map(_DATE.match, cells)))
        disguised = not dates and bool(odd) and all(map(_DISGUISED.fullmatch, odd))
        if encode and not (is_target or disguised or dates):
            return
        if disguised:
            kind, mend = "numbers that are not written plainly", "write digits and a point alone"
        elif dates:
            kind, mend = "dates", "write numbers in their place, such as years or days since a date"
        else:
            kind, mend = "text", "pass --one-hot to encode it"
        if is_target:
            what = f"the target column {quoted(column)} is not numeric: it holds {kind} {place}"
            what += "" if disguised else "; the target is never encoded"
            self.add(column, what, *[mend] * disguised, "name a numeric column with --target")
        else:
            self.add(column, f"column {quoted(column)} holds {kind} {place}", mend)
