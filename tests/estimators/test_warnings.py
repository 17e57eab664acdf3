"""A warning points at the line that called ``fit``, not into this package or scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from support.problems import many_alike

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.errors import ConstantColumnWarning, LoweredSizeWarning, UnprovedWarning


def hard(p: int = 60) -> tuple[Any, Any]:
    """Correlated columns with much noise: nothing is proved at once. The last one is constant."""
    X, y = many_alike(8.0, p)
    return np.column_stack([X, np.full(120, 3.0)]), y


class Silent:
    """A callback of scikit-learn that does nothing."""

    max_propagation_depth = 1

    def setup(self, *_: Any, **__: Any) -> None: ...

    def teardown(self, *_: Any, **__: Any) -> None: ...

    def on_fit_task_begin(self, *_: Any, **__: Any) -> None: ...

    def on_fit_task_end(self, *_: Any, **__: Any) -> None: ...


MODELS: dict[str, Any] = {
    "SparseRidge": SparseRidge(20, 0.01, time_limit=1e-3),
    "SparseRidgeCV": SparseRidgeCV(gammas=0.01, taus=[12], time_limit=0, rule="minimum"),
    "search": GridSearchCV(SparseRidge(tau=20, time_limit=1e-3), {"gamma": [0.01]}, cv=2),
}


@pytest.mark.parametrize(
    ("name", "callbacks"),
    [  # a SparseRidge of its own takes no callbacks
        ("SparseRidge", False),
        ("SparseRidgeCV", False),
        ("SparseRidgeCV", True),
        ("search", False),
        ("search", True),
    ],
)
def test_the_file_of_a_warning_is_that_of_the_caller(name: str, callbacks: bool) -> None:
    model = clone(MODELS[name])
    if callbacks:
        pytest.importorskip("sklearn.callback")
        model.set_callbacks(Silent())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*hard())
    mine = [one for one in caught if one.category in (UnprovedWarning, ConstantColumnWarning)]
    assert {one.category for one in mine} == {UnprovedWarning, ConstantColumnWarning}
    assert {one.filename for one in mine} == {__file__}


def test_a_size_beyond_the_columns_that_vary_is_said_at_the_call() -> None:
    X, y = hard(3)
    with pytest.warns(LoweredSizeWarning, match="3 of the 4 columns vary") as caught:
        SparseRidge(tau=4).fit(X, y)
    assert {one.filename for one in caught} == {__file__}
