"""Columns that a fitted model needs, from a table that may hold others."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..errors import InputError
from .column_errors import Faults
from .columns import BLOCK_ROWS, FloatArray, listed, near, shown
from .datasets import locate


def read_features(
    data: str, columns: Mapping[str, Sequence[str]], wanted: Sequence[str], encoding: str = "utf-8"
) -> Iterator[FloatArray]:
    """Read columns by name, in blocks of rows; other columns of the table are ignored.

    data: A file or data set, as for :func:`~sparsecv.tables.datasets.resolve`; it needs no
        response.
    columns: The columns to read, each with its levels if the column holds text.
    wanted: Features in the order wanted: a column, or ``column=level``.
    Yields, shape (m, len(wanted)): Finite.
    Raises InputError: A column is missing, or holds what it should not.
    """
    file, _ = locate(data, encoding)
    _check_columns(file.label, file.names, columns)
    levels = {name: found for name, found in columns.items() if found}
    table = file.select(list(columns), levels=levels, least=1)
    place = [table.names.index(name) for name in wanted]
    done = 0
    for block in table.blocks(BLOCK_ROWS):
        X = np.ascontiguousarray(block[:, place], dtype=np.float64)
        faults = Faults(file.label)
        faults.values(X, wanted, done)
        faults.check()
        done += len(X)
        yield X


def _check_columns(label: str, names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> None:
    missing = [name for name in columns if name not in names]
    if missing:
        close = listed(dict.fromkeys(other for name in missing for other in near(name, names)))
        hint = f"; it has {close}" if close else ""
        raise InputError(
            f"{label}: the model needs {'column' if len(missing) == 1 else 'columns'} "
            f"{listed(missing)}, which the table does not have{hint}"
        )
    twice = [name for name in columns if list(names).count(name) > 1]
    if twice:
        raise InputError(f"{label}: duplicate column name {shown(twice[0])}; rename one of them")
