"""What every outer-approximation master asks: cuts at its solutions, and whether it may stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.result import Status
from .cuts import Cut, CutForm, FrontierCuts

PRECISION = 1e-7  # least relative gap a master is asked to close
LARGEST = 1e9  # value of a cut in units of the incumbent's objective
TOLERANCE = 1e-9  # of rows, integrality and duals, the objective in units of the incumbent's


@dataclass(frozen=True)
class MasterResult:
    """Lower bound proved over the form's columns, nodes, and how the master ended."""

    bound: float
    n_nodes: int
    status: Status


class Oracle:
    """Supports evaluated, cuts made, and the best support so far.

    upper: Objective of the best support known, from a fresh fit.
    support: That support, by the form's columns.
    bound: Known lower bound.
    tol: Relative gap asked for.
    """

    def __init__(
        self, form: CutForm, upper: float, support: NDArray[np.intp], bound: float, tol: float
    ) -> None:
        self.form, self.upper, self.support, self.bound = form, upper, support, bound
        # what a master's tolerances take off its bound must fit into the gap
        self.tol = max(tol - 2.0 * TOLERANCE * (form.p + 10.0), PRECISION)
        self.scale, self.loss = upper, 0.0
        self.frontier = FrontierCuts(form)
        self._known: dict[bytes, Cut] = {}

    @property
    def target(self) -> float:
        """A lower bound that is as good as the incumbent."""
        return self.upper * (1.0 - self.tol)

    def certified(self, bound: float, tolerance: float = TOLERANCE) -> float:
        """A master's bound less what its tolerances may be worth, in units of the first incumbent.

        ``loss`` remembers it, relative to the incumbent.

        tolerance: Of the master's constraints and integrality.
        """
        lost = tolerance * (self.form.p + 10.0) * self.scale
        self.loss = lost / self.upper if self.upper > 0.0 else 0.0
        return max(self.bound, bound - lost)

    @property
    def count(self) -> int:
        """Number of cuts."""
        return self.frontier.size + len(self._known)

    def cuts(self) -> list[Cut]:
        """Cuts at every support entered and at the frontier."""
        return [*self._known.values(), *(self._bounded(cut) for cut in self.frontier.cuts())]

    def _bounded(self, cut: Cut) -> Cut:
        """The cut, at most ``LARGEST`` times the incumbent: masters take more for infinite.

        As f ≥ 0 it stays one when neither constant nor slopes count for more.
        """
        most = min(cut.constant, LARGEST * self.scale)
        return Cut(most, np.minimum(cut.slopes, max(most, 0.0)))

    def grow(self, most: int, limits: Limits) -> None:
        """Refine the frontier to at most so many cuts."""
        self.frontier.grow(self.target, most, limits)

    def enter(self, supports: Sequence[NDArray[np.intp]]) -> bool:
        """Evaluate supports and cut there; whether any was new.

        supports: By position among the columns of the form.
        """
        before = len(self._known)
        for support in supports:
            self.at(support)
        return len(self._known) > before

    def at(self, support: NDArray[np.intp]) -> Cut:
        """The cut at a support, which is evaluated if it is new.

        Solvers ask about points that have too many ones, too: those are no incumbents.

        support: Increasing positions among the columns of the form.
        """
        key = support.tobytes()
        if key not in self._known:
            self._known[key] = self._bounded(self.form.at_support(support))
            if support.size > self.form.picks:
                return self._known[key]
            objective = self.form.problem.objective(self.form.columns[support])
            if objective < self.upper:
                self.upper, self.support = objective, support
        return self._known[key]
