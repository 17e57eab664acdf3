"""The relaxation of one node: its arrays, and the compiled solver that improves its solution."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.leaves import FREE, IN, OUT, Leaves
from ..core.problem import SparseRidgeProblem
from ..kernels.by_reference import by_reference
from ..kernels.compiled import kernel
from ..kernels.linalg import Array, Ints, allocated, record
from .descent import descend
from .dual_bound import (
    BoundTerms,
    QuadraticForm,
    first_multiplier,
    fix_columns,
    gram_arrays,
    gram_gradient,
)
from .gram import GramForm, residual_form
from .newton import MOST_STEPS, newton

# At most this many columns may be active in the Newton steps of a root or of a relaxation by
# itself, unless a caller gives another number, as trees do (``driver.MAX_FACTORED_COLUMNS``); with
# more, coordinate descent takes the place of Newton steps. A choice.
ACTIVE_COLUMNS = 200

LIMITS = np.dtype(
    [
        ("target", "f8"),  # the solution is improved until a bound reaches this objective
        # Newton steps try at most this many √λ, until Σz of the free columns is off by at most this
        # share of what it should be.
        ("multipliers", "i8"),
        ("share", "f8"),
        ("rounds", "i8"),  # descent ends after this many bounds
        # Descent ends once value − bound is at most this share of the relaxation's value.
        ("gap", "f8"),
        # Descent ends where value < target, and value − bound is at most this share of
        # target − bound.
        ("shortfall_share", "f8"),
        # A free column is decided where a bound without its other decision is this objective or
        # more; ∞: none is. 0: columns are excluded alone, and not included.
        ("decide_from", "f8"),
        ("including", "i8"),
    ]
)


@by_reference()
class RelaxationWork(NamedTuple):
    """The quadratic part of relaxations on p columns, limits, and work space of the solvers.

    At most n columns may be active in Newton steps; n is 0 in residual form, and where columns are
    in groups or have bounds. *Columns* are units of columns in ``columns``, ``active`` and
    ``size``.
    """

    form: QuadraticForm
    limits: Any  # (1,) of ``LIMITS``
    # The best certified bound; the least value; the √λ at which Σz of the last bound's coefficients
    # is as large as allowed; the least bound that has decided a column.
    best: Annotated[Array, "4"]
    root_w: Array  # (p,) √w
    g: Annotated[Array, "p"]  # b − Qβ
    top: Annotated[Array, "tau+3"]  # what the last bound says of the largest worths
    columns: Annotated[Ints, "p"]  # the columns that are not excluded come first
    active: Annotated[Ints, "p"]  # the active columns come first
    size: Annotated[Array, "p"]  # |β_i|√w_i, of units √(Σ w_jβ_j²)
    scratch: Annotated[Array, "p"]  # values that are sorted
    # What follows belongs to Newton steps.
    when: Annotated[Array, "n+n+n"]  # the t at which the penalty of a coordinate changes at β + td
    where: Annotated[Ints, "n+n+n"]  # 3·(place among the active columns) + (kind of change)
    U: Annotated[Array, "n n+2"]  # upper Cholesky factor, and two right sides
    inverse: Annotated[Array, "n"]  # one over the diagonal of the factor
    v: Annotated[Array, "n"]  # the v of the system
    move: Annotated[Array, "2 n"]  # solutions of both right sides: the step is move[0] − s·move[1]
    d: Annotated[Array, "n"]  # the step of each active column
    h: Annotated[Array, "p"]  # Qd


def relaxation_work(
    form: QuadraticForm, terms: BoundTerms, tau: int, most_active: int = ACTIVE_COLUMNS
) -> RelaxationWork:
    """Allocate the work space of nodes at which at most τ columns or units are to be chosen."""
    p, plain = terms.b.size, form.X.shape[0] == 0 and terms.units.single
    lengths = {"p": p, "tau": tau, "n": min(p, most_active) if plain else 0}
    limits, root_w = record(LIMITS, decide_from=np.inf), np.sqrt(terms.w)
    return allocated(RelaxationWork, lengths, form=form, limits=limits, root_w=root_w)


@kernel
def relax(work, terms, node, k):
    """Improve the solution of a node's relaxation within ``work.limits``, and decide columns.

    Newton steps come first, if the limits allow any. Where there were none, or more columns became
    active than these may factor, coordinate descent follows. On entry ``node.beta`` and
    ``node.lam`` are where to start, √λ = 0 to begin Newton steps with few active columns, and a
    residual in ``work.form`` belongs to β. ``work.best``, ``work.g`` and ``work.top`` are written;
    the last two belong to β.

    work, node: A ``RelaxationWork``, and ``Leaves`` of one node.
    k: Number of free columns still to choose.
    """
    stop, best, steps = work.limits[0], work.best, -1
    best[0], best[3] = -np.inf, np.inf
    if stop.multipliers > 0 and work.U.shape[0] > 0:
        gram_gradient(work.form.Q, terms.b, node.beta[0], work.g)
        for _ in range(10):  # calls of at most ``MOST_STEPS`` steps: a choice
            best[0], steps = newton(work, terms, node, k)
            if abs(steps) < MOST_STEPS:
                break
    if steps < 0 and stop.rounds > 0:
        descend(work, terms, node, k)
    if stop.decide_from < np.inf:
        including = stop.including > 0
        _, best[3] = fix_columns(terms, node, work, k, best[0], stop.decide_from, including)


class Relaxer:
    """A node with its relaxation, whose coefficients :func:`relax` overwrites.

    The relaxation has an indicator z of every column or unit, between 0 and 1, and the sum of the z
    of those that are free is at most ``to_choose``; λ is the multiplier of that constraint.

    form, terms: The quadratic part, and the terms of the bound.
    state: (m,), free (0), included (1) and excluded (2) columns or units.
    to_choose: Number of free columns or units still to choose.
    most_active: At most so many columns may be active in Newton steps.
    """

    def __init__(
        self,
        form: QuadraticForm,
        terms: BoundTerms,
        state: NDArray[np.int8],
        to_choose: int,
        most_active: int = ACTIVE_COLUMNS,
    ) -> None:
        self.form, self.terms, self.to_choose = form, terms, to_choose
        self.columns = np.flatnonzero(state != OUT)
        # √λ is 0 until a solver has started.
        self.node = Leaves.one(state, np.zeros(terms.b.size), 0.0, -np.inf)
        self.work = relaxation_work(form, terms, to_choose, most_active)

    @property
    def beta(self) -> Array:
        """The coefficients."""
        return np.asarray(self.node.beta[0])

    @property
    def g(self) -> Array:
        """b − Qβ."""
        return self.work.g

    @property
    def root_lam(self) -> float:
        """√λ."""
        return float(self.node.lam[0])

    @classmethod
    def of(
        cls,
        problem: SparseRidgeProblem,
        gram: GramForm | None,
        columns: NDArray[np.intp],
        half: float = 0.0,
        state: NDArray[np.int8] | None = None,
    ) -> Relaxer:
        """The relaxation of a problem on some columns, at β = 0 with √λ not chosen yet.

        columns: Increasing positions among the problem's columns, or numbers of its units. All
            arrays of the result count these only.
        gram: The Gram form of these columns or units, on which the relaxation is then computed; the
            problem only gives γ and τ. With None it is computed in residual form, from the rows.
        half: ε/2 of eq. (5), the part of γ/2 that stays in the quadratic part and is no part of
            the weights w.
        state: (columns.size,), free (0), included (1) and excluded (2); by default all are free.
        """
        if gram is None:
            form, terms = residual_form(problem, columns, half)
        else:
            form = gram_arrays(gram.quadratic(half))
            terms = gram.terms(problem.gamma / 2.0, half)
        state = np.zeros(columns.size, dtype=np.int8) if state is None else state
        to_choose = min(problem.tau - int((state == IN).sum()), int((state == FREE).sum()))
        return cls(form, terms, state, to_choose)

    def start(self, beta: Array, root_lam: float) -> None:
        """Go on from other coefficients β (p,), and from another √λ unless that is 0.

        g and the residual are computed from β. β is 0 on excluded columns.
        """
        self.beta[:] = beta
        if root_lam > 0.0:
            self.node.lam[0] = root_lam
        self.evaluated()

    def evaluated(self) -> tuple[float, float, float]:
        """Compute g, and in residual form y − Xβ, anew from β; β and √λ stay as they are.

        Returns: The certified dual bound at β, the √λ at which Σz is as large as allowed, and the
            relaxation's objective at β.
        """
        self._run(self.node, -np.inf, rounds=1)
        bound, value, root_lam, _ = self.work.best.tolist()
        return bound, root_lam, value

    def decided(self, target: float, including: bool = True) -> tuple[NDArray[np.int8], float]:
        """Decide free columns by the bound at β, on a copy of the states.

        A column is excluded if the bound with the column in the support reaches ``target`` and,
        where ``including``, included if the bound without the column does.

        Returns: The new states (m,), and the least bound that decided a column; ∞ without one.
        """
        node = self.node._replace(state=self.node.state.copy())
        self._run(node, -np.inf, rounds=1, decide_from=target, including=including)
        return node.state[0], float(self.work.best[3])

    def relaxed(self, target: float, **limits: float) -> float:
        """Improve β, g and √λ by Newton steps, or by coordinate descent.

        Newton steps need the quadratic part in Gram form, and single columns without bounds.

        target: The solvers end once a bound reaches this objective.
        limits: Others of ``LIMITS``, by name; by default none of either solver's steps is taken.
        Returns: The best bound of this call, which may belong to an earlier β.
        """
        newton_first = "multipliers" in limits and self.work.U.size > 0
        if not (self.root_lam > 0.0 or newton_first):
            b, w, k = self.terms.b, self.terms.w, max(self.to_choose, 1)
            if self.terms.units.single and self.to_choose > 0:
                free = self.node.state[0] == FREE
                b, w = b[free], w[free]
            self.node.lam[0] = first_multiplier(b, w, k)
        return self._run(self.node, target, **limits)

    def _run(self, node: Leaves, target: float, **limits: float) -> float:
        """Call :func:`relax` within limits; returns the best bound.

        limits: Fields of ``LIMITS`` by name; those that are not given are 0, and no column is
            decided. In residual form the residual is computed from β before.
        """
        _, X, y, residual, _, _ = self.form
        if X.shape[0] > 0:
            residual[:] = y - self.beta @ X
        self.work.limits[0] = record(LIMITS, target=target, **{"decide_from": np.inf, **limits})[0]
        relax(self.work, self.terms, node, self.to_choose)
        return float(self.work.best[0])

    def on(self, columns: NDArray[np.intp]) -> Relaxer:
        """The relaxation on some columns, in Gram form, with the other coefficients fixed at 0.

        All of these columns may be active in Newton steps.
        """
        terms = self.terms
        terms = terms._replace(w=terms.w[columns], length=terms.length[columns], b=terms.b[columns])
        to_choose = min(self.to_choose, columns.size)
        Q, X, _, _, e, _ = self.form
        if X.shape[0] > 0:
            block = X[columns] @ X[columns].T + e * np.eye(columns.size)
        else:
            block = Q[np.ix_(columns, columns)]
        state = self.node.state[0, columns]
        part = Relaxer(gram_arrays(block), terms, state, to_choose, columns.size)
        part.start(self.beta[columns], self.root_lam)
        return part
