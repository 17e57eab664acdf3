"""Tables and calls that tests of the command line share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparsecv.cli.main import main

Array = NDArray[np.float64]
Capture = pytest.CaptureFixture[str]


def write_csv(path: Path, X: Array, y: Array, names: list[str] | None = None) -> Path:
    names = names or [f"x{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, "y"])]
    lines += [",".join(repr(float(v)) for v in (*row, t)) for row, t in zip(X, y, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def table(n: int = 40, p: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * 10.0 ** np.arange(p) + np.arange(p)
    return X, 2.0 * X[:, 0] + X[:, 2] / 50.0 + rng.standard_normal(n) + 4.0


def hard_csv(path: Path, factor: float = 1.0) -> Path:
    """60 correlated columns and much noise: no tree ends soon."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 60))
    for j in range(1, 60):
        X[:, j] = 0.7 * X[:, j - 1] + 0.7 * X[:, j]
    y = X[:, ::4].sum(axis=1) + 8.0 * rng.standard_normal(120)
    return write_csv(path, X, factor * y)


def run_json(*arguments: str, status: int = 0) -> dict[str, Any]:
    path = Path("out.json")
    assert main([*arguments, "--json", str(path), "--quiet"]) == status
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
