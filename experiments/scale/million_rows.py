"""This script measures time and memory of cross-validating a table of a million rows.

    python -m experiments.scale.million_rows [n] [p]

The script writes synthetic rows to a temporary Parquet file and to a temporary folder of twenty
Parquet files. It then runs ``sparsecv cv`` on each in a process of its own, with 10 folds, every τ
and one γ. The file is read into memory whole. Dask reduces the folder to the moments of the folds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from experiments.common import last_json, machine

N_FILES = 20
CODE = """
import json, sys, time
import dask.dataframe
from sparsecv.cli.main import main
from experiments.common import peak_megabytes
main(["cv", "diabetes", "--gamma", "1", "--quiet"])
before = peak_megabytes()
started, cpu = time.perf_counter(), time.process_time()
options = ["--folds", "10", "--gamma", "1", "--no-nested", "--quiet", "--json", sys.argv[2]]
status = main(["cv", sys.argv[1], *options])
seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
found = json.load(open(sys.argv[2]))
print(json.dumps(dict(status=status, seconds=seconds, cpu=cpu, before=before,
                      peak=peak_megabytes(), best=found["best"])))
"""


def write(folder: Path, n: int, p: int) -> list[Path]:
    """Write a draw of the first paper's synthetic process (EC.1.2) to the file and the folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    beta = np.zeros(p)
    relevant = min(10, p)
    beta[rng.choice(p, relevant, replace=False)] = rng.choice([-1.0, 1.0], relevant)
    file, parts = folder / "rows.parquet", folder / "rows"
    parts.mkdir()
    names = [f"x{j}" for j in range(p)] + ["y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(file, schema) as writer:
        for number, rows in enumerate(np.array_split(np.arange(n), N_FILES)):
            X = rng.normal(size=(rows.size, p))
            for j in range(1, p):
                X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.49) * X[:, j]
            block = np.column_stack([X, X @ beta + 3.0 * rng.normal(size=rows.size)])
            batch = pa.table({name: block[:, j] for j, name in enumerate(names)}, schema=schema)
            writer.write_table(batch)
            pq.write_table(batch, parts / f"{number:02}.parquet")
    return [file, parts]


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    p = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    print(machine())
    print(f"n = {n:,}, p = {p}, {8e-6 * n * (p + 1):.0f} MB of numbers, 10 folds, every τ, one γ\n")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        tables = write(Path(folder), n, p)
        print(f"wrote the rows twice in {time.perf_counter() - started:.0f} s")
        for path in tables:
            out = str(Path(folder) / "out.json")
            found, _ = last_json([sys.executable, "-c", CODE, str(path), out])
            kind = "one file, read whole" if path.suffix else f"{N_FILES} files, reduced by Dask"
            print(
                f"{kind:<26}: {found['seconds']:5.2f} s, {found['cpu']:5.2f} s of CPU, "
                f"peak memory {found['peak']:.0f} MB ({found['before']:.0f} MB before), "
                f"best τ = {found['best']['tau']}, certified {found['best']['certified']}, "
                f"exit {found['status']}"
            )


if __name__ == "__main__":
    main()
