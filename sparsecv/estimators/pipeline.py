"""A linear model on some columns as a fitted pipeline of scikit-learn's own classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline

from ..design.design import Array


def linear_pipeline(
    columns: NDArray[np.intp],
    coef: Array,
    intercept: Any,
    names: Any,
    p: int,
    fills: Array | None,
) -> Pipeline:
    """A pipeline of a ColumnTransformer that passes some columns on and a LinearRegression.

    columns, shape (m,): Positions of the columns.
    coef, shape (m,) or (q, m), intercept: A number, or shape (q,).
    names: Names of all p columns, or None.
    fills, shape (m,): What a SimpleImputer between the two steps fills missing values with; with
        None there is no such step.
    """
    positions = columns.tolist()
    select = ColumnTransformer([("selected", "passthrough", positions)])
    select.fit(np.zeros((1, p)))
    model = LinearRegression().fit(np.zeros((2, columns.size)), np.zeros((2, *coef.shape[:-1])))
    # As scikit-learn's own fit does: an intercept of one response is a number of numpy.
    own = np.float64(intercept) if coef.ndim == 1 else np.array(intercept)
    model.coef_, model.intercept_ = np.array(coef), own
    if names is not None:
        select.feature_names_in_ = np.array(names, dtype=object)
    steps: list[tuple[str, Any]] = [("columns", select), ("model", model)]
    if fills is not None:  # The mean of a single row is that row.
        steps.insert(1, ("missing", SimpleImputer().fit(fills[None, :])))
    return Pipeline(steps)
