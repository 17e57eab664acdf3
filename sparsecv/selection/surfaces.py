"""The surfaces h(γ, τ) of a study: of its first partition into folds, and of other partitions.

h(γ, τ) is the CV error of best-subset ridge regression of at most τ columns at the ridge weight γ.
A surface is h on one partition of the rows into folds, at the γ visited so far and at some sizes τ.
First every pair (γ, τ) is estimated: the best subset of every fold is looked for. Where a search
proves that no fold has a better subset, h of the pair is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..cv.checkpoint import Checkpoint
from ..cv.engine import Surface
from ..cv.executor import Late, OutOfTime, Report
from ..cv.grid import grown_grid
from ..cv.ledger import Ledger
from ..cv.needs import Need, of_everything, of_minimum, of_one_se
from ..cv.results import Array, CVResult
from ..cv.settings import DEFAULT_GAMMAS
from ..design.fold_data import FoldData
from ..design.folds import Folds, Index
from ..solvers.core.gamma_span import GammaSpan
from ..solvers.core.result import Status
from .study import Study
from .weights import (
    SizeRound,
    model_weights,
    of_average,
    of_columns,
    of_pairs,
    soft_least,
    worth_more_sizes,
)


class Partition(NamedTuple):
    """A partition into folds, and where h(γ, τ) is evaluated on it.

    data: The rows in these folds.
    gammas: Values of γ; a range, whose least error is searched and proved; or None. With None the
        rule projected visits the default grid, and other rules alternate from it between τ and γ.
    size_rounds: The sizes that are evaluated first, and those that they are extended to one round
        after the other, as long as more sizes are worth it.
    work_after: The work that follows, in surfaces that take as long as this one. Of the time left
        this surface gets one part in 1 + work_after.
    name: What progress reports of this surface begin with.
    models_of: The surface of the first partition, which already has the models of all rows; None
        where they have to be searched for.
    late: What becomes of estimates at the first sizes and γ whose time is up before they begin.
        Those at further sizes and γ are left out.
    """

    data: FoldData
    gammas: Array | GammaSpan | None
    size_rounds: Sequence[SizeRound]
    work_after: float
    name: str = ""
    models_of: Surface | None = None
    late: Late = Late.DONE


class Spent(NamedTuple):
    """What evaluations of surfaces took, and how they have ended.

    n_nodes: Nodes of the searches.
    status: Optimal, or the worst limit that was met.
    reused: The γ whose proofs were read from a checkpoint; a γ counts once for every partition.
    """

    n_nodes: int = 0
    status: Status = Status.OPTIMAL
    reused: tuple[float, ...] = ()

    @classmethod
    def on(cls, surface: Surface, result: CVResult) -> Spent:
        """What the evaluation of a surface took, whose h(γ, τ) is ``result``."""
        # The search over a range of γ, if there was one, has a status of its own.
        ended = [] if result.minimum is None else [result.minimum.status]
        reused = () if surface.checkpoint is None else tuple(surface.checkpoint.reused)
        return cls(
            int(result.table("n_nodes").sum()), Status.worst([result.status, *ended]), reused
        )

    def joined(self, other: Spent) -> Spent:
        """What both evaluations took together."""
        status = Status.worst([self.status, other.status])
        return Spent(self.n_nodes + other.n_nodes, status, self.reused + other.reused)


class Evaluated(NamedTuple):
    """An evaluated surface.

    surface: The surface, which takes further proofs.
    result: h(γ, τ) at the γ that were asked for, as far as it was proved when this record was made.
    spent: What the evaluation took; further proofs are not counted.
    """

    surface: Surface
    result: CVResult
    spent: Spent

    def refreshed(self) -> Evaluated:
        """The record with what the surface has proved by now."""
        if self.result.table("exact").all() and self.result.table("model_proved").all():
            return self  # Nothing was left to prove.
        tables = self.surface.result(self.result.gammas.tolist()).tables
        return self._replace(result=replace(self.result, tables=tables))


def first_partition(study: Study) -> Partition:
    """The first partition of a study, at all γ and sizes of the study."""
    others = study.partitions - 1 if study.averages else 0
    name = f"partition 1 of {study.partitions}, " if others else ""
    after = others + study.work_after_partitions
    return Partition(study.data, study.gammas, study.size_rounds, work_after=after, name=name)


def evaluate_partition(study: Study, partition: Partition) -> Evaluated:
    """h(γ, τ) of a partition, at sizes that grow as far as they are worth trying.

    The pairs (γ, τ) that the rule of the study needs are proved, as far as the plan of the study
    proves anything and the time allows. A round of sizes extends the surface of the round before.
    A round that the time does not suffice for is dropped, and the surface has the sizes of the
    round before.

    Raises OutOfTime: The first sizes were left out, as the partition allows.
    """
    gammas, found = partition.gammas, None
    for sizes in partition.size_rounds:
        late, spent, ledger = partition.late, Spent(), None
        if found is not None:
            late, spent = Late.LEFT_OUT, found.spent
            ledger = found.surface.ledger.extended(sizes.taus)
        surface = unvisited(study, partition, sizes.taus, ledger)
        try:
            if isinstance(gammas, GammaSpan):
                result = study.wings.least_over_range(surface, gammas, _need(study))
            elif gammas is None and not study.averages:
                result = study.wings.alternate(surface, _need(study))
            else:
                # Inside this context Ctrl-C ends the work, with what is known by then.
                with surface:
                    gammas_stay = False
                    while not gammas_stay:
                        surface.visit(DEFAULT_GAMMAS if gammas is None else gammas, late)
                        edge = _past_the_ends(surface) if gammas is None else ""
                        # Proofs of what the rule needs may change errors, and where the grid has to
                        # end. The surface then forgets which γ were asked for, and keeps their
                        # answers.
                        gammas_stay = surface.proofs_keep_errors(_need(study))
                result = replace(surface.result(), edge=edge)
        except OutOfTime:
            if found is None:
                raise
            return found._replace(spent=spent.joined(Spent(status=Status.TIME_LIMIT)))
        found = Evaluated(surface, result, spent.joined(Spent.on(surface, result)))
        some = (result.taus > 0) & (result.taus <= sizes.end)
        errors = result.table("cv_error")[:, some]
        if sizes is partition.size_rounds[-1] or study.plan.out_of_time:
            break
        if not worth_more_sizes(errors, result.gammas, partition.data.weight):
            break
    assert found is not None  # A partition has a round of sizes.
    return found


def _past_the_ends(surface: Surface) -> str:
    """Visit γ past an end of the default grid, as long as this lowers the CV errors noticeably.

    The error of a γ is a soft minimum over sizes, because an average gives weight to many sizes.

    surface: It has visited the default grid; afterwards its γ are in increasing order.
    Returns: Why the grid could not be extended; empty where it needs no other γ.
    """

    def score(gamma: float) -> float:
        return soft_least(surface.cv_error(gamma)[surface.taus > 0], surface.data.weight)

    more = partial(surface.visit, late=Late.LEFT_OUT)
    kept, edge = grown_grid(more, score, lambda: surface.plan.out_of_time, surface.is_blurred)
    surface.keep(kept)
    surface.asked_gammas.sort()
    return edge


def unvisited(
    study: Study, partition: Partition, taus: Index, ledger: Ledger | None = None
) -> Surface:
    """A surface at some sizes that has not visited any γ yet.

    partition: Its γ and rounds of sizes do not count here.
    taus: The sizes, increasing.
    ledger: What is known at these sizes, which the surface adds to; by default nothing.
    """
    store = None
    if study.checkpoint is not None:
        identity = _identity(study, partition.data.folds)
        store = Checkpoint(study.checkpoint, partition.data.digest(), identity)
    return Surface(
        partition.data,
        taus,
        study.settings,
        plan=study.plan.part(1.0 + partition.work_after),
        checkpoint=store,
        progress=named_report(study.progress, partition.name),
        models=partition.models_of,
        ledger=ledger,
        search_tau=study.wings.search_tau,
    )


def named_report(report: Report, name: str) -> Report:
    """A function that reports progress with the name of a part of the run before it."""
    return lambda what, *more: report(name + what, *more)


def _need(study: Study) -> Need:
    """What the rule of a study needs proved: a function of what is known of h(γ, τ).

    The function returns the pairs (γ, τ) whose CV errors, and whose models of all rows, are needed.
    """
    needs: dict[str, Need] = {
        "minimum": of_minimum,
        "one-se": of_one_se,
        "projected": lambda known: of_average(known, study.data.weight),
    }
    # The criteria of the rules stability and corrected can be least at any pair.
    return needs.get(study.rule, of_everything)


def _identity(study: Study, folds: Folds) -> dict[str, Any]:
    """Plain JSON values: all that the proofs of a checkpoint depend on beside the data.

    A checkpoint is read only where these values are those of the run that has written it.
    """
    label, settings, protocol = folds.label, study.settings, study.design.protocol
    pairs = [[test.tolist() for _, test in folds.pairs], [a.tolist() for a, _ in folds.pairs]]
    search = [settings.search_tolerance, settings.bounds] if settings.searches else []
    constraints = study.data.constraints
    return {
        "n": folds.n,
        "label": pairs if label is None else label.tolist(),
        "protocol": [protocol.name, protocol.scale, protocol.intercept],
        "missing": getattr(study.data, "missing", None),
        "method": settings.method,
        "backend": settings.backend,
        "search": search,
        "constraints": "" if constraints.plain else constraints.digest(),
    }


# further proofs


def with_rest(study: Study, first: Evaluated) -> Evaluated:
    """The surface with proofs of the pairs that the choice did not need, as far as the plan says.

    The plan proves them up to 45 columns alone, for at most a second.
    """
    first.surface.with_plan(study.plan).prove_rest()
    return first.refreshed()


def with_everything(study: Study, first: Evaluated) -> Evaluated:
    """The surface with proofs of every CV error and every model, as far as the time allows."""
    with first.surface.with_plan(replace(study.plan, proves="all")) as surface:
        surface.prove()
    return first.refreshed()


# other partitions


class Partitions(NamedTuple):
    """h(γ, τ) of all partitions, where the first partition's models carry weight.

    first: h(γ, τ) of the first partition, at all its γ and sizes.
    others: h(γ, τ) of the other partitions for which there was time.
    gammas: The positions, among the γ of the first partition, of those of the other partitions.
    n_sizes: The other partitions have this many of the first partition's sizes, the smallest ones.
    whole: Whether the time has sufficed for all partitions.
    spent: What the evaluation of the other partitions took.
    """

    first: CVResult
    others: list[CVResult]
    gammas: Index
    n_sizes: int
    whole: bool
    spent: Spent

    @property
    def results(self) -> list[CVResult]:
        """h(γ, τ) of every partition at :attr:`gammas`, the first partition among them."""
        return [self.first.at(self.gammas), *self.others]

    @property
    def mean(self) -> Array:
        """CV errors at :attr:`gammas`, averaged over partitions, shape (γ, τ).

        At the size 0, and at sizes that other partitions do not have, the mean is ∞, so that they
        carry no weight.
        """
        errors = [one.table("cv_error")[:, : self.n_sizes] for one in self.results]
        beyond = self.first.taus.size - self.n_sizes
        mean = np.pad(np.mean(errors, axis=0), ((0, 0), (0, beyond)), constant_values=np.inf)
        return of_columns(mean, self.first.taus)


def all_partitions(study: Study, first: Evaluated) -> Partitions:
    """Evaluate other partitions where the models of the first carry weight, as the time allows.

    They have the γ of the pairs (γ, τ) that carry weight in the average of the first partition's
    models, and the sizes up to the largest of these pairs. Where the plan proves what the choice
    needs, the pairs that carry weight in the mean over partitions are proved on all of them.
    """
    result = first.result
    errors = of_columns(result.table("cv_error"), result.taus)
    weights = model_weights(errors, result.gammas, study.data.weight)
    positions = _spread_gammas(result, np.flatnonzero(weights.any(axis=1)))
    n_sizes = int(np.flatnonzero(weights.any(axis=0))[-1]) + 1
    gammas, taus = result.gammas[positions], result.taus[:n_sizes]
    others, whole, spent = list[Evaluated](), True, Spent()
    # Partition 0 is the first one.
    for number in range(1, study.partitions):
        other = Partition(
            study.data.partition(number, study.settings.seed),
            gammas,
            [SizeRound(taus, end=int(taus[-1]))],
            work_after=study.partitions - 1 - number + study.work_after_partitions,
            name=f"partition {number + 1} of {study.partitions}, ",
            models_of=first.surface,
            late=Late.LEFT_OUT,
        )
        try:
            others.append(evaluate_partition(study, other))
        except OutOfTime:
            whole, spent = False, spent.joined(Spent(status=Status.TIME_LIMIT))
            break
        spent = spent.joined(others[-1].spent)
    if others and study.plan.proves_needed_pairs:
        _prove_mean(study, [first.surface, *(one.surface for one in others)], gammas, taus)
        first, others = first.refreshed(), [one.refreshed() for one in others]
    results = [one.result for one in others]
    return Partitions(first.result, results, positions, n_sizes, whole, spent)


def _spread_gammas(result: CVResult, weighted: Index) -> Index:
    """Positions of the γ at which other partitions are evaluated, increasing.

    These are all γ that carry weight. An alternation between τ and γ, however, visits many γ that
    lie close together: of these the γ of least CV error is taken, and others that carry weight at
    some distance from each other.

    result: h(γ, τ) of the first partition.
    weighted: The positions of the γ that carry weight, increasing.
    """
    if not result.trace:
        return weighted
    order = np.argsort(result.gammas, kind="stable")
    best = int(np.flatnonzero(order == result.best().gamma_index)[0])
    kept = [int(order[best])]
    for outwards in (order[best + 1 :], order[:best][::-1]):
        last = result.gammas[kept[0]]
        for g in outwards:
            # From the γ of the least CV error outwards, a γ is evaluated where the ratio of this γ
            # and the last evaluated one, the larger divided by the smaller, is at least 1.5. The
            # γ of the default grid are a factor of 7.7 apart. The number is a choice.
            far = max(result.gammas[g], last) >= 1.5 * min(result.gammas[g], last)
            if far and g in weighted:
                kept.append(int(g))
                last = result.gammas[g]
    return np.array(sorted(kept), dtype=np.intp)


def _prove_mean(study: Study, surfaces: list[Surface], gammas: Array, taus: Index) -> None:
    """Prove, on every partition, the pairs that carry weight in the mean over partitions.

    Pairs whose proof a limit ends stay estimates.

    surfaces: Those of all partitions, the first partition first; they take the proofs.
    gammas, taus: Where the other partitions are evaluated. All surfaces have visited these γ, and
        ``taus`` are the smallest sizes of each.
    """
    # Proofs change errors, and with the errors the pairs that carry weight.
    before: Array | None = None
    while not study.plan.out_of_time:
        # A surface has a row of its ledger for every γ that it has visited.
        known = [one.ledger.known([one.rows[gamma] for gamma in gammas]) for one in surfaces]
        mean = np.mean([one.error[:, : taus.size] for one in known], axis=0)
        mean = of_columns(mean, taus)
        if before is not None and np.array_equal(before, mean):
            break
        before = mean
        carry = model_weights(mean, gammas, study.data.weight) > 0.0
        for number, surface in enumerate(surfaces):
            # Every surface, and every piece of work that follows, gets the same share of the time.
            pieces = len(surfaces) - number + study.work_after_partitions
            with surface.with_plan(study.plan.part(pieces)) as part:
                # All partitions share the models of all rows, which are proved once.
                part.prove(of_pairs(gammas, taus, carry, models=number == 0))
