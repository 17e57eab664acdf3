"""This script measures the peak memory of commands on a long table and of fits of wide ones.

    python -m experiments.scale.memory [commands | wide]

A word names the only table that is printed; all are printed without one. Every command and every
fit runs in a process of its own. The long table has 300,000 × 41 numbers (98 MB) in Parquet. Three
numbers are compared with its size: the peak of the whole process, the peak above what the imports
take, and the peak above the same command on the 442 rows of diabetes, which has the imports and the
compiled kernels.

The wide tables are arrays of 64-bit numbers. The peak of ``SparseRidgeCV(n_jobs=1).fit(X, y)``
above the peak before it, when X is made and a narrow fit has loaded the kernels, is compared with
the size of X. The fit of 500 × 50,000 takes a minute and a half.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.common import machine

N, P = 300_000, 40
COMMANDS = (
    ["cv", "--gamma", "1", "--no-nested"],
    ["cv", "--no-nested"],
    ["cv", "--gamma", "1"],
    ["cv"],
    ["fit", "--tau", "5"],
)
MEASURED = """
import sys
import sparsecv.cli.cv, sparsecv.cli.fit, sparsecv.report.screen, sparsecv.selection.choice
import pyarrow.parquet
from sparsecv.cli.main import main
from experiments.common import peak_megabytes as peak
imports = peak()
assert main([*sys.argv[1:], "--quiet"]) == 0
print(imports, peak())
"""
WIDE = ((200, 1_000), (300, 10_000), (500, 50_000))
FITTED = """
import sys
from experiments.common import peak_megabytes as peak
from experiments.scale.base_and_head import drawn
from sparsecv import SparseRidgeCV
X, y = drawn(*map(int, sys.argv[1:]), 10)
SparseRidgeCV(n_jobs=1).fit(X[:, :200], y)
before = peak()
SparseRidgeCV(n_jobs=1).fit(X, y)
print(before, peak())
"""


def measured(program: str, *words: str) -> tuple[float, float]:
    """Peak megabytes before what a program measures (MEASURED or FITTED), and at its end."""
    process = [sys.executable, "-c", program, *words]
    found = subprocess.run(process, capture_output=True, text=True, check=True).stdout.split()
    return float(found[-2]), float(found[-1])


def commands() -> None:
    """Print the table of commands."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = X[:, :5] @ np.arange(1.0, 6.0) + rng.standard_normal(N)
    size = 8 * N * (P + 1) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        columns = {f"x{j}": X[:, j] for j in range(P)} | {"y": y}
        pq.write_table(pa.table(columns), path)
        print(f"{N:,} × {P + 1} numbers, {size:.0f} MB; peak memory in MB, and in tables\n")
        print(f"{'command':32}{'whole':>15}{'above imports':>15}{'above diabetes':>15}")
        for command in COMMANDS:
            name, *options = command
            measured(MEASURED, name, str(path), *options)  # The first run may compile kernels.
            _, small = measured(MEASURED, name, "diabetes", *options)
            imports, whole = measured(MEASURED, name, str(path), *options)
            print(f"{' '.join(command):32}", end="")
            for megabytes in (whole, whole - imports, whole - small):
                print(f"{megabytes:9.0f} ({megabytes / size:.1f})", end="")
            print(flush=True)


def wide_fits() -> None:
    """Print the table of default fits."""
    print(f"\n{'default fit of X':24}{'X, MB':>8}{'above X, MB':>14}{'in tables':>12}")
    for n, p in WIDE:
        before, whole = measured(FITTED, str(n), str(p))
        size = 8 * n * p / 1e6
        print(f"{f'{n:,} × {p:,}':24}{size:8.0f}{whole - before:14.0f}", end="")
        print(f"{(whole - before) / size:12.1f}", flush=True)


TABLES = {"commands": commands, "wide": wide_fits}


def main() -> None:
    print(machine())
    for name in sys.argv[1:] or TABLES:
        TABLES[name]()


if __name__ == "__main__":
    main()
