"""Columns that must be in or out are taken from a problem, which then has no constraints left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .independence import DEPENDENT_SHARE
from .problem import SparseRidgeProblem
from .result import Proof

Support = NDArray[np.intp]


class Reduced(NamedTuple):
    """A problem without constraints on the columns that are free to be in or out.

    problem: Its τ is what the included columns leave, at least 1.
    kept, included: The columns of the given problem that are free, and those that must be in.
    """

    problem: SparseRidgeProblem
    kept: Support
    included: Support

    def support(self, inner: Support) -> Support:
        """The support of the given problem that a support of the free columns stands for."""
        return np.sort(np.append(self.kept[inner], self.included))

    def inside(self, support: Support) -> Support:
        """The free columns of a support of the given problem."""
        return np.flatnonzero(np.isin(self.kept, support))

    def proof(self, whole: SparseRidgeProblem, found: Proof) -> Proof:
        """What a proof on the free columns says of the given problem."""
        support = self.support(found.support)
        objective = whole.objective(support)
        bound = min(found.lower_bound, objective)
        return Proof(support, objective, bound, found.status, found.work)


def reduced(problem: SparseRidgeProblem) -> Reduced | None:
    """The problem without constraints, where only single columns must be in or out; else None.

    An included column x_j with its penalty is the column (x_j, √(γ/2) e_j) of a longer table.
    Projecting such columns out of the others and of y leaves the objective as a function of the
    other coefficients, each with its own penalty. None as well where included columns take all of τ
    or no other column is left.
    """
    asked = problem.constraints
    if asked.plain or asked.grouped or asked.bounded or asked.parents.size:
        return None
    included = np.flatnonzero(asked.include[asked.unit])
    kept = np.flatnonzero(~(asked.include | asked.exclude)[asked.unit])
    if kept.size == 0 or problem.tau <= included.size:
        return None
    rows, k = problem.triangle, included.size
    table = np.vstack([rows, np.zeros((k, problem.p + 1))])
    table[rows.shape[0] + np.arange(k), included] = np.sqrt(problem.given_gamma / 2.0)
    lengths = np.linalg.norm(table, axis=0)
    lengths[lengths == 0.0] = 1.0
    left, least = table[:, np.append(kept, problem.p)], 1.0
    if k:
        basis, values, _ = np.linalg.svd(
            table[:, included] / lengths[included], full_matrices=False
        )
        independent = values > DEPENDENT_SHARE * values[0]
        basis, least = basis[:, independent], float(values[independent].min(initial=1.0))
        for _ in range(2):  # The second projection takes off what rounding has left of the first.
            left = left - basis @ (basis.T @ left)
    inner = SparseRidgeProblem.from_rows(
        np.ascontiguousarray(left), gamma=problem.given_gamma, tau=problem.tau - k
    )
    inner.n = None if problem.n is None else problem.n + k
    inner.data.lost = max(inner.data.lost, problem.data.lost)
    before = lengths.copy()
    if problem.data.before is not None:  # Unpenalised columns were projected out already.
        before = np.maximum(before, problem.data.before)
    if k:  # What included columns are off by spreads to the others.
        worst = float((before / lengths)[included].max()) / max(least, 1e-300)
        inner.data.before = before[np.append(kept, problem.p)] * max(worst, 1.0)
    elif problem.data.before is not None:
        inner.data.before = before[np.append(kept, problem.p)]
    return Reduced(inner, kept, included)
