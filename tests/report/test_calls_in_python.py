"""What calls in Python show while they work, and where."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.linear_model import Ridge
from support.inside import Steps
from support.stand_ins import StandIn, real

from sparsecv import SparseRidge, SparseRidgeCV, StabilityCV
from sparsecv.report.progress import tell, telling

RNG = np.random.default_rng(5)
X = RNG.standard_normal((40, 4))
Y = X[:, 0] + 0.5 * X[:, 1] + RNG.standard_normal(40)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(stand_in: StandIn) -> list[Steps]:
    """The steps of every line that a call would show."""
    lines: list[Steps] = []

    @contextmanager
    def display(steps: Steps) -> Iterator[None]:
        lines.append(steps)
        yield

    stand_in(display=display)
    return lines


def until(done: Callable[[], bool]) -> None:
    """Wait until something is so; a test that hangs has failed."""
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < 60.0
        time.sleep(0.01)


def fitted() -> SparseRidge:
    return SparseRidge(tau=2).fit(X, Y)


CALLS: dict[str, Callable[[], object]] = {
    "proving the best columns": fitted,
    "subsets that fit nearly as well": lambda: fitted().near_best(),
    "the best fit without each column": lambda: fitted().importance(),
    "the responses that select the same columns": lambda: fitted().inference(),
    "the best columns without each row": lambda: fitted().row_influence(),
    "the best columns without several rows": lambda: fitted().row_removals(2),
    "the 2 best of every size": lambda: fitted().alternatives(2),
    "the best of every size": lambda: fitted().path_,
    "what every rule chooses": lambda: fitted().compare(),
    "the page of a report": lambda: fitted().report(),
}


@pytest.mark.parametrize("what", CALLS)
def test_every_call_that_may_take_long_has_one_line(what: str, shown: list[Steps]) -> None:
    CALLS[what]()
    assert shown[-1].words.split(",")[0] == what
    assert len(shown) == (1 if what == "proving the best columns" else 2)


def test_a_cross_validation_tells_its_steps(shown: list[Steps]) -> None:
    model = SparseRidgeCV(nested=3).fit(X, Y)
    model.partitions(2)
    fit, other = shown
    assert fit.done > 5
    assert "the error to expect" in fit.words
    assert other.done > 5


@pytest.mark.filterwarnings("ignore:time limit reached")
def test_learners_and_models_of_folds_have_lines_too(shown: list[Steps]) -> None:
    SparseRidgeCV().fit(X, Y).predict_interval(X[:2])
    StabilityCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3, random_state=0).fit(X, Y)
    StabilityCV(SparseRidge(backend="native", time_limit=0), {"tau": [1, 2]}, cv=3, lambdas=0).fit(
        X, Y
    )
    _, folds, ridge, sparse, last = shown
    assert folds.words == "models for prediction intervals"
    assert ridge.words == "fitting the folds of every candidate"
    assert {sparse.words, last.words} == {"proving the best columns"}


def test_a_call_within_a_call_reports_to_the_same_line(shown: list[Steps]) -> None:
    with telling("outside"):
        telling_of_inside = telling("inside")
        with telling_of_inside:
            tell("deeper", 1, 2)
            assert shown[0].words == "deeper"
    assert len(shown) == 1
    tell("nobody hears this", 0, 1)


def test_a_terminal_shows_a_line_that_goes_away(
    monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    stand_in(FIRST_LINE_SECONDS=0.01)
    with telling("counting sheep"):
        until(lambda: "counting sheep" in screen.getvalue())
    assert screen.getvalue().endswith("\x1b[2K")  # The line is erased.


def test_a_short_call_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with telling("a moment"):
        pass
    assert screen.getvalue() == ""


def test_a_notebook_shows_a_line_that_ends_empty(
    monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    said: list[str] = []

    class Handle:
        def update(self, text: dict[str, str], raw: bool) -> None:
            assert raw
            said.append(text["text/plain"])

    def display(text: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert display_id
        handle = Handle()
        handle.update(text, raw)
        return handle

    kernel = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    stand_in(FIRST_LINE_SECONDS=0.01)
    with telling("counting sheep"):
        until(lambda: bool(said))
    assert "counting sheep" in said[0]
    assert said[-1] == ""


def kind_of_display() -> str:
    sys.stderr = Terminal()
    try:
        return type(real("display")(Steps())).__name__
    finally:
        sys.stderr = sys.__stderr__


def test_nothing_is_shown_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = type(real("display")(Steps())).__name__  # pytest's standard error is a file.
    assert nothing == "nullcontext"
    assert kind_of_display() != nothing
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(kind_of_display()))
    thread.start()
    thread.join()
    assert found == [nothing]
    for backend in ("threading", "loky"):
        work = [delayed(kind_of_display)()] * 2
        assert Parallel(2, backend=backend)(work) == [nothing] * 2


@pytest.mark.parametrize("verbose", [0, 1])
def test_verbose_is_silent_or_prints(
    verbose: int, shown: list[Steps], capsys: pytest.CaptureFixture[str]
) -> None:
    model = SparseRidgeCV(cv=3, gammas=[1.0], verbose=verbose).fit(X, Y)
    model.compare()
    assert not shown
    out = capsys.readouterr().out
    assert ("fitting the folds: 0 of 1" in out) == bool(verbose)
    assert ("what every rule chooses" in out) == bool(verbose)


def test_standard_error_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setattr(sys, "stderr", missing)
    with telling("as in a window without a console"):
        pass
