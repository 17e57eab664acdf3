"""Models that tests write to files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv.design.model import Model


def linear(coef: Sequence[float], intercept: float) -> Model:
    """A model of given coefficients; a column whose coefficient is 0 is not in it."""
    values = np.array(coef)
    support = np.flatnonzero(values)
    return Model(support, values, intercept, support.size, 1.0)
