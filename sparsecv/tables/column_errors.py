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
"""A text column with more levels than this is taken for an identifier."""

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "?"})
"""Cells (stripped, lower case) that stand for a missing value."""

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
_DISGUISED = re.compile(  # a number with separators of thousands, a decimal comma, a currency or %
    r"[-+(]? ?[$€£¥₹]? ?[-+]?(\d+|\d{1,3}([,.'_\u00a0\u202f ]\d{3})+)([.,]\d+)? ?[$€£¥₹%‰]?\)?"
)
_ROWS = 5  # rows that a message names
_LISTED = 8  # columns that a message names


def is_number(cell: str) -> bool:
    """Whether a cell is a plain number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


@dataclass
class _Fault:
    """One fault of one column: what is wrong, what would mend it."""

    what: str
    remedies: list[str]
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
    """Faults of a table's columns, gathered while it is read.

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

    def __init__(self, label: str, target: str | None = None) -> None:
        self.label, self.target = label, target
        self._found: dict[str, dict[str, _Fault]] = {}

    def check(self) -> None:
        """Raise an InputError of one line if there is any fault.

        Raises InputError: It names the columns and rows at fault, and what to do about each.
        """
        faults = [fault for one in self._found.values() for fault in one.values()]
        if not faults:
            return
        remedies = list(dict.fromkeys(text for fault in faults for text in fault.remedies))
        drop = [f"--drop {shown(name)}" for name in self._found if name != self.target]
        more = len(self._found) - _LISTED
        if drop and more <= 0:
            what = "the column" if len(drop) == 1 else "columns"
            remedies.append(f"leave {what} out with {' '.join(drop)}")
        text = "; ".join(map(str, faults[:_LISTED])) + f"; and {more} more" * (more > 0)
        if len(self._found) > 1:
            text = f"{len(self._found)} columns cannot be used: {text}"
        *first, last = remedies or ["correct them or leave columns out with --drop"]
        raise InputError(
            f"{self.label}: {text}; {', '.join([*first, ''])}{'or ' * bool(first)}{last}"
        )

    def add(self, column: str, what: str, *remedies: str) -> None:
        """Note a fault in words; the column can be left out in any case.

        column, what: The column's name and what is wrong, for the message.
        *remedies: What to do about it, best first.
        """
        self._found.setdefault(column, {}).setdefault(what, _Fault(what, list(remedies)))

    def rows(self, column: str, kind: str, rows: Sequence[int] | NDArray[np.intp]) -> None:
        """Note values that are "missing" or "infinite", in rows that count from 0.

        kind: "missing" or "infinite".
        """
        if not len(rows):
            return
        what = f"{kind} value in column {shown(column)}"
        mend = "fill it in" if kind == "missing" else "correct it"
        fault = _Fault(what, [mend, "remove the row"])
        fault = self._found.setdefault(column, {}).setdefault(kind, fault)
        fault.rows = [*fault.rows, *(int(row) + 1 for row in rows[:_ROWS])][:_ROWS]
        fault.count += len(rows)

    def values(self, block: FloatArray, names: Sequence[str], first_row: int = 0) -> None:
        """Note what is not finite in a block of shape (m, p) or (m,).

        block, shape (m, p) or (m,).
        names: One per column.
        first_row: Row of the table that the block begins with, from 0.
        """
        # A sum is finite only if every term is, and costs one pass without a temporary array; an
        # overflow of finite terms merely leads to the full check.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum()):
                return
        columns = block.reshape(block.shape[0], -1)
        for j in np.flatnonzero(~np.isfinite(columns).all(axis=0)):
            missing = np.isnan(columns[:, j])
            self.rows(names[int(j)], "missing", first_row + np.flatnonzero(missing))
            infinite = first_row + np.flatnonzero(np.isinf(columns[:, j]))
            self.rows(names[int(j)], "infinite", infinite)

    def text(
        self,
        column: str,
        cells: Sequence[str],
        row: int,
        *,
        encode: bool = False,
        kind: str | None = None,
    ) -> None:
        """Note a column of text, dates or numbers that are not written plainly.

        cells: Some of its cells, none missing, the first of them an example of what is no number.
        row: Row of the example, from 0.
        encode: Text will be encoded: only numbers in disguise are at fault.
        kind: What the cells are, where that is known from their type.
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

    def identifier(self, column: str, example: object, why: str) -> None:
        """Note a text column that one-hot encoding would make no sense of.

        example: One of its values.
        why: As in "has 300 different values".
        """
        self.add(
            column,
            f"text column {shown(column)} {why} (for example {shown(example)}), so it looks like "
            "an identifier",
        )
