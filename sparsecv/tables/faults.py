"""What is wrong with the cells of a table, said in one line that names columns and rows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import FloatArray, exclude_option, is_finite, quoted, quoted_names

# What a user can do about a cell without a value and about a wrong one, whichever its column is.
_OF_MISSING = ("fill it in", "remove the row")
_OF_WRONG = ("correct it", "remove the row")


@dataclass
class _Fault:
    """One fault of one column.

    what: What is wrong, in words that name the column.
    remedies: What a user can do about it, best first.
    rows: The first of the ``count`` data rows at fault, numbered from 1; none where the fault is
        one of the whole column.
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
    target: Name of the response, which a user can neither encode nor drop. Messages name options of
        the command only where there is a response: ``sparsecv predict`` and data frames have none.
    missing_allowed: Missing values are no fault.
    columns: Names of columns, which a message names in this order; columns at fault that are not
        among them follow.
    filling: What fills missing values, as a remedy in messages; by default that of the command
        where there is a response, else none.
    """

    # A message describes the faults of at most this many columns and counts the other columns at
    # fault. The number is a choice.
    max_columns = 8
    # A message has an option that leaves the columns at fault out, if they are at most this many.
    # The number is a choice.
    max_excluded = 1000
    # A message names at most this many rows of a column and counts all rows at fault. The number
    # is a choice.
    max_rows = 5

    def __init__(
        self,
        label: str,
        target: str | None = None,
        missing_allowed: bool = False,
        columns: Sequence[str] = (),
        filling: str = "",
    ) -> None:
        if not filling and target is not None:
            filling = "pass --missing drop or mean"
        self.label, self.target, self.missing_allowed = label, target, missing_allowed
        self.filling = filling
        # The faults of every column, by their words.
        self._found: dict[str, dict[str, _Fault]] = {name: {} for name in columns}

    def __bool__(self) -> bool:
        return any(self._found.values())

    def check(self) -> None:
        """Raise an InputError that names the columns and rows at fault, if there are any."""
        if self:
            raise InputError(self.message())

    def message(self) -> str:
        """One line that names the columns and rows at fault, and says what to do."""
        # What a column holds comes before the rows that lack a value.
        found = {
            name: sorted(column.values(), key=lambda fault: bool(fault.rows))
            for name, column in self._found.items()
            if column
        }
        faults = [fault for column in found.values() for fault in column]
        remedies = self._remedies(found)
        more = len(found) - self.max_columns
        remedies += self._leaving_out(found)
        text = "; ".join(map(str, faults[: self.max_columns])) + f"; and {more} more" * (more > 0)
        if len(found) > 1 and self.target is not None:
            text = f"{len(found)} columns cannot be used: {text}"
        with_drop = " with --exclude" * (self.target is not None)
        *first, last = remedies or [f"correct them or leave columns out{with_drop}"]
        return f"{self.label}: {text}; {', '.join([*first, ''])}{'or ' * bool(first)}{last}"

    def _remedies(self, found: dict[str, list[_Fault]]) -> list[str]:
        """What a user can do about the columns at fault, each remedy once, in their order.

        Of several columns, what helps some of them alone begins with their names, unless it has
        them already, is about cells, which the message lists, or names an option of the response.

        found: The faults of every column at fault, by its name; at least one.
        """
        helped = dict[str, list[str]]()
        for name, column in found.items():
            for text in dict.fromkeys(text for fault in column for text in fault.remedies):
                helped.setdefault(text, []).append(name)
        plain = {*_OF_MISSING, *_OF_WRONG, self.filling}
        return [
            text
            if len(own) == len(found)
            or text in plain
            or quoted(own[0]) in text
            or "--target" in text
            else f"for {quoted_names(own, self.max_columns)} {text}"
            for text, own in helped.items()
        ]

    def _leaving_out(self, found: Collection[str]) -> list[str]:
        """The remedy with which the command runs without the columns at fault; [] if there is none.

        The response stays, and the rows that lack it are left out as well; a response that has
        another fault leaves no remedy.

        found: The columns at fault.
        """
        drop, target = [name for name in found if name != self.target], self.target
        if not drop or target is None or len(drop) > self.max_excluded:
            return []
        what = "the column" if len(drop) == 1 else "columns"
        remedy = f"leave {what} out with {exclude_option(drop)}"
        if target not in found:
            return [remedy]
        lacks_values = all(self.filling in fault.remedies for fault in self._found[target].values())
        return [f"{remedy} --missing drop"] if lacks_values else []

    def add(
        self,
        column: str,
        what: str,
        remedies: Sequence[str] = (),
        rows: Sequence[int] | NDArray[np.intp] = (),
    ) -> None:
        """Add a fault of a column, or more rows, numbered from 0, to a fault that is known.

        what: What is wrong, in words that name the column.
        remedies: What helps besides leaving the column out.
        """
        fault = self._found.setdefault(column, {}).setdefault(what, _Fault(what, tuple(remedies)))
        fault.rows += [int(row) + 1 for row in rows[: self.max_rows - len(fault.rows)]]
        fault.count += len(rows)

    def missing(self, column: str, rows: Sequence[int] | NDArray[np.intp]) -> None:
        """Add rows, numbered from 0, that lack a value of a column, unless they may."""
        if len(rows) and not self.missing_allowed:
            remedies = list(_OF_MISSING)
            remedies += [self.filling] * bool(self.filling)
            self.add(column, f"missing value in column {quoted(column)}", remedies, rows)

    def values(self, block: FloatArray, names: Sequence[str]) -> None:
        """Add the missing (NaN) and infinite values of all rows, of shape (n, p) or (n,).

        names: Names of the p columns, or of the single column.
        """
        if is_finite(block):
            return
        columns = block.reshape(block.shape[0], -1)
        for j in np.flatnonzero(~np.isfinite(columns).all(axis=0)):
            name = names[int(j)]
            self.missing(name, np.flatnonzero(np.isnan(columns[:, j])))
            if len(rows := np.flatnonzero(np.isinf(columns[:, j]))):
                what = f"infinite value in column {quoted(name)}"
                self.add(name, what, _OF_WRONG, rows)
