"""Best subsets under constraints against enumeration: every size, γ and function that searches."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls
from support.brute_force import Data, exact_given, exact_moments, exact_objective
from support.constrained import TOGETHER, random_rules
from support.families import constrained_case
from support.inside import (
    GramForm,
    Limits,
    Relaxer,
    UnitConstraints,
    at_root,
    linalg,
)
from support.stand_ins import StandIn

from sparsecv import Constraints
from sparsecv.errors import InputError
from sparsecv.solvers import (
    SparseRidgeProblem,
    best_subsets,
    branch_and_bound,
    solve,
    solve_sizes,
    support_path,
)

Array = np.ndarray


@pytest.mark.parametrize("kinds", TOGETHER, ids="+".join)
def test_the_dual_bound_holds_at_any_coefficients(kinds: tuple[str, ...]) -> None:
    for seed in range(20):
        rng = np.random.default_rng([seed, len(kinds)])
        X = rng.normal(size=(int(rng.integers(2, 14)), 7))
        y = X @ rng.normal(size=7) + rng.normal(size=X.shape[0])
        data = Data(X, y, 10.0 ** rng.uniform(-6, 2))
        case = constrained_case(data, random_rules(rng, 7, kinds))
        for size in case.sizes:
            problem, most = case.problem(size), float(case.least(size)) + 1e-13 * case.yy
            root = at_root.Root.of(problem)
            form = GramForm.of_units(problem, root.units)
            for each in (form, replace(form, D=np.zeros(form.b.size))):
                now = Relaxer.of(problem, each, root.units, state=root.state)
                for scale in (0.0, 0.1, 10.0):
                    now.start(scale * rng.normal(size=form.b.size), 0.0)
                    assert now.evaluated()[0] <= most
                assert now.relaxed(np.inf, rounds=200, gap=1e-5) <= most


def test_the_bound_counts_short_components_of_groups_that_are_left_out() -> None:
    """Each group's short component explains a little of y, as γ/2 is as short."""
    X, y = np.diag([1.0, 9e-15, 1.0, 9e-15]), np.array([0.0, 1.0, 0.0, 1.3])
    pairs = Constraints(groups=[*"aabb"])
    problem = SparseRidgeProblem(X, y, gamma=4e-24, tau=1, constraints=pairs)
    found = branch_and_bound(problem, warm_starts=[np.array([0, 1])])
    joint = exact_moments(X, y)
    assert found.lower_bound <= min(exact_objective(joint, 4e-24, s) for s in ([0, 1], [2, 3]))


def test_rounding_of_a_fit_counts_the_coefficients_of_short_columns_where_gamma_is_lost() -> None:
    """Columns 0 and 1 are 1e-10 of their length apart, and column 2 is 10⁴ times as long."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))[0]
    X = turn[:, [0, 0, 1]] * [1e-2, 1e-2, 1e2]
    X[:, 1] += 1e-12 * turn[:, 3]
    problem = SparseRidgeProblem(
        X, turn[:, 3], gamma=1e-34, tau=2, constraints=Constraints(include=[0])
    )
    assert solve(problem).lower_bound <= exact_objective(
        exact_moments(X, turn[:, 3]), 1e-34, [0, 1]
    )


def test_a_tree_counts_what_rounding_hides_of_a_component_that_it_leaves_out() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))[0]
    X, y = turn[:, [0, 0, 1]] * [2.0, 2.0, 0.5], turn[:, 3] + turn[:, 4]
    X[:, 1] += 2e-15 * turn[:, 3]
    asked = Constraints(groups=[*"aab"])
    found = solve(SparseRidgeProblem(X, y, gamma=1e-23, tau=2, constraints=asked))
    assert found.lower_bound <= exact_objective(exact_moments(X, y), 1e-23, range(3))


def test_rounding_of_a_fit_counts_the_coefficients_that_the_given_gamma_allows() -> None:
    """Columns 0 and 1 of a long table differ by 3e-14, and have coefficients of some 1e9."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))[0]
    X, y = turn[:, [0, 0, 1, 2]], turn[:, 3] + 0.5 * turn[:, 0] + turn[:, 4]
    X[:, 1] += 3e-14 * turn[:, 3]
    asked = Constraints(groups=[*"aabb"])
    found = solve(SparseRidgeProblem(X, y, gamma=2.2e-24, tau=2, constraints=asked))
    assert found.lower_bound <= exact_objective(exact_moments(X, y), 2.2e-24, range(4))


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("supports", [0.0, 1e9])
def test_factors_beside_numbers_equal_leaps_and_bounds(
    supports: float, signs: bool, stand_in: StandIn
) -> None:
    """Nodes of columns, nodes of groups, and diagonals that are fitted at once or never."""
    stand_in(FITTING_SUPPORTS=supports)
    stand_in(ROUGH_NODES=0 if signs else 20)
    rng, groups = np.random.default_rng(31), [None] * 18 + [*"aaabbcccc"]
    X = rng.normal(size=(90, 27)) + 0.8 * rng.normal(size=(90, 1))
    y = X @ (rng.random(27) < 0.4) + 6.0 * rng.normal(size=90)
    rules = {"groups": groups} | ({"positive": [0, 3, 19]} if signs else {})
    for gamma in (0.05, 20.0):
        asked = Constraints(**rules)
        whole = SparseRidgeProblem(X, y, gamma=gamma, tau=9, constraints=asked)
        every = best_subsets(whole, sizes=[3, 6, 9])
        for one in every:
            size, best = one.size, one.objective
            found = branch_and_bound(whole.replace(tau=size))
            assert found.status == "optimal"
            assert found.objective == pytest.approx(best, rel=2e-6)
            assert found.lower_bound <= best * (1.0 + 1e-12)


def test_the_worth_of_a_column_is_the_largest_gain_within_its_bounds() -> None:
    rng = np.random.default_rng(21)
    for _ in range(200):
        slope, w = rng.normal(), rng.exponential() + 1e-3
        low, high = -rng.exponential(), rng.exponential()
        if rng.random() < 0.3:
            low, high = (-np.inf, np.inf) if rng.random() < 0.5 else (0.0, np.inf)
        worth = linalg.column_worth.py_func(slope, w, low, high)
        beta = np.clip(np.linspace(-3.0 / w, 3.0 / w, 20_001) * (1.0 + abs(slope)), low, high)
        tried = (2.0 * slope * beta - w * beta**2).max()
        assert tried <= worth * (1.0 + 1e-12) + 1e-15
        assert worth <= tried + 1e-6 * (1.0 + worth)


def asked_units(constraints: UnitConstraints, columns: list[int]) -> Array:
    """The smallest allowed support with all units of some columns; none where one is excluded."""
    units = constraints.units(columns)
    if constraints.exclude[units].any():
        return np.empty(0, dtype=np.intp)
    return constraints.columns_of(np.union1d(units, np.flatnonzero(constraints.include)))


@pytest.mark.parametrize("limit", [0.0, None])
def test_many_units_have_a_proof_or_an_interval(limit: float | None) -> None:
    """Beyond the reach of leaps and bounds, each kind of constraint is proved by the new tree."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(200, 80)) + 0.7 * rng.normal(size=(200, 1))
    y = X[:, :6] @ np.array([2.0, 1.5, -1.0, 1.0, 0.8, -0.6]) + rng.normal(size=200)
    asked = [
        {"positive": True},
        {"bounds": dict.fromkeys(range(80), (-0.5, 1.0))},
        {"groups": [j // 2 if j < 40 else None for j in range(80)]},
        {"include": [50], "positive": [50]},
        {"exclude": [0], "positive": [1]},
        {"positive": [0, 2, 9]},
    ]
    for rules in asked:
        problem = SparseRidgeProblem(X, y, gamma=2.0, tau=5, constraints=Constraints(**rules))
        found = solve(problem, time_limit=limit)
        assert 0.0 < found.lower_bound <= found.objective
        if limit is None:
            assert found.status == "optimal"
            for _ in range(100):  # one unit of the support, or two, are exchanged
                new = rng.permutation(80)[:2].tolist()
                units = asked_units(
                    problem.constraints, [*rng.permutation(found.support)[:4], *new]
                )
                if units.size and problem.constraints.units(units).size <= 5:
                    assert problem.objective(units) >= found.objective * (1.0 - 1e-12)
        else:
            assert found.gap < 1.0


def test_threads_share_a_tree_over_units() -> None:
    rng = np.random.default_rng(13)
    X = rng.normal(size=(60, 90)) + rng.normal(size=(60, 1))
    y = X[:, :8] @ rng.normal(size=8) + 2.0 * rng.normal(size=60)
    labels = [j // 3 for j in range(90)]
    problem = SparseRidgeProblem(X, y, gamma=20.0, tau=4, constraints=Constraints(groups=labels))
    alone, shared = (branch_and_bound(problem, tol=0.0, n_jobs=n) for n in (1, 2))
    assert alone.status == shared.status == "optimal"
    assert shared.objective == pytest.approx(alone.objective, rel=1e-10)
    tried = [
        problem.objective([3 * u + c for u in four for c in range(3)])
        for four in combinations(range(12), 4)
    ]
    assert alone.objective <= min(tried) * (1.0 + 1e-12)


def test_warm_starts_and_sizes_count_units() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(30, 9)), rng.normal(size=30)
    labels = ["a", "a", "a", "b", "b", None, None, None, None]
    whole = SparseRidgeProblem(
        X, y, gamma=1.0, tau=6, constraints=Constraints(groups=labels, include=[0])
    )
    found = solve_sizes(whole, warm_starts=[np.array([0, 1, 2, 5])])
    assert [whole.constraints.units(one.support).size for one in found] == [1, 2, 3, 4, 5, 6]
    assert found[0].support.tolist() == [0, 1, 2]
    path = support_path(whole, [1.0], [1, 2, 6])
    assert path.support(0, 0).tolist() == [0, 1, 2]
    assert path.support(0, 2).tolist() == list(range(9))
    with pytest.raises(InputError, match="a size of 7 is too large"):
        best_subsets(whole, sizes=[1, 7])


def test_columns_of_zeros_under_constraints() -> None:
    X = np.zeros((5, 3))
    problem = SparseRidgeProblem(
        X, np.ones(5), gamma=0.0, tau=2, constraints=Constraints(include=[2], positive=True)
    )
    found = solve(problem)
    assert found.objective == 5.0
    assert found.status == "optimal"
    assert 2 in found.support
    assert not found.coef.any()


def test_dependent_columns_with_signs_have_a_bound_without_a_penalty() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(2, 4)), rng.normal(size=2)
        X[:, 1] = X[:, 0]
        rules = Constraints(include=[0, 1, 2], positive=True)
        found = solve(SparseRidgeProblem(X, y, gamma=0.0, tau=3, constraints=rules))
        assert 0.0 <= found.lower_bound <= found.objective
        assert found.objective == pytest.approx(nnls(X[:, :3], y)[1] ** 2, rel=1e-9)


@pytest.mark.parametrize("draw", [2781, 2], ids=["fails", "plain"])
def test_units_of_nearly_dependent_columns_have_the_loss_of_what_is_left(draw: int) -> None:
    """Columns of one unit that are combinations of each other are dropped one by one."""
    rng = np.random.default_rng([12, draw])
    p, n = int(rng.integers(5, 9)), int(rng.integers(2, 6))
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    gamma = float(rng.choice([1e-5, 1e-3, 0.1]))
    groups = [0, 0, 0, *rng.integers(1, 4, p - 3).tolist()]
    problem = SparseRidgeProblem(X, y, gamma=gamma, tau=1, constraints=Constraints(groups=groups))
    rules = problem.constraints
    found = solve_sizes(problem, sizes=range(1, rules.n_units + 1))
    for one in found:
        units = combinations(range(rules.n_units), one.size)
        least = min(problem.objective(rules.columns_of(np.array(some))) for some in units)
        assert one.lower_bound <= least * (1.0 + 1e-9)
        assert one.objective == pytest.approx(least, rel=1e-6)


def test_bounds_of_gram_matrices_with_included_columns_hold() -> None:
    """The root of a Gram matrix is off, and so would be what is projected out of it."""
    for seed in range(12):
        rng = np.random.default_rng([6, seed])
        p = int(rng.integers(3, 6))
        X = rng.standard_normal((3 * p, p)) + 10.0 ** rng.integers(2, 5)
        y = X[:, :2].sum(axis=1) + 1e-3 * rng.standard_normal(3 * p)
        G, b, yy, gamma, tau = X.T @ X, X.T @ y, float(y @ y), 1e-3, int(rng.integers(2, p + 1))
        asked = SparseRidgeProblem(
            X, y, gamma=gamma, tau=tau, constraints=Constraints(include=[0])
        ).constraints
        found = solve(
            SparseRidgeProblem.from_gram(G, b, yy, gamma=gamma, tau=tau, constraints=asked)
        )
        supports = (S for S in combinations(range(p), tau) if 0 in S)
        joint = exact_given(G, b, yy)
        least = min(exact_objective(joint, gamma, S) for S in supports)
        assert Fraction(found.lower_bound) <= max(least, Fraction(0)), seed


def test_nearly_dependent_columns_within_bounds_need_few_nodes() -> None:
    """A diagonal of the least eigenvalue alone, nearly 0 here, takes 30 times the nodes."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 60))
    for j in range(0, 60, 6):
        X[:, j] = X[:, j + 1] + X[:, j + 2] + 1e-3 * rng.standard_normal(500)
    y = X[:, :8] @ rng.standard_normal(8) + rng.standard_normal(500)
    bounds = dict.fromkeys(range(0, 60, 2), (-1.0, 1.0))
    problem = SparseRidgeProblem(X, y, gamma=0.1, tau=8, constraints=Constraints(bounds=bounds))
    found = solve(problem)
    assert found.status == "optimal"
    assert found.n_nodes < 10_000


@pytest.mark.parametrize("seed", range(20))
def test_units_that_nearly_depend_on_the_support_still_join(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 7))
    X[:, 1] = X[:, 0] + 1e-8 * rng.normal(size=5)
    problem = SparseRidgeProblem(
        X,
        rng.normal(size=5),
        gamma=0.0,
        tau=6,
        constraints=Constraints(groups=["a", None, None, "a", None, None, None]),
    )
    found = branch_and_bound(problem, tol=0.0, limits=Limits(2.0))
    assert problem.constraints.allowed(found.support)
    assert 0.0 <= found.lower_bound <= found.objective <= 1e-9 * problem.yy


def test_a_tree_that_was_left_goes_on_beside_included_columns(
    stand_in: StandIn,
) -> None:
    """The searches that take turns go on with the tree that a path has begun for the same sizes."""
    stand_in(NODES_OF_A_PROOF=20)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 18)) + rng.normal(size=(40, 1))
    y = X[:, :6].sum(axis=1) + 5.0 * rng.normal(size=40)
    rules = Constraints(include=[1, 2], exclude=[7])
    problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2, constraints=rules)
    path = support_path(problem, [0.1, 10.0], range(2, 18))
    assert path.proved.all()
    for g, gamma in enumerate(path.gammas.tolist()):
        for one in best_subsets(problem.replace(gamma=gamma), sizes=path.sizes):
            at = int(np.searchsorted(path.sizes, one.size))
            assert path.objective[g, at] == pytest.approx(one.objective, rel=1e-9)
