"""Data frames of pandas, polars and pyarrow that estimators take, and their factors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .coding import Coding
from .columns import FloatArray, is_integer, numbered, quoted_names
from .factors import features, learned
from .faults import Faults
from .source import source_of_frame


def _is_numeric(dtype: Any) -> bool:
    """Whether a type of narwhals is one of numbers, or of true and false."""
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


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
        places = [place for place, name in enumerate(names, 1) if name == twice]
        where = f"occurs more than once, in {numbered(places)}"
        raise InputError(f"column name {twice!r} {where}: rename one of them")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def is_lazy(values: Any) -> bool:
    """Whether the values are an array or a data frame of Dask."""
    return hasattr(values, "__dask_graph__")


def na_as_nan(values: Any) -> Any:
    """The same values with NaN in place of every ``pandas.NA`` in columns of Python objects.

    NumPy and scikit-learn cannot turn ``pandas.NA`` into a number. Where there is none to replace,
    the values come back themselves.

    values: A data frame, or anything that may be an array.
    """
    pandas = sys.modules.get("pandas")  # Without pandas there is no pandas.NA.
    if pandas is None:
        return values
    if isinstance(values, pandas.DataFrame):
        columns = [j for j, kind in enumerate(values.dtypes) if str(kind) == "object"]
        values = values.copy(deep=False) if columns else values  # The user's frame stays as it is.
        for j in columns:
            values.isetitem(j, na_as_nan(values.iloc[:, j].to_numpy()))
    elif str(getattr(values, "dtype", "")) == "object":
        values = np.array(values)
        values[pandas.isna(values)] = np.nan
    return values


def frame_names(X: Any) -> list[str] | None:
    """Names of the columns of a data frame, also one of Dask, where all are text; else None."""
    frame = as_frame(X)
    known = X if hasattr(X, "dtypes") else None
    names = list(getattr(known if frame is None else frame, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def response_name(y: Any, features: Sequence[str], otherwise: str = "y") -> str:
    """The name of a series, or of the one column of a frame; ``otherwise`` where there is none.

    features: The names of the features, none of which the response may have.
    """
    columns = list(getattr(y, "columns", ()))
    name = columns[0] if len(columns) == 1 else getattr(y, "name", None)
    return name if isinstance(name, str) and name and name not in features else otherwise


def numbers_as_names(X: Any) -> list[int] | None:
    """The names of a frame's columns where all of them are whole numbers; else None."""
    names = list(X.columns) if hasattr(X, "dtypes") and hasattr(X, "columns") else []
    return [int(name) for name in names] if names and all(map(is_integer, names)) else None


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


def coding_of(X: Any, missing_allowed: bool = False) -> Coding | None:
    """The coding of a data frame; None where X is no frame, or has no factor.

    missing_allowed: Cells of factors may be missing; they are a level of their own.
    Raises InputError: A column holds dates, or text that looks like an identifier.
    """
    frame = as_frame(X)
    if frame is None or all(map(_is_numeric, frame.schema.values())):
        return None
    source = source_of_frame("X", frame)
    faults = Faults("X", None, missing_allowed, columns=source.names, filling="pass missing='mean'")
    cells = source.read(source.names, ())  # No factors are declared.
    coding = learned(
        "X", cells.n, [*cells.columns.values()], faults, min_rows=0, missing=missing_allowed
    )
    return coding if coding.levels else None


def encoded_frame(coding: Coding, X: Any, missing_allowed: bool, unknown: str) -> FloatArray:
    """The features of a frame, in the order of ``coding.features``, shape (n, features).

    coding: That of the frame that a model was fitted to.
    missing_allowed: Whether cells may be missing; these are NaN or a level of their own.
    unknown: With "zero" a cell that is no level has 0 in every 0/1 column of its factor.
    Raises InputError: X is no frame with these columns, or cells cannot be used.
    """
    frame = as_frame(X)
    if frame is None:
        text = quoted_names(coding.levels)
        raise InputError(f"pass a data frame: the model was fitted to text or categories in {text}")
    check_names_match([str(name) for name in frame.columns], list(coding.names))
    faults = Faults("X", None, missing_allowed, coding.names)
    source = source_of_frame("X", frame)
    found = features(source, coding, coding.features, faults, unknown=unknown)
    faults.check()
    return found
