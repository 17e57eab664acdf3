"""The surfaces h(γ, τ) of a study: of its first partition into folds, and of other partitions.

Every function returns what it has evaluated or proved as a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cv.alternating import alternate, grown_grid
from ..cv.checkpoint import Checkpoint
from ..cv.engine import Surface
from ..cv.global_gamma import GLOBAL_TOLERANCE, VISITED_EVERY, global_minimum
from ..cv.needs import Need, of_everything, of_minimum, of_one_se, of_pairs
from ..cv.progress import Report
from ..cv.results import Array, CVResult
from ..cv.settings import DEFAULT_GAMMAS, GammaSpan
from ..design.fold_data import FoldData
from ..design.folds import Folds, Index
from ..solvers.core.result import Status, worst
from .study import Study
from .weights import Tried, model_weights, of_average, soft_least, worth_more_sizes


class Partition(NamedTuple):
    """A partition into folds, and where h(γ, τ) is evaluated on it.

    data: The rows in these folds.
    gammas: Values of γ; a range, whose least error is searched and proved; or None. With None the
        rule projected visits the default grid, and other rules alternate from it between τ and γ.
    tried: The sizes that are evaluated first, and those that follow where they are worth it.
    name: The name of the partition, with which progress reports begin.
    after: The number of surfaces among which the time left after this surface is shared.
    models: The surface of the first partition, whose models of all rows are taken over, or None.
    """

    data: FoldData
    gammas: Array | GammaSpan | None
    tried: Sequence[Tried]
    name: str
    after: float
    models: Surface | None = None


class Spent(NamedTuple):
    """What evaluations of surfaces took, and how they have ended.

    n_nodes: Nodes of the searches.
    status: Optimal, or the worst limit that was met.
    reused: The γ that were read from a checkpoint, once for every partition.
    """

    n_nodes: int = 0
    status: Status = Status.OPTIMAL
    reused: tuple[float, ...] = ()

    def joined(self, other: Spent) -> Spent:
        """Both together."""
        status = worst([self.status, other.status])
        return Spent(self.n_nodes + other.n_nodes, status, self.reused + other.reused)


class Evaluated(NamedTuple):
    """An evaluated surface.

    surface: The surface, whose ledger takes further proofs.
    result: h(γ, τ) at the γ that were asked for, as far as it was proved when this record was made.
    spent: What the evaluation took.
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
    name = f"partition 1 of {study.partitions}, " if study.n_others else ""
    after = study.n_others + study.n_after
    return Partition(study.data, study.gammas, study.tried, name, after)


def evaluate_partition(study: Study, partition: Partition) -> Evaluated:
    """h(γ, τ) of a partition, at sizes that grow as far as they are worth trying.

    What the rule needs is proved, unless estimates serve. On a range of γ and by an alternation CV
    errors always get the proofs and intervals that the settings ask for.
    """
    data, gammas = partition.data, partition.gammas
    spent = Spent()
    for tried in partition.tried:
        surface = unvisited(study, partition, tried.taus)
        if isinstance(gammas, GammaSpan):
            result = _certified(study, surface, gammas)
        elif gammas is None and not study.averages:
            result = alternate(surface, _need(study))
        else:
            with surface:
                # Every pair is estimated. Then what is needed is proved, and where proofs change
                # errors the γ that they lead to are visited.
                settled = False
                while not settled:
                    surface.visit(DEFAULT_GAMMAS if gammas is None else gammas)
                    edge = _past_the_ends(surface) if gammas is None else ""
                    settled = surface.settled(_need(study))
            result = replace(surface.result(), edge=edge)
        spent = spent.joined(_spent(surface, result))
        errors = result.table("cv_error")[:, result.taus <= tried.end]
        grows = tried is not partition.tried[-1]
        if not (grows and worth_more_sizes(errors, result.gammas, data.weight)):
            break
        if study.plan.out_of_time:
            break
    return Evaluated(surface, result, spent)


def _spent(surface: Surface, result: CVResult) -> Spent:
    """What the evaluation of a surface took."""
    ended = [] if result.minimum is None else [result.minimum.status]
    status = worst([result.status, *ended])
    reused = () if surface.checkpoint is None else tuple(surface.checkpoint.reused)
    return Spent(int(result.table("n_nodes").sum()), status, reused)


def _past_the_ends(surface: Surface) -> str:
    """Visit γ past an end of the default grid, as long as the weights of an average are there.

    Returns: Why the grid could not be extended; empty where it needs no other γ.
    """

    def score(gamma: float) -> float:
        return soft_least(surface.cv_error(gamma), surface.data.weight)

    _, edge = grown_grid(surface.visit, score, lambda: surface.plan.out_of_time)
    surface.sort_gammas()
    return edge


def unvisited(study: Study, partition: Partition, taus: Index) -> Surface:
    """The surface of a partition at some sizes, at which no γ has been visited yet.

    The time limit is one deadline for the whole study, and the surface gets its share of the time
    that is left.
    """
    store, request = None, study.request
    if request.checkpoint is not None:
        identity = _identity(study, partition.data.folds)
        store = Checkpoint(request.checkpoint, partition.data.digest(), identity)
    return Surface(
        partition.data,
        taus,
        request.settings,
        plan=study.plan.part(1.0 + partition.after),
        checkpoint=store,
        progress=named_report(request.progress, partition.name),
        models=partition.models,
    )


def named_report(report: Report, name: str) -> Report:
    """A function that reports progress with the name of a part of the run before it."""
    return lambda what, *more: report(name + what, *more)


def _certified(study: Study, surface: Surface, span: GammaSpan) -> CVResult:
    """h(γ, τ) at the γ of the least error in a range, proved, and at some γ of the range."""
    settings = study.request.settings
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
        surface.visit(np.sort(np.append(found.shown.gammas[::VISITED_EVERY], found.gamma)))
        surface.prove(_need(study))
    return replace(surface.result(), minimum=found)


def _need(study: Study) -> Need:
    """What the rule needs of a surface."""
    n = study.data.weight
    needs: dict[str, Need] = {
        "minimum": of_minimum,
        "one-se": of_one_se,
        "projected": lambda known: of_average(known, n),
    }
    return needs.get(study.rule, of_everything)


def _identity(study: Study, folds: Folds) -> dict[str, Any]:
    """Plain JSON values: all that a checkpoint depends on beside the data."""
    label, settings, protocol = folds.label, study.request.settings, study.design.protocol
    pairs = [[test.tolist() for _, test in folds.pairs], [a.tolist() for a, _ in folds.pairs]]
    search = [settings.search_tolerance, settings.bounds]
    return {
        "n": folds.n,
        "label": pairs if label is None else label.tolist(),
        "hash": getattr(folds, "seed", None),
        "protocol": [protocol.name, protocol.scale, protocol.intercept],
        "missing": getattr(study.data, "missing", None),
        "method": settings.method,
        "backend": settings.backend,
        "search": search if settings.searches else [],
        "constraints": "" if study.data.plain else study.data.constraints.digest(),
    }


# further proofs


def with_rest(study: Study, first: Evaluated) -> Evaluated:
    """The surface with proofs of what the choice did not need, as the plan says."""
    first.surface.under(study.plan).prove_rest()
    return first.refreshed()


def with_everything(study: Study, first: Evaluated) -> Evaluated:
    """The surface with proofs of every CV error and every model, as far as the time allows."""
    with first.surface.under(replace(study.plan, proves="all")) as surface:
        surface.prove()
    return first.refreshed()


# other partitions


class Partitions(NamedTuple):
    """h(γ, τ) of all partitions, where the first partition's models carry weight.

    first: h(γ, τ) of the first partition, at all γ and sizes.
    others: h(γ, τ) of the other partitions for which there was time.
    gammas: The positions, among the γ of the first partition, of those of the other partitions.
    n_sizes: The number of sizes of the other partitions, the first sizes of all.
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

        At sizes that not all partitions have, the mean is ∞.
        """
        beyond = self.first.taus.size - self.n_sizes
        every = [one.table("cv_error")[:, : self.n_sizes] for one in self.results]
        return np.pad(np.mean(every, axis=0), ((0, 0), (0, beyond)), constant_values=np.inf)


def all_partitions(study: Study, first: Evaluated) -> Partitions:
    """Evaluate other partitions where the models of the first carry weight, as the time allows.

    They have the γ of the pairs (γ, τ) that carry weight, and the sizes up to the largest of these
    pairs. Pairs that carry weight in the mean over partitions are proved on all of them.
    """
    result = first.result
    weights = model_weights(result.table("cv_error"), result.gammas, study.data.weight)
    positions = _spread_gammas(result, np.flatnonzero(weights.any(axis=1)))
    n_sizes = int(np.flatnonzero(weights.any(axis=0))[-1]) + 1
    gammas, taus = result.gammas[positions], result.taus[:n_sizes]
    others, whole, spent = list[Evaluated](), True, Spent()
    for number in range(1, study.partitions):
        if study.plan.out_of_time:
            whole, spent = False, spent.joined(Spent(status=Status.TIME_LIMIT))
            break
        name = f"partition {number + 1} of {study.partitions}, "
        after = study.partitions - 1 - number + study.n_after
        data, tried = study.data.partition(number, study.request.seed), [Tried(taus, int(taus[-1]))]
        other = Partition(data, gammas, tried, name, after, first.surface)
        others.append(evaluate_partition(study, other))
        spent = spent.joined(others[-1].spent)
    if others and study.plan.proves_pairs:
        _prove_mean(study, [first.surface, *(one.surface for one in others)], gammas, taus)
        first, others = first.refreshed(), [one.refreshed() for one in others]
    results = [one.result for one in others]
    return Partitions(first.result, results, positions, n_sizes, whole, spent)


def _spread_gammas(result: CVResult, weighted: Index) -> Index:
    """Positions of the γ at which other partitions are evaluated, increasing.

    After an alternation, a γ is left out that is too close to the γ kept before, on the way from
    the best γ to either end.

    weighted: The positions of the γ that carry weight.
    """
    if not result.trace:
        return weighted
    order = np.argsort(result.gammas, kind="stable")
    best = int(np.flatnonzero(order == result.best().gamma_index)[0])
    kept = [int(order[best])]
    for way in (order[best + 1 :], order[:best][::-1]):
        last = result.gammas[kept[0]]
        for g in way:
            # After an alternation, other partitions skip γ that lie close together. From the best
            # γ outwards, a γ is evaluated where the ratio of this γ and the last evaluated one, the
            # larger divided by the smaller, is at least this number. The γ of the default grid are
            # a factor of 7.7 apart.
            far = max(result.gammas[g], last) >= 1.5 * min(result.gammas[g], last)
            if far and g in weighted:
                kept.append(int(g))
                last = result.gammas[g]
    return np.array(sorted(kept), dtype=np.intp)


def _prove_mean(
    study: Study, surfaces: list[Surface], gammas: Array, taus: NDArray[np.intp]
) -> None:
    """Prove, on every partition, the pairs that carry weight in the mean over partitions.

    surfaces: Those of all partitions, the first partition first. Their ledgers take the proofs.
    gammas, taus: Where the other partitions are evaluated.
    """
    before: Array | None = None
    while not study.plan.out_of_time:
        known = [one.ledger.known([one.rows[gamma] for gamma in gammas]) for one in surfaces]
        mean = np.mean([one.error[:, : taus.size] for one in known], axis=0)
        carry = model_weights(mean, gammas, study.data.weight) > 0.0
        if before is not None and np.array_equal(before, mean):
            break
        before = mean
        for number, surface in enumerate(surfaces):
            pieces = len(surfaces) - number + study.n_after
            with surface.under(study.plan.part(pieces)) as part:
                part.prove(of_pairs(gammas, taus, carry, models=number == 0))
