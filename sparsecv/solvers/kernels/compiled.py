"""How kernels are compiled and where they are kept: ``@kernel`` in place of numba's decorators.

numba keeps compiled code beside the sources or in the user's cache folder, and recompiles a
function when its own file has changed. Here it is also recompiled when a kernel it calls has, a
damaged file counts as none, and where nothing can be written a temporary folder serves.

numba links a copy of what a function calls into it and optimises it again, all the way down. Here
only small kernels are copied; others are called where they are, and loaded before their callers.

All this rests on internals of numba. Where they are not what they were, numba's own decorator
serves: kernels then take longer to compile, and time limits count that time.
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

# The newest numba these internals are known from. Of a newer one they are tried first, which
# compiles two small functions in every process.
KNOWN_NUMBA = (0, 68)
OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # called from Python and from kernels, never from C
    "_nrt": False,  # nothing is allocated, so no references are counted
}
PUBLIC = ("nogil", "error_model", "fastmath")  # of the options, what numba documents
REORDER = {"reassoc", "contract"}  # sums may be reordered; NaN and infinity keep their meaning
# A kernel of at most this many bytes of bytecode is copied into its callers, which may then run
# faster and compile longer; a larger one is called where it is. Twice as many bytes copy more
# kernels, so that first calls from an empty cache take longer.
MAX_COPIED_BYTES = 400
# What one core of 2020's compiles: a first call is announced with its bytes over this number.
BYTECODE_BYTES_PER_SECOND = 2500.0


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    reorder: bool = False,
    inner: bool = False,
    inline: bool = False,
) -> Any:
    """Compile a function on its first call, and keep the machine code for the next process.

    function: Written in what numba compiles, without anything that allocates.
    reorder: Whether its sums may be reordered, for speed.
    inner: Whether only kernels call it: unpacking Python's records costs more to compile than many
        a kernel.
    inline: Inner, and copied into its callers: for what is called in an inner loop.
    Returns: Called like ``function``; under ``NUMBA_DISABLE_JIT=1`` the function itself.
    """
    if function is None:
        return lambda f: kernel(f, reorder=reorder, inner=inner, inline=inline)
    if config.DISABLE_JIT:
        return function
    inner = inner or inline
    options = {**OPTIONS, "forceinline": inline, "no_cpython_wrapper": inner}
    if reorder:
        options["fastmath"] = REORDER
    return _own(function, options, inner) if _own_serve() else _plain(function, options)


def _own(function: Callable[..., Any], options: dict[str, Any], inner: bool) -> Kernel:
    made = (InnerKernel if inner else Kernel)(
        py_func=function, locals={}, targetoptions=options, pipeline_class=NamedByContent
    )
    # where there is not even a temporary folder, it is compiled anew in every process
    with suppress(OSError, RuntimeError):
        made._cache = KernelCache(function)
    return made


def _plain(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """The function compiled by numba's own decorator."""
    public = {name: options[name] for name in PUBLIC if name in options}
    try:
        return njit(cache=True, **public)(function)
    except RuntimeError:  # nothing can be written, or the function was typed in
        return njit(**public)(function)


@cache
def _own_serve() -> bool:
    """Whether numba has the internals used here, and they do what they did."""
    if not INTERNALS or tuple(map(int, numba.__version__.split(".")[:2])) <= KNOWN_NUMBA:
        return INTERNALS
    global _probed, MAX_COPIED_BYTES
    limit, MAX_COPIED_BYTES = MAX_COPIED_BYTES, 0  # the one probe calls the other where it is
    try:
        _probed = _own(_probed, {**OPTIONS, "no_cpython_wrapper": True}, True)
        return bool(_own(_probe, OPTIONS, False)(1.0, 2) == 12.0)
    except Exception:  # whatever a changed interface raises
        return False
    finally:
        MAX_COPIED_BYTES = limit


def _probed(x: Any, k: Any) -> Any:
    return x + k


def _probe(x: Any, k: Any) -> Any:
    return _probed(x, 0) + _probed(x, k) * _probed(x, k) + k


_clock = SimpleNamespace(seconds=0.0, depth=0, lock=threading.RLock())


@contextmanager
def _compiling() -> Iterator[None]:
    """Add the time to the clock, once for kernels that make others compile; let Ctrl-C wait.

    LLVM calls back into Python and would swallow the exception that Ctrl-C raises. Python raises
    it in the main thread alone.
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
    """Count seconds that this process has waited while others compiled."""
    with _clock.lock:
        _clock.seconds += seconds


class NamedByContent(Compiler):  # type: ignore[misc]
    """numba's pipeline; machine code of the same kernel has the same name in every process."""

    def _compile_bytecode(self) -> Any:
        self.state.func_id.unique_id = stamp(self.state.func_id.func)[:16]
        return super()._compile_bytecode()


# what each kernel being compiled calls, innermost last: kernels and argument types
_calls: list[dict[tuple[Kernel, Any], None]] = []


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """numba's dispatcher, one specialisation per type: any integer is one of 64 bits."""

    def compile(self, sig: Any) -> Any:
        """Compile or load one specialisation; the time it takes is kept apart."""
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
        """Name of the machine code for some argument types."""
        return str(self.overloads[args].fndesc.llvm_func_name)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What another kernel's call compiles; numba would compile k = 0 apart from k."""
        plain = {name: widened(value) for name, value in kws.items()}
        found = super().get_call_template(tuple(map(widened, args)), plain)
        if _calls:
            _calls[-1][self, tuple(found[2])] = None
        return found

    def __reduce__(self) -> str:
        return str(self.py_func.__qualname__)  # found where it stands, as functions are


class InnerKernel(Kernel):
    """A kernel that Python cannot call."""

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is called by kernels only")


def widened(argument: Any) -> Any:
    """The type a kernel is compiled for when a kernel passes it this one."""
    plain = types.unliteral(argument)
    signed = isinstance(plain, types.Integer) and plain.signed
    return types.int64 if signed else plain


def give_callers(compiled: Any, function: Callable[..., Any], code: str) -> None:
    """Have callers of a kernel too large to be copied link ``code`` in place of its own."""
    if not compiled.fndesc.inline and len(function.__code__.co_code) > MAX_COPIED_BYTES:
        compiled.library._shared_module = llvm.parse_assembly(code)


class WithCallees(CompileResultCacheImpl):  # type: ignore[misc]
    """A compiled kernel on disk, and what it calls: its machine code only holds their names."""

    def reduce(self, cres: Any) -> Any:
        """What is kept of a kernel just compiled."""
        callees = [(kernel, args, kernel.symbol(args)) for kernel, args in _calls[-1]]
        return callees, super().reduce(cres)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Load what the kernel calls and then itself."""
        callees, compiled = payload
        for kernel, args, symbol in callees:
            kernel.compile(args)
            if kernel.symbol(args) != symbol:  # with other options: a call would end the process
                raise LookupError(symbol)
        return super().rebuild(target_context, compiled)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function that survives stale, damaged and unwritable files."""

    _impl_class = WithCallees

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self.function = py_func
        try:
            super().__init__(py_func)
        except RuntimeError:  # neither the sources' folder nor the user's cache can be written
            if not Path(py_func.__code__.co_filename).exists():
                raise  # typed in: there is no source to keep code beside
            use_temporary_folder()
            super().__init__(py_func)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function, or None where it has to be compiled."""
        try:
            found = super().load_overload((sig, stamp(self.function)), target_context)
        except Exception:  # unpickling half a file may raise anything
            found = None
            with suppress(OSError):
                self.flush()
        # another process may be between writing numba's index and the file it names, which then
        # still holds what was compiled before, or for other types
        if found is not None and not self._is_current(found, sig):
            found = None
        if found is None:
            announce(self.function)
        return found

    def _is_current(self, found: Any, sig: Any) -> bool:
        """Whether compiled code is of this function as it stands, and of these types."""
        name = found.fndesc.llvm_func_name
        return stamp(self.function)[:16] in name and tuple(found.signature.args) == tuple(sig)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function; a full disk costs the next process a compilation."""
        names = (data.fndesc.llvm_func_name, data.fndesc.llvm_cpython_wrapper_name)
        # numba keeps this code beside the machine code and asks it for names only
        bodies = [f'define void @"{name}"() {{ ret void }}\n' for name in names]
        give_callers(data, self.function, "".join(bodies))
        with suppress(OSError, pickle.PicklingError):
            super().save_overload((sig, stamp(self.function)), data)


FROZEN = (Kernel, int, float, tuple)  # what compiled code holds of its module: tuples of settings


def called(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Names of the module that a function's code uses, and what they stand for."""
    names = function.__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            inside = vars(value)
            yield from ((n, inside[n]) for n in names if isinstance(inside.get(n), FROZEN))
        elif isinstance(value, FROZEN):
            yield name, value


def kernels_of(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The function and every kernel it calls, directly or not."""
    found = [function]
    for each in found:
        for _, value in called(each):
            if isinstance(value, Kernel) and value.py_func not in found:
                found.append(value.py_func)
    return found


@cache
def stamp(function: Callable[..., Any]) -> str:
    """Hash of the code of a function and its kernels, and of the constants frozen into them."""
    digest = hashlib.sha256(str(MAX_COPIED_BYTES).encode())  # decides what a file gives its callers
    for each in kernels_of(function):
        code = each.__code__
        constants = [(n, v) for n, v in called(each) if not isinstance(v, Kernel)]
        digest.update(code.co_code)
        digest.update(repr((code.co_consts, code.co_names, code.co_varnames, constants)).encode())
    return digest.hexdigest()


def use_temporary_folder() -> None:
    """Have numba, here and in processes started from here, keep its files in a temporary folder."""
    folder = private_folder()
    config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = folder
    warnings.warn(
        f"compiled code is kept in {folder}: neither the folder of sparsecv nor the user's cache "
        "can be written; NUMBA_CACHE_DIR names another place",
        stacklevel=2,
    )


def private_folder() -> str:
    """A temporary folder nobody else can write to: what is loaded from it runs."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"sparsecv-{owner}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        shared = found.st_uid != owner or (found.st_mode & 0o022 and os.name == "posix")
        if stat.S_ISDIR(found.st_mode) and not shared:
            return str(folder)
    return tempfile.mkdtemp(prefix="sparsecv-")


_announced = False


def announce(function: Callable[..., Any]) -> None:
    """Say on a terminal, once per process, that a kernel is being compiled and about how long."""
    global _announced
    if _announced or not sys.stderr.isatty():
        return
    _announced = True
    seconds = sum(len(f.__code__.co_code) for f in kernels_of(function)) / BYTECODE_BYTES_PER_SECOND
    print(f"compiling once (about {seconds:.0f} s)", file=sys.stderr)
