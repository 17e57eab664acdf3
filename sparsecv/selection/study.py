"""What all steps of a cross-validated fit read: the rows, what is asked of them, and the plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from ..cv.checkpoint import CheckpointFolder
from ..cv.engine import interruptible
from ..cv.plan import RunPlan
from ..cv.progress import Report, TimedReport
from ..cv.results import Array
from ..cv.settings import GammaSpan, Settings, asked_gammas, checked_taus, default_taus
from ..design.design import Design
from ..design.fold_data import FoldData
from ..design.folds import Index
from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status
from ..solvers.core.threads import one_blas_thread
from ..solvers.executor import run_units
from .inner_folds import Tasks, Unit
from .rules import checked_rule, resolved_rule
from .weights import Tried, growing_sizes

# The weights of an average come from CV errors over this many random partitions of the rows into
# folds, of which the first is the partition of the other rules. Where a time limit is reached no
# further partition is begun. The number is measured by experiments/selection/partitions.py. In
# geometric mean over eight data sets, test errors with one partition are 1.5 % larger than with
# six, and with two they are .2 % smaller.
PARTITIONS = 2


def _silent(what: str, done: int, total: int, detail: str = "") -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Request:
    """What is asked of a fit.

    settings: How CV errors are computed and proved, and the time limit of the whole run.
    gammas: Values of γ. With None the default grid is visited, and a rule that takes a pair then
        alternates between τ and γ. With a :class:`~sparsecv.cv.settings.GammaSpan`, or the text
        that stands for one, the least CV error over the range is found and proved.
    taus: Values of τ; with None those of :func:`sparsecv.cv.settings.default_taus`.
    criterion: With "aic", "bic" or "ebic", where nothing is held out, the size of least criterion
        is searched for, and neither gammas nor taus count.
    rule: The rule that chooses, by which the time and the sizes of the run are planned. With None
        it is projected, or minimum where the least CV error alone is looked for. A rule that the
        folds do not allow is refused.
    certificate: Whether a certificate of the least CV error is wanted, which decides the default.
    size: The size of the model, where the rule is to choose among its models alone.
    compare: Whether the choices of all rules are computed.
    seed: The seed that the folds were drawn with, and that other partitions are drawn with.
    checkpoint: The folder of the files that keep proofs.
    progress: Takes what is being done, the number of units done and the number of all units.
    deadline: The limits of the whole call; by default the time of the settings begins with the run.
    """

    settings: Settings
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

    def ruled(self, protocol: str) -> tuple[str, str]:
        """The rule that is taken under a protocol, and why, in words."""
        gammas = asked_gammas(self.gammas)
        return resolved_rule(self.rule, self.settings, gammas, protocol, self.certificate)

    def plan(self, data: FoldData, protocol: str) -> RunPlan:
        """The plan of a run of some rows under a protocol."""
        # A projection is one of an average; beyond 45 columns the least h then needs no proof.
        averages = data.folds.holds_out and self.ruled(protocol)[0] == "projected"
        return RunPlan.of(self.settings, data, averages=averages, deadline=self.deadline)

    def partitions(self, protocol: str) -> int:
        """The number of partitions of the rows into folds that are averaged over at most."""
        return PARTITIONS if self.compare or self.ruled(protocol)[0] == "projected" else 1


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
    tried: The sizes that are evaluated first, and those that follow where they are worth it.
    partitions: The number of partitions of the rows into folds, with the first.
    """

    data: FoldData
    design: Design
    request: Request
    plan: RunPlan
    rule: str
    reason: str
    gammas: Array | GammaSpan | None
    sizes: Index
    tried: list[Tried]
    partitions: int

    @classmethod
    def of(cls, data: FoldData, design: Design, request: Request) -> Study:
        """The study of some rows, which begins now.

        Raises InputError: The rows do not allow what is asked for.
        """
        settings, gammas = request.settings, asked_gammas(request.gammas)
        rule, reason = request.ruled(design.protocol.name)
        checked_rule(rule, data, settings)
        averages = rule == "projected"
        if isinstance(gammas, GammaSpan):
            _refuse_range(settings, averages)
        every = default_taus(data.weight, data.p, data.constraints)
        named = every if request.taus is None else request.taus
        sizes = checked_taus(named, data.p, data.constraints)
        plan = request.plan(data, design.protocol.name)
        if request.taus is not None and not averages:
            tried = [Tried(sizes, int(sizes[-1]))]
        else:
            # Beyond 45 columns, where models are averaged and estimates suffice, sizes grow. A
            # projection onto sizes that the user names is one of an average over all sizes that are
            # worth trying.
            tried = growing_sizes(every, every[:0] if request.taus is None else sizes)
            tried = tried if plan.estimates_serve else tried[-1:]
        if request.size is not None:
            check_size(sizes, request.size)
            tried = [one for one in tried if one.end >= request.size] or tried
        # By the method grid every fold and τ is a problem of its own, which costs too much.
        costly = averages and settings.grid
        partitions = 1 if costly else data.count_partitions(PARTITIONS)
        return cls(
            data,
            design,
            request,
            plan,
            rule=rule,
            reason=reason,
            gammas=gammas,
            sizes=sizes,
            tried=tried,
            partitions=partitions,
        )

    def again(self) -> Study:
        """The same study with a time limit of its own from now on, as the fit had."""
        plan = RunPlan.of(self.request.settings, self.data, averages=self.averages)
        return replace(self, plan=plan)

    @property
    def averages(self) -> bool:
        """Whether the rule averages models."""
        return self.rule == "projected"

    @property
    def n_others(self) -> int:
        """The number of other partitions that the rule evaluates."""
        return self.partitions - 1 if self.averages else 0

    @property
    def n_after(self) -> float:
        """The work after all partitions, in surfaces that take about as long.

        It is that of inner folds and projections, or of models without pairs of folds.
        """
        return 2.0 if self.averages else float(self.rule == "stability")

    def limit(self, proved: bool) -> Status:
        """The limit that was reached by now where something is not proved; else optimal."""
        reached = None if proved else self.plan.limits.reached(0)
        return Status.OPTIMAL if reached is None else reached

    @contextmanager
    def interruptible(self) -> Iterator[Limits]:
        """A context with limits of the time that is left, for work that Ctrl-C can end.

        Inside, the linear algebra library uses one thread. A time limit of 0, by which nothing is
        proved, leaves estimates as long as they need.
        """
        with interruptible(self.plan.stop), one_blas_thread():
            yield self.plan.estimates

    def run(self, what: str, unit: Unit, shared: Any, tasks: Tasks) -> list[Any]:
        """Results of units of work, in the order of their tasks.

        what: The text of the progress reports.
        unit: The function ``unit(shared, *task, limits)``, called in this process or in others.
        shared: What all units need. tasks: The other arguments, one tuple for each unit.
        """
        found = dict(self.units(what, unit, shared, tasks))
        return [found[index] for index in range(len(tasks))]

    def units(
        self, what: str, unit: Unit, shared: Any, tasks: Tasks, after: float = 1.0
    ) -> Iterator[tuple[int, Any]]:
        """The numbers and the results of units of work, as each ends; parameters as of ``run``.

        after: The time that is left is shared with so many more rounds of units.
        """
        report, jobs = (
            TimedReport(self.request.progress, self.plan.limits),
            self.request.settings.n_jobs,
        )
        report(what, 0, len(tasks))
        with self.interruptible() as limits:
            units = run_units(
                unit, shared, tasks, jobs, allot=lambda left: limits.share(left + after)
            )
            for done, (index, one) in enumerate(units, 1):
                yield index, one
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
