"""Long tables of Dask: arrays, data frames, and folders of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, first_line, not_installed
from .columns import FloatArray, check_names, quoted, select_columns
from .frames import is_lazy
from .sources import name_of
from .table import Table

# Dask reads the files of a folder, and of those in it, whose names end so.
_SUFFIXES = {".parquet", ".parq", ".pq"}


class DaskTable(Table):
    """A dask.array or dask.dataframe X, shape (n, p), with its response y, shape (n,).

    Nothing is computed here. The number n of rows is 0 until the table has been reduced.

    chunks: For every chunk of m rows the delayed arrays that together are the columns of [X y].
    name: The table's name in output.
    Raises InputError: The shapes do not fit, or a column is not numeric.
    """

    n = 0

    def __init__(self, X: Any, y: Any, name: str = "data") -> None:
        frame = hasattr(X, "columns") and X.ndim == 2
        names = [str(column) for column in X.columns] if frame else None
        series = hasattr(y, "to_dask_array") and getattr(y, "name", None) is not None
        # The name of an array of Dask is a hash.
        self.name, self.target_name = name, str(y.name) if series else "y"
        X, y = _checked("X", X, 2), _checked("y", y, 1)
        self.feature_names = names or [f"x{j}" for j in range(X.shape[1])]
        self.target_name += "_" * (self.target_name in self.feature_names)
        if not self.p:
            raise InputError(f"{name}: no feature columns in X; at least 1 is needed")
        check_names(name, [*self.feature_names, self.target_name])
        if frame and hasattr(y, "to_dask_array"):
            # Dask may read the files of a response alone in fewer parts than those of X.
            arrays = [_as_array(X.assign(**{self.target_name: y}))]
        else:
            arrays = _paired(_as_array(X).rechunk({1: -1}), _as_array(y))
        # With chunks of rows alone every array has one delayed part for each chunk.
        every = [array.to_delayed().ravel() for array in arrays]
        self.chunks: list[tuple[Any, ...]] = list(zip(*every, strict=True))

    def load(self) -> tuple[FloatArray, FloatArray]:
        """Refuse what needs the rows."""
        raise InputError(
            f"{self.name}: this needs the rows in memory, and a table of Dask is reduced to the "
            "moments of K folds (sparsecv cv, or SparseRidgeCV)"
        )

    def notes(self) -> list[str]:
        """No remarks, which would need rows."""
        return []


def open_parquet(
    path: str, target: str | None = None, drop: Sequence[str] = (), **others: Any
) -> DaskTable:
    """Open a folder of Parquet files, or the files that a pattern with a * names, as one table.

    target: The response; by default the last column.
    drop: Names of columns to leave out.
    others: Other options of the command that read a table; those that are given are refused.
    Raises InputError: Dask is not installed, there are no such files, or an option is refused.
    """
    try:
        import dask.dataframe as dd
    except ImportError:
        raise InputError(f"{path}: {not_installed('dask', 'distributed')}") from None
    for option, value in others.items():
        if value is not None:
            raise InputError(
                f"--{option.replace('_', '-')} needs the rows in memory, and {path} is reduced to "
                "the moments of K folds: write one file, or leave the option out"
            )
    try:
        if Path(path).is_dir() and not any(
            one.suffix in _SUFFIXES for one in Path(path).rglob("*")
        ):
            raise OSError(
                "no file in the folder has a name that ends in .parquet or .pq: name a folder "
                "of such files, or one file of CSV, Parquet or Excel"
            )
        frame = dd.read_parquet(path)
        if not len(frame.columns):
            raise OSError("there are no such files")
    except (OSError, ValueError) as error:
        # Dask names its own function first, and what is wrong in the cause.
        what = first_line(error.__cause__ or error, "there are no Parquet files")
        raise InputError(f"{path}: not readable as Parquet files ({what})") from None
    use = select_columns(path, list(map(str, frame.columns)), drop, {"target": target})
    return DaskTable(frame[use.features], frame[use.target], name_of(path))


def _checked(what: str, values: Any, dimensions: int) -> Any:
    """The values as a collection of Dask, once they are known to be numbers.

    what: "X" or "y", for messages.
    dimensions: The number of dimensions that the values must have.
    Raises InputError: They have other dimensions, or types that are no numbers.
    """
    import dask.array as da

    frame = hasattr(values, "to_dask_array")  # An array of Dask has no such method.
    lazy = values if frame or is_lazy(values) else da.from_array(np.asarray(values), chunks=-1)
    if lazy.ndim != dimensions:
        raise InputError(
            f"X must have shape (n, p) and y, a single column, shape (n,): {what} has "
            f"{lazy.ndim} dimensions in place of {dimensions}"
        )
    types = {what: getattr(lazy, "dtype", None)}
    if frame and dimensions == 2:
        types = {f"column {quoted(name)}": dtype for name, dtype in lazy.dtypes.items()}
    for name, dtype in types.items():
        # Objects in an array are checked when they are read.
        if getattr(dtype, "kind", "O") not in ("biuf" if frame else "biufO"):
            raise InputError(f"{name} must hold real numbers, not {dtype}: encode or drop it")
    return lazy


def _as_array(values: Any) -> Any:
    """A collection as a dask.array; missing values of pandas' own kind become NaN."""
    frame = hasattr(values, "to_dask_array")
    return values.astype(np.float64).to_dask_array() if frame else values


def _paired(X: Any, y: Any) -> list[Any]:
    """X and y in the same chunks of rows.

    Raises InputError: They have different lengths, or chunks of unknown and different lengths.
    """
    if not (np.isnan(X.shape[0]) or np.isnan(y.shape[0])):
        if y.shape != X.shape[:1]:
            raise InputError(f"X has {X.shape[0]:,} rows and y {y.shape[0]:,}")
        return [X, y.rechunk((X.chunks[0],))]
    if X.numblocks[0] != y.numblocks[0]:
        raise InputError(
            f"X has {X.numblocks[0]} chunks of unknown length and y {y.numblocks[0]}: pass X and y "
            "of the same data frame"
        )
    return [X, y]
