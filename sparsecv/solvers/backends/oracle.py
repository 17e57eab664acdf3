"""What every outside solver is given, and the checks of its answer.

A solver is given the columns left after screening, and the best support that rounding and swaps
have found. HiGHS and Gurobi are masters of generalised Benders decomposition (EC.1, first
paper): they minimise η over 0–1 vectors z with Σz = τ, η above every cut of
f(z) = min_β ‖y − Xβ‖² + (γ/2) Σ β_i²/z_i, and ask the oracle for the cut at every support that they
find. A solver's answer is recomputed: the objective is that of a fresh fit of the support, and a
lower bound above an objective that is known to be attained is a failure of the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..branching.single import WORST_GAP
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.result import Answer, Status, Work, relative_gap
from ..core.rounding import BOUND_SHARE, FITTED_SHARE_OF_YY, support_bound
from ..core.threads import threads_of
from ..kernels.linalg import Array
from ..relaxation.extraction import extraction, largest_diagonal
from ..relaxation.gram import GramForm
from ..relaxation.root import Incumbent, reduced_root
from .cuts import Cut, CutForm, FrontierCuts

# Solvers are asked to close no smaller relative gap, because masters' tolerances times a hundred
# columns are of this size.
LEAST_GAP_RATIO = 1e-7
# A claim is what an outside solver says of the problem that it was given. The first entry is its
# answer, with its tolerances taken off the bound. The second is the relative gap that the solver's
# tolerances explain.
Claim = tuple[Answer, float]
# A master may violate rows, integrality and duals by this much, in units of the objective of the
# first incumbent. Gurobi accepts no smaller tolerance.
MASTER_TOLERANCE = 1e-9
# No larger relative gap counts as closed, unless the caller's tolerance is larger. A master's
# tolerances are shares of the first incumbent's objective, and may be many times that of a better
# one. The number is a choice: the largest gap that a conic solver leaves.
LARGEST_GAP = 1e-5


class Oracle:
    """A problem as outside solvers are given it, the cuts made so far, and the best support.

    form: The problem on the columns that a better support may hold.
    incumbent: The best support known. The objective of its first support is ``scale``, which is the
        unit of the cuts and of solvers' bounds.
    bound: Lower bound on the objective of every support of these columns, by the relaxation.
    tol: Relative gap to close.
    """

    def __init__(
        self,
        form: CutForm,
        incumbent: Incumbent,
        *,
        bound: float = 0.0,
        tol: float = 1e-6,
        limits: Limits | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.form, self.incumbent, self.bound, self.tol = form, incumbent, bound, tol
        self.limits, self.n_jobs = limits or Limits(), n_jobs
        self.scale = incumbent.objective
        self.frontier = FrontierCuts(form)
        self._known: dict[bytes, Cut] = {}

    @property
    def upper(self) -> float:
        """The incumbent's objective."""
        return self.incumbent.objective

    @property
    def lost(self) -> float:
        """The number of units by which a master's tolerances may raise its lower bound.

        With z_i off by a tolerance for each of the p columns, and rows, duals and objective off by
        the tolerance a few times, the bound is off by at most tolerance·(p + 10).
        """
        return MASTER_TOLERANCE * (self.form.p + 10.0)

    @property
    def target(self) -> float:
        """A lower bound that closes a master's gap, in the units of objectives."""
        return self.upper * (1.0 - self.gap(self.lost))

    def gap(self, lost: float) -> float:
        """The relative gap to ask of a solver whose bound may be too high by ``lost`` units."""
        return max(self.tol - 2.0 * lost, LEAST_GAP_RATIO)

    def claim(
        self,
        bound: float,
        n_nodes: int,
        status: Status,
        lost: float,
        precision: float | None = None,
        margin: float = 0.0,
    ) -> Claim:
        """What a solver says, without what its tolerances may have added, and its precision.

        The support is the incumbent's, so that a solver's own support must be offered before.

        bound: The solver's lower bound in units of ``scale``.
        lost: The number of units by which the bound may be too high. It is taken off here.
        precision: Relative gap that the solver may leave; by default the tolerances decide.
        margin: What the caller has taken off the bound for rounding, besides the margin of the
            cuts, in the units of objectives. It tells how exact the answer can be, and is not taken
            off again.
        """
        if precision is None:
            precision = max(WORST_GAP, 2.0 * (lost * self.scale / self.upper + LEAST_GAP_RATIO))
        found = Answer(
            size=self.form.tau,
            support=self.incumbent.support,
            objective=self.upper,
            lower_bound=max(self.bound, (bound - lost) * self.scale),
            status=status,
            work=Work(n_nodes),
            rounding=self.form.margin + margin,
        )
        return found, precision

    def offer(self, support: NDArray[np.intp]) -> None:
        """Make a support the incumbent if it is better.

        support: Positions among the columns of ``form``.
        """
        self.incumbent.offer(self.form.columns[support])

    def grow(self, limits: Limits, most: float = np.inf) -> None:
        """Grow the tree of cuts to some ``most`` leaves; its best support is offered."""
        self.frontier.grow(self.target, limits, most)
        self.offer(self.frontier.support)

    def at(self, z: Any) -> Cut:
        """The cut, in units of ``scale``, at the support that a nearly 0–1 point stands for.

        Masters also ask about points of more than τ ones; such points are no incumbents.
        """
        support = np.flatnonzero(np.asarray(z) > 0.5).astype(np.intp)
        key = support.tobytes()
        if key not in self._known:
            self._known[key] = self._in_units(self.form.at_support(support))
            if support.size <= self.form.tau:
                self.offer(support)
        return self._known[key]

    @property
    def count(self) -> int:
        """Number of cuts."""
        return self.frontier.size + len(self._known)

    def start(self) -> Array:
        """The incumbent as a 0–1 point."""
        return np.isin(self.form.columns, self.incumbent.support).astype(float)

    def rows(self) -> tuple[Array, Array]:
        """All cuts as rows η + slopesᵀz ≥ constant in units of ``scale``: slopes, constants."""
        cuts = [*self._known.values(), *map(self._in_units, self.frontier.cuts())]
        return np.array([cut.slopes for cut in cuts]), np.array([cut.constant for cut in cuts])

    def _in_units(self, cut: Cut) -> Cut:
        """A cut in units of ``scale``, weakened until its values are at most 1e9.

        Masters take larger numbers for infinite. Slopes are at least 0. With ``most`` ≤ constant in
        place of the constant and min(slope, most) in place of every slope, the cut still holds:
        where a slope was reduced and z_i = 1, the cut says no more than f ≥ 0.
        """
        most = min(cut.constant / self.scale, 1e9)
        return Cut(most, np.minimum(cut.slopes / self.scale, max(most, 0.0)))


Solver = Callable[[Oracle], Claim]


def outer_approximation(master: Solver, oracle: Oracle, root_cuts: int = 1000) -> Claim:
    """Have a master solver prove the problem of an oracle by outer approximation; its claim.

    The oracle is given cuts at the leaves of a tree, and the cut at the incumbent, before the
    master begins.

    root_cuts: The tree has at most so many leaves. The default is a choice: the master proves from
        any cuts.
    """
    oracle.grow(oracle.limits, root_cuts)
    # The incumbent's cut comes after the tree, which may find a better incumbent.
    oracle.at(oracle.start())
    return master(oracle)


def prove(
    solver: Solver,
    problem: SparseRidgeProblem,
    *,
    warm_starts: Sequence[NDArray[np.intp]] = (),
    tol: float = 1e-6,
    n_jobs: int | None = None,
    **limited: Any,
) -> Answer:
    """Solve a problem by an outside solver, unless screening and rounding are enough.

    warm_starts: Supports of at most τ columns.
    limited: time_limit, node_limit and stop. With tol and n_jobs these are the keywords of
        :func:`sparsecv.solvers.solve`; nodes are the solver's own.
    """
    limits = Limits(**limited)
    incumbent, root, gram = reduced_root(problem, warm_starts, tol, None, limits)
    bound = root.bound
    if root.units.size <= problem.tau:  # Every other support holds a column screened out.
        incumbent.offer(root.units)
        bound = min(root.screened_bound, support_bound(problem, root.units))
    support, best = incumbent.support, incumbent.objective
    bound = min(bound, best)
    closed = min(bound, root.screened_bound) >= best * (1.0 - max(tol, BOUND_SHARE))
    reached = Status.OPTIMAL if closed else limits.reached(0)
    if reached is not None:
        known = Answer(
            size=problem.tau,
            support=support,
            objective=best,
            lower_bound=bound,
            status=reached,
        )
        return _checked(problem, (bound, root.screened_bound), (known, WORST_GAP), tol, limits)
    columns = np.union1d(root.units, support).astype(np.intp)
    if gram is None or columns.size > root.units.size:
        gram = GramForm.of(problem, columns, extract=False)
    plain = extraction(gram.G, columns.size, gram.rounding.eps)
    off = gram.rounding.of_trace(np.diag(gram.G))
    gram = replace(gram, D=largest_diagonal(gram.G, problem.gamma / 2.0, off, plain))
    oracle = Oracle(
        CutForm(problem, columns, gram),
        incumbent,
        bound=bound,
        tol=tol,
        limits=limits,
        n_jobs=threads_of(n_jobs),
    )
    return _checked(problem, (bound, root.screened_bound), solver(oracle), tol, limits)


def _checked(
    problem: SparseRidgeProblem,
    proved: tuple[float, float],
    claim: Claim,
    tol: float,
    limits: Limits,
) -> Answer:
    """What a claim proves of its support, after its bound is compared with the support's fit.

    proved: The root's bound on the supports that the solver chose from, and on all others.
    """
    (inside, outside), (claimed, precision) = proved, claim
    best = problem.objective(claimed.support)
    status, bound = claimed.status, claimed.lower_bound
    fitted = FITTED_SHARE_OF_YY * problem.yy
    if status is Status.FAILED or not bound <= best * (1.0 + BOUND_SHARE) + fitted:
        bound, status = inside, Status.FAILED  # A wrong bound is not used; any support serves.
    rounding = BOUND_SHARE * best + fitted + problem.data_loss(best)
    lower = max(0.0, min(max(bound, inside), outside, best) - rounding)
    gap = relative_gap(best, lower)
    closed = max(tol, precision)
    ended = status in (Status.OPTIMAL, Status.PRECISION, Status.FAILED)
    if gap <= (max(tol, min(precision, LARGEST_GAP)) if ended else max(tol, BOUND_SHARE)):
        status = Status.OPTIMAL  # The gap is closed, whatever made the solver stop.
    elif status is Status.OPTIMAL:  # The claim of optimality is not confirmed.
        lost = 4.0 * (claimed.rounding + rounding) / best
        status = Status.PRECISION if gap <= closed + lost else Status.FAILED
    return Answer(
        size=problem.tau,
        support=claimed.support,
        objective=best,
        lower_bound=lower,
        status=status,
        work=Work(claimed.n_nodes, limits.elapsed()),
    )
