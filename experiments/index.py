"""Write experiments/README.md: the first sentence of every script, folder by folder.

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

What they printed last stands in [results](results). The other packages that some of them compare
with are listed in [requirements-peers.txt](requirements-peers.txt). `python experiments/index.py`
writes this page from the first sentences of the scripts.
"""


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
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(page(), end="")
    else:
        (HERE / "README.md").write_text(page(), encoding="utf-8")
