"""Outer approximation with HiGHS: the master is solved again with the cuts its solutions ask for.

HiGHS has no lazy constraints, so every round is a new search; each must pay, by cuts at every
solution it found on the way, and by as much time spent on refining the frontier of cuts.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.result import Status
from .oracle import TOLERANCE, MasterResult, Oracle

LOOK = 0.05  # seconds between two looks at the stop flag
MOST_NODES = 2**31 - 1


def solve_highs(oracle: Oracle, limits: Limits, n_jobs: int) -> MasterResult:
    """Find better supports until no 0–1 point under all cuts is better than the incumbent.

    oracle: Holds the first cuts; every support found is entered there.
    limits: Nodes are HiGHS's own, over all rounds.
    n_jobs: Not used: HiGHS shares one scheduler among all its searches, which has one thread here.
    """
    master = _Master(oracle)
    bound, nodes = oracle.bound, 0
    while True:
        reached = limits.reached(nodes)
        if reached is not None:
            return MasterResult(bound, nodes, reached)
        before = limits.elapsed()
        target = oracle.target
        found, here, spent, ended = master.run(target, limits, nodes)
        seconds = limits.elapsed() - before
        nodes += spent
        bound = max(bound, oracle.certified(here))
        if here >= target:
            return MasterResult(bound, nodes, Status.OPTIMAL)
        news = oracle.enter(found)
        if ended is not None:
            return MasterResult(bound, nodes, ended)
        if not news:  # the cuts hold there already: its tolerances are all there is
            return MasterResult(bound, nodes, Status.PRECISION)
        count, until = 0, limits.elapsed() + seconds
        while limits.elapsed() < until and count != oracle.count:
            count = oracle.count
            oracle.grow(count + 20, limits)


class _Master:
    """min η over 0–1 z of τ ones, η above every cut; in units of the incumbent's objective."""

    def __init__(self, oracle: Oracle) -> None:
        import highspy

        self.hp, self.oracle = highspy, oracle
        p = oracle.form.p
        self.p, self.scale = p, oracle.upper
        self.highs = h = highspy.Highs()
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", 0.0),
            ("mip_feasibility_tolerance", TOLERANCE),
            ("primal_feasibility_tolerance", TOLERANCE),
            ("dual_feasibility_tolerance", TOLERANCE),
        ):
            h.setOptionValue(name, value)
        every = np.arange(p, dtype=np.int32)
        h.addVars(p + 1, np.zeros(p + 1), np.ones(p + 1))
        h.changeColsIntegrality(p, every, [highspy.HighsVarType.kInteger] * p)
        h.changeColCost(p, 1.0)
        picks = float(oracle.form.picks)
        h.addRow(picks, picks, p, every, np.ones(p))
        h.cbMipInterrupt.subscribe(self._interrupt)
        h.cbMipImprovingSolution.subscribe(self._improving)
        self.found: list[NDArray[np.float64]] = []
        self.limits: Limits | None = None
        self.looked = 0.0

    def _load(self) -> None:
        """Rows η + slopesᵀz ≥ constant, in place of the ones before."""
        p, scale, h = self.p, self.scale, self.highs
        cuts = self.oracle.cuts()
        m, old = len(cuts), h.getNumRow()
        if old > 1:
            h.deleteRows(old - 1, np.arange(1, old, dtype=np.int32))
        values = np.column_stack([np.array([cut.slopes for cut in cuts]) / scale, np.ones(m)])
        h.addRows(
            m,
            np.array([cut.constant for cut in cuts]) / scale,
            np.full(m, np.inf),
            values.size,
            np.arange(0, values.size, p + 1, dtype=np.int32),
            np.tile(np.arange(p + 1, dtype=np.int32), m),
            values.ravel(),
        )

    def run(
        self, target: float, limits: Limits, nodes: int
    ) -> tuple[list[NDArray[np.intp]], float, int, Status | None]:
        """One search below ``target``: supports found, bound, nodes, and the limit that ended it.

        The bound is ``target`` where there is nothing below.
        """
        h, status = self.highs, self.hp.HighsModelStatus
        self._load()
        self.limits, self.found = limits, []
        h.changeColBounds(self.p, 0.0, target / self.scale)
        remaining = limits.remaining()
        clock = np.inf if remaining is None else h.getRunTime() + remaining
        h.setOptionValue("time_limit", clock)
        h.setOptionValue("mip_max_nodes", limits.nodes_left(nodes, MOST_NODES))
        h.run()
        ended, info = h.getModelStatus(), h.getInfo()
        spent = max(int(info.mip_node_count), 1)
        if ended == status.kInfeasible:
            return [], target, spent, None
        if ended == status.kOptimal:
            self.found.append(np.array(h.getSolution().col_value[: self.p]))
        bound = float(info.mip_dual_bound) * self.scale
        found = [np.flatnonzero(z > 0.5).astype(np.intp) for z in self.found]
        limit = None
        if ended != status.kOptimal:
            limit = limits.reached(nodes + spent) or _limit(ended, status)
        return found, min(bound, target) if np.isfinite(bound) else 0.0, spent, limit

    def _interrupt(self, event: Any) -> None:
        now = time.perf_counter()
        if now - self.looked < LOOK or self.limits is None:
            return
        self.looked = now
        if self.limits.reached(0) is not None:
            event.interrupt()

    def _improving(self, event: Any) -> None:
        values = event.data_out.mip_solution  # of HiGHS 1.10: a pointer that takes no slices
        self.found.append(np.array([values[j] for j in range(self.p)]))


def _limit(ended: Any, status: Any) -> Status:
    if ended == status.kSolutionLimit:
        return Status.NODE_LIMIT
    if ended == status.kTimeLimit:
        return Status.TIME_LIMIT
    return Status.INTERRUPTED if ended == status.kInterrupt else Status.FAILED
