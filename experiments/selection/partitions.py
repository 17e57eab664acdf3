"""This script compares default fits beyond 45 columns that average over more or fewer partitions.

    python -m experiments.selection.partitions [splits] [data set ...]

Beyond 45 columns the weights of the average come from CV errors, which are means over partitions of
the rows into folds. Every data set is split, by default twenty times, into four fifths that are
fitted and one fifth that is kept for the test. The script prints, for every number of partitions,
the mean CPU seconds of a fit, and the geometric mean over the splits of the test error over that of
six partitions; in the end the geometric means of both over the data sets. With one partition the
folds are given as row indices, which cannot be drawn again.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from experiments.common import machine, train_and_test
from experiments.selection.default_fits import SETS
from sparsecv import SparseRidgeCV
from sparsecv.design.folds import make_folds
from sparsecv.selection import study

PARTITIONS = (1, 2, 3, 6)


def model(partitions: int, n: int) -> SparseRidgeCV:
    """A default fit of n rows with a number of partitions into five folds."""
    study.PARTITIONS = partitions
    if partitions > 1:
        return SparseRidgeCV()
    folds = make_folds(5, n, seed=0)  # The first partition of a default fit.
    return SparseRidgeCV(cv=[folds.split(j) for j in range(5)])


def main() -> None:
    warnings.simplefilter("ignore")
    given = sys.argv[1:]
    splits = int(given.pop(0)) if given and given[0].isdigit() else 20
    print(f"{machine()}\nCPU s of a fit; test error over that of six partitions; {splits} splits\n")
    print(f"{'partitions':<14}" + "".join(f"{number:>8}" for number in PARTITIONS * 2))
    every: list[np.ndarray] = []
    for name in given or SETS:
        found = np.zeros((2, len(PARTITIONS), splits))
        for split in range(splits):
            X, y, Z, z = train_and_test(name, split, 0.2)
            for i, number in enumerate(PARTITIONS):
                started = time.process_time()
                fitted = model(number, y.size).fit(X, y)
                found[0, i, split] = time.process_time() - started
                found[1, i, split] = np.mean((z - fitted.predict(Z)) ** 2)
        seconds, logs = found[0].mean(axis=1), np.log(found[1])
        ratios = np.exp((logs - logs[-1]).mean(axis=1))
        every.append(np.log([seconds / seconds[-1], ratios]))
        numbers = "".join(f"{one:>8.2f}" for one in seconds) + "".join(f"{r:>8.3f}" for r in ratios)
        print(f"{name:<14}{numbers}", flush=True)
    means = np.exp(np.mean(every, axis=0))
    print(f"{'of six':<14}" + "".join(f"{one:>8.3f}" for one in means.ravel()))


if __name__ == "__main__":
    main()
