"""Tables and checks that the tests of the readers share."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsecv.errors import InputError

from .inside import Table, resolve

Array = NDArray[np.float64]
NAMES = ["a", "b c", "d.e"]
NAMES_OF_FIVE = ["age", "b c", "größe", "x_3", "last"]


def real_table(name: str) -> Table:
    """A data set; a test skips without the folder SPARSECV_DATA, and fails without the file there.

    The papers' design of the diabetes data, diabetes11, is the folder's file diabetes.csv.
    """
    folder = os.environ.get("SPARSECV_DATA")
    if name not in ("diabetes", "synthetic") and not folder:
        pytest.skip("SPARSECV_DATA names no folder with the papers' data sets")
    return resolve(f"{folder}/processed/diabetes.csv" if name == "diabetes11" else name)


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


def table(n: int = 50, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p + 1)) * 10.0 ** np.arange(p + 1)


def five_columns(n: int = 40, p: int = 5, seed: int = 0) -> tuple[Array, Array]:
    """Columns of very different lengths, of which the first and the fourth matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** np.arange(-1.0, p - 1.0) + np.arange(p)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, 3.0 * scaled[:, 0] - 2.0 * scaled[:, 3] + rng.standard_normal(n) + 7.0


def growing_columns(n: int = 40, p: int = 5) -> tuple[Array, Array]:
    """Columns each ten times as long as the one before, of which the first and third matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * 10.0 ** np.arange(p) + np.arange(p)
    return X, 2.0 * X[:, 0] + X[:, 2] / 50.0 + rng.standard_normal(n) + 4.0


def csv_text(values: np.ndarray, mark: str = ",", point: str = ".") -> str:
    header = mark.join([*NAMES, "resp"])
    lines = [mark.join(repr(float(v)).replace(".", point) for v in row) for row in values]
    return "\n".join([header, *lines]) + "\n"


def refused(path: Path, *words: str, load: bool = False, **options: Any) -> None:
    """The table is refused with one line that holds the words."""

    def attempt() -> None:
        source = resolve(path, **options)
        if load:
            source.load()

    with pytest.raises(InputError) as caught:
        attempt()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, f"{word!r} not in {message!r}"


def check(source: Table, values: np.ndarray, names: list[str], target: str) -> None:
    """The table holds exactly these values."""
    assert isinstance(source, Table)
    assert (source.n, source.p) == (len(values), values.shape[1] - 1)
    assert source.feature_names == names
    assert source.target_name == target
    X, y = source.load()
    assert X.dtype == y.dtype == np.float64
    np.testing.assert_array_equal(X, values[:, :-1])
    np.testing.assert_array_equal(y, values[:, -1])


def write_csv(path: Path, X: Array, y: Array, names: list[str] | None = None) -> Path:
    names = names or [f"x{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, "y"])]
    lines += [",".join(repr(float(v)) for v in (*row, t)) for row, t in zip(X, y, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
