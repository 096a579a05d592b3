"""A face under varied light: gradient descent, and good and bad starts: Fig. 7 of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from patternfold import align, datasets, project
from patternfold.baselines import MatchingPursuit
from patternfold.experiments import drawing
from patternfold.experiments.approximation import (
    early_end,
    ellipse,
    learn_ours,
    learn_published,
    pattern_of,
    pursue,
)
from patternfold.experiments.base import Claim, Experiment, Outcome, Picture, Values
from patternfold.experiments.context import Context, Work
from patternfold.experiments.options import family_of
from patternfold.experiments.standins import load_lights

MODEL = "scaling"
SMALLEST, LARGEST = datasets.protocol_bounds()["sx"]
"""Range of the scales; the canvas has room for the greatest."""

BOUNDS = {name: (SMALLEST / LARGEST, LARGEST / SMALLEST) for name in ("sx", "sy")}
"""Λ: scales of one image against another. Wider ones would be used to mimic shadows."""

OPTIONS = {"transformation": MODEL, "bounds": BOUNDS}

NAMES = {
    "normal": "PATS",
    "no-descent": "PATS, no gradient descent",
    "bad-start": "PATS, bad start",
    "SMP": "SMP",
    "SMP-bad": "SMP, bad alignment",
    "ours": "ours (default)",
    "ours-bad": "ours, bad start",
}
STYLES: dict[str, dict[str, Any]] = {
    "PATS": {"color": "#00798c", "marker": "s"},
    "PATS, no gradient descent": {"color": "#30638e", "marker": "D", "linestyle": ":"},
    "PATS, bad start": {"color": "#00798c", "marker": "s", "linestyle": "--"},
    "SMP": {"color": "#edae49", "marker": "^"},
    "SMP, bad alignment": {"color": "#edae49", "marker": "^", "linestyle": "--"},
    "ours (default)": {"color": "#d1495b", "marker": "o"},
    "ours, bad start": {"color": "#d1495b", "marker": "x", "linestyle": "--"},
}
NOTES = (
    "The 64 pictures of a subject, reduced to half their size and cut out by an ellipse, are used "
    "once or twice, each time stretched anew by 0.75 to 1.25 along each axis.",
    "SMP gets the images aligned to the one nearest the centroid, or to the one farthest from it, "
    "as PATS starts. Atoms of the published algorithm are found by our search.",
)


@dataclass(frozen=True)
class Configuration:
    """Sizes of the experiment.

    Attributes
    ----------
    n_images : int
        Number of observations.
    n_atoms : int
        Most atoms of a pattern.
    counts : sequence of int
        Numbers of atoms at which errors are compared.
    subject : int
        Which of the subjects of the set, from 0.
    factor : int
        Pixels along an axis that are averaged to one.
    reference_atoms : int
        Atoms of the pattern that stands for the image which others are aligned to.
    """

    n_images: int = 90
    n_atoms: int = 30
    counts: Sequence[int] = (1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30)
    subject: int = 0
    factor: int = 2
    reference_atoms: int = 16


def load(data: Path | None, seed: int, configuration: Configuration) -> tuple[np.ndarray, str]:
    """Stretch the pictures of one subject; say what stands in for them, if anything."""
    own, stand_in = load_lights(data, configuration.subject)
    small = datasets.shrink(own.astype(np.float32), configuration.factor)
    faces = small * ellipse(small.shape[1:])
    canvas = (math.ceil(LARGEST * small.shape[1]), math.ceil(LARGEST * small.shape[2]))
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(len(own)) for _ in range(2)])
    chosen = faces[order[: configuration.n_images]]
    return datasets.transform_images(chosen, rng, MODEL, canvas=canvas)[0], stand_in


def aligned_to(images: np.ndarray, which: str, n_atoms: int) -> np.ndarray:
    """Align images to the one nearest their centroid, or to the one farthest from it."""
    distance = np.linalg.norm(images - images.mean(axis=0), axis=(1, 2))
    index = distance.argmin() if which == "centroid" else distance.argmax()
    reference = MatchingPursuit(n_atoms).fit(images[[index]]).pattern_
    family = family_of(OPTIONS)
    found = project(reference, images, family, effort="normal")
    return align(images, found.parameters, family)


def pursue_from(
    which: str, images: np.ndarray, configuration: Configuration, counts: Sequence[int]
) -> Values:
    """Step: SMP on images that are aligned well or badly."""
    aligned = aligned_to(images, which, configuration.reference_atoms)
    return pursue("SMP", aligned, images, configuration.n_atoms, counts, OPTIONS)


def steps(images: np.ndarray, configuration: Configuration) -> dict[str, Work]:
    """Return the work on all settings."""
    counts, n_atoms = list(configuration.counts), configuration.n_atoms
    paper = OPTIONS | {"solver": "search"}
    bad = {"reference": "farthest"}

    def published(**options: Any) -> Work:
        return partial(learn_published, images, n_atoms, counts, paper | options)

    return {
        "ours": partial(learn_ours, images, n_atoms, counts, OPTIONS),
        "ours-bad": partial(learn_ours, images, n_atoms, counts, OPTIONS | bad),
        "normal": published(),
        "no-descent": published(tangent_refinement=False),
        "bad-start": published(**bad),
        "SMP": partial(pursue_from, "centroid", images, configuration, counts),
        "SMP-bad": partial(pursue_from, "farthest", images, configuration, counts),
    }


def run(context: Context) -> Outcome:
    """Learn in all settings."""
    configuration: Configuration = context.configuration
    images, stand_in = load(context.data, context.seed, configuration)
    found = context.parallel(steps(images, configuration))
    counts = list(configuration.counts)
    rows = [
        {"setting": label, "atoms": k, "error": float(error)}
        for key, label in NAMES.items()
        for k, error in zip(counts, found[key]["errors"], strict=True)
    ]
    last = {key: float(values["errors"][-1]) for key, values in found.items()}
    early = early_end(found["normal"], configuration.n_atoms)
    claims = [
        replace(claim, reason=early or claim.reason)
        for claim in (descent_claim(last), start_claim(last), compensation_claim(last))
    ]
    return Outcome(rows, pictures(images, found, counts), claims, NOTES, stand_in)


def pictures(images: np.ndarray, found: dict[str, Values], counts: list[int]) -> dict[str, Picture]:
    """Draw the images, the learned patterns and the errors."""
    shape = images.shape[1:]
    learned = {
        label.replace(", ", ",\n"): pattern_of(found[key]).render(shape)
        for key, label in NAMES.items()
    }
    lines: dict[str, drawing.Line] = {
        label: (counts, found[key]["errors"]) for key, label in NAMES.items()
    }
    return {
        "images": Picture(drawing.draw_rows({"images": list(images[:10])}), "Some of the images"),
        "patterns": Picture(drawing.draw_pictures(learned), "Learned patterns"),
        "error": Picture(
            drawing.draw_curves(
                lines,
                "atoms",
                "normalised approximation error",
                styles=STYLES,
                from_zero=False,
                size=(7.2, 4.6),
            ),
            "Mean squared distance of the images to the manifold, over their mean squared norm",
        ),
    }


def descent_claim(last: dict[str, float]) -> Claim:
    """The second stage of atom selection pays."""
    normal, without = last["normal"], last["no-descent"]
    return Claim(
        "Gradient descent on the tangent distance error brings an improvement.",
        f"error {normal:.4f} with it, {without:.4f} without",
        normal < without,
        f"{last['ours']:.4f}, {1 - last['ours'] / normal:.0%} below PATS",
    )


def start_claim(last: dict[str, float]) -> Claim:
    """The published algorithm depends on its start."""
    normal, bad = last["normal"], last["bad-start"]
    ours, ours_bad = last["ours"], last["ours-bad"]
    return Claim(
        "PATS is sensitive to its initialisation: a bad one ends at a higher error.",
        f"error {normal:.4f} from a good start, {bad:.4f} from a bad one ({bad / normal - 1:+.1%})",
        bad > normal,
        f"{ours:.4f} and {ours_bad:.4f} ({ours_bad / ours - 1:+.1%})",
        ""
        if bad > normal
        else "The first parameters come from a global search on the manifold of the reference, "
        "which leaves less to a bad start.",
    )


def compensation_claim(last: dict[str, float]) -> Claim:
    """A bad start costs PATS less than SMP."""
    differences = {
        name: last[bad] - last[good]
        for name, good, bad in (
            ("PATS", "normal", "bad-start"),
            ("SMP", "SMP", "SMP-bad"),
            ("ours", "ours", "ours-bad"),
        )
    }
    return Claim(
        "A bad start costs SMP much more than PATS, which compensates for it to some extent.",
        f"the error changes by {differences['PATS']:+.4f} with PATS, "
        f"{differences['SMP']:+.4f} with SMP",
        differences["SMP"] > 2 * max(differences["PATS"], 0.0),
        f"{differences['ours']:+.4f}",
    )


EXPERIMENT = Experiment(
    full=Configuration(),
    quick=Configuration(16, 6, (2, 4, 6), factor=3, reference_atoms=6),
    run=run,
)
