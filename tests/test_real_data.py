"""Real data: three routes to the same numbers, and scikit-learn as a witness."""

from __future__ import annotations

import csv
import hashlib
import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from support.fresh import plain_run
from support.inside import (
    CVResult,
    Protocol,
    RowFolds,
    RowTable,
    Settings,
    Summary,
    Surface,
    cross_validate,
    least_is_proved,
    make_design,
    make_folds,
)
from support.tables import real_table

Array = NDArray[np.float64]
HONEST, PAPER = Protocol("honest", "unit-variance"), Protocol("paper", "unit-norm")


@cache
def rows(name: str) -> tuple[Array, Array]:
    return real_table(name).load()


def folded(name: str, protocol: Protocol, folds: str) -> RowFolds:
    X, y = rows(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        design = make_design(Summary.of(X, y), protocol, [f"x{j}" for j in range(X.shape[1])])
    return RowFolds(
        RowTable(*design.apply(X, y), protocol.refit_intercept), make_folds(folds, y.size)
    )


def run(
    data: RowFolds, gammas: list[float], method: str, taus: list[int] | None = None
) -> CVResult:
    result = cross_validate(data, gammas, taus or range(1, data.p + 1), Settings(method))
    assert result.complete
    return result


def assert_equal(found: CVResult, expected: CVResult) -> None:
    np.testing.assert_allclose(
        found.table("cv_error"), expected.table("cv_error"), rtol=1e-9, atol=1e-12
    )


GRID = [
    ("diabetes", "loo", [0.02], [2, 6, 9]),
    ("diabetes", "10", [0.01, 0.1, 1.0], None),
    ("diabetes", "size:10", [0.05], None),
    ("diabetes11", "10", [0.01, 0.5], None),
    ("housing", "loo", [0.1], [6]),
    ("housing", "10", [0.01, 0.1, 1.0], None),
    ("housing", "size:10", [0.2], None),
    ("servo", "loo", [0.1], [5, 12]),
    ("servo", "10", [0.02, 1.0], None),
    ("servo", "size:10", [0.5], None),
    ("autompg", "loo", [0.5], [2]),
    ("autompg", "10", [0.05], [1, 5, 12, 25]),
    ("autompg", "size:10", [0.5], [3]),
]


@pytest.mark.parametrize(
    ("number", "protocol"),
    [
        pytest.param(i, protocol, id=f"{GRID[i][0]}-{GRID[i][1]}-{protocol.name}")
        for i in range(len(GRID))
        for j, protocol in enumerate([HONEST, PAPER])
        if (i + j) % 2 == 0 or not plain_run()  # one of the two for every table and kind of folds
    ],
)
def test_trees_equal_the_grid(number: int, protocol: Protocol) -> None:
    name, folds, gammas, taus = GRID[number]
    data = folded(name, protocol, folds)
    grid = run(data, gammas, "grid", taus)
    problems = data.folds.k * grid.taus.size
    assert all(r.n_mio == problems for r in grid.by_gamma)
    assert_equal(run(data, gammas, "exact", taus), grid)


@pytest.mark.parametrize(("name", "folds"), [("diabetes", "44"), ("housing", "10"), ("servo", "5")])
@pytest.mark.parametrize("gamma", [0.05, 20.0])
def test_refit_by_scikit_learn(name: str, folds: str, gamma: float) -> None:
    """StandardScaler on all rows, then Ridge with its own intercept on each fold's support."""
    X, y = rows(name)
    data = folded(name, HONEST, folds)
    one = run(data, [gamma], "exact").by_gamma[0]
    scaled = StandardScaler().fit_transform(X)
    errors = np.zeros(one.taus.size)
    for j in range(data.folds.k):
        train, test = data.folds.split(j)
        for t in range(one.taus.size):
            S = one.supports[one.choice[t, j]]
            ridge = Ridge(alpha=gamma / 2, solver="cholesky").fit(scaled[train][:, S], y[train])
            errors[t] += np.sum((y[test] - ridge.predict(scaled[test][:, S])) ** 2)
    np.testing.assert_allclose(one.cv_error, errors / y.size, rtol=1e-8)


@pytest.mark.slow
def test_time_that_folds_leave_goes_to_the_final_model() -> None:
    """A limit ends a run only once it is spent: all of it, the model of all rows included."""
    seconds = 30.0
    data = folded("housing2", HONEST, "loo")
    with Surface(data, [1, 2, 3, 4, 5], Settings(time_limit=seconds)) as surface:
        surface.visit([100.0])
        surface.prove()
    result, spent = surface.result(), surface.plan.limits.elapsed()
    best = result.best()
    proved = result.by_gamma[0].model_proved[best.tau_index]
    assert (least_is_proved(result) and proved) or spent >= 0.95 * seconds
    assert spent <= seconds + 5.0


REGISTRY = Path(__file__).resolve().parents[1] / "data" / "registry.csv"


def registry() -> list[dict[str, str]]:
    """Where each file comes from; empty where there is no checkout."""
    if not REGISTRY.is_file():
        return []
    lines = REGISTRY.read_text(encoding="utf-8").splitlines()
    return [row for row in csv.DictReader(lines) if row["file"]]


@pytest.mark.parametrize("row", registry(), ids=lambda row: row["name"])
def test_files_are_those_of_the_registry(row: dict[str, str]) -> None:
    source = real_table(row["name"])
    path = Path(os.environ["SPARSECV_DATA"]) / row["file"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == row["sha256"]
    X, y = source.load()
    assert X.shape == (source.n, source.p) == (int(row["n"]), int(row["p"]))
    assert source.target_name == "y"
    if row["task"] == "classification":
        assert set(np.unique(y)) == {-1.0, 1.0}
