"""This script measures the peak memory of commands on a table of 300,000 × 41 numbers (98 MB).

    python -m experiments.scale.memory

Each command runs in a process of its own, on Parquet. Three numbers are compared with the size of
the table: the peak of the whole process, the peak above what the imports take, and the peak above
the same command on the 442 rows of diabetes, which has the imports and the compiled kernels.
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
import sparsecv.cli.cv, sparsecv.cli.fit, sparsecv.cli.screen, sparsecv.selection.choice
import pyarrow.parquet
from sparsecv.cli.main import main
from experiments.common import peak_megabytes as peak
imports = peak()
assert main([*sys.argv[1:], "--quiet"]) == 0
print(imports, peak())
"""


def measured(command: list[str], data: str) -> tuple[float, float]:
    """Peak megabytes of the imports, and of the whole command."""
    words = [sys.executable, "-c", MEASURED, command[0], data, *command[1:]]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return float(found[-2]), float(found[-1])


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = X[:, :5] @ np.arange(1.0, 6.0) + rng.standard_normal(N)
    size = 8 * N * (P + 1) / 1e6
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        columns = {f"x{j}": X[:, j] for j in range(P)} | {"y": y}
        pq.write_table(pa.table(columns), path)
        print(machine())
        print(f"{N:,} × {P + 1} numbers, {size:.0f} MB; peak memory in MB, and in tables\n")
        print(f"{'command':32}{'whole':>15}{'above imports':>15}{'above diabetes':>15}")
        for command in COMMANDS:
            measured(command, str(path))  # The first run may compile kernels.
            _, small = measured(command, "diabetes")
            imports, whole = measured(command, str(path))
            print(f"{' '.join(command):32}", end="")
            for megabytes in (whole, whole - imports, whole - small):
                print(f"{megabytes:9.0f} ({megabytes / size:.1f})", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
