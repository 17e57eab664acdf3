"""Which rows are held out when, also in time order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from support.inside import Folds, make_folds
from support.problems import regression

from sparsecv import SparseRidgeCV
from sparsecv.errors import InputError


def check_partition(folds: Folds) -> None:
    """Every row is held out once, and trained on everywhere else."""
    assert folds.label is not None
    held = []
    for j in range(folds.k):
        train, test = folds.split(j)
        assert test.size == folds.sizes[j] > 0
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(folds.n))
        held.append(test)
    np.testing.assert_array_equal(np.sort(np.concatenate(held)), np.arange(folds.n))


@pytest.mark.parametrize("cv", ["loo", " LOO ", "size:1", "Size:1"])
@pytest.mark.parametrize("n", [2, 3, 17])
def test_leave_one_out(cv: str, n: int) -> None:
    folds = make_folds(cv, n)
    assert (folds.kind, folds.k, folds.n) == ("loo", n, n)
    assert folds.leave_one_out
    check_partition(folds)
    for i in range(n):
        np.testing.assert_array_equal(folds.split(i)[1], [i])


@pytest.mark.parametrize(("n", "k"), [(10, 2), (10, 3), (11, 5), (7, 6)])
def test_k_folds(n: int, k: int) -> None:
    folds = make_folds(k, n, seed=3)
    assert (folds.kind, folds.k) == ("kfold", k)
    assert not folds.leave_one_out
    check_partition(folds)
    assert sorted(folds.sizes.tolist(), reverse=True) == folds.sizes.tolist()
    assert folds.sizes.max() - folds.sizes.min() <= 1
    np.testing.assert_array_equal(make_folds(str(k), n, seed=3).label, folds.label)
    np.testing.assert_array_equal(make_folds(np.int64(k), n, seed=3).label, folds.label)


def test_shuffle_is_seeded_and_drawn_once() -> None:
    first, again = make_folds(4, 40, seed=7), make_folds(4, 40, seed=7)
    np.testing.assert_array_equal(first.label, again.label)
    assert (make_folds(4, 40, seed=8).label != first.label).any()
    random = make_folds(4, 40, seed=np.random.RandomState(7))
    np.testing.assert_array_equal(random.label, first.label)
    # the labels are data, not a recipe: asking twice cannot draw twice
    np.testing.assert_array_equal(first.split(1)[1], first.split(1)[1])


@pytest.mark.parametrize(("n", "size", "k"), [(10, 5, 2), (11, 5, 2), (442, 10, 44), (392, 10, 39)])
def test_folds_of_a_size(n: int, size: int, k: int) -> None:
    folds = make_folds(f"size:{size}", n, seed=0)
    assert (folds.kind, folds.k) == ("size", k)
    check_partition(folds)
    assert set(folds.sizes.tolist()) <= {size, size + 1}


@pytest.mark.parametrize("cv", [9, "9", KFold(9), KFold(9, shuffle=True, random_state=1)])
def test_as_many_folds_as_rows_is_leave_one_out(cv: Any) -> None:
    folds = make_folds(cv, 9, seed=5)
    assert folds.leave_one_out
    check_partition(folds)
    # whatever order the splitter gives them in, fold i holds out row i
    for i in range(9):
        np.testing.assert_array_equal(folds.split(i)[1], [i])


def test_splitters() -> None:
    n = 12
    X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(float(n))
    folds = make_folds(KFold(3), n, X=X, y=y)
    assert (folds.kind, folds.k) == ("custom", 3)
    check_partition(folds)
    for j, (train, test) in enumerate(KFold(3).split(X)):
        np.testing.assert_array_equal(folds.split(j)[0], train)
        np.testing.assert_array_equal(folds.split(j)[1], test)
    assert make_folds(LeaveOneOut(), n).kind == "loo"
    assert make_folds(LeaveOneOut(), n).leave_one_out


def test_a_fold_for_each_group_is_the_only_partition() -> None:
    groups = np.array(["b", "a", "c"] * 4)
    every, fewer = (make_folds(k, 12, seed=3, groups=groups) for k in (3, 2))
    expected = make_folds("loo", 12, groups=groups)
    np.testing.assert_array_equal(every.label, expected.label)
    assert (every.kind, every.redraws, every.one_for_each) == ("custom", False, True)
    assert (fewer.kind, fewer.redraws, fewer.one_for_each) == ("kfold", True, False)


def test_groups() -> None:
    n = 12
    groups = np.repeat(np.arange(4), 3)
    direct = make_folds(GroupKFold(2), n, groups=groups)
    pairs = make_folds(GroupKFold(2).split(np.zeros((n, 1)), groups=groups), n)
    for folds in (direct, pairs):
        check_partition(folds)
        for j in range(2):
            train, test = folds.split(j)
            assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize(
    "splitter",
    [
        ShuffleSplit(3, test_size=0.3, random_state=0),
        ShuffleSplit(1, test_size=0.5, train_size=0.2, random_state=0),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        TimeSeriesSplit(3),
    ],
)
def test_splitters_that_do_not_partition(splitter: Any) -> None:
    n = 20
    folds = make_folds(splitter, n)
    assert folds.kind == "custom"
    assert folds.label is None
    assert not folds.leave_one_out
    expected = list(splitter.split(np.zeros((n, 1))))
    assert folds.k == len(expected)
    for j, (train, test) in enumerate(expected):
        np.testing.assert_array_equal(folds.split(j)[0], np.sort(train))
        np.testing.assert_array_equal(folds.split(j)[1], np.sort(test))
        assert folds.sizes[j] == test.size


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("n", [8, 23, 40])
def test_folds_in_order_of_time_are_those_of_scikit_learn(k: int, n: int) -> None:
    folds = make_folds(f" time:{k} ", n)
    assert (folds.kind, folds.k, folds.redraws) == ("time", k, False)
    expected = make_folds(TimeSeriesSplit(k), n)
    for own, theirs in zip(folds.splits(), expected.splits(), strict=True):
        np.testing.assert_array_equal(own[0], theirs[0])
        np.testing.assert_array_equal(own[1], theirs[1])
    np.testing.assert_array_equal(folds.sizes, expected.sizes)
    with pytest.raises(InputError, match="cannot keep groups together"):
        make_folds("time:2", n, groups=np.arange(n))


@pytest.mark.parametrize("rule", ["projected", "minimum"])
def test_a_fit_in_order_of_time_is_that_of_the_splitter(rule: str) -> None:
    """Outer folds are in order of time, too: the first rows cannot be predicted by later ones."""
    X, y = regression(60, 4, {0: 1.0, 1: -1.0})
    y = y + np.cumsum(np.random.default_rng(1).standard_normal(60))
    found, right = (
        SparseRidgeCV(cv=cv, rule=rule, gammas=[0.1, 10.0], nested=True, time_limit=None).fit(X, y)
        for cv in ("time:3", TimeSeriesSplit(3))
    )
    assert found.folds_.kind == "time"
    assert found.cv_error_ == right.cv_error_
    assert found.nested_error_ == right.nested_error_
    assert found.support_.tolist() == right.support_.tolist()
    fewer = found.set_params(nested=2).fit(X, y)
    again = SparseRidgeCV(cv=TimeSeriesSplit(3), rule=rule, gammas=[0.1, 10.0], time_limit=None)
    squares = list[float]()
    for train, test in make_folds("time:2", 60).splits():
        squares += np.square(y[test] - again.fit(X[train], y[train]).predict(X[test])).tolist()
    assert fewer.nested_error_ == pytest.approx(np.mean(squares), rel=1e-9)


def test_index_pairs_and_masks() -> None:
    held = np.array([True, False, False, True, False])
    folds = make_folds([(~held, held), ([0, 3], [1, 2, 4])], 5)
    check_partition(folds)
    np.testing.assert_array_equal(folds.split(0)[1], [0, 3])
    partial = make_folds(iter([([0, 1], [2])]), 5)
    assert partial.label is None
    np.testing.assert_array_equal(partial.split(0)[0], [0, 1])
    # complete, but some fold does not train on all the rest
    thinned = make_folds([([0, 1], [2, 3]), ([2], [0, 1])], 4)
    assert thinned.label is None
    assert thinned.split(1)[0].tolist() == [2]


@pytest.mark.parametrize(
    ("cv", "n", "words"),
    [
        ("five", 10, "'loo', a number K, 'size:M' or 'time:K'"),
        ("", 10, "'loo', a number K, 'size:M' or 'time:K'"),
        ("2.5", 10, "'loo', a number K, 'size:M' or 'time:K'"),
        ("²", 10, "'loo', a number K, 'size:M' or 'time:K'"),
        ("size:", 10, "whole number M >= 1"),
        ("size:0", 10, "whole number M >= 1"),
        ("size:-2", 10, "whole number M >= 1"),
        ("size:²", 10, "whole number M >= 1"),
        ("time:", 10, "'time:K' needs a whole number K >= 2"),
        ("time:1", 10, "'time:K' needs a whole number K >= 2"),
        ("time:x", 10, "'time:K' needs a whole number K >= 2"),
        ("time:10", 10, "10 folds in order of time need at least 11 rows; there are 10"),
        ("size:6", 11, "at least 12 rows; there are 11"),
        ("1", 10, "at least 2 folds"),
        (0, 10, "at least 2 folds"),
        (-1, 10, "at least 2 folds"),
        (11, 10, "11 folds need at least 11 rows; there are 10"),
        (True, 10, "folds must be"),
        (None, 10, "folds must be"),
        (2.0, 10, "folds must be"),
        ([], 10, "no folds"),
        ([([0, 1], [2])], 2, "fold 1"),
        ([([0, 1], [-1])], 5, "0..4"),
        ([([0, 1], [2]), ([0, 0], [2])], 5, "fold 2: a row is listed twice"),
        ([([0.5, 1], [2])], 5, "integers"),
        ([([0, 1], [1, 2])], 5, "also trains on"),
        ([([], [1, 2])], 5, "no training or no held-out"),
        ([([0], [])], 5, "no training or no held-out"),
        ([([True, False], [2])], 5, "mask needs one entry per row (5)"),
        ([([0], [1], [2])], 5, "fold 1"),
        ([[0, 1, 2]], 5, "fold 1"),
        ([3], 5, "a whole number for each of the 5 rows"),
        ([0, 1, np.inf, 0, 1], 5, "a whole number for each of the 5 rows"),
        ([0, 1, np.nan, 0, 1], 5, "a whole number for each of the 5 rows"),
        ([0, 1, 2**70, 0, 1], 5, "a whole number for each of the 5 rows"),
        ([0, [1], 0, 1, 1], 5, "a whole number for each of the 5 rows"),
        (np.array([0, 1, None, 0, 1], dtype=object), 5, "a whole number for each of the 5 rows"),
        (np.array(5), 10, "folds must be"),
        (np.float64(5.0), 10, "folds must be"),
    ],
)
def test_refusals(cv: Any, n: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        make_folds(cv, n)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folds_in_order_of_time_scale_by_their_training_rows() -> None:
    X, y = regression(62, 3, {0: 1.0}, noise=0.1)
    model = SparseRidgeCV(
        cv=TimeSeriesSplit(5), gammas=[1.0], taus=[1], rule="minimum", nested=True
    )
    model.fit(X, y)
    assert model.folds_.sizes.sum() == 50
    total = 0.0
    for train, test in TimeSeriesSplit(5).split(X):
        scaled = X[:, 0] / X[train, 0].std()
        x, v = scaled[train], y[train]
        beta = (x - x.mean()) @ (v - v.mean()) / (np.sum((x - x.mean()) ** 2) + 0.5)
        errors = y[test] - v.mean() - beta * (scaled[test] - x.mean())
        total += np.sum(errors**2)
    np.testing.assert_allclose(model.cv_error_, total / 50, rtol=1e-9)
    assert model.nested_error_ > 0.0


def test_fold_numbers_may_come_as_objects() -> None:
    numbers = np.array([0, 1, 2, 0, 1, -1], dtype=object)
    held_out = [test.tolist() for _, test in make_folds(numbers, 6).splits()]
    assert held_out == [[0, 3], [1, 4], [2]]
