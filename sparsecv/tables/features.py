"""Reads the columns that a fitted model needs, from a table that may hold other columns, too."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..errors import InputError
from .column_errors import Faults
from .columns import BLOCK_ROWS, FloatArray, check_names, quoted_names, similar_names
from .datasets import locate


def read_features(
    data: str,
    columns: Mapping[str, Sequence[str]],
    wanted: Sequence[str],
    encoding: str = "utf-8",
    fills: Mapping[str, float] | None = None,
) -> Iterator[FloatArray]:
    """Read the features of a model by name, in blocks of m rows.

    data: A file or data set, as for :func:`~sparsecv.tables.datasets.resolve`. No response is
        needed.
    columns: The columns to read, each with its levels if the column holds text, else with none.
    wanted: The features in the model's order: a column's name, or ``column=level``.
    fills: What missing values of a feature are filled with, by its name; with None they are faults.
    Yields, shape (m, len(wanted)): Finite numbers.
    Raises InputError: A column is missing or repeated, or holds what the model cannot use.
    """
    file, _ = locate(data, encoding)
    _check_columns(file.label, file.names, columns)
    file.missing_allowed = bool(fills)
    levels = {name: found for name, found in columns.items() if found}
    table = file.select(list(columns), levels=levels, min_rows=1)
    place = [table.names.index(name) for name in wanted]
    rows_before = 0
    for block in table.blocks(BLOCK_ROWS):
        X = np.ascontiguousarray(block[:, place], dtype=np.float64)
        for j, name in enumerate(wanted if fills else ()):
            X[np.isnan(X[:, j]), j] = (fills or {})[name]
        faults = Faults(file.label)
        faults.values(X, wanted, rows_before)
        faults.check()
        rows_before += len(X)
        yield X


def _check_columns(label: str, names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> None:
    """Raise an InputError where ``columns`` are not among a table's ``names``, or stand twice."""
    missing = [name for name in columns if name not in names]
    if missing:
        close = quoted_names(
            dict.fromkeys(other for name in missing for other in similar_names(name, names))
        )
        hint = f"; it has {close}" if close else ""
        raise InputError(
            f"{label}: the model needs {'column' if len(missing) == 1 else 'columns'} "
            f"{quoted_names(missing)}, which the table does not have{hint}"
        )
    check_names(label, [name for name in names if name in columns])
