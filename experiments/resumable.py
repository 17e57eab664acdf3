"""A table of results that an interrupted script goes on with where it stopped.

A row of the CSV file belongs to a data set, a split of its rows and a method. A script asks the
table for the rows that are missing, computes each and appends it at once.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sparsecv.plots.curves import save
from sparsecv.plots.style import GREY, in_style, new_figure

PRINTED = Path(__file__).resolve().parent / "paper" / "printed.csv"
KEYS = ("dataset", "split", "method")
Values = dict[str, float]


class Table:
    """Rows of a CSV file: numbers of every data set, split and method.

    path: The file; rows that are in it already are kept.
    columns: Names of the numbers.
    """

    def __init__(self, path: Path, columns: Iterable[str]) -> None:
        self.path, self.columns = path, tuple(columns)
        self.known: dict[tuple[str, int, str], Values] = {}
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    key = row["dataset"], int(row["split"]), row["method"]
                    self.known[key] = {name: float(row[name] or "nan") for name in self.columns}
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerow([*KEYS, *self.columns])

    def has(self, dataset: str, split: int, method: str) -> bool:
        """Whether this row is known."""
        return (dataset, split, method) in self.known

    def add(self, dataset: str, split: int, method: str, **values: float) -> None:
        """Append a row."""
        self.known[dataset, split, method] = values
        with self.path.open("a", encoding="utf-8", newline="") as file:
            numbers = [f"{values[name]:.8g}" for name in self.columns]
            csv.writer(file).writerow([dataset, split, method, *numbers])

    def column(self, dataset: str, method: str, name: str) -> np.ndarray:
        """One of the numbers over all splits, in the order of the splits."""
        found = {
            key[1]: row[name] for key, row in self.known.items() if key[::2] == (dataset, method)
        }
        return np.array([found[split] for split in sorted(found)])

    def splits(self, dataset: str) -> dict[int, set[str]]:
        """The methods that are known, for every split of a data set."""
        found: dict[int, set[str]] = defaultdict(set)
        for name, split, method in self.known:
            if name == dataset:
                found[split].add(method)
        return found


def printed_numbers(table: str) -> dict[tuple[str, str], tuple[str, str, str]]:
    """What a paper prints: CV error, test error and columns, each in brackets, or "".

    table: A value of the column ``table`` of paper/printed.csv.
    Returns: The three texts of every data set and method.
    """
    found: dict[tuple[str, str], tuple[str, str, str]] = {}
    with PRINTED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["table"] == table:
                cv, test, size = (
                    f"({row[name]})" if row[name] else ""
                    for name in ("cv_error", "test_error", "columns")
                )
                found[row["dataset"], row["method"]] = cv, test, size
    return found


def shown(values: np.ndarray) -> str:
    """Mean ± standard deviation, with about four digits."""
    spread = values.std(ddof=1) if values.size > 1 else 0.0
    return f"{values.mean():.4g} ± {spread:.2g}"


def geometric(ratios: np.ndarray) -> tuple[float, float, float]:
    """Geometric mean of positive ratios, and its 95 % interval by Student's t on the logarithms."""
    from scipy.stats import t

    logs = np.log(ratios)
    mean = float(logs.mean())
    half = float(t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / np.sqrt(logs.size))
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half))


# A mean with the ends of its interval, of every data set.
Intervals = dict[str, tuple[float, float, float]]


@in_style
def ratios_picture(path: Path, label: str, series: dict[str, Intervals]) -> None:
    """Draw ratios of test errors with their intervals: a group of bars for each data set.

    label: What is divided by what.
    series: For every method the ratio of every data set.
    """
    names = list(dict.fromkeys(name for one in series.values() for name in one))
    height = 1.2 + 0.11 * len(names) * (1 + len(series))
    figure, ((panel,),) = new_figure(figsize=(7.0, height))
    for number, (method, found) in enumerate(series.items()):
        for row, name in enumerate(names):
            if name not in found:
                continue
            mean, low, high = found[name]
            at = row + 0.8 * (number + 0.5) / len(series) - 0.4
            colour = f"C{number}"
            panel.plot([low, high], [at, at], color=colour, linewidth=1.2)
            first = method if name == names[0] else None
            panel.plot(mean, at, "o", color=colour, markersize=4, label=first)
    panel.axvline(1.0, color=GREY, linewidth=0.8)
    panel.set_xscale("log")
    panel.set_xlim(0.2, 5.0)
    panel.set_xticks([0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0], ["¼", "½", ".8", "1", "1.25", "2", "4"])
    panel.minorticks_off()
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    panel.set_xlabel(label)
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(figure, str(path))
