"""This script measures how good the models of least CV error are in the stability paper's example.

    python -m experiments.paper.motivating_example [seeds]     (default 50; some 20 minutes)
    python -m experiments.paper.motivating_example --draws [seeds]     (default 20; some minutes)

The data have n = 50, p = 10 or n = 10, p = 50, with τ_true = 5, ρ = .3 and ν = 1. There are 20 γ in
the paper's range [1e-3, 1e3] (2/γ in the paper's notation), all τ with τ log τ ≤ n, five folds or
leave-one-out, and 10,000 test rows. Every problem is solved to optimality. The script prints by how
much the test error of the chosen model exceeds the least test error over (γ, τ), for the least CV
error, for the stability-regularised choice (λ by nested folds) and for the least bias-corrected
error. The script writes the heatmaps of seed 0 to results/ (Figures 1 and 2 of the paper).

``--draws`` sets the paper's numbers, which come from one draw of the data, beside the distribution
over draws: the excess of the chosen model's test error, and the CV error over the test error. Once
every problem is exact and τ log τ ≤ n; once τ goes to 10, as in the paper's figures, with supports
from forward steps and swaps; and once so with an intercept that every fold fits, where the paper
centres all rows before any is left out. The script writes results/motivating_draws.txt.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from experiments.common import RESULTS, machine
from sparsecv.design.folds import make_folds
from sparsecv.plots.curves import save
from sparsecv.plots.style import new_figure
from sparsecv.stability import SparseRidgeLearner, largest_tau, partial_errors, select
from sparsecv.stability.fold_losses import PartialErrors
from sparsecv.tables.synthetic import make_synthetic

GAMMAS = np.geomspace(2e-3, 2e3, 20)
SETTINGS = ((50, 10), (10, 50))


# What the paper prints for n = 50 and n = 10: the excess of the test error, in %, and for n = 10
# the order of magnitude of CV error over test error.
PRINTED = {
    ("5", 50): (1.1, None),
    ("loo", 50): (0.6, None),
    ("5", 10): (31.7, 1e-1),
    ("loo", 10): (16.4, 1e-7),
}
MOST_IN_FIGURES = 10


def learner_of(
    X: np.ndarray, y: np.ndarray, taus: np.ndarray, solver: str = "exact", intercept: bool = False
) -> SparseRidgeLearner:
    """Models of data that are standardised already; without an intercept, as in the paper."""
    return SparseRidgeLearner(
        X, y, taus, GAMMAS, solver=solver, fit_intercept=intercept, standardize=False
    )


def one_draw(
    folds: str, n: int, p: int, most: int, seed: int, nested: bool = True, *way: Any
) -> tuple[PartialErrors, np.ndarray]:
    """Errors of every (γ, τ) with τ up to ``most`` on drawn data, and errors on test rows."""
    X, y, _ = make_synthetic(n, p, 5, 0.3, 1.0, n_test=10_000, seed=seed)
    taus = np.arange(1, most + 1)
    learner = learner_of(X[:n], y[:n], taus, *way)
    label = make_folds(folds, n, seed=seed).label
    errors = partial_errors(learner, label, learner.size, nested=nested)
    both = learner_of(X, y, taus, *way)
    return errors, both(np.arange(n), range(both.size))[:, n:].mean(axis=1)


def draws(seeds: int) -> None:
    """Print and keep the distribution of the paper's numbers over draws of the data."""
    lines = [machine(), "", f"{seeds} draws; median [least, largest]; the paper has one draw", ""]
    for (folds, n), (excess, order) in PRINTED.items():
        p = dict(SETTINGS)[n]
        ways = (
            (largest_tau(n, p), "exact", False),
            (MOST_IN_FIGURES, "heuristic", False),
            (MOST_IN_FIGURES, "heuristic", True),
        )
        for most, *way in ways:
            found = []
            for seed in range(seeds):
                errors, test = one_draw(folds, n, p, most, seed, False, *way)
                best = int(np.argmin(errors.cv_error))
                over = 100.0 * (test[best] / test.min() - 1.0)
                found.append((over, errors.cv_error[best] / test[best]))
            over, ratio = np.array(found).T
            head = way[0] + (", intercept" if way[1] else "")
            text = f"{folds:<4} n={n:<3} p={p:<3} τ to {most:<3}{head:<21} excess "
            text += (
                f"{np.median(over):6.1f} % [{over.min():.1f}, {over.max():.1f}], paper {excess}, "
            )
            text += f"no more in {np.mean(over <= excess):4.0%};  CV / test "
            text += f"{np.median(ratio):.2g} [{ratio.min():.1g}, {ratio.max():.2g}]"
            lines.append(text + (f", paper {order:g}" if order else ""))
            print(lines[-1], flush=True)
    (RESULTS / "motivating_draws.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> None:
    numbers = [int(one) for one in sys.argv[1:] if one.isdigit()]
    if "--draws" in sys.argv:
        draws(*numbers or [20])
        return
    seeds = numbers[0] if numbers else 50
    print(machine(), "\ntest error of the choice over the least, minus 1, in %\n")
    for folds in ("5", "loo"):
        figure, axes = new_figure(2, 2, figsize=(10.0, 7.0))
        for row, (n, p) in enumerate(SETTINGS):
            started = time.perf_counter()
            gaps: dict[str, list[float]] = {"plain": [], "stability": [], "corrected": []}
            optimism, lambdas = [], []
            for seed in range(seeds):
                taus = np.arange(1, largest_tau(n, p) + 1)
                errors, test = one_draw(folds, n, p, taus.size, seed)
                chosen = select(errors)
                choices = {
                    "plain": int(np.argmin(errors.cv_error)),
                    "stability": chosen.theta,
                    "corrected": int(np.argmin(errors.corrected)),
                }
                for name, c in choices.items():
                    gaps[name].append(test[c] / test.min() - 1.0)
                optimism.append(errors.cv_error.min() / test[choices["plain"]])
                lambdas.append(chosen.lambda_)
                if seed == 0:
                    panels = (("CV error", errors.cv_error), ("test error", test))
                    for panel, (head, values) in zip(axes[row], panels, strict=True):
                        draw(figure, panel, values, taus, f"n = {n}, p = {p}: {head}")
            line = "  ".join(
                f"{name} {100 * np.mean(v):6.2f} (median {100 * np.median(v):5.2f})"
                for name, v in gaps.items()
            )
            print(
                f"{folds:<4} n={n:<3} p={p:<3} {seeds} seeds: {line}  "
                f"plain CV / test error: "
                f"median {np.median(optimism):.3g}; median λ {np.median(lambdas):.3g}; "
                f"{(time.perf_counter() - started) / seeds:.1f} s a seed",
                flush=True,
            )
        figure.suptitle("leave-one-out" if folds == "loo" else "five folds")
        name = f"motivating_example_{folds}.png"
        save(figure, str(RESULTS / name))


def draw(figure: object, panel: object, values: np.ndarray, taus: np.ndarray, title: str) -> None:
    """A heatmap over (γ, τ) with its minimiser."""
    surface = np.log10(np.maximum(values.reshape(GAMMAS.size, taus.size), 1e-12))
    image = panel.imshow(surface, origin="lower", aspect="auto", cmap="viridis_r")  # type: ignore[attr-defined]
    a, b = np.unravel_index(int(np.argmin(values)), surface.shape)
    panel.plot(b, a, "x", color="red", markersize=9)  # type: ignore[attr-defined]
    ticks = np.arange(0, GAMMAS.size, 4)
    panel.set_yticks(ticks, [f"{GAMMAS[t]:.2g}" for t in ticks])  # type: ignore[attr-defined]
    panel.set_xticks(range(taus.size), taus)  # type: ignore[attr-defined]
    panel.set_xlabel("τ")  # type: ignore[attr-defined]
    panel.set_ylabel("γ")  # type: ignore[attr-defined]
    panel.set_title(f"{title} (log10)", fontsize=10)  # type: ignore[attr-defined]
    figure.colorbar(image, ax=panel)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
