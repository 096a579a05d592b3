"""What a loss of residuals can reach where a fifth of the pixels is occluded, in theory.

    python benchmarks/occlusion_limits.py

A loss sees the residual of a pixel and nothing else. An occluded pixel that happens to be about as
bright as the picture there can't be told from a sound one, and pulls the estimate. At every
brightness of the pictures of `robust.py` the estimate of it from many pixels, some of them
occluded, is worked out: its bias, and its asymptotic variance. Errors of a pattern are

    noise² (bias² + variance · share),    share = clean error of squares / noise²,

in which the share of the noise that stays in the pattern is the only figure taken from
`robust.py`. Losses are known by their weights at residuals in units of the noise. The oracle
knows which pixels are occluded, and has a fifth less of them: 1.25.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
from _timing import print_table
from robust import NOISE, OCCLUDED, TRUTH, rendered

Weight = Callable[[np.ndarray], np.ndarray]
STEP = 1e-4
ROUNDS = 60
"""Estimates of a brightness by reweighting; they settle within a few."""


def student(df: float, scale: float = 1.0) -> Weight:
    """Student's t."""
    return lambda r: 1 / (1 + (r / scale) ** 2 / df)


def contaminated(share: float) -> Weight:
    """Normal noise, and outliers that may be anything: the odds of being sound."""
    return lambda r: (1 + share) * np.exp(-(r**2) / 2) / (np.exp(-(r**2) / 2) + share)


def biweight(width: float) -> Weight:
    """Tukey's, 0 beyond its width."""
    return lambda r: np.clip(1 - (r / width) ** 2, 0, None) ** 2


LOSSES: dict[str, Weight] = {
    "squared": np.ones_like,
    "huber 1.345": lambda r: np.minimum(1, 1.345 / np.maximum(np.abs(r), 1e-12)),
    "student-t 2": student(2),
    "student-t 2, scale 0.7": student(2, 0.7),
    "student-t 1": student(1),
    "contaminated 0.05": contaminated(0.05),
    "contaminated 0.2": contaminated(0.2),
    "biweight 4.7": biweight(4.685),
    "biweight 3.5": biweight(3.5),
}


def estimate(weight: Weight, truth: float, ends: np.ndarray, share: float) -> tuple[float, float]:
    """Bias and asymptotic variance of the estimate of a brightness, in units of the noise."""
    normal = np.linspace(-5, 5, 401)
    density = np.exp(-(normal**2) / 2)
    density *= (1 - share) / density.sum()
    values = np.concatenate([truth + normal, ends])
    density = np.concatenate([density, np.full(len(ends), share / len(ends))])
    found = truth
    for _ in range(ROUNDS):
        own = weight(values - found) * density
        found = float((own * values).sum() / own.sum())

    def pull(r: np.ndarray) -> np.ndarray:
        return weight(r) * r

    r = values - found
    slope = (pull(r + STEP) - pull(r - STEP)) / (2 * STEP)
    return found - truth, float((density * pull(r) ** 2).sum() / (density * slope).sum() ** 2)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--clean", type=float, default=1.3e-4, help="error by squares, no occlusion"
    )
    share = parser.parse_args().clean / NOISE**2
    pictures = rendered(TRUTH, 20, np.random.default_rng(0))[0].ravel()
    unit = NOISE * np.sqrt((pictures**2).mean())
    ends = np.array([pictures.min(), pictures.max()]) / unit
    some = np.random.default_rng(1).choice(pictures, 400) / unit
    rows = []
    for name, weight in LOSSES.items():
        errors = []
        for occluded in (0.0, OCCLUDED):
            bias, variance = np.transpose([estimate(weight, v, ends, occluded) for v in some])
            errors.append(NOISE**2 * float((bias**2).mean() + share * variance.mean()))
        rows.append([name, *(f"{e:.2e}" for e in errors), f"{errors[1] / errors[0]:.2f}"])
    rows.append(["oracle", *(f"{NOISE**2 * share * k:.2e}" for k in (1, 1.25)), "1.25"])
    print_table(["loss", "clean", "20 % occluded", "times"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
