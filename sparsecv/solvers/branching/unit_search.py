"""Branch and bound for one problem with constraints on columns, at fixed (γ, τ).

The tree of ``search`` decides units of columns here: groups that enter together and count once, or
single columns. Every support is fitted by the problem itself, within the bounds on coefficients.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Status, Work
from ..kernels.linalg import Array, record, zeros
from ..leaps.all_sizes import support_bound
from ..relaxation.dual_bound import EXTRA
from ..relaxation.gram import TOLERANCE
from ..relaxation.unit_diagonal import fit_units, fits
from ..relaxation.unit_form import UnitForm, UnitRelaxer
from ..supports.unit_steps import UnitSteps
from . import node
from .search import Search, Tree, new_children
from .unit_nodes import UnitState

Support = NDArray[np.intp]


class UnitSearchSettings(NamedTuple):
    """Tuning numbers of the tree over units: choices that decide time, not what is proved."""

    # Forward steps and swaps take at most this share of the seconds left, before the tree begins.
    # Where a support of τ units is given there are no forward steps.
    share_of_steps: float = 0.2
    # A relaxation at a node ends after so many rounds, a round being one dual bound and up to five
    # passes over the active units.
    rounds: int = 20
    # It ends as well where the relaxation's value exceeds the bound by at most this share of the
    # value.
    gap: float = 1e-5
    # Or where the value is below the bound that would close the node, and exceeds the bound by at
    # most this share of what the bound lacks.
    shortfall_share: float = 0.1
    # A relaxation rounded to a support whose objective is at most this multiple of the incumbent's
    # has its support improved by swaps.
    max_swapped_ratio: float = 1.02
    # Relaxations are rounded to supports, and these are swapped, as long as that has taken at most
    # this share of the seconds of the search.
    share_of_rounding: float = 0.1
    # Swaps of a rounded support end after this many seconds.
    swap_seconds: float = 0.2


SETTINGS = UnitSearchSettings()


class Found(NamedTuple):
    """A support, a lower bound on the least objective, and how the search ended."""

    support: Support
    objective: float
    bound: float
    status: Status
    work: Work


class UnitTree(Tree):
    """The open nodes of one thread, the incumbent, and the work space of the thread's search.

    form: The problem's Gram form over units.
    """

    def __init__(self, form: UnitForm, problem: SparseRidgeProblem, tol: float) -> None:
        self.gram, self.form, self.problem, self.tol = form, form, problem, tol
        m, p, tau, ridge = form.left.units.size, form.b.size, problem.tau, problem.gamma / 2.0
        now = {"upper": np.inf, "least": np.inf, "pruned": np.inf, "ridge": ridge}
        self.st = UnitState(
            Q=form.quadratic(),
            terms=form.terms(ridge),
            support=np.zeros(m, dtype=np.int64),
            now=record(node.NOW, tolerance=max(tol, TOLERANCE), **now),
            state=np.zeros(m, dtype=np.int8),
            lam=np.zeros(1),
            top=np.zeros(tau + EXTRA),
            columns=np.zeros(m, dtype=np.int64),
            tau=np.array([tau]),
            share=np.zeros(m),
            **zeros("beta g", p),
        )
        self.ch, self.nt, self.steps = new_children(m, p, tau), None, UnitSteps(problem)
        self.units = form.arrays(SETTINGS.gap, SETTINGS.rounds, SETTINGS.shortfall_share)
        self._open(m, p)
        self.tried: set[bytes] = set()
        self.searching = self.rounding = 0.0  # seconds

    def columns(self, inside: NDArray[np.bool_]) -> Support:
        """The problem's columns of units of the tree."""
        return self.problem.constraints.columns_of(self.form.left.units[inside])

    def enter(self, support: Support, swaps: int = 0) -> None:
        """Make an allowed support the incumbent if it is better; ``swaps`` is not used."""
        objective = self.problem.objective(support)
        if objective < float(self.now["upper"][0]):
            self.now["upper"] = objective
            inside = np.isin(self.form.left.units, self.problem.constraints.units(support))
            self.st.support[:] = inside

    def advance(self, nodes: int) -> int:
        """Search on for about so many nodes, and fit the supports that the nodes came down to."""
        began = time.perf_counter()
        code = super().advance(nodes)
        for row in self.kept.tolist():
            support = self.columns(self.open.state[row] == node.IN)
            self.enter(support)
            bound = max(float(self.open.bound[row]), support_bound(self.problem, support))
            self.now["pruned"] = np.minimum(self.now["pruned"], bound)
            self.open.spare[int(self.counts["spare"][0])] = row
            self.counts["spare"] += 1
        self.counts["kept"] = 0
        ended = time.perf_counter()
        self.searching += ended - began
        if self.waiting.size and self.rounding <= self.allowed_rounding:
            self.round_best()
            self.rounding += time.perf_counter() - ended
        return code

    @property
    def allowed_rounding(self) -> float:
        """Seconds that supports rounded from relaxations may have taken so far."""
        return SETTINGS.share_of_rounding * self.searching

    def round_best(self) -> None:
        """Round the relaxation of the open node of least bound, and improve the support."""
        row = int(self.waiting[np.argmin(self.open.bound[self.waiting])])
        self.offer(self.open.state[row], self.open.beta[row])

    @property
    def target(self) -> float:
        """The bound that closes a node."""
        return float(self.now["upper"][0] * (1.0 - self.now["tolerance"][0]))

    def taking(self, other: UnitTree) -> UnitTree:
        """This tree with the incumbent of another tree of the same problem."""
        self.take_incumbent(other)
        return self

    def found(self, bound: float, status: Status, work: Work) -> Found:
        """The incumbent, with what a search says of it."""
        support = self.columns(self.st.support > 0)
        return Found(support, self.problem.objective(support), bound, status, work)

    def offer(self, state: NDArray[np.int8], beta: Array) -> None:
        """Enter the support of the units of largest coefficients beside those that are in.

        beta: (p,), coefficients of the relaxation of a node in this state.
        """
        asked, upper = self.problem.constraints, float(self.now["upper"][0])
        size = np.add.reduceat(self.st.terms.w * beta**2, self.form.first[:-1])
        worth = np.full(asked.n_units, -1.0)
        worth[self.form.left.units] = np.where(state == node.IN, np.inf, size)
        worth[self.form.left.units[state == node.OUT]] = -0.5
        chosen = asked.closed(np.empty(0, dtype=np.intp), worth)
        for u in np.argsort(-worth, kind="stable").tolist():
            if worth[u] <= 0.0 or chosen.size >= self.problem.tau:
                break
            more = asked.closed(np.append(chosen, u), worth)
            if more.size <= self.problem.tau:
                chosen = more
        support = asked.padded(asked.columns_of(chosen), self.problem.tau, worth)
        if support.tobytes() in self.tried:
            return
        self.tried.add(support.tobytes())
        objective = self.problem.objective(support)
        if objective <= upper * SETTINGS.max_swapped_ratio:
            support = self.steps.swapped(support, objective, Limits(SETTINGS.swap_seconds))
        self.enter(support)


def search_units(
    problem: SparseRidgeProblem,
    warm_starts: Sequence[Support],
    tol: float,
    limits: Limits,
    n_jobs: int | None = None,
) -> Found:
    """Search for the best allowed support of at most τ units.

    warm_starts: Allowed supports of at most τ units.
    """
    asked, tau = problem.constraints, problem.tau
    starts = [asked.padded(s, tau) for s in warm_starts if asked.allowed(s)]
    if not any(asked.units(s).size == tau for s in warm_starts):
        steps = limits.share(1.0 / SETTINGS.share_of_steps)
        starts += UnitSteps(problem).supports([tau], starts, steps).values()
    form, ridge = UnitForm.of_units(problem, limits), problem.gamma / 2.0
    tree = UnitTree(form, problem, tol)
    for start in starts:
        tree.enter(start)
    root = UnitRelaxer(form, ridge, form.left.include, tau - int(form.left.include.sum()))
    bound = root.relax(tree.target)
    tree.offer(form.left.include, root.beta)
    if bound < tree.target and fits(form, problem.rank_bound):
        D, root, bound = fit_units(form, root, bound, tree.target, limits)
        tree = UnitTree(replace(form, D=D), problem, tol).taking(tree)
        tree.offer(form.left.include, root.beta)
    if bound >= tree.target:
        return tree.found(bound, Status.OPTIMAL, Work(1, limits.elapsed()))
    tree.add(form.left.include[None], root.beta[None], root.lam, bound)
    search = Search(tree, n_jobs)
    status = search.run(limits) or Status.TIME_LIMIT
    bound, nodes = max(bound, search.bound), 1 + search.n_nodes
    work = Work(nodes, limits.elapsed(), search.n_branched, tuple(search.history))
    best: UnitTree = search.best
    return best.found(bound, status, work)
