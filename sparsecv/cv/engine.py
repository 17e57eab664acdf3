"""Exact cross-validation over a grid of γ and τ (eq. 2, first paper): estimate, then prove."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..errors import InputError
from ..solvers.backends.optional_dependencies import SolverUnavailable
from ..solvers.core.limits import Limits, StopFlag
from ..solvers.core.result import Status
from ..solvers.core.threads import cached, one_blas_thread
from ..solvers.executor import run_units
from .checkpoint import Checkpoint
from .estimate import MANY_FOLDS, estimate_folds, estimate_models
from .ledger import Ledger, Support
from .progress import Batch, Report, TimedReport
from .prove import Prover, solve_grid
from .results import Array, CVResult
from .settings import Settings, checked_gammas, checked_taus
from .tau_search import search_tau

# The intervals of one fold at one γ, for all τ at once, count as min(n, p) p² floating-point
# operations, with n rows and p columns. Where that is less than this number, which takes a
# twentieth of a second, folds without an interval get one even in the first seconds after the time
# limit, whose number is the second constant; else they stay without. The comparison is made in
# ``_cheap_intervals``, which has a second use: ``prove`` asks it beyond 45 columns whether, with
# MANY_FOLDS folds or more, the trees that folds share are searched before the intervals are
# computed. Both numbers are choices.
MAX_LATE_OPERATIONS, SECONDS_OF_CHEAP_INTERVALS = 5e7, 1.0
# CV errors and their proofs end when this share of the time for proofs remains. It belongs to the
# model that is chosen in the end, whose support is then proved on all rows. The number is a choice.
SHARE_OF_THE_MODEL = 0.1


def cross_validate(
    data: FoldData,
    gammas: Sequence[float] | Array,
    taus: Sequence[int] | NDArray[np.intp],
    settings: Settings | None = None,
    *,
    checkpoint: Checkpoint | None = None,
    progress: Report | None = None,
) -> CVResult:
    """Compute h(γ, τ) for every γ and τ: estimated, and proved or bracketed.

    Parameters
    ----------
    data : FoldData
        :class:`sparsecv.design.fold_data.RowFolds` or
        :class:`~sparsecv.design.moment_folds.MomentFolds`.
    gammas : sequence of float
        Ridge weights γ ≥ 0.
    taus : sequence of int
        Sparsities in 1..p.
    settings : Settings, optional
    checkpoint : Checkpoint, optional
        Files that proofs are read from before the run, and written to after every unit of work.
    progress : callable, optional
        Takes what is being done, the number of units done and the number of all units.

    Returns
    -------
    CVResult

    Raises
    ------
    InputError
        γ < 0 or τ out of range.
    KeyboardInterrupt
        Ctrl-C was pressed; the run ends within a fraction of a second. The attribute ``partial`` of
        the exception holds a CVResult of what is known by then, once there are estimates.

    Examples
    --------
    >>> from sparsecv.cv.engine import cross_validate
    >>> from sparsecv.design.fold_data import RowFolds
    >>> from sparsecv.design.folds import make_folds
    >>> from sparsecv.tables.synthetic import make_synthetic
    >>> X, y, _ = make_synthetic(n=20, p=3, tau_true=1)
    >>> data = RowFolds(X, y, make_folds("loo", 20), False)
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
    """h(γ, τ) of one partition into folds, evaluated at the γ that are asked for.

    A surface is a context manager: inside the context Ctrl-C ends any work within a fraction of a
    second, and the linear algebra library uses one thread, as the matrices are small.

    models: A surface of the same rows in other folds, whose models of all rows are taken over.
    only_estimates: Whether nothing is to be proved, whatever the time limit; beyond 45 columns.
    rows: For every γ that has answers, its row of the ledger.
    order: The γ as they were asked for, repeats included.
    """

    def __init__(
        self,
        data: FoldData,
        taus: Sequence[int] | NDArray[np.intp],
        settings: Settings | None = None,
        *,
        checkpoint: Checkpoint | None = None,
        progress: Report | None = None,
        models: Surface | None = None,
        only_estimates: bool = False,
    ) -> None:
        self.data, self.taus = data, checked_taus(taus, data.p, data.constraints)
        self.settings = settings or Settings()
        self.settings.check_constraints(data.constraints)
        # Whether each γ is solved alone, after its estimates; else proofs of all γ follow.
        self._alone = self.settings.searches or self.settings.grid
        self.ledger = Ledger(data, self.taus)
        self.rows: dict[float, int] = {}
        self.order: list[float] = []
        self.checkpoint, self._models = checkpoint, models
        self.report: Report = (lambda *_: None) if progress is None else progress
        self._clock = Limits()
        # Seconds for everything and for the proofs; None is no limit.
        seconds, self._proving = self.settings.seconds
        self.few = self.ledger.few  # Up to 45 columns, where a tree may prove all sizes.
        self._only_estimates = only_estimates or seconds == 0.0
        # A time limit of 0 asks for estimates, which then take as long as they need.
        self._unlimited_estimates = seconds == 0.0
        self._stop = StopFlag()
        self._everything = Limits(seconds, None, self._stop)
        self.limits = _most_of(self._everything)
        late = None if seconds is None else seconds + SECONDS_OF_CHEAP_INTERVALS
        self._cheap = Limits(late, None, self._stop)
        self._timed_report = TimedReport(self.report, self.limits)
        self._context = ExitStack()
        self._prover: Prover | None = None

    def __enter__(self) -> Surface:
        self._context.enter_context(interruptible(self._stop))
        self._context.enter_context(one_blas_thread())
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._context.close()
        if isinstance(error, KeyboardInterrupt) and self.rows:
            for g in self.rows.values():
                if not self.ledger.complete(g):
                    self.ledger.note_limit(g, Status.INTERRUPTED)
            error.partial = self.result()  # type: ignore[attr-defined]
        if isinstance(error, SolverUnavailable):  # There was no licence for a fold.
            raise InputError(str(error)) from error

    @cached
    def proofs(self) -> Limits:
        """The time for proofs; its clock starts at the first use of this property.

        So the time that estimates take is not taken from the proofs where the time limit is "auto".
        """
        return self._everything.within(self._proving)

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return self.limits.reached(0) is not None

    def out_of_time(self) -> bool:
        """Whether no γ is to be added; a time limit of 0 asks for estimates without a limit."""
        return self.settings.time_limit != 0 and self.spent

    def visit(self, gammas: Sequence[float] | Array) -> None:
        """Estimate h at some γ; up to 45 columns the estimates are exact where trees are small.

        A γ that was visited before costs nothing. The γ of the first call stand for all others:
        where a problem's tree was left open at the nearest of them, no tree is tried for that
        problem before its estimate (``Ledger.is_hard``).
        """
        ledger, asked = self.ledger, checked_gammas(gammas).tolist()
        self.order += asked
        rows = ledger.add([gamma for gamma in dict.fromkeys(asked) if gamma not in self.rows])
        ledger.first = ledger.first or rows
        for g in rows:
            known = None if self._models is None else self._models.rows.get(ledger.gammas[g])
            if self._models is not None and known is not None:
                ledger.take_models(g, self._models.ledger, known)
            if self.checkpoint is not None:
                self.checkpoint.load(ledger, g)
        left = [g for g in rows if not ledger.complete(g)]
        limits = Limits(None, None, self._stop) if self._unlimited_estimates else self.limits
        quick = self._only_estimates or self._alone
        how, report = "heuristic" if quick else "estimate", self._timed_report
        try:
            if left:
                estimate_models(ledger, left, how, limits, self.settings.n_jobs, report)
                self._run(estimate_folds(ledger, left, how, limits, report), left)
                self._save(left)
        except KeyboardInterrupt:  # A γ at which every fold has an answer is a result.
            self.rows |= {ledger.gammas[g]: g for g in rows if ledger.answered(g)}
            raise
        self.rows |= {ledger.gammas[g]: g for g in rows}
        for g in rows if self._only_estimates else []:
            if not ledger.proved(g):
                ledger.note_limit(g, Status.TIME_LIMIT if self.spent else Status.UNPROVED)
        for i, g in enumerate(rows if self._alone else []):
            if not ledger.complete(g):
                limits = self.proofs.share(len(rows) - i)
                solve = search_tau if self.settings.searches else solve_grid
                self._run(solve(ledger, g, self.settings, limits, report), [g])
            self._save([g])

    def passes(self) -> Iterator[None]:
        """Passes over γ that depend on errors: the loop body visits γ, which are then proved.

        Up to 45 columns, where proofs have changed what is known and nothing is open, another pass
        follows. The γ of the last pass are then those that exact errors lead to.
        """
        again = True
        while again:
            self.order = []
            yield
            unproved = not self._complete
            self.prove()
            again = self.few and unproved and self._complete

    @property
    def _complete(self) -> bool:
        """Whether everything at the γ asked for is proved."""
        return all(self.ledger.complete(g) for g in self._asked_rows())

    def _asked_rows(self) -> list[int]:
        """The rows of the ledger of the γ asked for."""
        return [self.rows[gamma] for gamma in dict.fromkeys(self.order)]

    @property
    def seconds_proving(self) -> float:
        """Seconds since the first proof that estimates have left open; 0 before."""
        return self.proofs.elapsed() if "proofs" in self.__dict__ else 0.0

    def prove(self) -> None:
        """Prove what the settings ask for; give all other folds intervals."""
        rows, many = self._asked_rows(), self.data.folds.k >= MANY_FOLDS
        if self.few and self._complete:
            return
        # Where folds are many, a shared tree proves them sooner than every fold has an interval.
        trees_first = not self._alone and (self.few or many) and self._cheap_intervals
        if not trees_first:
            self._bracket(rows)
        if self._alone or (self._only_estimates and not self._unlimited_estimates):
            return
        limits = _most_of(self.proofs)
        prover = Prover(self.ledger, rows, limits, self.settings, self.report, self._save)
        self._prover = prover
        if limits.remaining() is not None and not self.few:
            prover.prove_model(*prover.models()[0], limits.share(2.0))
        try:
            self._run(prover.batches(), rows)
        finally:
            if trees_first:
                self._bracket(rows)
        for g, t in prover.models():
            prover.prove_model(g, t, self.proofs)

    def prove_model(self, gamma: float, tau_index: int) -> None:
        """Prove the model of all rows at one pair, in the time that is left.

        gamma: A γ that has been visited.
        """
        if self._prover is not None:
            with self:
                self._prover.prove_model(self.rows[gamma], tau_index, self.proofs)

    # what is known

    def cv_error(self, gamma: float) -> Array:
        """h(γ, τ) of the answers, shape (τ,), at a γ that has been visited."""
        return np.asarray(self._fold_errors(gamma).sum(axis=1) / self.data.total)

    def optimistic_error(self, a: float, b: float) -> float:
        """The least h over τ if every fold had the smaller of its errors at two visited γ.

        The alternation visits a γ between two visited γ only where this number is small enough.
        """
        better = np.minimum(self._fold_errors(a), self._fold_errors(b))
        return float(better.sum(axis=1).min()) / self.data.total

    def _fold_errors(self, gamma: float) -> Array:
        return np.asarray(self.ledger.error[self.rows[gamma], :, : self.ledger.k])

    def supports(self, gamma: float, tau_index: int) -> list[Support]:
        """The support of every fold's answer at one pair, which the γ step holds fixed."""
        g, k = self.rows[gamma], self.ledger.k
        return [self.ledger.support(g, tau_index, j) for j in range(k)]

    def result(self, gammas: Sequence[float] | None = None) -> CVResult:
        """What is known at some visited γ; by default at all, in the order of the visits."""
        order = [gamma for gamma in gammas or self.order if gamma in self.rows]
        tables = self.ledger.tables([self.rows[gamma] for gamma in order])
        tol = self.settings.search_tolerance if self.settings.searches else None
        how = self._clock.elapsed(), tol, self.settings.prove, self.data.rounding
        return CVResult(self.data.folds, np.array(order), self.taus, tables, *how)

    # how it is done

    def _run(self, batches: Iterator[Batch], rows: Sequence[int]) -> None:
        """Run the units of batches and enter their results into the ledger.

        A unit whose limits are reached before it begins has no result, which a batch notes, too. A
        batch with ``keep`` has the checkpoint written after every other unit.

        The seconds of a batch are divided among the rows of the batch; the seconds after the last
        batch are divided among ``rows``.
        """
        clock = Limits()
        for batch in batches:
            self._refuse_interrupt()
            units = run_units(
                batch.unit, batch.shared, batch.tasks, self.settings.n_jobs, allot=batch.allot
            )
            batch.report(0, len(batch.tasks))
            for done, (index, found) in enumerate(units, 1):
                batch.take(index, found)
                if batch.keep and found is not None:
                    self._save(batch.rows)
                batch.report(done, len(batch.tasks))
                self._refuse_interrupt()
            self.ledger.seconds[batch.rows] += clock.elapsed() / len(batch.rows)
            clock = Limits()
        self.ledger.seconds[rows] += clock.elapsed() / len(rows)
        self._refuse_interrupt()

    def _refuse_interrupt(self) -> None:
        """Raise KeyboardInterrupt where Ctrl-C was pressed."""
        if self._stop.is_set():
            raise KeyboardInterrupt

    def _save(self, rows: Sequence[int]) -> None:
        """Write some rows of the ledger to the checkpoint, if there is a checkpoint."""
        if self.checkpoint is not None:
            for g in rows:
                self.checkpoint.save(self.ledger, g)

    @property
    def _cheap_intervals(self) -> bool:
        """Whether a fold's interval takes so little work that it may come after the time limit.

        The answer is the same for all folds and γ, and it also decides the order of work in
        :meth:`prove`.
        """
        operations = min(self.data.folds.n, self.data.p) * self.data.p**2
        return operations < MAX_LATE_OPERATIONS

    def _bracket(self, rows: Sequence[int]) -> None:
        """Give an interval to every fold without one, as far as the time allows.

        Without one, the upper bound on h at that γ and τ is ∞. Where coefficients have bounds an
        interval needs a bounded fit of every size, which is never cheap.
        """
        cheap = self._cheap_intervals and not self.data.constraints.bounded
        limits = self._cheap if cheap else self.limits
        self.ledger.bracket_the_rest(rows, None if self._unlimited_estimates else limits)


def _most_of(limits: Limits) -> Limits:
    """Limits that leave a share of the time to the proof of the chosen model."""
    seconds = limits.remaining()
    return limits.within(None if seconds is None else (1.0 - SHARE_OF_THE_MODEL) * seconds)


@contextmanager
def interruptible(stop: StopFlag, gently: bool = False) -> Iterator[StopFlag]:
    """Have Ctrl-C set a flag, which worker threads look at, before the usual handler runs.

    Outside the main thread, and where Ctrl-C is ignored, nothing changes.

    gently: The first Ctrl-C sets the flag alone, so that a search can return what it has found.
    Yields: The flag.
    """
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = signal.getsignal(signal.SIGINT)

    def on_interrupt(number: int, frame: Any) -> None:
        first = not stop.is_set()
        stop.set()
        if callable(previous) and not (gently and first):
            previous(number, frame)

    if previous in (None, signal.SIG_IGN):  # The handler is not Python's, or ignores Ctrl-C.
        yield stop
        return
    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)
