"""A run: its data, folds, settings and clock, and the surfaces h(γ, τ) that rules ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cv.alternating import alternate, default_grid
from ..cv.checkpoint import Checkpoint, CheckpointFolder
from ..cv.engine import Surface, interruptible
from ..cv.global_gamma import GLOBAL_TOLERANCE, VISITED_EVERY, global_minimum
from ..cv.needs import Need, of_everything, of_minimum, of_one_se, of_pairs
from ..cv.plan import RunPlan
from ..cv.progress import Report, TimedReport
from ..cv.results import Array, CVResult, mean_over_folds
from ..cv.settings import (
    DEFAULT_GAMMAS,
    GammaSpan,
    Settings,
    asked_gammas,
    checked_taus,
    default_taus,
)
from ..design.design import Design
from ..design.fold_data import FoldData
from ..design.folds import Folds
from ..design.model import FittedModel
from ..errors import InputError
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status, worst
from ..solvers.core.threads import one_blas_thread
from ..solvers.executor import run_units
from ..solvers.ridge_fits import known_path
from ..stability.algorithm import StabilityWeights, select
from ..stability.fold_losses import PartialErrors, Task, bias_corrected, partial_errors
from ..stability.sparse_ridge import SparseRidgeLearner
from .averaging import (
    FoldWeights,
    Tasks,
    Tried,
    Unit,
    averaged_coefficients,
    growing_sizes,
    inner_weights,
    model_weights,
    of_average,
    soft_least,
    worth_more_sizes,
)
from .rules import checked_rule, resolved_rule

# The weights of an average come from CV errors over this many random partitions of the rows into
# folds, of which the first is the partition of the other rules. Where a time limit is reached no
# further partition is begun. The number is measured by experiments/selection/partitions.py. In
# geometric mean over eight data sets, test errors with one partition are 1.5 % larger than with
# six, and with two they are .2 % smaller.
PARTITIONS = 2
# The rule stability holds at most this many losses at a time, which take 200 MB. With k folds and n
# rows, one γ has (k + 1) n losses for every τ. At least one γ is computed at a time. It is a
# choice.
MAX_LOSSES = 25_000_000


def partitions_of(rule: str) -> int:
    """The number of partitions of the rows into folds that a rule averages over."""
    return PARTITIONS if rule == "projected" else 1


def check_size(sizes: NDArray[np.intp], size: int) -> None:
    """Raise an InputError where a size is none of the increasing ``sizes``."""
    if size in sizes:
        return
    words = ", ".join(map(str, sizes))
    if sizes.size > 2 and sizes[-1] - sizes[0] == sizes.size - 1:
        words = f"{sizes[0]} to {sizes[-1]}"
    raise InputError(f"size must be one of {words}; got {size}")


class Study:
    """The cross-validations of one table, which are computed when first asked for and kept.

    data: The rows in the first partition into folds.
    design: How the columns were centred and scaled, by which models return to the user's units.
    settings: How CV errors are computed and proved, and the time limit of the whole study.
    gammas: Values of γ. With None the default grid is visited, and a rule that takes a pair then
        alternates between τ and γ. With a :class:`~sparsecv.cv.settings.GammaSpan`, or the text
        that stands for one, the least CV error over the range is found and proved.
    taus: Values of τ; with None those of :func:`sparsecv.cv.settings.default_taus`.
    rule: The rule that chooses in the end, by which the time and the sizes of the run are planned.
        None is the default rule. A rule that the folds do not allow is refused.
    certificate: Whether a certificate of the least CV error is wanted, which decides the default.
    seed: The seed that the folds were drawn with, and that other partitions are drawn with.
    checkpoint: The folder of the files that keep proofs.
    progress: Takes what is being done, the number of units done and the number of all units.
    deadline: The limits of the whole call; by default the time of the settings begins now.
    """

    def __init__(
        self,
        data: FoldData,
        design: Design,
        gammas: Any,
        taus: Any,
        settings: Settings,
        *,
        rule: str | None = "minimum",
        certificate: bool = False,
        seed: Any = 0,
        checkpoint: CheckpointFolder | None = None,
        progress: Report | None = None,
        deadline: Limits | None = None,
    ) -> None:
        self.data, self.design, self.settings = data, design, settings
        self.gammas = asked_gammas(gammas)
        protocol = design.protocol.name
        found = resolved_rule(rule, settings, self.gammas, protocol, certificate)
        self.rule, self.rule_reason = found
        checked_rule(self.rule, data, settings)
        # A projection is one of an average; beyond 45 columns the least h then needs no proof.
        self.averages = self.rule == "projected"
        if isinstance(self.gammas, GammaSpan):
            self._refuse_range()
        self.sizes_named = taus is not None
        # The sizes that were asked for; where none were, those that were tried in the end.
        every = default_taus(data.weight, data.p, data.constraints)
        self.sizes = checked_taus(taus if self.sizes_named else every, data.p, data.constraints)
        self.plan = RunPlan.of(settings, data, averages=self.averages, deadline=deadline)
        self._tried = self._sizes_to_try()
        # By the method grid every fold and τ is a problem of its own, which costs too much.
        costly = self.averages and settings.grid
        self.partitions, self.seed = 1 if costly else data.count_partitions(PARTITIONS), seed
        # The number of other partitions that the rule asks for, and the work after them, in
        # surfaces that take about as long: inner folds and projections, or models without pairs
        # of folds.
        self._n_others = self.partitions - 1 if self.averages else 0
        self._n_after = 2.0 if self.averages else float(self.rule == "stability")
        self.checkpoint = checkpoint
        self._report: Report = progress or (lambda *_: None)
        self.n_nodes = 0  # Nodes of all surfaces so far.
        # The γ that were read from a checkpoint, once for every partition.
        self.reused: list[float] = []
        self._statuses: list[Status] = []

    def _sizes_to_try(self) -> list[Tried]:
        """The sizes that are evaluated first, and those that follow where they are worth it.

        Beyond 45 columns, where models are averaged and estimates suffice, sizes grow. A projection
        onto sizes that the user names is one of an average over all sizes that are worth trying.
        """
        data = self.data
        every = default_taus(data.weight, data.p, data.constraints)
        if self.sizes_named and not self.averages:
            return [Tried(self.sizes, int(self.sizes[-1]))]
        tried = growing_sizes(every, self.sizes if self.sizes_named else every[:0])
        return tried if self.estimating else tried[-1:]

    def try_size(self, size: int) -> None:
        """Let a size be among those that are tried.

        Raises InputError: The size was not asked for, or is too large to be tried.
        """
        check_size(self.sizes, size)
        self._tried = [one for one in self._tried if one.end >= size] or self._tried

    def _refuse_range(self) -> None:
        """Refuse rules and methods that cannot use a range of γ."""
        if self.averages:
            raise InputError(
                "the rule projected averages models over values of gamma, and cannot take a "
                "range: give gammas as numbers, or rule='minimum' (up to 45 columns)"
            )
        if self.settings.grid or self.settings.searches:
            raise InputError(
                "a range of gamma is searched by trees that serve every tau: method must be auto "
                "or exact, and backend auto or native"
            )

    # surfaces

    @cached_property
    def surface(self) -> CVResult:
        """h(γ, τ) of the first partition, at sizes that grow as far as they are worth trying."""
        after, grows = self._n_others + self._n_after, len(self._tried) > 1
        name = f"partition 1 of {self.partitions}, " if self._n_others else ""
        for tried in self._tried:
            self._first = self._unvisited(self.data, tried.taus, name, after, None)
            found = self._evaluate(self._first, self.gammas, proved=not self.estimating)
            errors = found.table("cv_error")[:, found.taus <= tried.end]
            more = grows and worth_more_sizes(errors, found.gammas, self.data.weight)
            if not more or self.plan.out_of_time:
                break
        if not self.sizes_named:
            self.sizes = found.taus
        return found

    @cached_property
    def others(self) -> list[CVResult]:
        """h(γ, τ) of other partitions at :attr:`gamma_subset`, as many as the time allows."""
        surfaces, found = list[Surface](), list[CVResult]()
        gammas = self.surface.gammas[self.gamma_subset]
        taus = self.surface.taus[: self.n_sizes]
        for number in range(1, self.partitions):
            if self.plan.out_of_time:
                self._statuses.append(Status.TIME_LIMIT)
                break
            name = f"partition {number + 1} of {self.partitions}, "
            after = self.partitions - 1 - number + self._n_after
            data = self.data.partition(number, self.seed)
            surface = self._unvisited(data, taus, name, after, self._first)
            found.append(self._evaluate(surface, gammas, proved=not self.estimating))
            surfaces.append(surface)
        if not (surfaces and self.plan.proves_pairs):
            return found
        self._prove_mean([self._first, *surfaces], gammas, taus)
        self._refresh()
        return [surface.result() for surface in surfaces]

    def _prove_mean(self, surfaces: list[Surface], gammas: Array, taus: NDArray[np.intp]) -> None:
        """Prove, on every partition, the pairs that carry weight in the mean over partitions.

        surfaces: Those of all partitions, the first partition first.
        gammas, taus: Where the other partitions are evaluated.
        """
        before: Array | None = None
        while not self.plan.out_of_time:
            known = [one.ledger.known([one.rows[gamma] for gamma in gammas]) for one in surfaces]
            mean = np.mean([one.error[:, : taus.size] for one in known], axis=0)
            carry = model_weights(mean, gammas, self.data.weight) > 0.0
            if before is not None and np.array_equal(before, mean):
                break
            before = mean
            for number, surface in enumerate(surfaces):
                surface.plan = self.plan.part(len(surfaces) - number + self._n_after)
                with surface:
                    surface.prove(of_pairs(gammas, taus, carry, models=number == 0))

    @property
    def whole(self) -> bool:
        """Whether the time has sufficed for all partitions; else no choice over them is proved."""
        return len(self.others) == self.partitions - 1

    @cached_property
    def gamma_subset(self) -> NDArray[np.intp]:
        """Positions of the γ at which other partitions are evaluated.

        They are the γ of :attr:`weighted_pairs`. After an alternation, a γ is left out that is too
        close to the γ kept before, on the way from the best γ to either end.
        """
        result, weighted = self.surface, np.flatnonzero(self.weighted_pairs.any(axis=1))
        if not result.trace:
            return weighted
        order = np.argsort(result.gammas, kind="stable")
        best = int(np.flatnonzero(order == result.best().gamma_index)[0])
        kept = [int(order[best])]
        for way in (order[best + 1 :], order[:best][::-1]):
            last = result.gammas[kept[0]]
            for g in way:
                # After an alternation, other partitions skip γ that lie close together. From the
                # best γ outwards, a γ is evaluated where the ratio of this γ and the last evaluated
                # one, the larger divided by the smaller, is at least this number. The γ of the
                # default grid are a factor of 7.7 apart.
                far = max(result.gammas[g], last) >= 1.5 * min(result.gammas[g], last)
                if far and g in weighted:
                    kept.append(int(g))
                    last = result.gammas[g]
        return np.array(sorted(kept), dtype=np.intp)

    @cached_property
    def n_sizes(self) -> int:
        """Number of sizes at which other partitions are evaluated, the first sizes of all."""
        return int(np.flatnonzero(self.weighted_pairs.any(axis=0))[-1]) + 1

    @cached_property
    def weighted_pairs(self) -> NDArray[np.bool_]:
        """The pairs (γ, τ) that carry weight in the first partition, shape (γ, τ).

        Other partitions are evaluated at their γ, and at the sizes up to the largest of them.
        """
        result = self.surface
        weights = model_weights(result.table("cv_error"), result.gammas, self.data.weight)
        return np.asarray(weights > 0.0)

    @property
    def estimating(self) -> bool:
        """Whether the rule needs no more than estimates of the CV errors."""
        return self.plan.estimates_serve

    @property
    def evaluated(self) -> list[CVResult]:
        """h(γ, τ) of every partition at :attr:`gamma_subset`, the first partition among them."""
        first, at = self.surface, self.gamma_subset
        return [first.at(at), *self.others]

    @cached_property
    def mean_surface(self) -> Array:
        """CV errors at :attr:`gamma_subset`, averaged over partitions.

        At sizes that not all partitions have, the mean is ∞.
        """
        beyond = self.surface.taus.size - self.n_sizes
        every = [one.table("cv_error")[:, : self.n_sizes] for one in self.evaluated]
        return np.pad(np.mean(every, axis=0), ((0, 0), (0, beyond)), constant_values=np.inf)

    @cached_property
    def average_weights(self) -> Array:
        """Weights (γ, τ) of the models of all rows in their average, which sum to 1.

        They come from the mean of h over partitions.
        """
        result, at = self.surface, self.gamma_subset
        weights = np.zeros((result.gammas.size, result.taus.size))
        weights[at] = model_weights(self.mean_surface, result.gammas[at], self.data.weight)
        return weights

    @property
    def _need(self) -> Need:
        """What the rule needs of a surface."""
        n = self.data.weight
        return {
            "minimum": of_minimum,
            "one-se": of_one_se,
            "projected": lambda known: of_average(known, n),
        }.get(self.rule, of_everything)

    def prove_everything(self) -> None:
        """Prove every CV error and every model of the surface, as far as the time allows."""
        _ = self.surface
        self._first.plan = replace(self.plan, proves="all")
        with self._first as surface:
            surface.prove()
        self._refresh()

    def prove_rest(self) -> None:
        """Prove what the choice did not need, as the plan says, and enter it in the surface."""
        _ = self.surface
        self._first.plan = self.plan
        self._first.prove_rest()
        self._refresh()

    def _refresh(self) -> None:
        """Enter into the first partition's result what is proved by now."""
        result = self.surface
        result.tables.update(self._first.result(result.gammas.tolist()).tables)

    # what rules need beside surfaces

    @cached_property
    def stability(self) -> tuple[PartialErrors, StabilityWeights, bool]:
        """Errors of models that leave out no, one and two folds, and Algorithm 1 on the errors.

        The last entry says whether all these models are proved.
        """
        data = self.data.rows_for("rule stability needs")
        result, proofs = self.surface, list[bool]()
        label, count = data.folds.label, result.gammas.size
        step = max(1, MAX_LOSSES // ((data.folds.k + 1) * data.folds.n * result.taus.size))
        blocks = []
        for start in range(0, count, step):
            learner = SparseRidgeLearner(
                data.X,
                data.y,
                result.taus,
                result.gammas[start : start + step],
                solver="exact" if self.plan.trees else "heuristic",
                fit_intercept=data.refit_intercept,
                standardize=False,
                asked=data.asked,
                weights=data.weights,
            )
            fit = partial(self._losses, learner, proofs, after=(count - start) / step)
            weights = data.weights
            blocks.append(partial_errors(learner, label, learner.size, weights=weights, fit=fit))
        errors, proved = PartialErrors(*map(np.concatenate, zip(*blocks, strict=True))), all(proofs)
        self.note_limit(proved)
        return errors, select(errors), proved

    def _losses(
        self, learner: SparseRidgeLearner, proofs: list[bool], tasks: list[Task], after: float
    ) -> Iterator[tuple[int, Array]]:
        """Losses of a learner's models.

        proofs: It takes whether all models of a task are proved.
        after: The number of blocks of γ to come, this one included.
        """
        unit, left = SparseRidgeLearner._within, after * len(tasks)
        found = self._units("fitting pairs of folds", unit, learner, tasks, left - len(tasks) + 1.0)
        for index, (losses, proved) in found:
            proofs.append(proved)
            yield index, losses

    @cached_property
    def corrected(self) -> Array:
        """Bias-corrected CV errors (γ, τ) of the first partition."""
        result, total = self.surface, self.data.total
        trained = np.stack([self._trained(j) for j in range(self.data.folds.k)], axis=2)
        without = (trained + result.table("fold_error")) / total
        return bias_corrected(result.table("cv_error"), self._trained(None) / total, without)

    def _trained(self, j: int | None) -> Array:
        """||y − Xβ||² (γ, τ) of fold j's models on its training rows; with None of all rows."""
        result = self.surface
        problem = self.data.problem(self.data.folds.k if j is None else j)
        rows = np.stack([one.padded(j) for one in result.by_gamma])
        path = known_path(problem, result.gammas, result.taus, rows)
        penalty = 0.5 * result.gammas[:, None] * (path.coef**2).sum(axis=2)
        return np.asarray(path.objective - penalty)

    @cached_property
    def inner(self) -> FoldWeights:
        """Weights for every fold of the first partition, at pairs that its training rows decide."""
        result = self.surface
        gammas = None if self.gammas is None else result.gammas
        if isinstance(self.gammas, GammaSpan):
            gammas = np.geomspace(self.gammas.low, self.gammas.high, DEFAULT_GAMMAS.size)
        enough = next(i for i, one in enumerate(self._tried) if one.taus.size == result.taus.size)
        found = inner_weights(self.data, gammas, self._tried, self.run, self.plan, enough)
        self.note_limit(found.proved)
        return found

    @cached_property
    def fold_surface(self) -> CVResult:
        """h(γ, τ) of the first partition at the γ of :attr:`inner`, and at least at its sizes.

        Where the plan proves what the choice needs, pairs that carry weight in a fold are proved.
        """
        inner, result, surface = self.inner, self.surface, self._first
        if not np.isin(inner.taus, result.taus).all():
            surface = self._unvisited(self.data, inner.taus, "", self._n_after, None)
        gammas, carry = inner.gammas.tolist(), np.max(inner.weights, axis=0) > 0.0
        surface.plan = self.plan.part(2.0)
        with surface:
            if new := [gamma for gamma in gammas if gamma not in surface.rows]:
                surface.visit(new)
            if surface.plan.proves_pairs:
                surface.prove(of_pairs(inner.gammas, inner.taus, carry))
        return surface.result(gammas)

    @cached_property
    def fold_averages(self) -> list[Array]:
        """Coefficients (p,) of the average of every fold's models, with the fold's own weights."""
        result, found = self.fold_surface, list[Array]()
        with self.interruptible():
            for j, of_fold in enumerate(self.inner.weights):
                weights = np.zeros((result.gammas.size, result.taus.size))
                weights[:, np.isin(result.taus, self.inner.taus)] = of_fold
                rest = result, weights, j
                found.append(averaged_coefficients(self.data.training(j), *rest))
        return found

    @cached_property
    def average_error(self) -> tuple[float, float]:
        """CV error of :attr:`fold_averages`, and its standard error."""
        sums = []
        for j, coef in enumerate(self.fold_averages):
            rows, targets = self.data.held_out(j)
            sums.append(float(np.sum((targets - rows @ coef) ** 2)))
        error, spread = mean_over_folds(np.array(sums), self.data.fold_weight)
        return float(error), float(spread)

    # work

    @contextmanager
    def interruptible(self) -> Iterator[Limits]:
        """A context with limits of the time that is left, for work that Ctrl-C can end.

        Inside, the linear algebra library uses one thread. A time limit of 0, by which nothing is
        proved, leaves estimates as long as they need.
        """
        limits = self.plan.estimates
        assert limits.stop is not None
        with interruptible(limits.stop), one_blas_thread():
            yield limits

    def run(self, what: str, unit: Unit, shared: Any, tasks: Tasks) -> list[Any]:
        """Results of units of work, in the order of their tasks.

        what: The text of the progress reports.
        unit, shared, tasks: Parameters of :func:`sparsecv.solvers.executor.run_units`.
        """
        found = dict(self._units(what, unit, shared, tasks))
        return [found[index] for index in range(len(tasks))]

    def _units(
        self, what: str, unit: Unit, shared: Any, tasks: Tasks, after: float = 1.0
    ) -> Iterator[tuple[int, Any]]:
        """The numbers and the results of units of work, as each ends; parameters as of ``run``.

        after: The time that is left is shared with so many more rounds of units.
        """
        report, jobs = TimedReport(self._report, self.plan.limits), self.settings.n_jobs
        report(what, 0, len(tasks))
        with self.interruptible() as limits:
            units = run_units(
                unit, shared, tasks, jobs, allot=lambda left: limits.share(left + after)
            )
            for done, (index, one) in enumerate(units, 1):
                yield index, one
                report(what, done, len(tasks))

    @property
    def seconds_left(self) -> float | None:
        """Seconds that a search beside the study may take; None: no limit."""
        return self.plan.limits.remaining()

    def begin_again(self) -> None:
        """Give what is computed from now on a time limit of its own, as a fit had."""
        self.plan = RunPlan.of(self.settings, self.data, averages=self.averages)
        self._first.plan = self.plan

    def note_limit(self, proved: bool) -> None:
        """Remember the limit that was reached, if there is one and something is not proved.

        It becomes part of :attr:`status`.
        """
        if not proved and (reached := self.plan.limits.reached(0)) is not None:
            self._statuses.append(reached)

    def model(self, gamma_index: int, tau_index: int) -> FittedModel:
        """The model of all rows at one pair, proved with the time that is left."""
        result = self.surface
        gamma = float(result.gammas[gamma_index])
        self._first.plan = self.plan
        self._first.prove_model(gamma, tau_index)
        self._refresh()
        return result.by_gamma[gamma_index].model(self.design, self.data.full(), tau_index)

    @property
    def status(self) -> Status:
        """Optimal, or the worst limit that was reached."""
        return worst([self.surface.status, *self._statuses])

    def _unvisited(
        self, data: FoldData, taus: Any, name: str, after: float, models: Surface | None
    ) -> Surface:
        """The surface of one partition, at which no γ has been visited yet.

        The time limit is one deadline for the whole study, and the surface gets its share of the
        time that is left.

        name: The name of the partition, with which progress reports begin.
        after: Number of surfaces among which the time left after this surface is shared.
        models: The surface of the first partition, whose models of all rows are taken over.
        """
        store = None
        if self.checkpoint is not None:
            identity = self._identity(data.folds)
            store = Checkpoint(self.checkpoint, data.digest(), identity)
        return Surface(
            data,
            taus,
            self.settings,
            plan=self.plan.part(1.0 + after),
            checkpoint=store,
            progress=self.progress_of(name),
            models=models,
        )

    def _certified(self, surface: Surface, span: GammaSpan) -> CVResult:
        """h(γ, τ) at the γ of the least error in a range, proved, and at some γ of the range."""
        settings = self.settings
        tolerance = GLOBAL_TOLERANCE if settings.tol is None else float(settings.tol)
        with surface:
            found = global_minimum(
                surface.data,
                surface.taus,
                low=span.low,
                high=span.high,
                tolerance=tolerance,
                limits=surface.plan.limits,
                n_jobs=settings.n_jobs,
                progress=surface.report,
            )
            surface.visit(np.sort(np.append(found.gammas[::VISITED_EVERY], found.gamma)))
            surface.prove(self._need)
        self._statuses.append(found.status)
        return replace(surface.result(), minimum=found)

    def _evaluate(
        self, surface: Surface, gammas: Array | GammaSpan | None, proved: bool
    ) -> CVResult:
        """h(γ, τ) of one partition at some γ; the study takes over seconds, nodes and status.

        gammas: Values; or a range, whose least error is searched and proved; or None. With None
            the rule projected visits the default grid, and other rules alternate from it between
            τ and γ.
        proved: Whether CV errors at values and on the default grid get the proofs and intervals
            that the settings ask for. On a range and by an alternation they always do.
        """
        if isinstance(gammas, GammaSpan):
            result = self._certified(surface, gammas)
        elif gammas is None and not self.averages:
            result = alternate(surface, self._need)
        else:
            edge, n = "", surface.data.weight

            def score(gamma: float) -> float:
                return soft_least(surface.cv_error(gamma), n)

            def spent() -> bool:
                return surface.plan.out_of_time

            with surface:
                # Where proofs change errors, another pass visits the γ that the errors lead to.
                for _ in surface.passes(self._need) if proved else (None,):
                    if gammas is None:
                        edge = default_grid(surface.visit, score, spent)[1]
                        surface.order.sort()
                    else:
                        surface.visit(gammas)
            result = replace(surface.result(), edge=edge)
        self.n_nodes += int(result.table("n_nodes").sum())
        self._statuses.append(result.status)
        if surface.checkpoint is not None:
            self.reused += surface.checkpoint.reused
        return result

    def progress_of(self, name: str) -> Report:
        """A function that reports progress with the name of a part of the study before it."""
        report = self._report  # Without the study itself, whose rows would outlive their last use.
        return lambda what, *more: report(name + what, *more)

    def _identity(self, folds: Folds) -> dict[str, Any]:
        label, settings, protocol = folds.label, self.settings, self.design.protocol
        pairs = [[test.tolist() for _, test in folds.pairs], [a.tolist() for a, _ in folds.pairs]]
        search = [settings.search_tolerance, settings.bounds]
        return {
            "n": folds.n,
            "label": pairs if label is None else label.tolist(),
            "hash": getattr(folds, "seed", None),
            "protocol": [protocol.name, protocol.scale, protocol.intercept],
            "missing": getattr(self.data, "missing", None),
            "method": settings.method,
            "backend": settings.backend,
            "search": search if settings.searches else [],
            "constraints": "" if self.data.plain else self.data.constraints.digest(),
        }
