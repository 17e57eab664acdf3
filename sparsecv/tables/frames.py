"""Data frames of pandas, polars and pyarrow, whose text columns become 0/1 columns.

narwhals reads the frames, and Arrow their text, as :mod:`sparsecv.tables.arrow` does for files.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from .coding import Coding
from .columns import FloatArray, is_numeric, quoted_names
from .features import FeatureRows


def as_frame(X: Any) -> Any:
    """The data frame as narwhals sees it; None where X is no data frame in memory.

    Raises InputError: A column name occurs twice.
    """
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    import narwhals as nw

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


def coding_of(X: Any, missing_allowed: bool = False) -> Coding | None:
    """The coding of a data frame; None where X is no frame, or has no text column.

    missing_allowed: Cells of text may be missing.
    Raises InputError: A column holds dates, or text that looks like an identifier.
    """
    frame = as_frame(X)
    if frame is None or all(map(is_numeric, frame.schema.values())):
        return None
    file = open_frame(X)
    file.missing_allowed = missing_allowed
    found: Coding = file.select(file.names, one_hot="two-level", min_rows=0).coding
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
    if [str(name) for name in frame.columns] != list(coding.names):
        raise InputError("the feature names should match those passed to fit, in their order")
    how: dict[str, Any] = {"unknown": unknown, "missing_allowed": missing_allowed}
    return FeatureRows(open_frame(X), coding, coding.features, **how).load()


def open_frame(X: Any) -> Any:
    """A data frame as a file from which :class:`~sparsecv.tables.arrow.ArrowTable` reads columns.

    Raises InputError: A column name occurs twice.
    """
    from .frame_file import FrameFile  # The import of pyarrow would slow down other commands.

    return FrameFile(as_frame(X))
