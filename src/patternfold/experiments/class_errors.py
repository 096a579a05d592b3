"""The errors of all classifiers: collected, and as rows of metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from patternfold.experiments.base import Values
from patternfold.experiments.class_steps import (
    JPATS,
    JPATS_PRINTED,
    LDA,
    LLA,
    NETWORK,
    OURS,
    PATS,
    PATS_GLOBAL,
    SAS,
    SLLE,
    SMP,
    SMP_REGISTERED,
    VIEWS,
    Configuration,
    Found,
    fitted_counts,
)

Errors = dict[str, tuple[list[int], np.ndarray]]
"""By method: numbers of atoms, and errors in percent, splits (rows) × numbers of atoms."""


def errors_of(found: Found, settings: Configuration) -> Errors:
    """Collect the errors of all methods."""
    repeats, counts = range(settings.n_repeats), list(settings.counts)
    errors: Errors = {}
    names = {JPATS: "JPATS", JPATS_PRINTED: "JPATS-printed"}
    names |= {PATS: "PATS", PATS_GLOBAL: "PATS-global"}
    names |= {SMP: "SMP", SMP_REGISTERED: "SMP-registered", SAS: "SAS"}
    for label, key in names.items():
        runs = [found[f"{key}-{r}"]["errors"] for r in repeats if f"{key}-{r}" in found]
        if runs:
            errors[label] = counts, np.array(runs)
    for label, key in ((OURS, "ours"), (VIEWS, "views")):
        errors[label] = _errors_of_ours(found, key, settings)
    for label, key in ((LLA, "pixels"), (SLLE, "pixels"), (LDA, "aligned-pixels")):
        values = [found[f"{key}-{r}"][label] for r in repeats]
        errors[label] = [], np.array(values)[:, None]
    values = [found[f"aligned-pixels-{r}"]["network"] for r in repeats]
    errors[NETWORK] = [], np.array(values)[:, None]
    return errors


def _errors_of_ours(
    found: Found, key: str, settings: Configuration
) -> tuple[list[int], np.ndarray]:
    """Errors of fits of their own; NaN where a split has no such fit."""
    counts = sorted({*settings.counts_ours, settings.n_atoms})
    table = np.full((settings.n_repeats, len(counts)), np.nan)
    for r in range(settings.n_repeats):
        for j, k in enumerate(counts):
            if k in fitted_counts(settings, r):
                table[r, j] = found[f"{key}-{k}-{r}"]["errors"][0]
    return counts, table


def last(errors: Errors, method: str) -> float:
    """Mean error of a method with all its atoms."""
    return float(errors[method][1][:, -1].mean())


def listed(errors: Errors, methods: Sequence[str]) -> str:
    """Mean errors in words."""
    return ", ".join(f"{method} {last(errors, method):.1f} %" for method in methods)


def rows_of(errors: Errors) -> list[Values]:
    """Rows of metrics: mean and standard deviation over the splits."""
    rows: list[Values] = []
    for method, (counts, table) in errors.items():
        for j in range(table.shape[1]):
            values = table[~np.isnan(table[:, j]), j]
            rows.append(
                {
                    "method": method,
                    "atoms": counts[j] if counts else "",
                    "error_percent": float(values.mean()),
                    "std": float(values.std()),
                    "splits": len(values),
                }
            )
    return rows
