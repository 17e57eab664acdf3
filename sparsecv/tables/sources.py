"""Opens text files, Parquet files and ``.npy`` files as tables of features and a response.

A table's values are finite numbers of type float64. A table with other values is refused by a
message of one line, which names the column or the row.
"""

import sys
from collections.abc import Iterable, Iterator
from copy import copy
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .columns import PARQUET_SUFFIXES, WORKBOOK_SUFFIXES, FloatArray, select_columns
from .matrix import Matrix
from .rows import ArraySource, Part, RowSource

if TYPE_CHECKING:
    from .arrow import ArrowFile, ArrowTable

__all__ = ["open_table"]

TEXT_SUFFIXES = {".csv", ".tsv", ".txt"}


class FileSource(RowSource):
    """A table whose rows are read from a file or a matrix whenever they are needed.

    name: The table's name in output.
    table: The columns in use, the response last.
    """

    def __init__(self, name: str, target: str, table: "ArrowTable | Matrix") -> None:
        self.name, self.target_name, self.n = name, target, table.n
        self.levels, self.reference_levels = table.levels, table.reference_levels
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
            # A value too large for float64 becomes infinite, which RowSource.blocks refuses.
            with np.errstate(over="ignore"):
                X = np.array(block[:, :-1], dtype=np.float64, order="C")
                y = np.array(block[:, -1], dtype=np.float64)
            del block
            yield X, y


def open_file(path: str | PathLike[str], encoding: str) -> "ArrowFile | Matrix":
    """Open the file of a path, where "-" means text on the standard input.

    encoding: Encoding of text.
    Raises InputError: There is no such file, or the path is a folder without Parquet files.
    """
    place = Path(path).expanduser()
    if str(path) != "-" and not place.exists():
        raise InputError(f"no file {place}; check the path, or see `sparsecv datasets` for names")
    suffix = place.suffix.lower()
    if suffix == ".npy" and not place.is_dir():
        return Matrix.of_npy(place)
    if suffix in PARQUET_SUFFIXES or place.is_dir():
        from .parquet import ParquetFile  # The import of pyarrow would slow down other commands.

        return ParquetFile(place)
    if suffix in WORKBOOK_SUFFIXES:
        from .excel import open_workbook

        return open_workbook(place)
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
        Parquet. ``.xlsx``, ``.xls`` or ``.ods``: the first sheet (extra ``excel``). ``.npy``: a 2-D
        array, its columns named ``x0``, ``x1``, ... and ``y``. Any other
        suffix is tried as text; ``-`` is text on the standard input. A folder is the table of the
        Parquet files in it, in the order of their names. Text is read into memory unless it is
        large; rows of other files are read when they are needed. A first column without a name
        that only counts the rows, the index of an exported data frame, is left out.
    target : str, optional
        The response; by default the last column that is not dropped. In Parquet files from pandas
        the index does not count as a column unless the index is named here.
    one_hot : bool or "all"
        Replace each text column by one 0/1 column per level, sorted and named ``feature=level``. A
        column of two levels gets the 0/1 column of its second level alone, unless "all" is passed.
    drop : str or iterable of str
        Columns to leave out.
    encoding : str
        Encoding of text.
    weights, groups : str, optional
        Columns that are no features: the weights of the rows, and the groups that folds hold
        together. Groups may be text.

    Returns
    -------
    RowSource

    Raises
    ------
    InputError
        The file cannot be used; the message of one line names the columns, rows or options at
        fault. Missing and infinite values of Parquet and ``.npy`` are found when rows are read.

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
    uses = {"target": target, "weights": weights, "groups": groups}
    return table_of(open_file(path, encoding), name_of(path), one_hot=one_hot, drop=drop, **uses)


def table_of(
    file: "ArrowFile | Matrix",
    name: str,
    *,
    one_hot: str | bool = False,
    drop: str | Iterable[str] = (),
    **uses: str | None,
) -> RowSource:
    """The table in a file or a matrix; the options are those of :func:`open_table`.

    name: The table's name in output.
    uses: The columns named for "target", "weights" and "groups".
    """
    uses = dict.fromkeys(("target", "weights", "groups")) | uses
    drop = (drop,) if isinstance(drop, str) else drop
    drop = list(drop)
    unnamed = file.unnamed_index()
    unnamed = None if unnamed in (*drop, *uses.values()) else unnamed
    index = [column for column in file.index if column not in uses.values()]
    index += [] if unnamed is None else [unnamed]
    use = select_columns(file.label, file.names, (*drop, *index), uses)
    kind = "all" if one_hot == "all" else "two-level" * bool(one_hot)
    table = file.select([*use.features, use.target], target=use.target, one_hot=kind)
    source: RowSource = FileSource(name, use.target, table)
    if table.in_memory:
        in_memory = ArraySource(*source.load(), source.feature_names, use.target, name)
        in_memory.levels, in_memory.reference_levels = source.levels, source.reference_levels
        source = in_memory
    weights, groups = (
        None if column is None else file.weights_or_groups(column)
        for column in (use.weights, use.groups)
    )
    source.take_weights_and_groups(weights, groups)
    source.left_out = unnamed
    return source


def name_of(path: str | PathLike[str]) -> str:
    """The name of a table: the file's name without a known suffix, and without ``.gz``."""
    file = Path(path)
    stem = Path(file.stem) if file.suffix.lower() == ".gz" else file
    known = TEXT_SUFFIXES | PARQUET_SUFFIXES | WORKBOOK_SUFFIXES | {".npy"}
    return "data" if str(path) == "-" else stem.stem if stem.suffix.lower() in known else stem.name
