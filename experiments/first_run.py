"""A fresh install's first and second ``sparsecv cv diabetes --folds loo``.

    python experiments/first_run.py

Makes a virtual environment in a temporary folder, installs this checkout there and times whole
processes: the first compiles every kernel it needs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        started = time.perf_counter()
        subprocess.run(
            [programs / "python", "-m", "pip", "install", "-q", str(root)],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        print(f"install {time.perf_counter() - started:.0f} s")
        for name, required in (("first", 30), ("second", 3)):
            started = time.perf_counter()
            subprocess.run(
                [programs / "sparsecv", "cv", "diabetes", "--folds", "loo", "--quiet"],
                check=True,
                cwd=folder,
            )
            seconds = time.perf_counter() - started
            print(f"{name} run {seconds:.1f} s (required {required} s)")


if __name__ == "__main__":
    main()
