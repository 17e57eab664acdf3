"""Tables of numbers with named columns: in memory, from CSV, from Parquet and from ``.npy``.

Every source hands out the same thing, a design matrix and a response, whole (:meth:`load`) or in
blocks of rows (:meth:`blocks`). What it hands out is finite and float64; anything else is refused
with one line that names the column or row.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .columns import FloatArray, as_names, check_rows, select_columns
from .rows import RowSource
from .weights_groups import Column, names_aside

if TYPE_CHECKING:
    from .parquet import ParquetFile
    from .text import TextFile

__all__ = ["open_table"]

_TEXT_SUFFIXES = {".csv", ".tsv", ".txt"}
_PARQUET_SUFFIXES = {".parquet", ".pq"}


def map_npy(path: Path) -> np.ndarray[Any, np.dtype[Any]]:
    """Map a ``.npy`` file into memory.

    Returns, shape (n, columns).
    Raises InputError: It is not a two-dimensional numeric array.
    """
    try:
        array = np.lib.format.open_memmap(path, mode="r")
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


def npy_names(path: Path) -> list[str]:
    """Names of the columns of a ``.npy`` file.

    Returns: x0, x1, ..., and y for the last.
    """
    count = map_npy(path).shape[1]
    return [f"x{index}" for index in range(count - 1)] + ["y"] * bool(count)


class NpySource(RowSource):
    """A two-dimensional numeric ``.npy`` file, mapped rather than read.

    The columns are called ``x0``, ``x1``, ... and the last one ``y``.

    target: The target column, ``y`` by default.
    drop: Columns to leave out.
    Raises InputError: The file is not a two-dimensional numeric array, or a column is unknown.
    """

    def __init__(self, path: Path, *, target: str | None = None, drop: Sequence[str] = ()) -> None:
        self._path = path
        self.name = _stem(path)
        array = map_npy(path)
        self.n = len(array)
        check_rows(path.name, self.n)
        names = npy_names(path)
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

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        for start in range(0, self.n, rows):
            # Mapped afresh for each block, so that the pages already read do not count as used.
            block = map_npy(self._path)[start : start + rows]
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


def open_file(path: str | PathLike[str], encoding: str) -> "TextFile | ParquetFile | Path":
    """The file behind a path; a ``.npy`` file is handed back as its path.

    path: "-" is standard input, as text.
    encoding: Of text.
    Raises InputError: There is no such file, or it is a folder without Parquet files.
    """
    place = Path(path).expanduser()
    if str(path) != "-":
        if not place.exists():
            raise InputError(
                f"no file {place}; check the path, or see `sparsecv datasets` for names"
            )
        if place.is_dir():
            from .parquet import ParquetFolder

            return ParquetFolder(place)
    suffix = place.suffix.lower()
    if suffix == ".npy":
        return place
    if suffix in _PARQUET_SUFFIXES:
        from .parquet import ParquetFile

        return ParquetFile(place)
    from .text import TextFile

    content = sys.stdin.buffer.read() if str(path) == "-" else None
    return TextFile(place, encoding, content)


def open_table(
    path: str | PathLike[str],
    *,
    target: str | None = None,
    one_hot: str | bool = False,
    drop: str | Iterable[str] = (),
    encoding: str = "utf-8",
    weights: str | None = None,
    groups: str | None = None,
) -> RowSource:
    """Open a table of numbers.

    Parameters
    ----------
    path : path-like
        ``.csv``, ``.tsv`` or ``.txt`` (also ``.gz``): text with a header line, separated by comma,
        semicolon, tab or bar; in semicolon files ``1,5`` is a decimal. ``.parquet`` or ``.pq``:
        Parquet. ``.npy``: a 2-D array, its columns named ``x0``, ``x1``, ... and ``y``. Any other
        suffix is tried as text; ``-`` is text on the standard input. A folder is the table of the
        Parquet files in it, in the order of their names. Text is read into memory
        unless it is large; the others are read when asked for.
    target : str, optional
        The response; by default the last column that is not dropped. In Parquet files from pandas
        the index does not count as a column unless it is named here.
    one_hot : bool or "all"
        Replace each text column by one 0/1 column per level, sorted, named ``feature=level``; one
        of two levels has no column unless "all" is said.
    drop : str or iterable of str
        Columns to leave out.
    encoding : str
        Of text.
    weights, groups : str, optional
        Columns that are no features: weights of the rows, and groups, which may be text.

    Returns
    -------
    RowSource

    Raises
    ------
    InputError
        In one line: what is wrong with the file, or which columns, rows or options are at fault.
        For Parquet and ``.npy``, missing and infinite values are found when rows are read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "t.csv"
    ...     _ = path.write_text("a;price" + chr(10) + "1;2,5" + chr(10) + "2;3,5")
    ...     X, y = open_table(path).load()
    >>> y.tolist()
    [2.5, 3.5]
    """
    dropped = as_names(drop)
    file = open_file(path, encoding)
    if isinstance(file, Path):
        label, names = file.name, npy_names(file)
    else:
        label, names = file.label, file.names
    aside = names_aside(label, names, target, dropped, weights, groups)
    dropped += tuple(name for name in aside if name is not None)
    if isinstance(file, Path):
        source: RowSource = NpySource(file, target=target, drop=dropped)
    else:
        from .arrow import open_arrow  # imports pyarrow, which small commands do without

        kind = "" if not one_hot else ("all" if one_hot == "all" else "two-level")
        name = "data" if str(path) == "-" else _stem(file.path)
        source = open_arrow(file, name, target=target, one_hot=kind, drop=dropped)
    source.set_aside(*(None if name is None else _column(file, name) for name in aside))
    return source


def _column(file: "TextFile | ParquetFile | Path", name: str) -> Column:
    if not isinstance(file, Path):
        return Column.read(file, name)
    values = map_npy(file)[:, npy_names(file).index(name)].astype(np.float64)
    return Column.of(file.name, name, values)
