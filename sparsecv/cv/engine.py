"""Exact cross-validation over a grid of γ and τ (eq. 2, first paper): estimate, then prove."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design.fold_data import FoldData
from ..errors import InputError, SolverUnavailable
from ..schedule import (
    MAX_OPERATIONS_OF_CHEAP_INTERVALS,
    MAX_SECONDS_OF_THE_REST,
    SECONDS_OF_CHEAP_INTERVALS,
    SHARE_OF_THE_MODEL,
)
from ..solvers.core.limits import Limits, StopFlag
from ..solvers.core.result import Status
from ..solvers.core.rounding import exact_margin
from ..solvers.core.threads import one_blas_thread
from .checkpoint import Checkpoint
from .estimate import estimate_folds, estimate_models, units
from .executor import Batch, Late, OutOfTime, Report, Run, TimedReport, run_units, silent
from .fold_proofs import ProofRun, Prover
from .ledger import Ledger, Support
from .needs import Need, of_everything, of_minimum
from .plan import RunPlan
from .prove_cells import CellProver, solve_grid
from .prove_sizes import SizesProver
from .results import Array, CVResult
from .settings import Settings, checked_gammas, checked_taus

# Algorithm 1 of the first paper, which searches for the best τ at the γ of a row of the ledger. The
# functions run units of work, and report progress.
TauSearch = Callable[[Ledger, int, Settings, Limits, Run, Report], None]


class Surface:
    """h(γ, τ) of one partition into folds, evaluated at the γ that are asked for.

    A surface is a context manager: inside the context Ctrl-C ends any work within a fraction of a
    second, and the linear algebra library uses one thread, as the matrices are small. The context
    turns Ctrl-C into a KeyboardInterrupt with the attribute ``partial``, the result so far.

    data, taus: The folds, and the sizes from 0 to p, of which one at least is above 0.
    settings: How problems are solved; by default as :class:`Settings` says.
    plan: What is done, and until when; by default that of the settings, whose time begins now.
    checkpoint: Files that proofs are read from, and written to.
    progress, or ``report``: Takes what is being done.
    models: A surface of the same rows in other folds, whose models of all rows are taken over.
    ledger: What is known of every problem; it has a row for every γ. By default nothing is known.
    search_tau: The search by which the method "search" solves every γ; other methods need none.
    rows: For every γ that has been visited, its row of the ledger. Every problem has an answer at
        every size there.
    asked_gammas: The γ as they were asked for, repeats included. Those that were not visited, for
        want of time, are taken out of the list.
    """

    def __init__(
        self,
        data: FoldData,
        taus: Sequence[int] | NDArray[np.intp],
        settings: Settings | None = None,
        *,
        plan: RunPlan | None = None,
        checkpoint: Checkpoint | None = None,
        progress: Report = silent,
        models: Surface | None = None,
        ledger: Ledger | None = None,
        search_tau: TauSearch | None = None,
    ) -> None:
        self.data, self.taus = data, checked_taus(taus, data.p, data.constraints, least=0)
        self.settings = settings or Settings()
        self.settings.check_constraints(data.constraints)
        self.plan = plan or RunPlan.of(self.settings, data)
        self.ledger = ledger or Ledger(data, self.taus)
        self.rows: dict[float, int] = {}
        self.asked_gammas: list[float] = []
        self.checkpoint, self._models = checkpoint, models
        self._search_tau = search_tau
        self.report = progress
        self._context = ExitStack()
        self._clock = Limits()

    def __enter__(self) -> Surface:
        self._context.enter_context(interruptible(self.plan.stop))
        self._context.enter_context(one_blas_thread())
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._context.close()
        if isinstance(error, KeyboardInterrupt) and self.rows:
            for g in self.rows.values():
                if not self.ledger.complete(g):
                    self.ledger.worsen_status(g, Status.INTERRUPTED)
            error.partial = self.result()  # type: ignore[attr-defined]
        if isinstance(error, SolverUnavailable):  # There was no licence for a fold.
            raise InputError(str(error)) from error

    def with_plan(self, plan: RunPlan) -> Surface:
        """This surface for a part of the run that has a plan of its own.

        What the returned surface estimates and proves is known here, too, as both have one ledger.
        The γ that are asked of it are not: here the γ asked for, and the plan, stay what they are.
        """
        other = copy(self)
        other.plan, other._context = plan, ExitStack()
        other.asked_gammas = self.asked_gammas.copy()
        return other

    # what is done

    def visit(self, gammas: Sequence[float] | Array, late: Late = Late.DONE) -> None:
        """Estimate h at some γ.

        Where the plan searches trees of all sizes, estimates from trees that end are exact. A γ
        that was visited before costs nothing. The estimates start from the models of a surface in
        other folds, and from what a checkpoint holds. By the methods "search" and "grid" every γ
        that is not complete is then solved, unless nothing is to be proved.

        late: What becomes of estimates whose time is up before they begin.
        Raises OutOfTime: An estimate was left out. The γ at which no fold lacks an answer count as
            visited.
        """
        ledger, plan, asked = self.ledger, self.plan, checked_gammas(gammas).tolist()
        self.asked_gammas += asked
        rows = ledger.rows_of([gamma for gamma in dict.fromkeys(asked) if gamma not in self.rows])
        for g in rows:
            gamma, models = ledger.gammas[g], self._models
            if models is not None and gamma in models.rows:
                ledger.copy_models(g, models.ledger, models.rows[gamma])
            if self.checkpoint is not None:
                self.checkpoint.load(ledger, g, units(self.data, plan))
        incomplete = [g for g in rows if not ledger.complete(g)]
        try:
            if incomplete:
                self._estimate(incomplete, late)
        except KeyboardInterrupt:  # A γ at which every fold has an answer is a result.
            self.rows |= {ledger.gammas[g]: g for g in rows if ledger.answered(g)}
            raise
        self.rows |= {ledger.gammas[g]: g for g in rows if ledger.answered(g)}
        if not all(gamma in self.rows for gamma in asked):
            self.asked_gammas = [gamma for gamma in self.asked_gammas if gamma in self.rows]
            raise OutOfTime
        if plan.solves_gammas_alone and plan.proves != "nothing":
            for i, g in enumerate(rows):
                if not ledger.complete(g):
                    self._solve_alone(g, plan.limits.share(len(rows) - i))

    def is_blurred(self, gamma: float) -> bool:
        """Whether rounding moves some CV error at a γ that has been visited by over a millionth.

        Up to 45 columns every size above 0 is looked at. Beyond (``MAX_SHARED``) the size of least
        error alone is, as the choice is not proved there unless the user asks for it.
        """
        errors, margins = self.ledger.blur(self.rows[gamma])
        room = self.data.rounding * self.data.total
        return not bool((margins <= exact_margin(errors, room)).all())

    def keep(self, gammas: Sequence[float]) -> None:
        """Of the γ that were asked for, let only these count as asked for."""
        self.asked_gammas = [gamma for gamma in self.asked_gammas if gamma in gammas]

    def _estimate(self, rows: list[int], late: Late) -> None:
        """Answer every problem at the γ of some rows of the ledger.

        late: As of :meth:`visit`.
        """
        plan, ledger = self.plan, self.ledger
        limits = _without_share_of_model(plan.estimates)
        report = TimedReport(self.report, limits)
        with self._timed(rows):
            estimate_models(ledger, rows, plan, limits, self.settings.n_jobs, late, report)
            estimate_folds(ledger, rows, plan, limits, self._run, late, report)
        self._save(rows)
        if plan.proves == "nothing":  # Elsewhere proofs note the limits that they reach.
            limit = Status.TIME_LIMIT if plan.time_is_up else Status.UNPROVED
            for g in rows:
                if not ledger.proved(g):
                    ledger.worsen_status(g, limit)

    def _solve_alone(self, g: int, limits: Limits) -> None:
        """Solve the problems at the γ of row g by the method of the plan, "search" or "grid"."""
        with self._timed([g]):
            if self.plan.method == "search":
                assert self._search_tau is not None  # Doors hand it in with this method.
                self._search_tau(self.ledger, g, self.settings, limits, self._run, self.report)
            else:
                cells = CellProver(self.ledger, [g], self._proofs(limits), self.plan)
                solve_grid(cells, g, self.settings.backend)
        self._save([g])

    def proofs_keep_errors(self, need: Need | None = None) -> bool:
        """Prove what a choice needs; whether no CV error has changed, or no time remains.

        Where proofs change errors, other γ may be worth a visit: the caller then visits all γ anew,
        as the errors now lead to them, and the γ asked for are forgotten here. Nothing is proved
        where the choice needs no proof.

        need: As of :meth:`prove`.
        """
        if self.plan.needs_no_proof:
            return True
        before = self._errors()
        self.prove(need)
        if np.array_equal(before, self._errors()) or self.plan.out_of_time:
            return True
        self.asked_gammas = []
        return False

    def _errors(self) -> Array:
        """Sums of the squared errors of the folds' answers, shape (γ asked for, τ)."""
        return self.ledger.sums(self.ledger.answer.error)[self._asked_rows()]

    def _asked_rows(self) -> list[int]:
        """The rows of the ledger of the γ asked for, in this order, each once."""
        return [self.rows[gamma] for gamma in dict.fromkeys(self.asked_gammas)]

    def prove(self, need: Need | None = None) -> None:
        """Prove what a choice needs, or everything; give all other folds intervals.

        Where the plan proves nothing, and by the methods "search" and "grid", which have proved
        what they prove when a γ was visited, the folds get intervals alone.

        need: What the choice needs; by default what the least CV error needs.
        """
        plan, rows = self.plan, self._asked_rows()
        if plan.proves == "nothing" or plan.solves_gammas_alone:
            self._bracket(rows)
            return
        need = of_everything if plan.proves == "all" else need or of_minimum
        # Where folds are many and have no trees of their own, the tree that they share proves them
        # sooner than every fold has an interval. Intervals may then come late: they are cheap.
        proves_first = plan.many_folds and self._cheap_intervals
        limits = _without_share_of_model(plan.limits)
        with self._timed(rows):
            if not proves_first:
                self._bracket(rows)
            try:
                for g in self._left_open(rows, limits, need):
                    self.ledger.worsen_status(g, limits.reached(0) or Status.PRECISION)
            finally:  # The result so far, after Ctrl-C, has intervals, too.
                if proves_first:
                    self._bracket(rows)

    def prove_rest(self) -> None:
        """Prove what the choice does not need, for as long again as the run has taken until now.

        It ends after ``MAX_SECONDS_OF_THE_REST``. Nothing is done beyond 45 columns, where no tree
        proves all sizes, by the methods "search" and "grid", and where everything or nothing was to
        be proved before.
        """
        plan, rows = self.plan, self._asked_rows()
        if not plan.proves_needed_pairs:
            return
        limits = plan.limits.within(min(plan.limits.elapsed(), MAX_SECONDS_OF_THE_REST))
        with self, self._timed(rows):
            self._left_open(rows, limits, of_everything)

    def prove_model(self, gamma: float, tau_index: int) -> None:
        """Prove the model of all rows at one pair, in the time that remains.

        By the methods "search" and "grid" the model is solved with its γ, and not here.

        gamma: A γ that has been visited.
        tau_index: The position of the size in ``taus``.
        """
        plan, g = self.plan, self.rows[gamma]
        if plan.proves == "nothing" or plan.solves_gammas_alone:
            return
        with self:
            if not self._prover([g], plan.limits).prove_model(g, tau_index, plan.limits):
                self.ledger.worsen_status(g, plan.limits.reached(0) or Status.PRECISION)

    # what is known

    def cv_error(self, gamma: float) -> Array:
        """h(γ, τ) of the answers, shape (τ,), at a γ that has been visited.

        The error of the size 0 is ∞ here: no γ changes it, so that it says nothing of γ.
        """
        return np.asarray(self._fold_errors(gamma).sum(axis=1) / self.data.total)

    def optimistic_error(self, a: float, b: float) -> float:
        """The least h over τ > 0 if every fold had the smaller of its errors at two visited γ.

        The alternation visits a γ between two visited γ only where this number is small enough.
        """
        better = np.minimum(self._fold_errors(a), self._fold_errors(b))
        return float(better.sum(axis=1).min()) / self.data.total

    def _fold_errors(self, gamma: float) -> Array:
        """Sums of squared errors, shape (τ, k), at a γ that has been visited; ∞ at the size 0."""
        errors = np.array(self.ledger.answer.error[self.rows[gamma], :, : self.ledger.k])
        if self.taus[0] == 0:
            errors[0] = np.inf
        return errors

    def supports(self, gamma: float, tau_index: int) -> list[Support]:
        """The support of every fold's answer at one pair, which the γ step holds fixed."""
        g, k = self.rows[gamma], self.ledger.k
        return [self.ledger.support(g, tau_index, j) for j in range(k)]

    def result(self, gammas: Sequence[float] | None = None) -> CVResult:
        """What is known at some γ; a γ that has not been visited is left out.

        gammas: By default the γ that were asked for, in this order.
        """
        visited = [gamma for gamma in gammas or self.asked_gammas if gamma in self.rows]
        tables = self.ledger.tables([self.rows[gamma] for gamma in visited])
        tolerance = self.settings.search_tolerance if self.settings.searches else None
        return CVResult(
            self.data.folds,
            np.array(visited),
            self.taus,
            tables,
            seconds=self._clock.elapsed(),
            tolerance=tolerance,
            rounding=self.data.rounding,
        )

    # how it is done

    def _left_open(self, rows: Sequence[int], limits: Limits, need: Need) -> list[int]:
        """Prove what is needed at some rows; return those at which some of it stays unproved."""
        if self.ledger.cells.exact[rows].all():
            return []
        return self._prover(rows, limits).prove(need)

    def _prover(self, rows: Sequence[int], limits: Limits) -> Prover:
        """The prover of some rows of the ledger, where every fold has an incumbent at every τ."""
        if self.plan.all_size_trees:
            return SizesProver(self.ledger, rows, self._proofs(limits))
        return CellProver(self.ledger, rows, self._proofs(limits), self.plan)

    def _proofs(self, limits: Limits) -> ProofRun:
        """How proofs within limits are run."""
        return ProofRun(limits, self.settings.n_jobs, self._run, self.report, self._save)

    def _run(self, batch: Batch) -> list[Status]:
        """Run the units of a batch, enter their results, and return how the units have ended.

        A unit whose limits are reached before it begins has no result and ends with the time. A
        batch with ``keep`` has the checkpoint written after every other unit.

        Raises KeyboardInterrupt: Ctrl-C was pressed. Units that ended before have been entered.
        """
        statuses: list[Status] = []

        def allot(rounds: float) -> Limits:
            """The limits of the next unit; called just before the unit begins."""
            limits = batch.allot(rounds)
            reached_limit = not set(statuses) <= {Status.OPTIMAL, Status.PRECISION}
            return limits.within(0.0) if batch.all_or_none and reached_limit else limits

        with self._timed(batch.rows):
            self._refuse_interrupt()
            n_jobs, total = self.settings.n_jobs, len(batch.tasks)
            results = run_units(batch.unit, batch.shared, batch.tasks, n_jobs, allot=allot)
            batch.report(0, total)
            for done, (index, found) in enumerate(results, 1):
                ended = Status.TIME_LIMIT if found is None else batch.enter(index, found)
                statuses.append(ended)
                if batch.keep and found is not None:
                    self._save(batch.rows)
                batch.report(done, total)
                self._refuse_interrupt()
        return statuses

    @contextmanager
    def _timed(self, rows: Sequence[int]) -> Iterator[None]:
        """Count the seconds of the context in ``ledger.work``, in equal parts for some γ.

        Seconds that contexts inside this one have counted are not counted again.

        rows: Rows of the ledger, one for each of these γ, of which there is one at least.
        Raises KeyboardInterrupt: Ctrl-C was pressed inside the context.
        """
        clock, before = Limits(), float(self.ledger.work.seconds.sum())
        yield
        self._refuse_interrupt()
        # The array may have grown, and is another then.
        seconds = self.ledger.work.seconds
        own = clock.elapsed() - (float(seconds.sum()) - before)
        seconds[list(rows)] += max(own, 0.0) / len(rows)

    def _refuse_interrupt(self) -> None:
        """Raise KeyboardInterrupt where Ctrl-C was pressed."""
        if self.plan.stop.is_set():
            raise KeyboardInterrupt

    def _save(self, rows: Sequence[int]) -> None:
        """Write some rows of the ledger to the checkpoint, if there is a checkpoint."""
        if self.checkpoint is not None:
            problems = units(self.data, self.plan)
            for g in rows:
                self.checkpoint.save(self.ledger, g, problems)

    @property
    def _cheap_intervals(self) -> bool:
        """Whether a fold's interval takes so little work that it may come after the time limit.

        The answer is the same for all folds and γ, and it also decides the order of work in
        :meth:`prove`.
        """
        operations = min(self.data.folds.n, self.data.p) * self.data.p**2
        return operations < MAX_OPERATIONS_OF_CHEAP_INTERVALS

    def _bracket(self, rows: Sequence[int]) -> None:
        """Give an interval to every fold without one, as far as the time allows.

        While a fold has none, the upper bound on h at that γ and τ is ∞. Where coefficients have
        bounds an interval needs a bounded fit of every size, which is never cheap.
        """
        limits, bounded = self.plan.estimates, self.data.constraints.bounded
        if self._cheap_intervals and not bounded:
            limits = limits.longer(SECONDS_OF_CHEAP_INTERVALS)
        self.ledger.bracket_the_rest(rows, limits)


def _without_share_of_model(limits: Limits) -> Limits:
    """Limits that leave a share of a time limit to the proof of the chosen model."""
    seconds = limits.remaining()
    return limits.within(None if seconds is None else (1.0 - SHARE_OF_THE_MODEL) * seconds)


@contextmanager
def interruptible(stop: StopFlag, gently: bool = False) -> Iterator[StopFlag]:
    """Have Ctrl-C set a flag, which worker threads look at, before the usual handler runs.

    Outside the main thread, and where Ctrl-C is ignored or its handler is not Python's, nothing
    changes.

    gently: The first Ctrl-C sets the flag alone, so that a search can return what it has found.
    Yields: The flag.
    """
    previous, thread = signal.getsignal(signal.SIGINT), threading.current_thread()
    if thread is not threading.main_thread() or previous in (None, signal.SIG_IGN):
        yield stop
        return

    def on_interrupt(number: int, frame: Any) -> None:
        first = not stop.is_set()
        stop.set()
        if callable(previous) and not (gently and first):
            previous(number, frame)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)
