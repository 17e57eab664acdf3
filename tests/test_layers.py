"""The layers of docs/architecture: lower ones never import upper ones, and nothing is circular."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import house

import sparsecv

ROOT = Path(sparsecv.__file__).parent
LAYERS = [  # top to bottom; what stands on one line may not import each other
    ["__main__"],
    ["cli"],
    ["risk", "integrations"],
    ["estimators"],
    ["wings"],
    ["report"],
    ["plots"],
    ["selection"],
    ["stability"],
    ["cv"],
    ["design"],
    ["tables", "solvers"],
    ["_version", "clock", "errors", "schedule", "verify"],
]
SOLVERS = [
    ["solution"],
    ["backends"],
    ["api", "paths"],
    ["cluster"],
    ["certificate"],
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


def test_the_core_imports_no_wing_and_wings_say_what_they_add() -> None:
    modules = house.read_modules(ROOT)
    assert list(house.wings_in_the_core(modules)) == []
    assert list(house.wings_without_words(modules)) == []
    names = [f"{one.name[:-3]}/" for one in modules]
    assert [wing for wing in house.WINGS if not any(name.startswith(wing) for name in names)] == []


def test_the_door_of_the_searches_grows_no_wider() -> None:
    modules = house.read_modules(ROOT)
    assert len(list(house.across_the_door(modules))) <= house.MOST_ACROSS_THE_DOOR
    assert len(list(house.callers(modules, "Leaps"))) <= house.MOST_BEGIN_A_TREE


def test_a_fit_enters_no_more_files() -> None:
    assert len(house.files_of_a_fit(ROOT)) <= house.MOST_FILES_OF_A_FIT


def test_one_page_has_every_budget() -> None:
    assert list(house.budgets_elsewhere(house.read_modules(ROOT))) == []


def test_shares_of_rounding_have_their_owners() -> None:
    assert list(house.small_literals(house.read_modules(ROOT))) == []


def test_booleans_are_given_by_name() -> None:
    assert list(house.bare_booleans(house.read_modules(ROOT))) == []


def test_no_import_runs_upwards() -> None:
    assert upward(LAYERS, ROOT, 0) == []


def test_no_import_runs_upwards_among_the_solvers() -> None:
    assert upward(SOLVERS, ROOT / "solvers", 1) == []


def test_experiments_import_names_that_the_package_has() -> None:
    missing = []
    for path in sorted((Path(__file__).parents[1] / "experiments").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sparsecv"):
                module = importlib.import_module(str(node.module))
                names = [one.name for one in node.names if not hasattr(module, one.name)]
                missing += [(path.name, node.module, name) for name in names]
    assert missing == []


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


def test_few_functions_stand_between_a_fit_and_the_first_kernel() -> None:
    """Ten from the function that fits a table on, that function and a caller counted."""
    script = Path(__file__).with_name("frames.py")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    *names, kernel = run.stdout.splitlines()
    assert kernel.startswith("kernel ")
    assert len(names) <= 12
    assert len(names) - names.index("selection.run.fit_table") <= 9
