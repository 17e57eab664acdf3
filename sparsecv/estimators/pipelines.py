"""A fitted model as a pipeline of scikit-learn's own classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ..tables.coding import Coding

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def pipeline_of_numbers(
    columns: Index, coef: Array, intercept: float, names: Any, fills: Array | None
) -> Pipeline:
    """The pipeline of a model whose columns all hold numbers.

    columns: Numbers of the columns of the model.
    coef, shape (p,): Coefficients of the table's columns.
    names, shape (p,), or None: Names of the table's columns.
    fills, shape (p,), or None: What a missing value of a column is filled with.
    """
    selected = ("numbers", "passthrough", columns.tolist())
    select = _fitted([selected], np.zeros((1, coef.size)), names)
    steps: list[tuple[str, Any]] = [("columns", select)]
    if fills is not None:  # The mean of a single row is that row.
        steps.append(("missing", SimpleImputer().fit(fills[None, columns])))
    return Pipeline([*steps, ("model", _linear(coef[columns], intercept))])


def pipeline_of_levels(coef: Array, intercept: float, coding: Coding, unknown: str) -> Pipeline:
    """The pipeline of a model whose table has text columns.

    coef, shape (p,): Coefficients of the columns of numbers that ``coding`` makes of the table's.
    unknown: With "zero" a text that is no level of its column counts as no level.
    """
    of_feature = dict(zip(coding.features, coef.tolist(), strict=True))
    numbers, texts, levels = list[int](), list[int](), list[list[str]]()
    of_numbers, of_levels = list[float](), list[float]()
    row = np.zeros((1, len(coding.names)), dtype=object)
    for j, name in enumerate(coding.names):
        own = list(coding.levels.get(name, ()))
        # The first of two levels may have no column of numbers.
        each = [of_feature.get(f"{name}={level}", 0.0) for level in own]
        if any(each):
            texts.append(j)
            levels.append(own)
            of_levels += each
            row[0, j] = own[0]
        elif not own and of_feature[name] != 0.0:
            numbers.append(j)
            of_numbers.append(of_feature[name])
    encoder = OneHotEncoder(
        categories=[np.array(own, dtype=object) for own in levels],
        handle_unknown="ignore" if unknown == "zero" else "error",
        sparse_output=False,
    )
    selected = [("numbers", "passthrough", numbers), ("levels", encoder, texts)]
    select = _fitted([one for one in selected if one[2]], row, coding.names)
    model = _linear(np.array(of_numbers + of_levels), intercept)
    return Pipeline([("columns", select), ("model", model)])


def _fitted(selected: list[Any], row: Any, names: Any) -> ColumnTransformer:
    """A transformer that selects and encodes columns, fitted to one row of a table."""
    select = ColumnTransformer(selected).fit(row)
    if names is None:
        return select
    select.feature_names_in_ = np.array(names, dtype=object)
    for _, step, columns in select.transformers_:
        if isinstance(step, OneHotEncoder):
            step.feature_names_in_ = select.feature_names_in_[columns]
    return select


def _linear(coef: Array, intercept: float) -> LinearRegression:
    """A fitted linear regression with these coefficients."""
    model = LinearRegression().fit(np.zeros((2, coef.size)), np.zeros(2))
    model.coef_, model.intercept_ = coef, np.float64(intercept)
    return model
