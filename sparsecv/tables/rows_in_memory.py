"""Rows of [X y] in memory, dense or sparse, of which a part is copied when it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import FloatArray

# A table whose rows are all needed at once (leave-one-out, weights) is held in memory, or made
# dense, up to this many bytes, and a larger one is refused. Of a table that is read in parts, the
# moments of all folds together may take as many bytes, 8 (p + 1)² for each fold of p columns, else
# the folds are refused. The number is a choice.
MAX_HELD_BYTES = 1_500_000_000


def refuse_dense(n: int, p: int) -> None:
    """Raise an InputError where n rows of p columns take more than MAX_HELD_BYTES."""
    if (size := 8 * n * p) > MAX_HELD_BYTES:
        raise InputError(
            f"X is sparse, and a dense copy of {n:,} rows and {p:,} columns, which this fit needs, "
            f"takes {size / 1e9:.1f} GB, above the limit of {MAX_HELD_BYTES / 1e9:.1f} GB: pass "
            "fewer columns, or X.toarray() where there is memory for it and for several copies"
        )


class RowSubset:
    """Some rows of a dense or sparse matrix, of which a part is copied when it is asked for.

    A large table whose folds are fitted anew has no copy for every fold. The object can be indexed
    by rows, and by rows and columns, and gives dense arrays; :meth:`columns` selects columns.

    X, shape (n, p): A matrix, another RowSubset, or a CSR or CSC array of scipy whose entries are
        in order and stored once.
    numbers, shape (m,): Numbers of the rows.
    """

    def __init__(self, X: Any, numbers: NDArray[np.intp]) -> None:
        subset = isinstance(X, RowSubset)
        self.X: Any = X.X if subset else X
        self.numbers: NDArray[np.intp] = X.numbers[numbers] if subset else numbers
        self.shape = numbers.size, X.shape[1]
        self.sparse = not hasattr(self.X, "__array__")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> FloatArray:
        rows, *columns = at if isinstance(at, tuple) else (at,)
        numbers = self.numbers[rows]
        if self.sparse:
            return self._dense(numbers, *columns)
        if isinstance(rows, slice) and columns and np.ndim(columns[0]) == 1:
            numbers = numbers[:, None]  # As of an array, every such row has every such column.
        found: FloatArray = self.X[(numbers, *columns)]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def _dense(self, numbers: Any, columns: Any = slice(None)) -> FloatArray:
        """Some columns of some rows of a sparse matrix; ``numbers`` are rows of the matrix.

        Raises InputError: The dense array would take more than MAX_HELD_BYTES.
        """
        rows, selected = np.ravel(numbers), self.X
        if isinstance(columns, slice) and columns == slice(None):
            selected = selected[rows]
        elif selected.format == "csc":  # The selection that reads the fewest entries comes first.
            selected = selected[:, np.arange(self.shape[1])[columns].ravel()][rows]
        else:
            selected = selected[rows][:, np.arange(self.shape[1])[columns].ravel()]
        refuse_dense(*selected.shape)
        found: FloatArray = selected.toarray(order="C")
        return found[:, 0] if isinstance(columns, int) else found

    def columns(self, numbers: NDArray[np.intp]) -> Any:
        """The same rows of some columns, which are copied; of a sparse matrix another RowSubset."""
        return RowSubset(self.X[:, numbers], self.numbers) if self.sparse else self[:, numbers]

    def copy(self) -> RowSubset:
        """The same rows, without arrays that the user may write to later."""
        return RowSubset(self.X.copy(), self.numbers)


class JoinedRows:
    """The rows of [X y] or [X Y], of which a row is copied when it is asked for.

    Nobody may write to X and y as long as the object is used. It can be indexed by rows, by rows
    and one column or a slice of columns, and by rows and numbers of columns of X; numpy turns it
    into an array. Copies of whole rows have 64-bit numbers.

    X, shape (n, p): A matrix of any type of numbers, or a RowSubset.
    y, shape (n,) or (n, q).
    """

    def __init__(self, X: Any, y: FloatArray) -> None:
        self.X, self.Y = X, y.reshape(len(y), -1)
        self.shape = len(y), X.shape[1] + self.Y.shape[1]
        self.nbytes = 8 * self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> FloatArray:
        p = self.X.shape[1]
        if isinstance(at, tuple):
            rows, columns = at
            if isinstance(columns, slice):
                start, stop, _ = columns.indices(self.shape[1])
                if stop <= p:
                    return np.asarray(self.X[rows, columns])
                of_Y = self.Y[rows, max(start - p, 0) : stop - p]
                return np.column_stack([self.X[rows, start:p], of_Y])
            if isinstance(columns, int) and columns >= p:
                return np.asarray(self.Y[rows, columns - p])
            return np.asarray(self.X[rows, columns])
        response, whole = self.Y[at], isinstance(at, slice)
        if sparse_part(self) is not None:
            refuse_dense(len(response), p)
            whole = True
        found = np.empty((len(response), self.shape[1]))
        found[:, p:] = response
        if whole:
            found[:, :p] = self.X[at]
            return found
        numbers = np.arange(len(self))[at]
        # Blocks of up to a megabyte stay in the processor's cache between the two copies.
        step = max(1, 2**17 // p)
        for start in range(0, numbers.size, step):
            some = slice(start, start + step)
            found[some, :p] = self.X[numbers[some]]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def copy(self) -> FloatArray:
        """The rows as an array."""
        return self[:]

    def kept(self) -> JoinedRows:
        """The same rows, without arrays that the user may write to later.

        An X that lies in a file, mapped for reading alone, is not copied.
        """
        mapped = self.X
        while isinstance(mapped, np.ndarray) and not isinstance(mapped, np.memmap):
            mapped = mapped.base
        X = self.X if isinstance(mapped, np.memmap) and mapped.mode == "r" else self.X.copy()
        return JoinedRows(X, self.Y.copy())


def sparse_part(given: Any) -> RowSubset | None:
    """The rows of X where ``given`` is the JoinedRows of a sparse X, else None."""
    X = given.X if isinstance(given, JoinedRows) else None
    return X if isinstance(X, RowSubset) and X.sparse else None


def joined(X: Any, y: FloatArray) -> Any:
    """[X y] as one array, shape (n, p + 1), or [X Y], or as JoinedRows; nobody may write to it.

    Nothing is copied where X and y are all columns of one array, as :meth:`RowSource.load` returns
    them. Neither is an X of more columns than rows, whose rows lie in memory one after the other;
    of a longer table a copy saves time.
    """
    if isinstance(X, RowSubset):
        return JoinedRows(X, y)
    table = X.base
    if isinstance(table, np.ndarray) and table.ndim == 2 and table.flags.c_contiguous:
        pairs = ((X, table[:, :-1]), (y, table[:, -1]))
        if all(one.__array_interface__ == other.__array_interface__ for one, other in pairs):
            return table
    if X.shape[1] > X.shape[0] and X.strides[1] == X.itemsize:
        return JoinedRows(X, y)
    return np.column_stack([X, y])
