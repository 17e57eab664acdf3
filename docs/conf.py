"""Settings of the documentation site: CONTRIBUTING.md has the two commands that build it."""

from __future__ import annotations

import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read once, where numpy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

from sphinx.application import Sphinx
from sphinx.util import logging

import sparsecv

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # The module site_tools stands beside this file.
from site_tools import add_theorems, escape_bars, link_objects  # noqa: E402

project, author = "sparsecv", "The sparsecv developers"
copyright = author
version = release = sparsecv.__version__
# Docstrings that StabilityCV has from scikit-learn name terms of scikit-learn's glossary.
suppress_warnings = ["ref.term"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery", "sg_execution_times.rst"]
templates_path = ["_templates"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
smartquotes = False  # options and strings are printed as they are typed

# ---- names of the package
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections name the types
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# ---- links to other projects
INVENTORIES = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "sklearn": "https://scikit-learn.org/stable",
}
MAX_WAIT = 10
"""Seconds that one inventory may take. Where it takes longer, or the machine has no network, the
names of that project are printed without a link. Doubled, the number would make a build without a
network up to thirty seconds longer."""


def reached_inventories() -> dict[str, tuple[str, str]]:
    """The projects whose inventory of names could be read, each with the file that holds it.

    Sphinx warns where it cannot read an inventory, and warnings are errors here. A site that is
    built without a network lacks the links to other projects, and the build says which.
    """
    folder = HERE / "_build" / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, address in INVENTORIES.items():
        file = folder / f"{name}.inv"
        try:
            with urllib.request.urlopen(f"{address}/objects.inv", timeout=MAX_WAIT) as answer:
                file.write_bytes(answer.read())
        except (urllib.error.URLError, OSError):
            if not file.is_file():
                logging.getLogger(__name__).info("no network: names of %s get no link", name)
                continue
        found[name] = (address, str(file))
    return found


intersphinx_mapping = reached_inventories()


# ---- the gallery
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("site_tools.picture_style", "site_tools.plain_warnings"),
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "show_memory": False,
    "download_all_examples": False,
    "reference_url": {"sparsecv": None},
    "backreferences_dir": "auto_gallery/uses",
    "doc_module": ("sparsecv",),
    "default_thumb_file": str(HERE / "cv-diabetes.png"),
    "plot_gallery": "True",
}

# ---- look
html_theme = "pydata_sphinx_theme"
html_title = "sparsecv"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {name: [] for name in ("index", "start", "coming-from")}
html_show_sourcelink = False
pygments_style = "a11y-high-contrast-light"

# Pages whose text stands elsewhere in the repository, where its readers expect the text.
ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "experiments/README.md": "experiments.md",
    "data/README.md": "data.md",
    "README.md": "index.md",
}
ROOT = HERE.parent
INCLUDED = re.compile(r"```\{include\} (\S+)\n```\n")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def link_to_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Read pages that include a file, and let links of ELSEWHERE's files go to their pages.

    Links are written for readers of the repository: relative to the file that holds them.
    """
    found = INCLUDED.fullmatch(source[0])
    file = (HERE / found[1]).resolve() if found else HERE / f"{name}.md"
    if not file.is_file():  # a page that the build has made
        return

    def moved(link: re.Match[str]) -> str:
        target = (file.parent / link[1]).resolve()
        if not target.is_relative_to(ROOT):
            return link[0]
        if target.is_dir():  # Sphinx has pages and files, no folders
            return "]"
        if target.parent == HERE / "gallery":  # the page that the build makes of a script
            page = "index" if target.suffix == ".rst" else target.stem
            return f"](auto_gallery/{page}.rst)"
        inside = target.relative_to(ROOT).as_posix()
        return f"]({ELSEWHERE.get(inside) or os.path.relpath(target, HERE)}{link[2] or ''})"

    source[0] = LINK.sub(moved, file.read_text(encoding="utf-8"))


def setup(app: Sphinx) -> None:
    app.connect("source-read", link_to_pages)
    app.connect("source-read", link_objects)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-docstring", add_theorems)
