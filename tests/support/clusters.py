"""Dask clusters of this machine, and results that must not depend on where they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .inside import CVResult


@contextmanager
def local_cluster(workers: int) -> Iterator[Any]:
    """A client of a new cluster whose workers are processes with one thread each."""
    import dask
    import distributed

    # Otherwise idle workers look a hundred times a second at what they do.
    watching = {"distributed.worker.profile.enabled": False}
    with (
        dask.config.set(watching),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def same_results(found: CVResult, expected: CVResult) -> None:
    counts = ("n_nodes", "n_mio")  # beyond 45 columns rounds of so many seconds decide on them
    few = found.by_gamma[0].taus.size > 3
    for name in ("cv_error", "std_error", "lower", "upper", "exact", *(counts if few else ())):
        np.testing.assert_array_equal(found.table(name), expected.table(name), name)
    for one, other in zip(found.by_gamma, expected.by_gamma, strict=True):
        for name in ("fold_error", "model_objective", "model_bound"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
        for j in (*range(found.folds.k), None):
            np.testing.assert_array_equal(one.padded(j), other.padded(j))
        assert one.status == other.status
