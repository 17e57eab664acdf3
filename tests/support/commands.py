"""Tables and calls that tests of the command line share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparsecv.cli.main import main

from .problems import many_alike
from .tables import write_csv

Capture = pytest.CaptureFixture[str]


def hard_csv(path: Path, factor: float = 1.0) -> Path:
    """60 correlated columns and much noise: no tree ends soon."""
    X, y = many_alike(8.0)
    return write_csv(path, X, factor * y)


def run_json(*arguments: str | Path, status: int = 0, quiet: bool = True) -> dict[str, Any]:
    path, silent = Path("out.json"), ["--quiet"] if quiet else []
    assert main([*map(str, arguments), "--json", str(path), *silent]) == status
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
