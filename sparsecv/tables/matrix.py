"""Matrices of numbers with named columns, in memory or in a ``.npy`` file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, first_line
from .columns import FloatArray, check_rows
from .weights_groups import Column


class Matrix:
    """A matrix of n rows, and the columns of the matrix that are in use.

    label: The matrix's name in messages.
    names: Names of the columns in use.
    read: Returns the matrix. The matrix of a file is mapped into memory again for every block, so
        that blocks that were read do not count as used memory.
    columns: Positions of the columns in use; all columns by default.
    in_memory: Whether ``read`` returns an array in memory rather than a mapped file.
    """

    index: Sequence[str] = ()
    missing_allowed = False
    levels: Mapping[str, Sequence[str]] = {}
    reference_levels: Mapping[str, str] = {}

    def __init__(
        self,
        label: str,
        names: Sequence[str],
        read: Callable[[], NDArray[Any]],
        columns: Sequence[int] | None = None,
        in_memory: bool = False,
    ) -> None:
        self.in_memory = in_memory
        self.label, self.names, self._read, self.n = label, list(names), read, len(read())
        at = list(range(len(self.names))) if columns is None else list(columns)
        # A slice selects neighbouring columns faster than a list of positions does.
        together = at and at == list(range(at[0], at[0] + len(at)))
        self._columns: slice | list[int] = slice(at[0], at[-1] + 1) if together else at

    @classmethod
    def of_npy(cls, path: Path) -> "Matrix":
        """The matrix in a ``.npy`` file, whose columns are named ``x0``, ``x1``, ... and ``y``."""
        count = map_npy(path).shape[1]
        names = [f"x{index}" for index in range(count - 1)] + ["y"] * bool(count)
        return cls(path.name, names, partial(map_npy, path))

    def select(self, columns: Sequence[str], min_rows: int = 2, **options: Any) -> "Matrix":
        """The named columns of the same rows; ``options`` concern text and have no effect here."""
        check_rows(self.label, self.n, min_rows)
        at = [self.names.index(name) for name in columns]
        return Matrix(self.label, columns, self._read, at, self.in_memory)

    def weights_or_groups(self, name: str) -> Column:
        """Read a column of weights or groups."""
        values = self._read()[:, self.names.index(name)].astype(np.float64)
        return Column.of(self.label, name, values)

    def unnamed_index(self) -> None:
        """None, because all columns of a matrix have names."""

    def parts(self) -> "list[Matrix]":
        """The empty list, because a matrix is not divided into files."""
        return []

    def blocks(self, rows: int) -> Iterator[FloatArray]:
        """Yield the columns in use in blocks of at most ``rows`` rows, of any numeric type."""
        for start in range(0, self.n, rows):
            yield self._read()[start : start + rows, self._columns]


def map_npy(path: Path) -> NDArray[Any]:
    """Map the array in a ``.npy`` file into memory; InputError if it is no matrix of numbers."""
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        reason = first_line(error, "it ends too early")
        raise InputError(
            f"{path.name}: not a readable .npy array ({reason}); "
            "write it again with numpy.save as a 2-D array of numbers"
        ) from error
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{path.name}: a .npy file must hold a 2-D array of real numbers (rows by columns, "
            f"the target last), not {array.ndim}-D {array.dtype}"
        )
    return array
