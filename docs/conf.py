"""Sphinx configuration: built by ``make docs``, where warnings are errors."""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
# Examples are compiled once; later builds only run them.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE / "_build" / "compiled"))
# Most of the time of an example goes into compiling: code that is optimised less takes half of it.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
# Newer versions of XLA have no such choice.
if tuple(map(int, version("jax").split(".")[:2])) < (0, 11):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

from related import add_related  # noqa: E402
from sphinx_gallery.sorting import ExplicitOrder  # noqa: E402

from patternfold import __version__, dictionaries, mothers, transformations  # noqa: E402
from patternfold.cli.parser import build  # noqa: E402
from patternfold.show.pages.document import FOLDER as PAGES  # noqa: E402
from patternfold.show.pages.formulas import as_script  # noqa: E402

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
exclude_patterns = ["_build", "generated/cli.md", "generated/static", "tried"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"  # names of methods have room at the side

# By task, as on the front page; then the pages, then what goes further.
EXAMPLES = (
    "folder",
    "digit",
    "kinds",
    "few_examples",
    "poses",
    "noise",
    "bent",
    "explorer",
    "report",
    "manifold",
    "how_many_atoms",
    "choose_model",
    "custom_family",
    "out_of_core",
)
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_.*\.py",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "parallel": 2,  # examples in processes of their own, which share compiled code
    "capture_repr": ("_repr_html_",),
    "within_subsection_order": ExplicitOrder([f"plot_{name}.py" for name in EXAMPLES] + ["*"]),
    "thumbnail_size": (480, 240),  # most pictures are wide
    "backreferences_dir": "generated/examples",
    "doc_module": ("patternfold",),
}

html_theme = "pydata_sphinx_theme"
html_title = "patternfold"
GENERATED = HERE / "generated"
(GENERATED / "static").mkdir(parents=True, exist_ok=True)
html_static_path = ["_static", "generated/static"]
html_css_files = ["patternfold.css"]
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "logo": {"text": "patternfold"},
    "navbar_end": ["version", "theme-switcher"],
    "header_links_before_dropdown": 5,  # one line on a screen of 1,280 pixels
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages without pages below them have nothing to show at the side.
ALONE = (
    "index",
    "quickstart",
    "tutorial",
    "comparison",
    "scaling",
    "reliability",
    "extending",
    "experiments",
)
html_sidebars = {page: [] for page in ALONE}
# Other versions, as "0.1=../0.1 0.2=../0.2", where several are published side by side.
html_context = {
    "default_mode": "auto",
    "versions": [entry.split("=") for entry in os.environ.get("DOCS_VERSIONS", "").split()],
}


def write_command_help(_):
    """Write the help of every command to a file that the page on the command line includes."""
    _, commands = build()
    parts = []
    for name, parser in commands.items():
        parts.append(f"### patternfold {name}\n\n```text\n{parser.format_help()}```\n")
    (GENERATED / "cli.md").write_text("\n".join(parts), encoding="utf-8")


def write_tutorial(_):
    """Write what the tutorial draws from: the library's formulas and renderer, and its model."""
    static = GENERATED / "static"
    script = (PAGES / "render.js").read_text(encoding="utf-8")
    (static / "render.js").write_text(script, encoding="utf-8")
    family = transformations.as_transformation("similarity")
    formulas = {
        "transformation": family.formula(),
        "dictionary": dictionaries.as_dictionary("atoms").formula(),
        "mother": mothers.as_mother("gaussian").formula(),
        "spread": None,
        "widening": None,
        "affine": True,
        "radial": True,
        "far": 25.0,  # exp(−25) can't be seen
    }
    model = json.loads((HERE / "tutorial" / "model.json").read_text(encoding="utf-8"))
    model["start"] = family.identity.tolist()
    text = f"const Formulas = {as_script(formulas)};\nconst Model = {json.dumps(model)};\n"
    (static / "tutorial-model.js").write_text(text, encoding="utf-8")


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
    app.connect("builder-inited", write_tutorial)
    app.connect("source-read", list_further_pages)
    app.connect("autodoc-process-docstring", add_related, priority=400)  # numpydoc's is 500
