"""From a named table to a finished cross-validation: what the command line runs."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from .. import __version__
from ..cv.alternating import alternate
from ..cv.checkpoint import Checkpoint
from ..cv.engine import Settings, cross_validate, default_taus
from ..cv.results import CVResult
from ..design.design import Array, Design, Protocol, Summary, make_design
from ..design.fold_data import FoldData, MomentFolds, RowFolds
from ..design.folds import Folds, make_folds
from ..design.model import FittedModel, fitted_model
from ..design.moments import FoldMoments, fold_moments
from ..errors import InputError
from ..solvers import TREE_ONLY
from ..tables.sources import RowSource
from .evidence import partition_again
from .rule_run import Ruled, run_by_rule
from .rules import Choice, chosen_model

IN_MEMORY_BYTES = 200_000_000  # larger tables are read once, block by block
SHARED_TREE_BYTES = 1_500_000_000  # leave-one-out needs every row
DEFAULT_LIMIT = 60.0  # seconds, where a tree may be too large and no limit was given


@dataclass
class Prepared:
    """A table ready to be cross-validated."""

    source: RowSource
    design: Design
    data: FoldData
    folds: Folds

    @property
    def names(self) -> list[str]:
        """Names of the raw columns."""
        return self.source.feature_names

    def chosen(self, result: CVResult, choice: Choice) -> FittedModel:
        """Fit all rows as a rule chooses."""
        return chosen_model(self.design, self.data.full(), result, choice)

    def model(
        self, gamma: float, support: NDArray[np.intp], bound: float, proved: bool
    ) -> FittedModel:
        """Fit all rows at γ on a support of solved columns."""
        problem = self.data.full().replace(gamma=gamma)
        return fitted_model(self.design, problem, support, bound, proved)


def prepare(
    source: RowSource,
    folds: str,
    protocol: Protocol,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Read a table, whole or in one pass over its rows, and lay out its folds.

    Raises
    ------
    InputError
        Bad values, bad folds, or leave-one-out of a table that does not fit in memory.
    """
    layout = make_folds(folds, source.n, seed=seed)
    size = 8 * source.n * (source.p + 1)
    if size <= IN_MEMORY_BYTES or layout.leave_one_out:
        if size > SHARED_TREE_BYTES:
            raise InputError(
                f"leave-one-out needs all rows in memory, {size / 1e9:.1f} GB here: "
                "use --folds K, which reads the rows once"
            )
        X, y = source.load()
        design = make_design(Summary.of(X, y), protocol, source.feature_names)
        X, y = design.apply(X, y)
        data: FoldData = RowFolds(X, y, layout, protocol.refit_intercept)
        return Prepared(source, design, data, layout)
    moments = _moments(source, layout, progress)
    design = make_design(moments.summary(), protocol, source.feature_names)
    return Prepared(source, design, MomentFolds(moments, design, layout), layout)


def _moments(
    source: RowSource, layout: Folds, progress: Callable[[int, int], None] | None
) -> FoldMoments:
    if layout.label is None or 8 * layout.k * (source.p + 1) ** 2 > SHARED_TREE_BYTES:
        raise InputError(f"{layout.k} folds of a table this large do not fit in memory: use fewer")
    return fold_moments(source, layout.label, layout.k, progress)


def partition(
    prepared: Prepared,
    folds: Folds,
    progress: Callable[[int, int], None] | None = None,
) -> FoldData:
    """The prepared rows in other folds; a table that is read in one pass is read again."""
    data, design = prepared.data, prepared.design
    if isinstance(data, RowFolds):
        return RowFolds(data.X, data.y, folds, design.protocol.refit_intercept)
    return MomentFolds(_moments(prepared.source, folds, progress), design, folds)


def size_notice(p: int, time_limit: float | None) -> tuple[str | None, float | None]:
    """What to say up front where trees may be too large, and the time limit that then holds."""
    if p <= TREE_ONLY:
        return None, time_limit
    limit = DEFAULT_LIMIT if time_limit is None else time_limit
    return (
        f"{p} columns: some trees may be too large to finish; stopping after {limit:g} s "
        "(--time-limit) with intervals",
        limit,
    )


def run(
    prepared: Prepared,
    gammas: Array | None,
    taus: NDArray[np.intp] | None,
    settings: Settings,
    *,
    checkpoint: str | None = None,
    progress: Callable[[float, int, int], None] | None = None,
    data: FoldData | None = None,
) -> CVResult:
    """Cross-validate, with proved γ stored in and taken from ``checkpoint``.

    A γ left as an interval is not stored: a rerun with more time goes on with it. ``gammas`` None
    alternates between τ and γ. ``data`` stands in for the prepared folds: other folds of the rows.
    """
    data = prepared.data if data is None else data
    wanted = default_taus(prepared.folds.n, prepared.design.p) if taus is None else taus
    known = finished = None
    if checkpoint is not None:
        identity = _identity(data.folds, prepared.design.protocol, wanted, settings)
        store = Checkpoint(checkpoint, data.digest(), identity)
        known, finished = store.load, store.save_proved
    hooks: dict[str, Any] = {"known": known, "finished": finished, "progress": progress}
    if gammas is None:
        return alternate(data, wanted, settings, **hooks)
    return cross_validate(data, gammas, wanted, settings, **hooks)


def run_rule(
    prepared: Prepared,
    gammas: Array | None,
    taus: NDArray[np.intp] | None,
    settings: Settings,
    rule: str,
    repeats: int,
    seed: int,
    *,
    checkpoint: str | None = None,
    progress: Callable[[str, int, int], None],
) -> Ruled:
    """Cross-validate and choose by a rule; what it asks for is kept in ``checkpoint``, too."""

    def first(own: Settings) -> CVResult:
        def tell(gamma: float, i: int, k: int) -> None:
            progress(f"γ = {gamma:.4g}", i, k)

        return run(prepared, gammas, taus, own, checkpoint=checkpoint, progress=tell)

    def again(number: int, asked: bool) -> FoldData:
        other = partition_again(prepared.folds, seed, number)
        return partition(prepared, other, lambda i, n: progress("reading rows", i, n))

    def more(data: FoldData, values: Array, own: Settings, name: str, asked: bool) -> CVResult:
        def tell(gamma: float, i: int, k: int) -> None:
            progress(f"{name}, γ = {gamma:.4g}", i, k)

        kept = checkpoint if asked else None
        return run(prepared, values, taus, own, checkpoint=kept, progress=tell, data=data)

    return run_by_rule(prepared.data, rule, repeats, settings, first=first, more=more, again=again)


def _identity(
    folds: Folds, protocol: Protocol, taus: NDArray[np.intp], settings: Settings
) -> dict[str, Any]:
    if folds.label is None:
        label = [[test.tolist() for _, test in folds.pairs]]
    else:
        label = folds.label.tolist()
    return {
        "version": __version__,
        "n": folds.n,
        "label": label,
        "taus": taus.tolist(),
        "protocol": [protocol.name, protocol.scale, protocol.intercept],
        "method": settings.method,
        "backend": settings.backend,
        "search": [settings.tol, settings.bounds, settings.mio_limit] if settings.searches else [],
    }


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }
