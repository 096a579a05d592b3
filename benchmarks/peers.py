"""Other classifiers beside ours, on the same digits in the same process.

python benchmarks/peers.py                              200 and 10 images per class, 1 and 3 times
python benchmarks/peers.py --train 10 --repeats 1
python benchmarks/peers.py --seconds 300                nothing is begun after five minutes
python benchmarks/peers.py --only "aligned views" JPATS

Misclassified test images in %, mean over the repetitions, digits turned by up to 45° or any
angle. The time of each method is told as it ends. Methods whose packages are not installed are
named and left out:

    pip install pytranskit six kymatio torch scikit-image

pytranskit is under the GPL: it is run here if you have it, and nothing depends on it. For
DTI-Clustering there is no package to install, so that it is not run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from _network import network
from _peers import (
    nearest_neighbour,
    never_transformed,
    normalised_radon,
    radon_affine,
    radon_subspace,
    scattering,
    tangent_neighbour,
)
from _timing import OtherLoad, machine, print_markdown, print_table, versions

from patternfold import JPATS, AlignedViewsClassifier
from patternfold.datasets import Split, search_box, split_digits

N_ATOMS = 12
ROTATIONS = {"moderate": "up to 45°", "full": "any angle"}

Predict = Callable[[Split, str], np.ndarray]
"""From a split and the name of its protocol to the classes of its test images."""


class Task(NamedTuple):
    """A column of the table."""

    rotation: str
    per_class: int
    repeats: int

    def __str__(self) -> str:
        """The head of the column."""
        return f"{self.per_class}, {ROTATIONS[self.rotation]}"


def aligned_views(split: Split, rotation: str) -> np.ndarray:
    """Ours: every image in the frame of each class, and a support vector machine."""
    model = AlignedViewsClassifier(N_ATOMS, bounds=search_box(rotation), random_state=0)
    return model.fit(split.X, split.y).predict(split.X_test)


def jpats(split: Split, rotation: str) -> np.ndarray:
    """Ours: the nearest of jointly learned manifolds."""
    model = JPATS(N_ATOMS, bounds=search_box(rotation), random_state=0)
    return model.fit(split.X, split.y).predict(split.X_test)


METHODS: dict[str, tuple[tuple[str, ...], Predict]] = {
    "nearest neighbour on pixels": ((), nearest_neighbour),
    "nearest neighbour by tangent distance, affine": ((), tangent_neighbour),
    "normalised Radon-CDT and LDA, our rewrite": ((), normalised_radon),
    "Radon-CDT nearest subspace (pytranskit, RCDT_NS)": (
        ("pytranskit", "skimage"),
        radon_subspace,
    ),
    "Radon-CDT, subspaces enriched by affine maps (pytranskit, INV_ENC)": (
        ("pytranskit", "skimage"),
        radon_affine,
    ),
    "wavelet scattering and a ridge classifier (kymatio)": (("kymatio", "torch"), scattering),
    "patternfold, JPATS": ((), jpats),
    "patternfold, aligned views": ((), aligned_views),
    "support vector machine on the digits before they were transformed": ((), never_transformed),
    "small convolutional network, augmented (torch)": (("torch",), network),
}
"""Packages that each needs, and what it does."""


def measure(predict: Predict, task: Task) -> float:
    """Mean error in %."""
    errors = []
    for seed in range(task.repeats):
        split = split_digits(task.rotation, task.per_class, seed)
        errors.append(100 * np.mean(predict(split, task.rotation) != split.y_test))
    return float(np.mean(errors))


def cell(name: str, task: Task, ends: float) -> str:
    """The error, which is also told at once with the time, or why there is none."""
    packages, predict = METHODS[name]
    if not all(map(find_spec, packages)):
        return "not installed"
    started = time.perf_counter()
    if started > ends:
        return "not begun"
    error = f"{measure(predict, task):.1f}"
    seconds = (time.perf_counter() - started) / task.repeats
    print(f"  {name}: {task}: {error} %, {seconds:.0f} s each", flush=True)
    return error


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, nargs="+", default=[200, 10], help="per class")
    parser.add_argument("--repeats", type=int, nargs="+", default=[1, 3], help="of each of these")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin nothing after these")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the methods' names")
    parser.add_argument("--markdown", action="store_true", help="print the table for the docs")
    options = parser.parse_args()
    if len(options.repeats) != len(options.train):
        parser.error("--repeats takes as many numbers as --train")
    return options


def main() -> None:
    """Run every method that is installed, as long as there is time."""
    options = arguments()
    sizes = list(zip(options.train, options.repeats, strict=True))
    tasks = [Task(rotation, n, repeats) for n, repeats in sizes for rotation in ROTATIONS]
    names = [name for name in METHODS if any(part in name for part in options.only)]
    print(machine())
    ends = time.perf_counter() + options.seconds
    with OtherLoad() as load:
        rows = [[name, *(cell(name, task, ends) for task in tasks)] for name in names]
    repeats = ", ".join(f"{n} per class: {times}" for n, times in sizes)
    print(f"\nMisclassified in %, 200 test images per class; repetitions: {repeats}\n")
    table = print_markdown if options.markdown else print_table
    table(["method", *map(str, tasks)], rows)
    packages = ("patternfold", "jax", "pytranskit", "kymatio", "torch", "scikit-learn", "scipy")
    print(f"\n{versions(*packages)}\n{load}")


if __name__ == "__main__":
    main()
