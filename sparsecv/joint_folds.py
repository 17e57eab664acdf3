"""All folds of one τ by the tree of all rows; what it leaves open by the fold's own relaxations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .budget import Share
from .fold_data import FoldData, RowFolds
from .fold_solvers import FoldOutcome, Tell, in_parallel
from .fold_table import FoldTable, open_node_range
from .solvers import (
    BestSubsets,
    GramForm,
    JointResult,
    LeftOut,
    Limits,
    Neighbour,
    SparseRidgeProblem,
    Spectrum,
    Status,
    StopFlag,
    settle,
    solve_jointly,
    wants_gram,
    worst,
)

Support = NDArray[np.intp]


def rows_left_out(data: FoldData, problem: SparseRidgeProblem) -> LeftOut | None:
    """The folds as rows left out of one Gram matrix; None where that form does not serve."""
    if not isinstance(data, RowFolds) or not wants_gram(problem):
        return None
    return data.left_out(GramForm.of(problem))


class JointFolds:
    """Folds at one γ, solved together τ by τ, with what is still open of each.

    Parameters
    ----------
    data : FoldData
    table : FoldTable
        Filled in.
    left_out : LeftOut
    """

    def __init__(self, data: FoldData, table: FoldTable, left_out: LeftOut) -> None:
        self.data, self.table, self.left_out = data, table, left_out
        self.full = data.full().replace(gamma=table.gamma)
        self.open: dict[tuple[int, int], Neighbour] = {}
        self.n_nodes = 0
        self._spectra: dict[int, Spectrum] = {}

    def solve_tau(
        self,
        t: int,
        start: Support,
        limits: Limits,
        *,
        branch: bool,
        n_jobs: int | None = None,
    ) -> Status:
        """One tree for all folds; then each open fold's relaxations, and its branching if wanted.

        Parameters
        ----------
        t : int
            Index of τ.
        start : array of int
            Best support of all rows.
        limits : Limits
        branch : bool
            Solve every fold; otherwise what relaxations leave open is bracketed.
        """
        table = self.table
        problem = self.full.replace(tau=int(table.taus[t]))
        everyone = np.arange(self.left_out.count)
        table.offer(t, everyone, start)
        used = [start, *(table.supports[c] for c in np.unique(table.choice[t]))]
        found = solve_jointly(self.left_out, problem, _same_size(used, problem), limits=limits)
        self.n_nodes += found.n_nodes
        for support in np.unique(found.support, axis=0):
            members = np.flatnonzero((found.support == support).all(axis=1))
            table.offer(t, members, support)
        is_open = np.zeros(everyone.size, dtype=bool)
        is_open[found.pairs[:, 1]] = True
        is_open |= ~np.isfinite(found.upper)
        table.prove(t, np.flatnonzero(~is_open))

        def own(block: Sequence[int]) -> list[tuple[int, Neighbour]]:
            done = []
            for j in block:
                if limits.reached(0) is not None:
                    one = _as_handed_over(found, j)
                else:
                    one = settle(self.left_out, problem, j, found, limits, branch=False)
                    if branch and not one.solved:
                        one = settle(self.left_out, problem, j, one, limits, branch=True)
                done.append((j, one))
            return done

        blocks = [[int(j)] for j in np.flatnonzero(is_open)]
        statuses = [Status.OPTIMAL]
        for j, one in in_parallel(own, blocks, n_jobs):
            self.n_nodes += one.n_nodes
            self.enter(t, j, one)
            statuses.append(one.status)
        return worst(statuses)

    def solve_fold(self, t: int, j: int, limits: Limits) -> None:
        """Branch on what is open of one fold until it is solved."""
        problem = self.full.replace(tau=int(self.table.taus[t]))
        found = settle(self.left_out, problem, j, self.open[t, j], limits, branch=True)
        self.n_nodes += found.n_nodes
        self.enter(t, j, found)

    def enter(self, t: int, j: int, found: Neighbour) -> None:
        """Take over a fold's incumbent, and bracket its error where nodes are open."""
        table, here = self.table, np.array([j])
        table.searched[t, j] |= found.branched
        table.offer(t, here, found.support)
        if found.solved:
            table.prove(t, here)
            self.open.pop((t, j), None)
            return
        self.open[t, j] = found
        gram = self.left_out.form(j)
        if j not in self._spectra:
            self._spectra[j] = Spectrum.of_gram(gram, self.left_out.n)
        H, targets = self.data.held_out(j)
        low, high = open_node_range(
            gram,
            found,
            int(table.taus[t]),
            table.gamma,
            H,
            targets,
            self.left_out.n,
            self._spectra[j],
        )
        table.narrow(t, here, np.array([low]), np.array([high]))


def solve_folds_jointly(
    left_out: LeftOut,
    whole: BestSubsets,
    *,
    data: FoldData,
    gamma: float,
    taus: NDArray[np.intp],
    share: Share,
    stop: StopFlag,
    tell: Tell,
    n_jobs: int | None,
) -> FoldOutcome:
    """Every fold at every τ to proven optimality, or bracketed where the time is up.

    Parameters
    ----------
    left_out : LeftOut
    whole : BestSubsets
        The problem on all rows, solved or not.
    data, gamma, taus, share, stop, tell, n_jobs
        As for the other fold solvers.
    """
    table = FoldTable(data, gamma, taus)
    joint = JointFolds(data, table, left_out)
    statuses = []
    n_mio = 0
    for t in range(taus.size):
        limits = Limits(share(float(taus.size - t)), None, stop)
        statuses.append(joint.solve_tau(t, whole.supports[t], limits, branch=True, n_jobs=n_jobs))
        table.narrow_by_objective(t, float(whole.lower_bound[t]))
        n_mio += 1 + int(table.searched[t].sum())
        tell((t + 1) * data.folds.k // taus.size)
        if stop.is_set():
            break
    outcome = table.outcome(n_mio, joint.n_nodes, worst(statuses))
    outcome.mio_by_tau += 1  # the tree of all rows
    return outcome


def _as_handed_over(found: JointResult, j: int) -> Neighbour:
    """A fold nobody had time for."""
    at = found.open_for(j)
    return Neighbour(
        found.support[j],
        float(found.upper[j]),
        found.leaves[at],
        found.beta[at],
        found.root_lam[at],
        False,
        0,
        Status.TIME_LIMIT,
    )


def _same_size(supports: Sequence[Support], problem: SparseRidgeProblem) -> NDArray[np.intp]:
    """Distinct supports filled up to τ columns, in order, as rows of one array."""
    rows = {}
    for support in supports:
        spare = np.setdiff1d(np.arange(problem.p), support)
        full = np.sort(np.concatenate([support, spare])[: problem.tau]).astype(np.intp)
        rows[full.tobytes()] = full
    return np.array(list(rows.values()))
