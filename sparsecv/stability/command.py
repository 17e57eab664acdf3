"""The work of ``sparsecv stability``: a selection for a ready-made learner, and its results."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.multiclass import type_of_target

from ..cv.progress import Report
from ..design.design import Array
from ..design.folds import Index, make_folds
from ..errors import InputError
from ..tables.row_source import RowSource
from .estimator import StabilityCV
from .learners import learner_of, weight_params
from .losses import checked_loss
from .recipes import Recipe, recipe


class Job(NamedTuple):
    """A finished selection.

    found: The results, as the JSON document has them.
    surface, shape (candidates,), or None: The mean squared test error of every candidate of sparse
        ridge, fitted to all training rows.
    """

    search: StabilityCV
    found: dict[str, Any]
    surface: Array | None


def run(
    source: RowSource,
    learner: str,
    *,
    search: str | None = None,
    classify: bool = False,
    test: float = 0.0,
    seed: int = 0,
    grids: Mapping[str, Any] = MappingProxyType({}),
    progress: Report | None = None,
    **settings: Any,
) -> Job:
    """Choose a learner's hyperparameters on a table, by stability-regularised cross-validation.

    search: "grid" or "coordinate"; by default coordinate descent for trees, else a grid.
    classify: Whether the response holds labels.
    test: Share of the rows that is held out for a test.
    seed: Seed of the folds and of the test rows.
    grids: Arguments ``taus``, ``gammas`` and ``asked`` of :func:`recipe`, for the learners
        "sparse-ridge" and "projected".
    progress: Takes what is being done, the number of units done and the number of all units.
    **settings: Further parameters of :class:`StabilityCV`.
    Raises InputError: Options contradict each other, or labels are continuous.
    """
    if not 0.0 <= test < 1.0:
        raise InputError(f"--test must be a share in [0, 1); got {test}")
    X, y = source.load()
    if classify and type_of_target(y) not in ("binary", "multiclass"):
        raise InputError("--classify needs a response of labels; this one is continuous")
    if classify:  # Some learners accept no labels but 0, 1, ….
        y = np.unique(y, return_inverse=True)[1].astype(np.float64)
    order = np.random.default_rng(seed).permutation(y.size)
    n_test = round(test * y.size)
    held, rows = np.sort(order[:n_test]), np.sort(order[n_test:])
    made = recipe(learner, rows.size, X.shape[1], classification=classify, seed=seed, **grids)
    way = search or ("coordinate" if learner in ("cart", "xgboost") else "grid")
    start = made.start if way == "coordinate" else None
    chosen = StabilityCV(
        made.estimator, made.param_grid, search=way, start=start, random_state=seed, **settings
    )
    chosen._report = progress
    if source.groups is not None:
        if n_test:
            raise InputError("--test takes single rows, and --groups keeps rows together: use one")
        folds = make_folds(chosen.cv, rows.size, seed=seed, groups=source.groups)
        chosen.set_params(cv=[folds.split(j) for j in range(folds.k)])
    weights = source.weights
    if n_test and weights is not None and not weights[held].any():
        raise InputError("no test row has a weight above 0: use a larger --test")
    chosen.fit(X[rows], y[rows], None if weights is None else weights[rows])
    found = _document(chosen) | {"learner": learner, "n_train": rows.size, "n_test": n_test}
    if learner != "sparse-ridge":
        found["solver"] = None
    surface = _test(chosen, found, made, (X, y, weights), rows, held) if n_test else None
    return Job(chosen, found, surface)


def _test(
    chosen: StabilityCV,
    found: dict[str, Any],
    made: Recipe,
    data: tuple[Array, Array, Array | None],
    rows: Index,
    held: Index,
) -> Array | None:
    """Enter test losses of the chosen model and of that chosen at λ = 0 into the results.

    data: X, y and the weights of all rows, or None.
    rows, held: Numbers of the training rows and of the test rows.
    Returns: The mean squared test error of every candidate of sparse ridge, shape (candidates,);
        None for other learners and losses.
    """
    X, y, weights = data
    own, counts, every = {}, None, {}
    if weights is not None:
        own, every = (weight_params(made.estimator, each) for each in (weights[rows], weights))
        counts = weights[held]
    sparse = found["learner"] == "sparse-ridge"
    params = dict(chosen.params_without_stability_)
    if sparse:
        params["time_limit"] = chosen.best_estimator_.time_limit
    plain = clone(made.estimator).set_params(**params).fit(X[rows], y[rows], **own)
    measure = checked_loss(chosen.loss_)
    for name, model in (
        ("test_error", chosen.best_estimator_),
        ("test_error_without_stability", plain),
    ):
        found[name] = float(np.average(measure(model, X[held], y[held]), weights=counts))
    if not (sparse and chosen.loss_ == "squared"):
        return None
    path = learner_of(made.estimator, made.param_grid, X, y, measure, every, chosen.solver)
    losses = path(rows, range(len(ParameterGrid(made.param_grid))))[:, held]
    return np.asarray(np.average(losses, axis=1, weights=counts))


def _document(search: StabilityCV) -> dict[str, Any]:
    """The results of a selection as a JSON document, without test errors."""
    results, weights = search.cv_results_, search.lambda_results_
    names = ("cv_error", "stability", "corrected")
    errors = zip(*(results[name].tolist() for name in names), strict=True)
    nested = np.asarray(weights.get("nested_error", [])).tolist()
    return {
        "search": search.search,
        "solver": search.solver,
        "loss": search.loss_,
        "folds": {"kind": search.folds_.kind, "k": search.folds_.k},
        "lambda": search.lambda_,
        "nested_error": search.nested_error_,
        "best_params": search.best_params_,
        "params_without_stability": search.params_without_stability_,
        "cv_error": float(results["cv_error"][search.best_index_]),
        "stability": float(results["stability"][search.best_index_]),
        "test_error": None,
        "test_error_without_stability": None,
        "n_fits": int(search.n_fits_),
        "candidates": [
            {**params, **dict(zip(names, line, strict=True))}
            for params, line in zip(results["params"], errors, strict=True)
        ],
        "lambdas": [
            {"lambda": weight, "nested_error": error}
            for weight, error in zip(weights["lambda"].tolist(), nested, strict=False)
        ],
    }
