"""What a size counts: coefficients, where a tree of all sizes proves the table, or groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..solvers.core.column_rules import ResolvedRules
from ..solvers.core.plan import one_tree_proves
from .design import Array, Design


def in_coefficients(
    design: Design, asked: ResolvedRules, X: Array, y: Array, weights: Array | None
) -> Design:
    """The design with sizes that count coefficients, where it asks for them and trees serve it.

    A unit counts the rank of its centred columns over all rows, and at least 1: a number counts 1,
    and a factor of L levels L − 1. Folds count in the same way, be a level missing there or not.
    Beyond ``TREE_ONLY`` units, and where a tree has no room, sizes count groups.

    asked: What the design asks of the columns.
    X, y, weights: The raw rows of the design, shape (n, p_raw), (n,) and (n,) or None.
    """
    rules = design.constraints
    if not (asked.in_coefficients and rules.grouped and one_tree_proves(rules)):
        return design
    problem = design.problem(X, y, weights)
    if not problem.holds_tree():
        return design
    own, each = asked.constraints, problem.data.ranks(rules.columns)
    cost = np.ones(own.n_units, dtype=np.intp)
    cost[own.unit[design.kept]] = np.maximum(each, 1)[rules.unit]
    return replace(design, asked=asked._replace(constraints=replace(own, cost=cost)))
