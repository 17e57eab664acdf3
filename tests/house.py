"""Print how large sparsecv is, and in how many ways it does what one way could do.

    python tests/house.py [FOLDER] [--list]

The numbers are those of the package, or of a package in FOLDER. The first table counts ways: how
many classes, functions or names do one job. The second table is the one of docs/inside.md:
lines of code (neither blank, comment nor docstring) of each package, with those of the folders
below that are no line of their own, and the first sentence of the package's docstring. With
``--list`` the script names what it counts.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1] / "sparsecv"
MAX_PARAMETERS = 8
# Modules that users import from. What tests import from other modules holds the package in place.
DOORS = {
    "sparsecv",
    "sparsecv.errors",
    "sparsecv.integrations",
    "sparsecv.plots",
    "sparsecv.risk",
    "sparsecv.solvers",
    "sparsecv.stability",
    "sparsecv.verify",
}
# Members by which a class of tables/ or design/ gives out rows or columns of a table.
GIVES_ROWS = {"X", "_X", "_given", "__getitem__", "batches", "blocks", "load", "parts"}
# Classes whose constructors make a training problem, or the rows of one.
PROBLEM_CLASSES = {"Rows", "SparseRidgeProblem"}
# A record of solvers/ with one of these fields says how a search has ended, or what it has proved.
SAYS_HOW_IT_ENDED = {"status", "proved", "n_proved", "lower_bound"}
# A record of solvers/ with one of these fields says which columns nodes have in, out or free.
SAYS_WHAT_IS_FREE = {"state", "pending"}
# Parts of the package that a fit with defaults does without, and a reader of the core never opens.
WINGS = (
    "cv/alternating/",
    "cv/benchmark/",
    "cv/bounds/",
    "cv/gamma_step/",
    "cv/global_gamma/",
    "cv/grid_errors/",
    "cv/tau_search/",
    "integrations/",
    "risk/",
    "stability/",
    "selection/alternatives/",
    "selection/certified_choice/",
    "selection/inference/",
    "selection/interval_ends/",
    "selection/intervals/",
    "selection/near_best/",
    "selection/row_influence/",
    "selection/row_removals/",
    "selection/stable_errors/",
    "selection/truncated/",
    "solvers/backends/",
    "report/audit/",
    "report/audit_sections/",
    "report/questions/",
    "solvers/certificate/",
    "solvers/core/certificate_file/",
    "solvers/solution/",
)
# These numbers are the most names that are taken out of solvers/, the most functions that begin a
# tree of all sizes, and the most files that a default fit of ten columns enters. A number here is
# lowered where fewer are needed, and is never raised.
MOST_ACROSS_THE_DOOR, MOST_BEGIN_A_TREE, MOST_FILES_OF_A_FIT = 87, 5, 55
# What users and tests call: these modules alone import wings, and nothing of the core imports them.
OPENS_WINGS = ("estimators/", "cli/", "wings/", "__init__/", "solvers/__init__/")
# Modules that say what rounding may take off a bound or an error. A smaller literal than the number
# elsewhere says the same again. Kernels import nothing of the package, so that their shares stand
# in the module that has their linear algebra.
ROUNDING = {
    "solvers/core/rounding.py",
    "solvers/kernels/linalg.py",
    "solvers/core/rows.py",
    "solvers/relaxation/dual_bound.py",
}
SMALL = 2e-8
# Layers whose small numbers are looked at.
EXACT = ("solvers/", "cv/", "design/", "selection/", "stability/")
# A number is no rounding where a module gives it a name with one of these words, which say its
# unit, or where it is given to a parameter that says how far an iteration goes.
OTHER_UNITS = ("TOLERANCE", "GAMMA", "SECONDS", "PROBABILITY")
ITERATES_TO = {"xtol", "rtol", "gap"}
# A module-level number whose name contains one of these words is what a search may take, unless it
# says when a line of progress is due. The page of all budgets is the one module that has them.
BUDGET = re.compile("SECONDS|NODES|BUDGET|GROWTH|ROUNDS|TURN|PATIENCE|SUPPORTS$|TIMES_OF|PARTS_OF")
OF_REPORTS = re.compile("REPORT|LINE|NOTEBOOK|SUPPORTS_OF_A_BATCH")
SCHEDULE = "schedule.py"
# Calls that hand out time or nodes; a number written there is a budget, too.
HANDS_OUT = re.compile(r"(\.share|\.part|\.within|\.longer|Way|Limits)$")
# Modules that turn sections of a result into text or a page contain one of these words.
FORMATS_SECTIONS = ("rich.table", "<table", "<td", "to_html(")
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """Lines that are neither blank, comment nor docstring."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            found -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(found)


def is_number(value: ast.expr | None) -> bool:
    """Whether an expression is made of numbers alone: 3, -1e-9, 2**20, (0.1, 0.5)."""
    if isinstance(value, ast.Tuple):
        return bool(value.elts) and all(map(is_number, value.elts))
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) and is_number(value.right)
    return (
        isinstance(value, ast.Constant)
        and isinstance(value.value, int | float)
        and not isinstance(value.value, bool)
    )


def module_numbers(tree: ast.Module) -> Iterator[str]:
    """Names to which a module assigns numbers; of ``a, b = 1, 2`` both names."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and is_number(node.value):
            yield ast.unparse(node.target)
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            else:
                pairs = [(target, node.value)]
            yield from (ast.unparse(name) for name, value in pairs if is_number(value))


def package_of(name: str) -> str:
    """The package whose line counts a file: for solvers/core/plan.py it is solvers/core."""
    folders = name.split("/")[:-1]
    return "/".join(folders[:2] if folders[:1] == ["solvers"] else folders[:1])


def package_table(root: Path, lines: dict[str, int]) -> Iterator[str]:
    """The lines of a table in Markdown: every package with its lines of code and what it does."""
    yield "| package | lines of code | what it does |\n| --- | ---: | --- |"
    for package, count in sorted(lines.items()):
        init = root / package / "__init__.py"
        text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        title = f"`{package}`" if package else "top level"
        yield f"| {title} | {count:,} | {text.splitlines()[0] if text else ''} |"


class Module(NamedTuple):
    """A module: its path below the package, its text and its syntax tree."""

    name: str
    source: str
    tree: ast.Module

    def classes(self) -> Iterator[ast.ClassDef]:
        yield from (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    def functions(self) -> Iterator[ast.FunctionDef]:
        yield from (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef))


def members(owner: ast.ClassDef) -> set[str]:
    """Names of the methods and fields of a class, and of the attributes that it sets."""
    found = {node.name for node in owner.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(owner):
        if isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target).removeprefix("self."))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def holders_of_tables(modules: list[Module]) -> Iterator[str]:
    """Classes that hold a table or its columns, abstract ones aside."""
    for module in modules:
        for one in module.classes() if module.name.startswith(("tables/", "design/")) else ():
            abstract = any(ast.unparse(base) == "ABC" for base in one.bases)
            if members(one) & GIVES_ROWS and not abstract:
                yield f"{module.name}: {one.name}"


def ways_to_a_problem(modules: list[Module]) -> Iterator[str]:
    """Constructors of training problems and of the rows that these hold."""
    for module in modules:
        for one in module.classes():
            for node in one.body if one.name in PROBLEM_CLASSES else ():
                if isinstance(node, ast.FunctionDef) and node.name.startswith(("of_", "from_")):
                    yield f"{module.name}: {one.name}.{node.name}"


def records_with(modules: list[Module], fields: set[str]) -> Iterator[str]:
    """NamedTuples and dataclasses of solvers/ with one of some fields, and those derived from them.

    Fields are annotated names of the class; methods and properties do not count.
    """
    records: dict[str, tuple[str, ast.ClassDef]] = {}
    for module in modules:
        for one in module.classes() if module.name.startswith("solvers/") else ():
            marks = [*one.decorator_list, *one.bases]
            if any(re.search("dataclass|NamedTuple", ast.unparse(mark)) for mark in marks):
                records[one.name] = module.name, one

    def has_some(name: str) -> bool:
        own = [x for x in records[name][1].body if isinstance(x, ast.AnnAssign)]
        bases = [ast.unparse(base) for base in records[name][1].bases]
        found = any(ast.unparse(x.target) in fields for x in own)
        return found or any(has_some(base) for base in bases if base in records)

    yield from (f"{records[name][0]}: {name}" for name in records if has_some(name))


def questions_of_folds(modules: list[Module]) -> Iterator[str]:
    """Calls of isinstance that ask whether a fold's data are rows or moments."""
    for module in modules:
        for node in ast.walk(module.tree):
            asks = isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
            if asks and re.search(r"\b(RowFolds|MomentFolds)\b", ast.unparse(node)):
                yield f"{module.name}:{node.lineno}"


def questions_of_width(modules: list[Module]) -> Iterator[str]:
    """Places outside core/plan.py that ask whether there are few columns, by number or function."""
    for module in modules:
        if module.name != "solvers/core/plan.py":
            for number, line in enumerate(module.source.splitlines(), 1):
                if re.search(r"\b(TREE_ONLY|one_tree_proves)\b", line):
                    yield f"{module.name}:{number}"


def small_literals(modules: list[Module]) -> Iterator[str]:
    """Numbers of the exact layers that are as small as what rounding does, outside of its owners.

    A number that has a name counts once. Numbers up to 1e-100, which keep a division from 0, do not
    count, nor do those that :func:`in_other_units` gives.
    """
    for module in modules:
        if module.name in ROUNDING or not module.name.startswith(EXACT):
            continue
        others = {id(number) for part in in_other_units(module) for number in ast.walk(part)}
        for node in ast.walk(module.tree):
            number = isinstance(node, ast.Constant) and isinstance(node.value, float)
            if number and 1e-100 < node.value < SMALL and id(node) not in others:
                yield f"{module.name}:{node.lineno}: {node.value:g}"


def in_other_units(module: Module) -> Iterator[ast.expr]:
    """Expressions that say where an iteration ends, a γ, a time or a probability."""
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign):
            names, value = statement.targets[0], statement.value
            pairs = [(names, value)]
            if isinstance(names, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(names.elts, value.elts, strict=True))
            for name, one in pairs:
                if any(word in ast.unparse(name) for word in OTHER_UNITS):
                    yield one
    for node in ast.walk(module.tree):
        if isinstance(node, ast.keyword) and node.arg in ITERATES_TO:
            yield node.value
        if isinstance(node, ast.arguments):
            arguments = [*node.posonlyargs, *node.args][::-1]
            pairs = [*zip(arguments, node.defaults[::-1], strict=False)]
            pairs += [(a, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d]
            yield from (default for argument, default in pairs if argument.arg in ITERATES_TO)


def rounding_units(modules: list[Module]) -> Iterator[str]:
    """Lines outside the owners of rounding that multiply the rounding unit, kernels apart.

    Each says what rounding loses in a computation of its own.
    """
    for module in modules:
        if module.name not in ROUNDING and not module.name.startswith("solvers/kernels/"):
            lines = {
                node.lineno
                for node in ast.walk(module.tree)
                if isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Mult | ast.Div)
                and any(isinstance(x, ast.Name) and x.id == "EPS" for x in (node.left, node.right))
            }
            yield from (f"{module.name}:{line}" for line in sorted(lines))


def positions(function: ast.FunctionDef, name: str) -> int:
    """How many values a function takes by position from a parameter that is a tuple; 1 if none."""
    most = 1
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            for target, value in pairs:
                if isinstance(target, ast.Tuple) and ast.unparse(value) == name:
                    most = max(most, len(target.elts))
    return most


def wide_functions(modules: list[Module], kernels: bool) -> Iterator[str]:
    """Kernels, or other functions outside cli/ and estimators/, with many parameters.

    A parameter that a kernel takes apart by position counts as often as it has parts.
    """
    for module in modules:
        for node in module.functions():
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            if any(mark.startswith("kernel") for mark in marks) != kernels:
                continue
            if node.name == "__init__" or module.name.startswith(("cli/", "estimators/")):
                continue
            a = node.args
            names = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)} - {"self", "cls"}
            count = sum(positions(node, name) if kernels else 1 for name in names)
            if count > MAX_PARAMETERS:
                yield f"{module.name}: {node.name} ({count})"


def kernels_from_python(modules: list[Module]) -> Iterator[str]:
    """Kernels that numba compiles an entry from Python for: not those that kernels alone call."""
    for module in modules:
        for node in module.functions():
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            kernel = any(mark == "kernel" or mark.startswith("kernel(") for mark in marks)
            if kernel and not re.search(r"\b(inner|inline)=True", " ".join(marks)):
                yield f"{module.name}: {node.name}"


def shared_names(modules: list[Module]) -> Iterator[str]:
    """Public classes and functions whose name two modules define."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    yield from (f"{name}: {', '.join(some)}" for name, some in homes.items() if len(some) > 1)


def clocks(modules: list[Module]) -> Iterator[str]:
    """Places that read a clock."""
    for module in modules:
        for number, line in enumerate(module.source.splitlines(), 1):
            if re.search(r"\b(monotonic|perf_counter|process_time|time\.time)\(\)", line):
                yield f"{module.name}:{number}"


def callers(modules: list[Module], called: str) -> Iterator[str]:
    """Functions that call a name."""
    for module in modules:
        for node in module.functions():
            names = (ast.unparse(x.func) for x in ast.walk(node) if isinstance(x, ast.Call))
            if called in names:
                yield f"{module.name}: {node.name}"


def home_of(module: Module, node: ast.ImportFrom) -> str:
    """The module that an import takes names from, as a path below the package."""
    folders = module.name.split("/")[:-1]
    base = folders[: len(folders) - node.level + 1] if node.level else []
    return "/".join([*base, *(node.module or "").split(".")]).strip("/")


def budgets_elsewhere(modules: list[Module]) -> Iterator[str]:
    """Numbers outside the page of all budgets that say what a search may take.

    The number 1, of a search that may take all that is left, and 0 are none.
    """
    for module in modules:
        if module.name == SCHEDULE:
            continue
        for name in module_numbers(module.tree):
            if BUDGET.search(name) and not OF_REPORTS.search(name):
                yield f"{module.name}: {name}"
        for call in ast.walk(module.tree):
            if isinstance(call, ast.Call) and HANDS_OUT.search(ast.unparse(call.func)):
                for given in (*call.args, *(one.value for one in call.keywords)):
                    if is_number(given) and ast.literal_eval(given) not in (0, 1):
                        yield f"{module.name}:{call.lineno}: {ast.unparse(call)}"


def bare_booleans(modules: list[Module]) -> Iterator[str]:
    """Calls of the package's own functions and classes that give True or False without a name."""
    own = {one.name for module in modules for one in (*module.functions(), *module.classes())}
    for module in modules:
        for call in ast.walk(module.tree):
            if not isinstance(call, ast.Call):
                continue
            *before, name = ast.unparse(call.func).rsplit(".", 1)
            if before and name in dir(list):  # A list has methods of these names, too.
                continue
            maker = before and before[-1].rsplit(".", 1)[-1] in own
            given = [one.value for one in call.args if isinstance(one, ast.Constant)]
            if (name in own or maker) and any(isinstance(one, bool) for one in given):
                yield f"{module.name}:{call.lineno}: {ast.unparse(call)}"


def across_the_door(modules: list[Module]) -> Iterator[str]:
    """Names that modules outside solvers/ take out of it, each once."""
    found = set()
    for module in modules:
        for node in ast.walk(module.tree) if not module.name.startswith("solvers/") else ():
            home = home_of(module, node) if isinstance(node, ast.ImportFrom) else ""
            if home.split("/")[0] == "solvers":
                found |= {f"{home}: {alias.name}" for alias in node.names}
    yield from sorted(found)


def wings_in_the_core(modules: list[Module]) -> Iterator[str]:
    """Imports of a wing by a module that is neither in a wing nor a door."""
    for module in modules:
        if f"{module.name[:-3]}/".startswith((*WINGS, *OPENS_WINGS)):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                home = home_of(module, node)
                names = [f"{home}/{alias.name}" for alias in node.names]
                if f"{home}/".startswith(WINGS) or any(f"{x}/".startswith(WINGS) for x in names):
                    yield f"{module.name}: {home}"


def wings_without_words(modules: list[Module]) -> Iterator[str]:
    """Wings whose docstring does not say what would be lost without them."""
    for wing in WINGS:
        package = f"{wing}__init__.py"
        for module in modules:
            words = (ast.get_docstring(module.tree) or "").split()
            if module.name in (f"{wing[:-1]}.py", package) and "Without it" not in " ".join(words):
                yield module.name


def files_of_a_fit(root: Path) -> list[str]:
    """Files of the package whose functions a default fit of ten columns enters.

    A fit before it compiles the kernels, which enters others.
    """
    sys.path.insert(0, str(root.parent))
    import numpy as np

    from sparsecv import SparseRidgeCV

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 10))
    y, found = X[:, 0] + rng.standard_normal(60), set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    SparseRidgeCV().fit(X, y)
    sys.setprofile(note)
    try:
        SparseRidgeCV().fit(X, y)
    finally:
        sys.setprofile(None)
    inside = (Path(one) for one in found if Path(one).is_relative_to(root))
    return sorted(one.relative_to(root).as_posix() for one in inside)


def inside_names(tests: list[Module]) -> Iterator[str]:
    """Names that tests import from modules that users do not import from."""
    for module in tests:
        for node in ast.walk(module.tree):
            home = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            if home.startswith("sparsecv") and home not in DOORS:
                yield from (f"{module.name}: {home}.{alias.name}" for alias in node.names)


def tests_that_patch(tests: list[Module]) -> Iterator[str]:
    """Tests and helpers that put something else in the place of a part of a module."""
    for module in tests:
        for node in module.functions():
            called = (ast.unparse(x.func) for x in ast.walk(node) if isinstance(x, ast.Call))
            if any(
                re.search(r"(\bsetattr|\bsetitem|\bpatch(\.object)?)$", name) for name in called
            ):
                yield f"{module.name}: {node.name}"


def stand_ins(tests: list[Module]) -> Iterator[str]:
    """Parts of the package that tests replace by the table of ``support/stand_ins.py``."""
    for module in tests:
        for node in module.tree.body if module.name == "support/stand_ins.py" else ():
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TARGETS":
                yield from ast.literal_eval(node.value).values()


@cache
def read_modules(root: Path) -> list[Module]:
    """The modules of a folder and of the folders below."""
    found = []
    for path in sorted(root.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        found.append(Module(path.relative_to(root).as_posix(), source, ast.parse(source)))
    return found


def face(root: Path) -> dict[str, list[str]]:
    """Rules that a user names, parameters of SparseRidgeCV, and options of ``sparsecv cv``."""
    sys.path.insert(0, str(root.parent))
    from sparsecv import SparseRidgeCV
    from sparsecv.cli.options import COMMANDS
    from sparsecv.selection.rules import RULES

    parameters = list(inspect.signature(SparseRidgeCV).parameters)
    return {
        "selection rules that a user names": list(RULES),
        "parameters of SparseRidgeCV": parameters,
        "options of sparsecv cv": [one for one in COMMANDS["cv"].options if one != "data"],
    }


def main() -> None:
    given = [argument for argument in sys.argv[1:] if argument != "--list"]
    root = Path(given[0]).resolve() if given else PACKAGE
    modules, tests = read_modules(root), read_modules(root.parent / "tests")
    packages: dict[str, int] = defaultdict(int)
    for module in modules:
        packages[package_of(module.name)] += code_lines(module.source)
    print(f"{sum(packages.values()):7,} lines of code")
    print(f"{sum(code_lines(one.source) for one in tests):7,} lines of code in tests/")
    numbers = [f"{one.name}: {each}" for one in modules for each in module_numbers(one.tree)]
    formatting = [one.name for one in modules if any(w in one.source for w in FORMATS_SECTIONS)]
    twins = [one.name for one in modules if one.name.rpartition("/")[2].startswith("unit_")]
    counts: dict[str, Iterable[str]] = {
        "classes that hold a table or its columns": holders_of_tables(modules),
        "ways to a training problem": ways_to_a_problem(modules),
        "questions whether folds have rows or moments": questions_of_folds(modules),
        "questions whether columns are few, outside core/plan.py": questions_of_width(modules),
        "modules unit_* beside plain ones": twins,
        "small numbers outside the modules that own rounding": small_literals(modules),
        "lines outside them and the kernels that multiply the rounding unit": rounding_units(
            modules
        ),
        "records that a search returns": records_with(modules, SAYS_HOW_IT_ENDED),
        "formats of nodes and leaves": records_with(modules, SAYS_WHAT_IS_FREE),
        "places that read a clock": clocks(modules),
        "modules that format sections of a result": formatting,
        "functions that begin a tree of all sizes": callers(modules, "Leaps"),
        "budgets of searches outside the page of all budgets": budgets_elsewhere(modules),
        "calls with a bare True or False": bare_booleans(modules),
        "names taken out of solvers": across_the_door(modules),
        "imports of a wing by the core": wings_in_the_core(modules),
        "wings that do not say what would be lost": wings_without_words(modules),
        "files that a default fit of ten columns enters": files_of_a_fit(root),
        **face(root),
        "public names that two modules define": shared_names(modules),
        f"kernels with more than {MAX_PARAMETERS} parameters": wide_functions(modules, True),
        "kernels that Python calls": kernels_from_python(modules),
        f"other functions with more than {MAX_PARAMETERS}, outside cli and estimators": (
            wide_functions(modules, False)
        ),
        "module-level numbers": numbers,
        "names that tests import from the inside": inside_names(tests),
        "tests and helpers that patch": tests_that_patch(tests),
        "parts that stand-ins of tests replace": stand_ins(tests),
    }
    for title, some in counts.items():
        named = list(some)
        print(f"{len(named):7,} {title}")
        if "--list" in sys.argv:
            print(*(f"          {each}" for each in named), sep="\n")
    print("", *package_table(root, packages), sep="\n")


if __name__ == "__main__":
    main()
