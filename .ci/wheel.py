"""The wheel, away from the repository: built, put into an environment of its own, and tested."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>.*))?$", re.MULTILINE)

NEEDED = ("py.typed", "show/pages/page/explorer.html", "show/pages/page/render.js")
"""Files of the package that are no modules: some of each kind."""

QUICK = ("public_names", "pattern", "box", "manifold", "transformations", "projection")
QUICK += ("least_squares", "persistence", "report", "kernel_machine", "model_choice")
"""Tests that touch every dependency, in a few minutes."""


def say(text: str) -> None:
    """Tell what is done next."""
    print(f"== {text}", flush=True)


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command; its failure ends everything."""
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def newest_heading() -> tuple[str, str]:
    """Version and date of the newest section of the changelog."""
    found = HEADING.search((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("CHANGELOG.md has no heading like '## [1.2.3] - 2026-01-31'.")
    return found["version"], found["date"] or ""


def build(folder: Path) -> Path:
    """Build the source archive, and the wheel from it; return the wheel, looked into."""
    say(f"building into {folder}")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    version, _ = newest_heading()
    if f"-{version}-" not in wheel.name:
        raise SystemExit(f"{wheel.name} is not of version {version}, as CHANGELOG.md has it.")
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in NEEDED if f"patternfold/{name}" not in names]
    if missing:
        raise SystemExit(f"{wheel.name} lacks {', '.join(missing)}.")
    foreign = [name for name in names if not name.startswith("patternfold")]
    if foreign:
        raise SystemExit(f"{wheel.name} has files that are not of the package: {foreign[:5]}.")
    return wheel


def environment(folder: Path, python: str, *wanted: str | Path) -> Path:
    """Make an environment and install what is wanted; return its interpreter."""
    run(python, "-m", "venv", folder)
    own = folder / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
    return own


def test_away(python: Path, folder: Path, names: tuple[str, ...] | None, *arguments: str) -> None:
    """Run tests in a folder that has them and pytest's settings, and nothing else from here.

    ``names`` are those of files, or None for all, and the examples in docstrings.
    """
    shutil.copytree(ROOT / "tests", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    some = ["tests", "--pyargs", "patternfold"]
    if names is not None:
        some = [f"tests/test_{name}.py" for name in names]
    marks = "not exhaustive and not repository"
    run(python, "-m", "pytest", "-q", "-n", "2", "-m", marks, *some, *arguments, cwd=folder)
