"""The table of bad input in docs/python-and-command.md says what is really said."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "experiments" / "scale" / "bad_input.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bad_input", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_bad_input_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    if not SCRIPT.is_file():
        pytest.skip("no experiments beside the tests: this is not a checkout")
    monkeypatch.delenv("SPARSECV_DATA", raising=False)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    made = script()
    assert len(made.CASES) >= 40
    with np.errstate():
        assert made.PAGE.read_text(encoding="utf-8").endswith(made.table())
