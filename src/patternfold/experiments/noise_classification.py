"""Digits with Gaussian noise, classified by JPATS: Fig. 11 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from patternfold.datasets import Split
from patternfold.experiments import drawing
from patternfold.experiments.base import Claim, Experiment, Outcome, Picture, Values
from patternfold.experiments.class_comparison import STYLES
from patternfold.experiments.class_steps import JPATS, OURS
from patternfold.experiments.class_steps import Configuration as Protocol
from patternfold.experiments.classification import (
    PUBLISHED,
    manifold_distances,
    ours,
    published,
    unpack,
)
from patternfold.experiments.context import Context
from patternfold.experiments.digits_classification import options_of, splits_of

TRAIN, BOTH = "noisy training images", "noisy training and test images"
METHODS = {"JPATS": JPATS, "ours": OURS}
NOTES = (
    "Images have unit norm; noise energy is the expected squared norm of the noise, the number of "
    "pixels times its variance.",
    PUBLISHED,
    "Fewer training images per class than in digits-classification, and two repetitions: every "
    "noise level is a fit of its own.",
)


@dataclass(frozen=True)
class Configuration:
    """Sizes of the experiment.

    Attributes
    ----------
    shares : sequence of float
        Energy of the noise over that of the images; the first is 0.
    n_train, n_test : int
        Images per class, fewer than in the classification of clean digits.
    n_repeats : int
        Splits with different training and test images.
    n_atoms : int
        Atoms per class.
    classes : sequence of int
        Digits.
    canvas : (int, int)
        Size of the images.
    """

    shares: Sequence[float] = (0.0, 0.08, 0.15, 0.23)
    n_train: int = 60
    n_test: int = 200
    n_repeats: int = 2
    n_atoms: int = 12
    classes: Sequence[int] = (2, 3, 5, 8, 9)
    canvas: tuple[int, int] = (40, 40)

    @property
    def protocol(self) -> Protocol:
        """What clean images are drawn by."""
        return Protocol(
            self.n_train,
            self.n_test,
            classes=self.classes,
            n_repeats=self.n_repeats,
            canvas=self.canvas,
        )


def noisy(images: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Add Gaussian noise of this energy to images of unit norm."""
    deviation = np.sqrt(share / images[0].size)
    return (images + deviation * rng.normal(size=images.shape)).astype(images.dtype)


def learn_noisy(
    method: str, split: Split, share: float, n_atoms: int, seed: int, options: dict[str, Any]
) -> Values:
    """Step: learn from noisy images; errors on clean and on equally noisy test images."""
    rng = np.random.default_rng(seed)
    noisy_split = split._replace(X=noisy(split.X, share, rng))
    learned = (
        ours(noisy_split, n_atoms, options)
        if method == "ours"
        else published(noisy_split, "JPATS", [n_atoms], options)
    )
    noisy_test = noisy(split.X_test, share, rng)
    return {
        "clean": float(learned["errors"][-1]),
        "noisy": wrong_of(learned, noisy_test, split, options),
    }


def wrong_of(learned: Values, images: np.ndarray, split: Split, options: dict[str, Any]) -> float:
    """Percentage of images that the learned patterns misclassify."""
    nearest = manifold_distances(unpack(learned), images, options).argmin(axis=1)
    return 100 * float((np.unique(split.y)[nearest] != split.y_test).mean())


def run(context: Context) -> Outcome:
    """Learn at every level of noise."""
    settings: Configuration = context.configuration
    options = options_of(settings.protocol)
    work = {
        f"{method}-{i}-{r}": partial(
            learn_noisy, method, split, share, settings.n_atoms, context.seed + r, options
        )
        for r, split in enumerate(splits_of(context, settings.protocol))
        for i, share in enumerate(settings.shares)
        for method in METHODS
    }
    found = context.parallel(work)
    errors = {
        (method, case): np.array(
            [
                np.mean([found[f"{method}-{i}-{r}"][case] for r in range(settings.n_repeats)])
                for i in range(len(settings.shares))
            ]
        )
        for method in METHODS
        for case in ("clean", "noisy")
    }
    return Outcome(
        rows_of(errors, settings), picture(errors, settings), [claim(errors, settings)], NOTES
    )


def rows_of(errors: dict[tuple[str, str], np.ndarray], settings: Configuration) -> list[Values]:
    """Rows of metrics."""
    return [
        {
            "method": METHODS[method],
            "test_images": case,
            "noise_energy_share": share,
            "error_percent": float(value),
        }
        for (method, case), values in errors.items()
        for share, value in zip(settings.shares, values, strict=True)
    ]


def picture(
    errors: dict[tuple[str, str], np.ndarray], settings: Configuration
) -> dict[str, Picture]:
    """Draw errors against noise."""
    percent = [100 * share for share in settings.shares]
    cases = {"clean": TRAIN, "noisy": BOTH}
    names = {pair: f"{METHODS[pair[0]]}, {cases[pair[1]]}" for pair in errors}
    lines = {names[pair]: (percent, values.tolist()) for pair, values in errors.items()}
    styles = {
        name: STYLES[METHODS[pair[0]]] | ({"linestyle": ":"} if pair[1] == "noisy" else {})
        for pair, name in names.items()
    }
    figure = drawing.draw_curves(
        lines,
        "noise energy (% of the signal's)",
        "misclassified test images (%)",
        styles=styles,
    )
    return {"error": Picture(figure, f"Mean of {settings.n_repeats} splits")}


def claim(errors: dict[tuple[str, str], np.ndarray], settings: Configuration) -> Claim:
    """Noise costs little."""
    rise = {pair: values[-1] - values[0] for pair, values in errors.items()}
    share = f"{settings.shares[-1]:.0%}"
    told = {
        method: f"{rise[method, 'clean']:+.1f} points with noise in training images, "
        f"{rise[method, 'noisy']:+.1f} with noise in all"
        for method in METHODS
    }
    return Claim(
        "Noise of 23 % of the signal's energy costs JPATS at most 2.7 points of misclassification.",
        f"at {share}, from {errors['JPATS', 'clean'][0]:.1f} %: {told['JPATS']}",
        bool(max(rise["JPATS", case] for case in ("clean", "noisy")) <= 2.7),
        f"from {errors['ours', 'clean'][0]:.1f} %: {told['ours']}",
    )


EXPERIMENT = Experiment(
    full=Configuration(),
    quick=Configuration(
        shares=(0.0, 0.23),
        n_train=12,
        n_test=20,
        n_repeats=1,
        n_atoms=3,
        classes=(3, 8),
        canvas=(32, 32),
    ),
    run=run,
)
