"""Tables and calls that tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .inside import main
from .problems import many_alike
from .tables import write_csv

Capture = pytest.CaptureFixture[str]


def hard_csv(path: Path, factor: float = 1.0) -> Path:
    """100 correlated columns and much noise: after a minute a tree of size 20 has a gap of 17 %."""
    X, y = many_alike(8.0, 100)
    return write_csv(path, X, factor * y)


def complaint(capsys: Capture, arguments: list[str], words: list[str]) -> None:
    """The command is refused with one line that holds the words."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("sparsecv: error: ")
    for word in words:
        assert word in err, f"{word!r} not in {err!r}"


def run_json(
    *arguments: str | Path, status: int = 0, quiet: bool = True, folder: Path = Path()
) -> dict[str, Any]:
    path, silent = folder / "out.json", ["--quiet"] if quiet else []
    assert main([*map(str, arguments), "--json", str(path), *silent]) == status
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def check_model(said: dict[str, Any], model: Any, names: Sequence[str]) -> None:
    """The model of a document is a fitted one."""
    assert said["support"] == [names[c] for c in model.support_]
    np.testing.assert_allclose(said["coef"], model.coef_[model.support_], rtol=1e-9)
    np.testing.assert_allclose(said["intercept"], model.intercept_, rtol=1e-9)
