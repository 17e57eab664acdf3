"""Opens text files, Parquet files and ``.npy`` files as tables of features and a response.

A table's values are finite numbers of type float64. A table with other values is refused by a
message of one line, which names the column or the row.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, first_line
from .coding import Coding
from .columns import (
    BLOCK_ROWS,
    PARQUET_SUFFIXES,
    WORKBOOK_SUFFIXES,
    Faults,
    FloatArray,
    check_rows,
    quoted,
    select_columns,
)
from .row_source import ArraySource, Column, Part, RowSource

if TYPE_CHECKING:
    from .arrow import ArrowFile, ArrowTable

__all__ = ["open_table"]

TEXT_SUFFIXES = {".csv", ".tsv", ".txt"}
TABLE_SUFFIXES = {*TEXT_SUFFIXES, *PARQUET_SUFFIXES, *WORKBOOK_SUFFIXES, ".npy", ".gz"}


class Matrix:
    """A matrix of n rows, and the columns of the matrix that are in use.

    label: The matrix's name in messages.
    names: Names of the columns in use.
    read: Returns the matrix. The matrix of a file is mapped into memory again for every block, so
        that blocks that were read do not count as used memory.
    in_memory: Whether ``read`` returns an array in memory rather than a mapped file.
    """

    index: Sequence[str] = ()
    missing_allowed = False
    mixed: Collection[str] = ()

    def __init__(
        self,
        label: str,
        names: Sequence[str],
        read: Callable[[], NDArray[Any]],
        in_memory: bool = False,
    ) -> None:
        self.label, self.names, self._read, self.in_memory = label, list(names), read, in_memory
        self.n = len(read())
        self._columns: slice | list[int] = slice(None)

    @property
    def coding(self) -> Coding:
        """The coding of columns of numbers, which stay."""
        return Coding(self.names)

    def select(self, columns: Sequence[str], min_rows: int = 2, **options: Any) -> "Matrix":
        """The named columns of the same rows; ``options`` concern text and have no effect here."""
        check_rows(self.label, self.n, min_rows)
        found, at = copy(self), [self.names.index(name) for name in columns]
        # A slice selects neighbouring columns faster than a list of positions does.
        together = at and at == list(range(at[0], at[0] + len(at)))
        found.names, found._columns = list(columns), slice(at[0], at[-1] + 1) if together else at
        return found

    def weights_or_groups(self, name: str, kept: slice | NDArray[np.bool_]) -> Column:
        """Read a column of weights or groups; ``kept`` says which rows are in use."""
        values = self._read()[:, self.names.index(name)].astype(np.float64)
        return Column.of(self.label, name, values[kept])

    def unnamed_index(self) -> None:
        """None, because all columns of a matrix have names."""

    def texts(self, columns: Sequence[str]) -> Iterator[list[str]]:
        """Yield the numbers of some columns as text, row by row."""
        at = [self.names.index(name) for name in columns]
        for row in self._read():
            yield [repr(float(value)) for value in row[at]]

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


class FileSource(RowSource):
    """A table whose rows are read from a file or a matrix whenever they are needed.

    name: The table's name in output.
    table: The columns in use, the response last.
    """

    def __init__(
        self, name: str, target: str, table: "ArrowTable | Matrix", missing: str | None = None
    ) -> None:
        self.name, self.label, self.target_name, self.n = name, table.label, target, table.n
        self.coding = table.coding._replace(names=table.coding.names[:-1])
        self.feature_names, self._table = table.names[:-1], table
        self.divisible = bool(table.parts())
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
        for block in self._table.blocks(BLOCK_ROWS):
            values = np.asarray(block, dtype=np.float64)
            holes = np.isnan(values)
            kept.append(~holes.any(axis=1) if missing == "drop" else ~holes[:, -1])
            known |= ~holes.all(axis=0)
            faults.values(values, names, rows_before)
            rows_before += len(values)
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

        A file that stores columns is read by columns, in place of the blocks of rows that other
        tables are read by. X may hold NaN where missing features are to be filled.

        Raises InputError: Another value is missing or infinite; the message names its column.
        """
        if isinstance(self._table, Matrix):
            return super().load()
        rows = self._table.load()
        rows = rows if self.kept is None or not self.rows_left_out else rows[self.kept]
        X, y = rows[:, :-1], rows[:, -1]
        if not self._usable(X, y):
            self._refuse(iter([(X, y)]))
        return X, y

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
        count = map_npy(place).shape[1]
        names = [f"x{index}" for index in range(count - 1)] + ["y"] * bool(count)
        return Matrix(place.name, names, partial(map_npy, place))
    if suffix in PARQUET_SUFFIXES or place.is_dir():
        from .parquet import ParquetFile  # The import of pyarrow would slow down other commands.

        return ParquetFile(place)
    if suffix in WORKBOOK_SUFFIXES:
        from .text import open_workbook

        return open_workbook(place)
    from .text import TextFile

    content = sys.stdin.buffer.read() if str(path) == "-" else None
    return TextFile(place, encoding, content)


def open_table(
    path: "str | PathLike[str] | tuple[ArrowFile | Matrix, str]",
    *,
    target: str | None = None,
    one_hot: str | bool = False,
    dates: bool = False,
    drop: str | Iterable[str] = (),
    encoding: str = "utf-8",
    weights: str | None = None,
    groups: str | None = None,
    order: str | None = None,
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
    dates : bool
        Replace each column of dates, such as 2024-01-31 or 2024-01-31 12:00, by the columns
        ``name.year``, ``name.month``, ``name.weekday`` (Monday is 1) and ``name.days``, the days
        since the date of the first row.
    drop : str or iterable of str
        Columns to leave out.
    encoding : str
        Encoding of text.
    weights, groups, order : str, optional
        Columns that are no features: the weights of the rows, the groups that folds hold together,
        and the times by which rows are ordered. Groups may be text; times are numbers, or dates
        that begin with the year.
    missing : {"drop", "mean", "median"}, optional
        What becomes of missing values, which are errors by default. "drop" leaves out the rows that
        lack a value. With the others ``load`` returns NaN, which cross-validation fills with the
        mean or median of a column over the training rows of every fold; the 0/1 columns of a text
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
    uses = {"target": target, "weights": weights, "groups": groups, "order": order}
    file, name = path if isinstance(path, tuple) else (open_file(path, encoding), name_of(path))
    drop = [drop] if isinstance(drop, str) else list(drop)
    unnamed = file.unnamed_index()
    unnamed = None if unnamed in (*drop, *uses.values()) else unnamed
    index = [column for column in file.index if column not in uses.values()]
    index += [] if unnamed is None else [unnamed]
    use = select_columns(file.label, file.names, (*drop, *index), uses)
    kind = "all" if one_hot == "all" else "two-level" * bool(one_hot)
    if missing not in (None, "drop", "mean", "median"):
        raise InputError(f"missing must be drop, mean or median; got {missing!r}")
    file.missing_allowed = missing is not None
    how: dict[str, Any] = {"target": use.target, "one_hot": kind, "dates": dates}
    table = file.select([*use.features, use.target], **how)
    opened = FileSource(name, use.target, table, missing)
    source: RowSource = opened
    if table.in_memory:
        X, y = opened.load()
        names = opened.feature_names, use.target, name
        source = ArraySource(X, y, *names, missing=opened.missing)
        source.coding = opened.coding
        source.rows_left_out = opened.rows_left_out
    if use.groups is not None and use.order is not None:
        raise InputError("--order and --groups cannot go together: folds in order keep no groups")
    kept = slice(None) if opened.kept is None else opened.kept
    columns = (
        None if column is None else file.weights_or_groups(column, kept)
        for column in (use.weights, use.groups, use.order)
    )
    source.take_columns(*columns)
    source.left_out = unnamed
    return source


def name_of(path: str | PathLike[str]) -> str:
    """The name of a table: the file's name without a known suffix, and without ``.gz``."""
    file = Path(path)
    stem = Path(file.stem) if file.suffix.lower() == ".gz" else file
    known = stem.suffix.lower() in TABLE_SUFFIXES
    return "data" if str(path) == "-" else stem.stem if known else stem.name
