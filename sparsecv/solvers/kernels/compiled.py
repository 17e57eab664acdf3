"""Compile kernels and keep their machine code on disk: ``@kernel`` replaces numba's decorators.

A kernel is a function that numba compiles. numba keeps machine code beside the sources or in the
user's cache folder, and compiles a function again when the function's own file has changed. Here a
kernel is also compiled again when a kernel that it calls, a constant, or an option has changed; a
damaged file counts as missing; and a temporary folder is used where nothing else can be written.

numba copies every function into its callers and optimises each copy again. Here only small kernels
are copied. A larger kernel is compiled once, is called by name, and is loaded before its callers.

Four classes of numba are extended for that: its dispatcher, its compiler with one pass, and its
cache. Where a newer numba has changed them, numba's own decorator is used: kernels then take longer
to compile, and time limits count the time of compiling.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import signal
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
from numba import config, njit, types

from ...clock import CLOCK
from .by_reference import Reference, received

try:
    from numba.core.caching import FunctionCache
    from numba.core.compiler import Compiler
    from numba.core.compiler_machinery import FunctionPass, register_pass
    from numba.core.registry import CPUDispatcher
    from numba.core.untyped_passes import IRProcessing
except ImportError:
    FunctionCache = Compiler = CPUDispatcher = FunctionPass = object

    def register_pass(**_: Any) -> Any:
        """Leave a class as it is, since without numba's own classes no pass is run."""
        return lambda made: made


# The newest numba (major, minor) whose internals this module was tested with. With a newer numba
# every process first compiles or loads two small functions to see whether the internals still work.
KNOWN_NUMBA = (0, 68)
PUBLIC: dict[str, Any] = {"nogil": True, "error_model": "numpy"}  # options that numba documents
PRIVATE: dict[str, Any] = {
    "nopython": True,
    "no_cfunc_wrapper": True,  # Python and kernels call a kernel; C never does
    "_nrt": False,  # kernels allocate nothing, so numba need not count references
}


class Sorted(set[str]):
    """A set whose text is the same in every process.

    numba names machine code by the text of its options. That of a plain set of strings has another
    order in another process, and code that is stored by both would call names that no file has.
    """

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, sorted(self)))}}}"


# Sums may be reordered, and products and sums fused; NaN and infinity keep their meaning.
REORDER = {"fastmath": Sorted({"contract", "reassoc"})}
# These passes of numba's compiler change code that kernels do not have: closures, blocks of
# ``with``, literal arguments, functions inlined early, and expressions of whole arrays. Each pass
# looks at every statement, and without them all compiling takes 6 % less time.
UNNEEDED_PASSES = {
    "FindLiterallyCalls",
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NopythonRewrites",
    "WithLift",
}
# A kernel of at most this many bytes of Python bytecode is copied into its callers; a larger kernel
# is compiled once and called by name. The number is a choice: results do not depend on it.
MAX_COPIED_BYTES = 400


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
        return partial(kernel, reorder=reorder, inner=inner, inline=inline)
    if config.DISABLE_JIT:
        return function
    options = {**PUBLIC, **(REORDER if reorder else {})}
    if _internals_work():
        wrapper = {"no_cpython_wrapper": inner or inline, "forceinline": inline}
        return _kernel(function, {**options, **PRIVATE, **wrapper}, MAX_COPIED_BYTES)
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no folder can be written, or the function was typed in
        return njit(**options)(function)


def _kernel(function: Callable[..., Any], options: dict[str, Any], most_copied: int) -> Kernel:
    """The function as a kernel, which is called by name if it has more bytes than are copied."""
    made = (InnerKernel if options["no_cpython_wrapper"] else Kernel)(
        py_func=function, targetoptions=options, pipeline_class=NamedByContent
    )
    made.by_name = len(function.__code__.co_code) > most_copied and not options["forceinline"]
    return made


@cache
def _internals_work() -> bool:
    """Whether numba has the internals used here, and they still work as they are used here.

    A newer numba compiles and stores a kernel with the kernel that it calls by name. Both are then
    loaded from their files as another process would load them.
    """
    if object in (FunctionCache, Compiler, CPUDispatcher):
        return False
    if tuple(map(int, numba.__version__.split(".")[:2])) <= KNOWN_NUMBA:
        return True
    global _probed
    plain, options = _probed, {**PUBLIC, **PRIVATE, "forceinline": False}
    try:
        for _ in range(2):
            _probed = called = _kernel(plain, {**options, "no_cpython_wrapper": True}, 0)
            probe = _kernel(_probe, {**options, "no_cpython_wrapper": False}, 0)
            right = probe(1.0, 2) == 12.0
        return bool(right and probe.stats.cache_hits and called.stats.cache_hits)
    except Exception:  # a changed interface may raise anything
        return False
    finally:
        _probed = plain


def _probed(x: Any, k: Any) -> Any:
    """x + k: the kernel that :func:`_probe` calls, to see whether numba's internals work."""
    return x + k


def _probe(x: Any, k: Any) -> Any:
    """x + (x + k)² + k, which is 12 for x = 1 and k = 2."""
    return _probed(x, 0) + _probed(x, k) * _probed(x, k) + k


_lock = threading.RLock()
# For every kernel that is being compiled, the innermost last: the kernel and the kernels it calls.
_open: list[tuple[Kernel, list[Callee]]] = []


@contextmanager
def _compiling() -> Iterator[None]:
    """Count the seconds spent inside as time of compiling, and let Ctrl-C wait until the end.

    LLVM calls back into Python and would swallow the exception of Ctrl-C, which Python raises in
    the main thread only. Python's search for cyclic garbage waits, too: of the many objects that
    numba makes it would look at all, over and over, for a sixth of the time (measured).
    """
    came: list[bool] = []
    main = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT) if main else None
    collects = gc.isenabled()
    gc.disable()
    if callable(previous):
        signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        with CLOCK.stopped():
            yield
    finally:
        CLOCK.compiles = False
        if collects:
            gc.enable()
        if callable(previous):
            signal.signal(signal.SIGINT, previous)
            if came:
                previous(signal.SIGINT, None)


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """numba's dispatcher, which compiles a function once for each combination of argument types.

    Every signed integer counts as one type, that of 64 bits.

    by_name: Whether callers call the kernel's machine code by name. Otherwise they copy it.
    """

    by_name: bool

    @cached_property
    def known(self) -> set[str]:
        """Names of the machine code that this process has loaded or compiled, none at first.

        The first look at them turns on the keeping of files, so that kernels that a process never
        compiles look for no files.
        """
        # Where not even a temporary folder can be written, every process compiles the kernel again.
        with suppress(OSError, RuntimeError):
            self.enable_caching()
        return set()

    def enable_caching(self) -> None:
        """Keep the machine code in files."""
        self._cache = KernelCache(self)

    def compile(self, sig: Any) -> Any:
        """Compile or load the machine code for the argument types ``sig``, and time that.

        Of nested calls the outermost counts the time of all. Code that is new in this process is
        noted in ``known``, and callers of a kernel that is called by name get nothing to copy.

        sig: A tuple of numba's types, or a signature.
        Returns: What numba's own method returns, the entry point of the code.
        """
        with _lock, nullcontext() if _open else _compiling():
            known = self.known  # Before the compiling, as the first look turns on the files.
            _open.append((self, []))
            try:
                entry = super().compile(sig)
            finally:
                _open.pop()
            for made in self.overloads.values():
                if made.fndesc.llvm_func_name not in known:
                    known.add(made.fndesc.llvm_func_name)
                    if self.by_name:
                        define_for_callers(made, "")
            return entry

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The template of a call in another kernel, which from now on loads this kernel first.

        Without widened arguments numba would compile a call with 0 apart from a call with k.
        """
        plain = {name: widened(value) for name, value in kws.items()}
        found = super().get_call_template(tuple(map(widened, args)), plain)
        callee = Callee(self, tuple(found[2]), self.symbol(found[2]))
        if _open and callee not in _open[-1][1]:
            _open[-1][1].append(callee)
        return found

    def symbol(self, args: Any) -> str:
        """Name of the machine code for the argument types ``args``."""
        return str(self.overloads[tuple(args)].fndesc.llvm_func_name)

    @cached_property
    def stamp(self) -> str:
        """Hash of all that decides the machine code, but for the types of arguments.

        That is the bytecode, the options, the module-level constants, the fields of the records
        that the code makes, and the same of every kernel that the code calls.
        """
        code, names = self.py_func.__code__, self.py_func.__globals__
        modules = [names[n] for n in code.co_names if isinstance(names.get(n), ModuleType)]
        frozen = [
            (name, value.stamp if isinstance(value, Kernel) else value)
            for scope in (names, *map(vars, modules))
            for name in code.co_names
            if isinstance(value := scope.get(name), (Kernel, int, float, tuple))
        ]
        frozen += [(name, getattr(names.get(name), "_fields", ())) for name in code.co_names]
        content = (code.co_code, code.co_consts, code.co_names, code.co_varnames, frozen)
        decided = repr((content, self.targetoptions, self.by_name))
        return hashlib.sha256(decided.encode()).hexdigest()[:16]

    def __reduce__(self) -> str:
        return str(self.py_func.__qualname__)  # a kernel is pickled by its name, as functions are


class InnerKernel(Kernel):
    """A kernel that Python cannot call."""

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is called by kernels only")


class Callee(NamedTuple):
    """A kernel that another kernel's machine code calls: its argument types and its name there."""

    kernel: Kernel
    args: tuple[Any, ...]
    symbol: str

    def __call__(self) -> None:
        """Load or compile the kernel; numba calls this before it loads the caller."""
        if self.symbol in self.kernel.known:  # Types of records take long to compare.
            return
        self.kernel.compile(self.args)
        if self.kernel.symbol(self.args) != self.symbol:  # a missing name would end the process
            raise LookupError(self.symbol)


def widened(argument: Any) -> Any:
    """The type that a kernel is compiled for when another kernel passes ``argument``, a type."""
    plain = received(types.unliteral(argument))
    signed = isinstance(plain, types.Integer) and plain.signed
    return types.int64 if signed else plain


class NamedByContent(Compiler):  # type: ignore[misc]
    """numba's compiler, with names that let one process call machine code of another process."""

    def define_pipelines(self) -> Any:
        """Name the machine code by the kernel's stamp, and store what it calls beside it.

        Passes that kernels do not need are left out.
        """
        made, callees = _open[-1]
        self.state.func_id.unique_id = made.stamp
        self.state.reload_init = callees
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(ZeroFields, IRProcessing)
            pipeline.passes = [
                step for step in pipeline.passes if step[0].__name__ not in UNNEEDED_PASSES
            ]
            pipeline.finalize()
        return pipelines


@register_pass(mutates_CFG=False, analysis_only=False)
class ZeroFields(FunctionPass):  # type: ignore[misc]
    """Replace fields that are 0 in every record of a type by 0, before types are inferred.

    numba then leaves out the code below a condition such as ``if tree.wide > 0``, and compiles no
    kernel that is called there only. :func:`~.by_reference.by_reference` says which fields.
    """

    _name = "zero_fields"

    def __init__(self) -> None:
        super().__init__()  # numba's own class is abstract

    def run_pass(self, state: Any) -> bool:
        """Change the code of one kernel, ``state.func_ir``; whether anything was replaced."""
        ir, ir_utils = numba.core.ir, numba.core.ir_utils
        code, changed = state.func_ir, False
        reads = [
            assigned
            for block in code.blocks.values()
            for assigned in block.find_insts(ir.Assign)
            if isinstance(assigned.value, ir.Expr) and assigned.value.op == "getattr"
        ]
        for assigned in reads:
            field = assigned.value
            record = ir_utils.guard(ir_utils.get_definition, code, field.value)
            kind = state.args[record.index] if isinstance(record, ir.Arg) else None
            if isinstance(kind, Reference) and field.attr in kind.zeros:
                assigned.value = ir.Const(0, field.loc)
                code._definitions[assigned.target.name] = [assigned.value]
                changed = True
        return changed


def define_for_callers(compiled: Any, code: str) -> None:
    """Let callers of a kernel link ``code`` in place of a copy of the kernel.

    compiled: numba's result of compiling the kernel.
    """
    compiled.library._shared_module = llvm.parse_assembly(code)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's files of one kernel, which may be stale, damaged or not writable."""

    def __init__(self, made: Kernel) -> None:
        self.kernel, function = made, made.py_func
        try:
            super().__init__(function)
        except RuntimeError:  # neither the sources' folder nor the user's cache can be written
            if not Path(function.__code__.co_filename).exists():
                raise  # the function was typed in, so that no source file tells when it changes
            folder = private_folder()  # processes that are started from here use the folder as well
            config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = folder
            warnings.warn(
                f"compiled code is kept in {folder}: neither the folder of sparsecv nor the user's "
                "cache can be written; NUMBA_CACHE_DIR names another place",
                stacklevel=2,
            )
            super().__init__(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for the types ``sig``, or None where no file has it."""
        found = None
        try:
            # numba's own method first loads all that numba can compile, which takes three times as
            # long as all kernels of a fit. Machine code that exists needs nothing of it.
            with self._guard_against_spurious_io_errors():
                found = self._load_overload((sig, self.kernel.stamp), target_context)
        except Exception:  # unpickling half a file may raise anything
            with suppress(OSError):
                self.flush()
        # Another process may have written numba's index and not yet the file that the index names:
        # that file then holds older code, or code for other types.
        if found is not None:
            current = self.kernel.stamp in found.fndesc.llvm_func_name
            if not current or tuple(found.signature.args) != tuple(sig):
                found = None
        if found is None:
            announce()
            CLOCK.compiles = True
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel; where the disk is full the next process compiles again.

        sig: Types of the arguments. data: What numba has compiled for them.
        """
        if self.kernel.by_name:
            names = (data.fndesc.llvm_func_name, data.fndesc.llvm_cpython_wrapper_name)
            # Beside the machine code numba stores functions that callers would copy.
            # It reads only the names of these functions, so that empty functions serve.
            bodies = [f'define void @"{name}"() {{ ret void }}\n' for name in names]
            define_for_callers(data, "".join(bodies))
        with suppress(OSError, pickle.PicklingError):
            super().save_overload((sig, self.kernel.stamp), data)


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


@cache
def announce() -> None:
    """Say on a terminal, once per process, that kernels are being compiled."""
    if sys.stderr.isatty():
        what = "compiling, once after an install: this may take a minute"
        print(what, file=sys.stderr)
