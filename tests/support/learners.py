"""Tables, folds and learners that tests of the stability layer share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor

from sparsecv import SparseRidge

from .problems import regression

Array = NDArray[np.float64]
LAMBDAS = (0.0, 0.1, 1.0, 10.0)


def made(n: int = 40, p: int = 5, seed: int = 0) -> tuple[Array, Array]:
    return regression(n, p, {0: 1.0, 1: -2.0}, seed=seed)


def label_of(n: int, k: int, seed: int = 0) -> NDArray[np.intp]:
    label = np.arange(n) % k
    np.random.default_rng(seed).shuffle(label)
    return label


def inner_search(values: dict[str, Any], X: Array, y: Array, pairs: Any, t: int) -> GridSearchCV:
    """Scikit-learn's choice for ridge on the training rows of fold t, by the other folds."""
    train, inner = pairs[t][0], []
    for j in range(len(pairs)):
        if j != t:
            inside = np.isin(train, pairs[j][1])
            inner.append((np.flatnonzero(~inside), np.flatnonzero(inside)))
    search = GridSearchCV(Ridge(), values, cv=inner, scoring="neg_mean_squared_error")
    return search.fit(X[train], y[train])


LEARNERS = [
    (Ridge(), {"alpha": [0.01, 1.0, 10.0, 100.0]}),
    (DecisionTreeRegressor(random_state=0), {"max_depth": [1, 2, 4], "min_samples_split": [2, 6]}),
    (SparseRidge(), {"tau": [1, 2, 3, 5], "gamma": [0.1, 5.0]}),
]
