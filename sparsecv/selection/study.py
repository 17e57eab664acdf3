"""What all steps of a cross-validated fit read: the rows, what is asked of them, and the plan.

A fit evaluates h(γ, τ), the CV error of best-subset ridge regression of at most τ columns at the
ridge weight γ. A rule of :mod:`sparsecv.selection.rules` then chooses a pair (γ, τ), or averages
the models of many pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.checkpoint import CheckpointFolder
from ..cv.engine import Surface, TauSearch, interruptible
from ..cv.executor import Report, Tasks, TimedReport, Unit, run_units, silent
from ..cv.needs import Need
from ..cv.plan import RunPlan
from ..cv.results import Array, CVResult
from ..cv.settings import Settings, asked_gammas, checked_taus, default_taus
from ..design.design import Design
from ..design.fold_data import FoldData
from ..design.folds import Index
from ..errors import InputError
from ..schedule import SURFACES_OF_AN_AVERAGE, SURFACES_OF_STABILITY
from ..solvers.core.gamma_span import GammaSpan
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status
from ..solvers.core.threads import one_blas_thread
from .rules import PairCriterion, check_rule, resolved_rule, takes_average
from .weights import SizeRound, growing_sizes

# The weights of an average come from CV errors over this many random partitions of the rows into
# folds, of which the first is the partition of the other rules. Where a time limit is reached no
# further partition is begun. The number is measured by experiments/selection/partitions.py. In
# geometric mean over eight data sets, test errors with one partition are 1.5 % larger than with
# six, and with two they are .2 % smaller.
PARTITIONS = 2


class Wings(NamedTuple):
    """Functions that a fit calls only where its settings ask for them; its callers pass them.

    search_tau: The search for the best τ at one γ, by which the method "search" solves every γ.
    alternate: Visits γ on a surface, in turn with τ, and proves what is needed.
    least_over_range: Finds and proves the least CV error of a surface over a range of γ.
    stable_errors: The number that the rule stability minimises, of every pair of a surface.
    """

    search_tau: TauSearch
    alternate: Callable[[Surface, Need], CVResult]
    least_over_range: Callable[[Surface, GammaSpan, Need], CVResult]
    stable_errors: Callable[[Study, CVResult], PairCriterion]


def partitions_of(settings: Settings, protocol: str) -> int:
    """The largest number of partitions of the rows into folds that a fit evaluates.

    protocol: "honest" or "paper".
    """
    return PARTITIONS if settings.compare or takes_average(settings, protocol) else 1


def check_size(sizes: NDArray[Any], size: int) -> None:
    """Raise an InputError where a size is none of the increasing ``sizes``."""
    if size in sizes:
        return
    words = ", ".join(map(str, sizes))
    if sizes.size > 2 and sizes[-1] - sizes[0] == sizes.size - 1:
        words = f"{sizes[0]} to {sizes[-1]}"
    raise InputError(f"size must be one of {words}; got {size}")


@dataclass(frozen=True)
class Study:
    """What every step of a cross-validated fit reads; no step changes it.

    data: The rows in the first partition into folds.
    design: How the columns were centred and scaled, by which models return to the user's units.
    settings: What is asked of the fit.
    wings: What the run calls where it is asked for; :data:`sparsecv.wings.WINGS`.
    plan: What the run does, and until when.
    rule, reason: The rule that chooses, and why it is this rule, in words.
    gammas: What ``settings`` says of γ, checked.
    sizes: The sizes that were asked for, or else all that may be worth trying.
    size_rounds: The sizes that are evaluated first, and those that replace them one round after the
        other, as long as more sizes are worth it.
    partitions: The number of partitions of the rows into folds that a rule which averages models
        evaluates, the first one included.
    progress: Takes what is being done, the number of units done and the number of all units.
    checkpoint: The folder of the files that keep proofs.
    """

    data: FoldData
    design: Design
    settings: Settings
    wings: Wings
    plan: RunPlan
    rule: str
    reason: str
    gammas: Array | GammaSpan | None
    sizes: Index
    size_rounds: list[SizeRound]
    partitions: int
    progress: Report = silent
    checkpoint: CheckpointFolder | None = None

    @classmethod
    def of(
        cls,
        data: FoldData,
        design: Design,
        settings: Settings,
        wings: Wings,
        *,
        deadline: Limits | None = None,
        progress: Report = silent,
        checkpoint: CheckpointFolder | None = None,
    ) -> Study:
        """The study of some rows, which begins now.

        deadline: The limits of the whole call, which has begun already; by default the time limit
            of the settings begins now.
        Raises InputError: The rows do not allow what is asked for.
        """
        gammas, protocol = asked_gammas(settings.gammas), design.protocol.name
        rule, reason = resolved_rule(settings, protocol)
        check_rule(rule, data, settings)
        average = takes_average(settings, protocol)
        if isinstance(gammas, GammaSpan):
            _refuse_range(settings, average)
        every = default_taus(data.weight, data.p, data.constraints)
        # The mean alone is one of the sizes, but for those of the first paper, which begin at 1.
        mean = np.zeros(int(protocol != "paper" and data.constraints.min_size == 0), dtype=np.intp)
        named = np.append(mean, every) if settings.taus is None else settings.taus
        sizes = checked_taus(named, data.p, data.constraints, least=0)
        if sizes[-1] == 0:
            raise InputError(
                "the size 0 alone leaves nothing to choose: SparseRidge(tau=0), or sparsecv fit "
                "--tau 0, fits the mean alone"
            )
        plan = RunPlan.of(settings, data, averages=average, deadline=deadline)
        if settings.taus is not None and not average:
            rounds = [SizeRound(sizes, end=int(sizes[-1]))]
        else:
            # Sizes that the user names are those of projections of an average. The average itself
            # is over all sizes that are worth trying.
            rounds = growing_sizes(every, named=mean if settings.taus is None else sizes)
            if not plan.needs_no_proof:
                # Where anything is proved, the last round alone is taken, which has all sizes.
                rounds = rounds[-1:]
        if settings.size is not None:
            check_size(sizes, settings.size)
            # Rounds that end below the size of the model would be for nothing. A size beyond all
            # ends is one that the user names, which every round has.
            rounds = [one for one in rounds if one.end >= settings.size] or rounds
        # By the method grid every fold and τ is a problem of its own, which costs too much.
        costly = average and settings.grid
        return cls(
            data,
            design,
            settings,
            wings,
            plan,
            rule=rule,
            reason=reason,
            gammas=gammas,
            sizes=sizes,
            size_rounds=rounds,
            partitions=1 if costly else data.count_partitions(PARTITIONS),
            progress=progress,
            checkpoint=checkpoint,
        )

    def part(self, pieces: float) -> Study:
        """The same study within the next of ``pieces`` equal pieces of the time that remains."""
        return replace(self, plan=self.plan.part(pieces))

    def in_short_time(self) -> Study:
        """The study where the time was up before its rule could choose: the least CV error counts.

        The errors of the pairs (γ, τ) are known then, and what the rule needs besides is not.
        """
        reason = f"the time limit came before {self.rule} could choose"
        return replace(self, rule="minimum", reason=reason)

    def again(self, deadline: Limits | None = None) -> Study:
        """The same study with a time limit of its own from now on, as the fit had, or another one.

        deadline: The limits of a call that has begun already.
        """
        plan = RunPlan.of(self.settings, self.data, averages=self.averages, deadline=deadline)
        return replace(self, plan=plan)

    @property
    def averages(self) -> bool:
        """Whether the rule averages models."""
        return self.rule == "projected"

    @property
    def work_after_partitions(self) -> float:
        """The work after all partitions, in surfaces that take about as long."""
        if self.averages:
            return SURFACES_OF_AN_AVERAGE
        return SURFACES_OF_STABILITY if self.rule == "stability" else 0.0

    def status_of(self, proved: bool) -> Status:
        """Optimal, or the limit reached by now where something is not proved.

        Without a proof it is optimal, too, if no limit was reached.
        """
        reached = None if proved else self.plan.limits.reached(0)
        return Status.OPTIMAL if reached is None else reached

    @contextmanager
    def interruptible(self) -> Iterator[Limits]:
        """A context with the limits of estimates, for work that Ctrl-C can end.

        The limits are the time that is left; with a time limit of 0, by which nothing is proved,
        estimates take as long as they need. Inside, the linear algebra library uses one thread, as
        the matrices are small.
        """
        with interruptible(self.plan.stop), one_blas_thread():
            yield self.plan.estimates

    def run(self, what: str, unit: Unit, shared: Any, tasks: Tasks) -> list[Any]:
        """Results of units of work, in the order of their tasks; None of a unit that is left out.

        what: The text of the progress reports.
        unit: The function ``unit(shared, *task, limits)``, called in this process or in others. A
            function of :class:`~sparsecv.cv.executor.Late` is left out where its time is up.
        shared: What all units need.
        tasks: The other arguments, one tuple for each unit.
        """
        found = dict(self.units(what, unit, shared, tasks))
        return [found[index] for index in range(len(tasks))]

    def units(
        self, what: str, unit: Unit, shared: Any, tasks: Tasks, after: float = 1.0
    ) -> Iterator[tuple[int, Any]]:
        """The numbers of the tasks and the results of their units of work, as each unit ends.

        what, unit, shared, tasks: As of :meth:`run`.
        after: How many rounds of units, after all units of this call, have a part of the time that
            is left. In a round every worker does one unit.
        """
        report = TimedReport(self.progress, self.plan.limits)
        jobs = self.settings.n_jobs
        report(what, 0, len(tasks))
        with self.interruptible() as limits:
            # The executor says how many rounds of this call are still to come.
            units = run_units(unit, shared, tasks, jobs, allot=lambda n: limits.share(n + after))
            for done, (index, result) in enumerate(units, 1):
                yield index, result
                report(what, done, len(tasks))


def _refuse_range(settings: Settings, average: bool) -> None:
    """Refuse rules and methods that cannot use a range of γ."""
    if average:
        raise InputError(
            "the rule projected averages models over values of gamma, and cannot take a "
            "range: give gammas as numbers, or rule='minimum' (up to 45 columns)"
        )
    if settings.grid or settings.searches:
        raise InputError(
            "a range of gamma is searched by trees that serve every tau: method must be auto "
            "or exact, and backend auto or native"
        )
