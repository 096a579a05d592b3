"""Faces of one person under random rotations, scalings and translations: Fig. 5 of the paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from patternfold.experiments import digits_approximation
from patternfold.experiments.approximation import ellipse, spread_about_centroid
from patternfold.experiments.base import Claim, Experiment, Outcome
from patternfold.experiments.comparison import Configuration, Data, outcome, pursuits, transformed
from patternfold.experiments.context import Context
from patternfold.experiments.standins import load_expressions

NOTES = (
    "Frey faces stand for those of the paper, which may not be passed on; an ellipse cuts out the "
    "face, so that no corners turn with it.",
    *digits_approximation.NOTES,
)


def load(data: Path | None, seed: int, configuration: Configuration) -> tuple[Data, str]:
    """Draw faces, cut them out and transform them; say what stands in for them, if anything."""
    pictures, stand_in = load_expressions(data)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(pictures), configuration.n_images, replace=False)
    faces = pictures[chosen] * ellipse(pictures.shape[1:])
    return transformed(faces, rng, configuration), stand_in


def run(context: Context) -> Outcome:
    """Compare all methods, and the pursuits with those on digits."""
    configuration = context.configuration
    faces, stand_in = load(context.data, context.seed, configuration)
    found = outcome(context, faces, "faces", NOTES)
    experiment = digits_approximation.EXPERIMENT
    digit = experiment.quick if context.quick else experiment.full
    digits = digits_approximation.load(context.data, context.seed, digit)
    other = context.parallel(pursuits(digits, digit), of="digits-approximation")
    own = context.parallel(pursuits(faces, configuration))
    errors = {
        name: {method: float(values["errors"][-1]) for method, values in part.items()}
        for name, part in (("faces", own), ("digits", other))
    }
    claims = [*found.claims, pursuit_claim(errors), variation_claim(faces, digits)]
    return replace(found, claims=claims, stand_in=stand_in)


def pursuit_claim(errors: dict[str, dict[str, float]]) -> Claim:
    """An average face is nearer to all faces than an average digit to all digits."""
    faces, digits = errors["faces"], errors["digits"]
    return Claim(
        "MP and SMP approximate faces better than digits.",
        f"MP {faces['MP']:.3f} on faces, {digits['MP']:.3f} on digits; "
        f"SMP {faces['SMP']:.3f} and {digits['SMP']:.3f}",
        all(faces[method] < digits[method] for method in ("MP", "SMP")),
    )


def variation_claim(faces: Data, digits: Data) -> Claim:
    """Aligned faces vary less than aligned digits."""
    of_faces, of_digits = (spread_about_centroid(data.aligned) for data in (faces, digits))
    return Claim(
        "Aligned faces vary far less about their centroid than digits: 0.01 against 0.40.",
        f"{of_faces:.3f} against {of_digits:.3f}",
        of_faces < of_digits / 4,
        reason="The sets differ from the paper's.",
    )


EXPERIMENT = Experiment(
    full=Configuration(35, rotation="moderate"),
    quick=replace(digits_approximation.EXPERIMENT.quick, rotation="moderate"),
    run=run,
)
