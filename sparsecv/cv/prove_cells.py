"""Proofs of one cell (γ, τ) after the other, beyond 45 columns, in the order in which they matter.

A cell is written (g, t): g is the row of the ledger of its γ, and t the position of τ among the
sizes. Its error h is the sum over the folds j < k; problem k is that of all rows. A cell is proved
once all its folds are.

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
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..schedule import (
    BOUNDING_DECAY,
    BOUNDING_SHARE,
    FIRST_ROUND_SECONDS,
    FIRST_TRIAL_SECONDS,
    FOLDS_OF_A_JOINT_TREE,
    HALVES,
    MIN_CLOSED_SHARE,
    MIN_RISE_SHARE,
    ROUND_GROWTH,
    SHARE_OF_FOLDS_OF_A_JOINT_TREE,
    TIMES_OF_A_TRIAL,
    TIMES_OF_THE_LARGEST_TREE,
    TRIAL_GROWTH,
    TRIAL_NODES_PER_SECOND,
)
from ..solvers.core.limits import Limits
from ..solvers.core.plan import share_of_nodes
from ..solvers.core.result import Answer, Status
from ..solvers.paths import support_path
from ..solvers.ridge_fits import SupportPath
from .estimate import tree_unit
from .executor import Batch, Late
from .fold_proofs import ProofRun, Prover, prove_fold
from .ledger import Cell, Ledger
from .needs import Need
from .plan import RunPlan
from .shared_tree import SharedTree

# Within a cell, progress is reported once this many seconds have passed without a report. The
# number is a choice.
REPORT_SECONDS = 0.5


class CellProver(Prover):
    """Proves one cell (γ, τ) after the other.

    plan: The plan of the run. Where it proves everything, cells of large γ, which take least time,
        come first.
    imprecise, shape (γ, τ): Cells whose open folds rounding keeps from being proved: no further
        search can prove them.
    next_trial: Seconds that all proofs have to take before a tree for all sizes is tried.
    largest_tree: The number of nodes of the largest of these trees that has ended.
    bounding_seconds: Seconds that searches that raise the least lower bound have taken.
    bounding_share: The share of all seconds that these searches may take.
    """

    def __init__(self, ledger: Ledger, rows: Sequence[int], work: ProofRun, plan: RunPlan) -> None:
        super().__init__(ledger, rows, work)
        self.plan = plan
        self.imprecise = np.zeros((len(ledger.gammas), ledger.taus.size), dtype=bool)
        self.next_trial, self.largest_tree = FIRST_TRIAL_SECONDS, 0
        self.bounding_seconds, self.bounding_share = 0.0, BOUNDING_SHARE
        # By cell the seconds of its next search for a bound, and by γ the tree of all its folds.
        self._seconds_of_bound = defaultdict[tuple[int, int], float](lambda: FIRST_ROUND_SECONDS)
        self._shared_trees = dict[int, SharedTree | None]()

    def prove(self, need: Need) -> list[int]:
        """Prove the model of least estimate, the CV errors that are needed, and then their models.

        The first of these takes at most half of a time limit; without a limit it comes last, with
        the other models.

        Returns: The rows of γ at which something needed stays unproved.
        """
        limits, ledger = self.work.limits, self.ledger
        if limits.remaining() is not None:
            self.prove_model(*self._models(need)[0], limits.share(HALVES))
        self._prove_errors(need)
        for g, t in self._models(need):
            if ledger.cells.exact[g, t, : ledger.k].all():
                self.prove_model(g, t, limits)
        open_rows = [g for g, _ in self._cells(need, with_imprecise=True)]
        models = [g for g, t in self._models(need) if not ledger.cells.exact[g, t, ledger.k]]
        return sorted({*open_rows, *models})

    def _models(self, need: Need) -> list[tuple[int, int]]:
        """Cells (g, t) whose model is needed, proved or not; the least estimate comes first."""
        known = self.ledger.known(self.rows)
        wanted, order = need(known).models, np.argsort(known.error, axis=None, kind="stable")
        cells = [divmod(int(i), known.taus.size) for i in order]
        return [(int(self.rows[i]), t) for i, t in cells if wanted[i, t]]

    def _prove_errors(self, need: Need) -> None:
        """Prove the cells that are needed, until all their folds are proved or the time is up.

        A cell whose open folds rounding keeps from being proved is left aside.
        """
        ledger, limits = self.ledger, self.work.limits
        ledger.share_bounds()
        for g, t in itertools.product(self.rows.tolist(), range(ledger.taus.size)):
            ledger.narrow_by_objective(g, t)
        seconds, clock = FIRST_ROUND_SECONDS, Limits()
        while limits.reached(0) is None and (cells := self._cells(need)):
            tried: set[tuple[int, int]] = set()
            # By index of τ the largest γ that this round leaves unproved: a smaller γ of the same τ
            # takes longer, and waits for the next round.
            unproved_gamma = defaultdict[int, float](float)
            while cells and limits.reached(0) is None:
                g, t = cells[0]
                if self.plan.tries_all_sizes and clock.elapsed() >= self.next_trial:
                    self._try_all_sizes(g, t, clock.elapsed())
                else:
                    tried.add((g, t))
                    self.report_cell(g, t, f"{self._open_folds(g, t).size} folds")
                    if self._prove_cell(need, g, t, seconds):
                        unproved_gamma[t] = max(unproved_gamma[t], ledger.gammas[g])
                    self.work.save([g])
                if not self.plan.many_folds and seconds > FIRST_ROUND_SECONDS:
                    self._raise_least_bound(need, clock)
                cells = [
                    (g, t)
                    for g, t in self._cells(need)
                    if (g, t) not in tried and ledger.gammas[g] >= unproved_gamma[t]
                ]
            seconds *= ROUND_GROWTH

    def _open_folds(self, g: int, t: int) -> NDArray[np.intp]:
        """The numbers of the folds of a cell that are not proved."""
        return np.flatnonzero(~self.ledger.cells.exact[g, t, : self.ledger.k])

    def _cells(self, need: Need, with_imprecise: bool = False) -> list[tuple[int, int]]:
        """Row and index of τ of the cells that are needed and open, the least estimate first.

        Where everything is to be proved, the largest γ comes first.

        with_imprecise: Whether to include cells that no search can prove, however long it is.
        """
        known, rows = self.ledger.known(self.rows), self.rows
        wanted = need(known).errors & ~known.settled
        if not with_imprecise:
            wanted &= ~self.imprecise[rows]
        order = np.argsort(known.error, axis=None, kind="stable")
        if self.plan.proves == "all":  # A smaller γ takes longer.
            gammas = known.gammas[order // known.taus.size]
            order = order[np.argsort(-gammas, kind="stable")]
        cells = (divmod(int(i), known.taus.size) for i in order)
        return [(int(rows[i]), t) for i, t in cells if wanted[i, t]]

    def _try_all_sizes(self, g: int, t: int, spent: float) -> None:
        """Try one tree for all sizes of the first open fold at a γ, and go on where the tree ends.

        The tree of the first fold has a limit of nodes. Where it ends, the trees of the other folds
        have ``TIMES_OF_A_TRIAL`` times the limit; otherwise no further tree is searched, and
        ``next_trial`` says when one is tried again.

        g, t: The γ, and for reports the cell whose turn it is.
        spent: Seconds that the proofs have taken.
        """
        ledger = self.ledger
        share = share_of_nodes(ledger.data.constraints)
        nodes = max(
            int(share * TRIAL_NODES_PER_SECOND * spent),
            TIMES_OF_THE_LARGEST_TREE * self.largest_tree,
        )
        folds = np.flatnonzero(~ledger.cells.exact[g, :, : ledger.k].all(axis=0)).tolist()
        for problems, max_nodes in ((folds[:1], nodes), (folds[1:], TIMES_OF_A_TRIAL * nodes)):
            self.report_cell(g, t, f"all sizes of {len(folds)} folds")
            if set(self._search_trees(g, problems, max_nodes)) - {Status.OPTIMAL}:
                self.next_trial = TRIAL_GROWTH * spent
                return
        if self.plan.proves == "all":
            self._search_trees(g, [ledger.k], TIMES_OF_A_TRIAL * nodes)

    def _search_trees(self, g: int, problems: list[int], max_nodes: int) -> list[Status]:
        """Search one tree for all sizes of each of some problems at the γ of row g.

        What is proved is entered in the ledger. Once a tree reaches a limit the trees that have not
        begun get no time. The most nodes of a fold's tree that has ended are noted in
        ``largest_tree``.

        problems: Numbers of problems, of folds or k; each has a support at every size above 0.
        max_nodes: The most nodes of each tree.
        Returns: How the trees have ended, in the order in which they did.
        """
        ledger, limits, tasks = self.ledger, self.work.limits, []
        for j in problems:
            choice = ledger.answer.choice if j == ledger.k else ledger.incumbent.choice
            starts = [ledger.supports[c] for c in choice[g, ledger.taus > 0, j]]
            some = ledger.taus[ledger.taus > 0]
            tasks.append((j, ledger.gammas[g], some, starts, max_nodes))

        def enter(index: int, found: tuple[SupportPath, Array]) -> Status:
            j, (path, errors) = problems[index], found
            # A tree of so many columns leaves so many nodes open that intervals cost more.
            ledger.enter_proofs([g], j, path, errors)
            if path.proved[0].all():
                if j < ledger.k:
                    self.largest_tree = max(self.largest_tree, int(path.n_nodes[0]))
                return Status.OPTIMAL
            return path.stopped(0) or Status.TIME_LIMIT

        return self.work.run(
            Batch(
                rows=[g],
                unit=Late.LEFT_OUT.unit(tree_unit),
                shared=ledger.data,
                tasks=tasks,
                enter=enter,
                allot=lambda _: limits.within(),
                keep=True,
                all_or_none=True,
            )
        )

    def _prove_cell(self, need: Need, g: int, t: int, seconds: float) -> bool:
        """Prove the folds of one cell: by the tree that they share, where there is one, or each.

        seconds: The limit of every fold.
        Returns: Whether a limit was reached, so that the cell is left to the next round.
        """
        ledger, shared, limits = self.ledger, self._shared_tree(g), self.work.limits
        if shared is not None:
            self.search_model(g, t, limits.within(seconds))
            folds = max(FOLDS_OF_A_JOINT_TREE, SHARE_OF_FOLDS_OF_A_JOINT_TREE * ledger.k)
            whole = limits.within(seconds * folds)
            failed = {shared.solve_tau(t, whole, self.work.run, branch=True)}
            ledger.work.n_mio[g] += 1 + int(ledger.cells.searched[g, t].sum())
            ledger.work.trees[g, t] += 1
        else:
            if self._seconds_of_bound[g, t] == FIRST_ROUND_SECONDS:  # It has not been bounded yet.
                self._bound(g, t)
                if (g, t) not in self._cells(need):
                    return False
            problems = [(g, t, j) for j in self._open_folds(g, t).tolist()]
            # A single open fold keeps h at the cell unproved, so that the seconds of the other
            # folds would be better spent on other cells: none gets time once one has failed.
            failed = set(self.prove_folds(problems, seconds=seconds)) - {Status.OPTIMAL}
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
        seconds = self._seconds_of_bound[g, t]
        found = self.search_model(g, t, self.work.limits.within(seconds))
        self._seconds_of_bound[g, t] = ROUND_GROWTH * seconds
        ledger.share_bounds()
        risen = (ledger.cells.bound[..., k] > before)[self.rows]
        for i, size in np.argwhere(risen).tolist():
            ledger.narrow_by_objective(int(self.rows[i]), size)
        return found

    def _raise_least_bound(self, need: Need, clock: Limits) -> None:
        """Raise the least lower bound on h by bounds on the optimum of all rows.

        By Corollary 3 the lower bound of every fold of a cell rises with the bound on the optimum,
        and the bound on the sum of k folds' errors k times as much. Searches go on while they have
        taken less than ``bounding_share`` of the seconds that have passed.

        clock: A clock that began with the proofs.
        """
        ledger, k = self.ledger, self.ledger.k
        while self.bounding_seconds < self.bounding_share * clock.elapsed():
            cells = [] if self.work.limits.reached(0) is not None else self._cells(need)
            if not cells:
                return
            lower, error = ledger.sums(ledger.cells.lower), ledger.sums(ledger.answer.error)
            # Of equal bounds the one that has been searched least comes first.
            cell = min(cells, key=lambda one: (lower[one], self._seconds_of_bound[one]))
            model, started = (*cell, k), clock.elapsed()
            before = ledger.cells.bound[model]
            gap = float(ledger.answer.objective[model] - before)
            if ledger.cells.exact[model] or k * gap <= MIN_RISE_SHARE * error[cell]:
                return
            found = self._bound(*cell)
            self.bounding_seconds += clock.elapsed() - started
            useful_rise = MIN_CLOSED_SHARE * gap
            if ledger.cells.bound[model] >= before + useful_rise:
                self.bounding_share = BOUNDING_SHARE
            elif found >= before - useful_rise:
                # A search whose own bound is still far below the known one, which other cells
                # imply, says nothing about its use; any other one has been of little use.
                self.bounding_share *= BOUNDING_DECAY

    def prove_folds(
        self, problems: list[Cell], backend: str = "", seconds: float | None = None
    ) -> list[Status]:
        """Prove folds at one γ, enter the proofs in the ledger, and return how the searches ended.

        problems: Cells (g, t, j) of the ledger with one g and j < k.
        backend: The solver of every problem, which gets no support to start from; "" for branch
            and bound, which starts from supports of the same fold at the next smaller τ and the
            neighbouring γ.
        seconds: The limit of every search, after which no further search gets time; by default all
            share the limits of the proofs.
        """
        ledger, limits, (g, first_t, _) = self.ledger, self.work.limits, problems[0]
        rows = sorted(self.rows.tolist(), key=lambda i: ledger.gammas[i])
        place = rows.index(g)
        beside = rows[max(place - 1, 0) : place] + rows[place + 1 : place + 2]

        def enter(index: int, found: tuple[Answer, float, float]) -> Status:
            """Enter what ``prove_fold`` returned: an answer, and bounds on the fold's error."""
            cell, (answer, low, high) = problems[index], found
            ledger.work.n_mio[g] += not ledger.cells.searched[cell]
            ledger.cells.searched[cell] = True
            ledger.enter_solution(cell, answer)
            ledger.narrow(*cell, low, high)
            return answer.status

        def report_done(done: int, total: int) -> None:
            if done and self.since_report.elapsed() >= REPORT_SECONDS:
                self.report_cell(g, first_t, f"fold {done} of {total}")

        tasks = []
        for _, t, j in problems:
            near = [(g, t), (g, t - 1), *((i, t) for i in beside)]
            starts = [ledger.support(*cell, j) for cell in near if cell[1] >= 0 and not backend]
            # Corollary 3 serves folds that train on all rows but those that they hold out.
            bound = float(ledger.cells.bound[g, t, ledger.k]) if ledger.data.covers(j) else 0.0
            upper = float(ledger.incumbent.objective[g, t, j])
            gamma_and_tau = ledger.gammas[g], int(ledger.taus[t])
            tasks.append((j, gamma_and_tau, upper, starts, bound, backend))
        return self.work.run(
            Batch(
                rows=[g],
                unit=Late.LEFT_OUT.unit(prove_fold),
                shared=self.forms,
                tasks=tasks,
                enter=enter,
                allot=limits.share if seconds is None else (lambda _: limits.within(seconds)),
                report=report_done,
                all_or_none=seconds is not None,
            )
        )

    def _shared_tree(self, g: int) -> SharedTree | None:
        """The tree that the folds of a γ share, made at the first call.

        None where the plan has no such tree, and where there cannot be one (:meth:`SharedTree.of`).
        """
        if g not in self._shared_trees:
            tree = SharedTree.of(self.ledger, g) if self.plan.joint_pairs else None
            self._shared_trees[g] = tree
        return self._shared_trees[g]


def solve_grid(prover: CellProver, g: int, backend: str) -> None:
    """Solve every fold at every τ > 0 alone: the first paper's Grid, k·|τ| training problems.

    The problem of all rows is solved by this package, for all τ together. Problems that the time
    limit leaves unsolved keep their estimates. The results are entered in the prover's ledger.

    g: The row of the ledger whose γ is taken, one of the prover's rows.
    backend: The solver of every problem of a fold, as in :class:`~sparsecv.cv.settings.Settings`.
    """
    ledger, limits, k = prover.ledger, prover.work.limits, prover.ledger.k
    full, share = ledger.data.full(), limits.share(k + 1.0)
    whole = support_path(full, [ledger.gammas[g]], ledger.taus, limits=share)
    ledger.enter_answers([g], k, whole, error=0.0)
    open_cells = ~(ledger.cells.exact & ledger.cells.searched)[g, :, :k]
    open_cells &= ledger.taus[:, None] > 0
    if cells := [(g, t, j) for t, j in np.argwhere(open_cells).tolist()]:
        ledger.worsen_status(g, Status.worst(prover.prove_folds(cells, backend)))
