"""Tables of numbers with named columns: from text, from Parquet, from ``.npy`` and in memory.

Every table is handed out as a design matrix and a response, whole (:meth:`RowSource.load`) or in
blocks of rows (:meth:`RowSource.blocks`), finite and float64; a table with anything else is
refused with one line that names the column or row.
"""

import sys
from collections.abc import Iterable, Iterator
from copy import copy
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .columns import FloatArray, as_names, select_columns
from .matrix import Matrix
from .rows import ArraySource, Part, RowSource

if TYPE_CHECKING:
    from .arrow import ArrowFile, ArrowTable

__all__ = ["open_table"]

TEXT_SUFFIXES = {".csv", ".tsv", ".txt"}
PARQUET_SUFFIXES = {".parquet", ".pq"}


class FileSource(RowSource):
    """Columns of a file or a matrix, the response last, read when asked for.

    name: Label for output.
    """

    def __init__(self, name: str, target: str, table: "ArrowTable | Matrix") -> None:
        self.name, self.target_name, self.n = name, target, table.n
        self.levels, self.left_out = table.levels, table.left_out
        self.feature_names, self._table = table.names[:-1], table
        self.divisible = bool(table.parts())

    @property
    def _label(self) -> str:
        return self._table.label

    def parts(self) -> list[Part]:
        """A part for every file of a folder; see :meth:`RowSource.parts`."""
        found: list[Part] = []
        for table in self._table.parts():
            part = copy(self)
            part._table, part.n, part.divisible = table, table.n, False
            part.weights = part.groups = None
            start = found[-1].start + found[-1].rows.n if found else 0
            found.append(Part(start, part))
        return found or super().parts()

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        for block in self._table.blocks(rows):
            # Values too large for float64 become infinite, which the check of the block reports.
            with np.errstate(over="ignore"):
                X = np.array(block[:, :-1], dtype=np.float64, order="C")
                y = np.array(block[:, -1], dtype=np.float64)
            del block
            yield X, y


def open_file(path: str | PathLike[str], encoding: str) -> "ArrowFile | Matrix":
    """The file behind a path; "-" is text on the standard input.

    encoding: Encoding of text.
    Raises InputError: The path leads nowhere, or to a folder without Parquet files.
    """
    place = Path(path).expanduser()
    if str(path) != "-" and not place.exists():
        raise InputError(f"no file {place}; check the path, or see `sparsecv datasets` for names")
    suffix = place.suffix.lower()
    if suffix == ".npy" and not place.is_dir():
        return Matrix.of_npy(place)
    if suffix in PARQUET_SUFFIXES or place.is_dir():
        from .parquet import ParquetFile  # imports pyarrow, which small commands do without

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
        Encoding of text.
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
    kinds = {"target": target, "weights": weights, "groups": groups}
    file = open_file(path, encoding)
    return table_of(file, name_of(path), one_hot=one_hot, drop=drop, **kinds)


def table_of(
    file: "ArrowFile | Matrix",
    name: str,
    *,
    target: str | None = None,
    one_hot: str | bool = False,
    drop: str | Iterable[str] = (),
    weights: str | None = None,
    groups: str | None = None,
) -> RowSource:
    """The rows of a file or a matrix; the options are those of :func:`open_table`.

    name: Label for output.
    """
    index = [column for column in file.index if column not in (target, weights, groups)]
    use = select_columns(file.label, file.names, target, (*as_names(drop), *index), weights, groups)
    kind = "all" if one_hot == "all" else "two-level" * bool(one_hot)
    table = file.select([*use.features, use.target], target=use.target, one_hot=kind)
    source: RowSource = FileSource(name, use.target, table)
    if table.held:
        held = ArraySource(*source.load(), source.feature_names, use.target, name)
        held.levels, held.left_out = source.levels, source.left_out
        source = held
    source.set_aside(
        *(None if each is None else file.words(each) for each in (use.weights, use.groups))
    )
    return source


def name_of(path: str | PathLike[str]) -> str:
    """The name of a table: its file's without the suffix, and without the suffix before ``.gz``."""
    file = Path(path)
    stem = Path(file.stem) if file.suffix.lower() == ".gz" else file
    known = TEXT_SUFFIXES | PARQUET_SUFFIXES | {".npy"}
    return "data" if str(path) == "-" else stem.stem if stem.suffix.lower() in known else stem.name
