"""The names of a table's columns, the uses of the columns, and what is wrong with their cells.

In every function ``label`` is the table's name in messages, and ``names`` are all column names.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

FloatArray = NDArray[np.float64]
PARQUET_SUFFIXES = {".parquet", ".pq"}
WORKBOOK_SUFFIXES = {".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"}

BLOCK_ROWS = 65536
"""A table is read in blocks of this many rows unless a caller asks for another number of rows.

A block of 100 columns then takes 52 MB; twice the number of rows doubles the memory of a block. The
number was chosen: reading gets no faster with more rows."""


class Selection(NamedTuple):
    """The names of the columns in use; the features are in the order of the file."""

    features: list[str]
    target: str
    weights: str | None = None
    groups: str | None = None
    order: str | None = None


def quoted(value: object, max_characters: int = 40) -> str:
    """A value between quote marks for a message, its text cut to ``max_characters`` characters.

    Line breaks and other control characters are escaped, so that the message stays on one line.
    """
    text = str(value)
    return repr(text if len(text) <= max_characters else text[: max_characters - 3] + "...")


def quoted_names(names: Iterable[str], max_names: int = 8) -> str:
    """The first ``max_names`` of some names for a message, each quoted, with commas between."""
    every = list(names)
    text = ", ".join(map(quoted, every[:max_names]))
    return text + (f", ... ({len(every)} in all)" if len(every) > max_names else "")


def similar_names(name: str, names: Sequence[str]) -> list[str]:
    """The at most three of ``names`` that are spelt most like ``name``, the closest first."""
    folded = {other.casefold(): other for other in reversed(names)}
    hits = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.6)
    return [folded[hit] for hit in hits]


def suggestion(name: str, names: Sequence[str]) -> str:
    """The end of a message on the unknown column ``name``: similar names, or else all names."""
    close = similar_names(name, names)
    if close:
        return f"did you mean {quoted_names(close)}?"
    return f"the columns are {quoted_names(names)}"


def check_names(label: str, names: Sequence[str]) -> None:
    """Raise an InputError where a column name is empty or occurs twice."""
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(
                f"{label}: column {position} has an empty name; name it in the header line, or "
                "leave it out with --drop '' if it holds the names of the rows"
            )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{label}: duplicate column name {quoted_names(twice)}; give every column its own name"
        )


def dropped_columns(label: str, names: Sequence[str], drop: Iterable[str]) -> set[str]:
    """The names of the columns that the option ``--drop`` leaves out.

    drop: Each value is the name of a column, or several names with commas between.
    """
    dropped = set()
    for value in drop:
        parts = [value] if value in names or not value else value.split(",")
        for name in (part if part in names else part.strip() for part in parts):
            if name not in names:
                what = f"--drop names {quoted(name)}, which is not a column"
                raise InputError(f"{label}: {what}; {suggestion(name, names)}")
            dropped.add(name)
    return dropped


def select_columns(
    label: str, names: Sequence[str], drop: Iterable[str], uses: Mapping[str, str | None]
) -> Selection:
    """Find the response, weights and groups among a table's columns; other columns are features.

    A name that a user gives is also accepted in another case, if exactly one column has the name
    in some case.

    drop: Columns to leave out, as for :func:`dropped_columns`.
    uses: The columns named by a user for "target", "weights", "groups" and "order", or None.
        Without a target the response is the last column that has no other use.
    Raises InputError: A name is empty, repeated or unknown, a column has two uses, or no feature
        is left.
    """
    dropped = dropped_columns(label, names, drop)
    check_names(label, [name for name in names if name not in dropped])
    taken, found = dict.fromkeys(dropped, "in --drop"), dict(uses)
    for use, wanted in uses.items():
        if wanted is None:
            continue
        alike = [name for name in names if name.casefold() == wanted.casefold()]
        if wanted not in names and len(alike) != 1:
            hint = suggestion(wanted, names)
            raise InputError(f"{label}: no {use} column {quoted(wanted)}; {hint}")
        found[use] = name = wanted if wanted in names else alike[0]
        what = "the target" if use == "target" else f"named by --{use}"
        if name in taken:
            raise InputError(
                f"{label}: column {quoted(name)} is {what} and is also {taken[name]}; "
                "take it out of one of the two"
            )
        taken[name] = what
    left = [name for name in names if name not in taken or name == found["target"]]
    if len(left) < 2:
        raise InputError(
            f"{label}: no feature columns left besides the target; the file needs at least two "
            "columns in use (separated by comma, semicolon, tab or | in a text file)"
        )
    response = found["target"] or left[-1]
    features = [name for name in left if name != response]
    return Selection(features, response, *(found.get(use) for use in Selection._fields[2:]))


def check_rows(label: str, n: int, min_rows: int = 2) -> None:
    """Raise an InputError where a table has ``n`` data rows and ``min_rows`` are needed."""
    if n < min_rows:
        found = f"only {n} data row" if n else "no data rows (a header only)"
        raise InputError(f"{label}: {found}; at least {min_rows} are needed")


def rows_changed(label: str, n: int) -> InputError:
    """The error to raise where a table that had ``n`` rows now has another number of rows."""
    return InputError(
        f"{label}: the table had {n:,} rows when it was opened and has another number now: run "
        "again once nothing writes to it"
    )


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; True and False do not count."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_numeric(dtype: Any) -> bool:
    """Whether a type of narwhals is one of numbers, or of true and false."""
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


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
    target: Name of the response, which a user can neither encode nor drop. Messages name options of
        the command only where there is a response: ``sparsecv predict`` and data frames have none.
    missing_allowed: Missing values are no fault, except where a column has no other.
    columns: Names of columns, which a message names in this order; columns at fault that are not
        among them follow.
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
        self,
        label: str,
        target: str | None = None,
        missing_allowed: bool = False,
        columns: Sequence[str] = (),
    ) -> None:
        self.label, self.target, self.missing_allowed = label, target, missing_allowed
        self._found: dict[str, dict[str, _Fault]] = {name: {} for name in columns}

    def check(self) -> None:
        """Raise an InputError that names the columns and rows at fault, if there are any."""
        if self:
            raise InputError(self.message())

    def message(self) -> str:
        """One line that names the columns and rows at fault, and says what to do."""
        found = {name: column for name, column in self._found.items() if column}
        # What a column holds comes before the rows that lack a value.
        faults = [
            one
            for each in found.values()
            for one in sorted(each.values(), key=lambda one: bool(one.rows))
        ]
        remedies = list(dict.fromkeys(text for fault in faults for text in fault.remedies))
        drop = [f"--drop {quoted(name)}" for name in found if name != self.target]
        drop = drop if self.target is not None else []
        more = len(found) - self.max_columns
        if drop and more <= 0:
            what = "the column" if len(drop) == 1 else "columns"
            remedies.append(f"leave {what} out with {' '.join(drop)}")
        text = "; ".join(map(str, faults[: self.max_columns])) + f"; and {more} more" * (more > 0)
        if len(found) > 1 and self.target is not None:
            text = f"{len(found)} columns cannot be used: {text}"
        with_drop = " with --drop" * (self.target is not None)
        *first, last = remedies or [f"correct them or leave columns out{with_drop}"]
        return f"{self.label}: {text}; {', '.join([*first, ''])}{'or ' * bool(first)}{last}"

    def __bool__(self) -> bool:
        return any(self._found.values())

    def add(self, column: str, what: str, *remedies: str) -> None:
        """Add a fault of a column; ``remedies`` are what helps besides leaving the column out."""
        self._found.setdefault(column, {}).setdefault(what, _Fault(what, remedies))

    def rows(self, column: str, kind: str, rows: Sequence[int] | NDArray[np.intp]) -> None:
        """Add missing or infinite values of a column.

        kind: "missing", "infinite" or "text".
        rows: The rows of these values, numbered from 0.
        """
        if not len(rows) or (kind == "missing" and self.missing_allowed):
            return
        what = f"{kind} value in column {quoted(column)}"
        what = f"column {quoted(column)} holds text" if kind == "text" else what
        mends = ["fill it in" if kind == "missing" else "correct it", "remove the row"]
        if kind == "missing" and self.target is not None:
            mends.append("pass --missing drop, mean or median")
        self.at_rows(column, what, mends, rows)

    def unknown(self, column: str, cells: Sequence[str], rows: Any, levels: Sequence[str]) -> None:
        """Add cells of a text column that are none of the levels that a model knows.

        cells: The distinct cells.
        rows: Their rows, numbered from 0.
        """
        what = (
            f"column {quoted(column)} holds {quoted_names(cells, 3)}, which is none of its levels: "
            f"{quoted_names(levels)}"
        )
        zero = "pass unknown='zero' (--unknown zero), which gives such a row no level"
        self.at_rows(column, what, ["correct it", zero], rows)

    def at_rows(
        self, column: str, what: str, mends: Sequence[str], rows: Sequence[int] | NDArray[np.intp]
    ) -> None:
        """Add rows, numbered from 0, to a fault of a column."""
        fault = self._found.setdefault(column, {}).setdefault(what, _Fault(what, tuple(mends)))
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
        kind: str | None,
        encode: bool,
    ) -> bool:
        """Add a column of text, of dates, or of numbers that are not written plainly.

        Return whether such a column is a fault.

        cells: Some of the column's cells, none missing; the message shows the first cell.
        row: Row of the first cell, numbered from 0.
        kind: "dates" where the column's type says so; None where the cells decide.
        encode: Text columns become 0/1 columns, so text is no fault, except in the target. Dates,
            and numbers that are not written plainly, remain a fault.
        """
        is_target = column == self.target
        odd = [cell for cell in cells if not is_number(cell)]
        place = f"(for example {quoted(cells[0])}, data row {row + 1})"
        dates = kind == "dates" or (bool(odd) and all(map(_DATE.match, cells)))
        disguised = not dates and bool(odd) and all(map(_DISGUISED.fullmatch, odd))
        if encode and not (is_target or disguised or dates):
            return False
        if disguised:
            kind, mend = "numbers that are not written plainly", "write digits and a point alone"
        elif dates:
            kind, mend = "dates", "write numbers in their place, such as years or days since a date"
            if self.target is not None and not is_target:
                mend = f"pass --dates, for dates like 2024-01-31, or {mend}"
        else:
            kind = "text"
            mend = "pass --one-hot to encode it" if self.target is not None else "write numbers"
        if is_target:
            what = f"the target column {quoted(column)} is not numeric: it holds {kind} {place}"
            what += "" if disguised else "; the target is never encoded"
            self.add(column, what, *[mend] * disguised, "name a numeric column with --target")
        else:
            self.add(column, f"column {quoted(column)} holds {kind} {place}", mend)
        return True
