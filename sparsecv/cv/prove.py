"""Proofs beyond 45 columns: cells (γ, τ) in the order in which they matter for the choice.

Algorithm 1's idea on the whole surface. The cell of least estimate comes first; after it every cell
whose lower bound is still below that estimate, the nearest first. No cell may eat the time: in each
round a problem gets four times the seconds it had in the round before. Where one tree for all sizes
of a fold ends within a short trial, the folds of that γ get such trees, which prove every τ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.design import Array
from ..design.fold_data import FoldData
from ..solvers.branching.single import branch_and_bound
from ..solvers.core.limits import Limits
from ..solvers.core.problem import SparseRidgeProblem
from ..solvers.core.result import Status
from ..solvers.executor import run_units
from ..solvers.leaps.all_sizes import MAX_COLUMNS, BestSubsets, best_subsets
from ..solvers.relaxation.ellipsoid import Spectrum
from ..solvers.relaxation.gram import GramForm, wants_gram
from ..solvers.relaxation.perspective import perspective_relaxation
from ..solvers.supports.rounding import pad_support
from .bounds import fold_bounds
from .estimate import MANY_FOLDS
from .ledger import Page
from .progress import Tell
from .results import TIE
from .shared_tree import JointFolds, rows_left_out

FIRST, GROWTH = 0.05, 4.0  # seconds of a problem in the first round, and in later ones that often
JOINT_ROWS = 4  # in a fold, up to which one tree for all folds pays
TELL_AGAIN = 0.5  # seconds
# An all-sizes tree is first tried at a γ once single cells have taken this many seconds, and after
# one that did not end again once they have taken so many times as long.
FIRST_TRIAL_SECONDS, TRIAL_GROWTH = 0.1, 4.0
# A trial tree may have so many nodes for every second of proving so far: an eighth of that second.
TRIAL_NODES_PER_SECOND = 3_000_000


class Cell(NamedTuple):
    """A fold's problem and the objective of its incumbent."""

    fold: int
    gamma: float
    tau: int
    objective: float


class FoldProof(NamedTuple):
    """What branch and bound found of one training problem.

    support: The incumbent; None where there was no time to begin.
    branched: Whether the fold was searched.
    low, high: Interval of the fold's error where the incumbent is not proved.
    """

    status: Status
    support: NDArray[np.intp] | None = None
    n_nodes: int = 0
    branched: bool = False
    low: float = 0.0
    high: float = np.inf


class FoldForms:
    """The folds, and of each what every γ and τ share; another process makes that anew."""

    def __init__(self, data: FoldData) -> None:
        self.data = data
        self._spectra: dict[int, Spectrum] = {}
        self._grams: dict[int, GramForm] = {}

    def __reduce__(self) -> Any:
        return FoldForms, (self.data,)

    def gram(self, j: int, problem: SparseRidgeProblem) -> GramForm | None:
        """XᵀX of a fold's training rows, where that serves."""
        if j not in self._grams and wants_gram(problem):
            self._grams[j] = GramForm.of(problem)
        return self._grams.get(j)

    def spectrum(self, j: int, problem: SparseRidgeProblem) -> Spectrum:
        """Eigenvalues of a fold's training rows."""
        if j not in self._spectra:
            self._spectra[j] = Spectrum.of(problem)
        return self._spectra[j]


def prove_fold(
    folds: FoldForms,
    cell: Cell,
    starts: Sequence[NDArray[np.intp]],
    full_bound: float,
    limits: Limits,
) -> FoldProof:
    """One training problem: branch and bound, and an interval where that does not end.

    full_bound: Lower bound on the optimum of all rows; 0 where the fold's rows are not all rows.
    """
    j = cell.fold
    if (reached := limits.reached(0)) is not None:
        return FoldProof(reached)
    problem = folds.data.training(j).replace(gamma=cell.gamma, tau=cell.tau)
    gram = folds.gram(j, problem)
    found = branch_and_bound(problem, warm_starts=starts, tol=0.0, limits=limits, gram=gram)
    support = pad_support(found.support, cell.tau, problem.p)
    counts = found.n_nodes, True
    if found.status is Status.OPTIMAL:
        return FoldProof(found.status, support, *counts)
    relaxed = perspective_relaxation(problem, extract=True, gram=gram, gap=1e-4)
    H, targets = folds.data.held_out(j)
    low, high = fold_bounds(
        problem,
        (relaxed.beta,),
        full_bound,
        min(cell.objective, problem.objective(support)),
        H,
        targets,
        spectrum=folds.spectrum(j, problem),
    )
    return FoldProof(found.status, support, *counts, low, high)


def prove_sizes(
    folds: FoldForms,
    j: int,
    gamma: float,
    taus: NDArray[np.intp],
    starts: Sequence[NDArray[np.intp]],
    most_nodes: int,
    limits: Limits,
) -> BestSubsets | None:
    """Search one tree for all sizes of a fold's training problem; None where the time is up."""
    if limits.reached(0) is not None:
        return None
    return best_subsets(
        folds.data.training(j).replace(gamma=gamma),
        sizes=taus,
        warm_starts=starts,
        limits=limits.within(nodes=most_nodes),
    )


class Prover:
    """Proves pages of one surface.

    pages: With an incumbent for every fold and τ.
    everything: Every cell, not only what the least error needs.
    tell, save: Told what is being proved; told which page changed for good.
    """

    def __init__(
        self,
        data: FoldData,
        pages: Sequence[Page],
        limits: Limits,
        *,
        everything: bool,
        n_jobs: int | None,
        tell: Tell,
        save: Callable[[Sequence[Page]], None],
    ) -> None:
        self.data, self.pages, self.limits = data, pages, limits
        self.everything, self.n_jobs, self.tell, self.save = everything, n_jobs, tell, save
        self.stuck = np.zeros((len(pages), pages[0].taus.size), dtype=bool)
        self._joint: dict[int, JointFolds | None] = {}
        self._folding = FoldForms(data)
        self._gram: GramForm | None = None
        self._told = Limits()  # since something was told
        # Seconds of proving after which a tree for all sizes is tried, and the nodes of the largest
        # of these trees that has ended.
        self._next_trial, self._largest_tree = FIRST_TRIAL_SECONDS, 0

    def run(self) -> None:
        """Prove until the choice, or everything, is proved, or the time is up."""
        for page in self.pages:
            for t in range(page.taus.size):
                page.narrow_by_objective(t, float(page.model_bound[t]))
        seconds = FIRST
        trees = self.data.p <= MAX_COLUMNS and self.data.folds.k < MANY_FOLDS
        clock = Limits()
        while True:
            cells = self._open_cells()
            if not cells:
                break
            tried: set[tuple[int, int]] = set()
            while cells and self.limits.reached(0) is None:
                g, t = cells[0]
                if trees and clock.elapsed() >= self._next_trial:
                    self._try_all_sizes(g, t, clock.elapsed())
                    cells = [cell for cell in self._open_cells() if cell not in tried]
                    continue
                tried.add((g, t))
                self._tell(g, t, f"{int((~self.pages[g].exact[t]).sum())} folds")
                self._prove(g, t, seconds)
                self.save([self.pages[g]])
                cells = [cell for cell in self._open_cells() if cell not in tried]
            if self.limits.reached(0) is not None:
                break
            seconds *= GROWTH
        reached = self.limits.reached(0)
        if reached is Status.INTERRUPTED:
            raise KeyboardInterrupt
        for g, _ in self._open_cells():
            self.pages[g].met(reached or Status.PRECISION)

    def prove_model(self, g: int, t: int) -> None:
        """The problem of all rows at the chosen cell, with all the time that is left.

        g, t: Positions of γ and τ.
        """
        page = self.pages[g]
        if page.model_proved[t]:
            return
        self._tell(g, t, "the model of all rows")
        self._model(g, t, self.limits)
        if not page.model_proved[t]:
            page.met(self.limits.reached(0) or Status.PRECISION)
        self.save([page])

    def best(self) -> tuple[int, int]:
        """Cell of least estimate.

        Returns g, t: Positions of γ and τ.
        """
        error = self._over_folds("error")
        g, t = divmod(int(np.argmin(error)), int(error.shape[1]))
        return g, t

    def _over_folds(self, name: str) -> Array:
        """What the pages know of every fold, summed: shape (γ, τ)."""
        return np.array([getattr(page, name).sum(axis=1) for page in self.pages])

    def _tell(self, g: int, t: int, part: str) -> None:
        """The cell and the part of it worked on, the gap of the least error, the time left."""
        error, least = float(self._over_folds("error").min()), self._over_folds("lower").min()
        gap = (error - float(least)) / error if error > 0.0 else 0.0
        left = self.limits.remaining()
        proved = [page.exact.all(axis=1) for page in self.pages]
        self._told = Limits()
        self.tell(
            f"proving γ = {self.pages[g].gamma:.4g}, τ = {self.pages[g].taus[t]}, {part}, "
            f"gap of the least error {100.0 * gap:.3g} %"
            + ("" if left is None else f", {left:.0f} s left"),
            int(np.sum(proved)),
            int(np.size(proved)),
        )

    def _open_cells(self) -> list[tuple[int, int]]:
        """Cells still to be proved, the most urgent first."""
        error, lower = self._over_folds("error"), self._over_folds("lower")
        exact = np.array([page.exact.all(axis=1) for page in self.pages])
        wanted = ~exact & ~self.stuck
        if not self.everything:
            wanted &= lower < error.min() * (1.0 - 2.0 * TIE)
            best = np.unravel_index(int(np.argmin(error)), error.shape)
            wanted[best] = not exact[best] and not self.stuck[best]
        order = np.argsort(error, axis=None, kind="stable")
        cells = [divmod(int(i), error.shape[1]) for i in order]
        return [cell for cell in cells if wanted[cell]]

    def _try_all_sizes(self, g: int, t: int, spent: float) -> None:
        """One tree for all sizes of every fold at one γ, as far as they end."""
        nodes = max(int(TRIAL_NODES_PER_SECOND * spent), 2 * self._largest_tree)
        if not self._all_sizes(g, t, nodes):
            self._next_trial = TRIAL_GROWTH * spent

    def _all_sizes(self, g: int, t: int, nodes: int) -> bool:
        """The trees of a γ, that of the first fold with so many nodes; did all end?"""
        page, clock = self.pages[g], Limits()
        left = np.flatnonzero(~page.exact.all(axis=0)).tolist()
        for folds, most in ((left[:1], nodes), (left[1:], 4 * nodes)):
            self._tell(g, t, f"all sizes of {len(left)} folds")
            tasks = [
                (j, page.gamma, page.taus, [page.supports[c] for c in page.best_choice[:, j]], most)
                for j in folds
            ]
            units = run_units(
                prove_sizes, self._folding, tasks, self.n_jobs, allot=lambda _: self.limits
            )
            for index, found in units:
                if found is None:
                    return False
                for i, support in enumerate(found.supports):
                    here = np.array([folds[index]])
                    page.offer(i, here, support)
                    if found.proved[i]:
                        page.prove(i, here)
                page.searched[:, folds[index]] = True
                page.n_mio += 1
                page.n_nodes += found.n_nodes
                self.save([page])
                if not found.proved.all():
                    return False
                self._largest_tree = max(self._largest_tree, found.n_nodes)
        if self.everything:
            self._all_models(page, 4 * nodes)
        page.seconds += clock.elapsed()
        return True

    def _all_models(self, page: Page, most_nodes: int) -> None:
        """Search one tree for the models of all rows at one γ."""
        found = best_subsets(
            self.data.full().replace(gamma=page.gamma),
            sizes=page.taus,
            warm_starts=page.models,
            limits=self.limits.within(nodes=most_nodes),
        )
        page.n_nodes += found.n_nodes
        rows = zip(found.supports, found.objective, found.lower_bound, found.proved, strict=True)
        for t, (support, objective, bound, proved) in enumerate(rows):
            page.improve_model(t, support, float(objective), float(bound), bool(proved))

    def _prove(self, g: int, t: int, seconds: float) -> None:
        """Every fold of one cell, each within so many seconds."""
        page, k = self.pages[g], self.data.folds.k
        clock = Limits()
        joint = self._jointly(g)
        self._model(g, t, self.limits.within(seconds))
        if joint is not None:
            before = joint.n_nodes
            limits = self.limits.within(seconds * max(10.0, 0.1 * k))
            status = joint.solve_tau(t, page.models[t], limits, branch=True, n_jobs=self.n_jobs)
            page.n_nodes += joint.n_nodes - before
            page.n_mio += 1 + int(page.searched[t].sum())
            page.whole_trees[t] += 1
            self.stuck[g, t] = status is Status.PRECISION
        else:
            statuses = self._folds(page, t, seconds)
            ended = [s for s in statuses if s is not Status.OPTIMAL]
            self.stuck[g, t] = bool(ended) and all(s is Status.PRECISION for s in ended)
        page.narrow_by_objective(t, float(page.model_bound[t]))
        page.seconds += clock.elapsed()

    def _folds(self, page: Page, t: int, seconds: float) -> list[Status]:
        """Branch and bound of every fold of a cell that is open, each within so many seconds."""
        unproved, limits = np.flatnonzero(~page.exact[t]).tolist(), self.limits
        statuses: list[Status] = []

        def allot(_: float) -> Limits:
            # a fold that was not proved leaves the cell to a later round
            failed = any(status is not Status.OPTIMAL for status in statuses)
            return limits.within(0.0 if failed else seconds)

        tasks = [self._task(page, t, j) for j in unproved]
        for index, proof in run_units(prove_fold, self._folding, tasks, self.n_jobs, allot=allot):
            statuses.append(proof.status)
            self._enter(page, t, unproved[index], proof)
            if self._told.elapsed() >= TELL_AGAIN:
                g = next(i for i, one in enumerate(self.pages) if one is page)
                self._tell(g, t, f"fold {len(statuses)} of {len(unproved)}")
        return statuses

    def _task(self, page: Page, t: int, j: int) -> tuple[Cell, list[NDArray[np.intp]], float]:
        """What :func:`prove_fold` takes besides the folds and limits."""
        cell = Cell(j, page.gamma, int(page.taus[t]), float(page.best_objective[t, j]))
        starts = [page.support(i, j) for i in (t, t - 1) if i >= 0]
        bound = float(page.model_bound[t]) if self.data.folds.covers(j) else 0.0
        return cell, starts, bound

    def _enter(self, page: Page, t: int, j: int, proof: FoldProof) -> None:
        """Take over what was found of one fold."""
        if proof.support is None:
            return
        here = np.array([j])
        page.offer(t, here, proof.support)
        page.n_nodes += proof.n_nodes
        if proof.branched:
            page.n_mio += not page.searched[t, j]
            page.searched[t, j] = True
        if proof.status is Status.OPTIMAL:
            page.prove(t, here)
        else:
            page.narrow(t, here, np.array([proof.low]), np.array([proof.high]))

    def _model(self, g: int, t: int, limits: Limits) -> None:
        """The problem of all rows at one cell: its bound serves every fold (Corollary 3)."""
        page = self.pages[g]
        if page.model_proved[t] or limits.reached(0) is not None:
            return
        problem = self.data.full().replace(gamma=page.gamma, tau=int(page.taus[t]))
        found = branch_and_bound(
            problem,
            warm_starts=[page.models[t]],
            tol=0.0,
            limits=limits,
            gram=self._whole_gram(),
            n_jobs=self.n_jobs,
        )
        page.n_nodes += found.n_nodes
        support = pad_support(found.support, int(page.taus[t]), problem.p)
        proved = found.status is Status.OPTIMAL
        page.improve_model(t, support, found.objective, found.lower_bound, proved)

    def _whole_gram(self) -> GramForm | None:
        full = self.data.full()
        if self._gram is None and wants_gram(full):
            self._gram = GramForm.of(full)
        return self._gram

    def _jointly(self, g: int) -> JointFolds | None:
        """One tree for all folds of few rows, where folds are many."""
        if g not in self._joint:
            folds = self.data.folds
            few = folds.k >= MANY_FOLDS and int(folds.sizes.max()) <= JOINT_ROWS
            page = self.pages[g]
            full = self.data.full().replace(gamma=page.gamma)
            left_out = rows_left_out(self.data, full) if few else None
            self._joint[g] = None if left_out is None else JointFolds(self.data, page, left_out)
        return self._joint[g]
