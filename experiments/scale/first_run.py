"""This script measures the compile time of every code path, and a fresh install's first commands.

    python -m experiments.scale.first_run            (some minutes)
    python -m experiments.scale.first_run kernels    also prints the longest compilations

Every path runs first in a process of its own with an empty cache, which gives the time of the
path's first call. Then all paths run with a shared cache, which gives the time of all of them.
Times are CPU seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

from numba.core import event

from experiments.common import ROOT, last_json, machine
from sparsecv.cli.warmup import PATHS

ALONE, TOGETHER = 20.0, 60.0  # required


class Compilations(event.Listener):  # type: ignore[misc]
    """CPU seconds of every function, less those of the functions it made numba compile."""

    def __init__(self) -> None:
        self.open: list[list[float]] = []
        self.seconds: dict[str, float] = {}
        self.variants: dict[str, int] = {}

    def on_start(self, event: Any) -> None:
        self.open.append([time.process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        started, inside = self.open.pop()
        whole = time.process_time() - started
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__.removeprefix('sparsecv.')}.{function.__name__}"
        self.seconds[name] = self.seconds.get(name, 0.0) + whole - inside
        self.variants[name] = self.variants.get(name, 0) + 1
        if self.open:
            self.open[-1][1] += whole


def child(path: str) -> None:
    """Run one path and print what was compiled."""
    compilations = Compilations()
    event.register("numba:compile", compilations)
    PATHS[path]()
    print(json.dumps([compilations.seconds, compilations.variants]))


def compiled(path: str, cache: str) -> tuple[dict[str, float], dict[str, int]]:
    """The same from a process with its own cache folder."""
    command = [sys.executable, "-m", __spec__.name, "child", path]
    (seconds, variants), _ = last_json(command, NUMBA_CACHE_DIR=cache)
    return seconds, variants


def megabytes(folder: str) -> float:
    return sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file()) / 1e6


def kilobytes(folder: str) -> dict[str, float]:
    """Files of every kernel, by its module and name: numba calls them module.name-line.version."""
    found: dict[str, float] = {}
    for file in Path(folder).rglob("*.nb*"):
        name = f"{file.parent.name.rpartition('_')[0]}.{file.name.partition('-')[0]}"
        found[name] = found.get(name, 0.0) + file.stat().st_size / 1e3
    return found


def table(with_kernels: bool) -> None:
    """Compile seconds of every path, alone and after those above it."""
    print(f"{'first call of':<34} {'alone':>7} {'after':>7} {'functions':>10} {'variants':>9}")
    everything: dict[str, float] = {}
    twice: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as shared:
        for path in PATHS:
            with tempfile.TemporaryDirectory() as own:
                alone, variants = compiled(path, own)
            after, _ = compiled(path, shared)
            everything |= after
            twice |= {name: count for name, count in variants.items() if count > 1}
            total = sum(alone.values())
            print(
                f"{path:<34} {total:6.1f}s {sum(after.values()):6.1f}s {len(alone):>10} "
                f"{sum(variants.values()):>9}{'  over' if total > ALONE else ''}",
                flush=True,
            )
        total = sum(everything.values())
        sizes = kilobytes(shared)
        print(f"together {total:.1f} s (required {TOGETHER:.0f} s), {megabytes(shared):.1f} MB")
        again = sum(sum(compiled(path, shared)[0].values()) for path in PATHS)
        print(f"a second time {again:.1f} s")
    print(f"compiled more than once: {', '.join(sorted(twice)) or 'none'}")
    if with_kernels:
        for name, seconds in sorted(everything.items(), key=lambda item: -item[1])[:20]:
            print(f"  {seconds:6.2f} s {sizes.get(name, 0.0):6.0f} kB  {name}")


def spent() -> float:
    """CPU seconds of all child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def install() -> None:
    """Whole processes in a fresh virtual environment: the first compiles what it needs."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        started = spent()
        subprocess.run(
            [programs / "python", "-m", "pip", "install", "-q", str(ROOT)],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        print(f"\ninstall {spent() - started:.0f} s")
        for name, required in (("first", 30), ("second", 3)):
            started = spent()
            subprocess.run(
                [programs / "sparsecv", "cv", "diabetes", "--folds", "loo", "--quiet"],
                check=True,
                cwd=folder,
            )
            seconds = spent() - started
            print(f"{name} run {seconds:.1f} s (required {required} s)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2])
    else:
        print(machine())
        table("kernels" in sys.argv[1:])
        install()
