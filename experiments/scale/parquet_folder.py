"""This script times cross-validation of a folder of Parquet files against one plain pass.

    python -m experiments.scale.parquet_folder [n] [p] [files]

The script writes synthetic rows to a temporary folder. Then a process makes a plain pass, which
reads the columns of every file as numbers and adds the numbers up; another process runs
``sparsecv cv`` on the folder. Seconds are those of processors, so that other work on the machine
counts little; a pass runs on one thread.

The last lines are a plan for n = 10⁹, p = 100 and ten folds, by two rates of this run: numbers that
are read, sorted by fold and centred in a second, and products that are summed in a second. Both are
rates of one core.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from experiments.common import last_json, machine

PLAIN = """
import json, sys, time
from pathlib import Path
import pyarrow.parquet as pq
from experiments.common import peak_megabytes
started, total = time.process_time(), 0.0
for path in sorted(Path(sys.argv[1]).glob("*.parquet")):
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        for batch in file.iter_batches(batch_size=65536):
            total += sum(float(column.to_numpy().sum()) for column in batch.columns)
print(json.dumps(dict(seconds=time.process_time() - started, peak=peak_megabytes())))
"""
OURS = """
import json, sys, time
import numpy as np
from sparsecv.cli.main import main
from sparsecv.tables.sources import open_table
from sparsecv.design.folds import hashed_folds
from sparsecv.design.moments import fold_moments
from experiments.common import peak_megabytes

def run():
    main(["cv", "diabetes", "--gamma", "1", "--quiet"])  # kernels
    before = peak_megabytes()
    source = open_table(sys.argv[1])
    block = np.random.default_rng(0).standard_normal((65536, 101))
    block.T @ block
    started = time.process_time()
    for _ in range(20):
        block.T @ block
    products = 20 * block.size * block.shape[1] / (time.process_time() - started)
    started = time.process_time()
    fold_moments(source, hashed_folds(10, source.n, 0))
    moments = time.process_time() - started
    started = time.process_time()
    options = ["--folds", "10", "--gamma", "1", "--json", sys.argv[2]]
    status = main(["cv", sys.argv[1], *options])
    seconds = time.process_time() - started
    found = json.load(open(sys.argv[2]))
    print(json.dumps(dict(status=status, seconds=seconds, moments=moments, before=before,
                          products=products, peak=peak_megabytes(), best=found["best"]["tau"])))

if __name__ == "__main__":
    run()
"""


def write(folder: Path, n: int, p: int, files: int) -> float:
    """Write rows whose response depends on ten columns to a folder; return the gigabytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    beta = np.zeros(p)
    beta[rng.choice(p, min(10, p), replace=False)] = 1.0
    folder.mkdir()
    for i in range(files):
        m = n // files + (i < n % files)
        X = rng.standard_normal((m, p)) + rng.standard_normal((m, 1))
        columns = {f"x{j}": X[:, j] for j in range(p)}
        columns["y"] = X @ beta + 3.0 * rng.standard_normal(m)
        pq.write_table(pa.table(columns), folder / f"part-{i:04}.parquet", row_group_size=65536)
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e9


def run(code: str, *arguments: str) -> tuple[dict[str, float], str]:
    """Run a script; return its last line of output, read as JSON, and its standard error."""
    return last_json([sys.executable, "-c", code, *arguments])


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    p = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    files = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    print(machine())
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place) / "rows", str(Path(place) / "out.json")
        started = time.perf_counter()
        size = write(folder, n, p, files)
        print(
            f"n = {n:,}, p = {p}: {files} files, {size:.2f} GB, written in "
            f"{time.perf_counter() - started:.0f} s"
        )
        before, _ = run(PLAIN, str(folder))
        found, said = run(OURS, str(folder), out)
        after, _ = run(PLAIN, str(folder))
        plain = (before["seconds"] + after["seconds"]) / 2.0
        print(f"one plain pass: {plain:.1f} s, peak memory {after['peak']:.0f} MB")
        report("one process", found, plain)
        for line in said.splitlines():
            if "plan:" in line:  # sparsecv prints a plan for tables that do not fit in memory.
                print(f"  {line.strip()}")
        plan(n, p, found)


def plan(n: int, p: int, found: dict[str, float]) -> None:
    """Print both rates of the run in one process, and what n = 10⁹, p = 100, ten folds would take.

    What the moments took beside their products, n (p + 1)² multiplications, counts as reading.
    """
    rate = found["products"]
    reading = n * (p + 1) / (found["moments"] - n * (p + 1) ** 2 / rate)
    numbers, width = 10**9 * 101, 101
    read, multiplied = numbers / reading, numbers * width / rate
    seconds, size = read + multiplied, 8.0 * numbers / 1e9
    print(f"rates of one core: {reading:.2g} numbers a second read, sorted and centred, ", end="")
    print(f"{rate:.2g} products a second")
    print(f"plan for n = 10⁹, p = 100, 10 folds: {numbers:.4g} numbers, {size:.0f} GB")
    print(f"  reading {read:.0f} core-seconds, products {multiplied:.0f} core-seconds")
    print(f"  one core: {seconds / 3600:.1f} hours")
    for cores in (32, 128):
        minutes, needed = seconds / cores / 60, size / (seconds / cores)
        print(f"  {cores} cores: {minutes:.1f} minutes, if the storage gives {needed:.1f} GB/s")
    print(f"  storage of 1 GB/s: {size / 60:.0f} minutes")
    print(f"  sent to the client: {10 * width**2 * 8 / 1e6:.1f} MB per part")


def report(name: str, found: dict[str, float], plain: float) -> None:
    """Print the seconds and the memory of one run beside the seconds of a plain pass."""
    print(
        f"{name}: moments of 10 folds in {found['moments']:.1f} s ({found['moments'] / plain:.2f} "
        f"plain passes); cv of every τ {found['seconds']:.1f} s, best τ = {found['best']}; peak "
        f"memory {found['peak']:.0f} MB ({found['before']:.0f} MB before), exit {found['status']}"
    )


if __name__ == "__main__":
    main()
