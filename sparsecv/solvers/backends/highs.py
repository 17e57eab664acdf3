"""Outer approximation with HiGHS: the master is solved again with the cuts its solutions ask for.

HiGHS has no lazy constraints, so every round is a new search. A round therefore ends with cuts at
every solution that HiGHS found on the way, and with as much time spent on growing the tree of cuts.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..core.limits import Limits
from ..core.result import Status
from .benders import MASTER_TOLERANCE, MasterResult, Oracle

# The stop flag and the clock are looked at once in so many seconds. The number is a choice.
POLL_SECONDS = 0.05
# Between two rounds of HiGHS (one search of a master each), cuts are added for as long as
# the round took. So many leaves are added between two looks at the clock. The number is a choice.
LEAVES_AT_A_TIME = 20
# HiGHS takes no larger node limit, which is a 32-bit integer.
MAX_NODES = 2**31 - 1


def solve_highs(oracle: Oracle, limits: Limits, n_jobs: int) -> MasterResult:
    """Solve masters until no 0–1 point that satisfies all cuts is better than the incumbent.

    oracle: Holds the first cuts; every support found is entered there.
    limits: Nodes are HiGHS's own, over all rounds.
    n_jobs: Not used: HiGHS shares one scheduler among all its searches, which has one thread here.
    """
    master = _Master(oracle, limits)
    bound, nodes = oracle.bound, 0
    while True:
        reached = limits.reached(nodes)
        if reached is not None:
            return MasterResult(bound, nodes, reached)
        before, target = limits.elapsed(), oracle.target
        here, spent, ended = master.run(target, nodes)
        seconds = limits.elapsed() - before
        nodes += spent
        bound = max(bound, oracle.certified(here))
        if here >= target:
            return MasterResult(bound, nodes, Status.OPTIMAL)
        entered = oracle.enter([np.flatnonzero(z > 0.5).astype(np.intp) for z in master.found])
        if ended is not None or not entered:  # Without new cuts the gap is HiGHS's tolerances.
            return MasterResult(bound, nodes, ended or Status.PRECISION)
        count, until = 0, limits.elapsed() + seconds
        while limits.elapsed() < until and count != oracle.count:
            count = oracle.count
            oracle.frontier.grow(oracle.target, count + LEAVES_AT_A_TIME, limits)


class _Master:
    """min η over 0–1 z of τ ones, η above every cut; in units of the incumbent's objective.

    ``found`` are the 0–1 points of the last search.
    """

    def __init__(self, oracle: Oracle, limits: Limits) -> None:
        import highspy

        self.status, self.oracle, self.limits = highspy.HighsModelStatus, oracle, limits
        self.p = p = oracle.form.p
        self.highs = h = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
        kinds = ("mip_feasibility", "primal_feasibility", "dual_feasibility")
        tolerances = {f"{kind}_tolerance": MASTER_TOLERANCE for kind in kinds}
        for name, value in (options | tolerances).items():
            h.setOptionValue(name, value)
        every = np.arange(p, dtype=np.int32)
        h.addVars(p + 1, np.zeros(p + 1), np.ones(p + 1))
        h.changeColsIntegrality(p, every, [highspy.HighsVarType.kInteger] * p)
        h.changeColCost(p, 1.0)
        ones = float(oracle.form.tau)
        h.addRow(ones, ones, p, every, np.ones(p))
        h.cbMipInterrupt.subscribe(self._interrupt)
        h.cbMipImprovingSolution.subscribe(self._improving)
        self.found: list[np.ndarray[Any, Any]] = []
        self.looked = 0.0

    def _load(self) -> None:
        """Write all cuts as rows, in place of the rows before."""
        p, h, old = self.p, self.highs, self.highs.getNumRow()
        if old > 1:
            h.deleteRows(old - 1, np.arange(1, old, dtype=np.int32))
        slopes, constants = self.oracle.rows()
        m = constants.size
        values = np.column_stack([slopes, np.ones(m)])
        starts = np.arange(0, values.size, p + 1, dtype=np.int32)
        columns = np.tile(np.arange(p + 1, dtype=np.int32), m)
        h.addRows(m, constants, np.full(m, np.inf), values.size, starts, columns, values.ravel())

    def run(self, target: float, nodes: int) -> tuple[float, int, Status | None]:
        """Search below ``target``: lower bound, nodes, and the limit that ended the search if any.

        The lower bound is ``target`` where no 0–1 point has a smaller objective.

        nodes: Nodes spent in earlier rounds.
        """
        h, status, scale = self.highs, self.status, self.oracle.scale
        self._load()
        self.found = []
        h.changeColBounds(self.p, 0.0, target / scale)
        remaining = self.limits.remaining()
        clock = np.inf if remaining is None else h.getRunTime() + remaining
        h.setOptionValue("time_limit", clock)
        h.setOptionValue("mip_max_nodes", self.limits.nodes_left(nodes, MAX_NODES))
        h.run()
        ended, info = h.getModelStatus(), h.getInfo()
        spent = max(int(info.mip_node_count), 1)
        if ended == status.kInfeasible:
            return target, spent, None
        bound = float(info.mip_dual_bound) * scale
        bound = min(bound, target) if np.isfinite(bound) else 0.0
        if ended == status.kOptimal:
            self.found.append(np.array(h.getSolution().col_value[: self.p]))
            return bound, spent, None
        known = {
            status.kSolutionLimit: Status.NODE_LIMIT,
            status.kTimeLimit: Status.TIME_LIMIT,
            status.kInterrupt: Status.INTERRUPTED,
        }
        limit = self.limits.reached(nodes + spent) or known.get(ended, Status.FAILED)
        return bound, spent, limit

    def _interrupt(self, event: Any) -> None:
        """End HiGHS's search if a limit is reached; HiGHS calls this function very often."""
        now = time.perf_counter()
        if now - self.looked >= POLL_SECONDS:
            self.looked = now
            if self.limits.reached(0) is not None:
                event.interrupt()

    def _improving(self, event: Any) -> None:
        """Store a better 0–1 point that HiGHS has found."""
        values = event.data_out.mip_solution  # HiGHS 1.10 gives a pointer, without slices.
        self.found.append(np.array([values[j] for j in range(self.p)]))
