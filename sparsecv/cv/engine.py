"""Exact cross-validation over a grid of γ and τ (eq. 2, main paper): estimate, then prove."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..errors import InputError
from ..solvers.backends.optional_dependencies import SolverUnavailable
from ..solvers.core.limits import Limits, StopFlag
from ..solvers.core.result import Status
from ..solvers.core.threads import one_blas_thread
from ..solvers.leaps.all_sizes import TREE_ONLY
from ..solvers.paths import support_path
from .checkpoint import Checkpoint
from .estimate import MANY_FOLDS, fill_pages
from .grid import solve_grid
from .ledger import Page
from .progress import Pace, Tell
from .prove import Prover
from .results import Array, CVResult
from .settings import Settings, checked_gammas, checked_taus
from .tau_search import search_taus

QUICK = 5e7  # operations for a fold's interval, up to which there is one when the time is up


def cross_validate(
    data: FoldData,
    gammas: Sequence[float] | Array,
    taus: Sequence[int] | NDArray[np.intp],
    settings: Settings | None = None,
    *,
    checkpoint: Checkpoint | None = None,
    progress: Tell | None = None,
) -> CVResult:
    """Compute h(γ, τ) for every γ and τ: estimated, and proved or bracketed.

    Parameters
    ----------
    data : FoldData
        :class:`sparsecv.design.fold_data.RowFolds` or
        :class:`~sparsecv.design.fold_data.MomentFolds`.
    gammas : sequence of float
        Ridge weights γ > 0.
    taus : sequence of int
        Sparsities in 1..p.
    settings : Settings, optional
    checkpoint : Checkpoint, optional
        Keeps what is proved, unit by unit, and is asked for it first.
    progress : callable, optional
        Called with what is being done, the units done and units in all.

    Returns
    -------
    CVResult

    Raises
    ------
    InputError
        γ ≤ 0 or τ out of range.
    KeyboardInterrupt
        On Ctrl-C, within a fraction of a second. Its ``partial`` attribute holds a CVResult of
        what is known by then, once there are estimates.

    Examples
    --------
    >>> from sparsecv.cv.engine import cross_validate
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> made = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(made.X, made.y, make_folds("loo", 20), False)
    >>> result = cross_validate(data, [0.1, 1.0], [1, 2])
    >>> result.complete, result.table("cv_error").shape
    (True, (2, 2))
    """
    surface = Surface(data, taus, settings, checkpoint=checkpoint, progress=progress)
    with surface:
        surface.visit(gammas)
        surface.prove()
    return surface.result()


class Surface:
    """h(γ, τ) of one partition into folds, γ by γ as they are asked for.

    A context manager: inside it Ctrl-C ends what runs within a fraction of a second, and the linear
    algebra library keeps to one thread, as the matrices are small.

    models: Of the same rows in other folds: what it knows of the models of all rows is not computed
        again.
    estimates: Nothing beyond 45 columns is to be proved, whatever the time limit.
    """

    def __init__(
        self,
        data: FoldData,
        taus: Sequence[int] | NDArray[np.intp],
        settings: Settings | None = None,
        *,
        checkpoint: Checkpoint | None = None,
        progress: Tell | None = None,
        models: Surface | None = None,
        estimates: bool = False,
    ) -> None:
        self._models = models
        self.data, self.taus = data, checked_taus(taus, data.p)
        self.settings = settings or Settings()
        self.checkpoint = checkpoint
        self.tell: Tell = (lambda *_: None) if progress is None else progress
        self.pages: dict[float, Page] = {}
        self.order: list[float] = []  # as asked for, repeats included
        self._clock = Limits()
        seconds, self._proving = self.settings.seconds(data.p)
        self._only_estimates = estimates or seconds == 0.0
        # Without a second to spend the estimates take what they take.
        self._untimed = seconds == 0.0
        self._stop = StopFlag()
        self.limits = Limits(seconds, None, self._stop)
        self._paced = Pace(self.tell, self.limits)
        self._context = ExitStack()
        self._prover: Prover | None = None

    def __enter__(self) -> Surface:
        self._context.enter_context(interruptible(self._stop))
        self._context.enter_context(one_blas_thread())
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._context.close()
        if isinstance(error, KeyboardInterrupt) and self.pages:
            for page in self.pages.values():
                if not page.complete:
                    page.met(Status.INTERRUPTED)
            error.partial = self.result()  # type: ignore[attr-defined]
        if isinstance(error, SolverUnavailable):  # no licence for a fold
            raise InputError(str(error)) from error

    @cached_property
    def _proofs(self) -> Limits:
        """The time for proofs, which begins when it is first asked for."""
        return self.limits.within(self._proving)

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return self.limits.reached(0) is not None

    def visit(self, gammas: Sequence[float] | Array) -> None:
        """Estimate h at some γ: exact up to 45 columns, limits permitting.

        gammas: Those visited before cost nothing.
        """
        asked = checked_gammas(gammas).tolist()
        fresh = [gamma for gamma in dict.fromkeys(asked) if gamma not in self.pages]
        self.order += asked
        pages = [Page(self.data, gamma, self.taus) for gamma in fresh]
        for page in pages:
            if self._models is not None and page.gamma in self._models.pages:
                page.same_models(self._models.pages[page.gamma])
            if self.checkpoint is not None:
                self.checkpoint.load(page)
        one_by_one = self.settings.searches or self.settings.grid
        try:
            fill_pages(
                [page for page in pages if not page.complete],
                Limits(None, None, self._stop) if self._untimed else self.limits,
                n_jobs=self.settings.n_jobs,
                solver="heuristic" if self._only_estimates or one_by_one else "auto",
                tell=self._paced,
                save=self._save,
            )
        finally:  # after Ctrl-C, too, what is answered in every fold is a result
            answered = [page for page in pages if page.answered]
            self.pages |= {page.gamma: page for page in answered}
        for page in pages if self._only_estimates else []:
            if not page.exact.all():
                page.met(Status.TIME_LIMIT if self.spent else Status.UNPROVED)
        if one_by_one:
            for i, page in enumerate(pages):
                if not page.complete:
                    limits = self._proofs.share(len(pages) - i)
                    (self._search if self.settings.searches else self._grid)(page, limits)
                self._save([page])

    def prove(self) -> None:
        """Beyond 45 columns: prove what the choice, or everything, needs; bracket the rest."""
        pages = list(self.pages.values())
        # a tree for all folds proves them sooner than each has an interval
        first = self.data.folds.k < MANY_FOLDS or self.data.p <= TREE_ONLY or not self._quick
        if first or self.settings.searches or self.settings.grid:
            self._bracket(pages)
        unasked = self._only_estimates and not self._untimed
        if unasked or self.data.p <= TREE_ONLY or self.settings.searches or self.settings.grid:
            return
        self._prover = Prover(
            self.data,
            pages,
            self._proofs,
            everything=self.settings.prove == "all",
            n_jobs=self.settings.n_jobs,
            tell=self.tell,
            save=self._save,
        )
        try:
            self._prover.run()
        finally:
            if not first:
                self._bracket(pages)
        self._prover.prove_model(*self._prover.best())

    @property
    def _quick(self) -> bool:
        """Whether a fold's interval comes so soon that the clock need not be asked."""
        return min(self.data.folds.n, self.data.p) * self.data.p**2 < QUICK

    def _bracket(self, pages: Sequence[Page]) -> None:
        """An interval for every fold that has none, where that is quick or there is time."""
        if not self.spent or self._only_estimates or self._quick:
            for page in pages:
                page.bound_the_rest()

    def prove_model(self, gamma: float, tau_index: int) -> None:
        """The model of all rows at one pair, with what is left of the time.

        gamma: One that has been visited.
        tau_index: Position of τ.
        """
        if self._prover is not None:
            with self:
                self._prover.prove_model(list(self.pages).index(gamma), tau_index)

    def result(self) -> CVResult:
        """Everything visited, in the order it was asked for."""
        summaries = {gamma: page.summary() for gamma, page in self.pages.items()}
        order = [gamma for gamma in self.order if gamma in summaries]
        return CVResult(
            self.data.folds,
            np.array(order),
            self.taus,
            [summaries[gamma] for gamma in order],
            self._clock.elapsed(),
            self.settings.tol if self.settings.searches else None,
            self.settings.prove,
        )

    def _save(self, pages: Sequence[Page]) -> None:
        if self.checkpoint is not None:
            for page in pages:
                self.checkpoint.save(page)

    def _grid(self, page: Page, limits: Limits) -> None:
        """Every (fold, τ) a problem of its own."""
        share = limits.share(self.data.folds.k + 1.0)
        whole = support_path(self.data.full(), [page.gamma], self.taus, limits=share)
        page.take_models(whole, 0)
        page.met(whole.status)
        solve_grid(page, self.settings.backend, limits, self.settings.n_jobs, self._paced)

    def _search(self, page: Page, limits: Limits) -> None:
        """Algorithm 1 in place of the exact h at every τ."""
        clock, page.status = Limits(), Status.OPTIMAL  # until the search meets a limit

        def tell(done: int) -> None:
            self._paced(f"γ = {page.gamma:.4g}", done, self.data.folds.k)

        tell(0)
        search_taus(
            page,
            bounds=self.settings.bounds,
            backend=self.settings.backend,
            tol=self.settings.tol,
            mio_limit=self.settings.mio_limit,
            only_bounds=self.settings.method == "bounds",
            limits=limits,
            tell=tell,
        )
        if limits.reached(0) is Status.INTERRUPTED:
            raise KeyboardInterrupt
        page.seconds += clock.elapsed()


@contextmanager
def interruptible(stop: StopFlag) -> Iterator[StopFlag]:
    """Have Ctrl-C raise a flag before anything waits for the worker threads.

    Yields: The same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = signal.getsignal(signal.SIGINT)

    def on_interrupt(number: int, frame: Any) -> None:
        stop.set()
        if callable(previous):
            previous(number, frame)

    if previous in (None, signal.SIG_IGN):  # not Python's, or meant to be ignored: leave it alone
        yield stop
        return
    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)
