"""The problems on which the solver benchmark and the comparison of heuristics run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.common import design_of, rows
from sparsecv.solvers import SparseRidgeProblem

# Synthetic problems (n, p, τ, ρ, ν, γ); each is drawn with five seeds.
SYNTHETIC = (
    (200, 40, 10, 0.7, 1.0, 0.07),
    (500, 100, 10, 0.5, 5.0, 1.0),
    (500, 100, 20, 0.7, 1.0, 0.1),
    (1000, 200, 20, 0.7, 1.0, 0.1),
    (2000, 500, 20, 0.5, 1.0, 0.1),
    (100, 100, 5, 0.5, 5.0, 1.0),
    (100, 100, 5, 0.5, 1.0, 10.0),
    (250, 500, 10, 0.5, 5.0, 10.0),
    (500, 1000, 10, 0.5, 5.0, 20.0),
)
SEEDS = 5
# Problems on real data: data set, γ, τ.
REAL = (
    ("servo", 0.1, 10),
    ("autompg", 0.1, 12),
    ("housing2", 100.0, 5),
    ("housing2", 100.0, 20),
    ("housing2", 10.0, 5),
    ("bardet", 10.0, 3),
    ("bardet", 100.0, 5),
    ("topgear", 100.0, 3),
    ("topgear", 10.0, 3),
    ("vessel", 100.0, 5),
    ("riboflavin", 100.0, 3),
)


@dataclass(frozen=True)
class Instance:
    """A data set (or a synthetic draw) at one (γ, τ), columns of unit variance."""

    data: str
    gamma: float
    tau: int

    @property
    def name(self) -> str:
        return f"{self.data} γ={self.gamma:g} τ={self.tau}"

    @property
    def group(self) -> str:
        """Name of the table's row; all seeds of a synthetic setting share one row."""
        if not self.data.startswith("synthetic:"):
            return self.name
        n, p, tau, rho, nu, _ = self.data.removeprefix("synthetic:").split(",")
        return f"n={n} p={p} τ={tau} ρ={rho} ν={nu} γ={self.gamma:g}"

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Centred columns of unit variance, centred response."""
        X, y = rows(self.data)
        return design_of(X, y).apply(X, y)

    def problem(self) -> SparseRidgeProblem:
        return SparseRidgeProblem(*self.rows(), gamma=self.gamma, tau=self.tau)


def benchmark() -> list[Instance]:
    """Every instance: first the first seed of all settings, then real data, then other seeds."""
    real = [Instance(*one) for one in REAL]
    drawn = [
        [
            Instance(f"synthetic:{n},{p},{tau},{rho:g},{nu:g},{seed}", gamma, tau)
            for n, p, tau, rho, nu, gamma in SYNTHETIC
        ]
        for seed in range(SEEDS)
    ]
    return drawn[0] + real + [one for draw in drawn[1:] for one in draw]
