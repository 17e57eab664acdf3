"""Which rows are held out when, also in time order."""

from __future__ import annotations

from pathlib import Path
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
from support.commands import run_json
from support.tables import refused, write

from sparsecv.cli.main import main
from sparsecv.design.folds import Folds, TimeOrdered, make_folds
from sparsecv.errors import InputError
from sparsecv.tables.sources import open_table


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
        np.testing.assert_array_equal(folds.split(j)[0], train)
        np.testing.assert_array_equal(folds.split(j)[1], test)
        assert folds.sizes[j] == test.size


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
        ("five", 10, "'loo', a number K or 'size:M'"),
        ("", 10, "'loo', a number K or 'size:M'"),
        ("2.5", 10, "'loo', a number K or 'size:M'"),
        ("²", 10, "'loo', a number K or 'size:M'"),
        ("size:", 10, "whole number M >= 1"),
        ("size:0", 10, "whole number M >= 1"),
        ("size:-2", 10, "whole number M >= 1"),
        ("size:²", 10, "whole number M >= 1"),
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
    ],
)
def test_refusals(cv: Any, n: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        make_folds(cv, n)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folds_are_those_of_scikit_learn() -> None:
    order = np.random.default_rng(0).permutation(53)
    for asked, split in (
        ("5", TimeSeriesSplit(5)),
        (3, TimeSeriesSplit(3)),
        ("size:7", TimeSeriesSplit(6, test_size=7)),
    ):
        found = make_folds(TimeOrdered(asked), 53, groups=order)
        assert (found.kind, found.label) == ("time", None)
        wanted = list(split.split(np.zeros(53)))
        assert found.k == len(wanted)
        for j, (train, test) in enumerate(wanted):
            rows, held = found.split(j)
            assert sorted(order[rows]) == train.tolist()
            assert sorted(order[held]) == test.tolist()


def test_rows_of_one_time_stay_together() -> None:
    times = np.random.default_rng(1).integers(0, 9, 60)
    found = make_folds(TimeOrdered(4), 60, groups=times)
    for j in range(found.k):
        train, test = found.split(j)
        assert times[train].max() < times[test].min()
        assert train.size == np.count_nonzero(times < times[test].min())


@pytest.mark.parametrize("folds", ["loo", "1", "60", "size:40", "size:0", "many"])
def test_folds_that_cannot_be(folds: str) -> None:
    with pytest.raises(InputError, match="order"):
        make_folds(TimeOrdered(folds), 60, groups=np.arange(60))


def test_times(tmp_path: Path) -> None:
    lines = [f"{i % 5},2024-0{1 + i // 9}-{10 + i % 9},{i % 3},{i % 7 + i}" for i in range(40)]
    path = write(tmp_path / "t.csv", "\n".join(["a,day,g,y", *lines]) + "\n")
    source = open_table(path, order="day")
    assert source.feature_names == ["a", "g"]
    np.testing.assert_array_equal(source.groups, np.arange(40))
    odd = write(tmp_path / "odd.csv", "a,day,y\n1,31/1/2024,2\n2,1/2/2024,3\n")
    refused(odd, "2024-01-31", "'31/1/2024'", order="day")
    refused(path, "cannot go together", order="day", groups="g")


def test_the_command_says_what_is_held_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, when = rng.standard_normal((62, 3)), rng.permutation(62)
    y = X[:, 0] + 0.1 * rng.standard_normal(62)
    rows = [f"{a},{b},{c},{t},{v}" for (a, b, c), t, v in zip(X, when, y, strict=True)]
    write(tmp_path / "t.csv", "\n".join(["a,b,c,when,y", *rows]) + "\n")
    options = ["--order", "when", "--gamma", "1", "--tau", "1", "--nested"]
    found = run_json("cv", "t.csv", *options)
    assert (found["order"], found["folds"]["kind"], found["folds"]["k"]) == ("when", "time", 5)
    assert sum(found["folds"]["sizes"]) == 50
    at, total = np.argsort(when), 0.0
    for train, test in TimeSeriesSplit(5).split(at):
        scaled = X[:, 0] / X[at[train], 0].std()
        x, v = scaled[at[train]], y[at[train]]
        beta = (x - x.mean()) @ (v - v.mean()) / (np.sum((x - x.mean()) ** 2) + 0.5)
        errors = y[at[test]] - v.mean() - beta * (scaled[at[test]] - x.mean())
        total += np.sum(errors**2)
    np.testing.assert_allclose(found["best"]["cv_error"], total / 50, rtol=1e-9)
    assert found["nested"]["folds"] == 5
    assert main(["cv", "t.csv", *options]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "first 12 rows are never held out. The error is of the other 50 rows" in text
