"""HTML pages that carry all they need."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import tempfile
import webbrowser
from functools import cache
from pathlib import Path
from typing import Any

from patternfold._version import __version__
from patternfold._writing import write_bytes

FOLDER = Path(__file__).parent / "page"


class Page:
    """A page in one string: save it, open it, or let a notebook show it.

    Examples
    --------
    >>> Page("<p>hello</p>").html
    '<p>hello</p>'
    """

    def __init__(self, text: str):
        self.html = text

    @property
    def content(self) -> bytes:
        """The page as a file holds it: in UTF-8, with escape sequences for what that can't hold."""
        return self.html.encode("utf-8", "backslashreplace")

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, at once."""
        write_bytes(path, self.content)
        return Path(path)

    def open_in_browser(self) -> Path:
        """Write the page to a temporary file and open it."""
        with tempfile.NamedTemporaryFile("wb", suffix=".html", delete=False) as file:
            file.write(self.content)
        webbrowser.open(f"file://{file.name}")
        return Path(file.name)

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        inside = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{inside}" width="100%" height="760" frameborder="0"></iframe>'


def render_page(template: str, script: str | None = None, **values: Any) -> Page:
    """Fill a template of the folder ``page`` with values, style and one script."""
    safe = _markup()
    filled = (
        _environment()
        .get_template(template)
        .render(
            version=__version__,
            css=safe(_read("style.css")),
            policy=safe(_policy(script)),
            script=safe(script or ""),
            **values,
        )
    )
    return Page(filled)


def _policy(script: str | None) -> str:
    """Return the content security policy: nothing is loaded, and this script runs but no other.

    The script is named by its digest, so that markup that came in with a name could not run even
    if it were not escaped.
    """
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    rules += ["style-src 'unsafe-inline'", "img-src data:"]
    if script is not None:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join(rules)


def script_of(formulas: str, files: tuple[str, ...]) -> str:
    """Return the formulas of components and the scripts of the folder ``page`` as one."""
    parts = ['"use strict";', f"const Formulas = {formulas};", *(_read(name) for name in files)]
    return "\n".join(["", *parts, ""])


def as_json(data: Any) -> Any:
    """Return JSON that may stand inside a script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return _markup()(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("Pages need jinja2: pip install 'patternfold[cli]'.") from error
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _markup() -> Any:
    _environment()
    from markupsafe import Markup

    return Markup
