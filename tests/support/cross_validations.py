"""Cross-validations of small ugly tables, by the package and by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray

from .brute_force import ridge
from .folds import Bracket, brute_force, in_fold, standardised
from .inside import (
    CVResult,
    Protocol,
    RowFolds,
    RowTable,
    Settings,
    Summary,
    cross_validate,
    make_design,
    make_folds,
)

Array = NDArray[np.float64]
KINDS = ["normal", "collinear", "binary", "levels", "integers"]
PROTOCOLS = [
    Protocol(name, scale, intercept)
    for scale in ("unit-variance", "unit-norm", "none")
    for name, intercept in (("honest", True), ("honest", False), ("paper", True))
]

# The protocols of estimators, by their parameters standardize and fit_intercept.
ESTIMATORS = [
    Protocol("honest", scale, intercept)
    for scale in ("unit-variance", "none")
    for intercept in (True, False)
]


def columns(kind: str, n: int, p: int, rng: np.random.Generator) -> Array:
    """Columns of one kind that real tables have."""
    if kind == "collinear":
        return rng.standard_normal((n, 1)) + 1e-2 * rng.standard_normal((n, p))
    if kind == "binary":
        return (rng.random((n, p)) < 0.4).astype(float)
    if kind == "levels":
        return np.eye(max(p - 1, 1), p)[rng.integers(0, max(p - 1, 1), n)]
    if kind == "integers":
        return rng.integers(-2, 3, (n, p)).astype(float)
    return rng.standard_normal((n, p)) + 10.0 * rng.integers(0, 2, p)


class Case:
    """One data set with its folds, solved by the package and by enumeration."""

    def __init__(
        self, X: Array, y: Array, protocol: Protocol, cv: Any, gammas: Sequence[float]
    ) -> None:
        self.X, self.y, self.protocol = X, y, protocol
        names = [f"x{j}" for j in range(X.shape[1])]
        self.design = make_design(Summary.of(X, y), protocol, names)
        self.folds = make_folds(cv, y.size, seed=0)
        self.refit = protocol.refit_intercept
        self.data = RowFolds(RowTable.of(self.design, X, y), self.folds)
        own = protocol.name == "honest" and not self.folds.all_rows
        scale, self.fold_scale = ("none", protocol.scale) if own else (protocol.scale, "none")
        self.A, self.b, kept = standardised(
            X, y, protocol=protocol.name, scale=scale, intercept=protocol.intercept
        )
        np.testing.assert_array_equal(kept, self.design.kept)
        # The model of all rows has the scale of all rows, also where folds have their own.
        self.whole, _, _ = standardised(
            X, y, protocol=protocol.name, scale=protocol.scale, intercept=protocol.intercept
        )
        self.gammas = np.array(gammas)
        self.taus = np.arange(1, self.design.p + 1)
        self.pairs = [self.folds.split(j) for j in range(self.folds.k)]

    def truth(self, mean_alone: bool = False) -> Bracket:
        """The CV errors of the sizes, and before them that of the size 0 if it is asked for."""
        taus = np.append(np.zeros(int(mean_alone), dtype=int), self.taus)
        return brute_force(
            self.A, self.b, self.pairs, self.gammas, taus, self.refit, self.fold_scale
        )

    def run(self, method: str, **options: Any) -> CVResult:
        return cross_validate(self.data, self.gammas, self.taus, Settings(method, **options))

    def check_supports(self, result: CVResult) -> None:
        """Refitting every reported support on its fold gives the reported error."""
        for one in result.by_gamma:
            for t in range(self.taus.size):
                total = 0.0
                for j, (train, test) in enumerate(self.pairs):
                    support = one.supports[one.choice[t, j]]
                    assert support.size == self.taus[t]
                    A, b, H, target = in_fold(
                        self.A, self.b, train, test, self.refit, self.fold_scale
                    )
                    beta = ridge(A[:, support], b, one.gamma)
                    total += float(np.sum((target - H[:, support] @ beta) ** 2))
                rows = self.folds.sizes.sum()
                scale = float(np.mean(self.b**2))
                np.testing.assert_allclose(
                    one.cv_error[t], total / rows, rtol=1e-5, atol=1e-9 * scale
                )


def draw_case(draw: Callable[[Any], Any], low: float, high: float, honest: bool = False) -> Case:
    """A small random cross-validation: hypothesis chooses its shape, a seed its numbers.

    low, high: Decimal logarithms between which γ lies.
    honest: Whether the protocol is one that estimators have.
    """
    n, p = draw(st.integers(2, 11)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = columns(draw(st.sampled_from(KINDS)), n, p, rng)
    if p > 1 and draw(st.booleans()):
        X[:, draw(st.integers(0, p - 1))] = X[:, draw(st.integers(0, p - 1))]
    if p > 1 and draw(st.integers(0, 3)) == 0:
        X[:, draw(st.integers(0, p - 1))] = 3.3
    y = draw(st.sampled_from([0.0, 1.0])) * X[:, 0] + rng.standard_normal(n)
    if draw(st.integers(0, 4)) == 0:
        y = np.round(y)
    assume((np.ptp(X, axis=0) > 0).any() and np.ptp(y) > 0)
    kind = draw(st.sampled_from(["loo", "k", "size", "pairs", "permuted"]))
    cv: Any = kind
    if kind == "k":
        cv = draw(st.integers(2, n))
    elif kind == "size":
        cv = f"size:{draw(st.integers(1, n // 2))}"
    elif kind == "permuted":
        cv = [(np.delete(np.arange(n), i), [i]) for i in rng.permutation(n)]
    elif kind == "pairs":
        cv = []
        for _ in range(draw(st.integers(1, 3))):
            order = rng.permutation(n)
            ends = sorted(rng.choice(np.arange(1, n + 1), 2, replace=False))
            cv.append((order[: ends[0]], order[ends[0] : ends[1]]))
    gammas = [10.0 ** draw(st.floats(low, high)) for _ in range(2)]
    return Case(X, y, draw(st.sampled_from(ESTIMATORS if honest else PROTOCOLS)), cv, gammas)


def least_of(truth: Bracket) -> Bracket:
    return truth._replace(
        low=truth.low.min(keepdims=True)[0],
        high=truth.high.min(keepdims=True)[0],
        slack=truth.slack.max(keepdims=True)[0],
    )
