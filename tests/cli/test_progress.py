"""What a command says on standard error while it works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.inside import CLOCK, Steps, compiled, main
from support.stand_ins import StandIn
from support.tables import five_columns, write_csv

from sparsecv.clock import Clock

Capture = pytest.CaptureFixture[str]
LINE = re.compile(r"[0-9]+ s: (.+): ([0-9]+) of ([0-9]+) steps")
OF_SEARCHES = re.compile(r"[γτ]|cell|problem")


def lines(
    monkeypatch: pytest.MonkeyPatch, stand_in: StandIn, *options: str
) -> list[tuple[str, int, int]]:
    """What stands in the line of progress after every report of a cross-validation."""
    write_csv(Path("t.csv"), *five_columns())
    found: list[tuple[str, int, int]] = []
    report = Steps.__call__
    never = property(lambda _: False, lambda *_: None)  # test_compiling_is_said
    monkeypatch.setattr(Clock, "compiles", never, raising=False)

    def told(steps: Steps, *what: object) -> None:
        report(steps, *what)  # type: ignore[arg-type]
        match = LINE.fullmatch(steps.line)
        assert match is not None
        found.append((match[1], int(match[2]), int(match[3])))

    stand_in(show_steps=told)
    assert main(["cv", "t.csv", "--html", "r.html", *options]) in (0, 1)
    return found


@pytest.mark.parametrize(
    "options",
    [
        ["--gamma", "0.1,1", "--nested", "--prove", "all"],
        ["--folds", "loo", "--rule", "projected", "--n-best", "2", "--no-nested"],
        ["--gamma", "1,2", "--rule", "minimum", "--method", "search"],
        ["--gamma", "0.1,10", "--rule", "stability"],
        ["--gamma", "global", "--no-nested"],
    ],
)
def test_numbers_only_grow_and_words_are_those_of_users(
    options: list[str], monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    found = lines(monkeypatch, stand_in, *options)
    words, done, total = zip(*found, strict=True)
    assert list(done) == sorted(done)
    assert list(total) == sorted(total)
    assert all(one <= most for one, most in zip(done, total, strict=True))
    assert done[-1] > 5
    assert not [text for text in words if OF_SEARCHES.search(text)]
    assert words[0] == "reading t.csv"
    assert "fitting the folds" in " ".join(words)
    nested = "the error to expect, outer fold 2 of" in " ".join(words)
    assert nested or "--nested" not in options
    assert not (nested and "--no-nested" in options)
    assert words[-1] == "reports and pictures"


def test_verbose_tells_more(monkeypatch: pytest.MonkeyPatch, stand_in: StandIn) -> None:
    asked = "--gamma", "1,2", "--rule", "minimum", "--method", "search", "--verbose"
    found = lines(monkeypatch, stand_in, *asked)
    assert any("γ = 2" in words for words, _, _ in found)


def test_compiling_is_said(stand_in: StandIn) -> None:
    steps = Steps()
    steps("fitting the folds", 0, 5)
    steps("fitting the folds", 2, 5)
    assert steps.line == "0 s: fitting the folds: 2 of 5 steps"
    stand_in(compiles=True)
    assert steps.line == "0 s: compiling, once: 2 of 5 steps"


def test_a_kernel_that_is_compiled_is_being_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    """Loading a kernel from its file is no compiling; making the file is."""
    source = "from sparsecv.solvers.kernels.compiled import kernel\n\n\n@kernel\ndef one(x):\n"
    (tmp_path / "fresh_kernel.py").write_text(source + "    return x + 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    seen: list[bool] = []
    save = compiled.KernelCache.save_overload

    def saved(self: compiled.KernelCache, *what: object) -> None:
        seen.append(CLOCK.compiles)
        save(self, *what)

    stand_in(save_kernel=saved)
    from fresh_kernel import one  # type: ignore[import-not-found]

    assert one(1.0) == 2.0
    assert seen == [True]
    assert not CLOCK.compiles


def test_lines_come_while_a_command_works(stand_in: StandIn, capsys: Capture) -> None:
    stand_in(FIRST_LINE_SECONDS=0.02)
    write_csv(Path("t.csv"), *five_columns())
    assert main(["cv", "t.csv", "--nested"]) == 0
    said = [LINE.fullmatch(line) for line in capsys.readouterr().err.splitlines()]
    found = [(int(one[2]), int(one[3])) for one in said if one is not None]
    assert found
    assert found == sorted(found)
    assert main(["cv", "t.csv", "--nested", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
