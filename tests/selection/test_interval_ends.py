"""Ends of intervals by a criterion with an estimated σ, against enumeration and quadrature."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from support.inside import Limits, Truncated, infer

from sparsecv import SparseRidge
from sparsecv.selection.interval_ends import ends_of_own_sets
from sparsecv.solvers import Status

LEVEL = 0.95
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
# Pieces are cut at these shares of their length, as a mass may lie beside an end.
HALVES = 2.0 ** -np.arange(1.0, 40.0)
CUTS = np.unique(np.concatenate([[0.0, 1.0], HALVES, 1.0 - HALVES]))


def drawn(draw: int) -> tuple[Any, Any, str]:
    """Five columns, of which three matter not at all, somewhat or very much, and a criterion."""
    random = np.random.default_rng([draw, 66])
    X = random.standard_normal((60, 5))
    beta = np.array([3.0, -3.0, 1.5, 0.0, 0.0]) * [0, 1, 3][draw % 3]
    name = "aic" if draw % 2 == 0 else ["aic", "bic", "ebic"][draw // 2 % 3]
    return X, X @ beta + random.standard_normal(60), name


def penalty(name: str, n: int, p: int, k: int) -> float:
    if name == "aic":
        return 2.0 * k
    return k * math.log(n) + (2.0 * math.log(math.comb(p, k)) if name == "ebic" else 0.0)


def tails(X: Any, y: Any, support: Any, j: int, name: str, mean: float) -> tuple[float, float]:
    """Logarithms of the upper and of the lower tail of coefficient j where this mean is expected.

    Given are the same selection, and the sum of squares about the mean. All subsets are compared at
    every number between the roots of their differences.
    """
    n, p = X.shape
    X, y = X - X.mean(axis=0), y - y.mean()
    eta = np.linalg.pinv(X[:, support])[j]
    length = float(np.linalg.norm(eta))
    d, z, m = eta / length, float(eta @ y) / length, mean / length
    Q = np.linalg.qr(X)[0]
    left = y - Q @ (Q.T @ y)
    squares = float(left @ left) + (z - m) ** 2  # of what moves about the mean
    subsets = [S for k in range(p + 1) for S in itertools.combinations(range(p), k)]
    polynomials = []
    for S in subsets:
        two = np.column_stack([y - left - z * d, d])
        q = np.linalg.qr(X[:, list(S)])[0] if S else np.zeros((n, 1))
        two -= q @ (q.T @ two)
        a, b, c = two[:, 1] @ two[:, 1], two[:, 0] @ two[:, 1], two[:, 0] @ two[:, 0]
        weight = math.exp(penalty(name, n, p, len(S)) / n)
        polynomials.append(weight * np.array([a - 1.0, 2.0 * (b + m), c + squares - m * m]))
    own = subsets.index(tuple(support))
    differ = np.delete(np.array(polynomials) - polynomials[own], own, axis=0)
    reach = math.sqrt(squares)
    cuts = [m - reach, z, m + reach]
    for one in differ:
        cuts += [float(root.real) for root in np.roots(one) if root.imag == 0.0]
    cuts = [cut for cut in sorted(cuts) if abs(cut - m) <= reach]
    masses: tuple[list[float], list[float]] = [], []
    for low, high in itertools.pairwise(cuts):
        middle = 0.5 * (low + high)
        if high > low and (differ @ [middle * middle, middle, 1.0] >= 0.0).all():
            ends = low + (high - low) * CUTS
            for start, end in itertools.pairwise(ends):
                at = 0.5 * (start + end) + 0.5 * (end - start) * NODES
                rest = np.maximum(squares - (at - m) ** 2, 1e-300) / float(left @ left)
                density = (0.5 * (n - 1 - p) - 1.0) * np.log(rest)
                one = float(logsumexp(density, b=WEIGHTS * 0.5 * (end - start)))
                masses[0 if middle > z else 1].append(one)
    above, below = (logsumexp(some) if some else -np.inf for some in masses)
    total = np.logaddexp(above, below)
    return float(above - total), float(below - total)


@pytest.mark.parametrize("draw", [12, 38, 65, 77, 80, 86, 1150, *range(300, 306)])
def test_every_finite_end_has_the_tail_that_it_claims(draw: int) -> None:
    X, y, name = drawn(draw)
    model = SparseRidge(tau=name).fit(X, y)
    ends, status = infer(model._kept_fit()).intervals(LEVEL)
    assert status is Status.OPTIMAL
    for j, pair in enumerate(ends):
        for side, end in enumerate(pair):
            if np.isfinite(end):
                tail = tails(X, y, model.support_, j, name, end)[side]
                assert tail == pytest.approx(math.log(0.5 * (1.0 - LEVEL)), abs=1e-4)


def test_an_interval_holds_0_where_the_test_of_0_does_not_reject_it() -> None:
    for draw in (12, 38, 65, 80, 86):
        X, y, name = drawn(draw)
        found = SparseRidge(tau=name).fit(X, y).inference()
        holds = (found["low"] <= 0.0) & (found["high"] >= 0.0)
        assert holds[found["p_low"] > 1.0 - LEVEL].all()


def test_the_outermost_stretch_of_means_that_are_not_rejected_is_in_the_interval() -> None:
    whole = np.array([[-np.inf, np.inf]])

    def laws(places: Any, means: Any) -> list[Truncated]:
        """Laws of a normal number, but that means from 30 to 200 are as likely as the estimate."""
        assert (places == 0).all()
        return [Truncated(m if 30.0 < m < 200.0 else 0.0, whole, whole) for m in means.tolist()]

    low, high = ends_of_own_sets(laws, np.zeros(1), LEVEL)[0]
    assert low == pytest.approx(-1.959964, abs=1e-5)
    assert high == np.inf  # The tail jumps at 200, so that no mean has the tail.


def test_ends_beside_a_jump_are_infinite() -> None:
    def laws(places: Any, means: Any) -> list[Truncated]:
        """Laws that reject every mean above 3, and no mean up to 3."""
        below, above = np.array([[-1.0, 1e-9]]), np.array([[-1e-9, 1.0]])
        return [Truncated(0.0, *([above, above] if m > 3 else [below, below])) for m in means]

    assert np.isinf(ends_of_own_sets(laws, np.zeros(1), LEVEL)).all()


def test_intervals_are_infinite_where_time_is_up() -> None:
    X, y, name = drawn(1)
    found = infer(SparseRidge(tau=name).fit(X, y)._kept_fit())
    ends, status = found.intervals(LEVEL, Limits(0.0))
    assert status is Status.TIME_LIMIT
    full = found.intervals(LEVEL)[0]
    assert ((ends[:, 0] <= full[:, 0]) & (full[:, 1] <= ends[:, 1])).all()
