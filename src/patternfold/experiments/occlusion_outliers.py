"""Shifted "2"s, occluded by stripes, among outliers: Fig. 6 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from patternfold import datasets
from patternfold.experiments import drawing
from patternfold.experiments.approximation import (
    learn_ours,
    learn_published,
    normalised_error,
    pattern_of,
    pursue,
)
from patternfold.experiments.base import Claim, Experiment, Outcome, Picture, Values
from patternfold.experiments.context import Context, Work

MODEL, MOTHER = "translation", "inverse-multiquadric"
OUTLIERS = (3, 5, 8)
STRIPE = 2
"""Width of a stripe in pixels."""

METHODS = {"published": drawing.PATS, "SMP": drawing.SMP, "ours": drawing.OURS}
NOTES = (
    "Black stripes of two pixels cross the digits of 28×28 pixels: a horizontal one, a vertical "
    "one, or both, at random places.",
    "Errors are those of all images, outliers included, as in the paper. Atoms of the published "
    "algorithm are found by our search.",
)


@dataclass(frozen=True)
class Configuration:
    """Sizes of the experiment.

    Attributes
    ----------
    n_images : int
        Number of "2"s.
    ratios : sequence of float
        Outliers per inlier.
    n_atoms : int
        Most atoms of a pattern.
    counts : sequence of int
        Numbers of atoms at which errors are compared.
    canvas : int
        Side of the images in pixels.
    """

    n_images: int = 150
    ratios: Sequence[float] = (0.0, 0.1, 0.2, 0.3)
    n_atoms: int = 20
    counts: Sequence[int] = (1, 2, 3, 4, 6, 8, 10, 12, 15, 20)
    canvas: int = 36


@dataclass(frozen=True)
class Data:
    """Shifted images, "2"s first; the same before the shift; and "2"s without stripes."""

    images: np.ndarray
    aligned: np.ndarray
    whole: np.ndarray


def load(data: Path | None, seed: int, configuration: Configuration) -> Data:
    """Draw "2"s and as many outliers as the greatest ratio asks for."""
    pictures, labels = datasets.load_mnist(data)
    rng = np.random.default_rng(seed)
    n = configuration.n_images
    n_outliers = round(max(configuration.ratios) * n)
    own = rng.choice(np.flatnonzero(labels == 2), n, replace=False)
    others = rng.choice(np.flatnonzero(np.isin(labels, OUTLIERS)), n_outliers, replace=False)
    whole = pictures[np.append(own, others)].astype(np.float32)
    canvas = (configuration.canvas, configuration.canvas)
    striped = occlude(whole, rng)
    bounds = {"tx": (-0.2, 0.2), "ty": (-0.2, 0.2)}
    images, _ = datasets.transform_images(striped, rng, MODEL, bounds, canvas)
    aligned, plain = (
        datasets.unit(datasets.place_on_canvas(part, canvas)) for part in (striped, whole)
    )
    return Data(images, aligned, plain[:n])


def occlude(pictures: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Blacken a horizontal stripe, a vertical one, or both, in each picture."""
    striped = pictures.copy()
    # Digits fill the middle of MNIST's frames, all but 4 pixels on each side.
    low, high = 6, pictures.shape[1] - 6 - STRIPE
    for picture in striped:
        for axis in ((0,), (1,), (0, 1))[rng.integers(3)]:
            at = int(rng.integers(low, high + 1))
            np.moveaxis(picture, axis, 0)[at : at + STRIPE] = 0
    return striped


def steps(data: Data, configuration: Configuration) -> dict[str, Work]:
    """Return the work on all methods and ratios."""
    options: dict[str, Any] = {"transformation": MODEL, "mother": MOTHER}
    counts, n_atoms = list(configuration.counts), configuration.n_atoms
    work: dict[str, Work] = {}
    for ratio in configuration.ratios:
        n = configuration.n_images + round(ratio * configuration.n_images)
        images, aligned = data.images[:n], data.aligned[:n]
        key = f"{100 * ratio:.0f}"
        published = options | {"solver": "search"}
        work[f"published-{key}"] = partial(learn_published, images, n_atoms, counts, published)
        work[f"ours-{key}"] = partial(learn_ours, images, n_atoms, counts, options)
        work[f"SMP-{key}"] = partial(pursue, "SMP", aligned, images, n_atoms, counts, options)
    return work


def errors_on_whole(patterns: dict[str, Values], whole: np.ndarray) -> Values:
    """Step: how near whole "2"s are to each manifold."""
    return {
        key: normalised_error(pattern_of(values, MOTHER), whole, MODEL)
        for key, values in patterns.items()
    }


def run(context: Context) -> Outcome:
    """Learn from all sets with all methods."""
    configuration: Configuration = context.configuration
    data = load(context.data, context.seed, configuration)
    found = context.parallel(steps(data, configuration))
    atoms = {k: {"coef": v["coef"], "gamma": v["gamma"]} for k, v in found.items()}
    whole = context.step("whole", partial(errors_on_whole, atoms, data.whole))
    counts = list(configuration.counts)
    rows = [
        {
            "method": METHODS[key.split("-")[0]],
            "outliers": int(key.split("-")[1]),
            "atoms": k,
            "error": float(error),
        }
        for key, values in found.items()
        for k, error in zip(counts, values["errors"], strict=True)
    ]
    rows += [
        {
            "method": METHODS[key.split("-")[0]],
            "outliers": int(key.split("-")[1]),
            "error_on_whole_digits": error,
        }
        for key, error in whole.items()
    ]
    last = {key: float(values["errors"][-1]) for key, values in found.items()}
    ratios = [f"{100 * ratio:.0f}" for ratio in configuration.ratios]
    claims = [
        order_claim(last, ratios),
        growth_claim(last, ratios),
        recovery_claim(last, whole, ratios[0]),
        divergence_claim(whole, ratios),
    ]
    return Outcome(rows, pictures(data, found, counts, ratios), claims, NOTES)


def pictures(
    data: Data, found: dict[str, Values], counts: list[int], ratios: list[str]
) -> dict[str, Picture]:
    """Draw the images, the learned patterns and the errors."""
    shape = data.images.shape[1:]
    n = len(data.whole)
    shown = {"images": list(data.images[:10]), "outliers": list(data.images[n : n + 10])}
    rows = {
        label: [
            pattern_of(found[f"{method}-{ratio}"], MOTHER).render(shape).astype(np.float32)
            for ratio in ratios
        ]
        for method, label in METHODS.items()
    }
    panels: dict[str, dict[str, drawing.Line]] = {
        f"{ratio} % outliers": {
            label: (counts, found[f"{method}-{ratio}"]["errors"])
            for method, label in METHODS.items()
        }
        for ratio in ratios
    }
    return {
        "images": Picture(drawing.draw_rows(shown), "Some of the occluded digits, and outliers"),
        "patterns": Picture(
            drawing.draw_rows(rows, 1.2, columns=list(panels)),
            "Learned patterns, by share of outliers",
        ),
        "error": Picture(
            drawing.draw_panels(panels, "atoms", "normalised approximation error"),
            "Mean squared distance of all images to the manifold, over their mean squared norm, "
            "by share of outliers",
        ),
    }


def order_claim(last: dict[str, float], ratios: list[str]) -> Claim:
    """PATS is ahead of SMP with any share of outliers."""
    pairs = [(last[f"published-{r}"], last[f"SMP-{r}"], last[f"ours-{r}"]) for r in ratios]
    gain = np.mean([1 - ours / paper for paper, _, ours in pairs])
    return Claim(
        "PATS approximates occluded digits better than SMP, with and without outliers.",
        "; ".join(
            f"{r} %: PATS {paper:.3f}, SMP {smp:.3f}"
            for r, (paper, smp, _) in zip(ratios, pairs, strict=True)
        ),
        all(paper < smp for paper, smp, _ in pairs),
        ", ".join(f"{ours:.3f}" for _, _, ours in pairs) + f"; {gain:.1%} below PATS on average",
    )


def growth_claim(last: dict[str, float], ratios: list[str]) -> Claim:
    """The error grows with the share of outliers."""
    paper, ours = ([last[f"{m}-{r}"] for r in ratios] for m in ("published", "ours"))
    return Claim(
        "The approximation error increases with the share of outliers.",
        f"PATS from {paper[0]:.3f} without outliers to {paper[-1]:.3f} with {ratios[-1]} %",
        bool((np.diff(paper) > 0).all()),
        f"from {ours[0]:.3f} to {ours[-1]:.3f}",
    )


def recovery_claim(last: dict[str, float], whole: Values, ratio: str) -> Claim:
    """Stripes do not enter the pattern: whole digits are nearer to it than occluded ones."""
    return Claim(
        'PATS recovers a representative "2" in spite of the occlusions.',
        f'whole "2"s are at {whole[f"published-{ratio}"]:.3f} from the manifold, the occluded '
        f"ones it was learned from at {last[f'published-{ratio}']:.3f}",
        whole[f"published-{ratio}"] < last[f"published-{ratio}"],
        f"{whole[f'ours-{ratio}']:.3f} and {last[f'ours-{ratio}']:.3f}",
    )


def divergence_claim(whole: Values, ratios: list[str]) -> Claim:
    """With outliers the pattern moves away from the "2"."""
    paper, ours = ([whole[f"{m}-{r}"] for r in ratios] for m in ("published", "ours"))
    return Claim(
        'The pattern gradually diverges from the "2" with more outliers.',
        'distance of whole "2"s to the manifold: ' + ", ".join(f"{e:.4f}" for e in paper),
        bool((np.diff(paper) > 0).all()),
        ", ".join(f"{e:.4f}" for e in ours),
    )


EXPERIMENT = Experiment(
    full=Configuration(),
    quick=Configuration(20, (0.0, 0.3), 6, (1, 2, 4, 6), canvas=32),
    run=run,
)
