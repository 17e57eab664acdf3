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
from ..cv.needs import Need
from ..cv.plan import RunPlan
from ..cv.progress import Report, TimedReport
from ..cv.results import Array, CVResult
from ..cv.settings import GammaSpan, Settings, asked_gammas, checked_taus, default_taus
from ..design.design import Design
from ..design.fold_data import FoldData
from ..design.folds import Index
from ..errors import InputError
from ..schedule import SURFACES_OF_AN_AVERAGE, SURFACES_OF_STABILITY
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status
from ..solvers.core.threads import one_blas_thread
from ..solvers.executor import run_units
from .inner_folds import Tasks, Unit
from .rules import PairCriterion, check_rule, resolved_rule
from .weights import SizeRound, growing_sizes

# The weights of an average come from CV errors over this many random partitions of the rows into
# folds, of which the first is the partition of the other rules. Where a time limit is reached no
# further partition is begun. The number is measured by experiments/selection/partitions.py. In
# geometric mean over eight data sets, test errors with one partition are 1.5 % larger than with
# six, and with two they are .2 % smaller.
PARTITIONS = 2


def _silent(what: str, done: int, total: int, detail: str = "") -> None:
    """Report no progress: the default of a request."""


class Wings(NamedTuple):
    """What a request may ask for that a fit with defaults does without; doors hand it in.

    search_tau: The search for the best τ at one γ, by which the method "search" solves every γ.
    alternate: Visits γ on a surface, in turn with τ, and proves what is needed.
    least_over_range: Finds and proves the least CV error of a surface over a range of γ.
    stable_errors: The number that the rule stability minimises, of every pair of a surface.
    """

    search_tau: TauSearch
    alternate: Callable[[Surface, Need], CVResult]
    least_over_range: Callable[[Surface, GammaSpan, Need], CVResult]
    stable_errors: Callable[[Study, CVResult], PairCriterion]


@dataclass(frozen=True)
class Request:
    """What is asked of a fit.

    settings: How CV errors are computed and proved, and the time limit of the whole run.
    wings: What the run calls where it is asked for; :data:`sparsecv.wings.WINGS`.
    gammas: Values of γ. With None the default grid is visited, and a rule that takes a pair then
        alternates between τ and γ. With a :class:`~sparsecv.cv.settings.GammaSpan`, or the text
        that stands for one, the least CV error over the range is found and proved.
    taus: Values of τ; with None those of :func:`sparsecv.cv.settings.default_taus`.
    criterion: With "aic", "bic" or "ebic", where nothing is held out, the size of least criterion
        is searched for, and neither gammas nor taus count.
    rule: The rule that chooses. With None it is projected, or minimum where the least CV error
        alone is looked for.
    certificate: Whether a certificate of the least CV error is wanted. A rule of None is then
        minimum.
    size: The number of columns of the model, where the user names it. The rule then chooses among
        the models of this size alone.
    compare: Whether the choices of all rules are computed.
    seed: The seed that the folds were drawn with, and that other partitions are drawn with.
    checkpoint: The folder of the files that keep proofs.
    progress: Takes what is being done, the number of units done and the number of all units.
    deadline: The limits of the whole call, which has begun already; by default the time limit of
        the settings begins with the run.
    """

    settings: Settings
    wings: Wings
    gammas: Any = None
    taus: Any = None
    criterion: str | None = None
    rule: str | None = None
    certificate: bool = False
    size: int | None = None
    compare: bool = False
    seed: Any = 0
    checkpoint: CheckpointFolder | None = None
    progress: Report = _silent
    deadline: Limits | None = None

    def rule_and_reason(self, protocol: str) -> tuple[str, str]:
        """The rule that is taken under a protocol, "honest" or "paper", and why, in words."""
        gammas = asked_gammas(self.gammas)
        return resolved_rule(self.rule, self.settings, gammas, protocol, self.certificate)

    def averages(self, protocol: str) -> bool:
        """Whether the rule that is taken under a protocol averages models."""
        rule, _ = self.rule_and_reason(protocol)
        return rule == "projected"

    def plan(self, data: FoldData, protocol: str) -> RunPlan:
        """What a run on some rows does under a protocol, and until when.

        Beyond 45 columns nothing is proved where the rule averages models.
        """
        averages = data.folds.holds_out and self.averages(protocol)
        return RunPlan.of(self.settings, data, averages=averages, deadline=self.deadline)

    def partitions(self, protocol: str) -> int:
        """The largest number of partitions of the rows into folds that the run evaluates."""
        return PARTITIONS if self.compare or self.averages(protocol) else 1


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
    request: What is asked of the fit.
    plan: What the run does, and until when.
    rule, reason: The rule that chooses, and why it is this rule, in words.
    gammas: What ``request`` says of γ, checked.
    sizes: The sizes that were asked for, or else all that may be worth trying.
    size_rounds: The sizes that are evaluated first, and those that replace them one round after the
        other, as long as more sizes are worth it.
    partitions: The number of partitions of the rows into folds that a rule which averages models
        evaluates, the first one included.
    """

    data: FoldData
    design: Design
    request: Request
    plan: RunPlan
    rule: str
    reason: str
    gammas: Array | GammaSpan | None
    sizes: Index
    size_rounds: list[SizeRound]
    partitions: int

    @classmethod
    def of(cls, data: FoldData, design: Design, request: Request) -> Study:
        """The study of some rows, which begins now.

        Raises InputError: The rows do not allow what is asked for.
        """
        settings, gammas = request.settings, asked_gammas(request.gammas)
        protocol = design.protocol.name
        rule, reason = request.rule_and_reason(protocol)
        check_rule(rule, data, settings)
        averages = request.averages(protocol)
        if isinstance(gammas, GammaSpan):
            _refuse_range(settings, averages)
        every = default_taus(data.weight, data.p, data.constraints)
        # The mean alone is one of the sizes, but for those of the first paper, which begin at 1.
        mean = np.zeros(int(protocol != "paper" and data.constraints.min_size == 0), dtype=np.intp)
        named = np.append(mean, every) if request.taus is None else request.taus
        sizes = checked_taus(named, data.p, data.constraints, least=0)
        if sizes[-1] == 0:
            raise InputError(
                "the size 0 alone leaves nothing to choose: SparseRidge(tau=0), or sparsecv fit "
                "--tau 0, fits the mean alone"
            )
        plan = request.plan(data, protocol)
        if request.taus is not None and not averages:
            rounds = [SizeRound(sizes, end=int(sizes[-1]))]
        else:
            # Sizes that the user names are those of projections of an average. The average itself
            # is over all sizes that are worth trying.
            rounds = growing_sizes(every, named=mean if request.taus is None else sizes)
            if not plan.needs_no_proof:
                # Where anything is proved, the last round alone is taken, which has all sizes.
                rounds = rounds[-1:]
        if request.size is not None:
            check_size(sizes, request.size)
            # Rounds that end below the size of the model would be for nothing. A size beyond all
            # ends is one that the user names, which every round has.
            rounds = [one for one in rounds if one.end >= request.size] or rounds
        # By the method grid every fold and τ is a problem of its own, which costs too much.
        costly = averages and settings.grid
        return cls(
            data,
            design,
            request,
            plan,
            rule=rule,
            reason=reason,
            gammas=gammas,
            sizes=sizes,
            size_rounds=rounds,
            partitions=1 if costly else data.count_partitions(PARTITIONS),
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
        settings = self.request.settings
        plan = RunPlan.of(settings, self.data, averages=self.averages, deadline=deadline)
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
            function of :class:`~sparsecv.cv.progress.Late` is left out where its time is up.
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
        report = TimedReport(self.request.progress, self.plan.limits)
        jobs = self.request.settings.n_jobs
        report(what, 0, len(tasks))
        with self.interruptible() as limits:
            # The executor says how many rounds of this call are still to come.
            units = run_units(unit, shared, tasks, jobs, allot=lambda n: limits.share(n + after))
            for done, (index, result) in enumerate(units, 1):
                yield index, result
                report(what, done, len(tasks))


def _refuse_range(settings: Settings, averages: bool) -> None:
    """Refuse rules and methods that cannot use a range of γ."""
    if averages:
        raise InputError(
            "the rule projected averages models over values of gamma, and cannot take a "
            "range: give gammas as numbers, or rule='minimum' (up to 45 columns)"
        )
    if settings.grid or settings.searches:
        raise InputError(
            "a range of gamma is searched by trees that serve every tau: method must be auto "
            "or exact, and backend auto or native"
        )
