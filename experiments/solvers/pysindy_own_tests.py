"""This script runs PySINDy's own tests of its optimizers with sparsecv in the place of MIOSR.

    pip install pysindy pytest
    pip download --no-deps --no-binary :all: pysindy==2.1.0
    python -m experiments.solvers.pysindy_own_tests pysindy-2.1.0.tar.gz [options of pytest]

Neither Gurobi nor a licence is needed. Tests of SBR, an optimizer that needs numpyro, are left out
where numpyro is not installed. This module is also the plugin of pytest that replaces MIOSR.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.common import ROOT

TESTS = "test/test_optimizers/test_optimizers.py"


def pytest_configure(config: Any) -> None:
    """Replace MIOSR before PySINDy's tests import it."""
    import pysindy
    from pysindy import optimizers

    from sparsecv.integrations.pysindy import SparseRidgeOptimizer

    optimizers.MIOSR = pysindy.MIOSR = SparseRidgeOptimizer
    if find_spec("numpyro") is None:

        class SBR(optimizers.STLSQ):  # type: ignore[misc]
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__()

        optimizers.SBR = pysindy.SBR = SBR


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests of an optimizer that cannot be imported."""
    if find_spec("numpyro") is None:
        items[:] = [item for item in items if "sbr" not in item.name.lower()]


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit((__doc__ or "").strip())
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sys.argv[1]) as archive:
            archive.extractall(folder, filter="data")
        (tests,) = Path(folder).glob("*/" + TESTS)
        command = [sys.executable, "-m", "pytest", "-q", "-p", __spec__.name, str(tests)]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [*command, *sys.argv[2:]],
            cwd=tests.parents[2],
            env=os.environ | {"PYTHONPATH": path},
            check=False,
        )
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
