"""This script measures the peak memory of commands on a long table and of fits of wide ones.

    python -m experiments.scale.memory [commands | wide | sparse | mapped]

A word names the only table that is printed; all are printed without one. Every command and every
fit runs in a process of its own. The long table has 300,000 × 41 numbers (98 MB) in Parquet. Three
numbers are compared with its size: the peak of the whole process, the peak above what the imports
take, and the peak above the same command on the 442 rows of diabetes, which has the imports and the
compiled kernels.

The wide tables are arrays of 64-bit numbers. The peak of ``SparseRidgeCV(n_jobs=1).fit(X, y)``
above the peak before it, when X is made and a narrow fit has loaded the kernels, is compared with
the size of X. The fit of 500 × 50,000 takes a minute and a half.

The sparse tables are CSR arrays, of which a hundredth or a fiftieth of the numbers are not 0. Their
fits are compared with a dense copy, which is made and fitted where it takes at most 200 MB.

The last table, 2,000 × 200,000 numbers of 32 bits, lies in a file of 1.6 GB that is mapped into
memory. It is fitted with ``taus=range(1, 11)``. The peak of the whole process is printed, which has
the file's pages too.
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
SPARSE = ((500, 20_000, 0.02), (500, 200_000, 0.01), (500_000, 100, 0.01))
OF_A_SPARSE_TABLE = """
import sys, time
import numpy as np
import scipy.sparse as sp
from experiments.common import peak_megabytes as peak
from experiments.scale.base_and_head import drawn
from sparsecv import SparseRidgeCV
n, p, density = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
SparseRidgeCV(n_jobs=1).fit(*drawn(500, 200, 10))
rng = np.random.default_rng(0)
X = sp.random_array((n, p), density=density, format="csr", rng=rng)
X.data = rng.standard_normal(X.nnz)
true = np.linspace(0, p - 1, 10).astype(int)
y = X[:, true] @ np.linspace(1.0, 2.0, 10) / np.sqrt(density) + rng.standard_normal(n)
X = X.toarray() if sys.argv[4] == "dense" else X
before, start = peak(), time.process_time()
model = SparseRidgeCV(n_jobs=1).fit(X, y)
print(np.isin(true, model.support_).sum(), model.support_.size)
print(time.process_time() - start, before, peak())
"""


MAPPED = (2_000, 200_000)
OF_A_FILE = """
import sys, time
import numpy as np
from experiments.common import peak_megabytes as peak
from sparsecv import SparseRidgeCV
X = np.load(sys.argv[1], mmap_mode="r")
true = np.linspace(0, X.shape[1] - 1, 10).astype(int)
signal = X[:, true].astype(np.float64) @ np.resize([1.0, -1.0], 10)
y = signal + np.random.default_rng(1).standard_normal(len(X)) * signal.std() / 2.0
start, wall = time.process_time(), time.perf_counter()
model = SparseRidgeCV(taus=range(1, 11)).fit(X, y)
print(np.isin(true, model.support_).sum(), model.support_.size)
print(time.process_time() - start, time.perf_counter() - wall, peak())
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


def sparse_fits() -> None:
    """Print the table of default fits of sparse tables, and of the smallest as a dense table."""
    print(f"\n{'default fit of a sparse X':32}{'as dense, MB':>14}{'above X, MB':>14}", end="")
    print(f"{'CPU s':>8}  columns, true ones of 10")
    for n, p, density in SPARSE:
        size = 8 * n * p / 1e6
        for kind in ("sparse", "dense") if size <= 200 else ("sparse",):
            words = [str(n), str(p), str(density), kind]
            process = [sys.executable, "-W", "ignore", "-c", OF_A_SPARSE_TABLE, *words]
            found = subprocess.run(process, capture_output=True, text=True, check=True).stdout
            right, columns, seconds, before, peak = map(float, found.split()[-5:])
            name = f"{n:,} × {p:,}, {density:.0%}, {kind}"
            print(f"{name:32}{size:14.0f}{peak - before:14.0f}{seconds:8.1f}", end="")
            print(f"{columns:6.0f}, {right:.0f}", flush=True)


def mapped_fit() -> None:
    """Print the seconds and the peak memory of the fit of a table in a mapped file."""
    n, p = MAPPED
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=MAPPED)
        rng = np.random.default_rng(0)
        for start in range(0, n, 100):
            table[start : start + 100] = rng.standard_normal((100, p), dtype=np.float32)
        table.flush()
        del table
        process = [sys.executable, "-c", OF_A_FILE, str(path)]
        found = subprocess.run(process, capture_output=True, text=True, check=True).stdout.split()
    right, size, seconds, wall, peak = map(float, found[-5:])
    print(f"\n{n:,} × {p:,} numbers of 32 bits in a mapped file, sizes 1 to 10: ", end="")
    print(f"{seconds:.0f} s of the processor,\n{wall:.0f} s in all, peak {peak:.0f} MB")
    print(f"{right:.0f} of 10 true columns in a model of {size:.0f}")


TABLES = {"commands": commands, "wide": wide_fits, "sparse": sparse_fits, "mapped": mapped_fit}


def main() -> None:
    print(machine())
    for name in sys.argv[1:] or TABLES:
        TABLES[name]()


if __name__ == "__main__":
    main()
