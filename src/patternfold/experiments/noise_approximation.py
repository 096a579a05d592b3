"""A synthetic pattern, its transformed images and more and more noise: Fig. 8 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from patternfold import PATS, datasets
from patternfold.experiments import drawing
from patternfold.experiments.approximation import pattern_of
from patternfold.experiments.base import Claim, Experiment, Outcome, Picture, Values
from patternfold.experiments.context import Context

IDEAL = "noise energy"
LABELS = {"published": drawing.PATS, "ours": drawing.OURS}
NOTES = (
    "Images of 25×25 pixels have unit norm on average: a noise variance of 2e-4 then is an SNR of "
    "9.03 dB, that of the paper.",
    "Errors are squared distances over the energy of the images without noise, so that ideally "
    "they equal the noise energy. Atoms of the published algorithm are found by our search.",
)


@dataclass(frozen=True)
class Configuration:
    """Sizes of the experiment.

    Attributes
    ----------
    n_images : int
        Number of images.
    true_atoms : int
        Atoms of the synthetic pattern.
    published_atoms, our_atoms : int
        Most atoms that are learned; ours needs few more than there are.
    variances : sequence of float
        Noise variances.
    repetitions : int
        Number of synthetic patterns.
    side : int
        Of the images, in pixels.
    dtype : str
        Precision; float64 shows whether the pattern is found exactly.
    """

    n_images: int = 50
    true_atoms: int = 10
    published_atoms: int = 20
    our_atoms: int = 12
    variances: Sequence[float] = (0.0, 0.4e-4, 0.8e-4, 1.2e-4, 1.6e-4, 2e-4)
    repetitions: int = 3
    side: int = 25
    dtype: str = "float64"


def images_of(seed: int, configuration: Configuration, variance: float) -> np.ndarray:
    """Draw a pattern and noisy images of it; without noise their mean squared norm is 1."""
    rng = np.random.default_rng(seed)
    pattern = datasets.random_pattern(configuration.true_atoms, rng)
    shape = (configuration.side, configuration.side)
    n = configuration.n_images
    images, _ = datasets.random_images(pattern, n, rng, shape=shape, dtype=configuration.dtype)
    scale = 1 / np.sqrt((images**2).sum() / n)
    noise = np.sqrt(variance) * rng.normal(size=images.shape)
    return (scale * images + noise).astype(configuration.dtype)


def learn(method: str, seed: int, configuration: Configuration, variance: float) -> Values:
    """Step: learn from noisy images; the error is relative to the energy without noise."""
    images = images_of(seed, configuration, variance)
    if method == "ours":
        model = PATS(configuration.our_atoms, random_state=0)
    else:
        model = PATS.paper(configuration.published_atoms, solver="search", random_state=0)
    model.fit(images)
    error = model.error_path_[-1] * (images**2).sum() / len(images)
    return {"error": float(error), "coef": model.pattern_.coef, "gamma": model.pattern_.gamma}


def run(context: Context) -> Outcome:
    """Learn at every noise level with both methods."""
    configuration: Configuration = context.configuration
    seeds = [context.seed + i for i in range(configuration.repetitions)]
    variances = list(configuration.variances)
    work = {
        f"{method}-{seed}-{level}": partial(learn, method, seed, configuration, variance)
        for method in LABELS
        for seed in seeds
        for level, variance in enumerate(variances)
    }
    found = context.parallel(work)
    errors = {
        method: np.array(
            [
                [found[f"{method}-{seed}-{level}"]["error"] for level in range(len(variances))]
                for seed in seeds
            ]
        )
        for method in LABELS
    }
    rows = [
        {"method": LABELS[method], "pattern": seed, "variance": v, "error": float(e)}
        for method, table in errors.items()
        for seed, line in zip(seeds, table, strict=True)
        for v, e in zip(variances, line, strict=True)
    ]
    mean = {method: table.mean(axis=0) for method, table in errors.items()}
    ideal = configuration.side**2 * np.array(variances)
    claims = [linear_claim(mean, variances, ideal), origin_claim(mean, ideal)]
    return Outcome(rows, pictures(context, found, mean, ideal), claims, NOTES)


def pictures(
    context: Context, found: dict[str, Values], mean: dict[str, np.ndarray], ideal: np.ndarray
) -> dict[str, Picture]:
    """Draw images, patterns and errors."""
    configuration: Configuration = context.configuration
    variances, seed = list(configuration.variances), context.seed
    shape = (configuration.side, configuration.side)
    levels = range(len(variances))
    drawn = [images_of(seed, configuration, v)[0] for v in variances]
    rows = {"images": drawn} | {
        label: [pattern_of(found[f"{m}-{seed}-{level}"]).render(shape) for level in levels]
        for m, label in LABELS.items()
    }
    lines: dict[str, drawing.Line] = {LABELS[m]: (variances, mean[m].tolist()) for m in LABELS}
    lines[IDEAL] = (variances, ideal.tolist())
    styles = drawing.STYLES | {IDEAL: {"color": "#999999", "linestyle": ":", "marker": ""}}
    return {
        "images": Picture(
            drawing.draw_rows(rows),
            "One of the images, and the patterns learned, with noise growing to the right",
        ),
        "error": Picture(
            drawing.draw_curves(lines, "noise variance", "squared distance", styles=styles),
            f"Mean squared distance to the manifold, mean of {configuration.repetitions} patterns",
        ),
    }


def linear_claim(mean: dict[str, np.ndarray], variances: list[float], ideal: np.ndarray) -> Claim:
    """The error depends linearly on the noise variance."""
    published = correlation(variances, mean["published"])
    ours = correlation(variances, mean["ours"])
    steep = (mean["ours"][-1] - mean["ours"][0]) / (ideal[-1] - ideal[0])
    return Claim(
        "The error depends linearly on the noise variance.",
        f"R² of a straight line through PATS' errors: {published:.4f}",
        published >= 0.98,
        f"R² {ours:.6f}, slope {steep:.3f} of the ideal one",
    )


def origin_claim(mean: dict[str, np.ndarray], ideal: np.ndarray) -> Claim:
    """Without noise something is left over."""
    published, ours = float(mean["published"][0]), float(mean["ours"][0])
    largest = float(ideal[-1])
    return Claim(
        "The curve does not pass through the origin, as the algorithm is greedy.",
        f"error without noise {published:.2e}, {published / largest:.1%} of the greatest noise",
        published > 1e-2 * largest,
        f"{ours:.1e}: it does pass through the origin"
        if ours < 1e-2 * largest
        else f"{ours:.1e}, {ours / largest:.1%} of the greatest noise",
    )


def correlation(x: Sequence[float], y: np.ndarray) -> float:
    """R² of a straight line."""
    return float(np.corrcoef(np.asarray(x), y)[0, 1] ** 2)


EXPERIMENT = Experiment(
    full=Configuration(),
    quick=Configuration(8, 2, 3, 3, (0.0, 1.6e-4, 3.2e-4), 1, 20, "float32"),
    run=run,
)
