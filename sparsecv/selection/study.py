"""A run: data, folds, settings and one clock; it evaluates surfaces when they are asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..cv.alternating import alternation, visit_default_grid
from ..cv.checkpoint import Checkpoint
from ..cv.engine import Surface
from ..cv.progress import Pace, Tell
from ..cv.results import Array, CVResult, mean_over_folds
from ..cv.settings import Settings, checked_gammas, checked_taus, default_taus
from ..design.design import Design
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds
from ..design.model import FittedModel, fitted_model
from ..solvers.core.limits import Limits
from ..solvers.core.result import Status, worst
from ..solvers.leaps.all_sizes import TREE_ONLY
from ..solvers.ridge_fits import known_path
from .averaging import averaged_coefficients, model_weights, soft_least
from .criterion import Selection, select
from .inner import inner_weights
from .learner import SparseRidgeLearner
from .partial_errors import PartialErrors, checked_partition, partial_errors
from .partitions import checked_repeats as checked_repeats
from .partitions import partition_again, redrawn
from .projection import Projection, project_average

REPEATS = 6  # partitions that are averaged, the first among them
APART = 1.5  # least ratio of neighbouring γ that other partitions are asked about
BLOCK = 25_000_000  # losses held at a time


class Study:
    """Cross-validations of one table, remembered; rules, estimators and commands ask it.

    data: The first partition.
    gammas: None: the default grid; a rule that takes a pair then alternates between τ and γ.
    taus: None: :func:`sparsecv.cv.settings.default_taus`.
    repeats: Partitions of the rules that average over several, the first among them.
    seed: The folds were drawn with; other partitions are, too.
    checkpoint: Folder that keeps what is proved.
    progress: Told what is being done, the units done and units in all.
    """

    def __init__(
        self,
        data: FoldData,
        design: Design,
        gammas: Any,
        taus: Any,
        settings: Settings,
        *,
        repeats: int = REPEATS,
        seed: Any = 0,
        checkpoint: str | Path | None = None,
        progress: Tell | None = None,
    ) -> None:
        self.data, self.design, self.settings = data, design, settings
        self.gammas = None if gammas is None else checked_gammas(gammas)
        self.sizes_named = taus is not None
        self.sizes = taus if self.sizes_named else default_taus(data.folds.n, data.p)  # asked for
        self.taus = self.sizes  # evaluated: a rule may need more
        self.repeats, self.seed = checked_repeats(repeats), seed
        self.folder, self._progress = checkpoint, progress
        self.limits = Limits(settings.seconds(data.p)[0])
        self.pending = 0.0  # surfaces that a rule will ask for after the one that is worked on
        self.averages = False  # the rule averages models: no proof of the least error is needed
        self.reused: list[float] = []
        self._first: Surface | None = None
        self._statuses: list[Status] = []
        self._nodes = 0

    def expect(self, partitions: bool, averages: bool, all_sizes: bool) -> None:
        """Hear what a rule will ask for, before anything is evaluated.

        partitions: Surfaces of other partitions, which the first one leaves their share of the
            time.
        averages: Models are averaged: beyond 45 columns the least CV error need not be proved.
        all_sizes: Models of all sizes, whichever were asked for.
        """
        self.averages = averages
        others = self.repeats - 1.0 if partitions and self.redraws else 0.0
        self.pending = others + 2.0 * averages  # inner folds and projections, too
        if all_sizes:
            asked = checked_taus(self.sizes, self.data.p)
            self.taus = np.union1d(default_taus(self.data.folds.n, self.data.p), asked)

    @property
    def redraws(self) -> bool:
        """Whether other partitions are drawn; for an average only where that costs estimates.

        An average takes the one partition of a table that is read by chunks, which would be read
        again, and of problems that are solved one by one.
        """
        dear = self.settings.grid or not isinstance(self.data, RowFolds)
        return redrawn(self.data.folds) and not (self.averages and dear)

    # surfaces

    @cached_property
    def surface(self) -> CVResult:
        """h(γ, τ) of the first partition."""
        name = f"partition 1 of {self.repeats}, " if self.pending else ""
        found, self._first = self._evaluate(self.data, self.gammas, self.taus, name)
        return found

    @cached_property
    def others(self) -> list[CVResult]:
        """The same of other partitions, at γ that are not too close; shorter where time ran out."""
        found: list[CVResult] = []
        gammas, taus = self.surface.gammas[self.apart], self.surface.taus[: self.reach]
        for number in range(1, self.repeats if self.redraws else 1):
            self.pending = self.repeats - 1 - number + 2.0 * self.averages
            if self.limits.reached(0) is not None:
                self._statuses.append(Status.TIME_LIMIT)
                break
            folds = partition_again(self.data.folds, self.seed, number)
            name = f"partition {number + 1} of {self.repeats}, "
            found.append(self._evaluate(self.data.with_folds(folds), gammas, taus, name)[0])
        return found

    @cached_property
    def apart(self) -> NDArray[np.intp]:
        """Positions of γ for other partitions: those :attr:`likely`, of an alternation apart."""
        result, likely = self.surface, np.flatnonzero(self.likely.any(axis=1))
        if not result.trace:
            return likely
        order = np.argsort(result.gammas, kind="stable")
        best = int(np.flatnonzero(order == result.best().gamma_index)[0])
        kept = [int(order[best])]
        for way in (order[best + 1 :], order[:best][::-1]):
            last = result.gammas[kept[0]]
            for g in way:
                far = max(result.gammas[g], last) >= APART * min(result.gammas[g], last)
                if far and g in likely:
                    kept.append(int(g))
                    last = result.gammas[g]
        return np.array(sorted(kept), dtype=np.intp)

    @cached_property
    def reach(self) -> int:
        """Number of sizes for other partitions: up to the largest that is :attr:`likely`."""
        return int(np.flatnonzero(self.likely.any(axis=0))[-1]) + 1

    @cached_property
    def likely(self) -> NDArray[np.bool_]:
        """Pairs (γ, τ) other partitions are asked about.

        All; beyond trees, where estimates are averaged, those with a weight in the first partition.
        """
        result = self.surface
        if not self.estimating:
            return np.ones((result.gammas.size, result.taus.size), dtype=bool)
        weights = model_weights(result.table("cv_error"), result.gammas, result.folds.n)
        return np.asarray(weights > 0.0)

    @property
    def _estimates_serve(self) -> bool:
        """Whether errors may stay estimates: beyond trees, where not all proofs are asked for."""
        settings = self.settings
        return settings.prove == "choice" and not settings.grid and self.data.p > TREE_ONLY

    @property
    def estimating(self) -> bool:
        """Whether estimates of the CV errors are all that the rule asks for."""
        return self.averages and self._estimates_serve

    @property
    def evaluated(self) -> list[CVResult]:
        """h(γ, τ) of every partition at the γ apart, the first among them."""
        first, at = self.surface, self.apart
        here = replace(first, gammas=first.gammas[at], by_gamma=[first.by_gamma[g] for g in at])
        return [here, *self.others]

    @cached_property
    def mean_surface(self) -> tuple[Array, Array, Array]:
        """CV errors, lower and upper bounds at the γ apart, averaged over partitions.

        Of sizes that not all partitions were asked about 0 and infinity are the bounds.
        """
        beyond, every = self.surface.taus.size - self.reach, self.evaluated

        def mean(name: str, unknown: float) -> Array:
            found = np.mean([one.table(name)[:, : self.reach] for one in every], axis=0)
            return np.pad(found, ((0, 0), (0, beyond)), constant_values=unknown)

        return mean("cv_error", np.inf), mean("lower", 0.0), mean("upper", np.inf)

    @cached_property
    def stability(self) -> tuple[PartialErrors, Selection]:
        """Errors of models without no, one and two folds, and Algorithm 1 on them."""
        data, result = self.data, self.surface
        assert isinstance(data, RowFolds)
        label, k = checked_partition(data.folds.label, data.folds.n)
        step = max(1, BLOCK // ((k + 1) * label.size * result.taus.size))
        blocks = []
        for start in range(0, result.gammas.size, step):
            self._tell("pairs of folds", start, result.gammas.size)
            gammas = result.gammas[start : start + step]
            learner = SparseRidgeLearner(
                data.X,
                data.y,
                result.taus,
                gammas,
                solver="exact" if data.p <= TREE_ONLY else "heuristic",
                fit_intercept=data.refit_intercept,
                standardize=False,
            )
            blocks.append(partial_errors(learner, label, learner.size))
        errors = PartialErrors(
            *(
                np.concatenate([np.asarray(getattr(block, name)) for block in blocks])
                for name in PartialErrors.__dataclass_fields__
            )
        )
        return errors, select(errors)

    @cached_property
    def corrected(self) -> Array:
        """Bias-corrected CV errors (γ, τ) of the first partition.

        h + R̂(full model) − mean over folds of R̂(fold's model), R̂ the mean squared error on all
        rows (Burman 1989; Section 5 of "Consistent Cross Validation with Stable Learners").
        """
        data, result, k = self.data, self.surface, self.data.folds.k
        seen = sum(self._trained(data, j) for j in range(k)) + result.table("fold_error").sum(
            axis=2
        )
        return np.asarray(
            result.table("cv_error") + (self._trained(data, None) - seen / k) / data.total
        )

    def _trained(self, data: FoldData, j: int | None) -> Array:
        """||y − Xβ||² (γ, τ) on the rows that a fold's models, or those of all rows, have seen."""
        result = self.surface
        problem = data.full() if j is None else data.training(j)
        rows = np.stack([one.padded(j) for one in result.by_gamma])
        path = known_path(problem, result.gammas, result.taus, rows)
        penalty = 0.5 * result.gammas[:, None] * (path.coef**2).sum(axis=2)
        return np.asarray(path.objective - penalty)

    @cached_property
    def inner(self) -> tuple[list[Array], bool]:
        """Weights (γ, τ) of the first partition's folds; whether all their models are proved."""
        found = inner_weights(
            self.data,
            self.surface.gammas,
            self.surface.taus,
            limits=self.limits,
            n_jobs=self.settings.n_jobs,
            tell=Pace(self._tell, self.limits),
        )
        self._met(found[1])
        return found

    @cached_property
    def average_error(self) -> tuple[float, float]:
        """CV error of the average, every fold's of its training rows alone; its standard error."""
        data, sums = self.data, []
        for j, weights in enumerate(self.inner[0]):
            coef = averaged_coefficients(data.training(j), self.surface, weights, j)
            rows, targets = data.held_out(j)
            sums.append(float(np.sum((targets - rows @ coef) ** 2)))
        error, spread = mean_over_folds(np.array(sums), data.fold_weight)
        return float(error), float(spread)

    def projection(self, weights: Array, most: tuple[int, float]) -> Projection:
        """The average of the models, projected onto the sizes asked for.

        weights, shape (γ, τ): Of the models of all rows; they sum to 1.
        most: Columns and CV error that are not both exceeded where no size comes close.
        """
        found = project_average(
            self.data,
            self.surface,
            self.design,
            weights,
            self.inner[0],
            checked_taus(self.sizes, self.data.p),
            most,
            limits=self.limits,
            n_jobs=self.settings.n_jobs,
            tell=Pace(self._tell, self.limits),
        )
        self._met(found.proved)
        return found

    def _met(self, proved: bool) -> None:
        """Remember the limit that was reached where something is not proved."""
        if not proved and (reached := self.limits.reached(0)) is not None:
            self._statuses.append(reached)

    # the model

    def model(self, gamma_index: int, tau_index: int) -> FittedModel:
        """The model of all rows at one pair, proved with the time that is left."""
        result = self.surface
        gamma = float(result.gammas[gamma_index])
        assert self._first is not None
        page = self._first.pages[gamma]
        self._first.prove_model(gamma, tau_index)
        one = result.by_gamma[gamma_index] = page.summary()
        return fitted_model(
            self.design,
            self.data.full().replace(gamma=gamma),
            one.models[tau_index],
            float(one.model_bound[tau_index]),
            bool(one.model_proved[tau_index]),
        )

    @property
    def status(self) -> Status:
        """Optimal, or the worst limit that was met."""
        return worst([self.surface.status, *self._statuses])

    @property
    def n_nodes(self) -> int:
        """Nodes of everything evaluated."""
        return self._nodes

    def _evaluate(
        self, data: FoldData, gammas: Array | None, taus: Any, name: str
    ) -> tuple[CVResult, Surface]:
        store = None
        if self.folder is not None:
            store = Checkpoint(self.folder, data.digest(), self._identity(data.folds, taus))

        def tell(what: str, done: int, total: int) -> None:
            self._tell(name + what, done, total)

        settings, other = self.settings, data is not self.data
        estimates = self.estimating
        if isinstance(settings.time_limit, (int, float)):
            left = self.limits.share(1.0 + self.pending).remaining()
            settings = replace(settings, time_limit=left)
        else:
            estimates |= other and self._estimates_serve
        surface = Surface(
            data,
            taus,
            settings,
            checkpoint=store,
            progress=tell,
            models=self._first,
            estimates=estimates,
        )
        if gammas is None and not self.averages:
            result = alternation(surface)
        else:
            edge, n = "", data.folds.n
            with surface:
                if gammas is None:
                    edge = visit_default_grid(surface, lambda errors: soft_least(errors, n))
                    surface.order.sort()
                else:
                    surface.visit(gammas)
                if not (other and self.estimating):  # nobody asks for bounds
                    surface.prove()
            result = replace(surface.result(), edge=edge)
        self._nodes += sum(one.n_nodes for one in result.by_gamma)
        self._statuses.append(result.status)
        if store is not None:
            self.reused += store.reused
        return result, surface

    def _tell(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)

    def _identity(self, folds: Folds, taus: Any) -> dict[str, Any]:
        label = folds.label
        pairs = [[test.tolist() for _, test in folds.pairs], [a.tolist() for a, _ in folds.pairs]]
        settings, protocol = self.settings, self.design.protocol
        return {
            "version": __version__,
            "n": folds.n,
            "label": pairs if label is None else label.tolist(),
            "hash": getattr(folds, "seed", None),
            "taus": np.unique(taus).tolist(),
            "protocol": [protocol.name, protocol.scale, protocol.intercept],
            "method": settings.method,
            "backend": settings.backend,
            "search": [settings.tol, settings.bounds, settings.mio_limit]
            if settings.searches
            else [],
        }
