"""This script measures CV and test errors on eleven data sets: Tables 3 and 4 of the first paper.

    python -m experiments.paper.tables_three_four [--quick] [--splits N] [data set ...]

Every split keeps 20 % of the rows for the test; the other rows get five folds, which all methods
share. Sparse ridge is fitted three times: with the paper's sizes (from 2 to the largest τ with
τ log τ ≤ min(n, p)), with every size up to min(n, p), and as ``SparseRidgeCV()`` chooses without
being told anything but the folds. The first two search ten γ from 1e-4 to 1e4 and alternate
between γ and τ from the best pair, and take the least CV error (rule "minimum").
The peers are glmnet (α = 0, .1 to 1; its Python port, and cv.glmnet in R), MCP with ncvreg's
defaults (skglm) and L0Learn's algorithm (fastsparsegams, 10 ridge weights), as
experiments/references.py runs them; a peer that is not installed is left out.
``--quick`` takes two splits of the six smallest sets. Rows are appended to
results/tables_three_four.csv, and a run that was interrupted goes on; the summary beside the
paper's numbers is written to results/tables_three_four.txt.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from experiments.common import RESULTS, machine, train_and_test
from experiments.references import PATHS, has_r_glmnet, l0learn, of_least_error, r_glmnet
from experiments.resumable import Table, geometric, printed_numbers, ratios_picture, shown
from sparsecv import SparseRidgeCV
from sparsecv.stability import largest_tau

SETS = (
    *("wine", "autompg", "hitters_log10", "prostate", "servo", "housing2"),
    *("toxicity", "steam", "alcohol2", "topgear", "bardet"),
)
QUICK = ("toxicity", "steam", "alcohol2", "prostate", "servo", "hitters_log10")
OURS = ("paper's sizes", "all sizes", "default")
L0LEARN_WEIGHTS = np.geomspace(1e-4, 10.0, 10)
PEERS = {name: PATHS[name] for name in ("MCP", "glmnet") if name in PATHS}
if "L0Learn" in PATHS:
    PEERS["L0Learn"] = partial(l0learn, L0LEARN_WEIGHTS)
IN_R = "glmnet (R)"
PRINTED_AS = {OURS[0]: "MIO", IN_R: "glmnet"}
COLUMNS = ("columns", "cv_error", "test_error", "seconds", "certified")
# A fit beyond 45 columns spends at most so many seconds on proofs; its estimates come first.
# Doubled, a few more cells are proved, and the errors stay as they are.
PROVING_SECONDS = 5.0


def sparse_ridge(way: str, n: int, p: int, seed: int) -> SparseRidgeCV:
    """The estimator of one of ``OURS`` for n rows and p columns."""
    options: dict[str, Any] = {"cv": KFold(5, shuffle=True, random_state=seed)}
    if way != "default":
        most = largest_tau(min(n, p), p) if way == "paper's sizes" else min(n - 1, p)
        options |= {"taus": np.arange(min(2, most), most + 1), "rule": "minimum"}
        options["time_limit"] = 60.0 if p <= 45 else PROVING_SECONDS
    return SparseRidgeCV(**options)


def run(table: Table, name: str, split: int) -> None:
    """Add the rows of one split that are missing."""
    X, y, Z, z = train_and_test(name, split, 0.2)
    n, p = X.shape
    for way in OURS:
        if not table.has(name, split, way):
            started = time.process_time()
            model = sparse_ridge(way, n, p, split).fit(X, y)
            seconds = time.process_time() - started
            test = float(np.mean((z - model.predict(Z)) ** 2))
            found = {"columns": model.support_.size, "cv_error": model.cv_error_}
            more = {"test_error": test, "seconds": seconds, "certified": float(model.certified_)}
            table.add(name, split, way, **found, **more)
    for way, path in PEERS.items():
        if not table.has(name, split, way):
            started = time.process_time()
            best = of_least_error(path, X, y, Z, (), split)[0]
            seconds = time.process_time() - started
            test = float(np.mean((z - best.predicted) ** 2))
            found = {"columns": best.columns, "cv_error": best.cv_error}
            table.add(name, split, way, **found, test_error=test, seconds=seconds, certified=0.0)
    if not table.has(name, split, IN_R) and has_r_glmnet():
        started = os.times()
        best = r_glmnet(X, y, Z, split)
        ended = os.times()
        test = float(np.mean((z - best.predicted) ** 2))
        found = {"columns": best.columns, "cv_error": best.cv_error, "test_error": test}
        seconds = ended.children_user - started.children_user
        table.add(name, split, IN_R, **found, seconds=seconds, certified=0.0)


def summary(table: Table, names: tuple[str, ...]) -> str:
    """The paper's numbers beside those of the table, and ratios of errors with intervals."""
    lines = [machine(), "", "mean ± standard deviation over the splits; in brackets: the paper", ""]
    peers = *PEERS, *([IN_R] if any(key[2] == IN_R for key in table.known) else [])
    ways = *OURS, *peers
    printed = printed_numbers("Tables 3-4, Optimal Cross-Validation")
    ratios: dict[str, dict[str, np.ndarray]] = {way: {} for way in ways}
    for name in names:
        lines.append(f"{name}: {len(table.splits(name))} splits")
        best = table.column(name, "all sizes", "test_error")
        for way in ways:
            cells = {column: table.column(name, way, column) for column in COLUMNS}
            paper = printed.get((name, PRINTED_AS.get(way, way)), ("", "", ""))
            lines.append(
                f"  {way:<14} CV {shown(cells['cv_error']):<18}{paper[0]:<8} test "
                f"{shown(cells['test_error']):<18}{paper[1]:<8} columns "
                f"{cells['columns'].mean():5.1f} {paper[2]:<6} {cells['seconds'].mean():7.2f}s CPU"
            )
            ratios[way][name] = cells["test_error"] / best
        least = min(peers, key=lambda way: table.column(name, way, "cv_error").mean(), default=None)
        if least is not None:
            other = table.column(name, least, "cv_error")
            own = table.column(name, "all sizes", "cv_error")
            low, high = geometric(own / other)[1:]
            lines.append(
                f"  CV error of all sizes over the least peer's ({least}): "
                f"{own.mean() / other.mean():.3f} [{low:.3f}, {high:.3f}]"
            )
        lines.append("")
    lines.append(
        "test error over that of sparse ridge at all sizes, geometric mean [95 % interval]"
    )
    for way in ways:
        if way != "all sizes":
            each = [
                f"{name} {geometric(r)[0]:.3f} [{geometric(r)[1]:.3f}, {geometric(r)[2]:.3f}]"
                for name, r in ratios[way].items()
                if r.size > 1
            ]
            means = np.array([np.exp(np.log(r).mean()) for r in ratios[way].values()])
            lines.append(
                f"  {way}: all sets {np.exp(np.log(means).mean()):.3f}; " + "; ".join(each)
            )
    ours = sum(table.column(name, way, "seconds").sum() for name in names for way in OURS)
    theirs = sum(table.column(name, way, "seconds").sum() for name in names for way in peers)
    lines += ["", f"CPU seconds in all: sparse ridge {ours:.0f} (three fits), peers {theirs:.0f}"]
    return "\n".join(lines)


def main() -> None:
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    splits = int(arguments[arguments.index("--splits") + 1]) if "--splits" in arguments else 5
    named = tuple(one for one in arguments if one in SETS)
    names = named or (QUICK if quick else SETS)
    file = RESULTS / f"tables_three_four{'_quick' if quick else ''}.csv"
    table = Table(file, COLUMNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            for split in range(2 if quick else splits):
                run(table, name, split)
    text = summary(table, names)
    file.with_suffix(".txt").write_text(text + "\n", encoding="utf-8")
    ratios = {}
    for way in (*OURS, *PEERS):
        both = {
            name: [table.column(name, w, "test_error") for w in (way, OURS[1])] for name in names
        }
        if way != OURS[1]:
            ratios[way] = {name: geometric(a / b) for name, (a, b) in both.items()}
    label = "test error over that of sparse ridge at all sizes"
    ratios_picture(file.with_suffix(".png"), label, ratios)
    print(text)


if __name__ == "__main__":
    main()
