"""Alternating minimisation of h over τ and γ (Section 3, main paper)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..errors import InputError
from ..solvers.leaps.all_sizes import TREE_ONLY
from .checkpoint import Checkpoint
from .engine import Surface
from .gamma_step import STEP, FixedSupports, gamma_step
from .progress import Report
from .results import Array, CVResult, Step
from .settings import DEFAULT_GAMMAS, Settings


class AlternationSettings(NamedTuple):
    """How far the alternation goes. Values without another origin were chosen on data/."""

    # The default grid goes no lower: a ridge so small changes nothing in double precision.
    min_gamma: float = 1e-10
    # So many iterations at most from one starting γ; most descents end after three.
    max_iterations: int = 10
    # Two γ whose relative difference is no larger count as the same: the root finder's accuracy.
    same_gamma: float = 1e-6
    # So many local minima of the default grid are started from where trees are quick.
    max_starts: int = 3
    # The γ step is taken at so many τ, those of least error.
    max_taus: int = 5
    # Between visited γ no closer than this ratio at most so many more are visited, while that may
    # lower the least error by this share.
    min_ratio: float = 1.02
    max_between: int = 40
    min_gain: float = 1e-4


ALTERNATION = AlternationSettings()


def alternate(
    data: FoldData,
    taus: Sequence[int] | NDArray[np.intp],
    settings: Settings | None = None,
    *,
    start: float | None = None,
    iterations: int = ALTERNATION.max_iterations,
    checkpoint: Checkpoint | None = None,
    progress: Report | None = None,
) -> CVResult:
    """Minimise h(γ, τ) over τ and γ in turn.

    The τ step is exact at the current γ (or a search, as ``settings`` say). The γ step holds every
    fold's support and minimises over γ in [1e-4, 1e4], or between the ends of a grid that went
    further, for the best few τ: the pair with the least predicted error is next. It ends when a γ
    comes back, when nothing is gained, or after ``iterations``.

    Parameters
    ----------
    data : FoldData
    taus : sequence of int
    settings : Settings, optional
    start : float, optional
        First γ. By default the best local minimum of :func:`visit_default_grid`; up to 45
        columns, where one tree serves every τ, the best few, one after the other, and then up to 40
        values between them where folds change their supports.
    iterations : int
    checkpoint, progress
        As in :func:`~sparsecv.cv.engine.cross_validate`.

    Returns
    -------
    CVResult
        Of every γ visited, in increasing order, with the trace. The best pair visited is
        ``best()``; it is a local minimum, not a proved global one.

    Raises
    ------
    InputError
        γ < 0, τ out of range, or no iterations.

    Examples
    --------
    >>> from sparsecv.cv.alternating import alternate
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> made = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(made.X, made.y, make_folds("loo", 20), False)
    >>> result = alternate(data, [1, 2, 3])
    >>> result.ended, result.best().certified
    ('converged', True)
    """
    surface = Surface(data, taus, settings, checkpoint=checkpoint, progress=progress)
    return alternation(surface, start=start, iterations=iterations)


def visit_default_grid(
    surface: Surface, score: Callable[[Array], float] = lambda errors: float(errors.min())
) -> str:
    """Visit ten γ from 1e-4 to 1e4, and go on past an end while that improves the best of all.

    score: Gives one number for the CV errors of all τ at one γ; the least is the best.
    Returns: Why the grid could go no further although the best γ is at its end, in words; else "".
    """
    start, ratio = DEFAULT_GAMMAS, float(DEFAULT_GAMMAS[1] / DEFAULT_GAMMAS[0])
    surface.visit(start)
    scores = {g: score(surface.cv_error(g)) for g in start.tolist()}
    timed = surface.settings.time_limit != 0  # 0 asks for estimates, whatever they take
    for step in (1.0 / ratio, ratio):
        while len(scores) > 1:
            order = sorted(scores, reverse=step > 1.0)
            edge, gamma, best = order[0], order[0] * step, min(scores.values())
            worth = best < scores[order[1]] * (1.0 - ALTERNATION.min_gain)
            if scores[edge] > best or not worth:
                break
            at_end = f"The best γ of the grid is at its end, {edge:.3g}: "
            if gamma < ALTERNATION.min_gamma:
                return f"{at_end}the grid goes no lower than {ALTERNATION.min_gamma:g}"
            if timed and surface.spent:
                return f"{at_end}the time was up before other γ"
            surface.visit([gamma])
            scores[gamma] = score(surface.cv_error(gamma))
    return ""


def alternation(
    surface: Surface, *, start: float | None = None, iterations: int = ALTERNATION.max_iterations
) -> CVResult:
    """Alternating minimisation on a surface that nothing has been asked of yet.

    start: The first γ.
    iterations: At most.
    Returns: Of the γ visited, increasing; ``trace`` has one entry per iteration.
    Raises InputError: Fewer than 1 iteration.
    """
    if iterations < 1:
        raise InputError(f"alternating minimisation needs at least 1 iteration; got {iterations}")
    search = _Alternation(surface, iterations)
    with surface:
        ended = search.run(start)
        surface.prove()
    surface.order.sort()
    return replace(surface.result(), trace=search.trace, ended=ended, edge=search.edge)


class _Alternation:
    """The search along γ; ``errors`` has the CV errors (τ,) of every γ visited."""

    def __init__(self, surface: Surface, iterations: int) -> None:
        self.surface, self.iterations = surface, iterations
        self.errors: dict[float, Array] = {}
        self.trace: list[Step] = []
        self.fixed: dict[tuple[int, bytes], FixedSupports] = {}
        self.edge = ""

    def run(self, start: float | None) -> str:
        """From one γ, or the best few minima of the default grid; how it ended."""
        trees = self.surface.data.p <= TREE_ONLY
        if start is None:
            self.edge = visit_default_grid(self.surface)
            self.errors = {g: self.surface.cv_error(g) for g in self.surface.rows}
            starts = self._minima()[: ALTERNATION.max_starts if trees else 1]
        else:
            starts = [float(start)]
        ended = "iterations"
        for gamma in starts:
            if any(step.gamma == gamma for step in self.trace):
                continue  # another start led here
            ended = self.descend(gamma)
            if ended == "time limit":
                break
        if start is None and trees:
            self.refine()
        return ended

    def visit(self, gamma: float) -> None:
        """Have the surface visit one γ and remember the errors there."""
        self.surface.visit([gamma])
        self.errors[gamma] = self.surface.cv_error(gamma)

    def descend(self, gamma: float) -> str:
        """Alternate from one γ; how that ended."""
        seen: list[float] = []
        for _ in range(self.iterations):
            if gamma not in self.errors:
                self.visit(gamma)
            seen.append(gamma)
            best = self.surface.result([gamma]).best()
            proposal = (gamma, best.tau, best.cv_error)
            if not self.surface.spent:
                proposal = self.propose(gamma)
            self.trace.append(Step(gamma, best.tau, best.cv_error, best.certified, *proposal))
            following, _, predicted = proposal
            if self.surface.spent:
                return "time limit"
            if not predicted < best.cv_error * (1.0 - 1e-9) or _same(following, gamma):
                return "converged"
            if any(_same(following, old) for old in seen):
                return "cycle"
            gamma = following
        return "iterations"

    def propose(self, gamma: float) -> tuple[float, int, float]:
        """Take the γ step at the best few τ: γ, τ and the predicted error of the best step."""
        low, high = min(STEP.low, *self.errors), max(STEP.high, *self.errors)
        found: list[tuple[float, float, int]] = []
        order = np.argsort(self.errors[gamma], kind="stable")
        for t in order[: ALTERNATION.max_taus].tolist():
            supports = self.surface.supports(gamma, t)
            key = t, b"".join(support.tobytes() for support in supports)
            if key not in self.fixed:
                self.fixed[key] = FixedSupports.of(self.surface.data, supports)
            best, error = gamma_step(self.fixed[key], gamma, low=low, high=high)
            found.append((error, best, int(self.surface.taus[t])))
        error, best, tau = min(found)
        return best, tau, error

    def refine(self) -> None:
        """Look between visited γ where folds keep different supports: h jumps with them.

        Were every fold to have the better of its two neighbours' errors, h would be as low as the
        promise of a gap; the gap of the best promise is halved while that beats what is known.
        """
        for _ in range(ALTERNATION.max_between):
            order = sorted(self.errors)
            least = min(float(errors.min()) for errors in self.errors.values())
            gaps = [
                (self.surface.optimistic_error(a, b), float(np.sqrt(a * b)))
                for a, b in itertools.pairwise(order)
                if b > ALTERNATION.min_ratio * a
            ]
            promise, between = min(gaps, default=(np.inf, 0.0))
            if promise > least * (1.0 - ALTERNATION.min_gain) or self.surface.spent:
                break
            self.visit(between)
        best = min(self.errors, key=lambda gamma: float(self.errors[gamma].min()))
        if not any(step.gamma == best for step in self.trace):
            self.descend(best)

    def _minima(self) -> list[float]:
        """The best local minima of min_τ h over the γ visited, the best first."""
        order = sorted(self.errors)
        least = [float(self.errors[gamma].min()) for gamma in order]
        padded = [np.inf, *least, np.inf]
        found = [i for i in range(len(order)) if least[i] <= min(padded[i], padded[i + 2])]
        return [order[i] for i in sorted(found, key=lambda i: least[i])]


def _same(a: float, b: float) -> bool:
    """Whether two γ differ by no more than rounding."""
    return abs(a - b) <= ALTERNATION.same_gamma * max(a, b)
