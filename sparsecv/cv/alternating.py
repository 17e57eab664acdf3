"""Alternating minimisation of h over τ and γ (Section 3, first paper).

The module adds values of γ between those of the grid to a rule that chooses a pair (γ, τ). Without
it such a rule would compare the γ of the default grid alone.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError
from ..solvers.core.rounding import EQUAL_SHARE
from .engine import Surface
from .executor import Late, OutOfTime
from .gamma_step import LARGEST_GAMMA, LEAST_GAMMA, FixedSupports, gamma_step
from .grid import MIN_GAIN, grown_grid
from .needs import Need
from .results import Array, CVResult, Step
from .settings import DEFAULT_GAMMAS

# An alternation from one starting γ ends after this many iterations; most alternations end
# after three. There are at most four alternations: from three starting γ, and from the best γ
# between them. The number is a choice.
MAX_ITERATIONS = 10


def alternate(
    surface: Surface, need: Need | None = None, *, start: float | None = None
) -> CVResult:
    """Minimise h(γ, τ) over τ and γ in turn.

    The τ step evaluates h at the current γ and every τ (or searches for the best τ, as the settings
    of the surface say). The γ step keeps every fold's support and minimises over γ from 1e-4, or
    the least γ that the default grid keeps, to 1e4, and further where γ beyond have been visited,
    for the best few τ; the pair with the least predicted error is next. The alternation ends when a
    γ comes back, when nothing is gained, after ten iterations, or when the time is up. Where proofs
    then change CV errors the alternation begins anew.

    Parameters
    ----------
    surface : Surface
        No γ has been visited yet, and it has a size above 0.
    need : callable, optional
        What is to be proved, as of :meth:`Surface.prove`.
    start : float, optional
        First γ, which must be positive. By default the best local minimum of :func:`grown_grid`;
        up to 45 columns, where one tree serves every τ, the best few minima, one after the other,
        and then up to 40 values of γ between them where folds change their supports.

    Returns
    -------
    CVResult
        Of the γ of the last alternation, in increasing order, with its trace. γ of the default grid
        at which rounding moves errors noticeably are left out. The best pair visited is ``best()``;
        it is a local minimum, not a proved global one.

    Raises
    ------
    InputError
        ``start`` is not positive, or not finite.

    Examples
    --------
    >>> from sparsecv.cv.alternating import alternate
    >>> from sparsecv.cv.engine import Surface
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.design.row_table import RowTable
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> X, y, _ = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(RowTable(X, y), make_folds("loo", 20))
    >>> result = alternate(Surface(data, [1, 2, 3]))
    >>> result.ended, result.complete
    ('converged', True)
    """
    if start is not None and not start > 0.0:
        raise InputError(f"gamma must be > 0 where an alternation starts; got {start:g}")
    steps = _GammaSteps(surface)
    with surface:
        found = _Alternation(surface, steps).run(start)
        while not surface.proofs_keep_errors(need):
            found = _Alternation(surface, steps).run(start)
    surface.asked_gammas.sort()
    return replace(surface.result(), **found)


class _GammaSteps:
    """The γ steps of a surface; an alternation that begins anew after proofs takes most again.

    fixed: Decompositions of the folds' training rows, by the supports of the folds.
    taken: The results of past steps, by the supports, the γ before and the ends of the interval.
    """

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self.fixed: dict[tuple[bytes, ...], FixedSupports] = {}
        self.taken: dict[tuple[tuple[bytes, ...], float, float, float], tuple[float, float]] = {}

    def take(self, gamma: float, t: int, low: float, high: float) -> tuple[float, float]:
        """The best γ between two ends where the supports at γ and the t-th size stay, and h there.

        gamma: A γ that has been visited.
        """
        supports, data = self.surface.supports(gamma, t), self.surface.data
        key = tuple(support.tobytes() for support in supports)
        step = key, gamma, low, high
        if step not in self.taken:
            # Which coefficients are at a bound depends on γ.
            if key not in self.fixed or data.constraints.bounded:
                self.fixed[key] = FixedSupports.of(data, supports, gamma)
            self.taken[step] = gamma_step(self.fixed[key], gamma, low=low, high=high)
        return self.taken[step]


class _Alternation:
    """The search along γ.

    steps: The γ steps of the surface.
    errors: By visited γ, each of which is above 0, the CV errors of all sizes, shape (τ,).
    trace: The iterations so far, of all starting γ.
    low: The γ step looks at no smaller γ, unless a smaller one was visited.
    """

    def __init__(self, surface: Surface, steps: _GammaSteps) -> None:
        self.surface, self.steps = surface, steps
        self.errors: dict[float, Array] = {}
        self.trace: list[Step] = []
        self.low = LEAST_GAMMA

    def run(self, start: float | None) -> dict[str, Any]:
        """Alternate from one γ, or from the best minima of the default grid.

        Returns: The attributes ``trace``, ``ended`` and ``edge`` of the result.
        """
        trees, edge = self.surface.plan.all_size_trees, ""
        if start is None:
            surface = self.surface

            def least(gamma: float) -> float:
                return float(surface.cv_error(gamma).min())

            surface.visit(DEFAULT_GAMMAS)
            more = partial(surface.visit, late=Late.LEFT_OUT)
            kept, edge = grown_grid(
                more, least, lambda: surface.plan.out_of_time, surface.is_blurred
            )
            surface.keep(kept)
            self.low = min(kept)
            self.errors = {g: surface.cv_error(g) for g in surface.asked_gammas}
            # Up to 45 columns, the alternation starts from at most this many local minima of the
            # default grid.
            starts = self._minima()[: 3 if trees else 1]
        else:
            starts = [float(start)]
        ended = "iterations"
        try:
            for gamma in starts:
                if any(step.gamma == gamma for step in self.trace):
                    continue  # The alternation from another start has been here.
                ended = self.descend(gamma)
                if ended == "time limit":
                    break
            if start is None and trees:
                self.refine()
        except OutOfTime:
            ended = "time limit"
        return {"trace": self.trace, "ended": ended, "edge": edge}

    def visit(self, gamma: float) -> None:
        """Have the surface visit one γ, and keep the CV errors there.

        Raises OutOfTime: The time was up, and the γ is not the first one.
        """
        self.surface.visit([gamma], Late.LEFT_OUT if self.errors else Late.DONE)
        self.errors[gamma] = self.surface.cv_error(gamma)

    def descend(self, gamma: float) -> str:
        """Alternate from one γ, and add the iterations to the trace.

        Returns: How the alternation ended, one of the texts of ``CVResult.ended``.
        Raises OutOfTime: The time was up before another γ was visited.
        """
        seen: list[float] = []
        for _ in range(MAX_ITERATIONS):
            if gamma not in self.errors:
                self.visit(gamma)
            seen.append(gamma)
            best = self.surface.result([gamma]).best()
            proposal = (gamma, best.tau, best.cv_error)
            if not self.surface.plan.time_is_up:
                proposal = self.propose(gamma)
            self.trace.append(Step(gamma, best.tau, best.cv_error, *proposal))
            following, _, predicted = proposal
            if self.surface.plan.time_is_up:
                return "time limit"
            if not predicted < best.cv_error * (1.0 - EQUAL_SHARE) or _same(following, gamma):
                return "converged"
            if any(_same(following, old) for old in seen):
                return "cycle"
            gamma = following
        return "iterations"

    def propose(self, gamma: float) -> tuple[float, int, float]:
        """Take the γ step at the best few τ; return γ, τ and predicted error of the best step.

        gamma: A γ that is in ``errors``.
        """
        low, high = min(self.low, *self.errors), max(LARGEST_GAMMA, *self.errors)
        found: list[tuple[float, float, int]] = []
        order = np.argsort(self.errors[gamma], kind="stable")
        order = order[np.isfinite(self.errors[gamma][order])]  # The size 0 has no γ step.
        # In every iteration the γ step is taken at this many τ, at which the CV error is least.
        for t in order[:5].tolist():
            best, error = self.steps.take(gamma, t, low, high)
            found.append((error, best, int(self.surface.taus[t])))
        error, best, tau = min(found)
        return best, tau, error

    def refine(self) -> None:
        """Visit γ between neighbouring γ at which folds have different supports, as h jumps there.

        If every fold had the smaller of its errors at two neighbouring γ, the CV error would be
        their ``optimistic_error``. The pair of neighbours with the least such error gets a γ in
        between, as long as that error is below the least known CV error.
        """
        # Up to 45 columns, at most this many γ are visited in total between γ visited before, each
        # of which takes one evaluation of h at every τ. The number is a choice.
        for _ in range(40):
            order = sorted(self.errors)
            least = min(float(errors.min()) for errors in self.errors.values())
            gaps = [
                (self.surface.optimistic_error(a, b), float(np.sqrt(a * b)))
                for a, b in itertools.pairwise(order)
                # Between two visited γ whose ratio is at most this number no other γ is visited: a
                # choice.
                if b > 1.02 * a
            ]
            optimistic, between = min(gaps, default=(np.inf, 0.0))
            if optimistic > least * (1.0 - MIN_GAIN) or self.surface.plan.time_is_up:
                break
            self.visit(between)
        best = min(self.errors, key=lambda gamma: float(self.errors[gamma].min()))
        if not any(step.gamma == best for step in self.trace):
            self.descend(best)

    def _minima(self) -> list[float]:
        """The visited γ that are local minima of min_τ h(γ, τ), the best first.

        An alternation starts from the first few of them.
        """
        order = sorted(self.errors)
        least = [float(self.errors[gamma].min()) for gamma in order]
        padded = [np.inf, *least, np.inf]
        found = [i for i in range(len(order)) if least[i] <= min(padded[i], padded[i + 2])]
        return [order[i] for i in sorted(found, key=lambda i: least[i])]


def _same(a: float, b: float) -> bool:
    """Whether two γ differ by no more than the accuracy of the root finder.

    An alternation that comes back to a γ by this measure has ended.
    """
    # Two γ whose relative difference is at most this number count as equal. The root finder stops
    # at this accuracy.
    return abs(a - b) <= 1e-6 * max(a, b)
