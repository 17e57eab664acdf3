"""Folds as rows that the problem of all rows lacks: one row each, or several."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..solvers.branching.row_deletion import LeftOut
from ..solvers.core.problem import SparseRidgeProblem
from .design import Array
from .folds import Folds, Index
from .row_table import RowTable, split_rows


class DeletedRows(NamedTuple):
    """The leave-one-out folds as rows that are deleted from the problem of all rows.

    Solved rows are rows of [X y] as problems hold them: about the means of all rows where an
    intercept is fitted, scaled, and times the roots of their weights. ``rows`` and ``targets`` are
    the solved rows, stretched so that deleting row i of them from the problem of all rows gives the
    training problem without row i of the table, intercept included. With r the residual of the
    deleted row, (factor i · r)² is the held-out squared error of row i of the table, times the
    row's weight.

    rows, targets, factor, shape (n, p), (n,) and (n,): One entry for every row of the table.
    row_of, shape (n,): The number of the row that each fold holds out.
    """

    rows: Array
    targets: Array
    factor: Array
    row_of: Index

    @classmethod
    def of(cls, table: RowTable, label: Index) -> DeletedRows:
        """The leave-one-out folds of a table without missing values.

        With an intercept refitted in every fold, deleting row i of weight w from centred data of
        weight W is a down-date by √(W/(W − w)) times the centred row, which √w weights. The caller
        sees to it that no row has nearly all of the weight.

        label, shape (n,): The fold of every row.
        """
        rows, weights = table.weighted(table.solved_rows()), table.row_weights
        factor = np.ones(len(rows))
        if table.refit_intercept:
            factor = np.sqrt(weights.sum() / (weights.sum() - weights))
            rows = factor[:, None] * rows
        return cls(*split_rows(rows), factor, np.argsort(label, kind="stable"))

    def left_out(self, problem: SparseRidgeProblem) -> LeftOut:
        """The folds as rows left out of the problem of all rows, at some γ."""
        n, order = self.row_of.size, self.row_of
        each = np.arange(n + 1, dtype=np.int64)
        return LeftOut.of(problem, self.rows[order], self.targets[order], each, n)


def left_out_folds(table: RowTable, folds: Folds, problem: SparseRidgeProblem) -> LeftOut:
    """Folds of several rows, as rows left out of the problem of all rows at some γ.

    With an intercept refitted in every fold, centring on the training means is a rank-one change:
    the sum s of a fold's centred rows is left out as one more row s/√(W − w), with the weight W of
    all rows and the weight w of the fold.

    table: No value of it is missing.
    folds: They are a partition of the rows.
    """
    assert folds.label is not None
    solved, weights = table.solved_rows(), table.row_weights
    weighted, parts = table.weighted(solved), list[Array]()
    for j in range(folds.k):
        held = folds.label == j
        part = weighted[held]
        if table.refit_intercept:
            total = weights[held] @ solved[held]
            part = np.vstack([part, total / np.sqrt(table.weight - weights[held].sum())])
        parts.append(part)
    start = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return LeftOut.of(problem, *split_rows(np.vstack(parts)), start, len(solved))
