"""Bad input is told apart from what a bug raises."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from support.problems import grown, plain

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.cli.main import main
from sparsecv.cv import estimate
from sparsecv.errors import InputError
from sparsecv.solvers import (
    SparseRidgeProblem,
    best_subsets,
    best_subsets_rows_deleted,
    solve,
    support_path,
)
from sparsecv.solvers.ridge_fits import fit_supports


def test_gamma_that_rounds_to_zero_counts_as_zero() -> None:
    X, y, _ = plain(0, 12, 3)
    X = np.hstack([X, X])
    zero, tiny = (SparseRidgeProblem(X, y, gamma=gamma, tau=2) for gamma in (0.0, 1e-40))
    assert tiny.objective([0, 3]) == pytest.approx(zero.objective([0]))
    pair = np.array([[[0, 3]]])
    coef, objective = fit_supports(tiny, np.array([1e-40]), pair)
    np.testing.assert_allclose(coef[0, 0], zero.fit([0, 3]).coef)
    assert objective[0, 0] == pytest.approx(zero.objective([0]))
    path = support_path(tiny, [1.0, 1e-40, 0.0], [3, 6])
    assert path.proved.all()
    np.testing.assert_allclose(path.objective[1], zero.objective(range(6)))
    np.testing.assert_allclose(path.objective[2], zero.objective(range(6)))
    assert solve(tiny.replace(tau=6)).objective == pytest.approx(zero.objective(range(6)))


SIZES = [[0], [1, 5], [], [-1], [1.5], [np.nan], [True]]
STARTS = [[4], [0, 4], [-1, 0], [0.5], [True, False, True, False]]


@pytest.mark.parametrize("name", ["all sizes", "rows deleted", "path", "heuristic", "one size"])
def test_sizes_and_starts_that_are_none_are_refused(name: str) -> None:
    X, y, _ = plain(0, 6, 4)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    run: Any = {
        "all sizes": partial(best_subsets, problem),
        "rows deleted": partial(best_subsets_rows_deleted, problem, X, y),
        "path": lambda sizes=(1,): support_path(problem, [1.0], sizes),
        "heuristic": lambda sizes=(1,): grown(problem, sizes),
        "one size": partial(solve, problem),
    }[name]
    counts = {"one size": [], "heuristic": SIZES[:4]}  # a grower gets whole numbers
    for sizes in counts.get(name, SIZES):
        with pytest.raises(ValueError, match="sizes"):
            run(sizes=sizes)
    for start in STARTS if name not in ("path", "heuristic") else []:
        given = {"warm_start": start} if name == "one size" else {"warm_starts": [start]}
        with pytest.raises(ValueError, match="warm start"):
            run(**given)


def test_limits_and_gammas_that_are_none_are_refused() -> None:
    X, y, _ = plain(0, 6, 4)
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=1)
    for name, value in (("time_limit", -1.0), ("time_limit", np.nan), ("node_limit", -1)):
        with pytest.raises(ValueError, match=name):
            solve(problem, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="gamma"):
        support_path(problem, [-1.0], [1])


def bug(*_: Any, **__: Any) -> Any:
    raise ValueError("operands could not be broadcast together")


def test_a_bug_is_not_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y, _ = plain(0, 12, 3)
    monkeypatch.setattr(estimate, "fold_unit", bug)
    monkeypatch.setattr("sparsecv.selection.run.best_support", bug)
    runs = [
        lambda: SparseRidgeCV(cv=3, gammas=[1.0], rule="minimum").fit(X, y),
        lambda: SparseRidge(2).fit(X, y),
        lambda: main(["fit", "diabetes", "--tau", "2", "--quiet"]),
    ]
    for run in runs:
        with pytest.raises(ValueError, match="broadcast") as caught:
            run()
        assert not isinstance(caught.value, InputError)


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e160])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_values_whose_squares_are_no_numbers(factor: float, gamma: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    one = X.copy()
    one[:, 3] *= factor
    for table, response, name in (
        (X * factor, y, "column 0"),
        (one, y, "column 3"),
        (X, factor * y, "y"),
    ):
        with pytest.raises(
            ValueError, match=f"{name} holds values too small or too large to square"
        ):
            SparseRidgeProblem(table, response, gamma=gamma, tau=2)


@pytest.mark.parametrize("factor", [1e-100, 1e-155, 1e100])
def test_values_whose_products_cannot_be_squared(factor: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    message = "too small or too large to be multiplied"
    if factor > 1e-150:
        with pytest.raises(InputError, match=message):
            SparseRidgeProblem(factor * X, factor * y, gamma=factor**2, tau=2)
    G, b, yy = X.T @ X, X.T @ y, float(y @ y)
    with pytest.raises(InputError, match=message):
        SparseRidgeProblem.from_gram(factor**2 * G, factor**2 * b, factor**2 * yy, gamma=1.0, tau=2)
    with pytest.raises(InputError, match="weights"):
        SparseRidge(tau=2, gamma=1.0).fit(X, y, sample_weight=np.full(30, factor**2))


@pytest.mark.parametrize("factor", [1e-139, 1e140])
def test_values_that_can_be_squared_are_solved(factor: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    plain = solve(SparseRidgeProblem(X, y, gamma=0.0, tau=2))
    found = solve(SparseRidgeProblem(factor * X, y, gamma=0.0, tau=2))
    assert found.support.tolist() == plain.support.tolist()
    assert found.objective == pytest.approx(plain.objective, rel=1e-9)
