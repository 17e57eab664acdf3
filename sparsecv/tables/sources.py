"""Opens text files, Parquet files and ``.npy`` files as tables of features and a response.

A table's values are finite numbers of type float64. A table with other values is refused by a
message of one line, which names the column or the row.
"""

import sys
from collections.abc import Iterable, Iterator
from copy import copy
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .coding import Coding
from .columns import (
    BLOCK_ROWS,
    PARQUET_SUFFIXES,
    WORKBOOK_SUFFIXES,
    FloatArray,
    check_rows,
    quoted,
    select_columns,
)
from .faults import Faults
from .features import Encoded
from .files import TABLE_SUFFIXES, File, Matrix, map_npy
from .row_source import ArraySource, Part, RowSource

__all__ = ["open_table"]


class Stream(RowSource):
    """A table whose rows are read from a file whenever they are needed.

    name: The table's name in output.
    table: The columns in use, the response last.
    missing: What becomes of missing values; None where they are errors.
    """

    def __init__(self, name: str, target: str, table: Encoded, missing: str | None = None) -> None:
        self.name, self.label, self.target_name, self.n = name, table.label, target, table.n
        self.coding = table.coding._replace(names=table.coding.names[:-1])
        self.feature_names, self._table = table.names[:-1], table
        self.divisible, self.in_memory = bool(table.parts()), table.in_memory
        self.kept: NDArray[np.bool_] | None = None  # The rows in use; None where all are.
        if missing is not None:
            self.kept = self._rows_in_use(missing)
            self.missing = missing if missing != "drop" else None
            self.n = int(np.count_nonzero(self.kept))
            self.rows_left_out = table.n - self.n
            what = "a response" if self.missing else "no missing value"
            check_rows(f"{table.label}, rows with {what}", self.n)

    def _rows_in_use(self, missing: str) -> NDArray[np.bool_]:
        """Whether each row is in use, found in a pass over the table; values are checked, too.

        With "drop" rows are in use that lack no value, else all rows that have a response.

        Raises InputError: A value is infinite, or a column has no value.
        """
        names = [*self.feature_names, self.target_name]
        faults, kept = Faults(self.label, self.target_name, True), list[Any]()
        known, rows_before = np.zeros(len(names), dtype=bool), 0
        for values in self._table.blocks(BLOCK_ROWS):
            holes = np.isnan(values)
            kept.append(~holes.any(axis=1) if missing == "drop" else ~holes[:, -1])
            known |= ~holes.all(axis=0)
            faults.values(values, names, rows_before)
            rows_before += len(values)
        self._table.faults.check()
        for j in np.flatnonzero(~known):
            faults.add(names[j], f"column {quoted(names[j])} has no value")
        faults.check()
        return np.concatenate(kept)

    def parts(self) -> list[Part]:
        """A part for every file of a folder; see :meth:`RowSource.parts`."""
        found, row = list[Part](), 0
        for table in self._table.parts():
            part = copy(self)
            part._table, part.label, part.n, part.divisible = table, table.label, table.n, False
            part.weights = part.groups = None
            if self.kept is not None:
                part.kept = self.kept[row : row + table.n]
                part.n = int(np.count_nonzero(part.kept))
            row += table.n
            if not part.n:
                continue
            start = found[-1].start + found[-1].rows.n if found else 0
            found.append(Part(start, part))
        return found or super().parts()

    def load(self) -> tuple[FloatArray, FloatArray]:
        """Read all rows in use: X of shape (n, p) and y of shape (n,), columns of one array.

        X may hold NaN where missing features are to be filled.

        Raises InputError: Another value is missing or infinite; the message names its column.
        """
        rows = self._table.load()
        rows = rows if self.kept is None or not self.rows_left_out else rows[self.kept]
        X, y = rows[:, :-1], rows[:, -1]
        if not self._usable(X, y):
            self._refuse(iter([(X, y)]))
        return X, y

    def _refuse(self, blocks: Iterator[tuple[FloatArray, FloatArray]], first_row: int = 0) -> None:
        self._table.faults.check()  # A level or a date is at fault.
        super()._refuse(blocks, first_row)

    def _read(self, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        row = 0
        for block in self._table.blocks(rows):
            if self.kept is not None:
                kept = self.kept[row : row + len(block)]
                row += len(block)
                if not kept.all():
                    block = block[kept]
                if not len(block):
                    continue
            X, y = np.array(block[:, :-1], order="C"), np.array(block[:, -1])
            del block
            yield X, y


def open_file(path: str | PathLike[str], encoding: str) -> File:
    """Open the file of a path, where "-" means text on the standard input.

    encoding: Encoding of text.
    Raises InputError: There is no such file, or the path is a folder without Parquet files.
    """
    place = Path(path).expanduser()
    if str(path) != "-" and not place.exists():
        raise InputError(f"no file {place}; check the path")
    suffix = place.suffix.lower()
    if suffix == ".npy" and not place.is_dir():
        count = map_npy(place).shape[1]
        names = [f"x{index}" for index in range(count - 1)] + ["y"] * bool(count)
        return Matrix(place.name, names, partial(map_npy, place))
    if suffix in PARQUET_SUFFIXES or place.is_dir():
        from .parquet import ParquetFile  # The import of pyarrow would slow down other commands.

        return ParquetFile(place)
    from .text import TextFile, open_workbook

    if suffix in WORKBOOK_SUFFIXES:
        return open_workbook(place)
    content = sys.stdin.buffer.read() if str(path) == "-" else None
    return TextFile(place, encoding, content)


def name_of(path: str | PathLike[str]) -> str:
    """The name of a table: the file's name without a known suffix, and without ``.gz``."""
    file = Path(path)
    stem = Path(file.stem) if file.suffix.lower() == ".gz" else file
    known = stem.suffix.lower() in TABLE_SUFFIXES
    return "data" if str(path) == "-" else stem.stem if known else stem.name


def open_table(
    path: str | PathLike[str] | tuple[File, str],
    *,
    target: str | None = None,
    one_hot: str | bool = False,
    drop: str | Iterable[str] = (),
    encoding: str = "utf-8",
    weights: str | None = None,
    groups: str | None = None,
    missing: str | None = None,
) -> RowSource:
    """Open a table of numbers.

    Parameters
    ----------
    path : path-like, or a pair of an open file and its name in output
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
        Each column of dates, such as 2024-01-31 or 2024-01-31 12:00, is replaced by the columns
        ``name.year``, ``name.month``, ``name.weekday`` (Monday is 1) and ``name.days``, the days
        since the date of the first row.
    drop : str or iterable of str
        Columns to leave out.
    encoding : str
        Encoding of text.
    weights, groups : str, optional
        Columns that are no features: the weights of the rows, and the groups that folds hold
        together. Groups may be text.
    missing : {"drop", "mean"}, optional
        What becomes of missing values, which are errors by default. "drop" leaves out the rows that
        lack a value. With the others ``load`` returns NaN, which cross-validation fills with the
        mean of a column over the training rows of every fold; the 0/1 columns of a text
        column are filled like others. Rows without a response are left out. All rows decide the
        unit in which the penalty is measured, the standard deviation of every column (missing
        values filled by all rows), and never anything of y; where folds leave rows aside, as in
        order of time, the training rows of every fold decide it.

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
    file, name = path if isinstance(path, tuple) else (open_file(path, encoding), name_of(path))
    drop = [drop] if isinstance(drop, str) else list(drop)
    unnamed = file.unnamed_index()
    unnamed = None if unnamed in (*drop, *uses.values()) else unnamed
    index = [column for column in file.index if column not in uses.values()]
    index += [] if unnamed is None else [unnamed]
    use = select_columns(file.label, file.names, (*drop, *index), uses)
    if missing not in (None, "drop", "mean"):
        raise InputError(f"missing must be drop or mean; got {missing!r}")
    columns = [*use.features, use.target]
    faults, coding = Faults(file.label, use.target, missing is not None, columns), Coding(columns)
    if isinstance(file, Matrix):
        check_rows(file.label, file.n)
    else:
        from .arrow import learned  # The import of pyarrow would slow down other commands.

        coding = learned(file, columns, faults, one_hot)
    opened = Stream(name, use.target, Encoded(file, coding, faults), missing)
    source: RowSource = opened
    if opened.in_memory:
        same = "name", "target_name", "missing", "coding", "rows_left_out"
        facts = {one: getattr(opened, one) for one in same}
        source = ArraySource.checked(*opened.load(), opened.feature_names, **facts)
    kept = slice(None) if opened.kept is None else opened.kept
    others = use.weights, use.groups
    source.take_columns(*(None if one is None else file.column(one, kept) for one in others))
    source.left_out = unnamed
    return source
