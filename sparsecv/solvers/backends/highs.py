"""Outer approximation with HiGHS, which has no lazy constraints: every round is a new search."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.result import Status
from ..kernels.linalg import Array
from .optional_dependencies import quiet_stdout
from .oracle import MASTER_TOLERANCE, Claim, Oracle


def solve_highs(oracle: Oracle) -> Claim:
    """Search a master over and over, with the cut that its last solution asks for.

    The search ends where no 0–1 point that satisfies all cuts is better than the incumbent. Between
    two rounds the tree of cuts is grown for as long as the round took.

    Nodes are HiGHS's own, over all rounds. HiGHS shares one scheduler among all its searches; the
    scheduler has one thread here, whatever ``oracle.n_jobs`` is.
    """
    master, limits, scale = _Master(oracle), oracle.limits, oracle.scale
    bound, nodes, status = 0.0, 0, limits.reached(0)
    while status is None:
        started, known, target = limits.elapsed(), oracle.count, oracle.target / scale
        here, spent, status, found = master.run(target, nodes)
        seconds = limits.elapsed() - started
        bound, nodes = max(bound, here), nodes + spent
        if found is not None:
            oracle.at(found)
        if here >= target:
            status = Status.OPTIMAL
        elif status is None and oracle.count == known:
            status = Status.PRECISION  # Without a new cut the gap is that of the tolerances.
        if status is None:
            oracle.grow(limits.within(seconds))
            status = limits.reached(nodes)
    return oracle.claim(bound, nodes, status, oracle.lost)


class _Master:
    """min η over 0–1 z of τ ones, η above every cut, in units of the oracle's scale."""

    def __init__(self, oracle: Oracle) -> None:
        import highspy

        self.status, self.oracle, self.p = highspy.HighsModelStatus, oracle, oracle.form.p
        with quiet_stdout():  # HiGHS 1.16 prints its name once, whatever its options are.
            self.highs = h = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
        kinds = ("mip_feasibility", "primal_feasibility", "dual_feasibility")
        tolerances = {f"{kind}_tolerance": MASTER_TOLERANCE for kind in kinds}
        for name, value in (options | tolerances).items():
            h.setOptionValue(name, value)
        p, every = self.p, np.arange(self.p, dtype=np.int32)
        h.addVars(p + 1, np.zeros(p + 1), np.ones(p + 1))
        h.changeColsIntegrality(p, every, [highspy.HighsVarType.kInteger] * p)
        h.changeColCost(p, 1.0)
        ones = float(oracle.form.tau)
        h.addRow(ones, ones, p, every, np.ones(p))
        h.cbMipInterrupt.subscribe(self._interrupt)

    def run(self, target: float, nodes: int) -> tuple[float, int, Status | None, Array | None]:
        """Search once, with all cuts as rows.

        target: The bound to reach, in units of the oracle's scale.
        nodes: Those of earlier rounds.
        Returns: A lower bound, which is ``target`` where no 0–1 point has a smaller objective; the
            nodes of this round; the limit that ended it, if any; and the solution, if any.
        """
        p, h, limits = self.p, self.highs, self.oracle.limits
        if (old := h.getNumRow()) > 1:
            h.deleteRows(old - 1, np.arange(1, old, dtype=np.int32))
        slopes, constants = self.oracle.rows()
        m = constants.size
        values = np.column_stack([slopes, np.ones(m)])
        starts = np.arange(0, values.size, p + 1, dtype=np.int32)
        columns = np.tile(np.arange(p + 1, dtype=np.int32), m)
        h.addRows(m, constants, np.full(m, np.inf), values.size, starts, columns, values.ravel())
        h.changeColBounds(p, 0.0, target)
        # HiGHS takes no larger node limit, which is a 32-bit integer.
        h.setOptionValue("mip_max_nodes", limits.nodes_left(nodes, 2**31 - 1))
        h.run()
        ended, info, solution = h.getModelStatus(), h.getInfo(), h.getSolution()
        spent = max(int(info.mip_node_count), 1)
        if ended == self.status.kInfeasible:
            return target, spent, None, None
        bound = float(info.mip_dual_bound)
        bound = min(bound, target) if np.isfinite(bound) else 0.0
        found = np.array(solution.col_value[:p]) if info.primal_solution_status == 2 else None
        if ended == self.status.kOptimal:
            return bound, spent, None, found
        full = Status.NODE_LIMIT if ended == self.status.kSolutionLimit else Status.FAILED
        return bound, spent, limits.reached(nodes + spent) or full, found

    def _interrupt(self, event: Any) -> None:
        """End HiGHS's search if the time is up or a stop is asked for; HiGHS counts its nodes."""
        if self.oracle.limits.reached(0) is not None:
            event.interrupt()
