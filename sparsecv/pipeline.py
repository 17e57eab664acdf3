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

from . import __version__
from .alternating import alternate
from .checkpoint import Checkpoint
from .cross_validation import Settings, cross_validate, default_taus
from .design import Array, Design, Protocol, Summary, make_design
from .errors import InputError
from .fold_data import FoldData, MomentFolds, RowFolds
from .folds import Folds, make_folds
from .model import FittedModel, fitted_model
from .moments import fold_moments
from .readers import RowSource
from .results import CVResult
from .solvers import TREE_ONLY

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
    if layout.label is None or 8 * layout.k * (source.p + 1) ** 2 > SHARED_TREE_BYTES:
        raise InputError(f"{layout.k} folds of a table this large do not fit in memory: use fewer")
    moments = fold_moments(source, layout.label, layout.k, progress)
    design = make_design(moments.summary(), protocol, source.feature_names)
    return Prepared(source, design, MomentFolds(moments, design, layout), layout)


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
) -> CVResult:
    """Cross-validate, with proved γ stored in and taken from ``checkpoint``.

    A γ left as an interval is not stored: a rerun with more time goes on with it. ``gammas`` None
    alternates between τ and γ.
    """
    wanted = default_taus(prepared.folds.n, prepared.design.p) if taus is None else taus
    known = finished = None
    if checkpoint is not None:
        identity = _identity(prepared, wanted, settings)
        store = Checkpoint(checkpoint, prepared.data.digest(), identity)
        known, finished = store.load, store.save_proved
    hooks: dict[str, Any] = {"known": known, "finished": finished, "progress": progress}
    if gammas is None:
        return alternate(prepared.data, wanted, settings, **hooks)
    return cross_validate(prepared.data, gammas, wanted, settings, **hooks)


def _identity(prepared: Prepared, taus: NDArray[np.intp], settings: Settings) -> dict[str, Any]:
    folds, protocol = prepared.folds, prepared.design.protocol
    label = [] if folds.label is None else folds.label.tolist()
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
