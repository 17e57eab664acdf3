"""What ``sparsecv stability`` runs: a ready-made learner on a table, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from ..design.design import Array
from ..errors import InputError
from ..estimators import SparseRidge, SparseRidgeCV
from ..selection.learner import SparseRidgeLearner, largest_tau
from ..tables.rows import RowSource
from .estimator import StabilityCV
from .learners import Recipe, cart, svm, xgboost
from .losses import checked_loss

LEARNERS = ("sparse-ridge", "projected", "cart", "xgboost", "svm")


@dataclass
class Job:
    """A finished selection.

    train, test, (X, y): Rows chosen on, and rows held out; ``test`` is None without.
    test_error, plain_test_error: Mean test losses of the model chosen, and of the one chosen at λ =
        0.
    surface, shape (candidates,), or None: Test losses of every candidate fitted to all training
        rows (sparse ridge).
    """

    search: StabilityCV
    learner: str
    train: tuple[Array, Array]
    test: tuple[Array, Array] | None
    test_error: float | None
    plain_test_error: float | None
    surface: Array | None


def recipe(
    learner: str,
    n: int,
    p: int,
    *,
    classification: bool,
    seed: int,
    taus: Sequence[int] | None,
    gammas: Sequence[float] | None,
) -> Recipe:
    """A learner by its name, with its grids.

    Sparse ridge: τ with τ log τ ≤ n, and 20 γ whose 1/γ' = γ/2 runs over the paper's [1e-3, 1e3].
    Projected: the same τ, and the γ that :class:`sparsecv.SparseRidgeCV` visits.

    learner: "sparse-ridge", "projected", "cart", "xgboost" or "svm".
    n, p: Rows and columns.
    seed: Of the learner.
    taus, gammas: Grids of sparse ridge and of what is projected, in place of their own.
    Raises InputError: An unknown name, or τ and γ for a learner that has none.
    """
    if learner not in LEARNERS:
        raise InputError(f"--learner must be one of {', '.join(LEARNERS)}; got {learner!r}")
    if learner in ("sparse-ridge", "projected"):
        if classification:
            raise InputError(f"{learner} is a regression; try --learner cart, xgboost or svm")
        sizes = list(taus) if taus is not None else list(range(1, largest_tau(n, p) + 1))
        if learner == "projected":
            return Recipe(SparseRidgeCV(rule="projected", gammas=gammas), {"taus": sizes})
        grid: dict[str, list[Any]] = {
            "gamma": list(gammas) if gammas is not None else np.geomspace(2e-3, 2e3, 20).tolist(),
            "tau": sizes,
        }
        return Recipe(SparseRidge(), grid, {"gamma": 1.0 / np.sqrt(n)})
    if taus is not None or gammas is not None:
        raise InputError(f"--tau and --gamma belong to sparse-ridge; {learner} has its own grid")
    if learner == "cart":
        return cart(classification, seed)
    if learner == "xgboost":
        return xgboost(classification, seed)
    return svm(classification, p, n, seed)


def run(
    source: RowSource,
    learner: str,
    *,
    folds: str = "5",
    taus: Sequence[int] | None = None,
    gammas: Sequence[float] | None = None,
    search: str | None = None,
    classify: bool = False,
    test: float = 0.0,
    seed: int = 0,
    solver: str = "auto",
    **settings: Any,
) -> Job:
    """Select by stability-regularised nested cross-validation.

    folds: "loo", K or "size:M".
    taus, gammas: Sparse ridge only.
    search: "grid", or "coordinate". A grid for sparse ridge and SVM, descent for trees by default.
    classify: The response holds labels.
    test: Share of the rows that is held out for a test.
    seed: Of the folds and the test rows.
    solver: Of sparse ridge; see :class:`StabilityCV`.
    **settings: ``lambdas``, ``loss``, ``n_jobs``, ``checkpoint`` and ``client`` of
        :class:`StabilityCV`.
    Raises InputError: Bad options, or labels that are none.
    """
    X, y = source.load()
    if not 0.0 <= test < 1.0:
        raise InputError(f"--test must be a share in [0, 1); got {test}")
    if classify and type_of_target(y) not in ("binary", "multiclass"):
        raise InputError("--classify needs a response of labels; this one is continuous")
    if classify:  # numbered 0, 1, …: some learners take nothing else
        y = np.unique(y, return_inverse=True)[1].astype(np.float64)
    order = np.random.default_rng(seed).permutation(y.size)
    held = np.sort(order[: round(test * y.size)])
    rows = np.setdiff1d(np.arange(y.size), held)
    n, p = rows.size, X.shape[1]
    made = recipe(learner, n, p, classification=classify, seed=seed, taus=taus, gammas=gammas)
    way = search or ("coordinate" if learner in ("cart", "xgboost") else "grid")
    chosen = StabilityCV(
        made.estimator,
        made.param_grid,
        cv=int(folds) if folds.isdecimal() else folds,
        search=way,
        start=made.start if way == "coordinate" else None,
        random_state=seed,
        solver=solver,
        **settings,
    )
    chosen.fit(X[rows], y[rows])
    train = (X[rows], y[rows])
    if not held.size:
        return Job(chosen, learner, train, None, None, None, None)
    return _tested(chosen, made, learner, train, (X[held], y[held]))


def _tested(
    chosen: StabilityCV,
    made: Recipe,
    learner: str,
    train: tuple[Array, Array],
    test: tuple[Array, Array],
) -> Job:
    """The choice, and that without stability, on rows kept apart."""
    measure = checked_loss(chosen.loss_)
    error = float(measure(chosen.best_estimator_, *test).mean())
    limits = {"time_limit": getattr(chosen.best_estimator_, "time_limit", None)}
    own = limits if learner == "sparse-ridge" else {}
    plain = made.estimator.set_params(**chosen.params_without_stability_, **own).fit(*train)
    plain_error = float(measure(plain, *test).mean())
    surface = None
    if learner == "sparse-ridge":
        surface = _surface(made, train, *test, chosen.solver)
    return Job(chosen, learner, train, test, error, plain_error, surface)


def _surface(made: Recipe, train: tuple[Array, Array], X: Array, y: Array, solver: str) -> Array:
    """Test errors of every (γ, τ) fitted to all training rows."""
    grid, n = made.param_grid, train[1].size
    path = SparseRidgeLearner(
        np.vstack([train[0], X]), np.append(train[1], y), grid["tau"], grid["gamma"], solver=solver
    )
    losses = path(np.arange(n), range(path.size))
    return np.asarray(losses[:, n:].mean(axis=1))


def document(job: Job) -> dict[str, Any]:
    """The results as JSON has them."""
    found = job.search
    results, weights = found.cv_results_, found.lambda_results_
    return {
        "learner": job.learner,
        "search": found.search,
        "solver": found.solver if job.learner == "sparse-ridge" else None,
        "loss": found.loss_,
        "folds": {"kind": found.folds_.kind, "k": found.folds_.k},
        "n_train": int(job.train[1].size),
        "n_test": 0 if job.test is None else int(job.test[1].size),
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
            {**params, "cv_error": float(error), "stability": float(change), "corrected": float(c)}
            for params, error, change, c in zip(
                results["params"],
                results["cv_error"],
                results["stability"],
                results["corrected"],
                strict=True,
            )
        ],
        "lambdas": [
            {"lambda": float(weight), "nested_error": float(error)}
            for weight, error in zip(
                weights["lambda"], weights.get("nested_error", []), strict=False
            )
        ],
    }
