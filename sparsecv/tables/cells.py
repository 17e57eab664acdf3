"""Columns of Arrow as numbers, text and dates."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns import FloatArray

TIMES = pa.timestamp("us")


def where(test: Any) -> NDArray[np.intp]:
    """The positions at which an Arrow array of true and false is true."""
    return np.flatnonzero(test.to_numpy(zero_copy_only=False))


def as_text(cells: Any) -> Any:
    """The cells of a column as strings without blanks around; missing cells stay missing.

    Text files lose these blanks, too, so that a level has one name in every kind of table.
    """
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    return pc.utf8_trim_whitespace(cells.cast(pa.string()))


def as_floats(cells: Any) -> FloatArray:
    """A numeric column of Arrow, shape (m,), as float64; missing cells become NaN."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_decimal(cells.type):
        cells = cells.cast(pa.float64())
    # Arrow's own conversion to NumPy imports pandas, so only arrays that need it are converted so.
    # NumPy converts to float64 because Arrow refuses large integers and, in older versions, 16-bit
    # floats.
    needed = cells.null_count or pa.types.is_boolean(cells.type)
    values = cells.to_numpy(zero_copy_only=False) if needed else np.from_dlpack(cells)
    return np.asarray(values.astype(np.float64, copy=False))


def as_times(cells: Any) -> Any:
    """Dates as Arrow timestamps, missing where a cell is no date.

    Text must begin with the year, as in 2024-01-31 or 2024-01-31 12:00. A time zone is taken off:
    such times then are those of UTC.
    """
    if pa.types.is_timestamp(cells.type) or pa.types.is_date(cells.type):
        return cells.cast(TIMES, safe=False)
    texts = as_text(cells)
    try:
        return texts.cast(TIMES)
    except pa.ArrowInvalid:
        return pa.array(map(_time, texts.to_pylist()), TIMES)


def _time(text: str | None) -> Any:
    """The timestamp that a text is; None where it is missing or no date."""
    try:
        return pa.scalar(text, pa.string()).cast(TIMES).as_py()
    except pa.ArrowInvalid:
        return None


def date_numbers(times: Any, first: str) -> FloatArray:
    """Year, month, weekday (Monday is 1) and days since a date, shape (m, 4); missing ones NaN.

    times: Arrow timestamps.
    first: The date from which days are counted.
    """
    start = pa.scalar(first).cast(TIMES).cast(pa.int64()).as_py()
    parts = pc.year(times), pc.month(times), pc.day_of_week(times, count_from_zero=False)
    since = pc.subtract(times.cast(pa.int64()), start)
    # Arrow refuses microseconds beyond 2⁵³, which dates before 1685 or after 2255 have, as safe.
    found = [as_floats(one.cast(pa.float64(), safe=False)) for one in (*parts, since)]
    found[3] = found[3] / 86_400_000_000  # A day has so many microseconds.
    return np.array(found).T
