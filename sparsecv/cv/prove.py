"""Proofs of what estimates leave open, in the order in which cells (γ, τ) matter for the choice.

Up to 45 columns a tree proves all τ of a problem, and everything is to be proved, one γ after the
other. The rest of this text describes the proofs beyond 45 columns.

The idea of Algorithm 1 is applied to the whole surface. The cell of least estimate comes first, and
then every cell whose lower bound is below that estimate, in increasing order of the estimates. No
cell may take all the time: in every round a problem gets four times the seconds of the round
before, and a cell that these do not suffice for leaves the smaller γ of its τ to the next round.
In between, the cell of least lower bound gets a better bound on the optimum of all rows, which
bounds the errors at other γ and τ, too. Where a tree for all sizes of a fold ends within a short
trial, the folds of that γ get such trees, which prove every τ.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..design.fold_data import FoldData
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Proof, Status, worst
from ..solvers.core.rows import MAX_COLUMNS
from ..solvers.paths import NEAR, SHARE_OF_NODES_OF_UNITS, ridge_scale, support_path
from ..solvers.relaxation.diagonal import shared_diagonal
from ..solvers.relaxation.ellipsoid import Spectrum
from ..solvers.relaxation.gram import GramForm, wants_gram
from ..solvers.relaxation.perspective import perspective_relaxation
from ..solvers.ridge_fits import SupportPath
from ..solvers.supports.rounding import pad_support
from .bounds import fold_bounds
from .estimate import MANY_FOLDS, fold_unit, tree_unit
from .ledger import Ledger
from .progress import Batch, Report, in_time
from .results import TIE, least
from .settings import Settings
from .shared_tree import SharedTree, searched, solve_problem

# These numbers divide the time for proofs. Where no source is named, a value was chosen by timing
# tables of data/.
# A problem (one fold, or all rows, at one γ and τ) gets this many seconds in the first round,
# and when they are over, the search of the problem ends until the next round. Then the folds of
# the same cell (γ, τ) that have not begun wait for the next round, too. A tree that the k folds of
# a cell share gets 10 times the seconds, or k / 10 times if that is more.
FIRST_ROUND_SECONDS = 0.05
# Every later round gives a problem this many times the seconds of the round before. Up to 45
# columns it gives a tree this many times the nodes, so that the number has to be whole. It is a
# choice.
ROUND_GROWTH = 4.0
# Where folds are many (MANY_FOLDS or more), they share one tree if the largest of them holds
# out at most this many rows. The number decides on speed alone and is a choice: a bound on all
# rows is the weaker for a fold, the more rows the fold leaves out.
MAX_ROWS_LEFT_OUT = 4
# After the first round, raising the least lower bound takes at most this share of the seconds
# that have passed. Where there are MANY_FOLDS folds or more, the bound is not raised. The number is
# a choice.
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
# Up to 45 columns every tree gets this many nodes in the first round, and under constraints, where
# nodes take longer, the second number. Later rounds begin the tree anew. Both are choices.
FIRST_TREE_NODES, FIRST_TREE_NODES_OF_UNITS = 60_000_000, 150_000
# A unit of work proves one problem at a γ and γ near it, at most this many in all. Where a limit,
# or Ctrl-C, ends a run after some of the units, at most so many γ have proved folds and unproved
# folds. The number is a choice.
MOST_NEAR = 32
# With the default time limit no round of trees for all sizes begins that may take more than this
# many nodes, summed over all γ and problems. Under constraints, where nodes take longer, the number
# is a share of this. It is a choice.
MOST_NODES_BY_DEFAULT = 120_000_000
# One tree can prove a fold at every τ at once. Such a tree is first tried once all proofs of the
# run have taken this many seconds: shorter runs end sooner without it. The number is a choice.
FIRST_TRIAL_SECONDS = 0.1
# If a tree for all sizes of a fold reaches a limit when the proofs have taken s seconds in all, the
# next such tree is tried once they have taken this many times s seconds. The number is a choice.
TRIAL_GROWTH = 4.0
# The trial tree of the first fold may have this many nodes for every second that the proofs have
# taken. It may have more where a tree of another fold has ended: twice the nodes of the largest
# such tree. Once the trial tree has ended, the tree of every other fold may have four times as many
# nodes as the trial tree was allowed. Under constraints the tree has a share of these nodes. The
# number is a choice.
TRIAL_NODES_PER_SECOND = 3_000_000


def ends_first(rows: list[int]) -> list[int]:
    """The last of some rows, the first, the middle one of the rest, and so on by halves.

    What trees list at two γ proves most supports between them. The last γ has the smallest tree.
    """
    if len(rows) < 2:
        return rows

    def halves(some: list[int]) -> list[int]:
        middle = len(some) // 2
        return [some[middle], *halves(some[:middle]), *halves(some[middle + 1 :])] if some else []

    return [rows[-1], rows[0], *halves(rows[1:-1])]


class FoldForms:
    """Gram forms and eigenvalues of the folds' problems, which every γ and τ share.

    The forms are computed at their first use, and are computed again in another process.
    """

    def __init__(self, data: FoldData) -> None:
        self.data = data
        self._spectra: dict[int, Spectrum] = {}
        self._grams: dict[int, GramForm] = {}

    def __reduce__(self) -> Any:
        return FoldForms, (self.data,)

    def gram(self, j: int, problem: SparseRidgeProblem) -> GramForm | None:
        """XᵀX of problem j's rows; None where the rows themselves are used (``wants_gram``)."""
        if j not in self._grams and wants_gram(problem):
            form = GramForm.of(problem)
            self._grams[j] = replace(form, D=shared_diagonal(form))
        return self._grams.get(j)

    def spectrum(self, j: int, problem: SparseRidgeProblem) -> Spectrum:
        """Eigenvalues and eigenvectors of problem j's XᵀX."""
        if j not in self._spectra:
            self._spectra[j] = Spectrum.of(problem)
        return self._spectra[j]


def prove_fold(
    folds: FoldForms,
    j: int,
    at: tuple[float, int],
    objective: float,
    starts: Sequence[NDArray[np.intp]],
    full_bound: float,
    backend: str,
    limits: Limits,
) -> tuple[Proof, float, float]:
    """The unit of one cell and fold j: branch and bound on the fold's training problem.

    at: γ and τ of the cell.
    objective: Objective of the fold's incumbent.
    starts: Supports that the search starts from.
    full_bound: Lower bound on the optimum of all rows; 0 where the fold's training and held-out
        rows are not all rows.
    backend: The solver of the problem, or "" for branch and bound.
    Returns: The proof, and lower and upper bounds on the fold's error, which are 0 and ∞ where the
        support is proved optimal. Under constraints the bounds are those of models without
        constraints that are as good as the incumbent.
    """
    problem = folds.data.training(j).replace(gamma=at[0], tau=at[1])
    gram = None if backend else folds.gram(j, problem)
    found = searched(problem, starts, limits, gram, backend=backend)
    if found.status is Status.OPTIMAL:
        return found, 0.0, np.inf
    support = found.support
    if problem.constraints.plain:
        support = pad_support(support, problem.tau, problem.p)
    upper, free = min(objective, problem.objective(support)), problem.unconstrained()
    relaxed = perspective_relaxation(free, extract=True, gram=gram, gap=1e-4)
    held_out, spectrum = folds.data.held_out(j), folds.spectrum(j, problem)
    bounds = fold_bounds(free, (relaxed.beta,), full_bound, upper, *held_out, spectrum=spectrum)
    return found, *bounds


class Prover:
    """Proves cells of a ledger's rows, in which every fold has an incumbent at every τ.

    settings: ``prove`` says whether every cell is proved or what the least error needs, ``n_jobs``
        the number of threads.
    save: Takes the rows whose proofs have changed.
    """

    def __init__(
        self,
        ledger: Ledger,
        rows: Sequence[int],
        limits: Limits,
        settings: Settings,
        report: Report,
        save: Callable[[Sequence[int]], None],
    ) -> None:
        self.ledger, self.rows, self.limits = ledger, np.array(rows, dtype=np.intp), limits
        self.everything, self.n_jobs = settings.prove == "all", settings.n_jobs
        self.report, self.save, self.k = report, save, ledger.k
        self.few = ledger.few
        self.gives_up = settings.time_limit == "auto"
        self.beyond_precision = np.zeros((len(ledger.gammas), ledger.taus.size), dtype=bool)
        self._trees: dict[int, SharedTree | None] = {}
        self._hard = -1.0  # The largest γ at which a tree of all sizes was left in this round.
        self._forms = FoldForms(ledger.data)
        self._since_report = Limits()  # Its clock shows the time since the last report.
        # For every cell the seconds that the next bound on the optimum of all rows may take.
        self._bound_seconds = np.full((len(ledger.gammas), ledger.taus.size), FIRST_ROUND_SECONDS)
        # Seconds of proofs after which a tree for all sizes is tried, and the number of nodes of
        # the largest of these trees that has ended.
        self._next_trial, self._largest_tree = FIRST_TRIAL_SECONDS, 0
        # Seconds that raising the least lower bound has taken, and the share of all seconds it may.
        self._bounding, self._bounding_share = 0.0, BOUNDING_SHARE

    def batches(self) -> Iterator[Batch]:
        """Batches of units until the choice, or everything, is proved, or the time is up."""
        ledger, k = self.ledger, self.k
        if self.few:
            yield from self._every_size()
            return
        ledger.share_bounds()
        for g, t in itertools.product(self.rows.tolist(), range(ledger.taus.size)):
            ledger.narrow_by_objective(g, t)
        seconds, clock = FIRST_ROUND_SECONDS, Limits()
        trees = ledger.data.p <= MAX_COLUMNS and k < MANY_FOLDS
        while self.limits.reached(0) is None and (cells := self._open_cells()):
            tried: set[tuple[int, int]] = set()
            hard: dict[int, float] = {}  # For an index of τ the largest γ left to the next round.
            while cells and self.limits.reached(0) is None:
                g, t = cells[0]
                if trees and clock.elapsed() >= self._next_trial:
                    yield from self._try_all_sizes(g, t, clock.elapsed())
                else:
                    tried.add((g, t))
                    self._report_cell(g, t, f"{int((~ledger.exact[g, t, :k]).sum())} folds")
                    if (yield from self._prove(g, t, seconds)):
                        hard[t] = max(hard.get(t, 0.0), ledger.gammas[g])
                    self.save([g])
                if k < MANY_FOLDS and seconds > FIRST_ROUND_SECONDS:
                    self._raise_least(clock)
                cells = [
                    (g, t)
                    for g, t in self._open_cells()
                    if (g, t) not in tried and ledger.gammas[g] >= hard.get(t, 0.0)
                ]
            seconds *= ROUND_GROWTH
        for g, _ in self._open_cells():
            ledger.note_limit(g, self.limits.reached(0) or Status.PRECISION)

    def _every_size(self) -> Iterator[Batch]:
        """Batches of trees for all sizes of every problem, up to 45 columns.

        The γ whose τ can have the least error come first, in the order of their least estimates.
        The γ near it are proved together with each, as one tree may serve all of them.
        Where a tree takes more nodes than the round allows, γ at or below that tree's γ wait for
        the next round: trees of smaller γ are mostly larger. With the default time limit the
        proofs end after a round if the trees that are left may take more than
        ``MOST_NODES_BY_DEFAULT`` nodes in the next round, all together.
        """
        ledger = self.ledger
        plain = ledger.data.constraints.plain
        share = 1.0 if plain else SHARE_OF_NODES_OF_UNITS
        nodes = FIRST_TREE_NODES if plain else FIRST_TREE_NODES_OF_UNITS
        while True:
            rows, tried = self._open_rows(), set[int]()
            self._hard = -1.0
            for g in rows:
                if g in tried or ledger.gammas[g] <= self._hard:
                    continue
                near = self._near(g, [r for r in rows if r not in tried])
                yield from self._along_gamma(near, nodes)
                tried.update(near)
            nodes *= int(ROUND_GROWTH)
            left = sum(len(self._open_problems(g)) for g in rows)
            hopeless = self.gives_up and left * nodes > share * MOST_NODES_BY_DEFAULT
            if left == 0 or hopeless or self.limits.reached(0) is not None:
                break
        for g in self.rows.tolist():
            if not ledger.exact[g].all():
                open_now = self._open_problems(g)
                ended = Status.NODE_LIMIT if open_now else Status.PRECISION
                ledger.note_limit(g, self.limits.reached(0) or ended)

    def _along_gamma(self, rows: list[int], most_nodes: int) -> Iterator[Batch]:
        """The batch of all open problems at the γ of some rows, a unit for each problem.

        most_nodes: As of :func:`~sparsecv.cv.estimate.fold_unit`.
        """
        rows = sorted(rows, key=lambda g: self.ledger.gammas[g])
        open_at = {g: set(self._open_problems(g)) for g in rows}
        problems = sorted(set().union(*open_at.values()))
        if self.limits.reached(0) is None:
            self._report_cell(rows[0], 0, f"all sizes of {len(problems)} problems")
            rows_of = {j: ends_first([g for g in rows if j in open_at[g]]) for j in problems}
            yield self._all_sizes(rows, rows_of, most_nodes)

    def _near(self, g: int, rows: list[int]) -> list[int]:
        """Some of the rows, at most MOST_NEAR: those whose γ is nearest that of row g."""
        places = ridge_scale(self.ledger.data.full(), self.ledger.gammas)
        away = {r: abs(places[r] - places[g]) for r in rows}
        return sorted((r for r in rows if away[r] < NEAR), key=lambda r: away[r])[:MOST_NEAR]

    def _open_problems(self, g: int) -> list[int]:
        """The problems at the γ of row g that a longer search may prove."""
        left = np.flatnonzero(~self.ledger.exact[g].all(axis=0)).tolist()
        return [j for j in left if (g, j) not in self.ledger.imprecise]

    def _open_rows(self) -> list[int]:
        """The rows with open problems, in the order in which they matter for the choice."""
        ledger, rows = self.ledger, self.rows
        error, lower = ledger.sums("error")[rows], ledger.sums("lower")[rows]
        least = error.min()
        matters = ((lower < least) & ~ledger.exact[rows, :, : self.k].all(axis=2)).any(axis=1)
        order = np.lexsort((error.min(axis=1), ~matters))
        return [g for g in rows[order].tolist() if self._open_problems(g)]

    def prove_model(self, g: int, t: int, limits: Limits) -> None:
        """Prove the model of all rows at the cell (g, t) within limits."""
        ledger = self.ledger
        if not ledger.exact[g, t, self.k]:
            self._report_cell(g, t, "the model of all rows")
            self._model(g, t, limits)
            if not ledger.exact[g, t, self.k]:
                ledger.note_limit(g, limits.reached(0) or Status.PRECISION)
            self.save([g])

    def models(self) -> list[tuple[int, int]]:
        """Cells whose model of all rows is to be proved: row of the ledger and index of τ.

        The first is the cell of least estimate. Where everything is to be proved, the cells follow
        whose folds are proved and whose model is not.
        """
        ledger, error = self.ledger, self.ledger.sums("error")[self.rows]
        cells = [divmod(int(np.argmin(error)), int(error.shape[1]))]
        if self.everything:
            exact = ledger.exact[self.rows]
            left = exact[:, :, : self.k].all(axis=2) & ~exact[:, :, self.k]
            cells += [(i, t) for i, t in np.argwhere(left).tolist() if (i, t) != cells[0]]
        return [(int(self.rows[i]), t) for i, t in cells]

    def _report_cell(self, g: int, t: int, part: str) -> None:
        """Report the current cell, a part of it, the gap of the least error and the time left."""
        ledger, rows = self.ledger, self.rows
        error = float(ledger.sums("error")[rows].min())
        gap = (error - float(ledger.sums("lower")[rows].min())) / error if error > 0.0 else 0.0
        left = self.limits.remaining()
        proved = ledger.exact[rows, :, : self.k].all(axis=2)
        self._since_report = Limits()
        self.report(
            "proving" + ("" if left is None else f", at most {left:.0f} s more"),
            int(proved.sum()),
            proved.size,
            f"γ = {ledger.gammas[g]:.4g}, τ = {ledger.taus[t]}, {part}, "
            f"gap of the least error {100.0 * gap:.3g} %",
        )

    def _open_cells(self) -> list[tuple[int, int]]:
        """Row and index of τ of the cells that are still to be proved, the least estimate first.

        Where everything is to be proved, the largest γ comes first.

        Where the choice alone is to be proved, these are the cell of least estimate and the cells
        whose lower bound is below that estimate, any of which could have a smaller error.
        """
        ledger, rows = self.ledger, self.rows
        error, lower = ledger.sums("error")[rows], ledger.sums("lower")[rows]
        wanted = ~ledger.exact[rows, :, : self.k].all(axis=2) & ~self.beyond_precision[rows]
        if not self.everything:
            rounding = ledger.data.rounding * ledger.data.total
            best = np.zeros(error.shape, dtype=bool)
            best[least(error, ledger.taus, np.array(ledger.gammas)[rows], rounding)] = True
            wanted &= best | (lower < error.min() * (1.0 - 2.0 * TIE) - rounding)
        order = np.argsort(error, axis=None, kind="stable")
        if self.everything:  # A smaller γ takes longer.
            gammas = np.array(ledger.gammas)[rows]
            order = order[np.argsort(-gammas[order // error.shape[1]], kind="stable")]
        cells = (divmod(int(i), error.shape[1]) for i in order)
        return [(int(rows[i]), t) for i, t in cells if wanted[i, t]]

    def _try_all_sizes(self, g: int, t: int, spent: float) -> Iterator[Batch]:
        """Batches of one tree for all sizes of every fold at the γ of row g.

        The tree of the first fold has a limit of nodes. Where it ends, the trees of the other folds
        have four times the limit; otherwise no further tree is searched.

        spent: Seconds of proofs so far.
        """
        share = 1.0 if self.ledger.data.constraints.plain else SHARE_OF_NODES_OF_UNITS
        nodes = int(share * TRIAL_NODES_PER_SECOND * spent)
        nodes = max(nodes, 2 * self._largest_tree)
        left = np.flatnonzero(~self.ledger.exact[g, :, : self.k].all(axis=0)).tolist()
        for problems, most in ((left[:1], nodes), (left[1:], 4 * nodes)):
            self._report_cell(g, t, f"all sizes of {len(left)} folds")
            yield (batch := self._one_tree(g, problems, most))
            if set(batch.statuses) - {Status.OPTIMAL}:
                self._next_trial = TRIAL_GROWTH * spent
                return
        if self.everything:
            yield self._one_tree(g, [self.k], 4 * nodes)

    def _all_sizes(self, rows: list[int], rows_of: dict[int, list[int]], most_nodes: int) -> Batch:
        """The batch of all sizes of some problems at the γ of some rows, a unit for each problem.

        rows_of: For every problem those of the rows at whose γ the problem is searched.
        most_nodes: As of :func:`~sparsecv.cv.estimate.fold_unit`.
        """
        ledger, gammas = self.ledger, np.array(self.ledger.gammas)
        tasks = [
            (j, gammas[at], ledger.taus, "exact", ledger.listed.get(j, {}), most_nodes)
            for j, at in rows_of.items()
        ]
        return self._batch_of_problems(rows, rows_of, fold_unit, tasks)

    def _one_tree(self, g: int, problems: list[int], most_nodes: int) -> Batch:
        """The batch of one tree for all sizes of each of some problems at the γ of row g.

        most_nodes: As of :func:`~sparsecv.cv.estimate.tree_unit`.
        """
        ledger, tasks = self.ledger, []
        for j in problems:
            choice = ledger.choice if j == self.k else ledger.best_choice
            starts = [ledger.supports[c] for c in choice[g, :, j]]
            tasks.append((j, ledger.gammas[g], ledger.taus, starts, most_nodes))
        return self._batch_of_problems([g], {j: [g] for j in problems}, tree_unit, tasks)

    def _batch_of_problems(
        self,
        rows: list[int],
        rows_of: dict[int, list[int]],
        unit: Callable[..., tuple[SupportPath, Array]],
        tasks: list[tuple[Any, ...]],
    ) -> Batch:
        """The batch of a unit for each problem, whose paths are entered into the ledger.

        rows_of: For every problem the rows at whose γ the problem is searched.
        """
        ledger, problems = self.ledger, list(rows_of)

        def enter(index: int, found: tuple[SupportPath, Array]) -> Status:
            j, ended = problems[index], Status.OPTIMAL
            path, errors = found
            ledger.listed[j] = path.listed
            for i, g in enumerate(rows_of[j]):
                ledger.take_path(g, j, path, i, errors[i], again=True)
                if path.proved[i].all():
                    nodes = int(path.n_nodes[i]) if j < self.k else 0
                    self._largest_tree = max(self._largest_tree, nodes)
                    continue
                tree = path.unfinished.get(i)
                ended = Status.TIME_LIMIT if tree is None else tree.status
                if ended is not Status.PRECISION:
                    self._hard = max(self._hard, ledger.gammas[g])
            return ended

        limits = self.limits
        batch = Batch(
            rows, partial(in_time, unit), ledger.data, tasks, enter, limits.share, keep=True
        )
        return batch.all_or_none(limits)

    def _prove(self, g: int, t: int, seconds: float) -> Generator[Batch, None, bool]:
        """Batches of the folds of one cell, each with a limit of some seconds.

        Returns: Whether a limit was reached, so that the cell is left to the next round.
        """
        ledger, shared = self.ledger, self._shared_tree(g)
        if shared is not None:
            self._model(g, t, self.limits.within(seconds))
            limits = self.limits.within(seconds * max(10.0, 0.1 * self.k))
            failed = {(yield from shared.solve_tau(t, limits, branch=True))}
            ledger.n_mio[g] += 1 + int(ledger.searched[g, t].sum())
            ledger.trees[g, t] += 1
        else:
            if self._bound_seconds[g, t] == FIRST_ROUND_SECONDS:
                self._bound(g, t)
                if (g, t) not in self._open_cells():
                    return False
            left = [(g, t, j) for j in np.flatnonzero(~ledger.exact[g, t, : self.k]).tolist()]
            # A single open fold keeps h at the cell unproved, so that the seconds of the other
            # folds would be better spent on other cells.
            yield (batch := self.folds(left).all_or_none(self.limits, seconds))
            failed = set(batch.statuses) - {Status.OPTIMAL}
        self.beyond_precision[g, t] = failed == {Status.PRECISION}
        ledger.narrow_by_objective(g, t)
        return bool(failed - {Status.OPTIMAL, Status.PRECISION})

    def _bound(self, g: int, t: int) -> float:
        """Search the problem of all rows at one cell, and narrow all errors that its bound bounds.

        The bound holds at other γ and τ, too (``share_bounds``), and bounds the errors of folds
        there. The next search of the cell gets more seconds.

        Returns: The bound of this search, without what other cells imply here, so that the caller
            sees what the seconds have brought.
        """
        ledger, k, before = self.ledger, self.k, self.ledger.bound[..., self.k].copy()
        found = self._model(g, t, self.limits.within(float(self._bound_seconds[g, t])))
        self._bound_seconds[g, t] *= ROUND_GROWTH
        ledger.share_bounds()
        risen = (ledger.bound[..., k] > before)[self.rows]
        for i, at in np.argwhere(risen).tolist():
            ledger.narrow_by_objective(int(self.rows[i]), at)
        return found

    def _raise_least(self, clock: Limits) -> None:
        """Raise the least lower bound by bounds on the optimum of all rows, for a share of time.

        By Corollary 3 the error of a cell rises with these bounds, k times as much.

        clock: It shows the seconds of all proofs so far, of which these bounds take a share.
        """
        ledger, k = self.ledger, self.k
        while self._bounding < self._bounding_share * clock.elapsed():
            cells = [] if self.limits.reached(0) is not None else self._open_cells()
            lower, error = ledger.sums("lower"), ledger.sums("error")
            least = min(cells, key=lambda at: (lower[at], self._bound_seconds[at]), default=None)
            if least is None:
                return
            at, started = (*least, k), clock.elapsed()
            known, gap = ledger.bound[at], float(ledger.objective[at] - ledger.bound[at])
            if ledger.exact[at] or k * gap <= MIN_RISE_SHARE * error[least]:
                return
            found = self._bound(*least)
            self._bounding += clock.elapsed() - started
            least_rise = MIN_CLOSED_SHARE * gap
            if ledger.bound[at] >= known + least_rise:
                self._bounding_share = BOUNDING_SHARE
            elif found >= known - least_rise:
                self._bounding_share *= 0.75

    def folds(self, problems: list[tuple[int, int, int]], backend: str = "") -> Batch:
        """A batch, not yet run, that proves folds at one γ and enters the proofs in the ledger.

        problems: Row of γ, index of τ, and fold.
        backend: The solver of every problem, which gets no support to start from; "" for branch
            and bound, which starts from supports of the same fold at the next smaller τ and the
            neighbouring γ.
        """
        ledger, (g, first, _) = self.ledger, problems[0]

        def enter(index: int, found: tuple[Proof, float, float]) -> Status:
            at = problems[index]
            ledger.n_mio[g] += not ledger.searched[at]
            ledger.searched[at] = True
            ledger.take_proof(at, found[0])
            ledger.narrow(*at, *found[1:])
            return found[0].status

        def report_done(done: int, total: int) -> None:
            if done and self._since_report.elapsed() >= REPORT_SECONDS:
                self._report_cell(g, first, f"fold {done} of {total}")

        tasks = []
        for g, t, j in problems:
            near = [(g, t), (g, t - 1), *((i, t) for i in self._beside(g))]
            starts = [ledger.support(*at, j) for at in near if at[1] >= 0 and not backend]
            # Corollary 3 serves folds that train on all rows but those that they hold out.
            bound = float(ledger.bound[g, t, self.k]) if ledger.data.covers(j) else 0.0
            best = float(ledger.best_objective[g, t, j])
            at = ledger.gammas[g], int(ledger.taus[t])
            tasks.append((j, at, best, starts, bound, backend))
        unit, limits = partial(in_time, prove_fold), self.limits
        return Batch([g], unit, self._forms, tasks, enter, limits.share, report_done)

    def _beside(self, g: int) -> list[int]:
        """The rows of the next smaller and the next larger γ."""
        order = sorted(self.rows.tolist(), key=lambda i: self.ledger.gammas[i])
        at = order.index(g)
        return [order[i] for i in (at - 1, at + 1) if 0 <= i < len(order)]

    def _model(self, g: int, t: int, limits: Limits) -> float:
        """Search the problem of all rows at one cell, whose bound u* bounds every fold's error.

        Corollary 3: h_j ≥ u* − u_j, with the objective u_j of fold j's incumbent.
        Returns: The bound that is found, or 0 without a search.
        """
        ledger, k = self.ledger, self.k
        if ledger.exact[g, t, k] or limits.reached(0) is not None:
            return 0.0
        problem = ledger.problem(g, k).replace(tau=int(ledger.taus[t]))
        gram = self._forms.gram(k, problem)
        options = {"backend": "", "gram": gram, "n_jobs": self.n_jobs}
        return solve_problem(ledger, (g, t, k), limits, **options).lower_bound

    def _shared_tree(self, g: int) -> SharedTree | None:
        """The tree that the folds of a γ share, made at the first call.

        None where there are fewer than ``MANY_FOLDS`` folds, where a fold holds out more rows than
        ``MAX_ROWS_LEFT_OUT``, and where there cannot be such a tree (:meth:`SharedTree.of`).
        """
        if g not in self._trees:
            folds = self.ledger.data.folds
            suited = folds.k >= MANY_FOLDS and int(folds.sizes.max()) <= MAX_ROWS_LEFT_OUT
            self._trees[g] = SharedTree.of(self.ledger, g) if suited else None
        return self._trees[g]


def solve_grid(
    ledger: Ledger, g: int, settings: Settings, limits: Limits, report: Report
) -> Iterator[Batch]:
    """Solve every fold at every τ alone: the first paper's Grid, k·|τ| training problems.

    The problem of all rows is solved by one tree. Problems that the time limit leaves unsolved
    keep their estimates.
    """
    data, taus, k = ledger.data, ledger.taus, ledger.k
    whole = support_path(data.full(), [ledger.gammas[g]], taus, limits=limits.share(k + 1.0))
    ledger.take_path(g, k, whole, 0)
    open_cells = ~(ledger.exact & ledger.searched)[g, :, :k]
    if cells := [(g, t, j) for t, j in np.argwhere(open_cells).tolist()]:
        prover = Prover(ledger, [g], limits, settings, report, lambda rows: None)
        yield (batch := prover.folds(cells, settings.backend))
        ledger.note_limit(g, worst(batch.statuses))
