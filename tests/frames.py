"""Print the way of one datum: the functions of sparsecv from the command to the first kernel.

    python tests/frames.py [ARGUMENT ...]

This script runs ``sparsecv cv`` on six rows (or on the arguments given) with kernels as plain
Python functions, so that Python's profiler sees the first kernel being called. It prints the
functions on the stack at that moment, the outermost first and the kernel last. At most twelve
functions may stand above the kernel.
"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = "a,b,y\n1,2,3\n2,1,4\n3,5,5\n4,4,9\n5,1,1\n6,2,8\n"
COMMAND = ("cv", "t.csv", "--folds", "2", "--gamma", "1", "--quiet")


def kernels() -> set[tuple[str, str]]:
    """File and name of every function of the package that is decorated with ``@kernel``."""
    return {
        (str(path), node.name)
        for path in (ROOT / "sparsecv").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(each).startswith("kernel") for each in node.decorator_list)
    }


def way(arguments: tuple[str, ...]) -> list[str]:
    """Functions of the package on the stack when the first kernel is called, then the kernel."""
    known, found = kernels(), []

    def watch(frame: FrameType | None, event: str, argument: Any) -> None:
        code = frame.f_code if frame is not None else None
        if found or event != "call" or (code.co_filename, code.co_name) not in known:
            return
        found.append(f"kernel {code.co_name}")
        while (frame := frame.f_back) is not None:
            name = frame.f_globals.get("__name__", "")
            if name.startswith("sparsecv") and not frame.f_code.co_name.startswith("<"):
                found.insert(0, f"{name.removeprefix('sparsecv.')}.{frame.f_code.co_name}")

    from sparsecv.cli.main import main

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        main(list(arguments))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("t.csv").write_text(TABLE, encoding="utf-8")
        names = way(tuple(sys.argv[1:]) or COMMAND)
        os.chdir(ROOT)
    print(*names, sep="\n")
