"""All classifiers on repeated splits: Figs. 9 and 10 of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from patternfold.datasets import Split
from patternfold.experiments import drawing
from patternfold.experiments.base import Claim, Outcome, Picture, Values
from patternfold.experiments.classification import (
    aligned_pixels,
    ours,
    pixels,
    published,
    pursued,
    pursued_registered,
    register_all,
    unpack,
    views,
)
from patternfold.experiments.context import Context, Work
from patternfold.experiments.options import Options, family_of

JPATS, PATS, SMP, SAS = "JPATS", "PATS", "SMP", "SAS"
JPATS_PRINTED, PATS_GLOBAL = "JPATS, α as printed", "PATS, λ over Λ"
SMP_REGISTERED = "SMP, our registration"
LLA, SLLE, LDA, NETWORK = "LLA", "SLLE", "LDA", "neural network"
OURS, VIEWS = "ours: JPATS", "ours: aligned views"
STYLES: dict[str, dict[str, Any]] = {
    OURS: {"color": "#d1495b", "marker": "o"},
    VIEWS: {"color": "#8c1c2e", "marker": "D"},
    JPATS: {"color": "#003d5b", "marker": "s"},
    JPATS_PRINTED: {"color": "#003d5b", "marker": "s", "linestyle": ":"},
    PATS: drawing.STYLES[drawing.PATS],
    PATS_GLOBAL: drawing.STYLES[drawing.PATS] | {"linestyle": ":"},
    SMP: drawing.STYLES[drawing.SMP],
    SMP_REGISTERED: {"color": "#edae49", "marker": "^", "linestyle": ":"},
    SAS: {"color": "#6a994e", "marker": "v"},
    LLA: {"color": "#555555", "linestyle": "--"},
    SLLE: {"color": "#999999", "linestyle": "--"},
    LDA: {"color": "#6a4c93", "linestyle": "-."},
    NETWORK: {"color": "#b08bc9", "linestyle": "-."},
}


@dataclass(frozen=True)
class Configuration:
    """Sizes of a comparison of classifiers.

    Attributes
    ----------
    n_train, n_test : int
        Images per class.
    classes : sequence of int
        Classes of digits; for other sets only their number counts.
    n_repeats : int
        Splits with different training and test images.
    counts : sequence of int
        Numbers of atoms per class of the published methods.
    counts_ours : sequence of int
        Numbers of atoms per class of ours, each a fit of its own.
    n_repeats_fewer : int
        Splits on which ours have fewer than the most atoms.
    n_repeats_variants : int
        Splits on which JPATS also has the paper's values of α, and PATS its λ over Λ.
    rotation : str
        Protocol of the random rotations, where images are transformed.
    canvas : (int, int)
        Size of transformed images.
    """

    n_train: int
    n_test: int
    classes: Sequence[int] = (2, 3, 5, 8, 9)
    n_repeats: int = 3
    counts: Sequence[int] = (1, 2, 4, 6, 8, 12)
    counts_ours: Sequence[int] = (4, 8, 12)
    n_repeats_fewer: int = 1
    n_repeats_variants: int = 1
    rotation: str = "moderate"
    canvas: tuple[int, int] = (40, 40)

    @property
    def n_atoms(self) -> int:
        """Most atoms per class."""
        return max(self.counts)


Found = Mapping[str, Values]
Errors = dict[str, tuple[list[int], np.ndarray]]
"""By method: numbers of atoms, and errors in percent, splits (rows) × numbers of atoms."""


def do_all(
    context: Context, splits: Sequence[Split], options: Options, of: str | None = None
) -> Found:
    """Do all steps: those that need no other, and those on images that others have aligned."""
    settings: Configuration = context.configuration
    then = partial(registered_steps, splits, settings, options)
    return context.parallel(first_steps(splits, settings, options), of, then)


def first_steps(
    splits: Sequence[Split], settings: Configuration, options: Options
) -> dict[str, Work]:
    """Return the work that needs no other, the longest first."""
    counts, n_neighbors = list(settings.counts), family_of(options).parameters.dim + 1
    learn: dict[str, Work] = {}
    rest: dict[str, Work] = {}
    for r, split in enumerate(splits):
        for k in fitted_counts(settings, r):
            learn[f"ours-{k}-{r}"] = partial(ours, split, k, options)
            rest[f"views-{k}-{r}"] = partial(views, split, k, options)
        for variant in ("JPATS", "PATS"):
            learn[f"{variant}-{r}"] = partial(published, split, variant, counts, options)
        if r < settings.n_repeats_variants:
            for variant in ("JPATS-printed", "PATS-global"):
                rest[f"{variant}-{r}"] = partial(published, split, variant, counts, options)
        rest[f"pixels-{r}"] = partial(pixels, split, n_neighbors)
        rest |= aligned_steps(split, r, settings, options)
    return learn | rest


def aligned_steps(
    split: Split, r: int, settings: Configuration, options: Options
) -> dict[str, Work]:
    """Return the work on images as they were before, or that of registering them."""
    if split.aligned is None or split.aligned_test is None:
        return {f"registration-{r}": partial(register_all, split, settings.n_atoms, options)}
    counts = list(settings.counts)
    work: dict[str, Work] = {
        f"{method}-{r}": partial(pursued, method, split.aligned, split, counts, options)
        for method in (SMP, SAS)
    }
    pixels_of = partial(aligned_pixels, split.aligned, split.aligned_test, split)
    return work | {f"aligned-pixels-{r}": pixels_of}


def fitted_counts(settings: Configuration, repeat: int) -> list[int]:
    """Numbers of atoms that ours are fitted with on a split: all of them on the first few."""
    fewer = [k for k in settings.counts_ours if k < settings.n_atoms]
    return [settings.n_atoms, *(fewer if repeat < settings.n_repeats_fewer else [])]


def registered_steps(
    splits: Sequence[Split], settings: Configuration, options: Options, found: Found
) -> dict[str, Work]:
    """Return the work on images that patterns of ours register, as far as these are there."""
    counts, work = list(settings.counts), {}
    for r, split in enumerate(splits):
        known = split.aligned is not None
        if values := found.get(f"views-{settings.n_atoms}-{r}"):
            patterns = {name: values[name] for name in ("coef", "gamma", "n_atoms")}
            keys = {SMP: "SMP-registered"} if known else {SMP: "SMP", SAS: "SAS"}
            for method, key in keys.items():
                arguments = (method, patterns, split, counts, options)
                work[f"{key}-{r}"] = partial(pursued_registered, *arguments)
        if not known and (both := found.get(f"registration-{r}")):
            aligned, aligned_test = both["aligned"], both["aligned_test"]
            work[f"aligned-pixels-{r}"] = partial(aligned_pixels, aligned, aligned_test, split)
    return work


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


def outcome(
    context: Context,
    splits: Sequence[Split],
    options: Options,
    what: str,
    notes: Sequence[str],
) -> Outcome:
    """Compare all methods on all splits."""
    settings: Configuration = context.configuration
    found = do_all(context, splits, options)
    errors = errors_of(found, settings)
    ended = early_end(found, settings)
    claims = [
        best_claim(errors, what, ended),
        aligned_claim(errors, what, ended),
        trade_claim(found, errors, what, ended),
    ]
    return Outcome(rows_of(errors), pictures(splits[0], found, errors, settings), claims, notes)


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


def pictures(
    split: Split, found: Found, errors: Errors, settings: Configuration
) -> dict[str, Picture]:
    """Draw an image of each class, the patterns of the first split, and the errors."""
    shape, labels = split.X.shape[1:], np.unique(split.y)
    keys = {OURS: f"ours-{settings.n_atoms}-0", JPATS: "JPATS-0", PATS: "PATS-0"}
    keys |= {SMP: "SMP-0", SAS: "SAS-0"}
    rows = {"images": [split.X[split.y == label][0] for label in labels]}
    rows |= {name: [p.render(shape) for p in unpack(found[key])] for name, key in keys.items()}
    lines, levels = {}, {}
    for method, (counts, table) in errors.items():
        mean = np.nanmean(table, axis=0)
        if counts:
            lines[method] = counts, mean.tolist()
        else:
            levels[method] = float(mean[0])
    figure = drawing.draw_curves(
        lines,
        "atoms per class",
        "misclassified test images (%)",
        levels=levels,
        styles=STYLES,
        size=(8.4, 4.8),
    )
    (ax,) = figure.axes
    ax.set_xticks(list(settings.counts))
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    text = f"{settings.n_repeats} split{'s' * (settings.n_repeats > 1)}"
    return {
        "patterns": Picture(
            drawing.draw_rows(rows), "An image of each class, and the patterns learned"
        ),
        "error": Picture(figure, f"Misclassified test images, mean of {text}"),
    }


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


def listed(errors: Errors, methods: Sequence[str]) -> str:
    """Mean errors in words."""
    return ", ".join(f"{method} {last(errors, method):.1f} %" for method in methods)
