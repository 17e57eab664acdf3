"""The perspective relaxation (eq. 5, main paper), solved and certified."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.threads import on_one_thread
from ..kernels.linalg import Array
from . import descent as kernels
from .dual_bound import EXTRA, BoundTerms, first_multiplier
from .gram import GramForm, residual_form, wants_gram
from .interior import interior_point
from .newton import newton, newton_path, newton_work
from .quadratic import Quadratic, solve_bordered

ROUNDS = 12  # of coordinate descent between two Newton steps
MOST_ROUNDS = 300
NEWTON_STEPS = 10
EXACT = 1e-9  # relative deviation of Σz from τ


@dataclass(frozen=True)
class Relaxation:
    """Solution of the perspective relaxation with its certificate.

    Attributes
    ----------
    beta, z : ndarray, shape (p,)
        z = min(1, |β|√(w/λ)), summing to at most τ.
    bound : float
        Certified lower bound on the mixed-integer optimum and on the relaxation's.
    value : float
        Objective of the relaxation at (β, z): an upper bound on the relaxation's optimum.
    gap : float
        (value − bound) / value.
    converged : bool
        Whether the gap asked for was reached.
    multiplier : float
        λ of the cardinality constraint.
    """

    beta: Array
    z: Array
    bound: float
    value: float
    gap: float
    converged: bool
    multiplier: float


@on_one_thread
def perspective_relaxation(
    problem: SparseRidgeProblem,
    *,
    epsilon: float = 0.0,
    extract: bool = False,
    columns: ArrayLike | None = None,
    warm_start: Relaxation | None = None,
    gap: float = 1e-8,
    gram: GramForm | None = None,
    limits: Limits | None = None,
) -> Relaxation:
    """Solve min ||y−Xβ||² + (γ−ε)/2 Σβ_i²/z_i + ε/2 ||β||² over Σz ≤ τ, 0 ≤ z ≤ 1.

    Parameters
    ----------
    problem : SparseRidgeProblem
    epsilon : float
        Part of γ kept out of the perspective, 0 ≤ ε < γ.
    extract : bool
        Also move the largest λI with XᵀX − λI ⪰ 0 into the perspective: the same mixed-integer
        problem, a tighter relaxation where n > p.
    columns : array of int, optional
        Columns that may enter; the others are fixed at 0.
    warm_start : Relaxation, optional
        Of the same data at another γ, τ or ε.
    gap : float
        Relative gap asked for.
    gram : GramForm, optional
        Of the same data, to share among calls, or of fewer rows: the relaxation is that of
        ``gram``, the problem gives γ and τ. Without it problems with many
        more columns than rows are solved in residual form, which never forms the p × p matrix.
    limits : Limits, optional
        When they are reached what is known is returned: the bound holds all the same.

    Returns
    -------
    Relaxation

    Raises
    ------
    ValueError
        ε out of range or columns out of 0..p−1.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, perspective_relaxation
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> relaxed = perspective_relaxation(problem)
    >>> relaxed.bound <= problem.objective([1, 3]), relaxed.converged
    (True, True)
    """
    if not 0.0 <= epsilon < problem.gamma:
        raise ValueError(f"epsilon must lie in [0, gamma = {problem.gamma:g}); got {epsilon}")
    if gram is None and (extract or wants_gram(problem)):
        gram = GramForm.of(problem, extract=extract, limits=limits)
    D = gram.D if extract and gram is not None else np.zeros(problem.p)
    search = _Search(problem, gram, D, epsilon, _states(problem.p, columns))
    if warm_start is not None:
        search.start(warm_start)
    return search.run(gap, limits or Limits())


@on_one_thread
def relaxation_path(
    problem: SparseRidgeProblem,
    taus: Iterable[int],
    *,
    epsilon: float = 0.0,
    extract: bool = False,
    gap: float = 1e-8,
    limits: Limits | None = None,
) -> list[Relaxation]:
    """Solve the relaxation for several τ, each started from the one before.

    Once limits are reached every other τ gets the bound at the last coefficients.

    Parameters
    ----------
    problem : SparseRidgeProblem
        Its τ is not used.
    taus : iterable of int
    epsilon, extract, gap, limits
        As for :func:`perspective_relaxation`.

    Returns
    -------
    list of Relaxation

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, relaxation_path
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> path = relaxation_path(SparseRidgeProblem(X, y, gamma=1.0, tau=1), [1, 2, 3])
    >>> path[0].bound >= path[1].bound >= path[2].bound
    True
    """
    gram = None
    if extract or wants_gram(problem):
        gram = GramForm.of(problem, extract=extract, limits=limits)
    path: list[Relaxation] = []
    for tau in taus:
        path.append(
            perspective_relaxation(
                problem.replace(tau=int(tau)),
                epsilon=epsilon,
                extract=extract,
                warm_start=path[-1] if path else None,
                gap=gap,
                gram=gram,
                limits=limits,
            )
        )
    return path


def _states(p: int, columns: ArrayLike | None) -> NDArray[np.int8]:
    state = np.zeros(p, dtype=np.int8)
    if columns is not None:
        chosen = np.asarray(columns, dtype=np.intp).ravel()
        if chosen.size == 0 or chosen.min() < 0 or chosen.max() >= p:
            raise ValueError(f"columns must lie in 0..{p - 1} and not be empty")
        state[:] = kernels.OUT
        state[chosen] = kernels.FREE
    return state


class _Search:
    """Coordinate descent with damped Newton steps where it crawls."""

    def __init__(
        self,
        problem: SparseRidgeProblem,
        gram: GramForm | None,
        D: Array,
        epsilon: float,
        state: NDArray[np.int8],
    ) -> None:
        p = problem.p
        self.problem, self.form = problem, Quadratic(problem, gram, epsilon, D)
        # matrices of fewer rows than the problem's have no rows here
        self.whole = problem if gram is None or gram.before is None else None
        self.half = epsilon / 2.0
        self.terms, self.scaled = self.form.terms, not D.any()
        self.state, self.w = state, self.terms.w
        self.b, self.yy = self.terms.b, self.terms.yy
        self.free = np.flatnonzero(state == kernels.FREE)
        self.picks = min(problem.tau, self.free.size)
        self.beta, self.g = np.zeros(p), self.b.copy()
        self.kept, self.value = np.zeros(p), np.inf
        first = first_multiplier(self.b[self.free], self.w[self.free], self.picks)
        self.root_lam = np.array([first])
        self.sweeps = kernels.new_sweeps(self.form.arrays, p, 0.0, scaled=self.scaled)
        self.best, self.scratch = self.sweeps.best, self.sweeps.work[2]
        self.dual, self.dual_value = np.zeros(p), -np.inf
        self.top = np.zeros(self.picks + EXTRA)

    def start(self, known: Relaxation) -> None:
        """Take over the coefficients and multiplier of a neighbouring relaxation."""
        self.beta = np.where(self.state == kernels.OUT, 0.0, known.beta)
        self.root_lam[0] = np.sqrt(known.multiplier)
        self._refresh()

    def _refresh(self) -> None:
        self.g = self.form.gradient(self.beta)

    def _descend(self, gap: float, rounds: int) -> None:
        self.sweeps.limits["gap"], self.sweeps.limits["rounds"] = gap, rounds
        self._refresh()
        self._note()
        here = (self.state, self.picks, self.beta, self.g, self.root_lam, self.top)
        kernels.relax(self.sweeps, self.terms, *here)
        self._note()

    def _note(self) -> None:
        """Remember β if its dual bound is the best so far."""
        bound = self._bound(self.form.arrays, self.terms)
        if bound > self.dual_value:
            self.dual, self.dual_value = self.beta.copy(), bound
        self.best[0] = max(self.best[0], bound)

    def _bound(self, arrays: Any, terms: BoundTerms) -> float:
        """The certified dual bound at β, whose b − Qβ is formed anew."""
        kernels.gradient(arrays, terms.b, self.beta, self.free, self.free.size, self.g)
        where = (self.state, self.free, self.free.size, self.picks)
        return float(
            kernels.dual_bound(arrays, terms, self.scaled, *where, self.beta, self.g, self.top)
        )

    def run(self, gap: float, limits: Limits) -> Relaxation:
        """Newton steps on the active set; where they are not enough descent, interior points."""
        if limits.reached(0) is not None:
            self._note()
            self._keep()
        self._active_set()
        for attempt in range(2):
            rounds = ROUNDS
            if np.isfinite(self.value) and self._done(gap):
                break
            for _ in range(NEWTON_STEPS):
                if limits.reached(0) is not None:
                    break
                self._descend(gap, rounds)
                self._keep()
                if self._done(gap) or rounds > 4 * ROUNDS:
                    break
                if not self._newton():
                    rounds *= 2
                self._keep()
            waiting = not self._done(gap) and limits.reached(0) is None
            if attempt == 0 and waiting and self.picks < self.free.size:
                self._interior(gap, limits)
                continue
            break
        if (
            not self._done(gap) and limits.reached(0) is None
        ):  # a certificate from better converged sweeps
            self._descend(gap, MOST_ROUNDS)
            self._keep()
        self.beta = self.kept.copy()
        self._refresh()
        return self._result(self.value, gap)

    def _active_set(self) -> None:
        """Newton steps on the active set, where Q is at hand: nearly always all there is to do."""
        Q = self.form.arrays[0]
        if Q.shape[0] == 0:
            return
        self._refresh()
        problem = (Q, self.terms, np.sqrt(self.w), self.scaled, self.state, self.picks)
        here, work = (self.beta, self.g, self.root_lam, np.inf), newton_work(self.beta.size)
        if self.beta.any():
            newton(*problem, *here, 40, EXACT, self.top, work)
        else:
            newton_path(*problem, *here, EXACT, self.top, work)
        self._note()
        self._keep()

    def _keep(self) -> None:
        """Remember β if its objective is the least so far; otherwise go back to the one that is."""
        here = self._value(self.beta, self.g)
        if here < self.value:
            self.kept, self.value = self.beta.copy(), here
        elif here > self.value:
            self.beta = self.kept.copy()
            self._refresh()

    def _value(self, beta: Array, g: Array) -> float:
        """Objective with the best z at one β, whose b − Qβ is known."""
        free, count = self.free, self.free.size
        penalty = kernels.fit_multiplier(
            self.w, self.state, free, count, self.picks, beta, self.scratch
        )[1]
        return float(
            kernels.relaxed_value(
                self.w, self.yy, self.state, free, count, penalty, beta, g, self.b
            )
        )

    def _done(self, gap: float) -> bool:
        return bool(self.value - self.best[0] <= gap * abs(self.value))

    def _interior(self, gap: float, limits: Limits) -> None:
        """Start again from an interior-point solution on the free columns."""
        F, y = self.form.factor(self.free)
        beta = np.zeros_like(self.beta)
        beta[self.free] = interior_point(F, y, self.w[self.free], self.picks, 0.01 * gap, limits)
        if not np.isfinite(beta).all():
            return
        self.beta = beta
        self.root_lam[0] = kernels.fit_multiplier(
            self.w, self.state, self.free, self.free.size, self.picks, beta, self.scratch
        )[0]
        self._refresh()
        self._note()
        self._keep()

    def values(self, betas: Array) -> Array:
        """Objective with the best z at every row of ``betas`` (m, p)."""
        quadratic = self.form.form(betas) - 2.0 * betas @ self.b
        sizes = np.sort(np.abs(betas[:, self.free]) * np.sqrt(self.w[self.free]), axis=1)[:, ::-1]
        tail = np.cumsum(sizes[:, ::-1], axis=1)[:, ::-1]  # tail[m] = sum from m on
        head = np.concatenate([np.zeros((sizes.shape[0], 1)), np.cumsum(sizes**2, axis=1)], axis=1)
        # m saturated, the rest shares picks − m: the first m whose next size is below the share
        m = np.arange(self.picks)
        share = tail[:, : self.picks] / (self.picks - m)
        first = np.argmax(sizes[:, : self.picks] <= share, axis=1)
        rows = np.arange(sizes.shape[0])
        settled = (sizes[:, : self.picks] <= share).any(axis=1)
        linear = head[rows, first] + tail[rows, first] ** 2 / (self.picks - first)
        penalty = np.where(settled, linear, head[:, -1])
        return np.asarray(self.yy + quadratic + penalty)

    def _newton(self) -> bool:
        """Solve the optimality conditions of the current pattern for β and √λ, line-searched.

        Returns whether the objective fell noticeably.
        """
        root_w, mu = np.sqrt(self.w), self.root_lam[0]
        sizes = np.abs(self.beta) * root_w
        entering = (self.beta == 0.0) & (np.abs(self.g) > mu * root_w * (1.0 + 1e-12))
        active = self.free[((sizes > 0.0) | entering)[self.free]]
        if active.size == 0:
            return False
        saturated = sizes[active] >= mu
        if saturated.sum() >= self.picks:
            saturated[:] = False
            saturated[np.argsort(-sizes[active], kind="stable")[: self.picks - 1]] = True
        sign = np.where(
            self.beta[active] != 0.0, np.sign(self.beta[active]), np.sign(self.g[active])
        )
        n = active.size
        K = np.zeros((n + 1, n + 1))
        K[:n, :n] = self.form.block(active)
        K[np.arange(n), np.arange(n)] += np.where(saturated, self.w[active], 0.0)
        K[:n, n] = K[n, :n] = np.where(saturated, 0.0, sign * root_w[active])
        K[n, n] = -float(self.picks - saturated.sum())
        K[np.arange(n), np.arange(n)] += 1e-14 * self.form.mean
        solution = solve_bordered(K, np.append(self.b[active], 0.0))
        if solution is None:
            return False
        target = np.zeros_like(self.beta)
        target[active] = solution[:n]
        step = target - self.beta
        before = self._value(self.beta, self.g)
        gradient = self.form.gradient(target)
        whole = self._value(target, gradient)
        if whole < before and not (self.beta[active] * target[active] < 0.0).any():
            self.beta, self.g = target, gradient
            if solution[n] > 0.0:
                self.root_lam[0] = solution[n]
            return whole < before - 1e-10 * abs(before)
        # where coefficients change sign the penalty has a kink: try those points and the full step
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = -self.beta[active] / step[active]
        crossing = np.sort(crossing[(crossing > 0.0) & (crossing < 1.0)])[:: max(1, n // 60)]
        times = np.concatenate([[1.0, 0.5, 0.1, 0.01], crossing])
        trials = self.beta + times[:, None] * step
        trials[np.abs(trials) < 1e-14 * np.abs(self.beta).max(initial=0.0)] = 0.0
        values = self.values(trials)
        best = int(np.argmin(values))
        if values[best] < before:
            self.beta = trials[best]
        self._refresh()
        if times[best] == 1.0 and solution[n] > 0.0:
            self.root_lam[0] = solution[n]
        return bool(values[best] < before - 1e-10 * abs(before))

    def _note_rows(self) -> None:
        """From matrices the residual form, where there is one, may keep more digits."""
        if self.whole is None or not self.scaled or self.form.X.shape[0] > 0:
            return
        rows, p = self.whole._rows, self.whole.p
        X, y = np.ascontiguousarray(rows[:, :p].T), rows[:, p].copy()
        kept = self.beta
        for beta in (self.dual, kept):
            self.beta = beta
            arrays, terms = residual_form(self.problem, X, y, y - beta @ X, self.half)
            self.best[0] = max(self.best[0], self._bound(arrays, terms))
        self.beta = kept

    def _result(self, value: float, gap: float) -> Relaxation:
        mu = float(
            kernels.fit_multiplier(
                self.w, self.state, self.free, self.free.size, self.picks, self.beta, self.scratch
            )[0]
        )
        sizes = np.abs(self.beta) * np.sqrt(self.w)
        z = np.where(self.beta != 0.0, 1.0 if mu == 0.0 else np.minimum(1.0, sizes / mu), 0.0)
        self._note()
        self._note_rows()
        bound = max(float(self.best[0]) - self.problem.data_loss(self.problem.yy), 0.0)
        value = max(value, bound)
        width = (value - bound) / value if value > 0.0 else 0.0
        return Relaxation(self.beta, z, bound, value, width, width <= gap, mu * mu)
