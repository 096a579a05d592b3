"""Remarks on the number of kinds that was chosen: few images may not tell it."""

from __future__ import annotations

from typing import Any

from patternfold.estimators.remarks.remark import Remark
from patternfold.learning.mixture.merge import likely_counts


def remarks_on_kinds(model: Any) -> list[Remark]:
    """Return remarks on the groups of a fitted `PatternMixture`, if it was to choose how many."""
    if model.n_patterns != "auto":
        return []
    found = len(model.patterns_)
    others = [n for n in likely_counts(model.eigenvalues_) if n != found]
    if others:
        text = (
            f"The images tell {_groups(found)} from {_groups(others[0])} only just. Look at the "
            f"groups, and ask for another number with --patterns {others[0]} "
            f"(n_patterns={others[0]}); more images tell more."
        )
        return [Remark("other-kinds", text)]
    if found == 1:
        text = (
            "All images were taken for one kind. If they are of several, say how many: "
            "--patterns 3 (n_patterns=3) makes three groups."
        )
        return [Remark("one-kind", text)]
    return []


def _groups(count: int) -> str:
    return "one group" if count == 1 else f"{count} groups"
