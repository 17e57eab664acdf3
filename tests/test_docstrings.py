"""What a user imports is documented in full and shows an example; every module says what it is for.

Inside, a sentence does: which parameters have shapes, units or conditions is for the author to say.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent.parent / "sparsecv"
if not PACKAGE.is_dir():
    pytest.skip("no package beside the tests: this is not a checkout", allow_module_level=True)
MODULES = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]
# functions and classes that a user calls, by the module they are imported from
CALLED = {
    "sparsecv": "SparseRidge SparseRidgeCV StabilityCV",
    "sparsecv.bounds": (
        "compute_bounds fold_bounds objective_gap_bound "
        "region_bounds row_bounds spread_bounds squared_error_bounds"
    ),
    "sparsecv.cv.alternating": "alternate",
    "sparsecv.cv.engine": "cross_validate",
    "sparsecv.cv.global_gamma": "global_minimum",
    "sparsecv.plots.search_bounds": "animate_bounds plot_bounds",
    "sparsecv.plots.curves": "plot_cv",
    "sparsecv.plots.over_gamma": "plot_minimum plot_supports",
    "sparsecv.risk": (
        "corrected_deviation corrected_k_fold corrected_k_fold_deviation cv_deviation "
        "development_set development_set_bound k_fold k_fold_deviation k_fold_lower_bound "
        "leave_one_out leave_p_out leave_p_out_deviation lower_bound_example nested_cv "
        "repeated_k_fold ridge_stability selection_excess stability_bound training_error_bound"
    ),
    "sparsecv.solvers": (
        "SparseRidgeProblem available_backends best_subsets best_subsets_rows_deleted "
        "branch_and_bound ellipsoid heuristic_support on_client "
        "perspective_relaxation register_backend relaxation_path screen solve "
        "solve_sizes support_path supports_along_gamma"
    ),
    "sparsecv.stability": (
        "EstimatorLearner SparseRidgeLearner cart criterion largest_tau partial_errors select svm "
        "xgboost"
    ),
    "sparsecv.tables.datasets": "list_datasets load_dataset",
    "sparsecv.tables.sources": "open_table",
    "sparsecv.tables.synthetic": "make_synthetic",
}
RETURNED = {  # records, whose attributes are read
    "sparsecv.risk.candidates": "Development NestedEstimate",
    "sparsecv.risk.estimates": "RiskEstimate",
    "sparsecv.risk.lower_bound": "LowerBoundExample",
    "sparsecv.selection.choice": "Choice",
    "sparsecv.selection.partial_errors": "PartialErrors Selection",
    "sparsecv.selection.projection": "Projection",
    "sparsecv.cv.minimum": "GlobalMinimum",
    "sparsecv.cv.results": "Best CVResult GammaResult Step",
    "sparsecv.design.folds": "Folds",
    "sparsecv.solvers": "Proof Solution SupportPath SupportsAlongGamma",
    "sparsecv.solvers.core.result": "Work",
    "sparsecv.solvers.leaps.all_sizes": "BestSubsets",
    "sparsecv.solvers.leaps.deleted_rows": "DeletedRowSubsets",
    "sparsecv.solvers.leaps.gamma_range": "SupportInterval",
    "sparsecv.solvers.relaxation.ellipsoid": "Ellipsoid",
    "sparsecv.solvers.relaxation.perspective": "Relaxation",
    "sparsecv.solvers.relaxation.screening": "Screening",
    "sparsecv.tables.datasets": "DatasetInfo",
    "sparsecv.tables.rows": "RowSource",
    "sparsecv.tables.synthetic": "Synthetic",
}
NEEDS_AN_EXTRA = {"xgboost"}  # no doctest


def _named(names: dict[str, str]) -> list[Any]:
    return [
        pytest.param(module, name, id=f"{module}.{name}")
        for module, listed in names.items()
        for name in listed.split()
    ]


def _imported(module: str, name: str) -> Any:
    found: Any = importlib.import_module("sparsecv")
    for part in [*module.split(".")[1:], name]:
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


def _definition(function: Any) -> ast.FunctionDef:
    source = inspect.cleandoc("\n" + inspect.getsource(inspect.unwrap(function)))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


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


def _has(section: str, text: str) -> bool:
    return f"\n{section}\n{'-' * len(section)}" in text


def _lacking(function: Any, text: str) -> list[str]:
    """Sections that a function's docstring, or that of the class it makes, does not have."""
    node = _definition(function)
    a = node.args
    named = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)} - {"self", "cls"}
    returned = ast.unparse(node.returns) if node.returns else "None"
    wanted = {
        "Parameters": bool(named or a.vararg or a.kwarg),
        "Returns": returned not in ("None", "NoReturn") and not _has("Yields", text),
        "Raises": _raises(node),
    }
    return [section for section, needed in wanted.items() if needed and not _has(section, text)]


def documented_attributes(kind: type) -> set[str]:
    """The names that the section "Attributes" of a class, or of one it extends, describes."""
    found: set[str] = set()
    for one in kind.__mro__:
        _, _, after = inspect.cleandoc(one.__doc__ or "").partition("\nAttributes\n----------\n")
        section = re.split(r"\n\w[\w ]+\n-{3,}\n", after)[0]
        for names in re.findall(r"^([\w, ]+?) :", section, re.M):
            found |= {name.strip() for name in names.split(",")}
    return found


@pytest.mark.parametrize(("module", "name"), _named(CALLED))
def test_what_a_user_calls_is_documented_in_full(module: str, name: str) -> None:
    value = _imported(module, name)
    text = inspect.getdoc(value) or ""
    assert ">>>" in text or name in NEEDS_AN_EXTRA
    if not inspect.isclass(value):
        assert _lacking(value, text) == []
        return
    assert _lacking(value.__init__, text) == []
    methods = {
        f"{one.__name__}.{each}": inspect.unwrap(getattr(value, each))
        for one in value.__mro__
        if one.__module__.startswith("sparsecv.")
        for each in vars(one)
        if not each.startswith("_") and inspect.isroutine(getattr(value, each))
        if not isinstance(vars(one)[each], cached_property)  # an attribute, named in the class
    }
    lacking = {each: _lacking(f, inspect.getdoc(f) or "") for each, f in methods.items()}
    assert {each: sections for each, sections in lacking.items() if sections} == {}


@pytest.mark.parametrize(("module", "name"), _named(RETURNED))
def test_what_a_user_is_given_names_its_attributes(module: str, name: str) -> None:
    record = _imported(module, name)
    fields = {
        each
        for one in record.__mro__
        if one.__module__.startswith("sparsecv.")
        for each in inspect.get_annotations(one)
        if not each.startswith("_")
    }
    assert fields - documented_attributes(record) == set()


@pytest.mark.parametrize(("module", "name"), _named(RETURNED))
def test_what_a_user_is_given_has_a_page(module: str, name: str) -> None:
    page = (PACKAGE.parent / "docs" / "api.rst").read_text(encoding="utf-8")
    path = f"{module}.{name}".removeprefix("sparsecv.")
    ends = {path.split(".", cut)[-1] for cut in range(path.count(".") + 1)}
    assert any(f"\n   {end}\n" in page for end in ends), path


@pytest.mark.parametrize("path", MODULES)
def test_a_module_says_in_its_first_sentence_what_it_is_for(path: str) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))) or ""
    first = text.split("\n\n")[0].rstrip()
    assert len(first.split()) >= 4
    assert first[-1] in ".:"
