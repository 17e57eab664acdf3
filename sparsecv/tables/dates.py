"""Columns of dates as numbers: year, month, weekday and days since the first row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .arrays import as_text
from .columns import FloatArray

_TIMES = pa.timestamp("us")


def as_times(cells: Any) -> tuple[Any, NDArray[np.intp]]:
    """Dates as Arrow timestamps, missing where a cell is no date, and the rows of such cells.

    Text must begin with the year, as in 2024-01-31 or 2024-01-31 12:00. A time zone is taken off:
    such times then are those of UTC.
    """
    if pa.types.is_timestamp(cells.type) or pa.types.is_date(cells.type):
        return cells.cast(_TIMES, safe=False), np.empty(0, dtype=np.intp)
    texts = as_text(cells)
    try:
        return texts.cast(_TIMES), np.empty(0, dtype=np.intp)
    except pa.ArrowInvalid:
        every = [_time(text) for text in texts.to_pylist()]
        times = pa.array(every, _TIMES)
        wrong = pc.and_(times.is_null(), texts.is_valid())
        return times, np.flatnonzero(wrong.to_numpy(zero_copy_only=False))


def _time(text: str | None) -> Any:
    """The timestamp that a text is; None where it is missing or no date."""
    try:
        return pa.scalar(text, pa.string()).cast(_TIMES).as_py()
    except pa.ArrowInvalid:
        return None


def first_date(cells: Any) -> str | None:
    """The first date of a column, as text; None where its first cell is no date or all are missing.

    cells: A block of the column, as an Arrow array.
    """
    known = cells.drop_null()
    if not len(known) or pa.types.is_time(cells.type):
        return None
    found = as_times(known[:1])[0][0].as_py()
    return None if found is None else str(found.isoformat(sep=" "))


def date_numbers(times: Any, first: str) -> FloatArray:
    """Year, month, weekday (Monday is 1) and days since a date, shape (m, 4); missing ones NaN.

    times: Arrow timestamps.
    first: The date from which days are counted.
    """
    start = pa.scalar(first).cast(_TIMES).cast(pa.int64()).as_py()
    parts = pc.year(times), pc.month(times), pc.day_of_week(times, count_from_zero=False)
    since = pc.subtract(times.cast(pa.int64()), start)
    # Arrow refuses microseconds beyond 2⁵³, which dates before 1685 or after 2255 have, as safe.
    every = (one.cast(pa.float64(), safe=False) for one in (*parts, since))
    columns = [one.to_numpy(zero_copy_only=False) for one in every]
    found = np.array(columns, dtype=np.float64).T
    found[:, 3] /= 86_400_000_000  # A day has so many microseconds.
    return found
