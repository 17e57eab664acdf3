"""Columns of X in solved units that are made from the table, some at a time, when they are read."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..solvers.kernels.linalg import centred_products, stored_products
from ..tables.rows_in_memory import refuse_dense, sparse_part
from .design import Array, Block, column_blocks, training_means
from .folds import Index
from .missing import fill


class Origin(NamedTuple):
    """What takes rows of [X y] to the solved rows of a fold.

    All comes from the fold's training rows, but for a scale of all rows
    (``RowFolds.scales_by_training_rows``).

    scale, shape (p + 1,): Divisors of the columns, once they are filled and centred, and of y.
    fill, shape (p + 1,): What missing values are filled with; None without missing values.
    means, shape (p + 1,) each: Means in two parts; empty where the intercept is not refitted.
    squares, shape (p + 1,): Squared lengths of the solved columns; None where rows are copied.
    """

    scale: Array
    fill: Array | None = None
    means: tuple[Array, ...] = ()
    squares: Array | None = None

    @classmethod
    def by_columns(
        cls, given: Any, numbers: Index, scale: Array, centred: bool, weights: Array | None
    ) -> Origin:
        """The origin of training rows, of which some columns at a time are copied.

        given: The rows of [X y] as they came, an array or JoinedRows.
        numbers: The training rows.
        centred: Whether the intercept is refitted.
        weights: Those of the training rows.
        """
        means, squares = np.zeros((2, scale.size)), np.empty(scale.size)
        for at in column_blocks(numbers.size, scale.size):
            rows = given[numbers, at].astype(np.float64, copy=False)
            if centred:
                block: Block = rows, weights
                means[:, at] = training_means(partial(iter, [block]))
            moved = cls(scale[at], None, (means[0, at], means[1, at]) if centred else ())
            moved.move(rows)
            squared = np.square(rows, out=rows)
            squares[at] = squared.sum(axis=0) if weights is None else weights @ squared
        return cls(scale, None, (means[0], means[1]) if centred else (), squares)

    def move(self, rows: Array, columns: Any = slice(None)) -> None:
        """Fill, centre and scale some columns of rows of [X y], in place."""
        if self.fill is not None:
            fill(rows, self.fill[columns])
        for mean in self.means:
            rows -= mean[columns]
        rows /= self.scale[columns]


class SolvedColumns:
    """The columns of X of m rows in solved units, times the roots of the rows' weights.

    The object stands for an array of shape (m, p) in ``X[:, columns]``, ``X @ coef`` and ``v @ X``.
    Everything else makes the array.

    given: The rows of [X y] as they came, an array or JoinedRows.
    numbers, shape (m,): The rows.
    weights: Those of the rows.
    """

    __array_ufunc__ = None  # An array leaves ``v @ X`` to this class.

    def __init__(self, given: Any, numbers: Index, origin: Origin, weights: Array | None) -> None:
        self._given, self._numbers, self._origin = given, numbers, origin
        self._roots = None if weights is None else np.sqrt(weights)
        self.shape = numbers.size, origin.scale.size - 1

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> Array:
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        found = self._made(np.arange(self.shape[1])[columns])
        return found if isinstance(rows, slice) and rows == slice(None) else found[rows]

    def __matmul__(self, coef: Array) -> Array:
        used = np.flatnonzero(coef)
        return np.asarray(self._made(used) @ coef[used])

    def __rmatmul__(self, v: Array) -> Array:
        found, v = np.empty(self.shape[1]), v if self._roots is None else v * self._roots
        none = np.zeros(self._origin.scale.size)
        mean, tail = self._origin.means or (none, none)
        stored = sparse_part(self._given)
        if stored is not None and stored.X.format == "csc":
            X, whole = stored.X, np.zeros(stored.X.shape[0])
            np.add.at(whole, stored.numbers[self._numbers], v)
            arrays = X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
            stored_products(*arrays, mean[:-1], tail[:-1], whole, found)
            return np.asarray(found / self._origin.scale[:-1])
        for at in column_blocks(*self.shape):
            rows = self._given[self._numbers, at].astype(np.float64, copy=False)
            centred_products(np.ascontiguousarray(rows), mean[at], tail[at], v, found[at])
        return np.asarray(found / self._origin.scale[:-1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if sparse_part(self._given) is not None:
            refuse_dense(*self.shape)
        found = np.empty(self.shape)
        for at in column_blocks(*self.shape):
            found[:, at] = self._made(at)
        return found if dtype is None else found.astype(dtype, copy=False)

    @property
    def T(self) -> Array:
        """The transposed array."""
        return np.asarray(self).T

    @property
    def y(self) -> Array:
        """The response of the rows, shape (m,)."""
        last = slice(self.shape[1], self.shape[1] + 1)
        return np.ascontiguousarray(self._made(last)[:, 0])

    def _made(self, columns: slice | Index) -> Array:
        """Some columns of [X y]."""
        numbers = self._numbers if isinstance(columns, slice) else self._numbers[:, None]
        rows: Array = np.asarray(self._given[numbers, columns], dtype=np.float64)
        self._origin.move(rows, columns)
        return rows if self._roots is None else rows * self._roots[:, None]
