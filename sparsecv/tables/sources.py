"""Tables of numbers with named columns: in memory, from CSV, from Parquet and from ``.npy``.

Every source hands out the same thing, a design matrix and a response, whole (:meth:`load`) or in
blocks of rows (:meth:`blocks`). What it hands out is finite and float64; anything else is refused
with one line that names the column or row.
"""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .columns import FloatArray, as_names, check_rows, select_columns
from .csv import read_csv
from .rows import ArraySource, RowSource

__all__ = ["ArraySource", "NpySource", "RowSource", "open_table"]

_TEXT_SUFFIXES = {".csv", ".tsv", ".txt"}
_PARQUET_SUFFIXES = {".parquet", ".pq"}


class NpySource(RowSource):
    """A two-dimensional numeric ``.npy`` file, mapped rather than read.

    The columns are called ``x0``, ``x1``, ... and the last one ``y``.

    Parameters
    ----------
    path : Path
    target : str, optional
        The target column, ``y`` by default.
    drop : sequence of str
        Columns to leave out.

    Raises
    ------
    InputError
        The file is not a two-dimensional numeric array, or a column is unknown.
    """

    def __init__(self, path: Path, *, target: str | None = None, drop: Sequence[str] = ()) -> None:
        self._path = path
        self.name = _stem(path)
        array = self._map()
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise InputError(
                f"{path.name}: a .npy file must hold a 2-D array of real numbers (rows by columns, "
                f"the target last), not {array.ndim}-D {array.dtype}"
            )
        self.n = len(array)
        check_rows(path.name, self.n)
        names = [f"x{index}" for index in range(array.shape[1] - 1)] + ["y"] * bool(array.shape[1])
        selection = select_columns(path.name, names, target, drop)
        self.feature_names = [names[index] for index in selection.features]
        self.target_name = names[selection.target]
        self._target = selection.target
        # Neighbouring columns are taken as a slice, which is faster than a list of positions.
        first, last = selection.features[0], selection.features[-1]
        whole = last - first + 1 == self.p
        self._features: slice | list[int] = slice(first, last + 1) if whole else selection.features

    @property
    def _label(self) -> str:
        return self._path.name

    def _map(self) -> np.ndarray[Any, np.dtype[Any]]:
        try:
            return np.lib.format.open_memmap(self._path, mode="r")
        except OSError as error:
            raise InputError(f"cannot read {self._path}: {error.strerror or error}") from error
        except (ValueError, EOFError) as error:
            reason = str(error).splitlines()[0] if str(error) else "it ends too early"
            raise InputError(
                f"{self._path.name}: not a readable .npy array ({reason}); "
                "write it again with numpy.save as a 2-D array of numbers"
            ) from error

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        for start in range(0, self.n, rows):
            # Mapped afresh for each block, so that the pages already read do not count as used.
            block = self._map()[start : start + rows]
            # Values too large for float64 become infinite, which the check of the block reports.
            with np.errstate(over="ignore"):
                X = np.array(block[:, self._features], dtype=np.float64, order="C")
                y = np.array(block[:, self._target], dtype=np.float64)
            del block
            yield X, y


def _stem(path: Path) -> str:
    """The name of a file without its suffix, nor the one before ``.gz``."""
    stem = Path(path.stem) if path.suffix.lower() == ".gz" else path
    return stem.stem if stem.suffix.lower() in _KNOWN else stem.name


_KNOWN = _TEXT_SUFFIXES | _PARQUET_SUFFIXES | {".npy"}


def open_table(
    path: str | PathLike[str],
    *,
    target: str | None = None,
    one_hot: bool = False,
    drop: str | Iterable[str] = (),
) -> RowSource:
    """Open a table of numbers.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.tsv`` or ``.txt`` (also ``.gz``): UTF-8 text with a header line, separated by
        comma, semicolon or tab; in semicolon files ``1,5`` is a decimal. ``.parquet`` or ``.pq``:
        Parquet, which needs pyarrow. ``.npy``: a 2-D array, its columns named ``x0``, ``x1``, ...
        and ``y``. Any other suffix is tried as text. Text is read into memory at once; the others
        are read when asked for.
    target : str, optional
        The response; by default the last column that is not dropped. In Parquet files from pandas
        the index does not count as a column unless it is named here.
    one_hot : bool
        Replace each text column by one 0/1 column per level, all levels kept and sorted, named
        ``feature=level``.
    drop : str or iterable of str
        Columns to leave out.

    Returns
    -------
    RowSource

    Raises
    ------
    InputError
        In one line: what is wrong with the file, or which column, row or option is at fault.
        For Parquet and ``.npy``, missing and infinite values are found when rows are read.
    """
    path, dropped = Path(path).expanduser(), as_names(drop)
    if not path.exists():
        raise InputError(f"no file {path}; check the path, or see `sparsecv datasets` for names")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a CSV, Parquet or .npy file in it")
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return NpySource(path, target=target, drop=dropped)
    if suffix in _PARQUET_SUFFIXES:
        from .parquet import ParquetSource  # pyarrow is optional

        return ParquetSource(path, target=target, one_hot=one_hot, drop=dropped)
    table = read_csv(path, target=target, one_hot=one_hot, drop=dropped)
    return ArraySource(table.X, table.y, table.feature_names, table.target_name, _stem(path))
