"""Handwritten "5"s under random rotations, scalings and translations: Fig. 4 of the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from patternfold import datasets
from patternfold.experiments.base import Experiment, Outcome
from patternfold.experiments.comparison import Configuration, Data, outcome, transformed
from patternfold.experiments.context import Context

NOTES = (
    "The paper gives no ranges of its transformations: any rotation, scales 0.75 to 1.25 along "
    "each axis and shifts of up to 4 of 40 pixels are drawn, and images are scaled to unit norm.",
    "Atoms of the published algorithm are found by our search, which the first atoms by the "
    "cutting plane are compared with; errors of all methods but ours are those of global "
    "projections on the patterns of the first atoms.",
)


def load(data: Path | None, seed: int, configuration: Configuration) -> Data:
    """Draw "5"s and transform them."""
    pictures, labels = datasets.load_mnist(data)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(np.flatnonzero(labels == 5), configuration.n_images, replace=False)
    return transformed(pictures[chosen], rng, configuration)


def run(context: Context) -> Outcome:
    """Compare all methods."""
    data = load(context.data, context.seed, context.configuration)
    return outcome(context, data, "digits", NOTES)


EXPERIMENT = Experiment(
    full=Configuration(30),
    quick=Configuration(8, n_atoms=6, counts=(1, 3, 6), n_cutting_plane=0, factor=2),
    run=run,
)
