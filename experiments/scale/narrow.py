"""This script times fits of 25 to 45 columns by two checkouts of sparsecv in one run.

    python -m experiments.scale.narrow BASE HEAD [--only WORD] [--rounds 1]

BASE and HEAD are folders with a checkout each, as of ``base_and_head``, which prints the table. In
these tables most of the time goes to trees of all sizes, so that this script is run before the plan
of searches changes. The rule is named, as earlier commits have another default rule. Compare
"not proved" with care where the machine is busy: time limits count seconds of the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# Rows, columns, columns of weight ±1, the share of the signal's spread that the noise has, a seed.
TABLES = [
    *((100, 40, 10, 1.0, seed) for seed in (1, 2, 9145)),
    *((100, 45, 10, 1.0, seed) for seed in (1, 2, 9145)),
    (60, 25, 5, 0.5, 11),
    (100, 28, 10, 1.0, 12),
    (300, 30, 6, 0.5, 13),
    (60, 30, 8, 1.0, 14),
    (100, 32, 10, 1.0, 15),
    (1000, 34, 20, 2.0, 16),
    (100, 36, 10, 1.0, 17),
    (200, 38, 10, 1.0, 18),
    (500, 42, 8, 0.5, 19),
    (80, 35, 5, 1.0, 20),
]


def table(n: int, p: int, true: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of columns whose neighbours are correlated by .5, and a response."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    coef = np.zeros(p)
    coef[np.linspace(0, p - 1, true).astype(int)] = np.resize([1.0, -1.0], true)
    signal = X @ coef
    return X, signal + random.standard_normal(n) * signal.std() * noise


def narrow() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Default fits but for the rule, which is that of the least CV error."""
    from sparsecv import SparseRidgeCV

    for one in TABLES:
        X, y = table(*one)
        n, p, true, noise, seed = one
        name = f"narrow: {n} x {p}, {true} true, noise {noise:g}, seed {seed}"
        yield name, lambda X=X, y=y: SparseRidgeCV(rule="minimum", n_jobs=1).fit(X, y)


GROUPS = (narrow,)

if __name__ == "__main__":
    # Checkouts run the cases of this file beside an experiments folder of their own.
    from experiments.common import machine
    from experiments.scale.base_and_head import run_script

    print(machine())
    run_script(__file__, rounds=1)
