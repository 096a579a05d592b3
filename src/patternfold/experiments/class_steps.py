"""The steps of a comparison of classifiers on repeated splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from patternfold.datasets import Split
from patternfold.experiments.base import Values
from patternfold.experiments.classification import (
    aligned_pixels,
    ours,
    pixels,
    published,
    pursued,
    pursued_registered,
    register_all,
    views,
)
from patternfold.experiments.context import Context, Work
from patternfold.experiments.options import Options, family_of

JPATS, PATS, SMP, SAS = "JPATS", "PATS", "SMP", "SAS"
JPATS_PRINTED, PATS_GLOBAL = "JPATS, α as printed", "PATS, λ over Λ"
SMP_REGISTERED = "SMP, our registration"
LLA, SLLE, LDA, NETWORK = "LLA", "SLLE", "LDA", "neural network"
OURS, VIEWS = "ours: JPATS", "ours: aligned views without variants"


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
