"""Bad input is told apart from what a bug raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.problems import plain

from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.cli.main import main
from sparsecv.cv import estimate
from sparsecv.errors import GammaTooSmall, InputError
from sparsecv.estimators import sparse_ridge
from sparsecv.solvers import SparseRidgeProblem, solve, support_path
from sparsecv.solvers.ridge_fits import fit_supports


def test_gamma_that_rounds_to_zero_is_bad_input() -> None:
    X, y, _ = plain(0, 12, 3)
    X = np.hstack([X, X])
    problem = SparseRidgeProblem(X, y, gamma=1e-40, tau=2)
    pair = np.array([[[0, 3]]])
    with pytest.raises(GammaTooSmall, match="too small to tell from zero"):
        problem.fit([0, 3])
    with pytest.raises(GammaTooSmall, match="raise it, or rescale X"):
        fit_supports(problem, np.array([1e-40]), pair)
    with pytest.raises(GammaTooSmall):
        support_path(problem, [1.0, 1e-40], [6])
    with pytest.raises(GammaTooSmall):
        solve(problem.replace(tau=6))
    with pytest.raises(GammaTooSmall):
        SparseRidge(6, 1e-40).fit(X, y)
    with pytest.raises(GammaTooSmall):
        SparseRidgeCV(cv=3, gammas=[1e-40], taus=[6]).fit(X, y)
    assert issubclass(GammaTooSmall, InputError)


def bug(*_: Any, **__: Any) -> Any:
    raise ValueError("operands could not be broadcast together")


def test_a_bug_is_not_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y, _ = plain(0, 12, 3)
    monkeypatch.setattr(estimate, "fold_unit", bug)
    monkeypatch.setattr(sparse_ridge, "solve", bug)
    monkeypatch.setattr("sparsecv.solvers.api.solve", bug)
    runs = [
        lambda: SparseRidgeCV(cv=3, gammas=[1.0], rule="minimum").fit(X, y),
        lambda: SparseRidge(2).fit(X, y),
        lambda: main(["fit", "diabetes", "--tau", "2", "--quiet"]),
    ]
    for run in runs:
        with pytest.raises(ValueError, match="broadcast") as caught:
            run()
        assert not isinstance(caught.value, InputError)
