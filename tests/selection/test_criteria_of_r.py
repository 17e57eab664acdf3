"""AIC, BIC, EBIC and Mallows' Cp of the best subsets equal numbers that R has computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.tables import real_table

from sparsecv import SparseRidge

ROOT = Path(__file__).resolve().parents[2]
# The first line says which R and which leaps, and the command that writes the file.
FILE = ROOT / "experiments" / "results" / "criteria.csv"
SIZES = {"hitters": 19, "diabetes": 10, "prostate": 8}


@pytest.mark.parametrize("name", SIZES)
def test_every_size_of_real_tables(name: str) -> None:
    """The subsets are those of leaps; its BIC differs by what all subsets of a table share."""
    if not FILE.is_file():
        pytest.skip("no results beside the tests: this is not a checkout")
    X, y = real_table(name).load()
    lines = [line.split(",") for line in FILE.read_text().splitlines()[1:]]
    heads, own = lines[0][3:], [line for line in lines[1:] if line[0] == name]
    values = dict(zip(heads, np.array([line[3:] for line in own], dtype=float).T, strict=True))
    found = SparseRidge(tau=X.shape[1], gamma=0.0).fit(X, y).criteria_
    assert len(own) == SIZES[name]
    assert [" ".join(map(str, columns)) for columns in found["columns"]] == [x[2] for x in own]
    for what in ("rss", "aic", "bic", "ebic", "cp"):
        np.testing.assert_allclose(found[what], values[what], rtol=1e-11, err_msg=what)
    shared = y.size * (np.log(2.0 * np.pi * y.var()) + 1.0) + np.log(y.size)
    np.testing.assert_allclose(found["bic"] - values["leaps_bic"], shared, rtol=1e-11)
