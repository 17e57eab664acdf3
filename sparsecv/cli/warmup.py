"""The command ``sparsecv warmup``, which compiles all kernels, so that no later call waits."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ..cv.grid_errors import cross_validate
from ..cv.settings import Settings
from ..design.fold_data import RowFolds
from ..design.folds import make_folds
from ..design.row_table import RowTable
from ..estimators import SparseRidge, SparseRidgeCV
from ..report.progress import Steps
from ..solvers.core.column_rules import Constraints
from ..stability.sparse_ridge import SparseRidgeLearner
from .console import note, progress


def warmup() -> None:
    """Compile all kernels once; the compiled code is kept on disk, where later processes find it.

    A stage runs its paths at the same time, each in a process of its own. A stage has at most two
    paths, so at most two processes compile at a time, however many cores there are, and one where
    there is a single core.
    """
    steps = Steps()
    with progress(quiet=False, steps=steps):
        for done, stage in enumerate(STAGES):
            steps(f"compiling, {' and '.join(stage)}", done, len(STAGES))
            processes = min(len(stage), os.cpu_count() or 1)
            Parallel(n_jobs=processes)(delayed(PATHS[name])() for name in stage)
    note(f"compiled in {steps.seconds:.0f} s")


def _rows(n: int, p: int) -> tuple[Any, Any]:
    """A tiny table, X of shape (n, p) and y of shape (n,), whose first three columns matter."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, p))
    return X, X[:, :3].sum(axis=1) + random.standard_normal(n)


def _validate(n: int, p: int, folds: str, method: str = "auto") -> None:
    """Cross-validate a tiny table of n rows and p columns.

    folds: "loo", or the number of folds as text.
    method: That of :class:`~sparsecv.cv.settings.Settings`.
    """
    data = RowFolds(RowTable(*_rows(n, p), refit_intercept=True), make_folds(folds, n))
    taus = [2, 3] if p <= 45 else [2, 8]  # Beyond 45 columns a larger size takes more kernels.
    cross_validate(data, [1.0, 10.0], taus, Settings(method, prove="all"))


def _estimate() -> None:
    """Fit the estimators to a tiny table."""
    X, y = _rows(40, 6)
    SparseRidge(tau=2).fit(X, y)
    SparseRidge(tau="bic").fit(X, y).inference(sigma=1.0)
    SparseRidgeCV(cv=5).fit(X, y)
    SparseRidgeCV(cv=5, rule="minimum").fit(X, y)
    SparseRidgeCV(cv=5, gammas="global").fit(X, y)


def _constrain() -> None:
    """Fit the estimator to a tiny table under signs, and to one with groups of columns."""
    X, y = _rows(40, 6)
    groups = Constraints(groups=["a", "a", "b", "b", None, None])
    for rules in (Constraints(positive=True), groups):
        SparseRidgeCV(cv=5, taus=[1, 2], gammas=[1.0, 2.0], constraints=rules).fit(X, y)


def _select_stably() -> None:
    """Compute the losses of stability selection on a tiny table, by every solver."""
    X, y = _rows(40, 30)
    for solver in ("exact", "heuristic", "rounding"):
        SparseRidgeLearner(X, y, [1, 2, 3], [1.0], solver=solver)(np.arange(30), [0, 1, 2])


# For every part of a warm-up, a call that compiles what the part needs, on a table of few rows.
PATHS: dict[str, Callable[[], None]] = {
    "K folds": partial(_validate, 40, 6, "5"),
    "leave-one-out": partial(_validate, 40, 6, "loo"),
    "search": partial(_validate, 40, 6, "5", "search"),
    "beyond 45 columns": partial(_validate, 60, 50, "5"),
    "leave-one-out beyond 45 columns": partial(_validate, 60, 50, "loo"),
    "search beyond 45 columns": partial(_validate, 60, 50, "5", "search"),
    "estimators": _estimate,
    "stability": _select_stably,
    "signs and groups": _constrain,
}
# The stages run one after the other. The paths of a stage run at the same time, each in its
# process. Two paths of a stage have few kernels in common, so little is compiled twice.
STAGES: tuple[tuple[str, ...], ...] = (
    ("leave-one-out", "search"),
    ("beyond 45 columns", "estimators"),
    ("leave-one-out beyond 45 columns", "search beyond 45 columns"),
    ("K folds", "stability"),
    ("signs and groups",),
)
