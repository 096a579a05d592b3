"""Symmetry: the order of patterns learned from noisy images, and their poses up to it.

Patterns of order 1 to 6, with and without mirror axes, are learned from images at 10 dB. The order
and the mirror must be named rightly for 99 % of the patterns, and the errors of poses, up to the
symmetry and to the frame of the pattern learned, be as small as for order 1.

    python benchmarks/symmetry.py                  10 patterns of each kind
    python benchmarks/symmetry.py --patterns 2
    python benchmarks/symmetry.py --orders 4 5 6 --mirror yes --jobs 6 --keep symmetry.json

Folded errors are judged where order 1 without mirror is among what was run.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import NamedTuple

import numpy as np
from _jobs import add_jobs, measured
from _timing import machine, print_table, verdict

from patternfold import PATS, Pattern, datasets, project
from patternfold.symmetry import fold, symmetry_of

SHAPE, FAMILY, N_IMAGES = (24, 24), "rotation-translation", 40
BOUNDS = {"tx": (-0.15, 0.15), "ty": (-0.15, 0.15)}
NOISE = 10 ** (-10 / 10)
LEAST_RIGHT, WORSE = 0.99, 1.3
"""Share of patterns named rightly; median error over that of order 1, in units of what the noise
allows."""

DISTINCT = 0.03
"""A pattern of an order must not nearly have a higher one: least asymmetry of larger groups."""


class Outcome(NamedTuple):
    """What became of one pattern."""

    right: bool
    modes: float
    error: float
    confidence: float


def draw_pattern(order: int, mirror: bool, rng: np.random.Generator) -> Pattern:
    """Draw a pattern with this symmetry and no larger one."""
    while True:
        pattern = _with_symmetry(order, mirror, rng)
        found = symmetry_of(pattern, DISTINCT)
        if (found.order, found.mirror) == (order, mirror):
            return pattern


def _with_symmetry(order: int, mirror: bool, rng: np.random.Generator) -> Pattern:
    copies = order * (1 + mirror)
    n = max(1 + (copies < 4), min(3, 12 // copies))
    radius, place = rng.uniform(0.15, 0.55, n), rng.uniform(-np.pi, np.pi, n)
    psi, sigma = rng.uniform(-np.pi, np.pi, n), rng.uniform(0.08, 0.2, (n, 2))
    coef = rng.uniform(0.5, 1.5, n) * rng.choice([1, 1, -1], n)
    rows = []
    for sign in (1, -1) if mirror else (1,):
        for turn in 2 * np.pi * np.arange(order) / order:
            angle = sign * place + turn
            centres = (radius * np.cos(angle), radius * np.sin(angle))
            rows.append(np.column_stack([sign * psi + turn, *centres, sigma]))
    return Pattern(np.tile(coef, len(rows)), np.concatenate(rows))


def noisy(pattern: Pattern, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Images at 10 dB, and their λ."""
    clean, truth = datasets.random_images(pattern, N_IMAGES, rng, FAMILY, BOUNDS, SHAPE)
    scale = np.sqrt(NOISE * (clean**2).mean(axis=(1, 2), keepdims=True))
    return (clean + scale * rng.normal(size=clean.shape)).astype(np.float32), truth


def outcome(order: int, mirror: bool, seed: int) -> Outcome:
    """Learn from images of a pattern, name its symmetry, and find poses."""
    rng = np.random.default_rng([order, mirror, seed])
    pattern = draw_pattern(order, mirror, rng)
    images, truth = noisy(pattern, rng)
    model = PATS(12, transformation=FAMILY, random_state=0).fit(images)
    found = model.symmetry_
    right = (found.order, found.mirror) == (order, mirror)
    # Poses of the true pattern: those of the learned one are in a frame of its own.
    poses = project(pattern, images, FAMILY, uncertainty=True)
    folded = fold(poses.parameters, symmetry_of(pattern, DISTINCT), FAMILY, toward=truth)
    gap = (folded - truth + np.pi) % (2 * np.pi) - np.pi
    modes = float((poses.n_modes == order).mean())
    error = float(np.median(np.abs(gap / poses.std)))
    return Outcome(right, modes, error, float(found.confidence))


def main() -> int:
    """Print the table; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--patterns", type=int, default=10, help="of each order, with and without")
    parser.add_argument("--orders", type=int, nargs="+", default=list(range(1, 7)))
    parser.add_argument("--mirror", choices=("no", "yes"), nargs="+", default=["no", "yes"])
    add_jobs(parser)
    options = parser.parse_args()
    print(f"{machine()}\n\n{N_IMAGES} images of {SHAPE[0]}x{SHAPE[1]} pixels at 10 dB each\n")
    kinds = [(order, word == "yes") for word, order in product(options.mirror, options.orders)]
    tasks = [(*kind, seed) for kind in kinds for seed in range(options.patterns)]
    # Kept results come back as lists.
    outcomes = {task: Outcome(*own) for task, own in measured(outcome, tasks, options).items()}
    table = {k: [outcomes[*k, seed] for seed in range(options.patterns)] for k in kinds}
    print_outcomes(table)
    right = float(np.mean([o.right for o in outcomes.values()]))
    named, small = right >= LEAST_RIGHT, True
    print(f"\n{verdict(named)}  named rightly: {100 * right:.1f} % (>= {100 * LEAST_RIGHT:.0f} %)")
    if (1, False) in table:
        errors = {k: float(np.mean([o.error for o in some])) for k, some in table.items()}
        worst = max(errors.values()) / errors[1, False]
        small = worst <= WORSE
        print(f"{verdict(small)}  folded errors: {worst:.2f} of those of order 1 (<= {WORSE})")
    return 0 if named and small else 1


def print_outcomes(table: dict[tuple[int, bool], list[Outcome]]) -> None:
    """Print means by order and mirror."""
    rows = []
    for (order, mirror), some in table.items():
        right, modes, error, confidence = np.mean(some, axis=0)
        words = [f"{100 * right:.1f}", f"{100 * modes:.1f}", f"{error:.2f}", f"{confidence:.3f}"]
        rows.append([str(order), "yes" if mirror else "no", *words])
    print_table(
        ["order", "mirror", "named rightly, %", "n_modes right, %", "|error|/std", "conf."], rows
    )


if __name__ == "__main__":
    sys.exit(main())
