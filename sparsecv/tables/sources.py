"""Opens text files, Parquet files and workbooks, and makes tables of features and a response.

A table's values are finite numbers of type float64. A table with other values is refused by a
message of one line, which names the column or the row.
"""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, file_faults, first_line, not_installed
from .cells import Column, column_of, unusable
from .coding import Coding
from .columns import (
    PARQUET_SUFFIXES,
    TABLE_SUFFIXES,
    WORKBOOK_SUFFIXES,
    FloatArray,
    check_rows,
    exclude_option,
    quoted,
    select_columns,
    suggestion,
)
from .factors import encoded, learned
from .faults import Faults
from .marks import AS_SHOWN, Reading, possible_marks
from .roles import groups_of, offset_of, weights_of
from .source import CELLS_AT_A_TIME, Cells, Source, source_of_frame
from .table import Table
from .text import TextFile, check_header, in_numbers, names_of, refuse_row_as_names

# How pandas and other packages read files of other programs, by the suffix of the file.
_READERS = {
    ".dta": "pandas.read_stata",
    ".sas7bdat": "pandas.read_sas",
    ".xpt": "pandas.read_sas",
    **dict.fromkeys((".sav", ".zsav"), "pyreadstat.read_sav"),
    ".por": "pyreadstat.read_por",
    ".feather": "pandas.read_feather",
    ".rds": "pyreadr.read_r",
    ".rdata": "pyreadr.read_r",
    ".h5": "pandas.read_hdf",
    ".hdf5": "pandas.read_hdf",
    ".orc": "pandas.read_orc",
    ".pkl": "pandas.read_pickle",
    ".npy": "numpy.load",
    ".npz": "numpy.load",
    ".arff": "scipy.io.arff.loadarff",
    ".mat": "scipy.io.loadmat",
}
_BEGINNINGS = {b"<stata_dta>": ".dta", b"$FL2": ".sav", b"$FL3": ".zsav"}


def _refuse_other_kinds(place: Path) -> None:
    """Raise an InputError that says what a file is that begins as no table of text does."""
    with file_faults(f"cannot read {place}"), place.open("rb") as file:
        start = file.read(4096).lstrip()
    wanted = "a table is wanted: CSV, Parquet or Excel"
    known = next((kind for begin, kind in _BEGINNINGS.items() if start.startswith(begin)), "")
    if reader := _READERS.get(known or place.suffix.lower()):
        raise InputError(
            f"{place} is a file of another program; {wanted}. Read it with {reader}, and pass the "
            "data frame in Python, or write it with to_csv or to_parquet"
        )
    if start.startswith((b"{", b"[{")):
        what = "a file of JSON"
        if b'"sparsecv model"' in start:
            what = "a model that --save has written, which sparsecv predict takes"
        elif b'"sparsecv":' in start:
            what = "a result that --json has written"
        raise InputError(f"{place} is {what}; {wanted}")
    if start[:15].lower().startswith((b"<html", b"<!doctype html")):
        raise InputError(f"{place} is a page of HTML; {wanted}")
    if start.startswith(b"sparsecv certificate"):
        raise InputError(f"{place} is a certificate, which sparsecv verify takes; {wanted}")


def open_file(path: str | PathLike[str], reading: Reading = AS_SHOWN) -> Source:
    """Open the file of a path, where "-" means text on the standard input.

    Raises InputError: There is no such file, or the path is a folder.
    """
    place = Path(path).expanduser()
    if re.match(r"[a-z][a-z0-9+.-]+:/", str(path)):
        raise InputError(f"{path} is an address: download the file first, and name the file")
    if str(path) != "-" and not place.exists():
        raise InputError(f"no file {place}; check the path")
    if place.is_dir():
        raise InputError(f"{place} is a folder, which sparsecv cv reads: name a file in it")
    suffix = place.suffix.lower()
    if suffix in PARQUET_SUFFIXES:
        return _ParquetFile(place, reading).source
    if suffix in WORKBOOK_SUFFIXES:
        return _open_workbook(place, reading)
    content = sys.stdin.buffer.read() if str(path) == "-" else None
    if content is None:
        _refuse_other_kinds(place)
    return TextFile(place, reading, content).source


class _ParquetFile:
    """A Parquet file, of which only the columns in use are read, with the types that it states.

    Raises InputError: pyarrow is not installed, or the file is not Parquet.
    """

    def __init__(self, path: Path, reading: Reading) -> None:
        try:
            import pyarrow as pa
        except ImportError:
            raise InputError(
                f"{path.name}: {not_installed('pyarrow', 'parquet')}, or save the table as CSV"
            ) from None
        self._path, self._reading = path, reading
        self._schema, written, self._n = self._opened(None)
        # Arrow reads categories of numbers, and periods, as numbers; what wrote the file may say
        # more of its columns.
        own = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written))) if written else ()
        self._categories = [one.name for one in own if pa.types.is_dictionary(one.type)]
        self._periods = [one.name for one in own if "period" in _extension(one)]

    @property
    def source(self) -> Source:
        """The file as a table whose columns are read by name.

        Columns that pandas has stored as the index of a data frame are those of ``index``.
        """
        names = list(self._schema.names)
        stored = (self._schema.pandas_metadata or {}).get("index_columns", [])
        index = [name for name in stored if isinstance(name, str) and name in names]
        return Source(self._path.name, names, self.read, index, self._reading)

    def _opened(self, columns: Sequence[str] | None) -> Any:
        """The named columns as a table of Arrow.

        With None: the schema that Arrow finds, the one that was written, if any, and the number of
        rows.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        name = self._path.name
        try:
            with pq.ParquetFile(self._path, pre_buffer=False) as file:
                if columns is not None:
                    # A column "a" also brings in "a.b", so columns are taken by name.
                    return file.read(list(columns)).select(list(columns))
                written = (file.metadata.metadata or {}).get(b"ARROW:schema")
                return file.schema_arrow, written, file.metadata.num_rows
        except pa.ArrowException as error:
            reason = first_line(error)
            raise InputError(
                f"{name}: not a readable Parquet file ({reason}); write it again"
            ) from error
        except OSError as error:
            reason = error.strerror or first_line(error)
            raise InputError(f"cannot read {self._path}: {reason}") from error

    def read(self, columns: Sequence[str], factors: Collection[str]) -> Cells:
        """The cells of the named columns, some columns at a time.

        Numbers become columns of one array, so that each is held once.

        factors: Names of columns that are factors, whatever their cells are.
        """
        import narwhals as nw
        import pyarrow as pa

        declared, found, n = {*factors, *self._categories}, dict[str, Column](), self._n
        kinds = {name: self._schema.field(name).type for name in columns if name not in declared}
        numbers = [
            name
            for name, kind in kinds.items()
            if pa.types.is_floating(kind) or pa.types.is_integer(kind)
        ]
        places = {name: place for place, name in enumerate(numbers)}
        block = np.empty((n, len(numbers)))
        width = max(1, CELLS_AT_A_TIME // max(1, n))
        for start in range(0, len(columns), width):
            some = columns[start : start + width]
            frame = nw.from_native(self._opened(some), eager_only=True)
            part = source_of_frame(self._path.name, frame, self._reading)
            for name, column in part.read(some, declared).columns.items():
                if name in places:
                    block[:, places[name]] = column.values
                    column = column._replace(values=block[:, places[name]])
                found[name] = column
        pa.default_memory_pool().release_unused()  # Arrow would keep the memory for later.
        if periods := [name for name in self._periods if name in found]:
            frame = self._opened(periods).to_pandas()
            found |= {name: unusable(name, frame[name].tolist(), "periods") for name in periods}
        return Cells(n, found)


def _extension(field: Any) -> str:
    """The name of the type of another program that a field of Arrow has, or an empty text."""
    kept = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    return kept or str(getattr(field.type, "extension_name", ""))


def _open_workbook(path: Path, reading: Reading) -> Source:
    """The first sheet of an Excel or OpenDocument workbook, whose first row holds the names.

    The whole sheet is read at once, and its rows are kept for the function that reads columns.
    A formula counts as the value that was computed when the workbook was saved. Rows without a
    cell are left out.

    Raises InputError: python-calamine is not installed, or the file is no workbook.
    """
    possible = possible_marks(reading)
    try:
        from python_calamine import CalamineError
    except ImportError:
        raise InputError(
            f"{path.name}: {not_installed('python-calamine', 'excel')}, or save the sheet as CSV"
        ) from None
    import narwhals as nw
    import pandas as pd

    try:
        with pd.ExcelFile(path, engine="calamine") as book:
            sheets = [str(name) for name in book.sheet_names]
            first = f" (the first of {len(sheets)} sheets)" * (len(sheets) > 1)
            label = f"{path.name}, sheet {quoted(sheets[0])}{first}"
            cells = pd.read_excel(book, header=None, dtype=object, keep_default_na=False)
    except (CalamineError, OSError, IndexError, ValueError) as error:
        reason = first_line(error, "it has no sheet")
        raise InputError(
            f"{path.name}: not a readable workbook ({reason}); save it again"
        ) from None
    cells = cells[(cells.map(str) != "").any(axis=1)]
    if cells.empty:
        raise InputError(f"{label}: the sheet is empty; a header line is needed")
    top, *below = [[str(cell).strip() for cell in row] for row in cells.iloc[:2].to_numpy()]
    check_header(label, top, below[0] if below else [], reading)
    names = names_of(label, top, reading)
    rows = cells.iloc[int(reading.has_header) :]

    def read(columns: Sequence[str], factors: Collection[str]) -> Cells:
        found = dict[str, Column]()
        for name in columns:
            series = nw.from_native(rows.iloc[:, names.index(name)], series_only=True)
            found[name] = column_of(
                name, series, declared=name in factors, text=True, na=reading.na
            )
        return Cells(len(rows), *in_numbers(label, found, possible, reading.usual))

    notes = [f"sheet {quoted(sheets[0])} is read, of {len(sheets)} sheets"] * (len(sheets) > 1)
    return Source(label, names, read, reading=reading, in_lines=True, notes=notes)


def refuse_names(source: Source) -> None:
    """Raise an InputError where a user says what the first line holds of a table without lines."""
    if not source.in_lines:
        what = "--names, --header and --no-header are for text files and workbooks"
        raise InputError(f"{source.label}: {what}; the table has names of its own")


def name_of(path: str | PathLike[str]) -> str:
    """The name of a table: the file's name without a known suffix, and without ``.gz``."""
    file = Path(path)
    stem = Path(file.stem) if file.suffix.lower() == ".gz" else file
    known = stem.suffix.lower() in TABLE_SUFFIXES
    return "data" if str(path) == "-" else stem.stem if known else stem.name


def _rows_in_use(rows: FloatArray, coding: Coding, label: str, missing: str) -> NDArray[np.bool_]:
    """Whether each row of [X y], shape (n, p + 1), is in use.

    coding: What the columns of the table have become, the response last.
    missing: With "drop" rows are in use that lack no value, with "mean" those with a response.
    Raises InputError: A value is infinite, a column has no value, or too few rows are in use.
    """
    names = coding.features
    holes, faults = np.isnan(rows), Faults(label, names[-1], missing_allowed=True)
    faults.values(rows, names)
    for j in np.flatnonzero(holes.all(axis=0)).tolist():
        faults.add(names[j], f"column {quoted(names[j])} has no value")
    faults.check()
    lacking = holes.any(axis=1) if missing == "drop" else holes[:, -1]
    kept = len(rows) - int(np.count_nonzero(lacking))
    if kept < 2 and missing == "drop":
        by_name = {name: np.asarray(holes[:, own].any(axis=1)) for name, own in coding.places}
        raise InputError(f"{label}: {_all_dropped(by_name, kept)}")
    check_rows(f"{label}, rows with a response", kept)
    return np.asarray(~lacking)


def _all_dropped(holes: dict[str, NDArray[np.bool_]], kept: int) -> str:
    """What is said where --missing drop leaves fewer than two rows.

    holes: Of every column of the table which rows lack its value, the response last.
    kept: The number of rows that lack no value.
    """
    *features, target = holes
    lacking, n = holes[target], len(holes[target])
    counts = {name: int(own.sum()) for name, own in holes.items() if own.any()}
    most = sorted(counts, key=lambda name: -counts[name])
    shown = ", ".join(f"{quoted(name)} ({counts[name]})" for name in most[:5])
    text = f"--missing drop leaves {kept} of {n} rows; most values are missing in {shown}"
    # The columns that lack the fewest values stay, as long as half of the rows with a response do.
    left_out = list[str]()
    for name in sorted(features, key=lambda name: counts.get(name, 0)):
        rest = lacking | holes[name]
        if 2 * (n - int(rest.sum())) >= max(4, n - counts.get(target, 0)):
            lacking = rest
        else:
            left_out.append(name)
    remedy = "fill the values with --missing mean"
    if left_out and len(left_out) < len(features):
        remedy += f", or leave columns out with {exclude_option(left_out)}"
    return f"{text}; {remedy}"


def _names_rows(column: Column) -> bool:
    """Whether the cells of a column count the rows, from 0 or from 1, or are a text for each row.

    Exported data frames have such a column, whose name is empty. R and pandas write no name, and a
    file that pandas wrote and read again has the name "Unnamed: 0".
    """
    values = column.values
    if column.words is not None:
        return len(set(column.words)) == len(values) and not column.other
    first = values[0] if values.size else 0.0
    return first in (0.0, 1.0) and bool((values == first + np.arange(values.size)).all())


def _check_factors(label: str, names: Sequence[str], factors: Iterable[str]) -> None:
    """Raise an InputError where --factor names a column that is no feature."""
    for name in factors:
        if name not in names:
            hint = suggestion(name, names)
            what = f"--factor names {quoted(name)}, which is no feature"
            raise InputError(f"{label}: {what}; {hint}")


def table_of(
    source: Source,
    name: str,
    *,
    target: str | None = None,
    drop: str | Iterable[str] = (),
    factors: Collection[str] = (),
    weights: str | None = None,
    groups: str | None = None,
    offset: str | None = None,
    missing: str | None = None,
) -> Table:
    """Read the columns of a source as a table of numbers, with factors as 0/1 columns.

    A first column without a name that only counts the rows, the index of an exported data frame, is
    left out. The options are those of :func:`sparsecv.tables.datasets.resolve`.

    name: The table's name in output.
    Raises InputError: The file cannot be used; the message names columns, rows or options at fault.
    """
    if source.reading.names or source.reading.header is not None:
        refuse_names(source)
    uses = {"target": target, "weights": weights, "groups": groups, "offset": offset}
    drop = [drop] if isinstance(drop, str) else list(drop)
    if missing not in (None, "drop", "mean"):
        raise InputError(f"missing must be drop or mean; got {missing!r}")
    # Columns that are left out without being named: an index, and a first column without a name.
    aside = [column for column in source.index if column not in uses.values()]
    unnamed, first = None, source.names[:1]
    if first and first[0] in ("", "Unnamed: 0") and source.names.count(first[0]) == 1:
        named = first[0] in (*drop, *uses.values())
        if not named and _names_rows(source.read(first, ()).columns[first[0]]):
            unnamed = first[0]
            aside.append(unnamed)
    use = select_columns(source.label, source.names, (*drop, *aside), uses)
    _check_factors(source.label, use.features, factors)
    used = [*use.features, use.target]
    others = [one for one in (use.weights, use.groups, use.offset) if one is not None]
    n, columns, decimal = source.read(list(dict.fromkeys([*used, *others])), factors)
    if source.in_lines and source.reading.has_header and source.reading.header is None:
        refuse_row_as_names(source.label, columns.values())
    faults = Faults(source.label, use.target, missing is not None, used)
    own = [columns[one] for one in used]
    coding = learned(source.label, n, own, faults, missing=missing == "mean")
    roles = {one: columns[one] for one in others}
    # The columns are popped, so that each is forgotten once its numbers are in ``rows``.
    rows = encoded({one: columns.pop(one) for one in used}, n, coding, faults)
    kept: slice | NDArray[np.bool_] = slice(None)
    facts: dict[str, Any] = {"name": name, "label": source.label, "target_name": use.target}
    facts["coding"] = coding._replace(names=coding.names[:-1])  # The last name is the target's.
    facts["reading"] = source.reading._replace(usual=decimal)
    if missing is not None:
        kept = _rows_in_use(rows, coding, source.label, missing)
        facts["missing"] = None if missing == "drop" else missing
        facts["rows_left_out"] = int(np.count_nonzero(~kept))
        rows = rows[kept] if facts["rows_left_out"] else rows
    table = Table(rows[:, :-1], rows[:, -1], coding.features[:-1], **facts)
    table.check_values()
    in_use = np.arange(n)[kept]
    table.data_rows = in_use + 1
    if use.weights is not None:
        table.weights = weights_of(source.label, roles[use.weights], in_use)
        table.weights_name = use.weights
    if use.groups is not None:
        table.groups = groups_of(source.label, roles[use.groups], in_use)
        table.groups_name = use.groups
    if use.offset is not None:
        table.take_off(offset_of(source.label, roles[use.offset], in_use), use.offset)
    table.left_out, table.source_notes = unnamed, source.notes
    return table
