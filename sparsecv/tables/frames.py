"""Data frames of pandas, polars and pyarrow, whose text columns become 0/1 columns.

narwhals reads the frames, and Arrow their text, as :mod:`sparsecv.tables.arrow` does for files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date, time, timedelta
from typing import Any

import numpy as np

from ..errors import InputError
from .coding import Coding
from .columns import FloatArray, quoted, quoted_names
from .faults import Faults
from .features import FeatureRows
from .files import File

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


class FrameFile(File):
    """A data frame as a file from which :class:`~sparsecv.tables.features.Encoded` reads columns.

    Text that holds nothing but numbers counts as numbers, as in files.

    Raises InputError: A column name occurs twice.
    """

    label = "X"
    max_columns_at_once = 1 << 20  # Every column is read alone, and none is read to find faults.

    def __init__(self, X: Any) -> None:
        frame = as_frame(X)
        self.n, self.names = len(frame), [str(name) for name in frame.columns]
        self._series = {str(name): frame.get_column(name) for name in frame.columns}
        self._text: set[str] = set()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield all rows as one record batch."""
        import pyarrow as pa

        arrays = []
        for name in columns:
            values, missing = self._cells(name)
            if name not in self._text:
                arrays.append(pa.array(values.astype(np.float64)))
            elif values.dtype.kind == "M":
                arrays.append(pa.array(values.astype("datetime64[us]")))
            else:
                arrays.append(pa.array(list(map(str, values.tolist())), pa.string(), mask=missing))
        yield pa.record_batch(arrays, list(columns))

    def _cells(self, name: str) -> tuple[Any, Any]:
        """The cells of a column, and which of them are missing.

        Among objects these are None, which NumPy reads as NaN. It cannot read ``pandas.NA``.
        """
        series = self._series[name]
        values, missing = np.asarray(series.to_numpy()), np.asarray(series.is_null().to_numpy())
        if values.dtype.kind == "O":
            values = values.copy()
            values[missing] = None
        return values, missing

    def inspect(self, columns: Sequence[str], levels: Collection[str], faults: Faults) -> set[str]:
        """Find text by the columns' types and cells; see :meth:`File.inspect`."""
        self._text = set(levels)
        for name in columns:
            dtype = self._series[name].dtype
            if name in self._text or _is_numeric(dtype):
                continue
            values, _ = self._cells(name)
            kinds = set(map(type, values))
            if dtype.is_temporal() or any(issubclass(k, (date, time, timedelta)) for k in kinds):
                faults.add(name, f"column {quoted(name)} is not numeric: it holds dates", [_DATES])
            elif any(issubclass(k, (list, dict, tuple, np.ndarray, complex)) for k in kinds):
                faults.add(name, f"column {quoted(name)} is neither numeric nor text", ["drop it"])
            else:
                try:
                    values.astype(np.float64)
                except (TypeError, ValueError):
                    self._text.add(name)
        return self._text & set(columns)


def coding_of(X: Any, missing_allowed: bool = False) -> Coding | None:
    """The coding of a data frame; None where X is no frame, or has no text column.

    missing_allowed: Cells of text may be missing.
    Raises InputError: A column holds dates, or text that looks like an identifier.
    """
    frame = as_frame(X)
    if frame is None or all(map(_is_numeric, frame.schema.values())):
        return None
    from .arrow import learned  # The import of pyarrow would slow down other fits.

    file = FrameFile(X)
    faults = Faults(file.label, None, missing_allowed, file.names)
    found = learned(file, file.names, faults, min_rows=0)
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
    how: dict[str, Any] = {"unknown": unknown, "missing_allowed": missing_allowed}
    return FeatureRows(FrameFile(X), coding, coding.features, **how).load()
