"""Generalised Benders decomposition (EC.1, first paper): a master over supports, cuts from fits.

The master is an outside solver. It minimises η over 0–1 vectors z with Σz = τ, η above every cut of
f(z) = min_β ‖y − Xβ‖² + (γ/2) Σ β_i²/z_i, and asks the oracle for the cut at every support that it
finds. Before the master starts, cuts are made at the relaxations of the leaves of a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..branching.single import WORST_GAP
from ..core.limits import Limits
from ..core.result import Status
from .cuts import Cut, FrontierCuts
from .presolve import Claim, Prepared

# Before the master starts, cuts are made at the leaves of a tree that has at most so many leaves.
# The number is a choice: the master proves from any cuts.
ROOT_CUTS = 1000
# Masters are asked to close no smaller relative gap, because their tolerance times a hundred
# columns is of this size.
LEAST_GAP_RATIO = 1e-7
# Masters are asked for this feasibility of rows, integrality and duals, where the objective is
# measured in units of the incumbent's. Gurobi accepts no smaller value.
MASTER_TOLERANCE = 1e-9


class MasterResult(NamedTuple):
    """Lower bound that a master has proved over the columns given, its nodes, and how it ended."""

    bound: float
    n_nodes: int
    status: Status


class Oracle:
    """The supports evaluated so far, the cuts made, and the best support.

    ``upper`` is the objective of the best ``support``, from a fresh fit; ``bound`` is a lower
    bound; ``tol`` is the relative gap to close; ``scale`` is the objective of the first incumbent,
    which is the master's unit.
    """

    def __init__(self, ready: Prepared) -> None:
        self.form, self.support, self.bound = ready.form, ready.support, ready.bound
        # What a master's tolerances take off its bound must fit into the gap.
        lost = 2.0 * MASTER_TOLERANCE * (self.form.p + 10.0)
        self.tol = max(ready.tol - lost, LEAST_GAP_RATIO)
        self.upper = self.scale = ready.objective
        self.loss = 0.0
        self.frontier = FrontierCuts(self.form)
        self._known: dict[bytes, Cut] = {}

    @property
    def target(self) -> float:
        """A lower bound that closes the gap."""
        return self.upper * (1.0 - self.tol)

    def certified(self, bound: float, tolerance: float = MASTER_TOLERANCE) -> float:
        """A master's lower bound less what the master's tolerances may have added to the bound.

        With z_i off by ``tolerance`` for each of the p columns, and rows, duals and objective off
        by ``tolerance`` a few times, the bound is off by at most tolerance·(p + 10) units. ``loss``
        is that number relative to the incumbent's objective.
        """
        lost = tolerance * (self.form.p + 10.0) * self.scale
        self.loss = lost / self.upper if self.upper > 0.0 else 0.0
        return max(self.bound, bound - lost)

    @property
    def count(self) -> int:
        """Number of cuts."""
        return self.frontier.size + len(self._known)

    def cuts(self) -> list[Cut]:
        """Cuts at every support entered and at the leaves of the tree."""
        return [*self._known.values(), *(self._bounded(cut) for cut in self.frontier.cuts())]

    def rows(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All cuts as rows η + slopesᵀz ≥ constant in the master's unit: slopes, constants."""
        cuts = self.cuts()
        slopes = np.array([cut.slopes for cut in cuts]) / self.scale
        return slopes, np.array([cut.constant for cut in cuts]) / self.scale

    def _bounded(self, cut: Cut) -> Cut:
        """A cut weakened until its values are at most 1e9 times the first incumbent's objective.

        Masters take larger numbers for infinite.

        With c ≤ constant in place of the constant and min(slope, c) in place of every slope, the
        cut still holds: where any slope was reduced and z_i = 1, the cut says no more than f ≥ 0.
        """
        most = min(cut.constant, 1e9 * self.scale)
        return Cut(most, np.minimum(cut.slopes, max(most, 0.0)))

    def enter(self, supports: Sequence[NDArray[np.intp]]) -> bool:
        """Evaluate supports and cut at each; whether any support was new."""
        before = len(self._known)
        for support in supports:
            self.at(support)
        return len(self._known) > before

    def at_point(self, z: Any) -> Cut:
        """The cut at the support that a master's 0–1 point is, up to tolerances."""
        return self.at(np.flatnonzero(np.asarray(z) > 0.5).astype(np.intp))

    def at(self, support: NDArray[np.intp]) -> Cut:
        """The cut at a support, which is evaluated if it is new.

        Masters also ask about points of more than τ ones; such points are no incumbents.

        support: Increasing positions among the columns of the form.
        """
        key = support.tobytes()
        if key not in self._known:
            self._known[key] = self._bounded(self.form.at_support(support))
            if support.size > self.form.tau:
                return self._known[key]
            objective = self.form.problem.objective(self.form.columns[support])
            if objective < self.upper:
                self.upper, self.support = objective, support
        return self._known[key]


Master = Callable[[Oracle, Limits, int], MasterResult]


def approximated(master: Master, ready: Prepared, n_jobs: int, root_cuts: int = ROOT_CUTS) -> Claim:
    """Solve eq. (1), first paper, by outer approximation of f(z).

    The lower bound holds whenever the master stops; no relative gap below 1e-7 is proved.
    """
    oracle = Oracle(ready)
    oracle.frontier.grow(oracle.target, root_cuts, ready.limits)
    oracle.enter([ready.support])
    bound, n_nodes, status = master(oracle, ready.limits, n_jobs)
    precision = max(WORST_GAP, 2.0 * (oracle.loss + LEAST_GAP_RATIO))
    return Claim(oracle.support, bound, status, n_nodes, precision, oracle.form.margin)
