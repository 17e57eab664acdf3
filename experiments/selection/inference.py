"""This script measures the level, coverage and power of p-values that know about the search.

    python -m experiments.selection.inference DRAWS.csv [OPTION ...]

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
the selected model: it is in the interval where its own two-sided test does not reject it, and only
the first draws of a cell compute the interval as well. Of these, "differ" is the number in which
the interval and the test do not agree, and "infinite" the share with an infinite end. "found" is
the mean number of columns, of the two that matter, that are selected with a p-value below .05.
Numbers in brackets are standard errors.

The cells "cv" show why a choice by cross-validation is refused. The size of the model is the one of
least five-fold error at γ = 0, and the test takes this size for given, with a known sigma.

A run goes on where an earlier one stopped: DRAWS.csv keeps what is known of every draw. --cells
draws only the cells whose names hold one of the words, --ways tests only in these ways, and --draws
draws only so many tables of each.
--seed draws other tables, for which another file is to be named.

In place of all that --time measures CPU seconds of real tables, --power what a known σ is worth
where columns matter much, and --unequal the level where errors have unequal variances; --draws says
how many tables each of their cells has (400).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from experiments.common import machine, rows
from experiments.resumable import Table
from sparsecv import SparseRidge, SparseRidgeCV
from sparsecv.selection.inference import infer, inferred, tests_of

LEVEL, AIM = 0.95, 0.05
# Coefficients of the columns that matter, times the square root of the number of rows.
EFFECTS = 5.0, 3.5
VALUES = "p", "covered", "infinite", "differ", "null", "found", "size"
NAN = dict.fromkeys(VALUES, np.nan)


class Cell(NamedTuple):
    """Tables of one kind, and how the columns are selected.

    choice: "size 3", "aic", "bic", or "cv" for the size of least cross-validation error.
    seed: Tables of another seed are other tables.
    """

    n: int
    p: int
    truth: str
    choice: str
    draws: int
    seed: int = 0

    @property
    def name(self) -> str:
        """What the rows of the cell have in the file of draws."""
        return f"n{self.n} p{self.p} {self.truth} {self.choice}"

    def ways(self, draw: int) -> list[str]:
        """The ways to test a draw: splitting for the first 2,000 alone, which show its power."""
        if self.choice == "cv":
            return ["sigma known", "t-test"]
        return [way for way in WAYS if way != "splitting" or draw < 2000]

    def computes_interval(self, draw: int) -> bool:
        """Whether a draw computes the interval: searches for its ends may take .1 to .5 s."""
        return draw < (1000 if self.p < 20 else 300)


WAYS = "sigma known", "sigma estimated", "t-test", "splitting"
CELLS = [
    Cell(n, p, truth, choice, 20_000)
    for n, p in ((60, 12), (200, 30))
    for choice in ("size 3", "aic", "bic")
    for truth in ("null", "two")
]
CELLS += [
    Cell(n, p, "null", "cv", draws) for p, draws in ((10, 1000), (30, 300)) for n in (50, 100, 400)
]


def correlated(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Normal columns with correlations .5^|i−j|, shape (n, p)."""
    apart = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    return rng.standard_normal((n, p)) @ np.linalg.cholesky(0.5**apart).T


def drawn(cell: Cell, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A made table, and its true coefficients."""
    seed = [cell.seed] if cell.seed else []
    rng = np.random.default_rng([draw, cell.n, cell.p, cell.truth == "two", *seed])
    X = correlated(rng, cell.n, cell.p)
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


def t_test(X: np.ndarray, y: np.ndarray, support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The p-values (k,) and intervals (k, 2) of a least-squares fit of k columns."""
    A = np.column_stack([np.ones(len(X)), X[:, support]])
    coef = np.linalg.lstsq(A, y, rcond=None)[0]
    free = len(X) - A.shape[1]
    variance = np.sum((y - A @ coef) ** 2) / free
    error = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))[1:]
    p = 2.0 * student.sf(np.abs(coef[1:] / error), free)
    half = student.ppf(0.5 + LEVEL / 2.0, free) * error
    return p, np.column_stack([coef[1:] - half, coef[1:] + half])


def selective(
    cell: Cell, draw: int, model: SparseRidge, sigma: float | None, X: np.ndarray, beta: np.ndarray
) -> dict[str, float]:
    """What ``inference`` says of one column that is drawn, and of the columns that matter."""
    at, within, null = target(cell, draw, model.support_, X, beta)
    tests = tests_of(model._kept_fit(), sigma)
    # The tested column is expected to have no coefficient, or its own; the others to have none.
    matter = np.flatnonzero(np.isin(model.support_, np.flatnonzero(beta))).tolist()
    asked = [(at, 0.0), (at, within / tests.std_errors[at]), *((i, 0.0) for i in matter)]
    lines = list(dict.fromkeys((i, mean if tests.changing else 0.0) for i, mean in asked))
    places, means = (np.array(part) for part in zip(*lines, strict=True))
    laws = dict(zip(lines, tests.laws(places, means)[0], strict=True))
    p = [laws[i, mean if tests.changing else 0.0].p_value(mean)[1] for i, mean in asked]
    covered, ends = p[1] >= 1.0 - LEVEL, np.full(2, np.nan)
    if cell.computes_interval(draw):
        fields = "columns", "std_errors", "directions"
        one = replace(tests, **{name: getattr(tests, name)[[at]] for name in fields})
        ends = inferred(one).intervals(LEVEL)[0][0]
    known = not np.isnan(ends).any()
    return {
        "p": p[0],
        "covered": float(covered),
        "infinite": float(np.isinf(ends).any()) if known else np.nan,
        "differ": float(covered != (ends[0] <= within <= ends[1])) if known else np.nan,
        "null": null,
        "found": float((np.array(p[2:]) < AIM).sum()),
        "size": float(model.support_.size),
    }


def plain(
    cell: Cell, draw: int, X: np.ndarray, y: np.ndarray, support: np.ndarray, beta: np.ndarray
) -> dict[str, float]:
    """What t-tests say of one column that is drawn, and of the columns that matter."""
    p, ends = t_test(X, y, support)
    at, within, null = target(cell, draw, support, X, beta)
    return {
        "p": p[at],
        "covered": float(ends[at, 0] <= within <= ends[at, 1]),
        "infinite": 0.0,
        "differ": 0.0,
        "null": null,
        "found": float((p[np.isin(support, np.flatnonzero(beta))] < AIM).sum()),
        "size": float(support.size),
    }


def target(
    cell: Cell, draw: int, support: np.ndarray, X: np.ndarray, beta: np.ndarray
) -> tuple[int, float, float]:
    """The place of a drawn column, its coefficient of the expected response, and 1 where it is 0.

    X: The rows on which the test is made.
    """
    at = int(np.random.default_rng([draw, cell.p]).integers(support.size))
    null = np.isin(np.flatnonzero(beta), support).all() and beta[support[at]] == 0.0
    within = 0.0 if null else on_columns(X, X @ beta, support)[at]
    return at, within, float(null)


def measured(cell: Cell, draw: int, ways: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield what every way says of a draw; NaN where nothing is selected."""
    (X, y, beta), half = drawn(cell, draw), cell.n // 2
    whole = [way for way in ways if way != "splitting"]
    model = selected(cell, X, y) if whole else None
    for way in ways:
        rows = np.arange(half, cell.n) if way == "splitting" else np.arange(cell.n)
        one = selected(cell, X[:half], y[:half]) if way == "splitting" else model
        if not one.support_.size:
            yield way, NAN | {"found": 0.0, "size": 0.0}
        elif way.startswith("sigma"):
            sigma = 1.0 if way == "sigma known" else None
            yield way, selective(cell, draw, one, sigma, X, beta)
        else:
            yield way, plain(cell, draw, X[rows], y[rows], one.support_, beta)


def share(values: np.ndarray) -> str:
    """A share with its standard error; a dash for fewer than 50 values."""
    if values.size < 50:
        return "–"
    mean = values.mean()
    return f"{mean:.3f} ({np.sqrt(mean * (1.0 - mean) / values.size):.3f})"


def summary(cells: list[Cell], known: Table) -> Iterator[str]:
    """Yield the lines of the table of all cells of which draws are known."""
    heads = {"draws": 8, "selected": 10, "null": 8, "rejected": 15, "covered": 15}
    heads |= {"infinite": 10, "differ": 8, "found": 7, "size": 7}
    for n, p in dict.fromkeys((cell.n, cell.p) for cell in cells):
        yield f"\n{n} rows, {p} columns"
        head = "".join(f"{one:>{w}}" for one, w in heads.items())
        yield f"{'choice':<8}{'truth':<6}{'way':<16}{head}"
        for cell in cells:
            for way in WAYS:
                p_value, covered, infinite, differ, null, found, size = (
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
                    f"{np.nanmean(infinite):.3f}" if np.isfinite(infinite).any() else "",
                    f"{np.nansum(differ):.0f}" if way.startswith("sigma") else "",
                    f"{found.mean():.2f}" if cell.truth == "two" else "",
                    f"{size.mean():.1f}",
                )
                widths = heads.values()
                row = "".join(f"{one:>{w}}" for one, w in zip(cells_of_row, widths, strict=True))
                yield f"{cell.choice:<8}{cell.truth:<6}{way:<16}{row}"


def powered(draws: int, seed: int) -> Iterator[str]:
    """Yield the lines of the table of what a known σ is worth.

    "found": Of the selected columns that matter, the share with a p-value below .05. "lost": Of the
    selected columns with a t-statistic above 10 in absolute value, the share with a p-value of .05
    or more. In brackets are the numbers of columns.
    """
    yield "80 rows, 7 columns, of which three matter: coefficients 3, −3 and 1.5 times a strength"
    heads = "found, known", "estimated", "lost, known", "estimated"
    yield f"{'choice':<8}{'strength':>9}{'R²':>8}" + "".join(f"{head:>18}" for head in heads)
    for choice in ("size 3", "aic", "bic"):
        for strength in (0.1, 0.3, 1.0, 3.0, 10.0):
            cell, r2 = Cell(80, 7, "strong", choice, draws), []
            found: list[list[float]] = [[], [], [], []]
            beta = strength * np.array([3.0, -3.0, 1.5, 0.0, 0.0, 0.0, 0.0])
            for draw in range(draws):
                rng = np.random.default_rng([draw, 80, 7, int(10 * strength), seed])
                X = correlated(rng, 80, 7)
                y = X @ beta + rng.standard_normal(80)
                model = selected(cell, X, y)
                if not model.support_.size:
                    continue
                r2.append(model.score(X, y))
                matter = beta[model.support_] != 0.0
                for way, sigma in enumerate((1.0, None)):
                    told = infer(model._kept_fit(), sigma)
                    p = told.p_values()[:, 1]
                    strong = np.abs(told.coef / told.tests.std_errors) > 10.0
                    found[way] += (p[matter] < AIM).tolist()
                    found[2 + way] += (p[strong] >= AIM).tolist()
            cells = [f"{np.mean(one):.3f} ({len(one):,})" if one else "–" for one in found]
            line = "".join(f"{one:>18}" for one in cells)
            yield f"{choice:<8}{strength:>9g}{np.mean(r2):>8.3f}{line}"


def unequal(draws: int, seed: int) -> Iterator[str]:
    """Yield the lines of the table of rejections where no column matters and variances differ."""
    yield "60 rows, 12 columns, of which none matters: share of p-values below .05"
    yield f"{'choice':<8}{'errors':<28}{'columns':>9}{'σ known':>16}{'σ estimated':>16}"
    sizes = {
        "equal": lambda x: np.ones(len(x)),
        "times exp(x1 / 2)": lambda x: np.exp(x[:, 0] / 2.0),
        "times |x1|": lambda x: np.abs(x[:, 0]),
    }
    for choice in ("size 3", "aic", "bic"):
        for name, size in sizes.items():
            cell, found = Cell(60, 12, "null", choice, draws), list[tuple[float, float]]()
            for draw in range(draws):
                rng = np.random.default_rng([draw, 60, 12, seed])
                X = correlated(rng, 60, 12)
                spread = size(X)
                y = spread * rng.standard_normal(60) / np.sqrt(np.mean(spread**2))
                model = selected(cell, X, y)
                if not model.support_.size:
                    continue
                at = int(np.random.default_rng([draw, 12]).integers(model.support_.size))
                kept = model._kept_fit()
                tested = [tests_of(kept, sigma) for sigma in (1.0, None)]
                laws = [one.laws(np.array([at]), np.zeros(1))[0][0] for one in tested]
                found.append((laws[0].p_value()[1], laws[1].p_value()[1]))
            rejected = np.array(found) < AIM
            cells = "".join(f"{share(column):>16}" for column in rejected.T)
            yield f"{choice:<8}{name:<28}{len(found):>9,}{cells}"


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
    parser.add_argument("--draws", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cells", nargs="+", default=[""])
    parser.add_argument("--ways", nargs="+", default=WAYS)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--unequal", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(machine(), flush=True)
    if options.time:
        for line in timed():
            print(line, flush=True)
        return
    for asked, lines in ((options.power, powered), (options.unequal, unequal)):
        if asked:
            for line in lines(options.draws or 400, options.seed):
                print(line, flush=True)
            return
    every = [cell._replace(seed=options.seed) for cell in CELLS]
    cells = [cell for cell in every if any(word in cell.name for word in options.cells)]
    known, started = Table(options.file, VALUES), time.process_time()
    # All cells get a part of their draws before any gets more.
    most = min(options.draws or 10**6, max(cell.draws for cell in cells))
    for first in range(0, most, 100):
        for cell in cells:
            for draw in range(first, min(first + 100, cell.draws, most)):
                ways = [
                    way
                    for way in cell.ways(draw)
                    if way in options.ways and not known.has(cell.name, draw, way)
                ]
                for way, values in measured(cell, draw, ways) if ways else ():
                    known.add(cell.name, draw, way, **values)
    for line in summary(cells, known):
        print(line)
    print(f"\n{time.process_time() - started:.0f} CPU seconds in this run")


if __name__ == "__main__":
    main()
