"""The linear models that sparsecv is compared with, and their choice by cross-validation.

scikit-learn fits the lasso, the relaxed lasso (least squares on the lasso's columns) and the
elastic net. Where they are installed, python-glmnet runs glmnet's own code, skglm fits MCP and
SCAD, and fastsparsegams runs L0Learn's algorithm with swaps. A path is a function of training rows,
a response, other rows and a grid of penalties (None: the path makes its own grid). A path returns
that grid, the predictions at the other rows (rows, models) and the number of columns of every
model.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path as File
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import enet_path
from sklearn.model_selection import KFold

Array = np.ndarray
Path = Callable[[Array, Array, Array, Any], tuple[Any, Array, Array]]
MODELS_OF_A_PATH = 100
L1_RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)  # of the elastic net
L0LEARN_RIDGE_WEIGHTS = np.geomspace(1e-4, 10.0, 5)
MAX_L0LEARN_COLUMNS = 50
GLMNET_ALPHAS = np.linspace(0.0, 1.0, 11).tolist()  # both papers' grid; 1 is the lasso


def scaled(
    X: np.ndarray, y: np.ndarray, Z: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """X and Z centred and scaled by X's mean and standard deviation, y centred, and y's mean."""
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread <= 1e-12 * np.abs(mean)] = np.inf
    return (X - mean) / spread, y - y.mean(), (Z - mean) / spread, float(y.mean())


def coefficients(X: np.ndarray, y: np.ndarray, path: np.ndarray, penalty: str) -> np.ndarray:
    """Coefficients (p, λ) along the path; every fit starts from the fit at the λ before."""
    from skglm.datafits import Quadratic
    from skglm.penalties import SCAD, MCPenalty
    from skglm.solvers import AndersonCD
    from skglm.utils.jit_compilation import compiled_clone

    chosen = MCPenalty(1.0, 3.0) if penalty == "MCP" else SCAD(1.0, 3.7)
    solver = AndersonCD(fit_intercept=False, tol=1e-6, max_iter=200)
    found = solver.path(
        np.asfortranarray(X), y, compiled_clone(Quadratic()), compiled_clone(chosen), path
    )
    return np.asarray(found[1])


def elastic_net(
    ratios: Sequence[float], relaxed: bool, X: Array, y: Array, Z: Array, grid: Any
) -> tuple[Any, Array, Array]:
    """The paths of all L1 ratios joined; ``relaxed`` refits every model by least squares."""
    A, b, B, mean = scaled(X, y, Z)
    least = 0.01 if X.shape[1] > y.size else 1e-3  # of the largest λ
    used, found = [], []
    for number, ratio in enumerate(ratios):
        alphas = MODELS_OF_A_PATH if grid is None else grid[number]
        alphas, coef, _ = enet_path(A, b, l1_ratio=ratio, eps=least, alphas=alphas)
        used.append(alphas)
        found.append(coef)
    coef = np.concatenate(found, axis=1)
    columns = np.count_nonzero(coef, axis=0)
    if relaxed:
        for a in range(coef.shape[1]):
            support = np.flatnonzero(coef[:, a])
            coef[support, a] = np.linalg.lstsq(A[:, support], b, rcond=None)[0]
    return used, mean + B @ coef, columns


def concave(penalty: str, X: Array, y: Array, Z: Array, grid: Any) -> tuple[Any, Array, Array]:
    """MCP (γ = 3) or SCAD (γ = 3.7) along 100 λ, as ncvreg has them."""
    A, b, B, mean = scaled(X, y, Z)
    if grid is None:
        ratio = 0.05 if X.shape[1] > y.size else 1e-3
        grid = np.abs(A.T @ b).max() / y.size * np.geomspace(1.0, ratio, MODELS_OF_A_PATH)
    coef = coefficients(A, b, grid, penalty)
    return grid, mean + B @ coef, np.count_nonzero(coef, axis=0)


def glmnet(
    alphas: Sequence[float], X: Array, y: Array, Z: Array, grid: Any
) -> tuple[Any, Array, Array]:
    """glmnet's own paths of 100 λ for all its α (1 is the lasso, 0 is ridge regression), joined."""
    from glmnet import ElasticNet

    A, b, B, mean = scaled(X, y, Z)
    grids = [None] * len(alphas) if grid is None else grid
    used, predicted, columns = [], [], []
    for alpha, path in zip(alphas, grids, strict=True):
        net = ElasticNet(alpha=alpha, n_splits=0, lambda_path=path, standardize=False).fit(A, b)
        used.append(net.lambda_path_ if path is None else path)
        # A path that glmnet ends early goes on with its last model, as it does in cv.glmnet.
        missing = [(0, 0), (0, used[-1].size - net.lambda_path_.size)]
        predicted.append(np.pad(B @ net.coef_path_ + net.intercept_path_, missing, "edge"))
        columns.append(np.pad(np.count_nonzero(net.coef_path_, axis=0), missing[1], "edge"))
    return used, mean + np.concatenate(predicted, axis=1), np.concatenate(columns)


def l0learn(weights: Array, X: Array, y: Array, Z: Array, grid: Any) -> tuple[Any, Array, Array]:
    """For every ridge weight and size k, the path's largest model of at most k columns."""
    A, b, B, mean = scaled(X, y, Z)
    most = min(X.shape[1], MAX_L0LEARN_COLUMNS, y.size // 2) if grid is None else grid
    coef = l0learn_models(weights, A, b, most)
    return most, mean + B @ coef, np.count_nonzero(coef, axis=0)


def l0learn_models(weights: Array, A: Array, b: Array, most: int) -> Array:
    """Coefficients, shape (p, weights · sizes), of :func:`l0learn` for centred rows."""
    import fastsparsegams

    p = A.shape[1]
    coef = np.zeros((p, weights.size, most))
    for number, weight in enumerate(weights):
        path = fastsparsegams.fit(
            np.asfortranarray(A),
            b,
            penalty="L0L2",
            algorithm="CDPSI",
            max_support_size=most,
            num_gamma=1,
            gamma_min=weight,
            gamma_max=weight * 1.0001,
            num_lambda=MODELS_OF_A_PATH,
            intercept=False,
        )
        found, sizes = path.coeffs[0].toarray()[-p:], np.array(path.support_size[0])
        for size in range(1, most + 1):
            within = np.flatnonzero(sizes <= size)
            if within.size:
                last = within[sizes[within] == sizes[within].max()][-1]
                coef[:, number, size - 1] = found[:, last]
    return coef.reshape(p, -1)


PATHS: dict[str, Path] = {
    "lasso": partial(elastic_net, (1.0,), False),
    "relaxed lasso": partial(elastic_net, (1.0,), True),
    "elastic net": partial(elastic_net, L1_RATIOS, False),
}
if find_spec("glmnet"):
    PATHS["glmnet"] = partial(glmnet, GLMNET_ALPHAS)
if find_spec("skglm"):
    PATHS |= {way: partial(concave, way) for way in ("MCP", "SCAD")}
if find_spec("fastsparsegams"):
    PATHS["L0Learn"] = partial(l0learn, L0LEARN_RIDGE_WEIGHTS)


class Chosen(NamedTuple):
    """A model that cross-validation chose among models of at most ``size`` columns (None: any)."""

    size: int | None
    predicted: Array
    columns: int
    cv_error: float


def of_least_error(
    path: Path, X: Array, y: Array, Z: Array, sizes: Sequence[int], seed: int
) -> list[Chosen]:
    """The model of least five-fold error, and of those with at most k columns for every size k."""
    grid, predicted, columns = path(X, y, Z, None)
    error = np.zeros(columns.size)
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        held_out = path(X[train], y[train], X[test], grid)[1]
        error += np.square(y[test, None] - held_out).sum(axis=0)
    found = []
    for size in (None, *(size for size in sizes if size <= X.shape[1])):
        allowed = columns <= (X.shape[1] if size is None else size)
        if allowed.any():
            best = int(np.where(allowed, error, np.inf).argmin())
            of_best = predicted[:, best], int(columns[best]), float(error[best] / y.size)
            found.append(Chosen(size, *of_best))
    return found


CV_GLMNET = """
suppressMessages(library(glmnet))
read <- function(name) as.matrix(read.csv(name, header = FALSE))
d <- read("train.csv"); Z <- read("test.csv"); p <- ncol(Z); best <- Inf
for (alpha in seq(0, 1, .1)) {
  fit <- cv.glmnet(d[, 1:p], d[, p + 1], foldid = d[, p + 2], alpha = alpha)
  if (min(fit$cvm) < best) {
    best <- min(fit$cvm)
    columns <- fit$nzero[[which.min(fit$cvm)]]
    predicted <- predict(fit, Z, s = "lambda.min")
  }
}
cat(best, columns, format(predicted, digits = 17), "\\n")
"""


def has_r_glmnet() -> bool:
    """Whether R and its package glmnet are installed."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(glmnet)"], capture_output=True).returncode == 0


def r_glmnet(X: Array, y: Array, Z: Array, seed: int) -> Chosen:
    """The model of least error of R's cv.glmnet over α = 0, .1 to 1, on the same five folds."""
    label = np.zeros(y.size)
    for number, (_, test) in enumerate(KFold(5, shuffle=True, random_state=seed).split(X)):
        label[test] = number + 1
    with tempfile.TemporaryDirectory() as folder:
        for name, table in (("train", np.column_stack([X, y, label])), ("test", Z)):
            np.savetxt(File(folder) / f"{name}.csv", table, "%.17g", ",")
        done = subprocess.run(
            ["Rscript", "-e", CV_GLMNET], cwd=folder, capture_output=True, text=True, check=True
        )
    error, columns, *predicted = map(float, done.stdout.split())
    return Chosen(None, np.array(predicted), int(columns), error)
