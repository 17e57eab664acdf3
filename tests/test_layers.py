"""The layers of docs/architecture: lower ones never import upper ones, and nothing is circular.

And the sizes of CONTRIBUTING: what is read in one go stays short.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import code_lines

import sparsecv

ROOT = Path(sparsecv.__file__).parent
LAYERS = [  # top to bottom; what stands on one line may not import each other
    ["__main__"],
    ["cli"],
    ["risk", "integrations"],
    ["stability"],
    ["estimators"],
    ["plots"],
    ["selection"],
    ["cv"],
    ["design"],
    ["tables", "solvers"],
    ["errors"],
]
SOLVERS = [
    ["budget"],
    ["api", "paths"],
    ["executor"],
    ["cluster"],
    ["remote"],
    ["backends"],
    ["branching"],
    ["ridge_fits"],
    ["leaps"],
    ["relaxation"],
    ["supports"],
    ["core"],
    ["kernels"],
]


def imported(path: Path) -> set[tuple[str, ...]]:
    """Modules of the package that a file imports, as parts below ``sparsecv``."""
    inside = path.relative_to(ROOT.parent).with_suffix("").parts
    home = inside[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else ()
            parts = (*base, *(node.module or "").split("."))
            if parts[0] == "sparsecv":
                below = tuple(part for part in parts[1:] if part)
                found |= {(*below, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {tuple(parts[1:]) for parts in names if parts[0] == "sparsecv"}
    return found


def upward(layers: list[list[str]], folder: Path, depth: int) -> list[str]:
    """Imports between layers that do not run downwards."""
    floor = {name: i for i, layer in enumerate(layers) for name in layer}
    wrong = []
    for path in sorted(folder.rglob("*.py")):
        own = path.relative_to(folder).with_suffix("").parts[0]
        if own == "__init__":
            continue
        assert own in floor, f"{path} stands in no layer"
        for target in imported(path):
            if target[:depth] != path.relative_to(ROOT).parts[:depth] or len(target) <= depth:
                continue
            other = target[depth]
            if other not in floor:  # a name that a package exports, not a module of it
                continue
            if other != own and floor[other] <= floor[own]:
                wrong.append(f"{path.relative_to(ROOT)} imports {'.'.join(target)}")
    return wrong


def test_no_import_runs_upwards() -> None:
    assert upward(LAYERS, ROOT, 0) == []


def test_no_import_runs_upwards_among_the_solvers() -> None:
    assert upward(SOLVERS, ROOT / "solvers", 1) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    arrows: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in ROOT.rglob("*.py"):
        own = path.relative_to(ROOT).with_suffix("").parts
        if own[-1] == "__init__":
            continue
        arrows[own] = set()
        for target in imported(path):
            for end in (target, target[:-1]):
                if end and ROOT.joinpath(*end).with_suffix(".py").exists():
                    arrows[own].add(end)
                    break
    while True:
        leaves = [own for own, to in arrows.items() if not (to & arrows.keys() - {own})]
        if not leaves:
            break
        for own in leaves:
            del arrows[own]
    assert arrows == {}


def test_the_listing_stays_short() -> None:
    entries = [p.name for p in ROOT.iterdir() if p.name != "__pycache__"]
    assert len(entries) <= 15, entries


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function of the package, and where it is."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(ROOT)}: {node.name}", node


def compiled(function: ast.FunctionDef) -> bool:
    return any("kernel" in ast.unparse(each) for each in function.decorator_list)


def test_no_module_has_more_than_450_lines_of_code() -> None:
    """Neither blank, nor comment, nor docstring."""
    paths = [*ROOT.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]
    lines = {str(path): code_lines(path.read_text(encoding="utf-8")) for path in paths}
    assert {path: n for path, n in lines.items() if n > 450} == {}


def test_no_function_has_more_than_80_lines() -> None:
    """From its name to its last line, with its docstring."""
    length = {name: (f.end_lineno or 0) - f.lineno + 1 for name, f in functions()}
    assert len(length) > 500
    assert {name: n for name, n in length.items() if n > 80} == {}


def test_few_functions_have_more_than_12_parameters() -> None:
    """Commands, whose options they are, and estimators, whose settings they are, alone."""
    many = {
        name
        for name, f in functions()
        if len(f.args.posonlyargs + f.args.args + f.args.kwonlyargs) > 12 and not compiled(f)
    }
    assert many == {
        "cli/cv.py: cv",
        "cli/fit.py: fit",
        "cli/stability.py: stability",
        "estimators/sparse_ridge.py: __init__",
        "estimators/sparse_ridge_cv.py: __init__",
        "integrations/pysindy.py: __init__",
        "stability/estimator.py: __init__",
    }


@pytest.mark.skipif(
    not (Path(__file__).parents[1] / "sparsecv").is_dir(),
    reason="frames.py looks at the package beside the tests: this is not a checkout",
)
def test_a_datum_climbs_at_most_12_functions_from_the_command_to_the_first_kernel() -> None:
    script = Path(__file__).with_name("frames.py")
    *functions_above, kernel = subprocess.check_output(
        [sys.executable, str(script)], text=True
    ).splitlines()
    assert functions_above[0] == "cli.main.main"
    assert kernel.startswith("kernel ")
    assert len(functions_above) <= 12, functions_above
