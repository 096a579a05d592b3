"""Coverage: how often λ ± 1.96 std, as a projection states it, holds the true λ.

Images of random patterns with white noise, at 3, 10 and 20 dB below the energy of each image. The
share of images whose interval holds the truth must lie between 93 and 97 % for every parameter.
Poses that are not unique are left out, and their number told.

    python benchmarks/coverage.py                  1,000 images of each kind
    python benchmarks/coverage.py --images 4000
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from _timing import machine, print_table, verdict

from patternfold import Pattern, datasets, project
from patternfold.transformations import as_transformation

SHAPE = (28, 28)
DECIBELS = (3, 10, 20)
LEAST, MOST = 0.93, 0.97

CASES = {
    "rotation-translation-scaling": ("rotation-translation-scaling", False),
    "affine": ("affine", False),
    "similarity, gain and offset": ("similarity", True),
}
"""The family, and whether images have a gain and an offset of their own."""


def noisy_images(
    family: str, lit: bool, decibels: float, n: int, seed: int
) -> tuple[Pattern, np.ndarray, np.ndarray]:
    """Return a pattern, images of it with noise, and their λ."""
    pattern = datasets.random_pattern(8, np.random.default_rng(seed))
    rng = np.random.default_rng([seed, int(decibels)])
    clean, truth = datasets.random_images(pattern, n, rng, family, shape=SHAPE)
    variance = (clean**2).mean(axis=(1, 2), keepdims=True) / 10 ** (decibels / 10)
    images = clean + np.sqrt(variance) * rng.normal(size=clean.shape)
    if lit:
        images = rng.uniform(0.5, 2, (n, 1, 1)) * images + rng.normal(size=(n, 1, 1))
    return pattern, images.astype(np.float32), truth


def coverage(family: str, lit: bool, decibels: float, n: int, seed: int) -> tuple[np.ndarray, int]:
    """Share of intervals that hold the truth, and the number of ambiguous images."""
    pattern, images, truth = noisy_images(family, lit, decibels, n, seed)
    found = project(pattern, images, family, gain=lit, offset=lit, uncertainty=True)
    box = as_transformation(family).parameters
    gap = found.parameters - truth
    gap = np.where(box.periodic, (gap + box.width / 2) % box.width - box.width / 2, gap)
    unique = found.n_modes == 1
    holds = np.abs(gap) <= 1.96 * found.std
    return holds[unique].mean(axis=0), int((~unique).sum())


def main() -> int:
    """Print the table; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first pattern")
    options = parser.parse_args()
    print(f"{machine()}\n\nIntervals that hold the truth, in %, {options.images} images each\n")
    rows, passed = [], True
    for k, (name, (family, lit)) in enumerate(CASES.items()):
        for decibels in DECIBELS:
            held, left = coverage(family, lit, decibels, options.images, options.seed + k)
            good = bool(((held >= LEAST) & (held <= MOST)).all())
            passed &= good
            names = as_transformation(family).parameters.names
            shares = "  ".join(f"{n} {100 * h:.1f}" for n, h in zip(names, held, strict=True))
            rows.append([name, f"{decibels} dB", shares, str(left), verdict(good)])
    print_table(["family", "noise", "held, %", "ambiguous", "93 to 97"], rows)
    print(f"\n{verdict(passed)}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
