"""Matrices of numbers with named columns, in memory or mapped from a ``.npy`` file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .columns import FloatArray, check_rows
from .weights_groups import Column


class Matrix:
    """A matrix of shape (n, columns), and those of its columns that are in use.

    read: Returns the matrix. The matrix of a file is mapped afresh for every block, so that the
        pages already read do not count as used memory.
    columns: Positions of the columns in use, all by default.
    held: The matrix is in memory anyway.
    """

    index: Sequence[str] = ()
    levels: Mapping[str, Sequence[str]] = {}
    left_out: Mapping[str, str] = {}

    def __init__(
        self,
        label: str,
        names: Sequence[str],
        read: Callable[[], NDArray[Any]],
        columns: Sequence[int] | None = None,
        held: bool = False,
    ) -> None:
        self.held = held
        self.label, self.names, self._read, self.n = label, list(names), read, len(read())
        at = list(range(len(self.names))) if columns is None else list(columns)
        # Neighbouring columns are taken as a slice, which is faster than a list of positions.
        together = at and at == list(range(at[0], at[0] + len(at)))
        self._columns: slice | list[int] = slice(at[0], at[-1] + 1) if together else at

    @classmethod
    def of_npy(cls, path: Path) -> "Matrix":
        """The matrix in a ``.npy`` file; its columns are called ``x0``, ``x1``, ... and ``y``.

        Raises InputError: The file holds no two-dimensional array of numbers.
        """
        count = map_npy(path).shape[1]
        names = [f"x{index}" for index in range(count - 1)] + ["y"] * bool(count)
        return cls(path.name, names, partial(map_npy, path))

    def select(self, columns: Sequence[str], least: int = 2, **options: Any) -> "Matrix":
        """The same rows with some of the columns; what options say of text does not matter here."""
        check_rows(self.label, self.n, least)
        at = [self.names.index(name) for name in columns]
        return Matrix(self.label, columns, self._read, at, self.held)

    def words(self, name: str) -> Column:
        """A column of weights or groups."""
        values = self._read()[:, self.names.index(name)].astype(np.float64)
        return Column.of(self.label, name, values)

    def parts(self) -> "list[Matrix]":
        """None: the matrix is not in parts."""
        return []

    def blocks(self, rows: int) -> Iterator[FloatArray]:
        """Yield the columns in use in blocks of at most ``rows`` rows, of any numeric type."""
        for start in range(0, self.n, rows):
            yield self._read()[start : start + rows, self._columns]


def map_npy(path: Path) -> NDArray[Any]:
    """Map a ``.npy`` file into memory.

    Raises InputError: The file holds no two-dimensional array of numbers.
    """
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it ends too early"
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
