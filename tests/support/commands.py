"""Tables and calls that tests of the command line share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsecv.cli.main import main

from .tables import write_csv

Capture = pytest.CaptureFixture[str]


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
