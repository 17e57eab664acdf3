"""This script measures time and memory of reading text tables: sparsecv, pandas, polars, pyarrow.

    python -m experiments.scale.reading

Every reader reads 100,000 rows of 31 numbers (62 MB) in a process of its own, which also imports
the reader; the least time of five runs is printed. Then sparsecv and pandas take turns at a table
ten times as large, three times each.
The memory is read from /proc, so the script needs Linux.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from experiments.common import machine

READERS = {
    "sparsecv": "from sparsecv.tables.datasets import resolve; resolve(path)",
    "pandas": "import pandas; pandas.read_csv(path).to_numpy()",
    "polars": "import polars; polars.read_csv(path).to_numpy()",
    "pyarrow": (
        "import numpy, pyarrow.csv\n"
        "numpy.column_stack([c.to_numpy() for c in pyarrow.csv.read_csv(path).columns])"
    ),
}
TIMED = """
import sys, time
path = sys.argv[1]
{code}
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time(), float(peak.split()[1]) / 1024)
"""


def timed(code: str, path: Path, runs: int) -> tuple[float, float]:
    """Run a reader several times; return its least CPU seconds and its greatest memory in MB."""
    found = []
    for _ in range(runs):
        command = [sys.executable, "-c", TIMED.format(code=code), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append([float(word) for word in done.stdout.split()])
    seconds, memory = zip(*found, strict=True)
    return min(seconds), max(memory)


def main() -> None:
    print(machine())
    rows = np.random.default_rng(0).standard_normal((100_000, 31))
    with tempfile.TemporaryDirectory() as folder:
        path, big = Path(folder) / "t.csv", Path(folder) / "big.csv"
        header = ",".join([*(f"x{j}" for j in range(30)), "y"])
        np.savetxt(path, rows, "%.17g", ",", header=header, comments="")
        text = path.read_text()
        with big.open("w") as file:
            file.write(text)
            for _ in range(9):
                file.write(text[text.index("\n") + 1 :])
        sizes = " and ".join(f"{file.stat().st_size / 1e6:.0f} MB" for file in (path, big))
        print(f"100,000 and a million rows of 31 numbers: {sizes} of text")
        for name, code in READERS.items():
            print(f"{name:>20}: {'{:.2f} s, {:.0f} MB'.format(*timed(code, path, 5))}")
        print("a million rows:")
        turns: dict[str, list[tuple[float, float]]] = {"sparsecv": [], "pandas": []}
        for _ in range(3):
            for name, runs in turns.items():
                runs.append(timed(READERS[name], big, 1))
        for name, runs in turns.items():
            print(f"{name:>20}: {'{:.2f} s, {:.0f} MB'.format(*min(runs))}")
        print(f"{'ratio of times':>20}: {min(turns['sparsecv'])[0] / min(turns['pandas'])[0]:.2f}")


if __name__ == "__main__":
    main()
