"""Columns of Arrow as numbers and text."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns import FloatArray


def where(test: Any) -> NDArray[np.intp]:
    """The positions at which an Arrow array of true and false is true."""
    return np.flatnonzero(test.to_numpy(zero_copy_only=False))


def as_text(cells: Any) -> Any:
    """The cells of a column as strings without blanks around; missing cells stay missing.

    Text files lose these blanks, too, so that a level has one name in every kind of table.
    """
    if isinstance(cells, np.ndarray):
        # pyarrow.array would import pandas to look at an array of NumPy.
        buffer = pa.py_buffer(np.ascontiguousarray(cells))
        cells = pa.Array.from_buffers(pa.float64(), cells.size, [None, buffer])
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
