"""Weights of the average inside a fold: of its training rows alone, for every kind of folds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from support.inside import (
    FoldAverages,
    FoldMoments,
    Folds,
    Limits,
    MomentFolds,
    Moments,
    Protocol,
    RowFolds,
    RowTable,
    RunPlan,
    Settings,
    SizeRound,
    Summary,
    average_of,
    averaged_coefficients,
    cross_validate,
    inner_weights,
    make_design,
    make_folds,
    model_weights,
    split_unit,
)
from support.stand_ins import StandIn
from support.studies import Array, first_of, made, study_of

from sparsecv import SparseRidgeCV
from sparsecv.selection.weights import worth_more_sizes
from sparsecv.solvers import SparseRidgeProblem, support_path


def run(what: str, unit: Any, shared: Any, tasks: Any) -> list[Any]:
    """Units of work one after the other, without limits."""
    return [unit(shared, *task, Limits()) for task in tasks]


@pytest.mark.parametrize("p", [5, 50, 260])  # Of 260 columns the training rows choose some first.
@pytest.mark.parametrize("cv", [2, 5, ShuffleSplit(3, random_state=0), "loo"])
@pytest.mark.parametrize("intercept", [True, False])
def test_held_out_rows_change_nothing_before_they_are_predicted(
    cv: Any, intercept: bool, p: int
) -> None:
    """A fold's weights, average and projections are the same bit for bit, whatever it holds out."""
    rng = np.random.default_rng(p)
    X = rng.standard_normal((24, p)) + 2.0
    y = X[:, 0] - X[:, 1] + rng.standard_normal(24)
    folds, gammas, sizes = make_folds(cv, 24, seed=0, X=X), np.array([0.5, 20.0]), np.arange(1, 5)
    j = folds.k // 2
    held = folds.split(j)[1]

    def fold(X: Array, y: Array) -> tuple[Any, ...]:
        data = RowFolds(RowTable(X, y, intercept), folds)
        solver = Settings(time_limit=0.0) if p > 45 else Settings()
        result = cross_validate(data, gammas, sizes, solver)
        tried, plan = [SizeRound(sizes[:2], 2), SizeRound(sizes, 4)], RunPlan.of(solver, data)
        found = inner_weights(data, gammas, tried, run, plan)
        at_once = inner_weights(data, gammas, tried, run, plan, first_round=1)
        got = at_once.weights[j][:, : found.taus.size]
        np.testing.assert_allclose(got, found.weights[j], rtol=1e-9, atol=0.0)
        weights = np.zeros((gammas.size, sizes.size))
        weights[:, : found.taus.size] = found.weights[j]
        coef = averaged_coefficients(data.training(j), result, weights, fold=j)
        shared = FoldAverages(data, [coef] * folds.k)
        how = plan.model_solver, None, None, Limits()
        return weights, coef, split_unit(shared, j, gammas, sizes, *how)

    weights, coef, sums = fold(X, y)
    other_X, other_y = X.copy(), y.copy()
    other_X[held], other_y[held] = 30.0 * rng.standard_normal((held.size, p)), 1e3
    far_weights, far_coef, _ = fold(other_X, other_y)
    _, _, far = fold(X, other_y)
    np.testing.assert_array_equal(far_weights, weights)
    np.testing.assert_array_equal(far_coef, coef)
    np.testing.assert_array_equal(far.errors[0], sums.errors[0])
    assert np.unique(weights).size > 1


def test_no_problem_is_asked_twice_for_a_size(stand_in: StandIn) -> None:
    """A round of sizes asks every fold, all rows and every inner model for the new sizes alone."""
    asked, first_sizes = Counter[tuple[float, float, int]](), set[int]()

    def noted(problem: SparseRidgeProblem, gammas: Array, sizes: Array, **how: Any) -> Any:
        first_sizes.add(int(sizes[0]))
        # The squared length of y tells the rows of a problem.
        asked.update((problem.yy, float(gamma), int(size)) for gamma in gammas for size in sizes)
        return support_path(problem, gammas, sizes, **how)

    stand_in(path_of_a_fold=noted, path_of_a_split=noted)
    X, y = made(60, 100, seed=3)
    SparseRidgeCV(gammas=[0.1, 10.0], n_jobs=1, time_limit=None).fit(X, y)
    assert max(first_sizes) > 1
    assert set(asked.values()) == {1}


def test_inner_models_of_more_sizes_go_on_from_fewer() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 60))
    y = X[:, :20] @ rng.normal(size=20) + rng.standard_normal(80)
    data, sizes = RowFolds(RowTable(X, y, True), make_folds(5, 80, seed=0)), np.arange(1, 41)
    rounds, gammas = [SizeRound(sizes[:16], 16), SizeRound(sizes, 40)], np.array([0.1, 10.0])
    plan, tried = RunPlan.of(Settings(time_limit=0.0), data), list[list[int]]()

    def noted(what: str, unit: Any, shared: Any, tasks: Any) -> list[Any]:
        tried.extend(task[2].tolist() for task in tasks)
        return run(what, unit, shared, tasks)

    found = inner_weights(data, gammas, rounds, noted, plan)
    assert tried == 10 * [sizes[:16].tolist()] + 10 * [sizes[16:].tolist()]
    at_once = inner_weights(data, gammas, rounds, run, plan, first_round=1)
    np.testing.assert_array_equal(found.taus, at_once.taus)
    np.testing.assert_allclose(found.weights, at_once.weights, rtol=1e-9, atol=0.0)


def inner_splits(folds: Folds) -> list[tuple[Any, Any]]:
    """Training rows and held-out rows of every inner model."""
    rng = np.random.default_rng(0)
    data = RowFolds(
        RowTable(rng.standard_normal((folds.n, 3)), rng.standard_normal(folds.n), True), folds
    )
    found = list[tuple[Any, Any]]()

    def noted(what: str, unit: Any, shared: Any, tasks: Any) -> Any:
        models = [shared.models[m] for m, *_ in tasks]
        found.extend([(train, held) for train, tests in models for held in tests.values()])
        return run(what, unit, shared, tasks)

    plan = RunPlan.of(Settings(), data)
    inner_weights(data, np.array([1.0, 9.0]), [SizeRound(np.arange(1, 4), 3)], noted, plan)
    return found


@pytest.mark.parametrize("gap", [0, 3])
def test_inner_folds_are_in_order_of_time_as_the_outer_folds_are(gap: int) -> None:
    pairs = list(TimeSeriesSplit(4, gap=gap).split(np.zeros((60, 1))))
    in_other_order = [(train[::-1], held[::-1]) for train, held in pairs]
    for given in (pairs, in_other_order):
        folds = make_folds(given, 60)
        splits = inner_splits(folds)
        assert len(splits) >= 3 * folds.k
        for train, held in splits:
            assert train.max() + gap < held.min()


@pytest.mark.parametrize(
    "cv", [GroupKFold(2), GroupKFold(5), GroupShuffleSplit(3), "grouped pairs", "pairs", 2]
)
def test_inner_folds_keep_together_what_the_outer_folds_keep_together(cv: Any) -> None:
    """Index pairs do not name groups: what a fold of theirs holds out stays together."""
    rng = np.random.default_rng(1)
    group = rng.permutation(np.repeat(np.arange(12), 5))
    given: Any = cv, group
    if cv == "grouped pairs":
        given = list(GroupKFold(2).split(np.zeros((60, 1)), groups=group)), group
    if cv == "pairs":
        outer = [np.flatnonzero(np.isin(group, some)) for some in ([0, 1], [2, 3], [4], [5, 6, 7])]
        every = np.arange(60)
        given = [(np.setdiff1d(every, held)[:-1], held) for held in outer], None
        group = np.repeat(12, 60)
        for number, held in enumerate(outer):
            group[held] = number
    folds = make_folds(given[0], 60, X=np.zeros((60, 1)), groups=given[1])
    splits = inner_splits(folds)
    assert len(splits) >= 2 * folds.k
    for train, held in splits:
        assert not np.intersect1d(group[train], group[held]).size


def test_two_blocks_of_rows_have_inner_blocks() -> None:
    for train, held in inner_splits(make_folds(KFold(2), 40)):
        assert np.ptp(held) + 1 == held.size == 5
        assert train.size == 15


def test_weights_of_a_table_read_by_chunks_are_those_of_its_rows() -> None:
    X, y = made(40, 5)
    label = np.arange(40) % 7
    folds = Folds("custom", 40, np.bincount(label).astype(np.intp), label)
    design = make_design(Summary.of(X, y), Protocol(), list("abcde"))
    rows = RowFolds(RowTable(*design.apply(X, y), True), folds)
    parts = [Moments.of(np.column_stack([X, y])[label == j]) for j in range(7)]
    low, high = np.append(X.min(axis=0), y.min()), np.append(X.max(axis=0), y.max())
    chunks = MomentFolds([FoldMoments(parts, low, high)], design)
    gammas, sizes = np.array([0.5, 20.0]), np.arange(1, 6)
    tried = [SizeRound(sizes, int(sizes[-1]))]
    both = (
        inner_weights(one, gammas, tried, run, RunPlan.of(Settings(), one))
        for one in (rows, chunks)
    )
    found, same = (one.weights for one in both)
    for one, other in zip(found, same, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-7)
    np.testing.assert_array_equal(found[0], found[5])  # folds of one block
    assert not np.array_equal(found[0], found[1])


def test_the_grid_of_a_fold_is_decided_by_its_training_rows() -> None:
    """Rows that a fold holds out may extend the grid of all rows, and not that of the fold."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 6))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(40)
    folds = make_folds(5, 40, seed=0)
    held = folds.split(2)[1]
    noise = y.copy()
    noise[held] = -30.0 * y[held]  # The more the coefficients shrink, the better for these rows.
    studies = [study_of(X, one, 5, None, rule="projected") for one in (y, noise)]
    found = [average_of(study, first_of(study)) for study in studies]
    plain, wild = (one.result.gammas for one in found)
    assert wild.max() > plain.max()  # The CV errors of all rows have extended this grid.
    np.testing.assert_array_equal(found[1].coefs[2], found[0].coefs[2])


def test_a_fit_by_another_rule_compares_averages_without_a_further_gamma() -> None:
    """The rule minimum has visited every γ that the folds of the average need."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    model = SparseRidgeCV(rule="minimum").fit(X, X[:, 0] + 0.3 * rng.standard_normal(60))
    assert "projected" in model.compare().index


def test_averages_of_a_wide_table_without_proofs_do_not_depend_on_the_clock() -> None:
    """No fold's average is proved there, so that a time limit of 0 gives the same error."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 60))
    y = X[:, :4].sum(axis=1) + rng.standard_normal(40)
    options: dict[str, Any] = {"taus": range(1, 11), "rule": "projected"}
    studies = [study_of(X, y, 3, time_limit=limit, **options) for limit in (0, None)]
    quick, found = (average_of(study, first_of(study)).coefs for study in studies)
    for fast, average in zip(quick, found, strict=True):
        np.testing.assert_array_equal(fast, average)


@pytest.mark.parametrize("partition", [True, False])
def test_rows_of_weight_0_have_no_part_in_the_weights_of_an_average(partition: bool) -> None:
    rng, n, more = np.random.default_rng(3), 24, 36
    X = rng.standard_normal((more, 4))
    y = X[:, 0] + 0.3 * X[:, 1] + rng.standard_normal(more)
    label = np.arange(more) % 4
    if not partition:
        label[
            n:
        ] = -1  # These rows are in the training rows of every fold, and in no held-out rows.

    def folds(rows: int) -> list[tuple[Array, Array]]:
        own = label[:rows]
        return [(np.flatnonzero(own != j), np.flatnonzero(own == j)) for j in range(4)]

    model = SparseRidgeCV(rule="projected", gammas=[0.1, 1.0, 10.0], cv=folds(n)).fit(X[:n], y[:n])
    weighted = SparseRidgeCV(rule="projected", gammas=[0.1, 1.0, 10.0], cv=folds(more))
    weighted.fit(X, y, sample_weight=np.repeat([1.0, 0.0], [n, more - n]))
    np.testing.assert_allclose(weighted.coef_, model.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weighted.cv_error_, model.cv_error_, rtol=1e-9)


@pytest.mark.parametrize(("last", "more"), [(20, False), (27, False), (29, True), (32, True)])
def test_sizes_grow_where_one_of_the_last_carries_weight(last: int, more: bool) -> None:
    """Errors of 32 sizes fall up to size 20, and rise so that ``last`` is the last that counts."""
    sizes, n, gamma = np.arange(1, 33), 5000, np.array([1.0])
    # Up to e^−9 of the largest weight count, and the size after ``last`` has e^−10.
    errors = np.where(sizes <= 20, 2.0 - sizes / 20.0, np.exp(10.0 / n * 8.0))
    errors[sizes > last] = np.exp(10.0 / n * 10.0)
    weighted = np.flatnonzero(model_weights(errors[None], gamma, n)[0] > 0.0)
    assert sizes[weighted[-1]] == last
    assert worth_more_sizes(errors[None], gamma, n) == more


def test_sizes_grow_where_errors_fall_at_the_end() -> None:
    """Sizes at a second slope count even where none of them carries weight yet."""
    errors = np.concatenate([np.linspace(3.0, 1.0, 10), np.linspace(2.9, 2.5, 22)])
    assert worth_more_sizes(errors[None], np.array([1.0]), 5000)


@pytest.mark.parametrize("dependent", [False, True])
def test_training_problems_of_estimates_are_those_of_the_training_rows(dependent: bool) -> None:
    """They are the same bit for bit whatever is held out, and have the products of the rows."""
    n, p = 420, 50
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p)) * np.geomspace(1e-3, 1e3, p) + 1e4
    X[:, 7] = 2.0
    if dependent:
        X[:, 1] = X[:, 0] + 1e-7 * X[:, 2]
    y, folds = X[:, 0] - 1e3 * X[:, 3] + rng.standard_normal(n), make_folds(5, n, seed=0)
    held = folds.split(2)[1]
    train = folds.split(2)[0][:-10]
    test = np.setdiff1d(np.arange(n), train)
    others = np.flatnonzero(np.isin(folds.label, [0, 3, 4]))

    def problems(X: Array, y: Array) -> list[SparseRidgeProblem]:
        data, one = RowFolds(RowTable(X, y, True), folds), RowFolds(RowTable(X, y, True), folds)
        again = RowFolds(data.rows, folds)
        same = one.one_fold(others, held)
        other = one.one_fold(others, np.flatnonzero(folds.label == 1), same)
        assert other.training(0) is same.training(0)
        np.testing.assert_allclose(
            again.held_out(2)[0], data.held_out(2)[0], rtol=0, atol=1e-9 * np.abs(X).max()
        )
        return [again.training(2), same.training(0), one.one_fold(train, test).training(0)]

    found, changed = problems(X, y), problems(*_with_other_rows(X, y, held))
    for one, same, numbers in zip(found, changed, (folds.split(2)[0], others, train), strict=True):
        np.testing.assert_array_equal(one.rows, same.rows)
        rows = np.column_stack([X, y])[numbers]
        rows -= rows.mean(axis=0)
        lengths = np.maximum(np.linalg.norm(one.rows, axis=0), 1e-100)
        off = (one.rows.T @ one.rows - rows.T @ rows) / np.outer(lengths, lengths)
        assert np.abs(np.delete(np.delete(off, 7, axis=0), 7, axis=1)).max() < 1e-8
        assert not one.rows[:, 7].any()


def _with_other_rows(X: Array, y: Array, held: Array) -> tuple[Array, Array]:
    """The same table with other numbers in some rows."""
    X, y = X.copy(), y.copy()
    X[held], y[held] = 1e6 * X[held] - 3e8, -5e9
    return X, y


@pytest.mark.parametrize(("p", "draws"), [(5, 24), (50, 12)])
def test_the_average_of_noise_has_no_error_below_its_variance(p: int, draws: int) -> None:
    """Nothing predicts noise."""
    errors = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((40, p)), rng.standard_normal(40)
        study = study_of(X, y, 5, [1.0, 30.0, 1000.0], np.arange(1, 6), rule=None)
        errors.append(average_of(study, first_of(study)).error - np.mean(y**2))
    assert np.mean(errors) > 0.0
