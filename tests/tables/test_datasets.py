"""Data sets: the synthetic process, the built-ins, and look-up by name."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes as sklearn_diabetes
from support.inside import make_synthetic, resolve

from sparsecv.errors import InputError
from sparsecv.tables import synthetic


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty SPARSECV_DATA, and an empty working directory beside it."""
    place, work = tmp_path / "data", tmp_path / "work"
    (place / "processed").mkdir(parents=True)
    work.mkdir()
    monkeypatch.setenv("SPARSECV_DATA", str(place))
    monkeypatch.chdir(work)
    return place


# ---------------------------------------------------------------------------- synthetic


@pytest.mark.parametrize(("n", "p", "tau"), [(200, 20, 10), (50, 80, 5), (200, 1, 1)])
def test_training_data_are_standardised(n: int, p: int, tau: int) -> None:
    X, y, beta_true = make_synthetic(n, p, tau)
    table = np.column_stack([X, y])
    assert table.shape == (n, p + 1)
    np.testing.assert_allclose(table.mean(axis=0), 0.0, atol=1e-13)
    np.testing.assert_allclose(table.std(axis=0), 1.0, rtol=1e-13)
    assert np.count_nonzero(beta_true) == tau
    assert set(np.unique(beta_true)) <= {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("nu", [0.05, 1.0, 5.0])
def test_signal_to_noise_is_exact_before_standardising(nu: float) -> None:
    X, beta, noise, _ = synthetic._draw(np.random.default_rng(4), 90, 12, 7, 0.6, nu)
    assert np.linalg.norm(X @ beta) / np.linalg.norm(noise) == pytest.approx(nu**0.5, rel=1e-12)
    # What is handed out is this draw, standardised.
    drawn_X, drawn_y, beta_true = make_synthetic(90, 12, 7, 0.6, nu, seed=4)
    y = X @ beta + noise
    np.testing.assert_allclose(drawn_X, (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(drawn_y, (y - y.mean()) / y.std(), rtol=1e-12)
    np.testing.assert_array_equal(beta_true, beta)


def test_seed_decides() -> None:
    for seed, n_test, same in ((7, 0, True), (8, 0, False), (7, 100, True)):
        X, y, beta_true = make_synthetic(seed=7)
        other_X, other_y, other_beta = make_synthetic(seed=seed, n_test=n_test)
        assert np.array_equal(X, other_X[:200]) is same
        assert np.array_equal(y, other_y[:200]) is same
        assert np.array_equal(beta_true, other_beta) is same


def test_test_set_has_the_training_normalisation() -> None:
    n, p, tau, rho, nu, seed = 60, 8, 3, 0.5, 2.0, 11
    drawn_X, drawn_y, _ = make_synthetic(n, p, tau, rho, nu, seed, n_test=50_000)
    assert drawn_X.shape == (n + 50_000, p)
    assert drawn_y.shape == (n + 50_000,)
    X_test, y_test = drawn_X[n:], drawn_y[n:]
    X, beta, noise, scale = synthetic._draw(np.random.default_rng(seed), n, p, tau, rho, nu)
    y = X @ beta + noise
    raw = X_test * X.std(axis=0) + X.mean(axis=0)
    j = np.arange(p)
    np.testing.assert_allclose(np.cov(raw.T), rho ** abs(j[:, None] - j), atol=0.03)
    left = y_test * y.std() + y.mean() - raw @ beta
    assert left.mean() == pytest.approx(0.0, abs=4 * scale / 50_000**0.5)
    assert left.std() == pytest.approx(scale, rel=0.02)
    # With so few training rows, normalising by the test set's own moments would show.
    assert np.abs(X_test.mean(axis=0)).max() > 0.02


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("n", [1, 10.0, True]),
        ("p", [0]),
        ("tau_true", [0, 21]),
        ("rho", [1.0, -0.1, float("nan"), "0.5"]),
        ("nu", [0.0, float("inf"), None]),
        ("seed", [-1, None]),
        ("n_test", [-1]),
    ],
)
def test_arguments_are_checked(name: str, wrong: list[Any]) -> None:
    for value in wrong:
        with pytest.raises(InputError, match=f"{name} must be"):
            make_synthetic(**{name: value})


# ---------------------------------------------------------------------------- built-ins


def test_diabetes_is_unscaled() -> None:
    source = resolve("diabetes")
    X, y = source.load()
    raw = sklearn_diabetes(scaled=False)
    np.testing.assert_array_equal(X, raw.data)
    np.testing.assert_array_equal(y, raw.target)
    assert (source.n, source.p, source.name, source.target_name) == (442, 10, "diabetes", "target")
    assert source.feature_names == ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]


@pytest.mark.parametrize("stated", [None, "", "/nonexistent"])
def test_builtins_need_no_folder(stated: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if stated is None:
        monkeypatch.delenv("SPARSECV_DATA", raising=False)
    else:
        monkeypatch.setenv("SPARSECV_DATA", stated)
    for name, n, p in (("diabetes", 442, 10), ("synthetic", 200, 20)):
        source = resolve(name)
        assert (source.n, source.p, source.name) == (n, p, name)
    np.testing.assert_array_equal(resolve("synthetic").load()[0], make_synthetic()[0])
    drawn = make_synthetic(60, 5, 2, 0.3, 0.5, seed=3)
    source = resolve("synthetic:60,5,2,.3,.5,3")
    for found, made in zip(source.load(), drawn[:2], strict=True):
        np.testing.assert_array_equal(found, made)
    assert source.feature_names == [f"x{j}" for j in range(5)]
    assert resolve("synthetic:60,5,2").p == 5
    for wrong in ("synthetic:60,x", "synthetic:60,5,2,.3,.5,3,1", "synthetic:60,"):
        with pytest.raises(InputError, match="write synthetic:n,p,tau_true,rho,nu,seed"):
            resolve(wrong)
    with pytest.raises(InputError, match="tau_true must be"):
        resolve("synthetic:60,5,9")


def test_target_and_drop_work_on_builtins() -> None:
    X, y = resolve("diabetes").load()
    source = resolve("diabetes", target="bmi", drop="sex")
    assert source.target_name == "bmi"
    assert source.feature_names == ["age", "bp", "s1", "s2", "s3", "s4", "s5", "s6", "target"]
    np.testing.assert_array_equal(source.load()[1], X[:, 2])
    np.testing.assert_array_equal(source.load()[0][:, -1], y)
    np.testing.assert_array_equal(resolve("diabetes", weights="age").weights, X[:, 0])
    with pytest.raises(InputError, match=r"diabetes: no target column 'bmj'; did you mean 'bmi'"):
        resolve("diabetes", target="bmj")
    with pytest.raises(InputError, match=r"--exclude names 'sexx'.*'sex'"):
        resolve("diabetes", drop=["sexx"])


# ---------------------------------------------------------------------------- look-up

TEXT = "a,b,y\n1,2,3\n4,5,6\n7,8,10\n"


def test_folder_then_processed(folder: Path) -> None:
    (folder / "processed" / "mine.csv").write_text(TEXT)
    assert resolve("mine").n == 3
    with gzip.open(folder / "mine.csv.gz", "wt") as file:
        file.write("a,b,y\n1,2,3\n4,5,6\n7,8,10\n9,9,9\n")
    source = resolve("mine")
    assert (source.n, source.p, source.name) == (4, 2, "mine")
    (folder / "mine.csv").write_text(TEXT)
    assert resolve("mine", target="a").target_name == "a"
    assert resolve("mine").n == 3


def test_builtin_names_win(folder: Path) -> None:
    (folder / "diabetes.csv").write_text(TEXT)
    Path("diabetes").write_text(TEXT)
    assert resolve("diabetes").n == 442
    assert resolve("./diabetes").n == 3


def test_files(folder: Path) -> None:
    Path("t.csv").write_text(TEXT)
    Path("bare").write_text(TEXT)
    for data in ("t.csv", "./t.csv", Path("t.csv"), Path("t.csv").resolve(), "bare", "./bare"):
        assert resolve(data).load()[1].tolist() == [3.0, 6.0, 10.0]
    (folder / "bare.csv").write_text("a,y\n1,2\n3,4\n")
    assert resolve("bare").n == 2  # the data set comes before the file
    Path("g.csv").write_text("a,g,y\n1,u,2\n3,v,4\n5,v,6\n")
    assert resolve("g.csv").feature_names == ["a", "g=v"]
    assert resolve("g.csv", drop=["g"], target="a").feature_names == ["y"]
    with pytest.raises(InputError, match=r"no file nothere\.csv"):
        resolve("nothere.csv")
    with pytest.raises(InputError, match="is a folder"):
        resolve(str(folder))


def test_names_do_not_leave_the_folder(folder: Path) -> None:
    (folder.parent / "out.csv").write_text(TEXT)
    for name in ("../out", "", ".."):
        with pytest.raises(InputError):
            resolve(name)


def test_unknown_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "processed" / "housing.csv").write_text(TEXT)
    with pytest.raises(InputError, match=r"'housin'; did you mean 'housing'") as caught:
        resolve("housin")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="'diabetis'; did you mean 'diabetes'"):
        resolve("diabetis")
    with pytest.raises(InputError, match=r"'servo'.*no servo\.csv.*in SPARSECV_DATA"):
        resolve("servo")
    monkeypatch.setenv("SPARSECV_DATA", str(folder / "gone"))
    with pytest.raises(InputError, match=r"SPARSECV_DATA names .*gone, which is not a folder"):
        resolve("housing")
    monkeypatch.delenv("SPARSECV_DATA")
    for name in ("housing", "zzzz"):
        with pytest.raises(InputError, match=rf"'{name}'.*set SPARSECV_DATA"):
            resolve(name)
