"""What every fitted model can be asked for: its file, and a page about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class SavingMixin:
    """A fitted model writes itself to a file, and describes itself on a page."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file that `patternfold.load` reads."""
        from patternfold.persistence import save

        save(self, path)

    def report(
        self, path: str | Path | None = None, X: Any = None, y: Any = None, **options: Any
    ) -> Any:
        """Write a page with results, remarks, curves and pictures; see `patternfold.report.report`.

        With images ``X`` it also shows their alignment, and those that fit worst; with their
        classes ``y`` a classifier is judged.
        """
        from patternfold.show.pages import report

        return report(self, path, X, y, **options)
