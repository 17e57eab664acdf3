"""The work of ``sparsecv stability``: a selection for a ready-made learner, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from ..cv.progress import Report
from ..design.design import Array
from ..design.folds import Index, make_folds
from ..errors import InputError
from ..estimators import SparseRidge, SparseRidgeCV
from ..selection.learner import SparseRidgeLearner, largest_tau
from ..solvers.core.column_rules import ResolvedRules
from ..tables.rows import RowSource
from .estimator import StabilityCV
from .learners import Recipe, cart, svm, weight_params, xgboost
from .losses import checked_loss


@dataclass
class Job:
    """A finished selection.

    n_train, n_test: Number of rows that the selection used, and of rows held out for a test.
    test_error, plain_test_error: Mean test losses of the chosen model, and of the model chosen at
        λ = 0, weighted as the rows are; None without a test.
    asked: What was asked of the columns.
    surface, shape (candidates,), or None: The same of every candidate of sparse ridge, fitted to
        all training rows.
    """

    search: StabilityCV
    learner: str
    n_train: int
    n_test: int
    test_error: float | None = None
    plain_test_error: float | None = None
    surface: Array | None = None
    asked: ResolvedRules | None = None


def recipe(
    learner: str,
    n: int,
    p: int,
    *,
    classification: bool,
    seed: int,
    taus: Sequence[int] | None,
    gammas: Sequence[float] | None,
    asked: ResolvedRules | None = None,
) -> Recipe:
    """A learner by its name on the command line, with its grids, for n rows and p columns.

    Sparse ridge: τ with τ log τ ≤ n, and 20 γ whose 1/γ' = γ/2 runs over the paper's [1e-3, 1e3].
    Projected: the same τ, and the γ that :class:`sparsecv.SparseRidgeCV` visits.

    taus, gammas: Values of τ and γ in place of these grids.
    asked: What is asked of the columns, by sparse ridge and projections.
    Raises InputError: The learner is a regression and the response holds labels, or τ or γ is given
        for a learner that has neither.
    """
    if learner not in ("sparse-ridge", "projected"):
        if taus is not None or gammas is not None:
            raise InputError(
                f"--tau and --gamma belong to sparse-ridge; {learner} has its own grid"
            )
        if learner == "svm":
            return svm(classification, p, n, seed)
        return (cart if learner == "cart" else xgboost)(classification, seed)
    if classification:
        raise InputError(f"{learner} is a regression; try --learner cart, xgboost or svm")
    held: dict[str, Any] = {}
    if asked is not None:
        held = {"constraints": asked.by_position(), "penalty_factors": asked.factors.tolist()}
    least, most = (1, p) if asked is None else asked.sizes
    top = max(least, largest_tau(n, most))
    sizes = list(range(least, top + 1)) if taus is None else list(taus)
    if learner == "projected":
        return Recipe(SparseRidgeCV(rule="projected", gammas=gammas, **held), {"taus": sizes})
    weights = np.geomspace(2e-3, 2e3, 20).tolist() if gammas is None else list(gammas)
    grid = {"gamma": weights, "tau": sizes}
    return Recipe(SparseRidge(**held), grid, {"gamma": 1.0 / np.sqrt(n)})


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
    job = Job(chosen, learner, rows.size, n_test, asked=grids.get("asked"))
    if n_test:
        _test(job, made, X, y, rows, held, weights)
    return job


def _test(
    job: Job, made: Recipe, X: Array, y: Array, rows: Index, held: Index, weights: Array | None
) -> None:
    """Enter test losses of the chosen model, of the model chosen at λ = 0 and of all candidates.

    rows, held: Numbers of the training rows and of the test rows.
    weights, shape (n,): Weights of all rows, or None.
    """
    own, counts, fit_params = None, None, dict[str, Any]()
    if weights is not None:
        own, counts = weights[rows], weights[held]
        fit_params = weight_params(made.estimator, own)
    chosen, sparse = job.search, job.learner == "sparse-ridge"
    params = dict(chosen.params_without_stability_)
    if sparse:
        params["time_limit"] = chosen.best_estimator_.time_limit
    plain = made.estimator.set_params(**params).fit(X[rows], y[rows], **fit_params)
    measure = checked_loss(chosen.loss_)
    job.test_error, job.plain_test_error = (
        float(np.average(measure(model, X[held], y[held]), weights=counts))
        for model in (chosen.best_estimator_, plain)
    )
    if sparse:
        grid = made.param_grid
        how: Any = {"solver": chosen.solver, "asked": job.asked, "weights": weights}
        path = SparseRidgeLearner(X, y, grid["tau"], grid["gamma"], **how)
        losses = path(rows, range(path.size))[:, held]
        job.surface = np.asarray(np.average(losses, axis=1, weights=counts))


def document(job: Job) -> dict[str, Any]:
    """The results as a JSON document."""
    found = job.search
    results, weights = found.cv_results_, found.lambda_results_
    names = ("cv_error", "stability", "corrected")
    errors = zip(*(results[name].tolist() for name in names), strict=True)
    nested = np.asarray(weights.get("nested_error", [])).tolist()
    return {
        "learner": job.learner,
        "search": found.search,
        "solver": found.solver if job.learner == "sparse-ridge" else None,
        "loss": found.loss_,
        "folds": {"kind": found.folds_.kind, "k": found.folds_.k},
        "n_train": job.n_train,
        "n_test": job.n_test,
        "lambda": found.lambda_,
        "nested_error": found.nested_error_,
        "best_params": found.best_params_,
        "params_without_stability": found.params_without_stability_,
        "cv_error": float(results["cv_error"][found.best_index_]),
        "stability": float(results["stability"][found.best_index_]),
        "test_error": job.test_error,
        "test_error_without_stability": job.plain_test_error,
        "n_fits": int(found.n_fits_),
        "candidates": [
            {**params, **dict(zip(names, line, strict=True))}
            for params, line in zip(results["params"], errors, strict=True)
        ],
        "lambdas": [
            {"lambda": weight, "nested_error": error}
            for weight, error in zip(weights["lambda"].tolist(), nested, strict=False)
        ],
    }
