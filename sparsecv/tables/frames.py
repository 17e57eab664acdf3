"""Data frames of pandas, polars and pyarrow, whose text columns become 0/1 columns.

narwhals reads the frames, and Arrow their text, as :mod:`sparsecv.tables.arrow` does for files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any

import numpy as np

from ..errors import InputError
from .arrow import learned
from .coding import Coding
from .columns import FloatArray, quoted, quoted_names
from .faults import Faults
from .features import features
from .files import ColumnFile

# What the message that refuses a column of dates in a data frame tells the user to do.
_DATES = (
    "replace it by numbers, such as the year, the month or the days since the first row: for "
    "pandas X[name].dt.year or (X[name] - X[name].min()).dt.days"
)


def as_frame(X: Any) -> Any:
    """The data frame as narwhals sees it; None where X is no data frame in memory.

    Raises InputError: A column name occurs twice.
    """
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

    if type(X).__name__ == "LazyFrame":
        raise InputError("X is a lazy frame, of which no row has been read: pass X.collect()")
    native = X.column_names if hasattr(X, "column_names") else getattr(X, "columns", ())
    names = list(map(str, native)) if getattr(X, "ndim", 2) == 2 else []
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"column name {twice!r} occurs more than once: rename one of them")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def frame_names(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, also one of Dask, where all are text; else None."""
    frame = as_frame(X)
    known = X if hasattr(X, "dtypes") else None
    names = list(getattr(known if frame is None else frame, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def numbers_as_names(X: Any) -> list[int] | None:
    """The names of a frame's columns where all of them are whole numbers; else None."""
    names = list(X.columns) if hasattr(X, "dtypes") and hasattr(X, "columns") else []
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in names)
    return [int(name) for name in names] if names and whole else None


def check_names_match(given: list[str], fitted: list[str]) -> None:
    """Raise an InputError where a frame has other columns than the one that was fitted to."""
    if missing := [name for name in fitted if name not in given]:
        what = "column" if len(missing) == 1 else "columns"
        raise InputError(f"X lacks the {what} {quoted_names(missing)}, which fit has seen: add it")
    if more := [name for name in given if name not in fitted]:
        raise InputError(f"X has {quoted_names(more)}, which fit has not seen: drop it")
    if given != fitted:
        raise InputError(
            "the feature names should match those passed to fit, in their order: pass "
            "X[model.feature_names_in_]"
        )


def check_frame_of_numbers(X: Any) -> None:
    """Raise an InputError that names the first cell of a frame's columns that is no number."""
    frame = as_frame(X)
    for name in () if frame is None else frame.columns:
        for row, cell in enumerate(frame.get_column(name).to_list()):
            try:
                float(cell)
            except TypeError:
                continue  # Another check speaks of missing values.
            except ValueError:
                raise InputError(
                    f"X: column {quoted(str(name))} holds {quoted(str(cell))} in row {row}, but "
                    "numbers in the rows of fit: correct the cell, or remove the row"
                ) from None


def _is_numeric(dtype: Any) -> bool:
    """Whether a type of narwhals is one of numbers, or of true and false."""
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


def frame_file(
    X: Any, faults: Faults, columns: Sequence[str] | None = None, levels: Collection[str] = ()
) -> ColumnFile:
    """The columns of a data frame as those of a file.

    Text that holds nothing but numbers counts as numbers, as in files.

    faults: Gets the columns that are neither numeric nor text, which cannot be loaded.
    columns: Names of the columns that are looked at, by default all.
    levels: Names of columns that hold text, whatever their cells look like.
    Raises InputError: A column name occurs twice.
    """
    frame = as_frame(X)
    series = {str(name): frame.get_column(name) for name in frame.columns}
    text = set(levels)
    for name in series if columns is None else columns:
        if name in series and name not in text and _holds_text(name, series[name], faults):
            text.add(name)
    kinds = {name: "text" if name in text else "number" for name in series}

    def read(some: Sequence[str]) -> dict[str, Any]:
        return {name: _as_column(series[name], kinds[name]) for name in some}

    return ColumnFile(faults.label, list(series), len(frame), kinds, read)


def _cells(series: Any) -> tuple[Any, Any]:
    """The cells of a column, and which of them are missing.

    Among objects these are None, which NumPy reads as NaN. It cannot read ``pandas.NA``.
    """
    values, missing = np.asarray(series.to_numpy()), np.asarray(series.is_null().to_numpy())
    if values.dtype.kind == "O":
        values = values.copy()
        values[missing] = None
    return values, missing


def _holds_text(name: str, series: Any, faults: Faults) -> bool:
    """Whether a column of a frame holds text, by its type and cells.

    faults: Gets the column if it is neither numeric nor text.
    """
    if _is_numeric(series.dtype):
        return False
    values, _ = _cells(series)
    kinds = set(map(type, values))
    if series.dtype.is_temporal() or any(issubclass(k, (date, time, timedelta)) for k in kinds):
        faults.add(name, f"column {quoted(name)} is not numeric: it holds dates", [_DATES])
    elif any(issubclass(k, (list, dict, tuple, np.ndarray, complex)) for k in kinds):
        faults.add(name, f"column {quoted(name)} is neither numeric nor text", ["drop it"])
    else:
        try:
            values.astype(np.float64)
        except (TypeError, ValueError):
            return True
    return False


def _as_column(series: Any, kind: str) -> Any:
    """The cells of a column as numbers of NumPy, or as an array of Arrow that is no number."""
    values, missing = _cells(series)
    if kind == "number":
        return values.astype(np.float64)
    import pyarrow as pa

    if values.dtype.kind == "M":
        return pa.array(values.astype("datetime64[us]"))
    return pa.array(list(map(str, values.tolist())), pa.string(), mask=missing)


def coding_of(X: Any, missing_allowed: bool = False) -> Coding | None:
    """The coding of a data frame; None where X is no frame, or has no text column.

    missing_allowed: Cells of text may be missing.
    Raises InputError: A column holds dates, or text that looks like an identifier.
    """
    frame = as_frame(X)
    if frame is None or all(map(_is_numeric, frame.schema.values())):
        return None
    names = [str(name) for name in frame.columns]
    faults = Faults("X", None, missing_allowed, names)
    found = learned(frame_file(X, faults), names, faults, min_rows=0)
    return found if found.levels else None


def encoded(coding: Coding, X: Any, missing_allowed: bool, unknown: str) -> FloatArray:
    """The columns of numbers of a frame, shape (n, columns); missing values are NaN.

    unknown: With "zero" a text that is no level has no level.
    Raises InputError: X is no frame with these columns, or cells cannot be used.
    """
    frame = as_frame(X)
    if frame is None:
        text = quoted_names(coding.levels)
        raise InputError(f"pass a data frame: the model was fitted to text in column {text}")
    check_names_match([str(name) for name in frame.columns], list(coding.names))
    return features_of(X, coding, coding.features, missing_allowed, unknown=unknown)


def features_of(
    X: Any,
    coding: Coding,
    wanted: Sequence[str],
    missing_allowed: bool,
    fills: Mapping[str, float] | None = None,
    unknown: str = "error",
) -> FloatArray:
    """The features of a model in the rows of a data frame, shape (n, len(wanted)).

    missing_allowed: Missing values are no fault; they stay NaN where there are no fills.
    The other arguments are those of :func:`sparsecv.tables.features.features`.
    Raises InputError: A column is missing or repeated, or cells cannot be used.
    """
    faults = Faults("X", None, missing_allowed, coding.names)
    file = frame_file(X, faults, coding.names, set(coding.levels).intersection(coding.names))
    found = features(file, coding, wanted, faults, fills, unknown)
    faults.check()
    return found
