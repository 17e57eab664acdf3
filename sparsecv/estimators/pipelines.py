"""A fitted model as a pipeline of scikit-learn's own classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ..design.design import Array
from ..design.folds import Index
from ..errors import InputError
from ..tables.coding import MISSING_LEVEL, Coding
from ..tables.columns import quoted


def pipeline_of_numbers(
    columns: Index, coef: Array, intercept: float, names: Any, fills: Array | None
) -> Pipeline:
    """The pipeline of a model whose columns all hold numbers.

    columns: Positions, from 0, of the table's columns that are in the model; at least one.
    coef, shape (p,): Coefficients of the table's columns.
    names, shape (p,), or None: Names of the table's columns.
    fills, shape (p,), or None: What a missing value of a column is filled with.
    """
    selected = ("numbers", "passthrough", columns.tolist())
    # A fit to any table of p columns notes their number; nothing else is learned.
    select = ColumnTransformer([selected]).fit(np.zeros((1, coef.size)))
    if names is not None:
        select.feature_names_in_ = np.array(names, dtype=object)
    steps: list[tuple[str, Any]] = [("columns", select)]
    if fills is not None:  # The mean of a single row is that row.
        steps.append(("missing", SimpleImputer().fit(fills[None, columns])))
    return Pipeline([*steps, ("model", _linear(coef[columns], intercept))])


def pipeline_of_levels(
    coef: Array, intercept: float, coding: Coding, unknown: str, fills: Array | None = None
) -> Pipeline:
    """The pipeline of a model whose table has factors.

    The encoder knows the cells that the table held, which may be numbers, True and False, or text.
    Cells that are written differently but are one level have one coefficient. Columns whose
    coefficients are 0 are left out; at least one coefficient is not 0.

    coef, shape (p,): Coefficients of the columns of numbers that ``coding`` makes of the table's.
    unknown: With "zero" a cell that is no level of its column counts as no level.
    fills, shape (p,), or None: What missing values of the columns of numbers are filled with. A
        missing cell of a factor is a category of the encoder.
    Raises InputError: A factor holds numbers beside text, or tuples, which the encoder cannot take.
    """
    of_feature = dict(zip(coding.features, coef.tolist(), strict=True))
    filled = np.zeros(coef.size) if fills is None else fills
    places = dict(coding.places)
    # Positions of the columns of numbers and of factors, the cells of every factor, and the
    # coefficients of numbers and of cells.
    numbers, factors, cells = list[int](), list[int](), list[NDArray[Any]]()
    of_numbers, of_levels = list[float](), list[float]()
    # A row that the column transformer can be fitted to.
    row: dict[str, Any] = dict.fromkeys(coding.names, 0.0)
    for j, name in enumerate(coding.names):
        own = _encoder_cells(name, coding.cells.get(name, ()))
        # The first of two levels may have no column of numbers, and a coefficient of 0.
        each = [of_feature.get(f"{name}={level}", 0.0) for _, level in own]
        if any(coef[places[name]]) and own:
            factors.append(j)
            # Numbers and text have dtypes of their own, and an encoder compares like with like.
            text = isinstance(own[0][0], str)
            known = [cell for cell, _ in own]
            if fills is not None:
                # Whole numbers, True and False are floats where NaN stands beside them.
                exact = (bool, np.bool_, int, np.integer)
                known = [float(one) if isinstance(one, exact) else one for one in known]
                # Text may be missing in two ways, which encoders tell apart.
                kinds = [None, np.nan] if text else [np.nan]
                known += kinds
                each += [_of_missing(name, coding, coef, filled)] * len(kinds)
            cells.append(np.array(known, dtype=object if text else None))
            of_levels += each
            row[name] = known[0]
        elif not own and of_feature[name] != 0.0:
            numbers.append(j)
            of_numbers.append(of_feature[name])
            row[name] = filled[places[name][0]]
    encoder = OneHotEncoder(
        categories=cells,
        handle_unknown="ignore" if unknown == "zero" else "error",
        sparse_output=False,
    )
    # The mean of the single row that the imputer is fitted to is what it fills.
    keep = "passthrough" if fills is None else SimpleImputer()
    selected = [("numbers", keep, numbers), ("levels", encoder, factors)]
    whole = pd.DataFrame([row])  # The type of every column is that of its cells.
    select = ColumnTransformer([one for one in selected if one[2]]).fit(whole)
    model = _linear(np.array(of_numbers + of_levels), intercept)
    return Pipeline([("columns", select), ("model", model)])


def _of_missing(name: str, coding: Coding, coef: Array, fills: Array) -> float:
    """What a missing cell of a factor adds to a prediction.

    That is the coefficient of its level. Where missing cells have none, their 0/1 columns are
    filled, as ``fills`` says.
    """
    own = dict(coding.places)[name]
    if name in coding.with_missing:
        # The level is the last one, unless the table has its text; the first of two has no column.
        levels = coding.levels[name]
        place = levels.index(MISSING_LEVEL) - (len(levels) - len(own))
        return float(coef[own[place]]) if place >= 0 else 0.0
    return float(coef[own] @ fills[own])


def _encoder_cells(name: str, cells: Sequence[tuple[Any, str]]) -> list[tuple[Any, str]]:
    """The cells of a factor with their levels, sorted, as an encoder wants them.

    Raises InputError: Cells cannot be compared, or are tuples.
    """
    if any(np.ndim(cell) for cell, _ in cells):
        raise InputError(
            f"to_sklearn: column {quoted(name)} holds tuples or the like, which OneHotEncoder "
            "cannot take: make text of all with astype(str)"
        )
    try:
        return sorted(cells, key=lambda one: one[0])
    except TypeError:
        raise InputError(
            f"to_sklearn: column {quoted(name)} holds cells that have no order, such as numbers "
            f"beside text, which OneHotEncoder cannot take: make text of all with astype(str)"
        ) from None


def _linear(coef: Array, intercept: float) -> LinearRegression:
    """A fitted linear regression with these coefficients."""
    model = LinearRegression().fit(np.zeros((2, coef.size)), np.zeros(2))  # Sets what fits set.
    model.coef_, model.intercept_ = coef, np.float64(intercept)
    return model
