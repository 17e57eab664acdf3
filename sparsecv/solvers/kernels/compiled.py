"""Compile kernels and keep their machine code on disk: ``@kernel`` replaces numba's decorators.

A kernel is a function that numba compiles. numba keeps machine code beside the sources or in the
user's cache folder, and compiles a function again when the function's own file has changed. Here a
kernel is also compiled again when a kernel that it calls, a constant, or an option has changed; a
damaged file counts as missing; and a temporary folder is used where nothing else can be written.

numba copies every function into its callers and optimises each copy again. Here only small kernels
are copied. A larger kernel is compiled once, is called by name, and is loaded before its callers.

All of this uses internals of numba. Where a newer numba has changed them, numba's own decorator is
used: kernels then take longer to compile, and time limits count the time of compiling.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numba
from numba import config, njit, types

try:
    import llvmlite.binding as llvm
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.compiler import Compiler
    from numba.core.registry import CPUDispatcher
except ImportError:
    CompileResultCacheImpl = FunctionCache = Compiler = CPUDispatcher = object
    INTERNALS = False
else:
    INTERNALS = True

# The newest numba (major, minor) whose internals this module was tested with. With a newer numba
# every process first compiles two small functions to see whether the internals still work.
KNOWN_NUMBA = (0, 68)
OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # Python and kernels call a kernel; C never does
    "_nrt": False,  # kernels allocate nothing, so numba need not count references
}
PUBLIC = ("nogil", "error_model", "fastmath")  # the options that numba documents
# Sums may be reordered, and products and sums fused; NaN and infinity keep their meaning.
REORDER = {"reassoc": True, "contract": True}
# A kernel of at most this many bytes of Python bytecode is copied into its callers; a larger kernel
# is compiled once and called by name. The number is a choice: results do not depend on it.
MAX_COPIED_BYTES = 400
# Bytes of Python bytecode that one processor core compiles in a second, measured on a core of 2020.
# The number only enters the announced time of a first call; twice the number halves that time.
BYTECODE_BYTES_PER_SECOND = 2500.0


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    reorder: bool = False,
    inner: bool = False,
    inline: bool = False,
) -> Any:
    """Compile a function on its first call, and keep the machine code for the next process.

    function: Written in the part of Python that numba compiles; the function allocates no memory.
    reorder: Whether numba may reorder the function's sums, which is faster and rounds differently.
    inner: Whether only kernels call the function. The code that lets Python call a kernel often
        takes longer to compile than the kernel, and is left out.
    inline: As ``inner``, and the function is copied into its callers, for calls in inner loops.
    Returns: A function that is called like ``function``. Under ``NUMBA_DISABLE_JIT=1`` that is
        ``function`` itself.
    """
    if function is None:
        return lambda f: kernel(f, reorder=reorder, inner=inner, inline=inline)
    if config.DISABLE_JIT:
        return function
    inner = inner or inline
    options = {**OPTIONS, "forceinline": inline, "no_cpython_wrapper": inner}
    if reorder:
        options["fastmath"] = REORDER
    if _internals_work():
        return _own(function, options)
    public = {name: options[name] for name in PUBLIC if name in options}
    try:
        return njit(cache=True, **public)(function)
    except RuntimeError:  # no folder can be written, or the function was typed in
        return njit(**public)(function)


def _own(function: Callable[..., Any], options: dict[str, Any]) -> Kernel:
    """The function as a kernel with its file on disk, compiled with numba's internals."""
    function.__dict__["options"] = options
    made = (InnerKernel if options.get("no_cpython_wrapper") else Kernel)(
        py_func=function, locals={}, targetoptions=options, pipeline_class=NamedByContent
    )
    # where not even a temporary folder can be written, every process compiles the kernel again
    with suppress(OSError, RuntimeError):
        made._cache = KernelCache(function)
    return made


@cache
def _internals_work() -> bool:
    """Whether numba has the internals used here, and they still work as they are used here."""
    if not INTERNALS or tuple(map(int, numba.__version__.split(".")[:2])) <= KNOWN_NUMBA:
        return INTERNALS
    global _probed, MAX_COPIED_BYTES
    limit, MAX_COPIED_BYTES = MAX_COPIED_BYTES, 0  # ``_probe`` then calls ``_probed`` by name
    try:
        _probed = _own(_probed, {**OPTIONS, "no_cpython_wrapper": True})
        return bool(_own(_probe, OPTIONS)(1.0, 2) == 12.0)
    except Exception:  # a changed interface may raise anything
        return False
    finally:
        MAX_COPIED_BYTES = limit


def _probed(x: Any, k: Any) -> Any:
    return x + k


def _probe(x: Any, k: Any) -> Any:
    return _probed(x, 0) + _probed(x, k) * _probed(x, k) + k


# ``seconds`` counts the time of compiling so far, ``depth`` the kernels being compiled inside one
# another, and ``announced`` says whether the user was told that kernels are being compiled.
_clock = SimpleNamespace(seconds=0.0, depth=0, announced=False, lock=threading.RLock())


@contextmanager
def _compiling() -> Iterator[None]:
    """Count the seconds spent inside as time of compiling, and let Ctrl-C wait until the end.

    The seconds of a kernel that makes other kernels compile are counted once. LLVM calls back into
    Python and would swallow the exception of Ctrl-C, which Python raises in the main thread only.
    """
    with _clock.lock:
        began, outermost, came = time.perf_counter(), _clock.depth == 0, []
        main = threading.current_thread() is threading.main_thread()
        previous = signal.getsignal(signal.SIGINT) if main and outermost else None
        if callable(previous):
            signal.signal(signal.SIGINT, lambda *_: came.append(True))
        _clock.depth += 1
        try:
            yield
        finally:
            _clock.depth -= 1
            if outermost:
                _clock.seconds += time.perf_counter() - began
            if callable(previous):
                signal.signal(signal.SIGINT, previous)
                if came:
                    previous(signal.SIGINT, None)


def seconds_compiling() -> float:
    """Seconds this process has spent compiling and loading kernels so far."""
    return float(_clock.seconds)


def compiled_elsewhere(seconds: float) -> None:
    """Count seconds that this process has waited for another process to compile."""
    with _clock.lock:
        _clock.seconds += seconds


class NamedByContent(Compiler):  # type: ignore[misc]
    """numba's compiler, with names that let one process call machine code of another process.

    The machine code of a kernel gets a name made of the kernel's :func:`stamp`.
    """

    def _compile_bytecode(self) -> Any:
        self.state.func_id.unique_id = stamp(self.state.func_id.func)[:16]
        return super()._compile_bytecode()


# For every kernel that is being compiled, the innermost last: the kernels that it calls, each with
# the types of the arguments.
_calls: list[dict[tuple[Kernel, Any], None]] = []


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """numba's dispatcher, which compiles a function once for each combination of argument types.

    Every signed integer counts as one type, that of 64 bits.
    """

    def compile(self, sig: Any) -> Any:
        """Compile or load the machine code for the argument types ``sig``, and time that."""
        with _compiling():
            _calls.append({})
            try:
                entry = super().compile(sig)
            finally:
                _calls.pop()
            for made in self.overloads.values():
                give_callers(made, self.py_func, "")
            return entry

    def symbol(self, args: Any) -> str:
        """Name of the machine code for the argument types ``args``."""
        return str(self.overloads[args].fndesc.llvm_func_name)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The template of a call in another kernel, with arguments widened, and noted in _calls.

        Without widening numba would compile a call with a literal 0 apart from a call with k.
        """
        plain = {name: widened(value) for name, value in kws.items()}
        found = super().get_call_template(tuple(map(widened, args)), plain)
        if _calls:
            _calls[-1][self, tuple(found[2])] = None
        return found

    def __reduce__(self) -> str:
        return str(self.py_func.__qualname__)  # a kernel is pickled by its name, as functions are


class InnerKernel(Kernel):
    """A kernel that Python cannot call."""

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is called by kernels only")


def widened(argument: Any) -> Any:
    """The type that a kernel is compiled for when another kernel passes ``argument``, a type."""
    plain = types.unliteral(argument)
    signed = isinstance(plain, types.Integer) and plain.signed
    return types.int64 if signed else plain


def give_callers(compiled: Any, function: Callable[..., Any], code: str) -> None:
    """Let callers of a kernel that is too large to be copied link ``code`` in place of a copy.

    compiled: numba's result of compiling ``function``.
    """
    if not compiled.fndesc.inline and len(function.__code__.co_code) > MAX_COPIED_BYTES:
        compiled.library._shared_module = llvm.parse_assembly(code)


class WithCallees(CompileResultCacheImpl):  # type: ignore[misc]
    """Write and read a compiled kernel together with the list of kernels that it calls.

    The machine code of a kernel holds only the names of kernels that are too large to be copied.
    """

    def reduce(self, cres: Any) -> Any:
        """What is written to disk for a kernel that was just compiled."""
        callees = [(kernel, args, kernel.symbol(args)) for kernel, args in _calls[-1]]
        return callees, super().reduce(cres)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Load the kernels that a kernel calls, and then the kernel."""
        callees, compiled = payload
        for kernel, args, symbol in callees:
            kernel.compile(args)
            if kernel.symbol(args) != symbol:  # calling a missing name would end the process
                raise LookupError(symbol)
        return super().rebuild(target_context, compiled)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's files of one function, which may be stale, damaged or not writable."""

    _impl_class = WithCallees

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self.function = py_func
        try:
            super().__init__(py_func)
        except RuntimeError:  # neither the sources' folder nor the user's cache can be written
            if not Path(py_func.__code__.co_filename).exists():
                raise  # the function was typed in, so that no source file tells when it changes
            folder = private_folder()  # processes that are started from here use the folder as well
            config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = folder
            warnings.warn(
                f"compiled code is kept in {folder}: neither the folder of sparsecv nor the user's "
                "cache can be written; NUMBA_CACHE_DIR names another place",
                stacklevel=2,
            )
            super().__init__(py_func)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for the types ``sig``, or None where no file has it."""
        try:
            found = super().load_overload((sig, stamp(self.function)), target_context)
        except Exception:  # unpickling half a file may raise anything
            found = None
            with suppress(OSError):
                self.flush()
        # Another process may have written numba's index and not yet the file that the index names:
        # that file then holds older code, or code for other types.
        if found is not None:
            current = stamp(self.function)[:16] in found.fndesc.llvm_func_name
            if not current or tuple(found.signature.args) != tuple(sig):
                found = None
        if found is None:
            announce(self.function)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function; where the disk is full the next process compiles again."""
        names = (data.fndesc.llvm_func_name, data.fndesc.llvm_cpython_wrapper_name)
        # numba keeps these bodies beside the machine code and reads only the names
        bodies = [f'define void @"{name}"() {{ ret void }}\n' for name in names]
        give_callers(data, self.function, "".join(bodies))
        with suppress(OSError, pickle.PicklingError):
            super().save_overload((sig, stamp(self.function)), data)


# Types of the module-level names that numba compiles into a kernel: kernels, numbers, and settings.
FROZEN = (Kernel, int, float, tuple)


def used(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Kernels and constants of modules that a function's code uses: pairs of name and value."""
    names = function.__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            inside = vars(value)
            yield from ((n, inside[n]) for n in names if isinstance(inside.get(n), FROZEN))
        elif isinstance(value, FROZEN):
            yield name, value


def kernels_of(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The function, and the function of every kernel that it calls, directly or through others."""
    found = [function]
    for each in found:
        for _, value in used(each):
            if isinstance(value, Kernel) and value.py_func not in found:
                found.append(value.py_func)
    return found


@cache
def stamp(function: Callable[..., Any]) -> str:
    """Hash of all that decides the machine code of a kernel.

    That is the bytecode, the options and the module-level constants of the kernel and of every
    kernel that it calls, and the limit up to which kernels are copied.
    """
    digest = hashlib.sha256(str(MAX_COPIED_BYTES).encode())
    for each in kernels_of(function):
        code, options = each.__code__, each.__dict__.get("options")
        constants = [(n, v) for n, v in used(each) if not isinstance(v, Kernel)]
        names = (code.co_consts, code.co_names, code.co_varnames, constants, options)
        digest.update(code.co_code)
        digest.update(repr(names).encode())
    return digest.hexdigest()


def private_folder() -> str:
    """A temporary folder that nobody else can write to, as code loaded from the folder is run."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"sparsecv-{owner}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        shared = found.st_uid != owner or (found.st_mode & 0o022 and os.name == "posix")
        if stat.S_ISDIR(found.st_mode) and not shared:
            return str(folder)
    return tempfile.mkdtemp(prefix="sparsecv-")


def announce(function: Callable[..., Any]) -> None:
    """Say on a terminal, once per process, that kernels are being compiled and about how long."""
    if _clock.announced or not sys.stderr.isatty():
        return
    _clock.announced = True
    seconds = sum(len(f.__code__.co_code) for f in kernels_of(function)) / BYTECODE_BYTES_PER_SECOND
    print(f"compiling once (about {seconds:.0f} s)", file=sys.stderr)
