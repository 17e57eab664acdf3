"""Print six numbers that say how large sparsecv is, and the lines of code of each package.

    python tests/house.py [FOLDER] [--list]

The numbers are those of the package, or of FOLDER: lines of code (neither blank, comment nor
docstring), all lines, public names in all ``__all__``, module-level numbers, functions with more
than 8 parameters, and module names that two files have. A module-level number is a name that a
module gives a number or a tuple of numbers. Constructors, and functions in cli/ and estimators/,
may have more parameters. With ``--list`` the script names what it counts in the last four.

The table of packages is the one of docs/architecture.md: lines of code, with those of the folders
below that are no line of their own, and the first sentence of the package's docstring.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "sparsecv"
MAX_PARAMETERS = 8
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


def exported(tree: ast.Module) -> list[str]:
    """The names in a module's ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


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


def main() -> None:
    given = [argument for argument in sys.argv[1:] if argument != "--list"]
    root = Path(given[0]) if given else PACKAGE
    lines = 0
    public, numbers, wide = [], [], []
    homes: dict[str, list[str]] = defaultdict(list)
    packages: dict[str, int] = defaultdict(int)
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        packages[package_of(name)] += code_lines(source)
        lines += len(source.splitlines())
        public += [f"{name}: {each}" for each in exported(tree)]
        numbers += [f"{name}: {each}" for each in module_numbers(tree)]
        if path.stem not in ("__init__", "__main__"):
            homes[path.stem].append(name)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not name.startswith(("cli/", "estimators/")):
                a = node.args
                names = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
                count = len(names - {"self", "cls"})
                if count > MAX_PARAMETERS and node.name != "__init__":
                    wide.append(f"{name}: {node.name} ({count})")
    twice = [f"{stem}: {', '.join(paths)}" for stem, paths in homes.items() if len(paths) > 1]
    print(f"{sum(packages.values()):7,} lines of code\n{lines:7,} lines")
    for title, found in {
        "public names in all __all__": public,
        "module-level numbers": numbers,
        f"functions with more than {MAX_PARAMETERS} parameters outside cli and estimators": wide,
        "module names used twice": twice,
    }.items():
        print(f"{len(found):7,} {title}")
        if "--list" in sys.argv:
            print(*(f"          {each}" for each in found), sep="\n")
    print("", *package_table(root, packages), sep="\n")


if __name__ == "__main__":
    main()
