"""``sparsecv warmup``: compile everything now, so that no later call waits for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .options import note


def warmup() -> None:
    """Compile everything once, on all cores."""
    started = time.perf_counter()
    compile_all()
    note(f"compiled in {time.perf_counter() - started:.0f} s")


def compile_all(jobs: int | None = None) -> None:
    """Run every path on a tiny problem, in processes: what each compiles is kept for all.

    jobs: Processes side by side; one per core by default.

    Examples
    --------
    >>> compile_all()  # doctest: +SKIP
    """
    from joblib import Parallel, delayed

    for stage in STAGES:
        processes = min(len(stage), jobs or os.cpu_count() or 1)
        Parallel(n_jobs=processes)(delayed(run_path)(name) for name in stage)


def run_path(name: str) -> None:
    """Compile one path by running it.

    name: One of ``PATHS``.
    """
    PATHS[name]()


def rows(n: int, p: int) -> tuple[Any, Any]:
    """A tiny table whose first three columns matter.

    Returns X, y, shape (n, p) and (n,).
    """
    random = np.random.default_rng(0)
    X = random.standard_normal((n, p))
    return X, X[:, :3].sum(axis=1) + random.standard_normal(n)


def validate(n: int, p: int, folds: str, method: str = "auto") -> None:
    """Cross-validate a tiny table."""
    from ..cv.engine import cross_validate
    from ..cv.settings import Settings
    from ..design.design import Protocol, Summary, make_design
    from ..design.fold_data import RowFolds
    from ..design.folds import make_folds

    X, y = rows(n, p)
    design = make_design(Summary.of(X, y), Protocol(), [f"x{j}" for j in range(p)])
    data = RowFolds.of(design, X, y, make_folds(folds, n, seed=0))
    cross_validate(data, [1.0, 10.0], [2, 3] if p <= 45 else [2, 8], Settings(method, prove="all"))


def estimate() -> None:
    """Fit the estimators."""
    from ..estimators import SparseRidge, SparseRidgeCV

    X, y = rows(40, 6)
    SparseRidge(tau=2).fit(X, y)
    SparseRidgeCV(cv=5).fit(X, y)


def select_stably() -> None:
    """The losses that stability selection asks for, by every solver."""
    from ..selection.learner import SparseRidgeLearner

    X, y = rows(40, 30)
    for solver in ("exact", "heuristic", "rounding"):
        SparseRidgeLearner(X, y, [1, 2, 3], [1.0], solver=solver)(np.arange(30), [0, 1, 2])


PATHS: dict[str, Callable[[], None]] = {
    "K folds": partial(validate, 40, 6, "5"),
    "leave-one-out": partial(validate, 40, 6, "loo"),
    "search": partial(validate, 40, 6, "5", "search"),
    "beyond 45 columns": partial(validate, 60, 50, "5"),
    "leave-one-out beyond 45 columns": partial(validate, 60, 50, "loo"),
    "search beyond 45 columns": partial(validate, 60, 50, "5", "search"),
    "estimators": estimate,
    "stability": select_stably,
}
# one path of a stage compiles little that another does, and finds what the stage before made
STAGES = (
    ("leave-one-out", "search"),
    ("beyond 45 columns", "estimators"),
    ("leave-one-out beyond 45 columns", "search beyond 45 columns"),
    ("K folds", "stability"),
)
