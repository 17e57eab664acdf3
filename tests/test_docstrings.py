"""Public functions say what they take, return and raise; what the package exports shows an example.

Read from the sources alone (ast), so that nothing has to be imported or compiled. A property is
documented as the attribute it is; kernels are described where they are built.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent.parent / "sparsecv"
# compiled code
LEFT_OUT = ("solvers/kernels",)
NEEDS_AN_EXTRA = ["solve_conic", "xgboost"]  # no doctest
DESCRIBED_ELSEWHERE = {"property", "cached_property", "overload", "kernel"}
COMMANDS = [f"cli/{n}.py" for n in ["benchmark", "cv", "datasets", "fit", "predict", "stability"]]
EXPORTING = ("sparsecv", "sparsecv.risk", "sparsecv.solvers", "sparsecv.stability")


def _modules() -> list[str]:
    names = (path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py")))
    return [n for n in names if not n.startswith(LEFT_OUT) and not n.endswith("_kernels.py")]


def _decorators(function: ast.FunctionDef) -> set[str]:
    called = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    return {ast.unparse(d).split(".")[-1] for d in called}


def _public(body: list[ast.stmt], above: str = "") -> Iterator[tuple[str, ast.FunctionDef, str]]:
    """Each public function below ``body``: its dotted name, its definition, its docstring."""
    for item in body:
        if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
            for name, function, text in _public(item.body, f"{item.name}."):
                yield name, function, text
            for function in item.body:  # a constructor's parameters stand in the class docstring
                if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                    yield item.name, function, ast.get_docstring(item) or ""
        elif isinstance(item, ast.FunctionDef) and not (
            item.name.startswith("_") or _decorators(item) & DESCRIBED_ELSEWHERE
        ):
            yield above + item.name, item, ast.get_docstring(item) or ""


def _takes_something(function: ast.FunctionDef) -> bool:
    a = function.args
    named = [
        x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs) if x.arg not in ("self", "cls")
    ]
    return bool(named or a.vararg or a.kwarg)


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """A function's nodes, less those of functions nested in it and of what it catches itself."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.Try) and any("Error" in ast.unparse(h) for h in node.handlers):
            waiting.extend([*node.handlers, *node.orelse, *node.finalbody])  # its body's are caught
        elif not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _raises(function: ast.FunctionDef) -> bool:
    raised = (n.exc for n in _own(function) if isinstance(n, ast.Raise))
    errors = (e.func if isinstance(e, ast.Call) else e for e in raised)
    return any(isinstance(e, ast.Name) and e.id in ("InputError", "ValueError") for e in errors)


def _lacking(function: ast.FunctionDef, text: str) -> list[str]:
    def has(section: str) -> bool:
        return f"\n{section}\n{'-' * len(section)}" in text

    returned = ast.unparse(function.returns) if function.returns else "None"
    wanted = {
        "Parameters": _takes_something(function),
        "Returns": returned not in ("None", "NoReturn") and not has("Yields"),
        "Raises": _raises(function),
    }
    return [section for section, needed in wanted.items() if needed and not has(section)]


@pytest.mark.parametrize("module", _modules())
def test_public_functions_are_documented(module: str) -> None:
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    lacking = {name: _lacking(function, text) for name, function, text in _public(tree.body)}
    if module in COMMANDS:  # its docstring is the help text, its options explain themselves
        lacking.pop(Path(module).stem)
    assert {name: sections for name, sections in lacking.items() if sections} == {}


def _exported() -> list[Any]:
    """Functions, and the estimators, with the names they are exported by."""
    found = []
    for package in EXPORTING:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            home = getattr(value, "__module__", "").removeprefix("sparsecv.").replace(".", "/")
            wanted = inspect.isfunction(value) and not home.startswith(LEFT_OUT)
            if wanted or (package == "sparsecv" and inspect.isclass(value)):
                found.append(pytest.param(value, id=f"{package}.{name}"))
    return found


@pytest.mark.parametrize("value", _exported())
def test_what_is_exported_shows_an_example(value: Any) -> None:
    assert ">>>" in value.__doc__ or value.__name__ in NEEDS_AN_EXTRA
