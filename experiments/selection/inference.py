"""This script measures the level, coverage and power of p-values that know about the search.

    python -m experiments.selection.inference DRAWS.csv [--draws N] [--cells WORD ...] [--time]

A draw is a made table: normal columns with correlations .5^|i−j|, and errors of variance 1. Under
the truth "null" no column matters. Under "two" the coefficients of two columns are 5 and 3.5
divided by the square root of the number of rows. The columns are selected as the best subset of
size 3, by AIC or by BIC, and of each selection that is not empty one column is drawn. The ways to
test it are:

    sigma known, sigma estimated: SparseRidge.inference
    t-test: the t-test of the selected model, which does not know about the search
    splitting: selection on half of the rows, and the t-test on the other half

"rejected" is the share of p-values below .05 among drawn columns whose coefficient within the
selected model is 0: those that do not matter, in models that hold all that matter. The aim is .05.
"covered" is the share of 95 % intervals that hold the coefficient of the expected response within
the selected model. "infinite" is the share of intervals with an infinite end, and "found" the mean
number of columns, of the two that matter, that are selected with a p-value below .05. Numbers in
brackets are standard errors.

The cells "cv" show why a choice by cross-validation is refused. The size of the model is the one of
least five-fold error at γ = 0, and the test takes this size for given, with a known sigma.

A run goes on where an earlier one stopped: DRAWS.csv keeps what is known of every draw. --cells
draws only the cells whose names hold one of the words, and --draws only so many tables of each.
--time measures CPU seconds of real tables in place of all that.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from experiments.common import machine, rows
from experiments.resumable import Table
from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.selection.truncated_normal import Truncated

LEVEL, AIM = 0.95, 0.05
# Coefficients of the columns that matter, times the square root of the number of rows.
EFFECTS = 5.0, 3.5
VALUES = "p", "covered", "infinite", "null", "found", "size"
NAN = dict.fromkeys(VALUES, np.nan)


class Cell(NamedTuple):
    """Tables of one kind, and how the columns are selected.

    choice: "size 3", "aic", "bic", or "cv" for the size of least cross-validation error.
    """

    n: int
    p: int
    truth: str
    choice: str
    draws: int

    @property
    def name(self) -> str:
        """What the rows of the cell have in the file of draws."""
        return f"n{self.n} p{self.p} {self.truth} {self.choice}"


CELLS = [
    Cell(n, p, truth, choice, draws)
    for n, p, draws in ((60, 12, 2000), (200, 30, 700))
    for choice in ("size 3", "aic", "bic")
    for truth in ("null", "two")
]
CELLS += [
    Cell(n, p, "null", "cv", draws) for p, draws in ((10, 1000), (30, 300)) for n in (50, 100, 400)
]
WAYS = "sigma known", "sigma estimated", "t-test", "splitting"


class Tested(NamedTuple):
    """p-values and 95 % intervals, shape (k,) and (k, 2), of the coefficients of k columns."""

    p: np.ndarray
    ends: np.ndarray


def drawn(cell: Cell, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A made table, and its true coefficients."""
    rng = np.random.default_rng([draw, cell.n, cell.p, cell.truth == "two"])
    apart = np.abs(np.subtract.outer(np.arange(cell.p), np.arange(cell.p)))
    X = rng.standard_normal((cell.n, cell.p)) @ np.linalg.cholesky(0.5**apart).T
    beta = np.zeros(cell.p)
    if cell.truth == "two":
        beta[[0, cell.p // 2]] = np.array(EFFECTS) / np.sqrt(cell.n)
    return X, X @ beta + rng.standard_normal(cell.n), beta


def selected(cell: Cell, X: np.ndarray, y: np.ndarray) -> SparseRidge:
    """A least-squares fit whose columns are selected as the cell says."""
    tau = {"size 3": 3}.get(cell.choice, cell.choice)
    if cell.choice == "cv":
        how = {"gammas": [0.0], "rule": "minimum", "random_state": 0}
        tau = SparseRidgeCV(nested=False, **how).fit(X, y).tau_
    return SparseRidge(tau=tau, gamma=0.0).fit(X, y)


def on_columns(X: np.ndarray, y: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Least-squares coefficients of some columns, beside an intercept."""
    A = np.column_stack([np.ones(len(X)), X[:, support]])
    return np.linalg.lstsq(A, y, rcond=None)[0][1:]


def t_test(X: np.ndarray, y: np.ndarray, support: np.ndarray) -> Tested:
    """The t-tests of a least-squares fit of some columns."""
    A = np.column_stack([np.ones(len(X)), X[:, support]])
    coef = np.linalg.lstsq(A, y, rcond=None)[0]
    free = len(X) - A.shape[1]
    variance = np.sum((y - A @ coef) ** 2) / free
    error = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))[1:]
    p = 2.0 * student.sf(np.abs(coef[1:] / error), free)
    half = student.ppf(0.5 + LEVEL / 2.0, free) * error
    return Tested(p, np.column_stack([coef[1:] - half, coef[1:] + half]))


def selective(model: SparseRidge, spread: float | None) -> dict[str, Tested]:
    """What ``inference`` says with the known sigma 1 and, from the same search, with another.

    spread: The estimated sigma; None to leave it out.
    """
    frame = model.inference(LEVEL, sigma=1.0)
    assert frame.attrs["complete"]
    found = {"sigma known": Tested(frame["p_high"].to_numpy(), frame[["low", "high"]].to_numpy())}
    if spread is not None:
        p, ends = [], []
        for name, row in frame.iterrows():
            error = row["std_error"] * spread
            region = np.array(frame.attrs["regions"][name]) / error
            variable = Truncated(row["coef"] / error, region, region)
            p.append(variable.p_value()[1])
            ends.append(np.multiply(variable.interval(LEVEL), error))
        found["sigma estimated"] = Tested(np.array(p), np.array(ends))
    return found


def figures(
    cell: Cell, draw: int, tested: Tested, support: np.ndarray, X: np.ndarray, beta: np.ndarray
) -> dict[str, float]:
    """What one way says of one column that is drawn, and of the columns that matter.

    X: The rows on which the test was made.
    """
    at = int(np.random.default_rng([draw, cell.p]).integers(support.size))
    matter = np.flatnonzero(beta)
    within = on_columns(X, X @ beta, support)[at]
    low, high = tested.ends[at]
    return {
        "p": tested.p[at],
        "covered": float(low <= within <= high),
        "infinite": float(np.isinf([low, high]).any()),
        "null": float(np.isin(matter, support).all() and beta[support[at]] == 0.0),
        "found": float((tested.p[np.isin(support, matter)] < AIM).sum()),
        "size": float(support.size),
    }


def measured(cell: Cell, draw: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield what every way says of a draw; NaN where nothing is selected."""
    X, y, beta = drawn(cell, draw)
    model, half = selected(cell, X, y), cell.n // 2
    support = model.support_
    empty = NAN | {"found": 0.0, "size": 0.0}
    whole = cell.choice != "cv"
    if not support.size:
        for way in WAYS[:3]:
            yield way, empty
    else:
        A = np.column_stack([np.ones(cell.n), X])
        left = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
        spread = float(np.sqrt(left @ left / (cell.n - A.shape[1]))) if whole else None
        ways = selective(model, spread) | {"t-test": t_test(X, y, support)}
        for way, tested in ways.items():
            yield way, figures(cell, draw, tested, support, X, beta)
    if whole:
        support = selected(cell, X[:half], y[:half]).support_
        if not support.size:
            yield "splitting", empty
            return
        tested = t_test(X[half:], y[half:], support)
        yield "splitting", figures(cell, draw, tested, support, X[half:], beta)


def share(values: np.ndarray) -> str:
    """A share with its standard error; a dash for fewer than 50 values."""
    if values.size < 50:
        return "–"
    mean = values.mean()
    return f"{mean:.3f} ({np.sqrt(mean * (1.0 - mean) / values.size):.3f})"


def summary(cells: list[Cell], known: Table) -> Iterator[str]:
    """Yield the lines of the table of all cells of which draws are known."""
    heads = "draws", "selected", "null", "rejected", "covered", "infinite", "found", "size"
    widths = (7, 10, 7, 15, 15, 10, 7, 7)
    for n, p in dict.fromkeys((cell.n, cell.p) for cell in cells):
        yield f"\n{n} rows, {p} columns"
        head = "".join(f"{one:>{w}}" for one, w in zip(heads, widths, strict=True))
        yield f"{'choice':<8}{'truth':<6}{'way':<16}{head}"
        for cell in cells:
            for way in WAYS:
                p_value, covered, infinite, null, found, size = (
                    known.column(cell.name, way, name) for name in VALUES
                )
                if (cell.n, cell.p) != (n, p) or not p_value.size:
                    continue
                there = ~np.isnan(p_value)
                rejected = p_value[null == 1.0] < AIM
                cells_of_row = (
                    f"{p_value.size:,}",
                    f"{there.sum():,}",
                    f"{rejected.size:,}",
                    share(rejected),
                    share(covered[there]),
                    f"{infinite[there].mean():.3f}" if there.any() else "",
                    f"{found.mean():.2f}" if cell.truth == "two" else "",
                    f"{size.mean():.1f}",
                )
                row = "".join(f"{one:>{w}}" for one, w in zip(cells_of_row, widths, strict=True))
                yield f"{cell.choice:<8}{cell.truth:<6}{way:<16}{row}"


def timed() -> Iterator[str]:
    """Yield the lines of the table of CPU seconds."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 40))
    made = {
        "40 columns, no effect": (X, rng.standard_normal(200)),
        "40 columns, five matter": (X, X[:, :5].sum(axis=1) / 3.0 + rng.standard_normal(200)),
    }
    tables = [(name, *rows(name), "bic") for name in ("diabetes10", "hitters", "autompg")]
    tables += [(name, *table, 5) for name, table in made.items()]
    yield f"{'table':<25}{'rows':>6}{'columns':>9}{'choice':>8}{'size':>6}" + "".join(
        f"{head:>12}" for head in ("fit, s", "test, s", "nodes", "widest p")
    )
    for name, X, y, tau in tables:
        X = X[:, X.std(axis=0) > 0.0]
        for _ in range(2):  # The first run may compile.
            started = time.process_time()
            model = SparseRidge(tau=tau, gamma=0.0, time_limit=600.0).fit(X, y)
            fitted = time.process_time()
            found = model.inference()
            ended = time.process_time()
        widest = float((found["p_high"] - found["p_low"]).max())
        cells = f"{fitted - started:.3f}", f"{ended - fitted:.3f}", f"{found.attrs['n_nodes']:,}"
        yield f"{name:<25}{len(y):>6}{X.shape[1]:>9}{tau:>8}{len(found):>6}" + "".join(
            f"{cell:>12}" for cell in (*cells, f"{widest:.1g}")
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=Path("inference_draws.csv"))
    parser.add_argument("--draws", type=int, default=10**6)
    parser.add_argument("--cells", nargs="+", default=[""])
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine(), flush=True)
    if options.time:
        for line in timed():
            print(line, flush=True)
        return
    cells = [cell for cell in CELLS if any(word in cell.name for word in options.cells)]
    known, started = Table(options.file, VALUES), time.process_time()
    # All cells get a part of their draws before any gets more.
    most = min(options.draws, max(cell.draws for cell in cells))
    for first in range(0, most, 100):
        for cell in cells:
            for draw in range(first, min(first + 100, cell.draws, most)):
                if not known.has(cell.name, draw, "t-test"):
                    for way, values in measured(cell, draw):
                        known.add(cell.name, draw, way, **values)
    for line in summary(cells, known):
        print(line)
    print(f"\n{time.process_time() - started:.0f} CPU seconds in this run")


if __name__ == "__main__":
    main()
