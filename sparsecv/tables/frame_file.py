"""A data frame in memory as a file of columns."""

from collections.abc import Collection, Iterator, Sequence
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .arrow import ArrowFile
from .columns import Faults, is_numeric, quoted

# What the message that refuses a column of dates in a data frame tells the user to do.
DATES = (
    "replace it by numbers, such as the year, the month or the days since the first row: for "
    "pandas X[name].dt.year or (X[name] - X[name].min()).dt.days"
)


class FrameFile(ArrowFile):
    """A data frame of narwhals.

    Text that holds nothing but numbers counts as numbers, as in files.
    """

    label = "X"
    max_columns_at_once = 1 << 20  # Every column is read alone, and none is read to find faults.

    def __init__(self, frame: Any) -> None:
        self._frame, self.n = frame, len(frame)
        self.names = [str(name) for name in frame.columns]
        self._series = dict(zip(self.names, frame.columns, strict=True))
        self._text: set[str] = set()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield all rows as one record batch."""
        yield pa.record_batch([self._array(name) for name in columns], list(columns))

    def _cells(self, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The cells of a column, and which of them are missing.

        Among objects these are None, which NumPy reads as NaN. It cannot read ``pandas.NA``.
        """
        series = self._frame.get_column(self._series[name])
        values, missing = np.asarray(series.to_numpy()), np.asarray(series.is_null().to_numpy())
        if values.dtype.kind == "O":
            values = values.copy()
            values[missing] = None
        return values, missing

    def _array(self, name: str) -> Any:
        """A column as an Arrow array of text or of numbers."""
        values, missing = self._cells(name)
        if name in self._text and values.dtype.kind == "M":
            return pa.array(values.astype("datetime64[us]"))
        if name not in self._text:
            return pa.array(values.astype(np.float64))
        return pa.array(list(map(str, values.tolist())), pa.string(), mask=missing)

    def inspect(self, columns: Sequence[str], levels: Collection[str], faults: Faults) -> set[str]:
        """Find text by the columns' types and cells; see :meth:`ArrowFile.inspect`."""
        self._text = set(levels)
        for name in columns:
            series = self._frame.get_column(self._series[name])
            if name in self._text or is_numeric(series.dtype):
                continue
            values, _ = self._cells(name)
            dates = any(isinstance(cell, (date, time, timedelta)) for cell in values)
            if dates or series.dtype.is_temporal():
                faults.add(name, f"column {quoted(name)} is not numeric: it holds dates", DATES)
                continue
            if any(isinstance(cell, (list, dict, tuple, np.ndarray, complex)) for cell in values):
                faults.add(name, f"column {quoted(name)} is neither numeric nor text", "drop it")
                continue
            try:
                values.astype(np.float64)
            except (TypeError, ValueError):
                self._text.add(name)
        return self._text & set(columns)
