"""Columns that a fitted model needs, from a table that may hold others."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError
from .column_errors import Faults
from .columns import FloatArray, listed, near, shown
from .datasets import locate
from .rows import RowSource
from .sources import map_npy, open_file

_ROWS = 65536


def read_features(
    data: str, columns: Mapping[str, Sequence[str]], wanted: Sequence[str], encoding: str = "utf-8"
) -> Iterator[FloatArray]:
    """Read columns by name, in blocks of rows; others are ignored.

    data: A file or data set, as for :func:`~sparsecv.tables.datasets.resolve`; it needs no
        response.
    columns: Columns of the table, and the levels of those of text.
    wanted: Features in the order wanted: such a column, or ``column=level``.
    encoding: Of text.
    Yields, shape (m, len(wanted)): Finite.
    Raises InputError: A column is missing, or holds what it should not.
    """
    label, names, blocks = _opened(locate(data), columns, encoding)
    place = [names.index(name) for name in wanted]
    done = 0
    for block in blocks:
        X = np.ascontiguousarray(block[:, place])
        faults = Faults(label)
        faults.values(X, wanted, done)
        faults.check()
        done += len(X)
        yield X


def _opened(
    table: str | RowSource, columns: Mapping[str, Sequence[str]], encoding: str
) -> tuple[str, list[str], Iterator[FloatArray]]:
    """What messages call the table, the names of its columns, and blocks of them."""
    if isinstance(table, RowSource):
        names = [*table.feature_names, table.target_name]
        _check_columns(table.name, names, columns)
        return table.name, names, (np.column_stack(rows) for rows in table.blocks(_ROWS))
    file = open_file(table, encoding)
    if isinstance(file, Path):
        every = map_npy(file)
        names = [f"x{j}" for j in range(every.shape[1])]
        _check_columns(file.name, names, columns)
        parts = (every[i : i + _ROWS] for i in range(0, len(every), _ROWS))
        return file.name, names, (np.asarray(part, dtype=np.float64) for part in parts)
    from .arrow import ArrowTable

    _check_columns(file.label, file.names, columns)
    levels = {name: found for name, found in columns.items() if found}
    arrow = ArrowTable(file, list(columns), levels=levels, least=1)
    return file.label, arrow.names, arrow.blocks(_ROWS)


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
