"""What the paper says of its classifiers, and what was measured."""

from __future__ import annotations

import numpy as np

from patternfold.experiments.base import Claim
from patternfold.experiments.class_errors import Errors, last, listed
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
    VIEWS,
    Configuration,
    Found,
)


def early_end(found: Found, settings: Configuration) -> str:
    """Say where joint selection ended before the patterns of all classes were complete."""
    counts = [found[f"JPATS-{r}"]["n_atoms"] for r in range(settings.n_repeats)]
    mean = float(np.mean(counts))
    if mean == settings.n_atoms:
        return ""
    return (
        f"JPATS ended with {mean:.1f} of {settings.n_atoms} atoms per class on average: further "
        "ones did not lower the misclassification of the training images, or were insignificant."
    )


def best_claim(errors: Errors, what: str, ended: str = "") -> Claim:
    """JPATS is best among the methods that see transformed images, or build manifolds."""
    others = [m for m in (PATS, SMP, SAS, LLA, SLLE) if m in errors]
    jpats, best = last(errors, JPATS), min(last(errors, m) for m in others)
    reasons = [] if jpats < best or not ended else [ended]
    variants = [m for m in (JPATS_PRINTED, PATS_GLOBAL) if m in errors]
    if variants:
        reasons.append(f"On the first split: {listed(errors, variants)}.")
    return Claim(
        f"JPATS classifies the {what} better than PATS, SMP, SAS, LLA and SLLE.",
        f"misclassified: {listed(errors, [JPATS, *others])}; {below_pats(errors)}",
        jpats < best,
        listed(errors, [OURS, VIEWS]),
        " ".join(reasons),
    )


def below_pats(errors: Errors) -> str:
    """Say how often JPATS is below PATS: with all atoms by split, in the mean by atoms."""
    (counts, jpats), (_, pats) = errors[JPATS], errors[PATS]
    splits = int((jpats[:, -1] < pats[:, -1]).sum())
    fewer = int((jpats.mean(axis=0) < pats.mean(axis=0)).sum())
    return (
        f"JPATS is below PATS on {splits} of {len(jpats)} splits, and in the mean with {fewer} of "
        f"{len(counts)} numbers of atoms"
    )


def aligned_claim(errors: Errors, what: str, ended: str = "") -> Claim:
    """JPATS is better than classifiers of aligned images."""
    jpats, best = last(errors, JPATS), min(last(errors, m) for m in (LDA, NETWORK))
    return Claim(
        f"JPATS classifies the {what} better than LDA and a neural network on aligned images.",
        "misclassified: " + listed(errors, [JPATS, LDA, NETWORK]),
        jpats < best,
        listed(errors, [OURS, VIEWS]),
        "" if jpats < best else ended,
    )


def trade_claim(found: Found, errors: Errors, what: str, ended: str = "") -> Claim:
    """PATS approximates better, JPATS classifies better."""
    keys = {PATS: "PATS-0", JPATS: "JPATS-0"}
    near = {name: float(found[key]["path"][-1, 1]) for name, key in keys.items()}
    ours_near = [v["path"][-1, 1] for key, v in found.items() if key.startswith("ours-")]
    holds = near[PATS] < near[JPATS] and last(errors, JPATS) < last(errors, PATS)
    return Claim(
        f"PATS approximates the {what} better than JPATS, which classifies them better.",
        f"approximation error PATS {near[PATS]:.3f}, JPATS {near[JPATS]:.3f}; "
        "misclassified: " + listed(errors, [PATS, JPATS]),
        holds,
        f"approximation error {float(ours_near[0]):.3f}, misclassified {last(errors, OURS):.1f} %",
        "" if holds else ended,
    )
