"""Every kernel on problems so small that it can also run as plain Python.

With ``NUMBA_DISABLE_JIT=1`` the same tests show which lines of the kernels they reach (.ci/run),
and that an index out of range, which compiled code does not notice, is an error there.
"""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from numba import config
from numpy.typing import NDArray
from support.answers import lower_bounds, objectives
from support.inside import (
    Comparison,
    LeftOut,
    driver,
    enumerated,
    envelope,
    near_best_subsets,
    new_gathering,
    root,
    search_alone,
    selection_events,
    single,
    solve_jointly,
)
from support.problems import grown, regression

from sparsecv import Constraints
from sparsecv.solvers import (
    Answer,
    SparseRidgeProblem,
    Status,
    best_subsets,
    branch_and_bound,
    heuristic_support,
    perspective_relaxation,
    support_path,
    supports_along_gamma,
)
from sparsecv.solvers.leaps.lines import may_win
from sparsecv.solvers.leaps.selection_event import negative
from sparsecv.solvers.relaxation import perspective, relaxer
from sparsecv.solvers.relaxation.relaxer import relaxation_work

# Kernels calculate with infinities, which warns in plain Python alone.
pytestmark = pytest.mark.filterwarnings("default::RuntimeWarning")
Array = NDArray[np.float64]
KINDS = ("plain", "collinear", "wide", "ties", "one column")


plain_python = pytest.mark.skipif(
    not config.DISABLE_JIT, reason="compiled kernels of this kind are called by kernels only"
)


def rows(kind: str, n: int = 12, p: int = 6) -> tuple[Array, Array]:
    """A small table of a kind that is hard on rounding."""
    random = np.random.default_rng(KINDS.index(kind))
    if kind == "wide":
        n = 4
    X = random.standard_normal((n, p))
    y = X[:, 0] - X[:, 2] + 0.5 * random.standard_normal(n)
    if kind == "collinear":
        X[:, 3] = X[:, 0] + 1e-7 * random.standard_normal(n)
        X[:, 4] = X[:, 1]
    elif kind == "ties":
        X = np.kron(np.eye(p), np.ones((2, 1)))
        y = X.sum(axis=1)
    elif kind == "one column":
        y = 3.0 * X[:, 1] + 1e-9 * random.standard_normal(n)
    return X, y


def problem(kind: str, gamma: float, tau: int = 3) -> SparseRidgeProblem:
    return SparseRidgeProblem(*rows(kind), gamma=gamma, tau=tau)


def least(given: SparseRidgeProblem, size: int) -> float:
    every = combinations(range(given.p), size)
    return min(given.objective(np.array(s, dtype=np.intp)) for s in every)


@pytest.mark.parametrize("gamma", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["plain", "collinear", "ties"])
def test_fits_within_bounds(kind: str, gamma: float) -> None:
    X, y = rows(kind)
    bounds = {0: (-0.1, 0.3), 1: (0.0, 2.0), 2: (-1e7, 0.0), 3: (0.0, np.inf)}
    given = SparseRidgeProblem(X, y, gamma=gamma, tau=4, constraints=Constraints(bounds=bounds))
    coef, low, high = given.fit(range(6)).coef, given.constraints.lower, given.constraints.upper
    slope = X.T @ (y - X @ coef) - 0.5 * gamma * coef
    assert ((low <= coef) & (coef <= high)).all()
    assert (slope[coef < high] <= 1e-9).all()
    assert (slope[coef > low] >= -1e-9).all()
    for one in best_subsets(given):
        assert one.objective == pytest.approx(least(given, one.size), rel=1e-9)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_trees(kind: str, gamma: float) -> None:
    given = problem(kind, gamma)
    expected = [least(given, size) for size in range(1, given.p + 1)]
    sizes = np.arange(1, given.p + 1)
    slack = 1e-9 * given.yy
    found = best_subsets(given, sizes=sizes)
    np.testing.assert_allclose(objectives(found), expected, rtol=1e-8, atol=slack)
    assert (lower_bounds(found) <= np.array(expected) + 1e-14 * given.yy).all()
    path = support_path(given, [gamma, 2.0 * gamma], sizes)
    np.testing.assert_allclose(path.objective[0], expected, rtol=1e-8, atol=slack)
    errors = path.squared_errors(*rows(kind))
    predicted = path.predict(rows(kind)[0])
    np.testing.assert_allclose(errors, ((rows(kind)[1] - predicted) ** 2).sum(-1), atol=1e-9)


@pytest.mark.parametrize("kind", ["plain", "wide", "one column"])
def test_enumeration(kind: str) -> None:
    given = problem(kind, 1.0)
    for one in enumerated(given, np.arange(1, 6), []):
        assert one.objective == pytest.approx(least(given, one.size), rel=1e-9)


@pytest.mark.parametrize("kind", ["plain", "collinear"])
def test_heuristics(kind: str) -> None:
    given = problem(kind, 0.5)
    best = least(given, 3)
    start = np.array([1, 4, 5])
    assert given.objective(heuristic_support(given, warm_starts=[start])) >= best * (1 - 1e-12)
    by_size = grown(given, [1, 2, 3], starts=[start])
    assert sorted(by_size) == [1, 2, 3]
    assert given.objective(by_size[3]) >= best * (1 - 1e-12)
    assert given.objective(by_size[1]) == pytest.approx(least(given, 1), rel=1e-9)
    bounds = {0: (-0.1, 0.3), 2: (-1e7, 0.0), 3: (0.0, np.inf)}
    for asked in (Constraints(groups=[*"aabbbc"]), Constraints(groups=[*"abbcde"], bounds=bounds)):
        given = SparseRidgeProblem(*rows(kind), gamma=0.5, tau=2, constraints=asked)
        exact, by_size = best_subsets(given), grown(given, [1, 2])
        for size in (1, 2):
            value = exact[size - 1].objective
            assert given.objective(by_size[size]) == pytest.approx(value, rel=1e-7)


def check_branching(given: SparseRidgeProblem, best: float, **options: Any) -> Answer:
    solved = branch_and_bound(given, **options)
    assert solved.objective == pytest.approx(best, rel=1e-9 if options else 1e-8)
    assert solved.lower_bound <= best * (1.0 + 1e-12)
    return solved


@pytest.fixture
def _small_counts_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are branched on that would be enumerated. Compiled code keeps its constants."""
    if config.DISABLE_JIT:
        monkeypatch.setattr(driver, "small_enough", lambda st, node, n, k, solved: k <= 1)


def without_newton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of more than one active column are relaxed by coordinate descent."""
    monkeypatch.setattr(driver, "MAX_FACTORED_COLUMNS", 1)


def without_rows(kind: str, size: int, gamma: float) -> tuple[LeftOut, list[SparseRidgeProblem]]:
    """A problem's Gram matrices with ``size`` rows left out at a time, and the problems without."""
    X, y = rows(kind)
    start = np.arange(0, y.size + 1, size)
    left_out = LeftOut.of(problem(kind, gamma), X, y, start, y.size)
    parts = [np.arange(a, b) for a, b in pairwise(start)]
    kept = [(np.delete(X, part, 0), np.delete(y, part)) for part in parts]
    return left_out, [SparseRidgeProblem(*each, gamma=gamma, tau=3) for each in kept]


def jointly(
    left_out: LeftOut, whole: SparseRidgeProblem, alone: list[SparseRidgeProblem], **options: int
) -> list[Answer]:
    """The proofs of the search of all rows, which begins at the first three columns."""

    def values(which: Any, support: Any) -> Any:
        return np.array([alone[j].objective(support) for j in which])

    starts = np.tile([0, 1, 2], (len(alone) + 1, 1))
    upper = values(range(len(alone)), starts[0])
    return solve_jointly(left_out, whole, starts, upper, values, **options)


@pytest.mark.parametrize("max_leaves", [0, 2000])
@pytest.mark.parametrize(("kind", "size"), [("plain", 1), ("plain", 3), ("ties", 2)])
def test_one_search_for_many(kind: str, size: int, max_leaves: int) -> None:
    left_out, alone = without_rows(kind, size, 1.0)
    whole = problem(kind, 1.0)
    found = jointly(left_out, whole, alone, max_leaves=max_leaves)
    for j, fold in enumerate(alone):
        support = found[j].support
        if not found[j].proved:
            relaxed = search_alone(left_out, whole, j, found[j])
            support = search_alone(left_out, whole, j, relaxed, branch=True).support
        assert fold.objective(support) == pytest.approx(least(fold, 3), rel=1e-7)


def test_a_row_that_the_others_say_nothing_of() -> None:
    X, y = rows("plain")
    X[0] = [1e9, *np.zeros(5)]  # without it a down-date loses its digits
    whole = SparseRidgeProblem(X, y, gamma=1.0, tau=3)
    left_out = LeftOut.of(whole, X, y, np.arange(y.size + 1), y.size)
    alone = [
        SparseRidgeProblem(np.delete(X, j, 0), np.delete(y, j), gamma=1.0, tau=3)
        for j in range(y.size)
    ]
    assert not jointly(left_out, whole, alone)[0].proved


@pytest.mark.parametrize("form", ["gram", "residual"])
@pytest.mark.parametrize("kind", ["plain", "collinear", "wide"])
def test_coordinate_descent(kind: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaxer, "relaxation_work", lambda *of: relaxation_work(*of[:3], 1))
    if form == "residual":
        for module in (perspective, root):
            monkeypatch.setattr(module, "wants_gram", lambda problem: False)
    given = problem(kind, 0.5)
    best = least(given, 3)
    relaxed = perspective_relaxation(given)
    assert relaxed.bound <= best * (1.0 + 1e-12)
    assert relaxed.value >= relaxed.bound
    assert perspective_relaxation(given, epsilon=0.2, gap=1e-3).bound <= best * (1.0 + 1e-12)
    without_newton(monkeypatch)
    check_branching(given, best)


@pytest.mark.parametrize("newton", [True, False])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("_small_counts_as_large")
def test_branching(seed: int, newton: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = regression(14, 9, [1.0] * 4, seed=seed, noise=3.0, shared=1.0)
    given = SparseRidgeProblem(X, y, gamma=1.0, tau=4)
    if not newton:
        without_newton(monkeypatch)
    if seed > 0:  # strong branching from the first node on
        monkeypatch.setattr(single, "ROUGH_NODES", 0)
    solved = check_branching(given, least(given, 4), tol=0.0)
    assert solved.n_nodes > 1 or not config.DISABLE_JIT  # compiled: enumerated


@pytest.mark.parametrize("bounds", [{}, {0: (-0.1, 0.3), 6: (0.0, np.inf)}])
@pytest.mark.usefixtures("_small_counts_as_large")
def test_branching_on_groups(
    bounds: dict[int, tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(7)
    X = random.standard_normal((20, 9)) + random.standard_normal((20, 1))
    y = X[:, :4].sum(axis=1) + 3.0 * random.standard_normal(20)
    asked = Constraints(groups=[*"aabb", *[None] * 5], bounds=bounds)
    given = SparseRidgeProblem(X, y, gamma=1.0, tau=4, constraints=asked)
    monkeypatch.setattr(single, "ROUGH_NODES", 0)
    best = best_subsets(given)[-1].objective
    assert check_branching(given, best, tol=0.0).status == "optimal"


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("plain", 0.5, 2.0), ("plain", 0.0, 1.0), ("ties", 0.1, 1.0), ("collinear", 0.01, 50.0)],
)
def test_supports_along_gamma_equal_enumeration(kind: str, low: float, high: float) -> None:
    given = problem(kind, 1.0)
    along, _ = supports_along_gamma(given, low, high, sizes=[1, 2])
    for gamma in (low, 0.5 * (low + high), high):
        here = given.replace(gamma=gamma)
        for size in (1, 2):
            found = [one.support for one in along[size] if one.low <= gamma <= one.high]
            assert min(map(here.objective, found)) == pytest.approx(least(here, size), rel=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_supports_are_handed_out_and_win_on_lines(grouped: bool) -> None:
    """A direction in which two others beat the support, on either side of the response."""
    X, y = rows("plain")
    groups = Constraints(groups=["a", "a", "b", "b", None, None] if grouped else None)
    given = SparseRidgeProblem(X, y, gamma=1.0, tau=1, constraints=groups)
    compared = Comparison(np.array([np.inf, np.inf, 1.0]))
    best = near_best_subsets(given, compared, 0.5)
    assert best.answers[0].proved
    assert (np.diff(best.value) >= 0.0).all()
    support = best.answers[0].support
    directions = np.linalg.qr(given.triangle[:, support])[0].T
    events, status, _ = selection_events(given, support, compared, directions)
    assert status is Status.OPTIMAL
    for event, direction in zip(events, directions, strict=True):
        assert ((event.outer[:, 0] < 0.0) & (event.outer[:, 1] > 0.0)).any()
        for v in np.linspace(-20.0, 20.0, 9):
            table = np.column_stack([given.triangle[:, :6], given.triangle[:, 6] + v * direction])
            moved = SparseRidgeProblem(
                table[:, :6], table[:, 6], gamma=1.0, tau=1, constraints=groups
            )
            same = (
                near_best_subsets(moved, compared).answers[0].support.tolist() == support.tolist()
            )
            assert same == any(low < v < high for low, high in event.outer)


@plain_python
def test_a_support_may_win_where_its_polynomial_is_low_on_what_is_left() -> None:
    kept = new_gathering(1, 1, 1)
    kept.region[0, :2], kept.n_region[0] = [[-3.0, -2.0], [5.0, 9.0]], 2
    kept.wins[1, 0] = [0.0, 0.0, 1.0]
    assert not may_win(kept, 1, 0, 1.0, 2.0, 2.0)  # Below 1 at no v.
    assert not may_win(kept, 1, 0, 1.0, 0.0, -2.9)  # Below 1 between −1.97 and 1.97.
    assert may_win(kept, 1, 0, 1.0, 0.0, -3.1)
    assert may_win(kept, 1, 0, -1.0, 0.0, 30.0)  # Below 1 beyond 5.39.


def test_the_set_of_a_line_or_a_constant() -> None:
    nothing = [0.0, 0.0, 0.0, 0.0]
    for polynomial, ends in (
        ((0.0, 2.0, -4.0), [-np.inf, 2.0, 0.0, 0.0]),
        ((0.0, -2.0, -4.0), [-2.0, np.inf, 0.0, 0.0]),
        ((0.0, 0.0, -1.0), [-np.inf, np.inf, 0.0, 0.0]),
        ((0.0, 0.0, 1.0), nothing),
        ((1.0, 0.0, 1.0), nothing),
        ((-1.0, 0.0, -1.0), [-np.inf, np.inf, 0.0, 0.0]),
        ((1.0, -3.0, 2.0), [1.0, 2.0, 0.0, 0.0]),
        ((-1.0, 3.0, -2.0), [-np.inf, 1.0, 2.0, np.inf]),
    ):
        assert negative(np.array([polynomial])).ravel().tolist() == ends


@plain_python
def test_a_cell_without_room_for_its_pieces_is_left_undivided() -> None:
    """Two supports whose objectives cross need two pieces, and one interval that waits."""
    energy, squares, left = np.array([[4.0], [1.0]]), np.array([[1.0], [9.0]]), np.array([1.0, 3.5])
    fits = envelope.Fits(energy, squares, left, np.ones((2, 2)), np.full(2, envelope.BACKWARD))
    bounds = np.empty(2)
    envelope.objective_bounds(fits, np.full((2, 2), 3.0), 1.0, bounds)
    assert bounds == pytest.approx([3.0, 3.6], rel=1e-9)
    assert (bounds < [3.0, 3.6]).all()
    listed, lengths = np.array([0, 1]), np.array([3.0, 9.0])
    cell, others = np.array([0.1, 50.0]), np.array([np.inf, np.inf])

    def pieces(waiting: int, room: int, others: Array = others) -> int:
        active = np.empty((waiting, 2), dtype=np.bool_)
        work = envelope.Division(np.empty((waiting, 2)), active, np.empty((5, 4)))
        found = envelope.FoundPieces(np.empty((room, 2)), np.empty(room, dtype=np.int64))
        return int(envelope.divide(cell, others, lengths, listed, fits, work, found, 0))

    assert pieces(envelope.MAX_WAITING, 40) >= 2
    assert pieces(envelope.MAX_WAITING, 1) == -2
    assert pieces(1, 40) == -2
    # Other supports may be best at one end of the cell, or at both ends.
    assert pieces(envelope.MAX_WAITING, 40, np.array([0.0, 1e9])) == -1
    assert pieces(envelope.MAX_WAITING, 40, np.zeros(2)) == -3


@pytest.mark.parametrize("apart", [0.0, 2.0**-13, 1.0])
def test_the_rank_of_columns_at_gamma_zero(apart: float) -> None:
    """Rounding leaves the last column more than 1e-13 of its length beside columns 1e-4 apart."""
    rng = np.random.default_rng(3)
    X = np.round(2.0**10 * rng.standard_normal((12, 4))) / 2.0**10
    X[:, 1] = X[:, 0] + apart * X[:, 1]
    X[:, 3] = 2.0**12 * (X[:, 1] - X[:, 0]) + X[:, 2]
    y = X[:, 2] + rng.standard_normal(12)
    problem = SparseRidgeProblem(X, y, gamma=0.0, tau=4)
    lengths = np.linalg.norm(X, axis=0)
    expected = X @ (np.linalg.lstsq(X / lengths, y, rcond=1e-13)[0] / lengths)
    path = support_path(problem, [0.0], [1, 4])
    for coef in (problem.fit(range(4)).coef, path.coef[0, 1]):
        np.testing.assert_allclose(X @ coef, expected, rtol=1e-8, atol=1e-10)
        assert np.linalg.norm(coef) < 10.0 * np.linalg.norm(np.linalg.pinv(X, 1e-13) @ y)
