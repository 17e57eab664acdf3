"""Dask collections and folders of Parquet files are reduced to moments of folds in one compute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.inside import DaskTable, FoldMoments, main
from support.stand_ins import StandIn

from sparsecv import SparseRidgeCV
from sparsecv.design.folds import chunk_folds
from sparsecv.design.reduction import reduced
from sparsecv.errors import InputError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

Array = NDArray[np.float64]
CHUNK = 100
NAMES = list("abcde")


def plain(n: int = 600, p: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, X[:, 0] - X[:, 2] + rng.standard_normal(n)


def ugly(n: int = 4000, seed: int = 0) -> tuple[Array, Array]:
    """Offsets of 1e8, scales from 1e-6 to 1e6, nearly collinear columns, far-off rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 7)) * [1e-6, 1e6, 1.0, 1e-6, 1e6, 1.0, 1.0]
    X += [1e8, 1e8, 1e8, 0.0, 0.0, -1e8, 0.0]
    X[:, 6] = X[:, 2] + 1e-4 * X[:, 6]
    X[: n // 2, 4] += 1e9  # Chunks differ in their means.
    return X, X[:, 2] - 1e8 + rng.standard_normal(n)


def labels(sizes: list[int], k: int, seed: int = 0, partition: int = 0) -> NDArray[np.intp]:
    """The folds of all rows, drawn chunk by chunk."""
    chunks = enumerate(sizes)
    return np.concatenate([chunk_folds(n, k, seed, partition, number) for number, n in chunks])


def pairs(label: NDArray[np.intp], k: int) -> list[tuple[Any, Any]]:
    return [(np.flatnonzero(label != j), np.flatnonzero(label == j)) for j in range(k)]


class Counted(dask.callbacks.Callback):  # type: ignore[misc]
    """Counts computes, and how often a chunk is reduced."""

    def __init__(self) -> None:
        super().__init__()
        self.computes = 0

    def _start(self, graph: Any) -> None:
        self.computes += 1


def collections(X: Array, y: Array) -> dict[str, tuple[Any, Any]]:
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(price=y), npartitions=6)
    A, b = da.from_array(X, chunks=(CHUNK, 2)), da.from_array(y, chunks=250)
    return {
        "arrays": (A, b),
        "a response in memory": (A, y),
        "frames": (frame[NAMES], frame["price"]),
        "arrays of unknown length": (frame[NAMES].to_dask_array(), frame["price"].to_dask_array()),
    }


# ------------------------------------------------------------------------------ moments


def truth(rows: Any) -> tuple[Any, Any, Any]:
    """A row, the mean less that row, and the scatter: even long doubles need an origin nearby."""
    wide = rows.astype(np.longdouble) - rows[0].astype(np.longdouble)
    mean = wide.mean(axis=0)
    return rows[0], mean, (wide - mean).T @ (wide - mean)


def assert_accurate(found: FoldMoments, label: NDArray[np.intp], k: int, joint: Array) -> None:
    for j in range(k):
        for part, rows in (
            (found.folds[j], joint[label == j]),
            (found.without(j), joint[label != j]),
        ):
            origin, mean, scatter = truth(rows)
            spread = np.sqrt(np.diag(scatter))
            assert part.n == rows.shape[0]
            off = np.abs(part.triangle.T @ part.triangle - scatter) / np.outer(spread, spread)
            assert float(off.max()) < 1e-12
            # Means hold to 1e-12 of the spread, which 16 digits beside 1e8 do not.
            off = np.abs((part.mean.astype(np.longdouble) - origin) + part.tail - mean)
            assert float((off / (spread / np.sqrt(part.n))).max()) < 1e-12
    np.testing.assert_array_equal(found.low, joint.min(axis=0))
    np.testing.assert_array_equal(found.high, joint.max(axis=0))


@pytest.mark.parametrize(("size", "k"), [(4000, 2), (4000, 5), (700, 3), (64, 10)])
@pytest.mark.parametrize("seed", [0, 1])
def test_as_accurate_as_long_doubles(size: int, k: int, seed: int) -> None:
    X, y = ugly(seed=seed)
    table = DaskTable(da.from_array(X, chunks=(size, 7)), da.from_array(y, chunks=size))
    sizes = list(da.from_array(y, chunks=size).chunks[0])
    counted = Counted()
    with counted:
        found = reduced(table, k, seed, 2)
    assert counted.computes == 1
    assert table.n == 4000
    for partition, one in enumerate(found):
        label = labels(sizes, k, seed, partition)
        assert_accurate(one, label, k, np.column_stack([X, y]))


def test_no_worker_changes_a_bit(client: Any) -> None:
    X, y = ugly()
    table = DaskTable(da.from_array(X, chunks=(100, 7)), da.from_array(y, chunks=100))
    with client.as_current():
        there = reduced(table, 5, 2, 1)[0]
    with dask.config.set(scheduler="synchronous"):
        here = reduced(table, 5, 2, 1)[0]
    for one, two in zip(here.folds, there.folds, strict=True):
        for name in ("n", "mean", "tail", "triangle"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_folds_of_chunks_are_even_and_independent() -> None:
    k = 7
    first, again, other, later = (
        chunk_folds(100, k, *which) for which in ((5, 0, 0), (5, 0, 0), (5, 1, 0), (5, 0, 1))
    )
    np.testing.assert_array_equal(first, again)
    for label in (first, other, later):
        assert np.ptp(np.bincount(label, minlength=k)) <= 1
    assert abs(float((first == other).mean()) - 1.0 / k) < 0.2
    assert (first != later).any()
    # Short chunks do not all fill the first folds.
    total = sum(np.bincount(chunk_folds(3, k, 5, 0, c), minlength=k) for c in range(2000))
    assert np.abs(total - 6000 / k).max() < 5.0 * np.sqrt(6000 / k)


# ------------------------------------------------------------------------------ fits


@pytest.mark.parametrize("name", ["arrays", "a response in memory", "frames",
                                  "arrays of unknown length"])  # fmt: skip
def test_a_fit_is_that_of_the_rows_in_the_same_folds(name: str) -> None:
    X, y = plain()
    A, b = collections(X, y)[name]
    with Counted() as counted:
        found = SparseRidgeCV(gammas=[0.1, 10.0], cv=4, rule="minimum").fit(A, b)
    assert counted.computes == 1
    folds = pairs(labels([CHUNK] * 6, 4), 4)
    rows = SparseRidgeCV(gammas=[0.1, 10.0], cv=folds, rule="minimum").fit(X, y)
    np.testing.assert_allclose(found.coef_, rows.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.cv_error_, rows.cv_error_, rtol=1e-9)
    np.testing.assert_allclose(found.surface_["cv_error"], rows.surface_["cv_error"], rtol=1e-9)
    np.testing.assert_array_equal(found.folds_.sizes, [test.size for _, test in folds])
    assert found.certified_
    assert found.n_features_in_ == 5
    if name == "frames":
        assert found.feature_names_in_.tolist() == NAMES
    given = A.head(3) if name == "frames" else X[:3]
    np.testing.assert_allclose(found.predict(given), rows.predict(X[:3]))


@pytest.mark.parametrize("p", [5, 50])
def test_all_partitions_of_a_rule_come_from_one_compute(p: int) -> None:
    X, y = plain(400, p)
    with Counted() as counted:
        model = SparseRidgeCV(gammas=[1.0, 10.0], cv=4, taus=[1, 2, 3])
        model.fit(da.from_array(X, chunks=(CHUNK, p)), da.from_array(y, chunks=CHUNK))
    assert counted.computes == 1
    results = model._run_.choice.projection.average.partitions.results
    assert len(results) == 2
    for partition, result in enumerate(results):
        folds = pairs(labels([CHUNK] * 4, 4, 0, partition), 4)
        rows = SparseRidgeCV(gammas=[1.0, 10.0], cv=folds, rule="minimum", taus=[1, 2]).fit(X, y)
        error = result.table("cv_error")[:, :2]
        np.testing.assert_allclose(error, rows.surface_["cv_error"], rtol=1e-9)


def test_what_moments_do_not_allow_is_refused(tmp_path: Path) -> None:
    X, y = plain()
    A, b = collections(X, y)["arrays"]
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"cv": "loo"}, {}, "folds that are a number K"),
        ({"cv": 1}, {}, "at least 2 folds"),
        ({"random_state": -1}, {}, "whole number from 0"),
        ({"rule": "stability"}, {}, "rule stability needs the rows in memory"),
        ({"nested": True}, {}, "nested needs the rows in memory"),
        ({"rule": "projected", "cv": 2}, {}, "at least 3 folds"),
        ({"missing": "mean"}, {}, "missing needs rows in memory"),
        ({}, {"sample_weight": np.ones(600)}, "sample_weight and groups"),
    ]
    for options, more, words in cases:
        with pytest.raises(InputError, match=words):
            SparseRidgeCV(gammas=[1.0], **options).fit(A, b, **more)
    fitted = SparseRidgeCV(gammas=[1.0]).fit(A, b)
    with pytest.raises(InputError, match="prediction intervals need the rows in memory"):
        fitted.predict_interval(X[:2])
    with pytest.raises(InputError, match="a certificate needs the rows in memory"):
        fitted.certificate(tmp_path / "c.txt")
    with pytest.raises(InputError, match="one is empty"):
        SparseRidgeCV(gammas=[1.0], cv=300).fit(A[:200], b[:200])


def test_moments_that_do_not_fit_in_memory_are_refused(stand_in: StandIn) -> None:
    stand_in(MAX_BYTES_OF_MOMENTS=8 * 5 * 36 - 1)
    with pytest.raises(InputError, match="5 folds of 5 columns take too much memory"):
        SparseRidgeCV(gammas=[1.0]).fit(*collections(*plain())["arrays"])


def test_values_that_cannot_be_used() -> None:
    X, y = plain()
    every = collections(X, y)
    (A, b), (frame, price) = every["arrays"], every["frames"]
    words, column = np.where(y > 0, "up", "down"), pd.Series(y, name="price", dtype="Float64")
    column[13] = pd.NA
    hole = dd.from_pandas(column, npartitions=6)
    other = X.copy()
    other[317, 1] = np.inf
    series = dd.from_pandas(pd.Series(words), npartitions=6)
    short = dd.from_pandas(pd.Series(y[:590]), npartitions=6)
    cases: list[tuple[Any, Any, str]] = [
        (A, b[:-1], "X has 600 rows and y 599"),
        (frame, short, "missing value in column 'y'"),
        (A, short.to_dask_array(), r"chunk \d: X has 100 rows and y 9\d"),
        (frame, y, "chunks of unknown length"),
        (A[:, 0], b, "1 dimensions"),
        (collections(other, y)["arrays"][0], b, r"chunk 4: infinite value in column 'x1', .* 18"),
        (A + 1j, b, "X must hold real numbers, not complex128"),
        (A, b * 1j, "y must hold real numbers, not complex128"),
        (A, words, "y must hold real numbers, not <U4"),
        (A, words.astype(object), "could not convert string to float: '(up|down)'"),
        (frame, series, "y must hold real numbers, not "),
        (frame.assign(a=series), price, "column 'a' must hold real numbers, not "),
        (frame, price.to_frame(), "y, a single column, .*: y has 2 dimensions"),
        (frame["a"], price, "X has 1 dimensions"),
        (frame, hole, "chunk 1: missing value in column 'price', data row 14"),
        (frame.assign(a=hole), price, "chunk 1: missing value in column 'a', data row 14"),
    ]
    for first, second, words_of_error in cases:
        with pytest.raises(InputError, match=words_of_error) as caught:
            SparseRidgeCV(gammas=[1.0]).fit(first, second)
        assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------ the command


def write(folder: Path, X: Array, y: Array, count: int) -> Path:
    folder.mkdir()
    frame = pd.DataFrame(X, columns=NAMES).assign(price=y)
    for i, rows in enumerate(np.array_split(np.arange(len(y)), count)):
        frame.iloc[rows].to_parquet(folder / f"part-{i:03}.parquet", index=False)
    (folder / "_SUCCESS").touch()
    return folder


# This is a warning about Dask's own call of pandas.
@pytest.mark.parametrize("pattern", [False, True])
def test_the_command_reads_a_folder_and_several_files(
    pattern: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = plain()
    folder = write(tmp_path / "t", X, y, 6)
    monkeypatch.chdir(tmp_path)
    data = str(folder / "part-*.parquet") if pattern else str(folder)
    options = ["--folds", "4", "--gamma", "0.1,10", "--rule", "minimum", "--quiet"]
    with Counted() as counted:
        assert main(["cv", data, *options, "--json", "out.json", "--seed", "3"]) == 0
    assert counted.computes == 1
    found = json.loads(Path("out.json").read_text())
    folds = pairs(labels([100] * 6, 4, 3), 4)
    rows = SparseRidgeCV(cv=folds, gammas=[0.1, 10.0], rule="minimum").fit(X, y)
    assert found["n"] == 600
    assert found["feature_names"] == NAMES
    assert found["best"]["cv_error"] == pytest.approx(rows.cv_error_, rel=1e-9)
    coef = dict(zip(found["model"]["support"], found["model"]["coef"], strict=True))
    assert coef == pytest.approx({NAMES[j]: rows.coef_[j] for j in rows.support_}, rel=1e-9)


def test_a_folder_without_dask_names_the_extra(
    tmp_path: Path, stand_in: StandIn, capsys: Any
) -> None:
    folder = write(tmp_path / "t", *plain(), 2)
    stand_in(dask_dataframe=None)
    assert main(["cv", str(folder)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert 'pip install "sparsecv[distributed]"' in said[0]


def test_folders_that_are_no_table(tmp_path: Path, capsys: Any) -> None:
    folder = write(tmp_path / "t", *plain(), 2)
    (tmp_path / "empty").mkdir()
    cases = [
        ([str(tmp_path / "empty")], "not readable as Parquet files"),
        ([str(tmp_path / "empty")], "name a folder of such files, or one file of CSV"),
        ([str(tmp_path / "u-*.parquet")], "not readable as Parquet files"),
        ([str(folder), "--weights", "a"], "--weights needs the rows in memory"),
        ([str(folder), "--missing", "drop"], "--missing needs the rows in memory"),
        ([str(folder), "--target", "q"], "no target column 'q'"),
        ([str(folder), "--folds", "loo"], "folds that are a number K"),
    ]
    for words, said in cases:
        assert main(["cv", *words, "--gamma", "1"]) == 2
        lines = capsys.readouterr().err.strip().splitlines()
        assert len(lines) == 1
        assert said in lines[0]
    assert main(["fit", str(folder), "--tau", "1"]) == 2
    assert "needs the rows in memory" in capsys.readouterr().err
