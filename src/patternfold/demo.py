"""Learn a digit from randomly transformed images: ``python -m patternfold.demo``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from patternfold import PATS
from patternfold.datasets import load_mnist, transform_images
from patternfold.learning.state import Progress
from patternfold.plotting import AlignmentDisplay, ErrorPathDisplay, PatternDisplay
from patternfold.plotting.canvas import show_image

DEFAULT_OUTPUT = Path("demo-output") / "five.png"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration: learn, print the error path, write a picture."""
    parser = argparse.ArgumentParser(prog="patternfold.demo", description=__doc__)
    parser.add_argument("--digit", type=int, default=5, choices=range(10), help="default: 5")
    parser.add_argument("--images", type=int, default=30, help="how many (default: 30)")
    parser.add_argument("--atoms", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="picture to write")
    options = parser.parse_args(arguments)

    images = digit_images(options.digit, options.images, options.seed)
    print(f"{len(images)} images of the digit {options.digit}, turned by any angle, shifted and")
    print("stretched at random. Learning one pattern for all of them:")
    started = time.perf_counter()
    model = PATS(options.atoms, random_state=0, callback=_tell).fit(images)
    seconds = time.perf_counter() - started
    print("error after each atom:", " ".join(f"{e:.3f}" for e in model.error_path_))
    print(f"{model.pattern_.n_atoms} atoms in {seconds:.1f} s, compilation included.")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    draw(model, images).savefig(options.output, dpi=100)
    print(f"Picture: {options.output}")
    return 0


def digit_images(digit: int, count: int, seed: int) -> np.ndarray:
    """Transform ``count`` MNIST images of a digit at random, over the full circle."""
    pictures, labels = load_mnist()
    rng = np.random.default_rng(seed)
    chosen = rng.choice(np.flatnonzero(labels == digit), count, replace=False)
    return transform_images(pictures[chosen], rng)[0]


def _tell(progress: Progress) -> None:
    print(f"  {progress}", file=sys.stderr)


def draw(model: PATS, images: np.ndarray) -> Any:
    """Show the images, the same aligned, the pattern growing, and the error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.6, 5.8), layout="constrained", facecolor="white")
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.75, 1])
    top = parts[0].subfigures(1, 2, width_ratios=[2, 1])
    aligned = model.align(images)
    AlignmentDisplay(images, aligned).plot_mosaics(top[0])
    _compare(top[1], model, images, aligned)
    bottom = parts[1].subfigures(1, 2, width_ratios=[2.1, 1])
    PatternDisplay(model.pattern_, model.image_shape_).plot_growth(bottom[0])
    bottom[0].suptitle("the pattern's first atoms", fontsize=11)
    ErrorPathDisplay(model.error_path_).plot(bottom[1].subplots())
    return figure


def _compare(figure: Any, model: PATS, images: np.ndarray, aligned: np.ndarray) -> None:
    figure.suptitle("mean image", fontsize=11)
    grid = figure.subplot_mosaic([["before", "aligned"], ["learned pattern", "learned pattern"]])
    show_image(grid["before"], images.mean(axis=0), "before")
    show_image(grid["aligned"], aligned.mean(axis=0), "aligned")
    display = PatternDisplay(model.pattern_, model.image_shape_)
    display.plot(grid["learned pattern"], title="learned pattern")


if __name__ == "__main__":
    sys.exit(main())
