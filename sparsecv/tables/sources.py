"""Opens text files, Parquet files and workbooks as tables of features and a response.

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
from .columns import (
    PARQUET_SUFFIXES,
    TABLE_SUFFIXES,
    WORKBOOK_SUFFIXES,
    FloatArray,
    check_rows,
    quoted,
    select_columns,
    suggestion,
)
from .factors import encoded, learned
from .faults import Faults
from .marks import AS_SHOWN, Reading, possible_marks
from .roles import groups_of, weights_of
from .source import CELLS_AT_A_TIME, Cells, Source, source_of_frame
from .table import Table
from .text import TextFile, check_header, in_numbers

__all__ = ["open_table"]


def _refuse_other_kinds(place: Path) -> None:
    """Raise an InputError that says what a file is that begins as no table of text does."""
    with file_faults(f"cannot read {place}"), place.open("rb") as file:
        start = file.read(4096).lstrip()
    wanted = "a table is wanted: CSV, Parquet or Excel"
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
        return _open_parquet(place, reading)
    if suffix in WORKBOOK_SUFFIXES:
        return _open_workbook(place, reading)
    content = sys.stdin.buffer.read() if str(path) == "-" else None
    if content is None:
        _refuse_other_kinds(place)
    return TextFile(place, reading, content).source


def _open_parquet(path: Path, reading: Reading) -> Source:
    """A Parquet file, of which only the columns in use are read, with the types that it states.

    Some columns are read at a time. Numbers become columns of one array, so that each is held once.
    Columns that pandas has stored as the index of a data frame are those of ``index``.

    Raises InputError: pyarrow is not installed, or the file is not Parquet.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            f"{path.name}: {not_installed('pyarrow', 'parquet')}, or save the table as CSV"
        ) from None
    import narwhals as nw

    def opened(columns: Sequence[str] | None) -> Any:
        try:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                if columns is not None:
                    # A column "a" also brings in "a.b", so columns are taken by name.
                    return file.read(list(columns)).select(list(columns))
                written = (file.metadata.metadata or {}).get(b"ARROW:schema")
                return file.schema_arrow, written, file.metadata.num_rows
        except pa.ArrowException as error:
            reason = first_line(error)
            raise InputError(
                f"{path.name}: not a readable Parquet file ({reason}); write it again"
            ) from error
        except OSError as error:
            reason = error.strerror or first_line(error)
            raise InputError(f"cannot read {path}: {reason}") from error

    def read(columns: Sequence[str], factors: Collection[str]) -> Cells:
        declared, found = {*factors, *categories}, dict[str, Column]()
        numbers = [one for one in columns if one not in declared and is_number(one)]
        places = {name: place for place, name in enumerate(numbers)}
        block = np.empty((n, len(numbers)))
        width = max(1, CELLS_AT_A_TIME // max(1, n))
        for start in range(0, len(columns), width):
            for name, column in part(columns[start : start + width], declared).items():
                if name in places:
                    block[:, places[name]] = column.values
                    column = column._replace(values=block[:, places[name]])
                found[name] = column
        pa.default_memory_pool().release_unused()  # Arrow would keep the memory for later.
        found |= {name: unusable(name, n, "periods") for name in periods if name in found}
        return Cells(n, found)

    def part(columns: Sequence[str], declared: Collection[str]) -> dict[str, Column]:
        frame = nw.from_native(opened(columns), eager_only=True)
        return source_of_frame(path.name, frame, reading).read(columns, declared).columns

    def is_number(name: str) -> bool:
        kind = schema.field(name).type
        return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))

    schema, written, n = opened(None)
    categories, periods = list[str](), list[str]()
    if written:  # Arrow reads categories of numbers, and periods, as numbers.
        own = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written)))
        categories = [one.name for one in own if pa.types.is_dictionary(one.type)]
        periods = [one.name for one in own if "period" in _extension(one)]
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in stored if isinstance(name, str) and name in schema.names]
    return Source(path.name, list(schema.names), read, index, reading)


def _extension(field: Any) -> str:
    """The name of the type of another program that a field of Arrow has, or an empty text."""
    kept = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    return kept or str(getattr(field.type, "extension_name", ""))


def _open_workbook(path: Path, reading: Reading) -> Source:
    """The first sheet of an Excel or OpenDocument workbook, whose first row holds the names.

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
            label = f"{path.name}, sheet {quoted(str(book.sheet_names[0]))}"
            cells = pd.read_excel(book, header=None, dtype=object, keep_default_na=False)
    except (CalamineError, OSError, IndexError, ValueError) as error:
        reason = first_line(error, "it has no sheet")
        raise InputError(
            f"{path.name}: not a readable workbook ({reason}); save it again"
        ) from None
    cells = cells[(cells.map(str) != "").any(axis=1)]
    if cells.empty:
        raise InputError(f"{label}: the sheet is empty; a header line is needed")
    names = [str(name).strip() for name in cells.iloc[0]]
    lines = [",".join(map(str, row)) for row in cells.iloc[:2].itertuples(index=False)]
    check_header(label, names, lines[0], lines[-1] if len(lines) > 1 else "")
    rows = cells.iloc[1:]

    def read(columns: Sequence[str], factors: Collection[str]) -> Cells:
        found = dict[str, Column]()
        for name in columns:
            series = nw.from_native(rows.iloc[:, names.index(name)], series_only=True)
            found[name] = column_of(
                name, series, declared=name in factors, text=True, na=reading.na
            )
        return Cells(len(rows), *in_numbers(label, found, possible, possible[0], reading.usual))

    return Source(label, names, read, reading=reading)


def name_of(path: str | PathLike[str]) -> str:
    """The name of a table: the file's name without a known suffix, and without ``.gz``."""
    file = Path(path)
    stem = Path(file.stem) if file.suffix.lower() == ".gz" else file
    known = stem.suffix.lower() in TABLE_SUFFIXES
    return "data" if str(path) == "-" else stem.stem if known else stem.name


def _rows_in_use(
    rows: FloatArray, names: Sequence[str], label: str, missing: str
) -> NDArray[np.bool_]:
    """Whether each row of [X y], shape (n, p + 1), is in use.

    With "drop" rows are in use that lack no value, else all rows that have a response.

    Raises InputError: A value is infinite, a column has no value, or too few rows are in use.
    """
    faults, holes = Faults(label, names[-1], True), np.isnan(rows)
    faults.values(rows, names)
    for j in np.flatnonzero(holes.all(axis=0)).tolist():
        faults.add(names[j], f"column {quoted(names[j])} has no value")
    faults.check()
    kept = np.asarray(~(holes.any(axis=1) if missing == "drop" else holes[:, -1]))
    what = "no missing value" if missing == "drop" else "a response"
    check_rows(f"{label}, rows with {what}", int(np.count_nonzero(kept)))
    return kept


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


def open_table(
    path: str | PathLike[str] | tuple[Source, str],
    *,
    target: str | None = None,
    drop: str | Iterable[str] = (),
    factors: Collection[str] = (),
    weights: str | None = None,
    groups: str | None = None,
    missing: str | None = None,
    reading: Reading = AS_SHOWN,
) -> Table:
    """Open a table of numbers and factors.

    Each factor becomes one 0/1 column per level, in order and named ``feature=level``. A factor of
    two levels gets the 0/1 column of its second level alone.

    Parameters
    ----------
    path : path-like, or a pair of an open table and its name in output
        ``.csv``, ``.tsv`` or ``.txt`` (also ``.gz``): text with a header line, separated by comma,
        semicolon, tab or bar, whose numbers show whether a comma is a decimal mark. ``.parquet`` or
        ``.pq``: Parquet (extra ``parquet``). ``.xlsx``, ``.xls`` or ``.ods``: the first sheet
        (extra ``excel``). Any other suffix is tried as text; ``-`` is text on the standard input. A
        first column without a name that only counts the rows, the index of an exported data frame,
        is left out.
    target : str, optional
        The response; by default the last column that is not dropped. In Parquet files from pandas
        the index does not count as a column unless the index is named here.
    drop : str or iterable of str
        Columns to leave out.
    factors : collection of str
        Columns that are factors, whatever their cells are. Columns of text are factors without
        being named, and so are the categories of a Parquet file.
    weights, groups : str, optional
        Columns that are no features: the weights of the rows, and the groups that folds hold
        together. Groups may be text.
    missing : {"drop", "mean"}, optional
        What becomes of missing values, which are errors by default. "drop" leaves out the rows that
        lack a value. With "mean" ``load`` returns NaN, which cross-validation fills with the
        mean of a column over the training rows of every fold; the 0/1 columns of a factor
        are filled like others. Rows without a response are left out. All rows decide the
        unit in which the penalty is measured, the standard deviation of every column (missing
        values filled by all rows), and never anything of y; where folds leave rows aside, as in
        order of time, the training rows of every fold decide it.
    reading : Reading
        What the user says of the text in the file: its encoding, its marks in numbers, and codes of
        missing values.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        The file cannot be used; the message of one line names the columns, rows or options at
        fault.

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
    source, name = path if isinstance(path, tuple) else (open_file(path, reading), name_of(path))
    drop = [drop] if isinstance(drop, str) else list(drop)
    if missing not in (None, "drop", "mean"):
        raise InputError(f"missing must be drop or mean; got {missing!r}")
    aside = [column for column in source.index if column not in uses.values()]
    first, unnamed = source.names[:1], None
    if first and first[0] in ("", "Unnamed: 0") and source.names.count(first[0]) == 1:
        named = first[0] in (*drop, *uses.values())
        if not named and _names_rows(source.read(first, ()).columns[first[0]]):
            unnamed = first[0]
            aside.append(unnamed)
    use = select_columns(source.label, source.names, (*drop, *aside), uses)
    _check_factors(source.label, use.features, factors)
    columns = [*use.features, use.target]
    others = [one for one in (use.weights, use.groups) if one is not None]
    n, found, decimal = source.read(list(dict.fromkeys([*columns, *others])), factors)
    faults = Faults(source.label, use.target, missing is not None, columns)
    coding = learned(source.label, n, [found[one] for one in columns], faults)
    roles = {one: found[one] for one in others}
    rows = encoded({one: found.pop(one) for one in columns}, n, coding, faults)
    kept: slice | NDArray[np.bool_] = slice(None)
    facts: dict[str, Any] = {"name": name, "label": source.label, "target_name": use.target}
    facts["coding"] = coding._replace(names=coding.names[:-1])
    facts["reading"] = source.reading._replace(usual=decimal)
    if missing is not None:
        kept = _rows_in_use(rows, coding.features, source.label, missing)
        facts["missing"] = missing if missing != "drop" else None
        facts["rows_left_out"] = int(np.count_nonzero(~kept))
        rows = rows[kept] if facts["rows_left_out"] else rows
    table = Table.checked(rows[:, :-1], rows[:, -1], coding.features[:-1], **facts)
    table.check_values()
    if use.weights is not None:
        table.weights = weights_of(source.label, roles[use.weights], kept)
        table.weights_name = use.weights
    if use.groups is not None:
        table.groups = groups_of(source.label, roles[use.groups], kept)
        table.groups_name = use.groups
    table.left_out = unnamed
    return table
