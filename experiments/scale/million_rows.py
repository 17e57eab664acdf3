"""This script measures time and memory of cross-validating a table of a million rows.

    python -m experiments.scale.million_rows [n] [p]

The script writes synthetic rows to a temporary Parquet file. It then runs ``sparsecv cv`` on the
file in a process of its own, with 10 folds, every τ and one γ.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from experiments.common import last_json, machine

CODE = """
import json, sys, time
from sparsecv.cli.main import main
from experiments.common import peak_megabytes
main(["cv", "diabetes", "--gamma", "1", "--quiet"])
before = peak_megabytes()
started = time.perf_counter()
options = ["--folds", "10", "--gamma", "1", "--quiet", "--json", sys.argv[2]]
status = main(["cv", sys.argv[1], *options])
seconds = time.perf_counter() - started
found = json.load(open(sys.argv[2]))
print(json.dumps(dict(status=status, seconds=seconds, before=before, peak=peak_megabytes(),
                      nodes=sum(r["n_nodes"] for r in found["results"]), best=found["best"])))
"""


def write(folder: Path, n: int, p: int) -> Path:
    """Write a draw of the first paper's synthetic process (EC.1.2) to both files, in blocks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    beta = np.zeros(p)
    relevant = min(10, p)
    beta[rng.choice(p, relevant, replace=False)] = rng.choice([-1.0, 1.0], relevant)
    path = folder / "rows.parquet"
    names = [f"x{j}" for j in range(p)] + ["y"]
    writer = None
    for start in range(0, n, 50_000):
        m = min(50_000, n - start)
        X = rng.normal(size=(m, p))
        for j in range(1, p):
            X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.49) * X[:, j]
        block = np.column_stack([X, X @ beta + 3.0 * rng.normal(size=m)])
        batch = pa.table({name: block[:, j] for j, name in enumerate(names)})
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
    if writer is not None:
        writer.close()
    return path


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    p = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    print(machine())
    print(f"n = {n:,}, p = {p}, 10 folds, every τ, one γ (at most 60 s are required)\n")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        path = write(Path(folder), n, p)
        print(f"wrote the rows in {time.perf_counter() - started:.0f} s")
        out = str(Path(folder) / "out.json")
        found, _ = last_json([sys.executable, "-c", CODE, str(path), out])
        print(
            f"{path.name:<13} {path.stat().st_size / 1e6:5.0f} MB: {found['seconds']:6.2f} s, "
            f"{found['nodes']:,} nodes, peak memory {found['peak']:.0f} MB "
            f"({found['before']:.0f} MB before), best τ = {found['best']['tau']}, "
            f"certified {found['best']['certified']}, exit {found['status']}"
        )


if __name__ == "__main__":
    main()
