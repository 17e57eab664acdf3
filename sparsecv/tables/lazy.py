"""Tables as arrays and data frames of Dask, which may be larger than memory."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .columns import FloatArray, quoted
from .row_source import Part, RowSource, as_source

CHUNK_BYTES = 128_000_000
"""Chunks of more bytes of X are cut, because a worker holds a whole chunk in memory.

Twice the number doubles the memory of every worker and halves the number of units of work. The
value is the size of chunk that Dask itself aims at."""


def is_lazy(values: Any) -> bool:
    """Whether the values are an array or a data frame of Dask."""
    return hasattr(values, "__dask_graph__")


class LazySource(RowSource):
    """A dask.array or dask.dataframe X, shape (n, p), with its response y, shape (n,).

    X is read chunk by chunk. Where the lengths of chunks are unknown, a pass over the data counts
    the rows first.

    name: The table's name in output.
    Raises InputError: The shapes do not fit, or a column is not numeric.
    """

    divisible = True

    def __init__(self, X: Any, y: Any, name: str = "data") -> None:
        frame = hasattr(X, "columns") and X.ndim == 2
        names = [str(column) for column in X.columns] if frame else None
        series = hasattr(y, "to_dask_array") and getattr(y, "name", None) is not None
        # The name of an array of Dask is a hash.
        self.name, self.target_name = name, str(y.name) if series else "y"
        X, self.counted = _as_array("X", X, 2)
        y = _as_array("y", y, 1)[0]
        if y.shape != X.shape[:1]:
            raise InputError(f"X has {X.shape[0]:,} rows and y {y.shape[0]:,}")
        self.n = int(X.shape[0])
        self.feature_names = names or [f"x{j}" for j in range(X.shape[1])]
        self.target_name += "_" * (self.target_name in self.feature_names)
        self._check_columns()
        X = X.rechunk({0: _row_chunks(X.chunks[0], X.shape[1]), 1: -1})
        self._X, self._y = X, y.rechunk((X.chunks[0],))

    def parts(self) -> list[Part]:
        """A part for every chunk of rows; see :meth:`RowSource.parts`."""
        from dask import delayed

        names, target = self.feature_names, self.target_name
        starts = np.concatenate([[0], np.cumsum(self._X.chunks[0])[:-1]]).tolist()
        pairs = zip(self._X.to_delayed().ravel(), self._y.to_delayed().ravel(), strict=True)
        rows = [delayed((X, y, names, target), pure=True) for X, y in pairs]
        return [Part(start, part) for start, part in zip(starts, rows, strict=True)]

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        for start, part in self.parts():
            yield from as_source(part, start).blocks(rows)


def _as_array(what: str, values: Any, dimensions: int) -> tuple[Any, bool]:
    """The values as a dask.array, and whether the rows of its chunks had to be counted.

    what: "X" or "y", for messages.
    dimensions: The number of dimensions that the values must have.
    """
    import dask.array as da

    frame = hasattr(values, "to_dask_array")
    array = values if frame or is_lazy(values) else da.from_array(np.asarray(values), chunks=-1)
    if array.ndim != dimensions:
        raise InputError(
            f"X must have shape (n, p) and y, a single column, shape (n,): {what} has "
            f"{array.ndim} dimensions in place of {dimensions}"
        )
    types = {what: getattr(array, "dtype", None)}
    if frame and dimensions == 2:
        types = {f"column {quoted(name)}": dtype for name, dtype in array.dtypes.items()}
    for name, dtype in types.items():
        # Objects in an array are checked when they are read.
        if getattr(dtype, "kind", "O") not in ("biuf" if frame else "biufO"):
            raise InputError(f"{name} must hold real numbers, not {dtype}: encode or drop it")
    if frame:  # Missing values of pandas' own kind become NaN.
        return array.astype(np.float64).to_dask_array(lengths=True), True
    unknown = bool(np.isnan(array.shape).any())
    return (array.compute_chunk_sizes() if unknown else array), unknown


def _row_chunks(chunks: Sequence[int], p: int) -> tuple[int, ...]:
    """The rows of every chunk of p columns, once chunks of more than CHUNK_BYTES are cut evenly."""
    most = max(1, CHUNK_BYTES // (8 * p))
    cut: list[int] = []
    for size in chunks:
        pieces = -(-size // most)
        cut += [size // pieces + (i < size % pieces) for i in range(pieces)] if size else []
    return tuple(cut)
