"""Every public attribute of a fitted estimator stands in the docstring of its class.

The fits take their options in turn, so that attributes which only some options set are seen, too.
A dict is described by its keys: each stands in the docstring in quotes.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from test_docstrings import documented_attributes

from sparsecv import SparseRidge, SparseRidgeCV, StabilityCV

OPTIONS: list[tuple[Any, dict[str, Any]]] = [
    (SparseRidge, {"tau": 2}),
    (SparseRidge, {"tau": 2, "n_best": 2}),
    (SparseRidge, {"total": 3, "responses": 2}),
    (SparseRidgeCV, {}),
    (SparseRidgeCV, {"gammas": [1.0], "n_best": 2, "nested": 3}),
    (SparseRidgeCV, {"gammas": "global", "cv": 3}),
    (SparseRidgeCV, {"gammas": [1.0], "rule": "projected"}),
    (SparseRidgeCV, {"gammas": [1.0], "responses": 2}),
    (StabilityCV, {"param_grid": {"tau": [1, 2]}, "cv": 3}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS, ids=lambda value: str(value)[-60:])
def test_attributes_and_keys_are_described(kind: Any, options: dict[str, Any]) -> None:
    frame = pytest.importorskip("pandas").DataFrame
    rng = np.random.default_rng(0)
    X = frame(rng.standard_normal((30, 4)), columns=list("abcd"))
    y = 2.0 * X["a"].to_numpy() + rng.standard_normal(30)
    options = dict(options)
    if options.pop("responses", 1) == 2:
        y = np.column_stack([y, -y + X["b"].to_numpy()])
    learner = [SparseRidge()] if kind is StabilityCV else []
    model = kind(*learner, **options).fit(X, y)
    computed = {
        name
        for one in kind.__mro__
        if one.__module__.startswith("sparsecv.")
        for name, value in vars(one).items()
        if not inspect.isroutine(value)
    }
    found = {
        name
        for name in {*vars(model), *computed}
        if name.endswith("_") and not name.startswith("_") and hasattr(model, name)
    }
    assert len(found) > 8
    assert found - documented_attributes(kind) == set()
    text = (inspect.getdoc(kind) or "") + (inspect.getdoc(SparseRidge) or "")
    keys = {
        key
        for name in found
        if isinstance(value := getattr(model, name), dict)
        for key in value
        if name not in ("choices_", "best_params_", "params_without_stability_")
    }
    assert {key for key in keys if f'"{key}"' not in text} <= {"param_tau"}
