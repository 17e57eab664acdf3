"""Write experiments/README.md: every script's first sentence, and the papers' numbers beside ours.

python experiments/index.py [--print]
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = {
    "paper": "Tables and figures of the papers",
    "solvers": "Training problems, their bounds and their solvers",
    "selection": "Which model to take, and the error to expect of it",
    "scale": "Large tables, several machines, first runs and bad input",
    ".": "What the scripts share",
}
HEAD = """\
# Experiments

Every table and figure of the documentation is made by one of these scripts. They run from the
repository's root, as modules:

    python -m experiments.paper.exact_cv_timings

What they printed last is in [results](results). The other packages that some of them compare
with are listed in [requirements-peers.txt](requirements-peers.txt). `python experiments/index.py`
writes this page from the first sentences of the scripts.

Real tables are read from the folder that the variable `SPARSECV_DATA` names
([data/README.md](../data/README.md)). `diabetes11` is the file `processed/diabetes.csv` there,
because `diabetes` is scikit-learn's table.
"""


# The summaries in results/ that stand below each heading of paper/differences.md, by its text.
SUMMARIES: dict[str, tuple[str, ...]] = {
    "Confirmed, refuted, undecided": (),
    "Tables 1 and 2, Figures 2 and 3 of the first paper": ("mio_counts.txt",),
    "Tables 3 and 4 of the first paper": ("tables_three_four.txt", "l0learn_cells.txt"),
    "Figures 1 and 2 of the stability paper": ("motivating_draws.txt", "motivating_example.txt"),
    "Tables 1 and 4 of the stability paper": ("stability_tables.txt",),
    "Table 2 of the stability paper": ("stability_trees.txt",),
    "Tables 1 and 2 of the corrected-CV paper": (
        "corrected_tables.txt",
        "corrected_tables_sparse.txt",
    ),
    "How the time of a fit grows": ("scaling.txt", "global_gamma.txt"),
}


def first_sentence(script: Path) -> str:
    """The first sentence of a script's docstring."""
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def page() -> str:
    """The text of experiments/README.md."""
    lines = [HEAD]
    for folder, title in FOLDERS.items():
        lines += [f"## {title}", ""]
        for script in sorted((HERE / folder).glob("*.py")):
            if script.name != "__init__.py":
                name = script.relative_to(HERE).as_posix()
                lines.append(f"- [{name}]({name}): {first_sentence(script)}")
        lines.append("")
    lines += ["## The papers' numbers beside ours", ""]
    text = (HERE / "paper" / "differences.md").read_text(encoding="utf-8")
    for part in text.split("### ")[1:]:
        heading, _, words = part.partition("\n")
        lines += [f"### {heading}", "", words.strip(), ""]
        for name in SUMMARIES[heading]:
            summary = (HERE / "results" / name).read_text(encoding="utf-8").rstrip()
            lines += [f"[{name}](results/{name}):", ""]
            lines += ["```text", *(line.rstrip() for line in summary.splitlines()), "```", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(page(), end="")
    else:
        (HERE / "README.md").write_text(page(), encoding="utf-8")
