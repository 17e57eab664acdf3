"""The command as a process: output, interrupts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.commands import hard_csv
from support.inside import main
from support.stand_ins import StandIn
from support.tables import growing_columns, write_csv

import sparsecv

# ---------------------------------------------------------------------------- as a process

ANNOUNCED = """
import sys
from sparsecv.cv.prove_cells import CellProver

real = CellProver.prove

def announced(self, need):
    print("proving", file=sys.stderr, flush=True)
    return real(self, need)

CellProver.prove = announced
from sparsecv.cli.main import main
main()
"""


def start(*arguments: str, script: str | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, *(["-c", script] if script else ["-m", "sparsecv"]), *arguments]

    def default_interrupt() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores it

    root = str(Path(sparsecv.__file__).parents[1])
    paths = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        preexec_fn=None if os.name == "nt" else default_interrupt,
    )


def finish(process: subprocess.Popen[str], timeout: float = 120.0) -> tuple[str, str]:
    try:
        return process.communicate(timeout=timeout)
    finally:
        process.kill()


def without_progress(err: str) -> list[str]:
    """The lines on standard error that do not say what is being done, as after two seconds."""
    told = re.compile(r"\d+ s: .*: \d+ of \d+( steps)?$")
    return [line for line in err.splitlines() if not told.match(line)]


def test_module_as_a_process() -> None:
    write_csv(Path("t.csv"), *growing_columns())
    process = start("cv", "t.csv", "--folds", "4", "--gamma", "1", "--json", "o.json")
    out, err = finish(process)
    assert (process.returncode, without_progress(err)) == (0, [])
    assert out.startswith("chosen ")
    assert json.loads(Path("o.json").read_text())["n"] == 40
    process = start("cv", "t.csv", "--folds", "400")
    out, err = finish(process)
    assert (process.returncode, out) == (2, "")
    assert len(without_progress(err)) == 1


def test_output_that_cannot_show_greek(monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(Path("t.csv"), *growing_columns())
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    process = start("cv", "t.csv", "--folds", "4", "--gamma", "1")
    out, err = finish(process)
    assert (process.returncode, without_progress(err)) == (0, [])
    assert "CV error" in out


def interrupt(process: subprocess.Popen[str], after: str, wait: float) -> str:
    """Send SIGINT a while after a line on stderr; what was left on stderr by the end, soon."""
    assert process.stderr is not None
    for line in process.stderr:
        if after in line:
            break
    else:
        pytest.fail(f"ended before {after!r}, status {process.wait()}")
    time.sleep(wait)
    assert process.poll() is None, "the tree ended before it could be interrupted"
    process.send_signal(signal.SIGINT)
    return finish(process, 600.0)[1]  # the trees take hours; kernels are compiled to their end


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to another process")
@pytest.mark.parametrize(("folds", "jobs"), [("5", "1"), ("loo", "2")])
def test_interrupt_during_folds(folds: str, jobs: str) -> None:
    """What is known when Ctrl-C comes is written, and says what is proved."""
    hard_csv(Path("hard.csv"))
    process = start(
        *("cv", "hard.csv", "--gamma", "1000,0.01", "--time-limit", "9000", "--jobs", jobs),
        *("--folds", folds, "--json", "o.json", "--tau", "12,20", "--prove", "all"),
        *("--save", "m.json"),
        script=ANNOUNCED,
    )
    err = interrupt(process, "proving", 1.0)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    results = json.loads(Path("o.json").read_text())["results"]
    assert [one["gamma"] for one in results] == [1000.0, 0.01]
    for one in results:
        for low, up in zip(one["lower"], one["upper"], strict=True):
            assert low >= 0.0
            assert up is None or low <= up  # null: Ctrl-C came before the upper end was computed
    saved = json.loads(Path("m.json").read_text())
    assert saved["tau"] in (12, 20)
    assert not saved["proved"]
    assert "Ctrl-C" in saved["note"]
    assert main(["predict", "m.json", "hard.csv", "--out", "p.csv"]) == 0


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to another process")
@pytest.mark.parametrize(
    "arguments",
    [["cv", "--tau", "15:20", "--gamma", "0.01", "--rule", "minimum"], ["fit", "--tau", "20"]],
)
def test_interrupt_of_the_command(arguments: list[str]) -> None:
    hard_csv(Path("hard.csv"))
    process = start(arguments[0], "hard.csv", *arguments[1:], "--save", "m.json")
    err = interrupt(process, "100 columns", 1.5)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    if arguments[0] == "fit":  # cv may not know a model so soon.
        saved = json.loads(Path("m.json").read_text())
        assert len(saved["support"]) == 20
        assert not saved["proved"]
        assert "Ctrl-C" in saved["note"]


def test_interrupt_after_the_choice(stand_in: StandIn) -> None:
    """The chosen model is written where Ctrl-C comes while other subsets are ranked."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    stand_in(alternatives_of_the_command=interrupted)
    write_csv(Path("t.csv"), *growing_columns())
    files = "--save", "m.json", "--json", "o.json"
    assert main(["cv", "t.csv", "--gamma", "1", "--n-best", "2", *files]) == 130
    saved = json.loads(Path("m.json").read_text())
    assert saved["proved"]
    assert "after the choice" in saved["note"]
    assert json.loads(Path("o.json").read_text())["interrupted"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_predictions_that_nobody_can_take_end_in_one_line() -> None:
    write_csv(Path("t.csv"), *growing_columns())
    assert main(["fit", "t.csv", "--tau", "1", "--save", "m.json", "--quiet"]) == 0
    with Path("/dev/full").open("w") as full:
        for more, name in (([], "standard output"), (["--out", "/dev/full"], "--out /dev/full")):
            command = [sys.executable, "-m", "sparsecv", "predict", "m.json", "t.csv", *more]
            root = str(Path(sparsecv.__file__).parents[1])
            done = subprocess.run(
                command,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                env={**os.environ, "PYTHONPATH": root},
            )
            assert done.returncode == 2
            said = f"sparsecv: error: {name}: No space left on device"
            assert without_progress(done.stderr) == [said]
    files = ["--save", "n.json", "--json", "o.json", "--plot", "p.png"]
    for command in (["predict", "m.json", "t.csv"], ["cv", "t.csv", "--gamma", "1", *files]):
        process = start(*command)
        assert process.stdout is not None
        process.stdout.close()  # As with ``| head``.
        assert process.stderr is not None
        with process.stderr:
            assert without_progress(process.stderr.read()) == []
        assert process.wait(timeout=120) == 1
    assert all(Path(name).stat().st_size > 0 for name in files[1::2])
