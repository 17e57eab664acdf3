"""Outer approximation with HiGHS, which has no lazy constraints: every round is a new search."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.result import Status
from ..kernels.linalg import Array
from .optional_dependencies import quiet_stdout
from .oracle import MASTER_TOLERANCE, Claim, Oracle, in_rounds


def solve_highs(oracle: Oracle) -> Claim:
    """Search masters in rounds.

    Nodes are HiGHS's own, over all rounds. HiGHS shares one scheduler among all its searches; the
    scheduler has one thread here, whatever ``oracle.n_jobs`` is.
    """
    return in_rounds(oracle, _Master(oracle).run)


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
        """Search once, as :func:`in_rounds` asks for it."""
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
