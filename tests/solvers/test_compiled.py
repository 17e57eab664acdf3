"""Where compiled code is kept, when it is made again, and that it is made once."""

import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import config, typeof
from support.inside import Kernel, compiled, kernel
from support.stand_ins import StandIn

from sparsecv.solvers.kernels.by_reference import by_reference
from sparsecv.solvers.kernels.compiled import KernelCache, private_folder

WARMED = "SPARSECV_WARMED_COPY"  # a copy of the package made by conftest.py after a warm-up
DROPPED = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
ROOT = Path(__file__).parents[2]
CALLEE = """
from typing import NamedTuple
from sparsecv.solvers.kernels.compiled import kernel
STEP = 10
class Settings(NamedTuple):
    more: int = 0
SETTINGS = Settings()
@kernel
def below(x, k):
    return x + STEP * k + SETTINGS.more
"""
CALLER = """
from sparsecv.solvers.kernels.compiled import kernel
from callee import below
@kernel
def above(x, k):
    return below(x, 0) + below(x, k)
"""


BEHIND_A_MODULE = CALLER.replace("from callee import below", "import callee").replace(
    "below(x", "callee.below(x"
)


def load(folder: Path) -> Any:
    """The two modules as another process would see them: nothing compiled, only files."""
    for name in ("callee", "caller"):
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module


@pytest.fixture(params=[0, compiled.MAX_COPIED_BYTES], ids=["called", "copied"])
def modules(tmp_path: Path, stand_in: StandIn, request: pytest.FixtureRequest) -> Iterator[Path]:
    if config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    stand_in(MAX_COPIED_BYTES=request.param)
    (tmp_path / "callee.py").write_text(CALLEE)
    (tmp_path / "caller.py").write_text(CALLER)
    yield tmp_path
    for name in ("callee", "caller"):
        sys.modules.pop(name, None)


def answer(folder: Path) -> tuple[int, bool]:
    """What above(1, 2) is, and whether its code was loaded from a file."""
    above = load(folder).above
    return above(1, 2), bool(above.stats.cache_hits)


def test_a_call_with_a_literal_compiles_no_variant_of_its_own(modules: Path) -> None:
    module = load(modules)
    module.above(1, 2)
    assert len(module.below.overloads) == 1


@pytest.mark.parametrize(
    ("caller", "old", "new", "found"),
    [
        (BEHIND_A_MODULE, "STEP = 10", "STEP = 100", 202),
        (CALLER, "STEP * k", "STEP * k * 10", 202),
        (CALLER, "int = 0", "int = 90", 202),
        (CALLER, "@kernel", "@kernel(reorder=True)", 22),
        (CALLER, "@kernel", "@kernel(inner=True)", 22),
        (CALLER, "@kernel", "@kernel(inline=True)", 22),
    ],
)
def test_a_kernel_is_compiled_anew_when_one_it_calls_has_changed(
    modules: Path, caller: str, old: str, new: str, found: int
) -> None:
    (modules / "caller.py").write_text(caller)
    assert answer(modules) == (22, False)
    assert answer(modules) == (22, True)
    (modules / "callee.py").write_text(CALLEE.replace(old, new))
    assert answer(modules) == (found, False)
    assert answer(modules) == (found, True)


def test_files_made_under_another_limit_are_not_linked(modules: Path, stand_in: StandIn) -> None:
    """A kernel that is called leaves no body for callers: one who copied it would call nothing."""
    answer(modules)
    stand_in(MAX_COPIED_BYTES=400 - compiled.MAX_COPIED_BYTES)
    (modules / "caller.py").write_text(CALLER + "\n")
    assert answer(modules) == (22, False)


def test_another_process_finds_what_a_kernel_calls(modules: Path) -> None:
    answer(modules)
    module = "from sparsecv.solvers.kernels import compiled"
    limit = f"{module}; compiled.MAX_COPIED_BYTES = {compiled.MAX_COPIED_BYTES}"
    call = f"{limit}; from caller import above; print(above(1, 2), bool(above.stats.cache_hits))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(modules), str(ROOT)])}
    command = [sys.executable, "-c", call]
    assert subprocess.check_output(command, env=environment, text=True).split() == ["22", "True"]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals")
@pytest.mark.parametrize("modules", [0], indirect=True)
def test_a_terminal_is_told_before_kernels_are_compiled(modules: Path) -> None:
    """The line comes once, before two kernels are compiled, and not where files have them."""
    call = "import sys, caller; print('begin', file=sys.stderr); print(caller.above(1, 2))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(modules), str(ROOT)])}
    for told in ("compiling, once after an install: this may take a minute\n", ""):
        ours, theirs = os.openpty()
        command = [sys.executable, "-c", call]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True
        ) as process:
            os.close(theirs)
            assert process.communicate()[0] == "22\n"
        shown = os.read(ours, 1000).decode().replace("\r\n", "\n")
        os.close(ours)
        assert shown == f"begin\n{told}"


NAME = """
from numba import float64, int64
from sparsecv.solvers.kernels.compiled import Kernel
from sparsecv.solvers.kernels.linalg import dot
types = (float64[::1], float64[::1], int64)
if isinstance(dot, Kernel):
    dot.compile(types)
    print(dot.symbol(types))
"""


def test_processes_that_compile_at_the_same_time_name_code_alike(tmp_path: Path) -> None:
    """One stores a kernel, the other what calls it: a name that no file has ends the process."""
    names = set()
    for seed in range(4):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)}
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / str(seed))
        done = subprocess.check_output([sys.executable, "-c", NAME], env=environment, text=True)
        names.add(done)
    assert len(names) == 1


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0.0, 0.5, -1.0])
def test_a_damaged_file_is_compiled_anew(modules: Path, suffix: str, left: float) -> None:
    answer(modules)
    files = list(modules.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(b"\0" * 64 if left < 0 else whole[: int(left * len(whole))])
    assert answer(modules) == (22, False)
    assert answer(modules) == (22, True)


def test_a_file_of_before_under_an_index_of_now_is_compiled_anew(modules: Path) -> None:
    """What is on disk while another process, which has written the index, writes the file."""
    answer(modules)
    before = {file.name: file.read_bytes() for file in modules.rglob("*.nbc")}
    (modules / "callee.py").write_text(CALLEE.replace("STEP = 10", "STEP = 100"))
    assert answer(modules) == (202, False)
    for file in modules.rglob("*.nbc"):
        file.write_bytes(before[file.name.replace(".2.nbc", ".1.nbc")])
    assert answer(modules) == (202, False)
    assert answer(modules) == (202, True)


def test_an_index_that_holds_something_else_is_compiled_anew(modules: Path) -> None:
    answer(modules)
    for file in modules.rglob("*.nbi"):
        version = pickle.loads(file.read_bytes())
        file.write_bytes(pickle.dumps(version) + pickle.dumps("neither a stamp nor overloads"))
    assert answer(modules) == (22, False)


COLD = """
import sys
import numpy as np
import sparsecv
from sparsecv import Constraints
from sparsecv.solvers import SparseRidgeProblem, best_subsets
from sparsecv.solvers.kernels.compiled import Kernel
from sparsecv.solvers.leaps import within

def loaded(modules):
    kernels = (one for module in modules for one in vars(module).values())
    own = {module.__name__ for module in modules}
    return sum(
        bool(one.overloads)
        for one in kernels
        if isinstance(one, Kernel) and one.py_func.__module__ in own
    )

ours = [module for name, module in sys.modules.items() if name.startswith("sparsecv")]
print(loaded(ours))
X = np.random.default_rng(0).standard_normal((9, 4))
for bounds in (None, {0: (0.0, 1.0)}):
    asked = None if bounds is None else Constraints(bounds=bounds)
    best_subsets(SparseRidgeProblem(X, X[:, 0], gamma=1.0, tau=2, constraints=asked))
    print(loaded([within]) > 0)
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_an_import_compiles_nothing_and_a_plain_problem_no_code_for_bounds() -> None:
    """Fields that are 0 in every record of a plain tree take the code behind them away."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = subprocess.check_output([sys.executable, "-c", COLD], env=environment, text=True)
    assert said.split() == ["0", "False", "True"]


def test_a_kernel_divides_by_zero_as_numpy_does() -> None:
    @kernel
    def inverse(x):  # type: ignore[no-untyped-def]
        return 1.0 / x

    if isinstance(inverse, Kernel):
        assert np.isinf(inverse(0.0))


def test_a_temporary_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = Path(private_folder())
    assert private_folder() == str(folder)
    folder.chmod(0o777)  # anyone could put code there
    assert private_folder() != str(folder)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert private_folder() != str(folder)


WARM = """
import sys
import numpy as np
from numba.core import event
from sparsecv import Constraints, SparseRidge, SparseRidgeCV
from sparsecv.cli.main import main
from sparsecv.cli.warmup import PATHS, STAGES
from sparsecv.solvers import SparseRidgeProblem, heuristic_support, perspective_relaxation
from sparsecv.solvers.kernels.compiled import Kernel

compiled = []

class Note(event.Listener):
    def on_start(self, event):
        if isinstance(event.data["dispatcher"], Kernel):
            compiled.append(event.data["dispatcher"].__name__)

    def on_end(self, event):
        pass

def loaded():
    ours = [module for name, module in sys.modules.items() if name.startswith("sparsecv")]
    kernels = [one for module in ours for one in vars(module).values() if isinstance(one, Kernel)]
    return {(one.__name__, str(types)) for one in kernels for types in one.overloads}

event.register("numba:compile", Note())
for stage in STAGES:
    for path in stage:
        PATHS[path]()
of_warmup = loaded()
assert of_warmup
for p in (10, 60):
    X = np.random.default_rng(2).standard_normal((50, p))
    y = X[:, :3].sum(axis=1)
    bounds = {0: (-0.1, 0.1)}
    rules = Constraints(groups=list(np.arange(p) // 2)), Constraints(bounds=bounds, include=[1])
    for one in rules:
        SparseRidgeCV(taus=[2, 3], gammas=[1.0], constraints=one).fit(X, y)
    SparseRidge(tau=2, gamma=0.0, constraints=rules[1]).fit(X, y)
X = np.random.default_rng(1).standard_normal((30, 60))
problem = SparseRidgeProblem(X, X[:, :4].sum(axis=1), gamma=1.0, tau=5)
heuristic_support(problem)
perspective_relaxation(problem)
for command in (["cv", "diabetes", "--folds", "loo"], ["fit", "diabetes", "--tau", "3"]):
    assert main([*command, "--quiet"]) == 0
print("compiled:", *compiled)
print("beyond the warm-up:", *sorted({name for name, _ in loaded() - of_warmup}))
"""


@pytest.mark.slow
def test_nothing_is_compiled_after_warmup(tmp_path: Path) -> None:
    """Without a copy of what a warm-up compiled, code of earlier runs may be there for all calls.

    The calls then have to load no code but that which the warm-up has loaded.
    """
    environment = {**os.environ, "PYTHONPATH": os.environ.get(WARMED, str(ROOT))}
    environment.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.check_output(
        [sys.executable, "-c", WARM], env=environment, cwd=tmp_path, text=True
    )
    compiled, beyond = done.splitlines()[-2:]
    assert compiled == "compiled:" or WARMED not in environment
    assert beyond == "beyond the warm-up:"


CALL_OF_A_KERNEL = """
import numpy as np
from sparsecv.solvers.kernels.fits import FitRoom, ridge_fits
rows = np.random.default_rng(0).standard_normal((5, 20))
R, order = np.zeros((3, 3)), np.zeros((3, 2), dtype=np.int64)
room, coef, objective = FitRoom(R, np.zeros((3, 20)), order), np.zeros((1, 2)), np.zeros(1)
assert ridge_fits(rows, 0.5, False, np.array([[0, 3]]), coef, objective, room, 1e-6) == 0
used = rows[[0, 3, 4]]
np.testing.assert_allclose(R.T @ R, used @ used.T + np.diag([0.5, 0.5, 0.0]), rtol=1e-12)
"""
# a foreign user who may read everything, so that the interpreter need not lie in an open folder
FOREIGN = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]
FOREIGN += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("setpriv") is None or subprocess.call([*FOREIGN, "true"]) != 0,
    reason="only root can be another user",
)
def test_a_user_who_can_write_nowhere_but_in_a_temporary_folder() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders lie below one closed to others
    folder.chmod(0o777)
    environment = {k: v for k, v in os.environ.items() if k not in DROPPED}
    environment |= {"PYTHONPATH": str(ROOT), "HOME": "/nonexistent", "TMPDIR": str(folder)}

    def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*FOREIGN, sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    try:
        assert as_nobody("-c", "open('here', 'w')").returncode != 0
        command = ("-m", "sparsecv", "fit", "diabetes", "--tau", "99", "--quiet")
        # A command that is refused compiles nothing, and says nothing of compiled code.
        for arguments, status, said in ((("-c", CALL_OF_A_KERNEL), 0, 1), (command, 2, 0)):
            done = as_nobody(*arguments)
            assert done.returncode == status, done.stderr
            assert done.stderr.count("compiled code is kept in") == said, done.stderr
        assert list(folder.glob("sparsecv-54321/*/*.nbi"))
    finally:
        shutil.rmtree(folder)


def test_ctrl_c_waits_for_the_compiler(modules: Path, stand_in: StandIn) -> None:
    """LLVM calls back into Python and swallows what is raised there: the exit status said done."""
    above = load(modules).above
    real = KernelCache.save_overload
    saved = []

    def pressed(self: KernelCache, sig: Any, data: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        real(self, sig, data)
        saved.append(self.kernel.__name__)

    stand_in(save_kernel=pressed)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        above(1, 2)
    assert saved == ["below", "above"]  # compiled to the end
    assert signal.getsignal(signal.SIGINT) is before
    assert above(1, 2) == 22


GONE = """
import numba.core.registry
del numba.core.registry.CPUDispatcher
import numpy as np
from sparsecv.solvers.kernels.compiled import Kernel
"""
CALLS = """
from caller import above
assert above(1, 2) == 22
assert above(1.5, 2) == 23.0
assert not isinstance(above, Kernel)
"""


def without_internals(then: str, folder: Path) -> None:
    """Run some code where numba lacks a class that kernels are made with."""
    paths = os.pathsep.join([str(ROOT), str(folder)])
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder)}
    subprocess.check_call([sys.executable, "-c", GONE + then], env=environment)


def test_kernels_without_numbas_internals(modules: Path) -> None:
    without_internals(CALLS + CALL_OF_A_KERNEL, modules)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_newer_numba_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = compiled._internals_work.__wrapped__
    for version in ("0.60.0", "99.1.0rc1"):
        monkeypatch.setattr("numba.__version__", version)
        assert serve()


def fails(*_: Any) -> Any:
    raise TypeError("an interface that has changed")


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize(
    ("owner", "name", "changed"),
    [
        (compiled.NamedByContent, "define_pipelines", fails),
        (compiled, "KernelCache", fails),
        (KernelCache, "save_overload", lambda *_: None),
        (KernelCache, "load_overload", lambda *_: None),
        (compiled.Callee, "__call__", fails),
    ],
)
def test_a_newer_numba_that_differs_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, owner: Any, name: str, changed: Any
) -> None:
    monkeypatch.setattr("numba.__version__", "99.1.0rc1")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(owner, name, changed)
    assert not compiled._internals_work.__wrapped__()
    assert compiled._probed(1.0, 2) == 3.0


def test_the_order_of_fields_decides_the_code() -> None:
    """Kernels find the fields of a record by their places."""
    first = by_reference()(NamedTuple("Pair", [("a", int), ("b", int)]))
    second = by_reference()(NamedTuple("Pair", [("b", int), ("a", int)]))
    assert typeof(first(1, 2)).name != typeof(second(1, 2)).name
