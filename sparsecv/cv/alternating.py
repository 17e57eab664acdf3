"""Alternating minimisation of h over τ and γ (Section 3, main paper)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..errors import GammaTooSmall, InputError
from ..solvers.leaps.all_sizes import TREE_ONLY
from .checkpoint import Checkpoint
from .engine import Surface
from .gamma_step import HIGH, LOW, FixedSupports, gamma_step
from .progress import Tell
from .results import Array, CVResult, GammaResult, Step
from .settings import DEFAULT_GAMMAS, Settings

LEAST_GAMMA = 1e-10  # The default grid goes no lower: a ridge that small changes nothing.
ITERATIONS = 10
SAME = 1e-6  # relative difference of γ that counts as none
MINIMA = 3  # of the first grid that are started from
FINEST, WORTH = 1.02, 1e-4  # least ratio of neighbouring γ and relative gain looked for
MOST_BETWEEN = 40
CANDIDATES = 5  # τ whose γ step is looked at


def alternate(
    data: FoldData,
    taus: Sequence[int] | NDArray[np.intp],
    settings: Settings | None = None,
    *,
    start: float | None = None,
    iterations: int = ITERATIONS,
    checkpoint: Checkpoint | None = None,
    progress: Tell | None = None,
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
        γ ≤ 0, τ out of range, or no iterations.

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
    while start.size and not _told_from_zero(surface, start):
        start = start[1:]
    scores = {g: score(surface.pages[g].summary().cv_error) for g in start.tolist()}
    timed = surface.settings.time_limit != 0  # 0 asks for estimates, whatever they take
    for step in (1.0 / ratio, ratio):
        while len(scores) > 1:
            order = sorted(scores, reverse=step > 1.0)
            edge, gamma, best = order[0], order[0] * step, min(scores.values())
            if scores[edge] > best or not best < scores[order[1]] * (1.0 - WORTH):
                break
            at_end = f"The best γ of the grid is at its end, {edge:.3g}: "
            if gamma < LEAST_GAMMA:
                return f"{at_end}the grid goes no lower than {LEAST_GAMMA:g}"
            if timed and surface.spent:
                return f"{at_end}the time was up before other γ"
            if not _told_from_zero(surface, [gamma]):
                return f"{at_end}double precision cannot tell a smaller γ from zero here"
            scores[gamma] = score(surface.pages[gamma].summary().cv_error)
    return ""


def _told_from_zero(surface: Surface, gammas: Sequence[float] | Array) -> bool:
    """Visit some γ, and forget them where double precision cannot tell one from zero."""
    try:
        surface.visit(gammas)
    except GammaTooSmall:
        for gamma in np.asarray(gammas).tolist():
            surface.pages.pop(gamma, None)
        surface.order = [gamma for gamma in surface.order if gamma in surface.pages]
        return False
    return True


def alternation(
    surface: Surface, *, start: float | None = None, iterations: int = ITERATIONS
) -> CVResult:
    """Alternating minimisation on a surface that nothing has been asked of yet.

    start: The first γ.
    iterations: At most.
    Returns: Of the γ visited, increasing; ``trace`` has one entry per iteration.
    Raises InputError: Fewer than 1 iteration.
    """
    if iterations < 1:
        raise InputError(f"alternating minimisation needs at least 1 iteration; got {iterations}")
    walk = _Alternation(surface, iterations)
    with surface:
        ended = walk.run(start)
        surface.prove()
    surface.order.sort()
    return replace(surface.result(), trace=walk.trace, ended=ended, edge=walk.edge)


class _Alternation:
    """The walk over γ; the surface knows every γ visited."""

    def __init__(self, surface: Surface, iterations: int) -> None:
        self.surface, self.iterations = surface, iterations
        self.data, self.settings = surface.data, surface.settings
        self.visited: dict[float, GammaResult] = {}
        self.trace: list[Step] = []
        self.fixed: dict[tuple[int, bytes], FixedSupports] = {}
        self.edge = ""

    def run(self, start: float | None) -> str:
        """From one γ, or the best few minima of the default grid; how it ended."""
        trees = self.data.p <= TREE_ONLY
        if start is None:
            self.edge = visit_default_grid(self.surface)
            self.visited = {g: page.summary() for g, page in self.surface.pages.items()}
            starts = _minima(self.visited)[: MINIMA if trees else 1]
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

    def visit(self, gammas: Sequence[float] | Array) -> None:
        self.surface.visit(gammas)
        for gamma in np.asarray(gammas).tolist():
            self.visited[gamma] = self.surface.pages[gamma].summary()

    def descend(self, gamma: float) -> str:
        """Alternate from one γ; how that ended."""
        seen: list[float] = []
        tolerance = self.settings.tol if self.settings.searches else None
        for _ in range(self.iterations):
            if gamma not in self.visited:
                self.visit([gamma])
            one = self.visited[gamma]
            seen.append(gamma)
            alone = CVResult(
                self.data.folds, np.array([gamma]), self.surface.taus, [one], 0.0, tolerance
            )
            best, spent = alone.best(), self.surface.spent
            here = (gamma, best.tau, best.cv_error)
            within = min(LOW, *self.visited), max(HIGH, *self.visited)
            proposal = here if spent else self.propose(one, gamma, within)
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

    def propose(
        self, one: GammaResult, gamma: float, within: tuple[float, float]
    ) -> tuple[float, int, float]:
        """Take the γ step at the best few τ, γ within an interval: γ, τ and the predicted error."""
        found: list[tuple[float, float, int]] = []
        for t in np.argsort(one.cv_error, kind="stable")[:CANDIDATES]:
            supports = [one.supports[int(c)] for c in one.choice[t]]
            key = b"".join(support.tobytes() for support in supports)
            if (t, key) not in self.fixed:
                self.fixed[t, key] = FixedSupports.of(self.data, supports)
            step = gamma_step(self.fixed[t, key], gamma, low=within[0], high=within[1])
            found.append((step.error, step.gamma, int(one.taus[t])))
        error, best, tau = min(found)
        return best, tau, error

    def refine(self) -> None:
        """Look between visited γ where folds keep different supports: h jumps with them.

        Were every fold to have the better of its two neighbours' errors, h would be as low as the
        promise of a gap; the gap of the best promise is halved while that beats what is known.
        """
        visited, total = self.visited, self.data.total
        for _ in range(MOST_BETWEEN):
            order = sorted(visited)
            least = min(float(visited[g].cv_error.min()) for g in order)
            gaps = [
                (_promise(visited[a], visited[b], total), float(np.sqrt(a * b)))
                for a, b in itertools.pairwise(order)
                if b > FINEST * a
            ]
            promise, between = min(gaps, default=(np.inf, 0.0))
            if promise > least * (1.0 - WORTH) or self.surface.spent:
                break
            self.visit([between])
        best = min(visited, key=lambda g: float(visited[g].cv_error.min()))
        if not any(step.gamma == best for step in self.trace):
            self.descend(best)


def _minima(visited: dict[float, GammaResult]) -> list[float]:
    """The best local minima of min_τ h over the γ visited, the best first."""
    order = sorted(visited)
    least = [float(visited[g].cv_error.min()) for g in order]
    padded = [np.inf, *least, np.inf]
    found = [i for i in range(len(order)) if least[i] <= min(padded[i], padded[i + 2])]
    return [order[i] for i in sorted(found, key=lambda i: least[i])[:MINIMA]]


def _promise(a: GammaResult, b: GammaResult, rows: float) -> float:
    """Least h if every fold had the better of its errors at two values of γ."""
    return float(np.minimum(a.fold_error, b.fold_error).sum(axis=1).min()) / rows


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(a, b)
