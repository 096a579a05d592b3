"""The version: the newest heading of the changelog, which the build reads too."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\]", re.MULTILINE)
"""A version in the changelog; pyproject.toml has the same for the build."""


def find_version() -> str:
    """Read the changelog of a checkout, or what the installed package was built with."""
    package = Path(__file__).parent
    changelog = package.parent.parent / "CHANGELOG.md"
    if package.parent.name == "src" and changelog.is_file():
        newest = HEADING.search(changelog.read_text(encoding="utf-8"))
        if newest is not None:
            return newest["version"]
    return metadata.version("patternfold")


__version__ = find_version()
