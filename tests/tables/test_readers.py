"""What all sources share, and arrays in memory."""

import numpy as np
from support.inside import joined


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
