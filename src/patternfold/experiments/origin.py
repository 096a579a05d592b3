"""From which state of the source results are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

VARIABLE = "PATTERNFOLD_COMMIT"
"""Names the commit where the source is there without its history."""


def commit() -> str:
    """Return the commit of the source, with "+" if files have changed since; empty if unknown."""
    if given := os.environ.get(VARIABLE):
        return given
    head = _git("rev-parse", "--short", "HEAD")
    return head + "+" * bool(head and _git("status", "--porcelain", "--", "."))


def _git(*arguments: str) -> str:
    folder = Path(__file__).parents[1]
    if not (folder.parents[1] / ".git").exists():  # an installed copy may lie in any repository
        return ""
    try:
        command = ["git", "-C", str(folder), *arguments]
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
