"""Branch and bound for one problem with constraints on columns, at fixed (γ, τ).

The tree of ``search`` decides units of columns here: groups that enter together and count once, or
single columns. Every support is fitted by the problem itself, within the bounds on coefficients.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Proof, Status, Work
from ..kernels.linalg import Array, allocated
from ..leaps.all_sizes import support_bound
from ..relaxation.descent import gram_arrays, new_sweeps, relax
from ..relaxation.dual_bound import first_multiplier
from ..relaxation.unit_form import UnitForm
from ..supports.path import SupportGrower
from . import driver, node
from .search import Search, Tree, shared_state
from .unit_nodes import UnitState

Support = NDArray[np.intp]
# A relaxation at a node ends after so many rounds, and at the root after ten times as many. A round
# is one dual bound and up to five passes over the active units. The number is a choice.
ROUNDS = 20


class UnitTree(Tree):
    """The open nodes of one thread, the incumbent, and the work space of the thread's search.

    form: The problem's Gram form over units.
    """

    def __init__(self, form: UnitForm, problem: SparseRidgeProblem, tol: float) -> None:
        self.gram, self.form, self.problem, self.tol = form, form, problem, tol
        m, p, tau = form.left.units.size, form.b.size, problem.tau
        shared = shared_state(form, problem, tol)
        lengths = {"m": m, "p": p, "tau": tau}
        self.st = allocated(UnitState, lengths, tau=np.array([tau]), **shared)
        # A relaxation ends where its value exceeds the bound by 1e-5 of the value, or is below the
        # bound that closes the node, and exceeds the bound by a tenth of what that lacks.
        sweeps = new_sweeps(gram_arrays(self.st.Q), m, 1e-5, ROUNDS, 0.1)
        self.ch = allocated(driver.Children, lengths, sweeps=sweeps)
        sizes = [tau, min(tau + 2, problem.constraints.max_size)]
        self.nt, self.grower = None, SupportGrower(problem, sizes, single=True)
        self.units = form.arrays()
        self._open(m, p)
        self.tried: set[bytes] = set()
        self.searching = self.rounding = 0.0  # seconds

    @property
    def target(self) -> float:
        """The bound that closes a node."""
        return float(self.now["upper"][0] * (1.0 - self.now["tolerance"][0]))

    @property
    def best_support(self) -> Support:
        """The columns of the incumbent."""
        return self._columns(self.st.support > 0)

    def _columns(self, inside: NDArray[np.bool_]) -> Support:
        """The problem's columns of units of the tree."""
        return self.problem.constraints.columns_of(self.form.left.units[inside])

    def relax_root(self) -> float:
        """The bound of the relaxation at the root, from the coefficients in ``st`` on."""
        st, inside, sweeps = self.st, self.form.left.include, self.ch.sweeps
        sweeps.limits["target"], sweeps.limits["rounds"] = self.target, 10 * ROUNDS
        k = self.problem.tau - int(inside.sum())
        st.lam[0] = first_multiplier(st.terms.b, st.terms.w, max(k, 1))
        relax(sweeps, self.units, st.terms, inside, k, st.beta, st.g, st.lam, st.top)
        sweeps.limits["rounds"] = ROUNDS
        return float(sweeps.best[0])

    def enter(self, support: Support, swaps: int = 0) -> None:
        """Make an allowed support the incumbent if it is better; ``swaps`` is not used."""
        objective = self.problem.objective(support)
        if objective < float(self.now["upper"][0]):
            self.now["upper"] = objective
            inside = np.isin(self.form.left.units, self.problem.constraints.units(support))
            self.st.support[:] = inside

    def advance(self, nodes: int) -> int:
        """Search on for about so many nodes, and fit the supports that the nodes came down to.

        The open node of least bound is then rounded to a support, as long as rounding has taken at
        most a tenth of the time of the search.
        """
        began = time.perf_counter()
        code = super().advance(nodes)
        for row in self.kept.tolist():
            support = self._columns(self.open.state[row] == node.IN)
            self.enter(support)
            bound = max(float(self.open.bound[row]), support_bound(self.problem, support))
            self.now["pruned"] = np.minimum(self.now["pruned"], bound)
            self.free(row)
        self.counts["kept"] = 0
        ended = time.perf_counter()
        self.searching += ended - began
        if self.waiting.size and self.rounding <= 0.1 * self.searching:
            row = int(self.waiting[np.argmin(self.open.bound[self.waiting])])
            self.offer(self.open.state[row], self.open.beta[row])
            self.rounding += time.perf_counter() - ended
        return code

    def offer(self, state: NDArray[np.int8], beta: Array) -> None:
        """Enter the support of the units of largest coefficients beside those that are in.

        A support at most 1.02 times as bad as the incumbent is improved by swaps. The number is a
        choice.

        beta: (p,), coefficients of the relaxation of a node in this state.
        """
        rules, tau, units = self.problem.constraints, self.problem.tau, self.form.left.units
        size = np.add.reduceat(self.st.terms.w * beta**2, self.form.first[:-1])
        worth = np.full(rules.n_units, -1.0)
        worth[units] = np.where(state == node.IN, np.inf, size)
        worth[units[state == node.OUT]] = -0.5
        included = rules.columns_of(np.flatnonzero(rules.include))
        support = rules.padded(included, tau, worth)
        if support.tobytes() in self.tried:
            return
        self.tried.add(support.tobytes())
        objective = self.problem.objective(support)
        if objective <= 1.02 * float(self.now["upper"][0]):
            support = self.grower.improved(self.problem.gamma, support)
        self.enter(support)


def search_units(
    problem: SparseRidgeProblem,
    warm_starts: Sequence[Support],
    tol: float,
    limits: Limits,
    n_jobs: int | None = None,
) -> Proof:
    """Search for the best allowed support of at most τ units; the bound is not rounded yet.

    warm_starts: Allowed supports of at most τ units.
    """
    rules, tau = problem.constraints, problem.tau
    starts = [rules.padded(s, tau) for s in warm_starts if rules.allowed(s)]
    tree = UnitTree(UnitForm.of_units(problem, limits), problem, tol)
    if not any(rules.units(s).size == tau for s in warm_starts):
        # The search without a proof takes at most a fifth of the seconds left.
        starts.append(tree.grower.search(problem.gamma, tau, starts, limits.share(5.0)))
    inside = tree.form.left.include
    for start in starts:
        tree.enter(start)
    bound = tree.relax_root()
    tree.offer(inside, tree.st.beta)
    status, work = Status.OPTIMAL, Work(1, limits.elapsed())
    if bound < tree.target:
        tree.add(inside[None], tree.st.beta[None], tree.st.lam, bound)
        search = Search(tree, n_jobs)
        status = search.run(limits) or Status.TIME_LIMIT
        bound, tree, history = max(bound, search.bound), search.best, tuple(search.history)
        work = Work(1 + search.n_nodes, limits.elapsed(), search.n_branched, history)
    support = tree.best_support
    return Proof(support, problem.objective(support), bound, status, work)
