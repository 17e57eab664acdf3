"""A run: data, folds, settings and one clock; it evaluates surfaces when they are asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..cv.alternating import alternation
from ..cv.checkpoint import Checkpoint
from ..cv.engine import Surface
from ..cv.pace import Pace, Tell
from ..cv.results import Array, CVResult
from ..cv.settings import Settings, checked_gammas, checked_taus, default_taus
from ..design.design import Design
from ..design.fold_data import FoldData, RowFolds
from ..design.folds import Folds
from ..design.model import FittedModel, fitted_model
from ..errors import InputError
from ..solvers import TREE_ONLY, Limits, Status, known_path, worst
from .averaging import model_weights
from .criterion import Selection, select
from .learner import SparseRidgeLearner
from .partial_errors import PartialErrors, checked_partition, partial_errors
from .projection import PARTITIONS, Projection, project_average

REPEATS = 6  # partitions that are averaged, the first among them
APART = 1.5  # least ratio of neighbouring γ that other partitions are asked about
BLOCK = 25_000_000  # losses held at a time


class Study:
    """Cross-validations of one table, remembered; rules, estimators and commands ask it.

    Parameters
    ----------
    data : FoldData
        The first partition.
    design : Design
    gammas : array or None
        None alternates between τ and γ.
    taus : array of int or None
        None: :func:`sparsecv.cv.settings.default_taus`.
    settings : Settings
    repeats : int
        Partitions of the rules that average over several, the first among them.
    seed : int, RandomState or None
        The folds were drawn with; other partitions are, too.
    checkpoint : path, optional
        Folder that keeps what is proved.
    progress : callable, optional
        Told what is being done, the units done and units in all.

    Raises
    ------
    InputError
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
        self.estimates = False  # beyond trees the rule needs no proof of the least error
        self.reused: list[float] = []
        self._first: Surface | None = None
        self._statuses: list[Status] = []
        self._nodes = 0

    def expect(self, surfaces: float, estimates: bool, all_sizes: bool) -> None:
        """Hear what a rule will ask for, before anything is evaluated.

        Parameters
        ----------
        surfaces : float
            Those after the first, which leaves them their share of the time.
        estimates : bool
            Beyond 45 columns the least CV error need not be proved.
        all_sizes : bool
            Models of all sizes, whichever were asked for.
        """
        self.pending, self.estimates = surfaces, estimates
        if all_sizes:
            asked = checked_taus(self.sizes, self.data.p)
            self.taus = np.union1d(default_taus(self.data.folds.n, self.data.p), asked)

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
        for number in range(1, self.repeats if redrawn(self.data.folds) else 1):
            self.pending = float(self.repeats - 1 - number)
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
    def estimating(self) -> bool:
        """Whether estimates of the CV errors are all that the rule asks for."""
        settings, p = self.settings, self.data.p
        return self.estimates and settings.prove == "choice" and p > TREE_ONLY

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

    def projection(self, weights: Array) -> Projection:
        """The average of the models at the γ apart, projected onto the sizes asked for.

        Parameters
        ----------
        weights : array, shape (γ, τ)
            Of the average; they sum to 1.

        Returns
        -------
        Projection
        """
        partitions = [
            (self.data.with_folds(result.folds) if number else self.data, result)
            for number, result in enumerate(self.evaluated[:PARTITIONS])
        ]
        found = project_average(
            partitions,
            self.design,
            weights,
            checked_taus(self.sizes, self.data.p),
            limits=self.limits,
            n_jobs=self.settings.n_jobs,
            tell=Pace(self._tell, self.limits),
        )
        if not found.proved and (reached := self.limits.reached(0)) is not None:
            self._statuses.append(reached)
        return found

    # the model

    def model(self, gamma_index: int, tau_index: int) -> FittedModel:
        """The model of all rows at one pair, proved with the time that is left.

        Parameters
        ----------
        gamma_index, tau_index : int

        Returns
        -------
        FittedModel
        """
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
        if isinstance(settings.time_limit, (int, float)):
            left = self.limits.share(1.0 + self.pending).remaining()
            settings = replace(settings, time_limit=left)
        elif (other or self.estimates) and settings.prove == "choice" and data.p > TREE_ONLY:
            settings = replace(settings, time_limit=0.0)  # beyond trees estimates are enough
        surface = Surface(data, taus, settings, checkpoint=store, progress=tell, models=self._first)
        if gammas is None:
            result = alternation(surface)
        else:
            with surface:
                surface.visit(gammas)
                if not (other and self.estimating):  # nobody asks for bounds
                    surface.prove()
            result = surface.result()
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


def redrawn(folds: Folds) -> bool:
    """Whether other partitions of the same kind can be drawn.

    Parameters
    ----------
    folds : Folds

    Returns
    -------
    bool
    """
    return folds.kind in ("kfold", "size")


def checked_repeats(repeats: Any) -> int:
    """Validate a number of partitions.

    Parameters
    ----------
    repeats : object

    Returns
    -------
    int

    Raises
    ------
    InputError
    """
    if not isinstance(repeats, Integral) or isinstance(repeats, bool) or repeats < 2:
        raise InputError(f"repeats must be a whole number >= 2; got {repeats!r}")
    return int(repeats)


def partition_again(folds: Folds, seed: Any, number: int) -> Folds:
    """Another partition of the same kind, drawn with the same source of randomness.

    Parameters
    ----------
    folds : Folds
        Drawn with ``seed``.
    seed : int, RandomState or None
    number : int
        1, 2, ...: with a whole number as the seed each has its own partition.

    Returns
    -------
    Folds

    Raises
    ------
    InputError
        The folds were not drawn at random.
    """
    if not redrawn(folds):
        raise InputError("only K folds and folds of a size can be drawn again")
    if isinstance(seed, Integral):
        seed = int(np.random.SeedSequence([int(seed), number]).generate_state(1)[0])
    return folds.again(seed)
