"""The demonstration: learn a digit from randomly transformed images."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from patternfold import PATS
from patternfold._writing import replacing
from patternfold.datasets import load_mnist, place_on_canvas, transform_images
from patternfold.datasets.pictures import unit
from patternfold.show.pages import explorer
from patternfold.show.plotting import AlignmentDisplay, ErrorPathDisplay, PatternDisplay
from patternfold.show.plotting.canvas import show_image

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def demonstrate(
    folder: Path,
    digit: int = 5,
    n_images: int = 30,
    n_atoms: int = 20,
    seed: int = 0,
    say: Callable[[str], object] = print,
    callback: Callable[[Any], object] | None = None,
) -> tuple[dict[str, Any], str]:
    """Learn a digit; write a picture, the model and its explorer to a folder.

    Returns
    -------
    values : dict
        What was measured and written.
    text : str
        The same for people.
    """
    images = digit_images(digit, n_images, seed)
    say(f"{n_images} images of the digit {digit}, turned by any angle, shifted and stretched at")
    say("random; the first one stands upright, and the pattern will stand as it does. Learning one")
    say("pattern for all of them (code is compiled on first use):")
    started = time.perf_counter()
    model = PATS(n_atoms, reference=0, random_state=0, callback=callback).fit(images)
    seconds = time.perf_counter() - started
    files = _write(model, images, folder, NAMES[digit])
    values = {
        "atoms": model.pattern_.n_atoms,
        "error_path": [float(e) for e in model.error_path_],
        "seconds": round(seconds, 2),
        "files": [str(file) for file in files],
    }
    text = (
        f"error after each atom: {' '.join(f'{e:.3f}' for e in model.error_path_)}\n"
        f"{model.pattern_.n_atoms} atoms in {seconds:.1f} s, compilation included.\n"
        f"Picture: {files[0]}\nModel: {files[1]}\nExplorer: {files[2]} (open it in a browser)"
    )
    return values, text


def digit_images(digit: int, count: int, seed: int) -> np.ndarray:
    """Transform MNIST images of a digit at random, over the full circle, all but the first one."""
    pictures, labels = load_mnist()
    rng = np.random.default_rng(seed)
    chosen = rng.choice(np.flatnonzero(labels == digit), count, replace=False)
    images = transform_images(pictures[chosen], rng)[0]
    images[0] = unit(place_on_canvas(pictures[chosen[:1]], images.shape[1:]))[0]
    return images


def _write(model: PATS, images: np.ndarray, folder: Path, name: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.{ending}" for ending in ("png", "ptm", "html")]
    with replacing(files[0]) as file:
        draw(model, images).savefig(file, dpi=100, format="png")
    model.save(files[1])
    explorer(model, images, title=f"The digit {name}").save(files[2])
    return files


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
