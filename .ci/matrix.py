"""Test the wheel with every Python, and with the oldest and newest libraries: ``make matrix``.

Each row has an interpreter and the oldest or newest JAX, NumPy, SciPy, scikit-learn and equinox
that pyproject.toml allows. Interpreters are those of this machine, or fetched by uv where that is
there and can; rows without one are skipped, which is said.
"""

from __future__ import annotations

import argparse
import glob
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

from wheel import QUICK, ROOT, build, environment, say, test_away

ROWS = (("3.11", "oldest"), ("3.12", "newest"), ("3.13", "newest"), ("3.14", "newest"))
TOOLS = ("pytest>=9", "pytest-xdist>=3.8", "beartype>=0.23")
SHOWN = (
    "import jax, numpy, scipy, sklearn;"
    "print(*(library.__version__ for library in (jax, numpy, scipy, sklearn)))"
)


def main() -> int:
    """Run every row, and tell how each ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="3.13", help="one Python only")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as name:
        wheel = build(Path(name) / "dist")
        for version, libraries in ROWS:
            if options.only in (None, version):
                results[version, libraries] = row(Path(name), wheel, version, libraries)
    say("results (JAX, NumPy, SciPy, scikit-learn)")
    for (version, libraries), result in results.items():
        print(f"  Python {version}, {libraries} libraries: {result}")
    return any(result.startswith("failed") for result in results.values())


def row(folder: Path, wheel: Path, version: str, libraries: str) -> str:
    """Test with one interpreter; return how it went."""
    python = find_python(version)
    if python is None:
        return "skipped, there is no such interpreter here and none could be fetched"
    say(f"Python {version}, {libraries} libraries")
    own = folder / f"{version}-{libraries}"
    pins = oldest() if libraries == "oldest" else ()
    try:
        where = environment(own, python, f"{wheel}[cli]", *TOOLS, *pins)
        shown = subprocess.run([where, "-c", SHOWN], capture_output=True, text=True, check=True)
        test_away(where, own / "away", QUICK)
    except subprocess.CalledProcessError as error:
        return f"failed: {' '.join(error.cmd[:5])}"
    return f"passed with {shown.stdout.strip()}"


def oldest() -> list[str]:
    """The requirements of pyproject.toml, each at its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [re.match(r"([\w-]+)>=([\d.]+)", line) for line in project["dependencies"]]
    return [f"{match[1]}=={match[2]}" for match in found if match]


def find_python(version: str) -> str | None:
    """An interpreter of this version that runs."""
    places = [shutil.which(f"python{version}"), *sorted(glob.glob(_kept(version)), reverse=True)]
    for place in filter(None, places):
        asked = [place, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(asked, capture_output=True, text=True).stdout.strip() == version:
            return place
    return fetched(version)


def _kept(version: str) -> str:
    """Where pyenv keeps interpreters."""
    return str(Path.home() / ".pyenv" / "versions" / f"{version}.*" / "bin" / "python")


def fetched(version: str) -> str | None:
    """An interpreter that uv has or gets, if uv is there and reaches its source."""
    uv = shutil.which("uv")
    if uv is None:
        return None
    subprocess.run([uv, "python", "install", version], capture_output=True, timeout=600)
    found = subprocess.run([uv, "python", "find", version], capture_output=True, text=True)
    return found.stdout.strip() or None if found.returncode == 0 else None


if __name__ == "__main__":
    raise SystemExit(main())
