"""Sphinx configuration: built by ``make docs``, where warnings are errors."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "src"))

from patternfold import __version__  # noqa: E402
from patternfold.cli.parser import build  # noqa: E402

project = "patternfold"
author = "the patternfold developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "generated/cli.md", "tried"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_.*\.py",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "patternfold"
html_static_path = ["_static"]
html_css_files = ["patternfold.css"]
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "logo": {"text": "patternfold"},
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "quickstart": []}


def write_command_help(_):
    """Write the help of every command to a file that the page on the command line includes."""
    _, commands = build()
    parts = []
    for name, parser in commands.items():
        parts.append(f"### patternfold {name}\n\n```text\n{parser.format_help()}```\n")
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "cli.md").write_text("\n".join(parts), encoding="utf-8")


def list_further_pages(app, name, source):
    """List pages beside the index that it does not name, such as generated ones."""
    if name == "index":
        pages = sorted(path.stem for path in HERE.glob("*.md"))
        text = "".join((HERE / f"{page}.md").read_text() for page in ("index", "method"))
        further = [page for page in pages if page != "index" and f"\n{page}\n" not in text]
        source[0] = source[0].replace("\ncomparison\n", "\n".join(["\ncomparison", *further, ""]))


def setup(app):
    """Connect what runs before the build."""
    app.connect("builder-inited", write_command_help)
    app.connect("source-read", list_further_pages)
