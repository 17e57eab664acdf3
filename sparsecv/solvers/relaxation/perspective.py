"""The perspective relaxation (eq. 5, first paper), its certified bound, and screening by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.leaves import IN, OUT
from ..core.limits import Limits
from ..core.problem import SparseRidgeProblem
from ..core.rounding import SCREENED_SHARE_OF_YY
from ..core.threads import on_one_thread
from ..kernels.linalg import Array
from ..supports.rounding import Support, largest
from .dual_bound import BoundTerms, QuadraticForm
from .gram import GramForm, residual_form, wants_gram
from .relaxer import ACTIVE_COLUMNS, Relaxer

# Steps go on as long as the objective of the relaxation falls by more than this share of itself.
# The multiplier of the cardinality constraint is looked for up to the second share. Both are
# choices.
STEADY_TOLERANCE, LAMBDA_TOLERANCE = 1e-10, 1e-9


@dataclass(frozen=True)
class Relaxation:
    """A solution of the perspective relaxation, and a lower bound that certifies the solution.

    Attributes
    ----------
    beta, z : ndarray, shape (p,)
        Coefficients, and z = min(1, |β|√(w/λ)), whose sum is at most τ up to rounding.
    bound : float
        Certified lower bound on the mixed-integer optimum and on the relaxation's.
    value : float
        Objective of the relaxation at (β, z), an upper bound on the relaxation's optimum.
    gap : float
        (value − bound) / value, and 0 where the value is 0.
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

    def rounded(self, tau: int) -> Support:
        """The τ columns of the largest coefficients: the greedy rounding of the relaxation."""
        return largest(np.abs(self.beta), tau)


@on_one_thread
def perspective_relaxation(
    problem: SparseRidgeProblem,
    *,
    epsilon: float = 0.0,
    extract: bool = False,
    warm_start: Relaxation | None = None,
    gap: float = 1e-8,
    gram: GramForm | None = None,
    limits: Limits | None = None,
) -> Relaxation:
    """Solve min ‖y − Xβ‖² + (γ−ε)/2 Σβ_i²/z_i + (ε/2)‖β‖² over Σz ≤ τ, 0 ≤ z ≤ 1.

    Parameters
    ----------
    problem : SparseRidgeProblem
    epsilon : float
        Part of γ kept out of the perspective, 0 ≤ ε < γ.
    extract : bool
        Also move the largest λI with XᵀX − λI ⪰ 0 into the perspective terms: the mixed-integer
        problem stays the same, and the relaxation is tighter where n > p.
    warm_start : Relaxation, optional
        A solution for the same data at another γ, τ or ε.
    gap : float
        Relative gap to reach.
    gram : GramForm, optional
        Gram form of the same data, to share among calls, or of fewer rows; the relaxation is then
        that of ``gram``, and the problem gives γ and τ. Without ``gram``, problems with many more
        columns than rows are solved without ever forming the p × p matrix.
    limits : Limits, optional
        Once a limit is reached, the best solution so far is returned; its bound holds.

    Returns
    -------
    Relaxation

    Raises
    ------
    ValueError
        ε is out of range.
    InputError
        The problem has constraints.

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
    problem.refuse_constraints("perspective_relaxation")
    if not 0.0 <= epsilon < problem.gamma:
        raise ValueError(f"epsilon must lie in [0, gamma = {problem.gamma:g}); got {epsilon}")
    limits, p, half = limits or Limits(), problem.p, epsilon / 2.0
    if gram is None and (extract or wants_gram(problem)):
        gram = GramForm.of(problem, extract=extract, limits=limits)
    if gram is not None and not extract:
        gram = replace(gram, D=np.zeros(p))
    relaxer = Relaxer.of(problem, gram, np.arange(p), half)
    if warm_start is not None:
        relaxer.start(warm_start.beta, float(np.sqrt(warm_start.multiplier)))
    search = _Search(relaxer, gap, limits)
    search.run()
    if gram is not None and gram.scaled and not gram.rounding.rows_deleted:
        # Residual form may keep more digits. It cannot bound ``gram`` of fewer rows.
        search.bound_by(residual_form(problem, np.arange(p), half, tall=True))
    return search.result(problem.data_loss(problem.yy))


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
    """Solve the relaxation for several τ, each started from the solution for the τ before.

    Once a limit is reached, every further τ gets the bound at the last coefficients.

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

    Raises
    ------
    ValueError
        ε is out of range, or a τ is not a whole number from 1 to p.
    InputError
        The problem has constraints.

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
                problem.replace(tau=tau),
                epsilon=epsilon,
                extract=extract,
                warm_start=path[-1] if path else None,
                gap=gap,
                gram=gram,
                limits=limits,
            )
        )
    return path


class _Search:
    """The best coefficients and the best bound so far, which several solvers improve in turn.

    The solvers are methods of ``relaxer``, which holds the current coefficients ``beta``, their
    gradient ``g`` = b − Qβ, the ``columns`` that may be chosen and ``root_lam``, an array of √λ.
    ``kept`` are the coefficients of least objective ``value``, ``dual`` those of best ``bound``.
    The numbers of steps in its methods are choices, which decide how soon a relaxation reaches its
    gap and not whether a bound holds; experiments/solvers/relaxation.py prints what they give.
    """

    def __init__(self, relaxer: Relaxer, gap: float, limits: Limits) -> None:
        self.relaxer, self.gap, self.limits = relaxer, gap, limits
        self.kept, self.kept_root_lam, self.value = relaxer.beta.copy(), 0.0, np.inf
        self.dual, self.bound = relaxer.beta.copy(), -np.inf

    def keep(self) -> bool:
        """Keep β where its bound or objective is the best so far; go on from the best objective.

        Returns: Whether the objective has fallen by more than ``STEADY_TOLERANCE`` of itself.
        """
        now, before = self.relaxer, self.value
        bound, root_lam, value = now.evaluated()
        if bound > self.bound:
            self.dual, self.bound = now.beta.copy(), bound
        if value < self.value:
            self.kept, self.kept_root_lam, self.value = now.beta.copy(), root_lam, value
        elif value > self.value:
            now.start(self.kept, 0.0)
        return self.value < before - STEADY_TOLERANCE * abs(before)

    @property
    def finished(self) -> bool:
        """Whether the gap or a limit is reached."""
        done = self.value - self.bound <= self.gap * abs(self.value)
        return bool(done) or self.limits.reached(0) is not None

    def run(self) -> None:
        """Run Newton steps, and then descent and Newton steps in turn, until the gap is reached.

        A round of descent is one dual bound and up to five passes over the active columns. There
        are more rounds where Newton steps bring nothing. Steps on many columns are slow, so that at
        first most columns have to leave by descent.
        """
        self.keep()
        if not self.finished and self.relaxer.form.X.shape[0] == 0:
            self.relaxer.relaxed(np.inf, multipliers=40, share=LAMBDA_TOLERANCE)
            self.keep()
        for most_active in (ACTIVE_COLUMNS, 1000):
            for rounds in (12, 24, 48):
                helps = True
                while helps and not self.finished:
                    self.descend(rounds)
                    helps = self.on_active(most_active)
        if not self.finished:
            self.descend(300)

    def descend(self, rounds: int) -> None:
        """Take at most so many rounds of coordinate descent, and keep what they have found."""
        bound = self.relaxer.relaxed(np.inf, rounds=rounds, gap=self.gap)
        self.bound = max(self.bound, bound)
        self.keep()

    def on_active(self, most_active: int) -> bool:
        """Take Newton steps on the columns whose coefficient is not 0 or should not be 0.

        In the optimum a coefficient is 0 where |g_i| ≤ √λ·√w_i. The steps therefore solve the
        relaxation on the columns with a coefficient or with a larger |g_i|, and all other
        coefficients are set to 0. :meth:`keep` then computes g anew on all columns, which may add
        columns to the list. The list is made up to six times, as long as the objective falls.

        most_active: With more columns in the list no step is taken.
        Returns: Whether the steps on at least one list have made the objective smaller.
        """
        now, helped = self.relaxer, False
        for _ in range(6):
            level = now.root_lam * np.sqrt(now.terms.w) * (1.0 + 1e-6)
            active = (now.beta != 0.0) | (np.abs(now.g) > level)
            columns = now.columns[active[now.columns]]
            if not 0 < columns.size <= most_active or self.finished:
                break
            part = now.on(columns)
            part.relaxed(np.inf, multipliers=40, share=LAMBDA_TOLERANCE)
            now.beta[:], now.node.lam[:] = 0.0, part.root_lam
            now.beta[columns] = part.beta
            if not self.keep():
                break
            helped = True
        return helped

    def bound_by(self, form: tuple[QuadraticForm, BoundTerms]) -> None:
        """Compute the bound in residual form as well, at the best coefficients."""
        now = self.relaxer
        rows = Relaxer(*form, now.node.state[0], now.to_choose)
        for beta in (self.dual, self.kept):
            rows.beta[:] = beta
            self.bound = max(self.bound, rows.evaluated()[0])

    def result(self, lost: float) -> Relaxation:
        """The record of the coefficients of least objective and of the best bound.

        The shares z = min(1, |β|√(w/λ)) are the best ones at the multiplier λ that β was found at.

        lost: What rounding of the data takes off the bound.
        """
        beta, root_lam = self.kept, self.kept_root_lam
        size = np.abs(beta) * np.sqrt(self.relaxer.terms.w)
        share = 1.0 if root_lam == 0.0 else np.minimum(1.0, size / root_lam)
        z = np.where(beta != 0.0, share, 0.0)
        bound = max(self.bound - lost, 0.0)
        value = max(self.value, bound)
        gap = (value - bound) / value if value > 0.0 else 0.0
        return Relaxation(
            beta=beta,
            z=z,
            bound=bound,
            value=value,
            gap=gap,
            converged=gap <= self.gap,
            multiplier=root_lam**2,
        )


@dataclass(frozen=True)
class Screening:
    """Columns fixed for one τ, and a certified lower bound on the optimal objective.

    Attributes
    ----------
    included, excluded : ndarray of int
        Columns that are in every optimal support of size τ, and columns that are in none.
    bound : float
        Proved lower bound on the optimal objective.
    """

    included: NDArray[np.intp]
    excluded: NDArray[np.intp]
    bound: float


def checked_beta(problem: SparseRidgeProblem, beta: ArrayLike) -> Array:
    """The coefficients as an array (p,); a ValueError where they are not p finite numbers."""
    values = np.asarray(beta, dtype=np.float64)
    if values.shape != (problem.p,) or not np.isfinite(values).all():
        raise ValueError(f"beta must be {problem.p} finite numbers; got shape {values.shape}")
    return values


def checked_upper(upper: float) -> float:
    """The objective of a support, as a caller gives it; a ValueError where it is not a number."""
    if np.isnan(upper):
        raise ValueError("upper must be the objective of a support; got nan")
    return float(upper)


def screen(problem: SparseRidgeProblem, beta: ArrayLike, upper: float) -> Screening:
    """Find columns of every optimal support, or of none, by a dual bound at any coefficients.

    With r = y − Xβ, the best scale s and v_i = (2/γ)(s·x_iᵀr)², the bound is
    2s·rᵀy − s²‖r‖² − (sum of the τ largest v). With column i included, v_i replaces the τ-th
    largest v; with column i excluded, the (τ+1)-th replaces v_i. Where that bound is above
    ``upper``, no optimum includes, or excludes, column i. The scaling is that of eq. (1); the rule
    printed in the first paper has the scaling of another paper.

    Parameters
    ----------
    problem : SparseRidgeProblem
        The result holds for this problem's τ.
    beta : array, shape (p,)
        Any coefficients; those that solve the perspective relaxation fix the most columns.
    upper : float
        Objective of any support of at most τ columns.

    Returns
    -------
    Screening

    Raises
    ------
    ValueError
        ``beta`` is not p finite numbers, or ``upper`` is NaN.
    InputError
        The problem has constraints.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv.solvers import SparseRidgeProblem, perspective_relaxation, screen
    >>> X, y = np.eye(4), np.array([1.0, 3.0, 0.0, 2.0])
    >>> problem = SparseRidgeProblem(X, y, gamma=1.0, tau=2)
    >>> found = screen(problem, perspective_relaxation(problem).beta, problem.objective([1, 3]))
    >>> found.included, found.excluded
    (array([1]), array([2]))
    """
    problem.refuse_constraints("screen")
    upper = checked_upper(upper)
    relaxer = Relaxer.of(problem, gram=None, columns=np.arange(problem.p))
    relaxer.beta[:] = checked_beta(problem, beta)
    (bound, _, _), lost = relaxer.evaluated(), problem.data_loss(upper)
    # Strictly above ``upper``, as an optimum may have the objective ``upper``.
    target = np.nextafter(upper + SCREENED_SHARE_OF_YY * problem.yy + lost, np.inf)
    state, _ = relaxer.decided(target)
    # The relaxation may have a larger γ than the problem, and data that products have rounded.
    proved = max(bound - lost, 0.0)
    return Screening(np.flatnonzero(state == IN), np.flatnonzero(state == OUT), proved)
