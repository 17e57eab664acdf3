"""This script runs one other package's heuristic on one problem, for incumbents.py.

    python -m experiments.solvers.incumbent_peers SOLVER instance.npz

The script prints one JSON object, with the seconds and the supports that were found. Each support
has at most τ columns, and incumbents.py takes the best of them.
"""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np


def okridge(X: Any, y: Any, gamma: float, tau: int) -> list[Any]:
    """The beam search OKRidge starts from, 50 supports wide."""
    from okridge.solvers import sparseLogRegModel_big_n

    n, p = X.shape
    gram = X.T @ X
    data = SimpleNamespace(
        p=p,
        n=n,
        X=X,
        y=y,
        X_norm_2=np.linalg.norm(X, axis=0) ** 2,
        XTX=gram,
        XTX_lambda2=gram + gamma / 2.0 * np.eye(p),
        XTy=X.T @ y,
        lambda2=gamma / 2.0,
    )
    data.half_Lipschitz = data.XTX_lambda2.diagonal()
    model = sparseLogRegModel_big_n(data, parent_size=50, child_size=50)
    model.get_sparse_sol_via_OMP(tau)
    return [np.flatnonzero(model.get_betas())]


def abess(X: Any, y: Any, gamma: float, tau: int) -> list[Any]:
    """Splicing at the problem's ridge weight and without one (it fails for large weights)."""
    from abess import LinearRegression

    found = []
    for alpha in (gamma / 2.0, 0.0):
        model = LinearRegression(support_size=tau, alpha=alpha, fit_intercept=False)
        model.fit(X, y)
        found.append(np.flatnonzero(model.coef_))
    return found


def fastsparsegams(X: Any, y: Any, gamma: float, tau: int) -> list[Any]:
    """L0Learn's algorithm with swaps along a fine path; it skips sizes."""
    import fastsparsegams as package

    weight = gamma / (4.0 * X.shape[0])
    path = package.fit(
        np.asfortranarray(X),
        y,
        penalty="L0L2",
        algorithm="CDPSI",
        max_support_size=min(tau + 2, X.shape[1]),
        num_gamma=1,
        gamma_min=weight,
        gamma_max=weight * 1.0001,
        scale_down_factor=0.95,
        num_lambda=200,
        intercept=False,
    )
    sizes = np.array(path.support_size[0])
    fits = np.flatnonzero(sizes <= tau)
    best = fits[sizes[fits] == sizes[fits].max()]
    coefficients = path.coeffs[0].toarray()
    return [np.flatnonzero(coefficients[-X.shape[1] :, i]) for i in best]


SOLVERS = {"okridge": okridge, "abess": abess, "fastsparsegams": fastsparsegams}


if __name__ == "__main__":
    case = np.load(sys.argv[2])
    solver = SOLVERS[sys.argv[1]]
    rng = np.random.default_rng(0)
    solver(rng.standard_normal((30, 8)), rng.standard_normal(30), 1.0, 2)
    started = time.perf_counter()
    supports = solver(case["X"], case["y"], float(case["gamma"]), int(case["tau"]))
    seconds = time.perf_counter() - started
    document = {"seconds": seconds, "supports": [[int(j) for j in s] for s in supports]}
    print("\n" + json.dumps(document))
