"""What commands say of how well images fit: error beside a baseline, spread, worst images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WORST = 5
"""Images that are named as fitting worst."""


def remarks_as_values(remarks: Sequence[Any]) -> list[dict[str, str]]:
    """Return remarks for programs."""
    return [{"code": remark.code, "text": remark.text} for remark in remarks]


def judgement(evidence: Any) -> dict[str, Any]:
    """Return how well images fit, for programs."""
    worst = evidence.worst(WORST)
    return {
        "baseline_error": evidence.baseline,
        "spread_after_over_before": evidence.spread_ratio,
        "worst": {evidence.name(i): float(evidence.misfit[i] ** 2) for i in worst},
    }


def judged(evidence: Any) -> str:
    """Say how well images fit."""
    said = f"the mean image, unaligned, has error {evidence.baseline:.4f}"
    if evidence.spread_ratio is not None:
        said += f"; aligned, the spread is {evidence.spread_ratio:.0%} of what it was"
    worst = ", ".join(
        f"{evidence.name(i)} ({evidence.misfit[i] ** 2:.3f})" for i in evidence.worst(WORST)
    )
    return f"{said}\nworst fits (own error): {worst}" if worst else said
