"""What all sources share, and arrays in memory."""

import numpy as np
import pytest
from support.tables import NAMES, check, table

from sparsecv.errors import InputError
from sparsecv.tables.columns import joined
from sparsecv.tables.table import Table

# ---------------------------------------------------------------------------- in memory


def test_array_source() -> None:
    values = table()
    source = Table(values[:, :-1], values[:, -1], NAMES, "resp", "mine")
    check(source, values, NAMES, "resp")
    assert source.name == "mine"
    assert Table([[1, 2], [3, 4]], [True, False], ["a", "b"]).load()[1].tolist() == [1.0, 0.0]


def test_array_source_faults() -> None:
    X, y = table()[:, :-1], table()[:, -1]
    with pytest.raises(InputError, match="duplicate column name 'a'"):
        Table(X, y, ["a", "b", "c"], "a")
    with pytest.raises(InputError, match="only 1 data row"):
        Table(X[:1], y[:1], NAMES)
    with pytest.raises(InputError, match="no feature columns"):
        Table(X[:, :0], y, [])
    with pytest.raises(InputError, match="arrays of numbers"):
        Table([["a", "b"]] * 2, [1, 2], ["a", "b"])
    hole = X.copy()
    hole[4, 2] = np.nan
    with pytest.raises(InputError, match=r"missing value in column 'd\.e', data row 5"):
        Table(hole, y, NAMES)


def test_blocks_side_by_side() -> None:
    rows = np.random.default_rng(0).standard_normal((5, 4))
    X, y = rows[:, :3], rows[:, 3]
    for whole in ([X, y], [*rows.T], [rows[:, :2], rows[:, 2:]], [rows[:, :]]):
        assert joined(*whole) is rows
    copied = ([rows[:, :], y], [X, X[:, 0]], [y, X], [X], [X[:4], y[:4]], [X.copy(), y.copy()])
    for blocks in copied:
        found = joined(*blocks)
        assert found is not rows
        np.testing.assert_array_equal(found, np.column_stack(blocks))
