"""RMSE and R² of a CV error, and coefficients times standard deviations."""

from __future__ import annotations

import math

import numpy as np

from ..design.design import Array
from ..design.model import FittedModel
from ..design.prepare import Prepared


def quality(prepared: Prepared, cv_error: float) -> tuple[float, float | None]:
    """RMSE, and R² = 1 − CV error / variance of y about its mean (None: y does not vary)."""
    design, data = prepared.design, prepared.data
    # The mean of the response in the units in which the folds are solved.
    mean = (design.y_mean - design.y_shift) / design.y_scale
    square = data.full().yy / data.total
    variance = square - mean**2
    r2 = 1.0 - cv_error / variance if variance > 1e-12 * square else None
    return math.sqrt(cv_error), r2


def standardized(prepared: Prepared, model: FittedModel) -> Array:
    """Coefficients of the support times their columns' standard deviations.

    Returns, ndarray, one entry for every column of the support.
    """
    design, data = prepared.design, prepared.data
    mean = (design.x_mean - design.x_shift) / design.x_scale
    variance = np.maximum(data.full().squared_lengths / data.total - mean**2, 0.0)
    spread = np.zeros(design.p_raw)
    spread[design.kept] = np.sqrt(variance) * design.x_scale
    return np.asarray(model.coef[model.support] * spread[model.support])
