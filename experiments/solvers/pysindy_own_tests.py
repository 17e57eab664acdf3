"""This script runs PySINDy's own tests with sparsecv in the place of its optimizers.

    pip install pysindy pytest gurobipy jax
    pip download --no-deps --no-binary :all: pysindy==2.1.0
    python -m experiments.solvers.pysindy_own_tests pysindy-2.1.0.tar.gz [options of pytest]

The tests of optimizers run with sparsecv in the place of MIOSR, which needs neither Gurobi nor a
licence. The tests of models that name no optimizer run three times: with PySINDy's default, with
sparsecv as the default, and with MIOSR as the default where Gurobi is installed. For each run the
script prints how many tests passed. Tests of SBR, an optimizer that needs numpyro, are left out
where numpyro is not installed. This module is also the plugin of pytest that replaces optimizers.
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

OPTIMIZERS = "test/test_optimizers/test_optimizers.py"
MODELS = ["test/test_pysindy.py", "test/test_sindyc.py"]
DEFAULT = "SPARSECV_PYSINDY_DEFAULT"  # the variable that names the default optimizer of a run


def pytest_configure(config: Any) -> None:
    """Replace MIOSR, or the default optimizer, before PySINDy's tests import them."""
    default = os.environ.get(DEFAULT, "")
    # Where MOSEK or Gurobi is installed, cvxpy asks it with PySINDy's options for other solvers.
    sys.modules["mosek"] = None  # type: ignore[assignment]
    if default != "MIOSR":
        sys.modules["gurobipy"] = None  # type: ignore[assignment]
    import pysindy
    from pysindy import _core, optimizers

    from sparsecv.integrations.pysindy import SparseRidgeOptimizer

    if default == "":
        optimizers.MIOSR = pysindy.MIOSR = SparseRidgeOptimizer
    elif default == "sparsecv":
        _core.STLSQ = SparseRidgeOptimizer
    elif default == "MIOSR":
        _core.STLSQ = optimizers.MIOSR
    if find_spec("numpyro") is None:

        class SBR(optimizers.STLSQ):  # type: ignore[misc]
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__()

        optimizers.SBR = pysindy.SBR = SBR


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests of an optimizer that cannot be imported."""
    if find_spec("numpyro") is None:
        items[:] = [item for item in items if "sbr" not in item.name.lower()]


def passed(folder: Path, tests: list[str], default: str, options: list[str]) -> tuple[int, str]:
    """The exit status of a run of pytest, and its last line."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", __spec__.name, *tests, *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, DEFAULT: default},
        check=False,
        capture_output=True,
        text=True,
    )
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines()
    failed = [line.partition(" - ")[0] for line in lines if line.startswith("FAILED")]
    return done.returncode, "\n".join([*(f"  {line}" for line in failed), lines[-1]])


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit((__doc__ or "").strip())
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sys.argv[1]) as archive:
            archive.extractall(folder, filter="data")
        (found,) = Path(folder).glob("*/" + OPTIMIZERS)
        root = found.parents[2]
        status, said = passed(root, [OPTIMIZERS], "", sys.argv[2:])
        print(f"optimizers, sparsecv for MIOSR: {said}", flush=True)
        for default in ("PySINDy's own", "sparsecv", "MIOSR"):
            if default == "MIOSR" and find_spec("gurobipy") is None:
                print("models, default MIOSR: gurobipy is not installed")
                continue
            said = passed(root, MODELS, default, sys.argv[2:])[1]
            print(f"models, default {default}: {said}", flush=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
