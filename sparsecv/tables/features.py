"""The features of a fitted model in the rows of a table, and columns that go with predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import repeat

import numpy as np

from ..errors import InputError
from .coding import Coding
from .columns import (
    BLOCK_ROWS,
    FloatArray,
    check_names,
    check_rows,
    quoted,
    quoted_names,
    similar_names,
    suggestion,
)
from .faults import Faults
from .files import File


class FeatureRows:
    """The features of a model in the rows of a table, read by the names of columns.

    file: The table; no response is needed.
    coding: The columns to read, with the levels of text columns and the dates of dates.
    wanted: The features in the model's order: a column's name, or ``column=level``.
    fills: What missing values of a feature are filled with, by its name; with None they are faults.
    unknown: With "zero" a text that is no level has no level; with "error" it is a fault.
    missing_allowed: Missing values stay NaN where there are no fills, and are no fault.
    faults: The rows that cannot be used, once they have been read.
    Raises InputError: A column is missing or repeated, or holds what the model cannot use.
    """

    def __init__(
        self,
        file: File,
        coding: Coding,
        wanted: Sequence[str],
        fills: Mapping[str, float] | None = None,
        unknown: str = "error",
        missing_allowed: bool = False,
    ) -> None:
        from .arrow import Encoded  # The import of pyarrow would slow down other commands.

        columns, known = list(coding.names), {*coding.levels, *coding.dates}
        _check_columns(file.label, file.names, columns)
        self.faults = Faults(file.label, None, missing_allowed or bool(fills), columns)
        text = file.inspect(columns, known.intersection(columns), self.faults)
        check_rows(file.label, file.n, 1)
        self.faults.check()
        self._encoded = Encoded(file, coding, self.faults, unknown, mixed=text - known)
        check_names(file.label, self._encoded.names)
        self.n = file.n
        self._place = [self._encoded.names.index(name) for name in wanted]
        self._fills = np.array([fills[name] for name in wanted]) if fills else None

    def blocks(self) -> Iterator[FloatArray]:
        """Yield the features in blocks of shape (m, len(wanted)).

        Rows that cannot be used hold values that are not finite, and ``faults`` then names them.
        """
        for block in self._encoded.blocks(BLOCK_ROWS):
            X = np.ascontiguousarray(block[:, self._place])
            yield X if self._fills is None else np.where(np.isnan(X), self._fills, X)

    def load(self) -> FloatArray:
        """All rows, shape (n, len(wanted)).

        Raises InputError: Rows cannot be used; the message names their columns.
        """
        found = np.concatenate(list(self.blocks()))
        self.faults.check()
        return found


def texts_of(file: File, columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of some columns as text, row by row; a missing cell is an empty text.

    Raises InputError: A column is unknown.
    """
    for name in columns:
        if name not in file.names:
            hint = suggestion(name, file.names)
            raise InputError(f"{file.label}: --id names {quoted(name)}, which is no column; {hint}")
    return copy(file).texts(columns) if columns else repeat([])


def _check_columns(label: str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Raise an InputError where ``columns`` are not among a table's ``names``, or stand twice."""
    missing = [name for name in columns if name not in names]
    if missing:
        close = dict.fromkeys(other for name in missing for other in similar_names(name, names))
        hint = f"; it has {quoted_names(close)}" if close else ""
        columns_missing = f"column{'s' * (len(missing) > 1)} {quoted_names(missing)}"
        needed = f"the model needs {columns_missing}, which the table does not have"
        raise InputError(f"{label}: {needed}{hint}")
    check_names(label, [name for name in names if name in columns])
