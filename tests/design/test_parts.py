"""Tables in parts: Parquet folders and Dask collections, read once wherever the parts lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from numpy.typing import NDArray

from sparsecv import SparseRidgeCV
from sparsecv.cli.main import main
from sparsecv.cv.engine import cross_validate
from sparsecv.design import prepare as pipeline
from sparsecv.design.design import Protocol
from sparsecv.design.folds import Folds, fold_count, hashed_folds
from sparsecv.design.moment_folds import MomentFolds
from sparsecv.design.moments import FoldMoments, fold_moments
from sparsecv.errors import InputError
from sparsecv.tables.row_source import ArraySource, Part
from sparsecv.tables.sources import open_table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

Array = NDArray[np.float64]


def ugly(n: int = 4000, seed: int = 0) -> tuple[Array, Array]:
    """Offsets of 1e8, scales from 1e-6 to 1e6, nearly collinear columns, far-off rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 7)) * [1e-6, 1e6, 1.0, 1e-6, 1e6, 1.0, 1.0]
    X += [1e8, 1e8, 1e8, 0.0, 0.0, -1e8, 0.0]
    X[:, 6] = X[:, 2] + 1e-4 * X[:, 6]
    X[: n // 2, 4] += 1e9  # parts differ in their means
    return X, X[:, 2] - 1e8 + rng.standard_normal(n)


class Parted(ArraySource):
    """Rows in memory that come in parts, some of them of one row, or in blocks of 7 rows."""

    def __init__(self, X: Array, y: Array, count: int) -> None:
        super().__init__(X, y, [f"x{j}" for j in range(X.shape[1])])
        cuts = np.random.default_rng(1).choice(np.arange(1, y.size), count - 1, replace=False)
        self.ends = [0, *np.sort(cuts).tolist(), y.size]

    def parts(self) -> list[Part]:
        names = self.feature_names
        return [
            Part(int(a), (self._X[a:b], self._y[a:b], names, "y"))
            for a, b in zip(self.ends[:-1], self.ends[1:], strict=True)
        ]

    def blocks(self, rows: int = 7) -> Any:
        return super().blocks(7)


def truth(rows: Any) -> tuple[Any, Any, Any]:
    """A row, the mean less that row, and the scatter: even long doubles need an origin nearby."""
    wide = rows.astype(np.longdouble) - rows[0].astype(np.longdouble)
    mean = wide.mean(axis=0)
    return rows[0], mean, (wide - mean).T @ (wide - mean)


def assert_accurate(found: FoldMoments, folds: Folds, joint: Array) -> None:
    label = folds.of_rows(0, folds.n)
    for j in range(folds.k):
        for part, rows in (
            (found.folds[j], joint[label == j]),
            (found.without(j), joint[label != j]),
        ):
            origin, mean, scatter = truth(rows)
            spread = np.sqrt(np.diag(scatter))
            assert part.n == rows.shape[0]
            off = np.abs(part.scatter - scatter) / np.outer(spread, spread)
            assert float(off.max()) < 1e-12
            # means to 1e-12 of the spread, which 16 digits beside an offset of 1e8 do not hold
            off = np.abs((part.mean.astype(np.longdouble) - origin) + part.tail - mean)
            assert float((off / (spread / np.sqrt(part.n))).max()) < 1e-12
    np.testing.assert_array_equal(found.low, joint.min(axis=0))
    np.testing.assert_array_equal(found.high, joint.max(axis=0))


@pytest.mark.parametrize(("count", "k"), [(1, 2), (1, 5), (7, 3), (64, 10)])
@pytest.mark.parametrize("seed", [0, 1])
def test_as_accurate_as_long_doubles(count: int, k: int, seed: int) -> None:
    X, y = ugly(seed=seed)
    folds, read = hashed_folds(k, y.size, seed), list[int]()
    found = fold_moments(Parted(X, y, count), folds, lambda i, n: read.append(i))
    assert_accurate(found, folds, np.column_stack([X, y]))
    assert len(read) == (count if count > 1 else 572)
    assert sorted(read)[-1] == y.size


def test_the_order_in_which_parts_come_changes_no_bit(client: Any) -> None:
    X, y = ugly()
    folds, source = hashed_folds(5, y.size, 2), Parted(X, y, 37)
    expected = fold_moments(source, folds)
    read: list[int] = []
    with parallel_config("dask", client=client):
        there = fold_moments(source, folds, lambda i, n: read.append(i))
    assert read[-1] == y.size
    for found in (fold_moments(source, folds, n_jobs=2), there):
        for one, two in zip(found.folds, expected.folds, strict=True):
            for name in ("n", "mean", "tail", "scatter"):
                np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


# ------------------------------------------------------------------------------ folds by a hash


def test_a_hash_gives_even_folds_that_depend_on_the_row_alone() -> None:
    n, k = 100_000, 7
    folds = hashed_folds(k, n, 5)
    label = folds.of_rows(0, n)
    sizes = np.bincount(label, minlength=k)
    assert np.abs(sizes - n / k).max() < 5.0 * np.sqrt(n / k)
    for a, b in ((0, 1), (99, 2000), (77_777, n)):
        np.testing.assert_array_equal(folds.of_rows(a, b), label[a:b])
    other = folds.again(6).of_rows(0, n)
    assert abs(float((other == label).mean()) - 1.0 / k) < 0.01
    lagged = np.bincount(label[:-1] * k + label[1:], minlength=k * k)  # neighbours independent
    assert np.abs(lagged - n / k**2).max() < 5.0 * np.sqrt(n / k**2)
    np.testing.assert_array_equal(hashed_folds(k, n, 5).of_rows(0, n), label)


def test_folds_of_a_hash_are_refused_where_one_is_empty() -> None:
    with pytest.raises(InputError, match="one is empty"):
        hashed_folds(3, 9, 0).counted(np.array([4, 5, 0]))
    for k in (1, 10):
        with pytest.raises(InputError, match="at least 2 folds"):
            hashed_folds(k, 9, 0)
    assert [fold_count(cv, 20) for cv in (5, "5", "size:4", "loo")] == [5, 5, 5, 20]
    assert [fold_count(cv, 20) for cv in (True, "x", "size:", [1], "-1")] == [None] * 5


# ------------------------------------------------------------------------------ folders of Parquet


def write(folder: Path, X: Array, y: Array, count: int) -> Path:
    folder.mkdir()
    names = [*(f"x{j}" for j in range(X.shape[1])), "y"]
    for i, rows in enumerate(np.array_split(np.column_stack([X, y]), count)):
        table = pa.table(dict(zip(names, rows.T, strict=True)))
        parquet.write_table(table, folder / f"part-{i:03}.parquet")
    (folder / "_SUCCESS").touch()
    return folder


def plain(n: int = 600, p: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, X[:, 0] - X[:, 2] + rng.standard_normal(n)


def test_a_folder_is_one_table(tmp_path: Path) -> None:
    X, y = plain()
    source = open_table(write(tmp_path / "t", X, y, 7))
    assert (source.name, source.n, source.p) == ("t", 600, 5)
    for found, expected in zip(source.load(), (X, y), strict=True):
        np.testing.assert_array_equal(found, expected)
    parts = source.parts()
    assert [part.start for part in parts] == [0, 86, 172, 258, 344, 430, 515]
    for part in parts:
        A, b = part.rows.load()
        np.testing.assert_array_equal(A, X[part.start : part.start + part.rows.n])
        np.testing.assert_array_equal(b, y[part.start : part.start + part.rows.n])


def test_text_columns_have_the_levels_of_all_files(tmp_path: Path) -> None:
    for i, words in enumerate((["a", "b"], ["c", "a"])):
        table = pa.table({"w": words, "y": [1.0 * i, 2.0]})
        parquet.write_table(table, tmp_path / f"{i}.parquet")
    source = open_table(tmp_path, one_hot=True)
    assert source.feature_names == ["w=a", "w=b", "w=c"]
    X = np.vstack([part.rows.load()[0] for part in source.parts()])
    np.testing.assert_array_equal(X, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])


def test_folders_that_are_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without Parquet files"):
        open_table(tmp_path)
    parquet.write_table(pa.table({"a": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table({"b": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1\.parquet has other columns"):
        open_table(tmp_path)
    parquet.write_table(pa.table({"a": ["u", "v"], "y": [1.0, 2.0]}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match="'a' is numeric in one file"):
        open_table(tmp_path)
    (tmp_path / "1.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"1.parquet: not a readable Parquet file"):
        open_table(tmp_path)


def test_a_large_folder_is_cross_validated_from_moments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Any, capsys: Any
) -> None:
    X, y = plain()
    folder = write(tmp_path / "t", X, y, 7)
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", 0)
    said: list[str] = []
    found = pipeline.prepare(open_table(folder), "4", Protocol(), seed=3, announce=said.append)
    assert isinstance(found.data, MomentFolds)
    assert said == [pipeline.reading_plan(open_table(folder), 4, 1)]
    assert "one pass over 2.88e-05 GB of numbers in 7 tasks, 1 at a time" in said[0]
    label = hashed_folds(4, 600, 3).of_rows(0, 600)
    pairs = [(np.flatnonzero(label != j), np.flatnonzero(label == j)) for j in range(4)]
    np.testing.assert_array_equal(found.data.folds.sizes, np.bincount(label))
    assert found.data.fold_weight.sum() == 600
    gammas, taus = [0.1, 10.0], list(range(1, 6))
    here = cross_validate(found.data, gammas, taus)
    expected = SparseRidgeCV(cv=pairs, gammas=gammas, rule="minimum").fit(X, y)
    np.testing.assert_allclose(here.table("cv_error"), expected.surface_["cv_error"], rtol=1e-9)
    assert here.complete
    # another partition is another hash, and another pass
    again = found.data.with_folds(found.data.folds.again(9))
    assert again.folds.sizes.sum() == 600
    assert (again.folds.sizes != found.data.folds.sizes).any()
    options = ["--folds", "4", "--gamma", "0.1,10", "--json"]
    outputs = []
    for name, how in (("a", {}), ("b", {"backend": "dask", "client": client})):
        out = tmp_path / name
        with parallel_config(**how):
            assert main(["cv", str(folder), *options, str(out)]) == 0
        outputs.append([line for line in out.read_text().splitlines() if "seconds" not in line])
    assert outputs[0] == outputs[1]
    assert "2 at a time" in capsys.readouterr().err


# ------------------------------------------------------------------------------ Dask collections


def collections(X: Array, y: Array) -> list[tuple[Any, Any]]:
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")).assign(price=y), npartitions=7)
    return [
        (da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=250)),
        (da.from_array(X, chunks=(100, 2)), y),
        (frame[list("abcde")], frame["price"]),
        (frame[list("abcde")].to_dask_array(), frame["price"].to_dask_array()),  # unknown chunks
    ]


@pytest.mark.parametrize("number", range(4))
def test_dask_collections(number: int, monkeypatch: pytest.MonkeyPatch, client: Any) -> None:
    X, y = plain()
    A, b = collections(X, y)[number]
    expected = SparseRidgeCV(gammas=[0.1, 10.0], cv=4).fit(X, y)
    small = SparseRidgeCV(gammas=[0.1, 10.0], cv=4).fit(A, b)  # fits in memory: the same folds
    np.testing.assert_array_equal(small.coef_, expected.coef_)
    assert small.rule_ == "minimum"
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", 0)
    large = SparseRidgeCV(gammas=[0.1, 10.0], cv=4).fit(A, b)
    with parallel_config("dask", client=client):
        there = SparseRidgeCV(gammas=[0.1, 10.0], cv=4).fit(A, b)
    label = hashed_folds(4, 600, 0).of_rows(0, 600)
    pairs = [(np.flatnonzero(label != j), np.flatnonzero(label == j)) for j in range(4)]
    rows = SparseRidgeCV(gammas=[0.1, 10.0], cv=pairs, rule="minimum").fit(X, y)
    np.testing.assert_allclose(large.coef_, rows.coef_, rtol=1e-9)
    np.testing.assert_array_equal(there.coef_, large.coef_)
    np.testing.assert_allclose(large.cv_error_, rows.cv_error_, rtol=1e-9)
    assert large.n_features_in_ == 5
    if number == 2:
        assert large.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_allclose(
        large.predict(X[:3] if number != 2 else A.head(3)), rows.predict(X[:3])
    )


@pytest.mark.parametrize("limit", [0, 1e9])
def test_collections_that_the_cluster_holds(
    limit: float, monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    X, y = plain()
    A, b = collections(X, y)[0]
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", limit)
    expected = SparseRidgeCV(gammas=[1.0], cv=4).fit(A, b)
    held = client.persist([A, b])
    with client.as_current(), parallel_config("dask"):
        found = SparseRidgeCV(gammas=[1.0], cv=4).fit(*held)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_lazy_rows_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = plain()
    A, b = collections(X, y)[0]
    model = SparseRidgeCV(gammas=[1.0])
    with pytest.raises(InputError, match="X has 600 rows and y 599"):
        model.fit(A, b[:-1])
    with pytest.raises(InputError, match="sample_weight and groups"):
        model.fit(A, b, sample_weight=np.ones(600))
    with pytest.raises(InputError, match="1 dimensions"):
        model.fit(A[:, 0], b)
    X[317, 1] = np.inf
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", 0)
    with pytest.raises(InputError, match=r"'x1'.*318"):
        model.fit(collections(X, y)[0][0], b)


@pytest.mark.parametrize("limit", [0, 1e9])
def test_dask_values_that_are_no_numbers(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", limit)
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, y = plain()
    (A, b), _, (frame, price), _ = collections(X, y)
    pd = pytest.importorskip("pandas")
    words, column = np.where(y > 0, "up", "down"), pd.Series(y, name="price", dtype="Float64")
    column[13] = pd.NA
    hole = dd.from_pandas(column, npartitions=3)
    cases: list[tuple[Any, Any, str]] = [
        (A + 1j, b, "X must hold real numbers, not complex128"),
        (A, b * 1j, "y must hold real numbers, not complex128"),
        (A, y + 1j, "y must hold real numbers, not complex128"),
        (A, words, "y must hold real numbers, not <U4"),
        (A, words.astype(object), "could not convert string to float: '(up|down)'"),
        (A, da.from_array(words.astype(object), chunks=100), "could not convert string to float"),
        (frame, dd.from_pandas(pd.Series(words), npartitions=3), "y must hold real numbers, not "),
        (frame, price.to_frame(), "y, a single column, .*: y has 2 dimensions"),
        (frame, y[:, None], "y, a single column, .*: y has 2 dimensions"),
        (frame["a"], price, "X has 1 dimensions"),
        (A, hole, "missing value in column 'price', data row 14"),
        (frame.assign(a=hole), price, "missing value in column 'a', data row 14"),
    ]
    for first, second, words_of_error in cases:
        with pytest.raises(InputError, match=words_of_error) as caught:
            SparseRidgeCV(gammas=[1.0]).fit(first, second)
        assert "\n" not in str(caught.value)


def test_a_chunk_of_another_length_than_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    da = pytest.importorskip("dask.array")
    X, y = plain()
    lying = [da.from_array(X[:300]), da.from_array(X[300:590]).map_blocks(lambda x: x)]
    lying[1] = da.Array(lying[1].dask, lying[1].name, ((300,), (5,)), dtype=float)
    targets = [da.from_array(y[:300]), da.from_array(y[300:590]).map_blocks(lambda x: x)]
    targets[1] = da.Array(targets[1].dask, targets[1].name, ((300,),), dtype=float)
    for limit in (0, 1e9):
        monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", limit)
        with pytest.raises(InputError, match="rows when it was opened"):
            SparseRidgeCV(gammas=[1.0]).fit(da.concatenate(lying), da.concatenate(targets))


class ByFirstColumn:
    """A user's splitter, whose folds depend on X."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        order = np.argsort(np.asarray(X)[:, 0])
        for part in np.array_split(order, 3):
            yield np.setdiff1d(order, part), part


def test_splitters_see_the_rows_that_dask_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    splitting = pytest.importorskip("sklearn.model_selection")
    X, y = plain()
    y = np.round(y > 0.0)
    A, b = collections(X, y)[0]
    drawn = splitting.StratifiedShuffleSplit(3, random_state=0)
    looking = [splitting.StratifiedKFold(3), drawn, ByFirstColumn()]
    repeated = splitting.RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    counting = [splitting.TimeSeriesSplit(3), splitting.KFold(3), repeated]
    for splitter in looking + counting:
        model = SparseRidgeCV(cv=splitter, gammas=[1.0], rule="minimum")
        expected = model.fit(X, y).folds_
        for limit in (1e9, 0):
            monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", limit)
            if not limit and splitter in looking:
                with pytest.raises(InputError, match="the splitter looks at X or y"):
                    model.fit(A, b)
                continue
            found = model.fit(A, b).folds_
            assert found.k == expected.k
            for j in range(found.k):
                for one, two in zip(found.split(j), expected.split(j), strict=True):
                    np.testing.assert_array_equal(one, two)


def test_stability_is_refused_for_the_reason_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", 0)
    with pytest.raises(InputError, match="needs the rows in memory"):
        SparseRidgeCV(gammas=[1.0], rule="stability").fit(*collections(*plain())[0])


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "x"])
def test_a_seed_out_of_range_is_refused(seed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = np.arange(24.0).reshape(12, 2) ** 2, np.arange(12.0)
    model = SparseRidgeCV(cv=3, gammas=[1.0], random_state=seed)
    for groups in (None, np.arange(12) // 2):
        with pytest.raises(InputError, match="whole number from 0"):
            model.fit(X, y, groups=groups)
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", 0)
    with pytest.raises(InputError, match="whole number from 0"):
        pipeline.prepare(Parted(X, y, 5), "3", Protocol(), seed=seed)
