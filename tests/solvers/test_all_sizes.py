"""The all-sizes tree against enumeration: optima, bounds, ties, limits, warm starts, wide masks."""

import math
import threading
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.brute_force import Data, fit_rounding
from support.fresh import examples
from support.problems import keeps_digits, plain, problem_of, pure_noise, ugly
from support.trees import Exact, every_stop, exact_of, key, tied

from sparsecv.solvers import Status, best_subsets
from sparsecv.solvers.core.limits import Limits, StopFlag
from sparsecv.solvers.leaps.all_sizes import BestSubsets


def check_bounds(data: Data, found: BestSubsets, exact: Exact) -> None:
    """Supports are well formed, bounds hold, objectives are those of the supports returned."""
    for i, s in enumerate(found.sizes):
        support = key(found.supports[i])
        assert len(support) == s
        assert list(support) == sorted(set(support))
        assert support[0] >= 0
        assert support[-1] < data.X.shape[1]
        least = min(exact[s].values())
        own = float(exact[s][support])
        assert Fraction(float(found.lower_bound[i])) <= least
        assert found.lower_bound[i] <= found.objective[i]
        assert abs(found.objective[i] - own) <= fit_rounding(data, support, own)


def check_best(data: Data, support: Any, values: dict[Any, Fraction]) -> tuple[Fraction, Fraction]:
    """No support of a size has a smaller objective; returns this support's and the least one."""
    own, least = values[key(support)], min(values.values())
    assert float(own - least) <= 1e-10 * float(least) + tied(data, support, values)
    return own, least


def lost_to_dependence(data: Data) -> float:
    """What the bound loses where columns depend on each other and trees work with a γ′ above γ.

    docs/theory.md, "Trees at γ = 0" and "Dependent columns": with columns of length 1,
    γ′/2 = (3e-7 σ^(2/3))², and (γ′/2) yᵀy/σ² is subtracted from the bound.
    """
    lengths = np.linalg.norm(data.X, axis=0)
    inside = data.X[:, lengths > 0.0] / lengths[lengths > 0.0]
    p = inside.shape[1]
    values, axes = np.linalg.svd(inside)[1:]
    rank = int((values > 1e-13 / math.sqrt(p)).sum()) if p else 0
    if rank == p:
        return 0.0
    null = axes[rank:].T
    least = (np.linalg.svd(null[list(J)])[1].min() for J in combinations(range(p), p - rank))
    sigma = values[rank - 1] * min(one for one in least if one > 1e-13)
    working = (3e-7 * sigma ** (2.0 / 3.0)) ** 2
    below = 0.5 * data.gamma < working * lengths.max() ** 2
    return float(working * (data.y @ data.y) / sigma**2) if below else 0.0


def check_optimal(data: Data, found: BestSubsets, exact: Exact) -> None:
    """No support is better, in the objective nor in what it takes off yᵀy."""
    X, y, gamma = data
    if keeps_digits(data):  # else columns may depend on each other so nearly that no proof is left
        too_much = lost_to_dependence(data) > 1e-5 * found.objective
        assert (found.proved | too_much).all()
        assert found.status is (Status.OPTIMAL if found.proved.all() else Status.PRECISION)
    yy = float(y @ y)
    # a gain is a square whose root is known to some ulp of ||y|| ||x|| / √(γ/2), if that is small
    ratio = 2.0 * float(np.square(X).sum(axis=0).max())
    share = 1.0 if ratio >= gamma else math.sqrt(ratio / gamma)
    for i, s in enumerate(found.sizes):
        if not found.proved[i]:
            continue
        own, least = check_best(data, found.supports[i], exact[s])
        gain = float(exact[0][()] - least)
        lost = math.sqrt(gain) - math.sqrt(float(exact[0][()] - own))
        assert lost <= 1e-9 * math.sqrt(gain) + 1e-13 * share * math.sqrt(yy)


@settings(max_examples=examples(500))
@given(data=ugly())
@example(data=Data(np.array([[3.0]]), np.array([2.0]), 1.0))
@example(data=Data(np.array([[-6.0, 6.0], [-7.0, 7.0]]), np.array([-6.0, -7.0]), 3e-12))
@example(data=Data(np.array([[0.0]]), np.array([2.0]), 1e-8))
@example(data=Data(np.array([[1e6, 1e6, 1e-6]]), np.array([-1.0]), 1e-8))
@example(  # a down-date cancels to an exact zero
    data=Data(
        np.array([[1.0, 0.0, 5e-5, 0.0], [0.0, 0.0, 4e5, 4.8e5]]), np.array([-1.0, 1.0]), 1e-8
    )
)
@example(
    data=Data(
        np.array(
            [
                [1193.1463529369166, 0.0, 5.2328831511186739e-05, 0.0, 0.0],
                [0.0, 0.0, 386696.15509557643, 0.0, 478319.62832536058],
            ]
        ),
        np.array([-1.0, 1.0]),
        1e-8,
    )
)
def test_every_size_is_optimal(data: Data) -> None:
    exact = exact_of(data)
    found = best_subsets(problem_of(data))
    np.testing.assert_array_equal(found.sizes, np.arange(1, data.X.shape[1] + 1))
    check_bounds(data, found, exact)
    check_optimal(data, found, exact)
    assert found.open_nodes == []


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(data=ugly(), draw=st.data())
def test_sizes_and_warm_starts_change_no_objective(data: Data, draw: st.DataObject) -> None:
    p = data.X.shape[1]
    columns = st.sets(st.integers(0, p - 1)).map(list)
    starts = draw.draw(st.lists(columns, max_size=4), label="warm starts")
    starts += starts[:1]
    sizes = draw.draw(st.lists(st.integers(1, p), min_size=1), label="sizes")
    exact = exact_of(data)
    found = best_subsets(problem_of(data), sizes=sizes, warm_starts=starts)
    np.testing.assert_array_equal(found.sizes, sorted(set(sizes)))
    check_bounds(data, found, exact)
    check_optimal(data, found, exact)


def test_an_optimal_warm_start_is_kept_at_once() -> None:
    data = plain(12, 25, 10)
    problem = problem_of(data)
    best = best_subsets(problem)
    again = best_subsets(problem, warm_starts=best.supports, limits=Limits(node_limit=0))
    np.testing.assert_array_equal(again.objective, best.objective)
    assert best_subsets(problem, warm_starts=best.supports).n_nodes <= best.n_nodes


# --- ties ---------------------------------------------------------------------------------------


# Losses of these equal columns are 1e-6 of the objective and differ by rounding of the objective.
THREE_EQUAL = np.repeat(
    [
        [0.04168609500320237],
        [-0.5939635479318255],
        [0.5578286549899927],
        [-0.1831330027646046],
        [1.2404357222667848],
        [0.22265830012836169],
        [1.1210843695863189],
    ],
    3,
    axis=1,
)
THEIR_RESPONSE = np.array([-2.0, -2.0, 1.0, 2.0, -1.0, 2.0, -1.0])


@settings(max_examples=examples(150))
@given(data=ugly(max_columns=5, mild=True))
@example(data=Data(THREE_EQUAL, THEIR_RESPONSE, 10.0**-2.5))
def test_exact_ties_go_to_the_lexicographically_first(data: Data) -> None:
    exact = exact_of(data)
    yy, p = exact[0][()], data.X.shape[1]
    full = exact[p][tuple(range(p))]
    found = best_subsets(problem_of(data))
    for i, s in enumerate(found.sizes):
        least = min(exact[s].values())
        loss, gain = least - full, yy - least
        if s < p and min(loss, gain) < Fraction(1, 10**6) * yy:
            continue  # all that tells supports apart is rounding
        tied = [S for S, f in exact[s].items() if f == least]
        assert key(found.supports[i]) == min(tied)


@pytest.mark.parametrize("copies", [2, 5, 9, 12])
@pytest.mark.parametrize("gamma", [1e-2, 1.0, 1e5])
def test_equal_columns_are_taken_from_the_left(copies: int, gamma: float) -> None:
    rng = np.random.default_rng(copies)
    x = rng.standard_normal(20)
    X = np.repeat(x[:, None], copies, axis=1)
    found = best_subsets(problem_of(Data(X, x + rng.standard_normal(20), gamma)))
    assert [key(s) for s in found.supports] == [tuple(range(s)) for s in found.sizes]


@pytest.mark.parametrize("seed", [2931, 4474, 4587])
def test_many_near_ties_do_not_crowd_out_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((3, 1))
    X = x + 1e-9 * rng.standard_normal((3, 7))
    data = Data(X, x[:, 0] + 1e-5 * rng.standard_normal(3), 1e-8)
    exact = exact_of(data)
    found = best_subsets(problem_of(data))
    check_bounds(data, found, exact)
    for i, s in enumerate(found.sizes):
        least = min(exact[s].values())
        assert exact[s][key(found.supports[i])] - least <= Fraction(1, 10**8) * least


def test_zero_columns_fill_up_from_the_left() -> None:
    X = np.zeros((6, 5))
    X[:, 3] = np.arange(6.0)
    found = best_subsets(problem_of(Data(X, np.arange(6.0) + 1.0, 1.0)))
    assert [key(s) for s in found.supports] == [
        (3,),
        (0, 3),
        (0, 1, 3),
        (0, 1, 2, 3),
        (0, 1, 2, 3, 4),
    ]
    assert np.ptp(found.objective) <= 1e-14 * found.objective[0]


@pytest.mark.parametrize("gamma", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("what", ["y", "X"])
def test_nothing_to_explain(what: str, gamma: float) -> None:
    X, y, _ = plain(1, 8, 4)
    X, y = (X, np.zeros(8)) if what == "y" else (np.zeros((8, 4)), y)
    found = best_subsets(problem_of(Data(X, y, gamma)), limits=Limits(node_limit=0))
    assert found.status is Status.OPTIMAL
    assert [key(s) for s in found.supports] == [tuple(range(s)) for s in found.sizes]
    np.testing.assert_allclose(found.objective, y @ y, rtol=1e-14)
    assert np.all(found.lower_bound <= y @ y)
    assert np.all(found.lower_bound >= 0.999 * (y @ y))


# --- gaps ---------------------------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(data=ugly(mild=True), draw=st.data())
def test_a_finished_search_leaves_the_gap_of_rounding(data: Data, draw: st.DataObject) -> None:
    sizes = draw.draw(st.none() | st.sets(st.integers(1, data.X.shape[1]), min_size=1).map(list))
    found = best_subsets(problem_of(data), sizes=sizes)
    yy = float(data.y @ data.y)
    check_bounds(data, found, exact_of(data))
    assert not keeps_digits(data) or found.status is Status.OPTIMAL
    gap = found.objective - found.lower_bound
    if data.gamma == 0.0:
        return  # what dependent columns take off a bound is not limited
    inflation = 1.0 + 2.0 * np.square(data.X).sum() / data.gamma
    allowed = (1e-9 + 1e-14 * inflation) * found.objective
    assert np.all(gap <= allowed + 1e-12 * np.sqrt(found.objective * yy) + 1e-26 * yy)


# --- limits -------------------------------------------------------------------------------------


def test_stopping_never_loosens_bounds_nor_incumbents() -> None:
    stops = every_stop(plain(2, 20, 9, noise=2.0))
    assert len(stops) > 30
    for before, after in pairwise(stops):
        assert np.all(after.objective <= before.objective * (1.0 + 1e-12))
        assert np.all(after.lower_bound >= before.lower_bound * (1.0 - 1e-9))


HARD = problem_of(pure_noise(0, 90, 60, 1e-3))  # hopeless to finish


def check_interrupted(found: BestSubsets, status: Status) -> None:
    assert found.status is status
    assert np.all(found.lower_bound <= found.objective)
    assert [s.size for s in found.supports] == list(range(1, 61))
    assert found.open_nodes
    assert not found.proved.all()


def test_a_raised_flag_interrupts() -> None:
    flag = StopFlag()
    assert not flag.is_set()
    flag.set()
    assert flag.is_set()
    found = best_subsets(HARD, limits=Limits(stop=flag, time_limit=0.0, node_limit=0))
    check_interrupted(found, Status.INTERRUPTED)
    assert found.n_nodes == 1


def test_another_thread_interrupts() -> None:
    flag = StopFlag()
    timer = threading.Timer(0.05, flag.set)
    timer.start()
    check_interrupted(best_subsets(HARD, limits=Limits(stop=flag)), Status.INTERRUPTED)
    timer.join()


@pytest.mark.parametrize("seconds", [0.0, 0.02])
def test_time_limit(seconds: float) -> None:
    check_interrupted(best_subsets(HARD, limits=Limits(time_limit=seconds)), Status.TIME_LIMIT)


@pytest.mark.parametrize("nodes", [0, 1, 2, 999, 20_001, 50_000])
def test_node_limit(nodes: int) -> None:
    found = best_subsets(HARD, limits=Limits(node_limit=nodes))
    check_interrupted(found, Status.NODE_LIMIT)
    assert found.n_nodes == max(nodes, 1)


def test_roomy_limits_do_not_matter() -> None:
    problem = problem_of(plain(1, 20, 8))
    found = best_subsets(
        problem, limits=Limits(time_limit=math.inf, node_limit=10**9, stop=StopFlag())
    )
    assert found.status is Status.OPTIMAL
    np.testing.assert_array_equal(found.objective, best_subsets(problem).objective)


def test_tau_gives_the_default_sizes() -> None:
    problem = problem_of(plain(0, 9, 6)).replace(tau=3)
    found = best_subsets(problem)
    np.testing.assert_array_equal(found.sizes, [1, 2, 3])
    larger = best_subsets(problem, sizes=[5])
    assert larger.supports[0].size == 5
