"""Proofs of one cell (γ, τ) after the other, beyond 45 columns, in the order in which they matter.

The idea of Algorithm 1 is applied to the whole surface. The cell of least estimate comes first, and
then every cell that the choice needs, in increasing order of the estimates. No cell may take all
the time: in every round a problem gets four times the seconds of the round before, and a cell that
these do not suffice for leaves the smaller γ of its τ to the next round.
In between, the cell of least lower bound gets a better bound on the optimum of all rows, which
bounds the errors at other γ and τ, too. Where a tree for all sizes of a fold ends within a short
trial, the folds of that γ get such trees, which prove every τ.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..design.design import Array
from ..solvers.core.limits import Limits
from ..solvers.core.plan import share_of_nodes
from ..solvers.core.result import Answer, Status, worst
from ..solvers.paths import support_path
from ..solvers.ridge_fits import SupportPath
from .estimate import tree_unit
from .fold_proofs import ProofRun, Prover, prove_fold
from .ledger import Cell, Ledger
from .needs import Need
from .plan import RunPlan
from .progress import Batch, in_time
from .shared_tree import SharedTree

# These numbers divide the time for proofs. Where no source is named, a value was chosen by timing
# tables of data/.
# A problem is one fold, or all rows, at one γ and τ. The first round gives a problem this many
# seconds. After them its search waits for the next round, and so do the folds of the same cell (γ,
# τ) that have not begun. One tree may serve all k folds of a cell. It gets 10 times the seconds, or
# k / 10 times if that is more.
FIRST_ROUND_SECONDS = 0.05
# Every later round gives a problem this many times the seconds of the round before: a choice.
ROUND_GROWTH = 4.0
# After the first round, raising the least lower bound takes at most this share of the seconds
# that have passed. Where folds are many, the bound is not raised. The number is a choice.
BOUNDING_SHARE = 0.5
# A search that raises the bound of a cell (γ, τ) by less than this share of the cell's gap takes a
# quarter off the share of seconds that such searches get (BOUNDING_SHARE at first). A search that
# raises it by more sets that share to BOUNDING_SHARE again. The number is a choice. It is below
# what useful searches reached: with four times the seconds they closed a tenth to a third of the
# gap. With more columns than rows and a small γ no bound rises, and the seconds go to proofs.
MIN_CLOSED_SHARE = 0.05
# The least lower bound is left alone where a better bound on the optimum of all rows could
# raise it by at most this share of its cell's error. The number is a choice.
MIN_RISE_SHARE = 0.1
# Within a cell, progress is reported once this many seconds have passed without a report. The
# number is a choice.
REPORT_SECONDS = 0.5
# One tree can prove a fold at every τ at once. Such a tree is first tried once all proofs of the
# run have taken this many seconds: shorter runs end sooner without it. The number is a choice.
FIRST_TRIAL_SECONDS = 0.1
# If a tree for all sizes of a fold reaches a limit when the proofs have taken s seconds in all, the
# next such tree is tried once they have taken this many times s seconds. The number is a choice.
TRIAL_GROWTH = 4.0
# The trial tree of the first fold may have this many nodes for every second that the proofs have
# taken. Where trees of other folds have ended, it may have twice the nodes of the largest of them.
# Once the trial tree has ended, the tree of every other fold may have four times its nodes. Under
# constraints the tree has a share of these nodes. The number is a choice.
TRIAL_NODES_PER_SECOND = 3_000_000


@dataclass
class Trials:
    """Trees for all sizes that are tried: seconds of proofs before the next, nodes of the largest.

    next: Seconds that all proofs have to take before a tree is tried.
    largest: The number of nodes of the largest of these trees that has ended.
    """

    next: float = FIRST_TRIAL_SECONDS
    largest: int = 0


@dataclass
class Bounding:
    """Searches that raise the least lower bound: their seconds, and how many they may take.

    spent: Seconds that they have taken.
    share: The share of all seconds that they may take.
    seconds: By cell the seconds that its next search may take, FIRST_ROUND_SECONDS at first.
    """

    spent: float = 0.0
    share: float = BOUNDING_SHARE
    seconds: dict[tuple[int, int], float] = field(default_factory=dict)

    def of(self, at: tuple[int, int]) -> float:
        """The seconds of the next search of a cell."""
        return self.seconds.get(at, FIRST_ROUND_SECONDS)


class CellProver(Prover):
    """Proves one cell (γ, τ) after the other.

    plan: The plan of the run. Where it proves everything, cells of large γ, which take least time,
        come first.
    """

    def __init__(self, ledger: Ledger, rows: Sequence[int], work: ProofRun, plan: RunPlan) -> None:
        super().__init__(ledger, rows, work)
        self.plan = plan
        self.imprecise = np.zeros((len(ledger.gammas), ledger.taus.size), dtype=bool)
        self.trees = dict[int, SharedTree | None]()
        self.trials, self.bounding = Trials(), Bounding()

    def prove(self, need: Need) -> list[int]:
        """Prove the model of least estimate, the CV errors that are needed, and then their models.

        The first of these takes at most half of a time limit.
        """
        limits, ledger = self.work.limits, self.ledger
        if limits.remaining() is not None:
            self.prove_model(*self._models(need)[0], limits.share(2.0))
        self._prove_errors(need)
        for g, t in self._models(need):
            if ledger.cells.exact[g, t, : ledger.k].all():
                self.prove_model(g, t, limits)
        open_rows = [g for g, _ in self._cells(need, with_imprecise=True)]
        models = [g for g, t in self._models(need) if not ledger.cells.exact[g, t, ledger.k]]
        return sorted({*open_rows, *models})

    def _models(self, need: Need) -> list[tuple[int, int]]:
        """Cells whose model of all rows is needed, the least estimate first."""
        known = self.ledger.known(self.rows)
        wanted, order = need(known).models, np.argsort(known.error, axis=None, kind="stable")
        cells = [divmod(int(i), known.taus.size) for i in order]
        return [(int(self.rows[i]), t) for i, t in cells if wanted[i, t]]

    def _prove_errors(self, need: Need) -> None:
        """Prove the cells that are needed, until they are exact or the time is up."""
        ledger, k, limits = self.ledger, self.ledger.k, self.work.limits
        ledger.share_bounds()
        for g, t in itertools.product(self.rows.tolist(), range(ledger.taus.size)):
            ledger.narrow_by_objective(g, t)
        seconds, clock = FIRST_ROUND_SECONDS, Limits()
        while limits.reached(0) is None and (cells := self._cells(need)):
            tried: set[tuple[int, int]] = set()
            hard: dict[int, float] = {}  # For an index of τ the largest γ left to the next round.
            while cells and limits.reached(0) is None:
                g, t = cells[0]
                if self.plan.tries_all_sizes and clock.elapsed() >= self.trials.next:
                    self._try_all_sizes(g, t, clock.elapsed())
                else:
                    tried.add((g, t))
                    self.report_cell(g, t, f"{int((~ledger.cells.exact[g, t, :k]).sum())} folds")
                    if self._prove_cell(need, g, t, seconds):
                        hard[t] = max(hard.get(t, 0.0), ledger.gammas[g])
                    self.work.save([g])
                if not self.plan.many_folds and seconds > FIRST_ROUND_SECONDS:
                    self._raise_least(need, clock)
                cells = [
                    (g, t)
                    for g, t in self._cells(need)
                    if (g, t) not in tried and ledger.gammas[g] >= hard.get(t, 0.0)
                ]
            seconds *= ROUND_GROWTH

    def _cells(self, need: Need, with_imprecise: bool = False) -> list[tuple[int, int]]:
        """Row and index of τ of the cells that are needed and open, the least estimate first.

        Where everything is to be proved, the largest γ comes first.

        with_imprecise: Whether cells count that no longer search can prove.
        """
        known, rows = self.ledger.known(self.rows), self.rows
        wanted = need(known).errors & ~known.exact
        if not with_imprecise:
            wanted &= ~self.imprecise[rows]
        order = np.argsort(known.error, axis=None, kind="stable")
        if self.plan.proves_everything:  # A smaller γ takes longer.
            gammas = known.gammas[order // known.taus.size]
            order = order[np.argsort(-gammas, kind="stable")]
        cells = (divmod(int(i), known.taus.size) for i in order)
        return [(int(rows[i]), t) for i, t in cells if wanted[i, t]]

    def _try_all_sizes(self, g: int, t: int, spent: float) -> None:
        """Search one tree for all sizes of every fold at the γ of row g.

        The tree of the first fold has a limit of nodes. Where it ends, the trees of the other folds
        have four times the limit; otherwise no further tree is searched.

        spent: Seconds that the proofs have taken.
        """
        ledger = self.ledger
        share = share_of_nodes(ledger.data.constraints)
        nodes = max(int(share * TRIAL_NODES_PER_SECOND * spent), 2 * self.trials.largest)
        left = np.flatnonzero(~ledger.cells.exact[g, :, : ledger.k].all(axis=0)).tolist()
        for problems, most in ((left[:1], nodes), (left[1:], 4 * nodes)):
            self.report_cell(g, t, f"all sizes of {len(left)} folds")
            if set(self._search_trees(g, problems, most)) - {Status.OPTIMAL}:
                self.trials.next = TRIAL_GROWTH * spent
                return
        if self.plan.proves_everything:
            self._search_trees(g, [ledger.k], 4 * nodes)

    def _search_trees(self, g: int, problems: list[int], most_nodes: int) -> list[Status]:
        """Search one tree for all sizes of each of some problems at the γ of row g.

        What is proved is entered in the ledger. The most nodes of a fold's tree that has ended are
        noted in ``trials.largest``.

        most_nodes: As of :func:`~sparsecv.cv.estimate.tree_unit`.
        Returns: How the trees have ended.
        """
        ledger, tasks = self.ledger, []
        for j in problems:
            choice = ledger.answer.choice if j == ledger.k else ledger.best.choice
            starts = [ledger.supports[c] for c in choice[g, :, j]]
            tasks.append((j, ledger.gammas[g], ledger.taus, starts, most_nodes))

        def enter(index: int, found: tuple[SupportPath, Array]) -> Status:
            j, (path, errors) = problems[index], found
            # A tree of so many columns leaves so many nodes open that intervals cost more.
            ledger.take_proofs([g], j, path, errors, first_of_ties=False)
            if path.proved[0].all():
                nodes = int(path.n_nodes[0]) if j < ledger.k else 0
                self.trials.largest = max(self.trials.largest, nodes)
                return Status.OPTIMAL
            return path.stopped(0) or Status.TIME_LIMIT

        unit, limits, data = partial(in_time, tree_unit), self.work.limits, ledger.data
        how: dict[str, Any] = {"keep": True, "all_or_none": True}
        how["allot"] = lambda _: limits.within()
        return self.work.run(Batch([g], unit, data, tasks, enter, **how))

    def _prove_cell(self, need: Need, g: int, t: int, seconds: float) -> bool:
        """Prove the folds of one cell, each with a limit of some seconds.

        Returns: Whether a limit was reached, so that the cell is left to the next round.
        """
        ledger, shared, limits = self.ledger, self._shared_tree(g), self.work.limits
        if shared is not None:
            self.search_model(g, t, limits.within(seconds))
            most = limits.within(seconds * max(10.0, 0.1 * ledger.k))
            failed = {shared.solve_tau(t, most, self.work.run, branch=True)}
            ledger.work.n_mio[g] += 1 + int(ledger.cells.searched[g, t].sum())
            ledger.work.trees[g, t] += 1
        else:
            if self.bounding.of((g, t)) == FIRST_ROUND_SECONDS:
                self._bound(g, t)
                if (g, t) not in self._cells(need):
                    return False
            still_open = np.flatnonzero(~ledger.cells.exact[g, t, : ledger.k])
            left = [(g, t, j) for j in still_open.tolist()]
            # A single open fold keeps h at the cell unproved, so that the seconds of the other
            # folds would be better spent on other cells.
            failed = set(self.prove_folds(left, seconds=seconds)) - {Status.OPTIMAL}
        self.imprecise[g, t] = failed == {Status.PRECISION}
        ledger.narrow_by_objective(g, t)
        return bool(failed - {Status.OPTIMAL, Status.PRECISION})

    def _bound(self, g: int, t: int) -> float:
        """Search the problem of all rows at one cell, and narrow all errors that its bound bounds.

        The bound holds at other γ and τ, too (``share_bounds``), and bounds the errors of folds
        there. The next search of the cell gets more seconds.

        Returns: The bound of this search, without what other cells imply here, so that the caller
            sees what the seconds have brought.
        """
        ledger, k, before = self.ledger, self.ledger.k, self.ledger.cells.bound[..., -1].copy()
        found = self.search_model(g, t, self.work.limits.within(self.bounding.of((g, t))))
        self.bounding.seconds[g, t] = ROUND_GROWTH * self.bounding.of((g, t))
        ledger.share_bounds()
        risen = (ledger.cells.bound[..., k] > before)[self.rows]
        for i, at in np.argwhere(risen).tolist():
            ledger.narrow_by_objective(int(self.rows[i]), at)
        return found

    def _raise_least(self, need: Need, clock: Limits) -> None:
        """Raise the least lower bound by bounds on the optimum of all rows, for a share of time.

        By Corollary 3 the error of a cell rises with these bounds, k times as much.
        """
        ledger, k, bounding = self.ledger, self.ledger.k, self.bounding
        while bounding.spent < bounding.share * clock.elapsed():
            cells = [] if self.work.limits.reached(0) is not None else self._cells(need)
            lower, error = ledger.sums(ledger.cells.lower), ledger.sums(ledger.answer.error)
            least = min(cells, key=lambda at: (lower[at], bounding.of(at)), default=None)
            if least is None:
                return
            at, started = (*least, k), clock.elapsed()
            known = ledger.cells.bound[at]
            gap = float(ledger.answer.objective[at] - known)
            if ledger.cells.exact[at] or k * gap <= MIN_RISE_SHARE * error[least]:
                return
            found = self._bound(*least)
            bounding.spent += clock.elapsed() - started
            least_rise = MIN_CLOSED_SHARE * gap
            if ledger.cells.bound[at] >= known + least_rise:
                bounding.share = BOUNDING_SHARE
            elif found >= known - least_rise:
                bounding.share *= 0.75

    def prove_folds(
        self, problems: list[Cell], backend: str = "", seconds: float | None = None
    ) -> list[Status]:
        """Prove folds at one γ, enter the proofs in the ledger, and return how the searches ended.

        problems: Row of γ, index of τ, and fold.
        backend: The solver of every problem, which gets no support to start from; "" for branch
            and bound, which starts from supports of the same fold at the next smaller τ and the
            neighbouring γ.
        seconds: The limit of every search, after which no further search gets time; by default all
            share the limits of the proofs.
        """
        limits = self.work.limits
        allot = limits.share if seconds is None else (lambda _: limits.within(seconds))
        batch = self.batch_of_folds(problems, backend)
        return self.work.run(replace(batch, allot=allot, all_or_none=seconds is not None))

    def batch_of_folds(self, problems: list[Cell], backend: str = "") -> Batch:
        """The batch of :meth:`prove_folds`, whose units share the limits of the proofs."""
        ledger, (g, first, _) = self.ledger, problems[0]

        def enter(index: int, found: tuple[Answer, float, float]) -> Status:
            at = problems[index]
            ledger.work.n_mio[g] += not ledger.cells.searched[at]
            ledger.cells.searched[at] = True
            ledger.take_proof(at, found[0])
            ledger.narrow(*at, *found[1:])
            return found[0].status

        def report_done(done: int, total: int) -> None:
            if done and self.since_report.elapsed() >= REPORT_SECONDS:
                self.report_cell(g, first, f"fold {done} of {total}")

        tasks = []
        for g, t, j in problems:
            near = [(g, t), (g, t - 1), *((i, t) for i in self._beside(g))]
            starts = [ledger.support(*at, j) for at in near if at[1] >= 0 and not backend]
            # Corollary 3 serves folds that train on all rows but those that they hold out.
            bound = float(ledger.cells.bound[g, t, ledger.k]) if ledger.data.covers(j) else 0.0
            best = float(ledger.best.objective[g, t, j])
            at = ledger.gammas[g], int(ledger.taus[t])
            tasks.append((j, at, best, starts, bound, backend))
        unit, limits = partial(in_time, prove_fold), self.work.limits
        return Batch([g], unit, self.forms, tasks, enter, limits.share, report_done)

    def _beside(self, g: int) -> list[int]:
        """The rows of the next smaller and the next larger γ."""
        order = sorted(self.rows.tolist(), key=lambda i: self.ledger.gammas[i])
        at = order.index(g)
        return [order[i] for i in (at - 1, at + 1) if 0 <= i < len(order)]

    def _shared_tree(self, g: int) -> SharedTree | None:
        """The tree that the folds of a γ share, made at the first call.

        None where the plan has no such tree, and where there cannot be one (:meth:`SharedTree.of`).
        """
        if g not in self.trees:
            self.trees[g] = SharedTree.of(self.ledger, g) if self.plan.joint_pairs else None
        return self.trees[g]


def solve_grid(prover: CellProver, g: int, backend: str) -> None:
    """Solve every fold at every τ alone: the first paper's Grid, k·|τ| training problems.

    The problem of all rows is solved by one tree. Problems that the time limit leaves unsolved
    keep their estimates. The results are entered in the prover's ledger.

    g: The row of the ledger whose γ is taken.
    backend: As of :class:`~sparsecv.cv.settings.Settings`.
    """
    ledger, limits, k = prover.ledger, prover.work.limits, prover.ledger.k
    full, share = ledger.data.full(), limits.share(k + 1.0)
    whole = support_path(full, [ledger.gammas[g]], ledger.taus, limits=share)
    ledger.take_path([g], k, whole)
    open_cells = ~(ledger.cells.exact & ledger.cells.searched)[g, :, :k]
    if cells := [(g, t, j) for t, j in np.argwhere(open_cells).tolist()]:
        ledger.note_limit(g, worst(prover.prove_folds(cells, backend)))
