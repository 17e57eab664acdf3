"""This script measures stability-regularised CV on 13 data sets: Tables 1, 2 and 4 of its paper.

    python -m experiments.paper.stability_tables [--quick] [--trees|--again] [--splits N] [SET ...]

Every split keeps 10 % of the rows for the test; the other rows get five folds, which all methods
share. Sparse ridge has 20 γ over the paper's range ([1e-3, 1e3], 2/γ in the paper's notation) and
all τ with τ log τ ≤ n: every problem is solved up to 20 columns, beyond them supports come from
forward steps and swaps. "plain" takes the least CV error, "nested" the least CV error + λ·stability
with λ by nested folds (0 and ten values from 1e-4 to 1e4), "corrected" the least bias-corrected CV
error. The final model has γ·n/n_train, as in the paper. The peers are glmnet, MCP, SCAD and
L0Learn's algorithm, as experiments/references.py runs them; a peer that is not installed is left
out. ``--trees`` measures CART and XGBoost instead (Table 2): all their candidates are fitted, and
chosen among by coordinate descent from depth 5, as in the paper.

``--again`` computes sparse ridge a second time by other code, for the first ten splits: "rounding"
rounds the relaxation as the paper does (sets to 200 columns), and "enumerated" is Algorithm 1 in
plain numpy over all supports (sets to nine columns), which uses nothing of sparsecv.

``--quick`` takes two splits of the six smallest sets; the full table of sparse ridge has 50
splits, five times the paper's, with peers in the first ten, and that of the trees the paper's 50.
Rows are appended to results/stability_tables.csv (or stability_trees.csv), and a run that was
interrupted goes on. The summary beside the paper's numbers has 95 % intervals from 2,000 bootstrap
samples of the splits, and what ten splits drawn at random would have given.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.tree import DecisionTreeRegressor

from experiments.common import RESULTS, machine, train_and_test
from experiments.references import PATHS, of_least_error
from experiments.resumable import Table, printed_numbers, ratios_picture, shown
from sparsecv.design.folds import make_folds
from sparsecv.stability import SparseRidgeLearner, largest_tau, partial_errors, select
from sparsecv.stability.learners import EstimatorLearner
from sparsecv.stability.losses import LOSSES

OVERDETERMINED = (
    *("wine", "housing", "autompg", "hitters_log10", "prostate", "servo"),
    *("toxicity", "steam", "alcohol2"),
)
# Steam's test has two rows, so that its mean test errors vary most.
WITHOUT_STEAM = tuple(name for name in OVERDETERMINED if name != "steam")
UNDERDETERMINED = ("topgear", "bardet", "vessel", "riboflavin")
SETS = OVERDETERMINED + UNDERDETERMINED
QUICK = ("toxicity", "steam", "alcohol2", "prostate", "servo", "hitters_log10")
GAMMAS = np.geomspace(2e-3, 2e3, 20)
K = 5
RULES = ("plain", "nested", "corrected")
PEERS = tuple(way for way in ("MCP", "SCAD", "glmnet", "L0Learn") if way in PATHS)
TREES = ("CART", "XGBoost")
# ``candidate`` is the number of the chosen hyperparameters; equal numbers mean an equal choice.
COLUMNS = ("columns", "cv_error", "test_error", "seconds", "candidate")
BOOTSTRAP_SAMPLES = 2000
# Splits in which other packages and the second computations run, too; the paper has as many.
SPLITS_WITH_PEERS = 10
# Sets on which sparse ridge is computed a second time, and how.
AGAIN = {"rounding": (*OVERDETERMINED, "bardet"), "enumerated": ("prostate", "toxicity", "steam")}
LAMBDAS = (0.0, *np.logspace(-4.0, 4.0, 10).tolist())


def sparse_ridge(table: Table, name: str, split: int, solver: str = "auto") -> None:
    """Add the three choices of sparse ridge, which come from the same fits."""
    X, y, Z, z = train_and_test(name, split, 0.1)
    n, prefix = y.size, "" if solver == "auto" else f"{solver}, "
    started = time.process_time()
    taus = np.arange(1, largest_tau(n, X.shape[1]) + 1)
    learner = SparseRidgeLearner(X, y, taus, GAMMAS, solver=solver)
    errors = partial_errors(learner, make_folds(str(K), n, seed=split).label, learner.size)
    nested = select(errors)
    seconds = time.process_time() - started
    chosen = {
        "plain": (int(np.argmin(errors.cv_error)), float(errors.cv_error.min())),
        "nested": (nested.theta, float(nested.nested_error[nested.best])),
        "corrected": (int(np.argmin(errors.corrected)), float(errors.corrected.min())),
    }
    both = np.vstack([X, Z]), np.append(y, z), taus, GAMMAS * K / (K - 1)
    every = SparseRidgeLearner(*both, solver=learner.solver)
    picked = sorted({c for c, _ in chosen.values()})
    predicted = dict(zip(picked, every.predictions(np.arange(n), picked)[:, n:], strict=True))
    for rule, (c, error) in chosen.items():
        test = float(np.mean((z - predicted[c]) ** 2))
        size = float(taus[c % taus.size])
        found = {"columns": size, "cv_error": error, "test_error": test}
        table.add(name, split, f"{prefix}{rule}", **found, seconds=seconds, candidate=c)


def all_supports(X: np.ndarray, y: np.ndarray, Z: np.ndarray, most: int, gammas: np.ndarray) -> Any:
    """Predictions at Z of the best ridge fit of every γ and size, by trying every support.

    Returns: An array (γ, size, rows of Z), γ·size first in the order of ``SparseRidgeLearner``.
    """
    mean, spread, level = X.mean(axis=0), X.std(axis=0), y.mean()
    spread = np.where(X.min(axis=0) < X.max(axis=0), spread, np.inf)
    A, B, b = (X - mean) / spread, (Z - mean) / spread, y - level
    least = np.full((gammas.size, most), np.inf)
    predicted = np.full((gammas.size, most, len(Z)), level)
    for size in range(1, most + 1):
        supports = np.array(list(combinations(range(X.shape[1]), size)))
        gram = (A.T @ A)[supports[:, :, None], supports[:, None, :]]
        moments = (A.T @ b)[supports]
        for a, gamma in enumerate(gammas):
            coef = np.linalg.solve(gram + gamma / 2.0 * np.eye(size), moments[..., None])[..., 0]
            values = b @ b - np.einsum("si,si->s", moments, coef)
            best = int(values.argmin())
            if values[best] < least[a, size - 1]:
                least[a, size - 1] = values[best]
                predicted[a, size - 1] = level + B[:, supports[best]] @ coef[best]
        if size > 1:  # a smaller support may be better where columns have no use
            worse = least[:, size - 1] > least[:, size - 2]
            least[worse, size - 1] = least[worse, size - 2]
            predicted[worse, size - 1] = predicted[worse, size - 2]
    return predicted.reshape(-1, len(Z))


def enumerated(table: Table, name: str, split: int) -> None:
    """Add the plain and the nested choice by Algorithm 1 in plain numpy, over all supports."""
    X, y, Z, z = train_and_test(name, split, 0.1)
    n, started = y.size, time.process_time()
    most = largest_tau(n, X.shape[1])
    label = make_folds(str(K), n, seed=split).label
    losses = {}  # by the folds that are left out: squared errors (candidates, rows)
    for gone in [(), *((t,) for t in range(K)), *combinations(range(K), 2)]:
        kept = ~np.isin(label, gone)
        losses[gone] = np.square(y - all_supports(X[kept], y[kept], X, most, GAMMAS))

    def criteria(gone: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """CV error and stability with an outer fold left out, or none."""
        rest, rows = [t for t in range(K) if t not in gone], ~np.isin(label, gone)
        less = [losses[tuple(sorted((*gone, t)))] for t in rest]
        held = np.mean([e[:, label == t].mean(axis=1) for t, e in zip(rest, less, strict=True)], 0)
        change = [np.abs(e - losses[gone])[:, rows].mean(axis=1) for e in less]
        return held, np.max(change, axis=0)

    inner = [criteria((t,)) for t in range(K)]
    outer = []
    for weight in LAMBDAS:
        at = [int(np.argmin(held + weight * change)) for held, change in inner]
        outer.append(np.mean([losses[(t,)][at[t], label == t].mean() for t in range(K)]))
    best = int(np.argmin(outer))
    held, change = criteria(())
    chosen = {
        "plain": (int(np.argmin(held)), float(held.min())),
        "nested": (int(np.argmin(held + LAMBDAS[best] * change)), float(outer[best])),
    }
    seconds = time.process_time() - started
    final = all_supports(X, y, Z, most, GAMMAS * K / (K - 1))
    for rule, (c, error) in chosen.items():
        test = float(np.mean((z - final[c]) ** 2))
        found = {"columns": 1.0 + c % most, "cv_error": error, "test_error": test}
        table.add(name, split, f"enumerated, {rule}", **found, seconds=seconds, candidate=c)


def peer(table: Table, name: str, split: int, way: str) -> None:
    """Add the model of least CV error of one peer."""
    X, y, Z, z = train_and_test(name, split, 0.1)
    started = time.process_time()
    best = of_least_error(PATHS[way], X, y, Z, (), split)[0]
    seconds = time.process_time() - started
    test = float(np.mean((z - best.predicted) ** 2))
    found = {"columns": best.columns, "cv_error": best.cv_error, "test_error": test}
    table.add(name, split, way, **found, seconds=seconds, candidate=-1)


def tree_learner(way: str) -> tuple[Any, dict[str, list[Any]]]:
    """CART or XGBoost with the grid of the paper's Section 3.2."""
    depths = list(range(1, 11))
    if way == "CART":
        grid = {"max_depth": depths, "min_samples_split": list(range(2, 11))}
        return DecisionTreeRegressor(random_state=0), grid
    from xgboost import XGBRegressor

    parts = [i / 100 for i in range(1, 101)]
    return XGBRegressor(random_state=0, n_jobs=1), {"max_depth": depths, "subsample": parts}


def descended(criterion: np.ndarray) -> int:
    """The candidate that coordinate descent from depth 5 chooses by the criterion of all of them.

    criterion, shape (depth, other hyperparameter): The descent minimises over the other
        hyperparameter first, then over depths and so on, until its point comes back.
    """
    point, seen = (4, 0), set[tuple[int, int]]()
    best, least = point, np.inf
    for _ in range(10):
        before = point
        for axis in (1, 0):
            line = criterion[point[0]] if axis else criterion[:, point[1]]
            place = int(np.argmin(line))
            point = (point[0], place) if axis else (place, point[1])
            if criterion[point] < least:
                best, least = point, criterion[point]
        if point == before or point in seen:
            break
        seen.add(point)
    return int(np.ravel_multi_index(best, criterion.shape))


def tree(table: Table, name: str, split: int, way: str) -> None:
    """Add the plain and the stability-regularised choice of CART or XGBoost."""
    X, y, Z, z = train_and_test(name, split, 0.1)
    estimator, grid = tree_learner(way)
    shape, candidates = tuple(map(len, grid.values())), list(ParameterGrid(grid))
    started = time.process_time()
    learner = EstimatorLearner(estimator, candidates, X, y, LOSSES["squared"])
    errors = partial_errors(learner, make_folds(K, y.size, seed=split).label, len(candidates))

    def down(values: np.ndarray) -> int:
        return descended(values.reshape(shape))

    outer = []
    for weight in LAMBDAS:
        inner = errors.inner + weight * errors.inner_stability
        outer.append(np.mean([errors.held_out[down(inner[:, t]), t] for t in range(K)]))
    best = int(np.argmin(outer))
    plain = down(errors.cv_error)
    chosen = {
        "plain": (plain, float(errors.cv_error[plain])),
        "nested": (down(errors.cv_error + LAMBDAS[best] * errors.stability), float(outer[best])),
    }
    seconds = time.process_time() - started
    for rule, (c, error) in chosen.items():
        model = clone(estimator).set_params(**candidates[c]).fit(X, y)
        test = float(np.mean((z - model.predict(Z)) ** 2))
        found = {"columns": np.nan, "cv_error": error, "test_error": test}
        candidate = 1000 * (c // shape[1]) + c % shape[1]
        table.add(name, split, f"{way}, {rule}", **found, seconds=seconds, candidate=candidate)


def interval(samples: np.ndarray) -> str:
    """The 95 % interval of bootstrapped figures, in %."""
    low, high = np.quantile(samples, (0.025, 0.975))
    return f"[{low:.1f}, {high:.1f}]"


def figures(
    table: Table, names: tuple[str, ...], prefix: str, splits: int | None = None
) -> list[str]:
    """The figures of the paper's text: improvement, agreement and disappointment.

    splits: Only so many splits count; None: all.
    """
    values = {}
    for name in names:
        rules = [f"{prefix}{rule}" for rule in ("plain", "nested")]
        both = [
            split
            for split, known in table.splits(name).items()
            if known >= set(rules) and (splits is None or split < splits)
        ]
        values[name] = np.array(
            [
                [[table.known[name, split, rule][key] for key in COLUMNS[1:]] for rule in rules]
                for split in sorted(both)
            ]
        )  # splits × (plain, nested) × numbers

    def improvement(chosen: dict[str, np.ndarray], among: tuple[str, ...]) -> float:
        kept = [chosen[name][:, :, 1].mean(axis=0) for name in among if name in chosen]
        ratios = [both[1] / both[0] for both in kept]
        return float(100.0 * (1.0 - np.exp(np.mean(np.log(ratios))))) if ratios else np.nan

    def disappointment(chosen: dict[str, np.ndarray], rule: int) -> float:
        each = [one[:, rule, 0].mean() / one[:, rule, 1].mean() for one in chosen.values()]
        return float(100.0 * (1.0 - np.exp(np.mean(np.log(each)))))

    def agreement(chosen: dict[str, np.ndarray]) -> float:
        same = [np.mean(one[:, 0, 3] == one[:, 1, 3]) for one in chosen.values()]
        return float(100.0 * np.mean(same))

    asked = {
        "test error of nested below plain, all sets": lambda c: improvement(c, SETS),
        "... overdetermined sets": lambda c: improvement(c, OVERDETERMINED),
        "... overdetermined sets without Steam": lambda c: improvement(c, WITHOUT_STEAM),
        "... underdetermined sets": lambda c: improvement(c, UNDERDETERMINED),
        "CV error below test error, plain": lambda c: disappointment(c, 0),
        "nested CV error below test error, nested": lambda c: disappointment(c, 1),
        "nested and plain choose the same": agreement,
    }
    random = np.random.default_rng(0)
    drawn, few = (
        [
            {name: one[random.integers(0, len(one), size or len(one))] for name, one in pairs}
            for _ in range(BOOTSTRAP_SAMPLES)
        ]
        for size, pairs in ((None, values.items()), (SPLITS_WITH_PEERS, values.items()))
    )
    lines = []
    for head, figure in asked.items():
        point = figure(values)
        if np.isfinite(point):
            spread = interval(np.array([figure(one) for one in drawn]))
            chance = interval(np.array([figure(one) for one in few]))
            lines.append(f"  {head:<46}{point:7.1f} %  {spread:<15} ten splits {chance}")
    return lines


def summary(table: Table, names: tuple[str, ...], ways: tuple[str, ...], title: str) -> str:
    """The paper's numbers beside those of the table."""
    printed = printed_numbers(f"{title}, Stability Regularized Cross-Validation")
    lines = [machine(), "", "mean ± standard deviation over the splits; in brackets: the paper", ""]
    for name in names:
        lines.append(f"{name}: {len(table.splits(name))} splits")
        for way in ways:
            cells = {column: table.column(name, way, column) for column in COLUMNS}
            if cells["cv_error"].size:
                paper = printed.get((name, way), ("", "", ""))
                size = "" if np.isnan(cells["columns"][0]) else f"{cells['columns'].mean():5.1f}"
                lines.append(
                    f"  {way:<16} CV {shown(cells['cv_error']):<18}{paper[0]:<9} test "
                    f"{shown(cells['test_error']):<18}{paper[1]:<9} columns {size:>5} "
                    f"{paper[2]:<7}{cells['seconds'].mean():7.2f} s of CPU"
                )
        lines.append("")
    return "\n".join(lines)


def same_choices(table: Table, prefix: str) -> str:
    """How often the second computation takes the same candidate, and how far errors differ."""
    equal, apart = [], [0.0]
    for (name, split, method), row in table.known.items():
        if method.startswith(prefix) and not method.endswith("corrected"):
            other = table.known[name, split, method.removeprefix(prefix)]
            equal.append(row["candidate"] == other["candidate"])
            apart.append(abs(row["cv_error"] / other["cv_error"] - 1.0))
    text = f"the same candidate in {100 * np.mean(equal):.1f} % of {len(equal)} choices"
    return f"  {text}; errors differ by {100 * np.median(apart):.2g} % (median)"


def mean_ratio(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """The ratio of two means over the same splits, with its bootstrapped 95 % interval."""
    at = np.random.default_rng(0).integers(0, one.size, (BOOTSTRAP_SAMPLES, one.size))
    drawn = one[at].mean(axis=1) / other[at].mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975)).tolist()
    return float(one.mean() / other.mean()), low, high


def pictures(table: Table, names: tuple[str, ...], heads: Iterable[str], path: Path) -> None:
    """Draw test errors of the nested choice over those of the plain choice."""
    series = {}
    for prefix in heads:
        found = {}
        for name in names:
            rules = [f"{prefix}{rule}" for rule in ("nested", "plain")]
            if all(table.column(name, rule, "test_error").size > 1 for rule in rules):
                found[name] = mean_ratio(*(table.column(name, r, "test_error") for r in rules))
        series[prefix.removesuffix(", ") or "sparse ridge"] = found
    ratios_picture(path, "test error of the nested choice over that of the plain choice", series)


def fill(table: Table, names: tuple[str, ...], splits: int, learners: tuple[str, ...]) -> None:
    """Add what is missing: of the trees in ``learners``, else of sparse ridge, then its peers."""
    every = [(split, name) for split in range(splits) for name in names]
    for split, name in every:
        for way in learners:
            if not table.has(name, split, f"{way}, nested"):
                tree(table, name, split, way)
        if not learners and not table.has(name, split, RULES[-1]):
            sparse_ridge(table, name, split)
    for split, name in every[: 0 if learners else SPLITS_WITH_PEERS * len(names)]:
        for way in PEERS:
            if not table.has(name, split, way):
                peer(table, name, split, way)


def fill_again(table: Table, names: tuple[str, ...], splits: int) -> None:
    """Add what is missing of the second computations."""
    for split in range(min(splits, SPLITS_WITH_PEERS)):
        for solver, among in AGAIN.items():
            for name in (one for one in names if one in among):
                if table.has(name, split, f"{solver}, nested"):
                    continue
                if solver == "enumerated":
                    enumerated(table, name, split)
                else:
                    sparse_ridge(table, name, split, solver)


def main() -> None:
    arguments = sys.argv[1:]
    quick, trees = "--quick" in arguments, "--trees" in arguments
    splits = 2 if quick else 50
    if "--splits" in arguments:
        splits = int(arguments[arguments.index("--splits") + 1])
    names = tuple(one for one in arguments if one in SETS) or (QUICK if quick else SETS)
    learners = (tuple(way for way in TREES if way in arguments) or TREES) if trees else ()
    stem = "stability_trees" if trees else "stability_tables"
    file = RESULTS / f"{stem}{'_quick' if quick else ''}.csv"
    table = Table(file, COLUMNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "--again" in arguments:
            fill_again(table, names, splits)
        else:
            fill(table, names, splits, learners)
    if trees:
        ways = tuple(f"{way}, {rule}" for way in learners for rule in RULES[:2])
        text = summary(table, names, ways, "Table 2")
        heads = {f"{way}, ": way for way in learners}
    else:
        text = summary(table, names, (*RULES, *PEERS), "Tables 1 and 4")
        known = {method.partition(", ")[0] for _, _, method in table.known}
        heads = {"": "sparse ridge"}
        heads |= {f"{way}, ": f"sparse ridge again, {way}" for way in AGAIN if way in known}
    for prefix, head in heads.items():
        among = tuple(
            n for n in names if any(k[::2] == (n, f"{prefix}nested") for k in table.known)
        )
        lines = [f"{head}, with 95 % intervals", *figures(table, among, prefix)]
        if prefix and not trees:
            lines.append(same_choices(table, prefix))
            again = 1 + max(k[1] for k in table.known if k[2].startswith(prefix))
            with_first = figures(table, among, "", again)
            lines += ["  the same sets and splits as first computed:", *with_first]
        text += "\n".join(["", *lines, ""])
    file.with_suffix(".txt").write_text(text, encoding="utf-8")
    pictures(table, names, heads, file.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
