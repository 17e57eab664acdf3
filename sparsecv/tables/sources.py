"""Opens text files, Parquet files and workbooks as tables of features and a response.

A table's values are finite numbers of type float64. A table with other values is refused by a
message of one line, which names the column or the row.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, file_faults
from .arrow import learned
from .columns import (
    PARQUET_SUFFIXES,
    WORKBOOK_SUFFIXES,
    FloatArray,
    check_rows,
    quoted,
    select_columns,
)
from .faults import Faults
from .features import encoded
from .files import TABLE_SUFFIXES, File
from .table import Table

__all__ = ["open_table"]


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


def open_file(path: str | PathLike[str], encoding: str) -> File:
    """Open the file of a path, where "-" means text on the standard input.

    encoding: Encoding of text.
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
        from .parquet import open_parquet  # The import of pyarrow would slow down other commands.

        return open_parquet(place)
    from .text import TextFile, open_workbook

    if suffix in WORKBOOK_SUFFIXES:
        return open_workbook(place)
    content = sys.stdin.buffer.read() if str(path) == "-" else None
    if content is None:
        _refuse_other_kinds(place)
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
    drop: str | Iterable[str] = (),
    encoding: str = "utf-8",
    weights: str | None = None,
    groups: str | None = None,
    missing: str | None = None,
) -> Table:
    """Open a table of numbers and text.

    Each text column becomes one 0/1 column per level, sorted and named ``feature=level``. A column
    of two levels gets the 0/1 column of its second level alone.

    Parameters
    ----------
    path : path-like, or a pair of an open file and its name in output
        ``.csv``, ``.tsv`` or ``.txt`` (also ``.gz``): text with a header line, separated by comma,
        semicolon, tab or bar; in semicolon files ``1,5`` is a decimal. ``.parquet`` or ``.pq``:
        Parquet. ``.xlsx``, ``.xls`` or ``.ods``: the first sheet (extra ``excel``). Any other
        suffix is tried as text; ``-`` is text on the standard input. A first column without a name
        that only counts the rows, the index of an exported data frame, is left out.
    target : str, optional
        The response; by default the last column that is not dropped. In Parquet files from pandas
        the index does not count as a column unless the index is named here.
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
    faults = Faults(file.label, use.target, missing is not None, columns)
    coding = learned(file, columns, faults)
    rows, names = encoded(file, coding, faults), coding.features
    kept: slice | NDArray[np.bool_] = slice(None)
    if missing is not None or not np.isfinite(rows).all():
        faults.check()  # A level is at fault.
    facts: dict[str, Any] = {"name": name, "label": file.label, "target_name": use.target}
    facts["coding"] = coding._replace(names=coding.names[:-1])
    if missing is not None:
        kept = _rows_in_use(rows, names, file.label, missing)
        facts["missing"] = missing if missing != "drop" else None
        facts["rows_left_out"] = int(np.count_nonzero(~kept))
        rows = rows[kept] if facts["rows_left_out"] else rows
    source = Table.checked(rows[:, :-1], rows[:, -1], names[:-1], **facts)
    source.check_values()
    others = use.weights, use.groups
    source.take_columns(*(None if one is None else file.column(one, kept) for one in others))
    source.left_out = unnamed
    return source
