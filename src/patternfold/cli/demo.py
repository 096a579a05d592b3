"""The demonstration: learn a digit, and sort a pile of digits, from randomly transformed images."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from patternfold import PATS, PatternMixture
from patternfold._writing import replacing
from patternfold.cli import demo_pictures as pictures
from patternfold.datasets import load_mnist, place_on_canvas, transform_images
from patternfold.datasets.pictures import unit
from patternfold.show.pages import explorer

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
KINDS, PER_KIND, CANVAS = (2, 4, 5), 16, (32, 32)
"""Digits that are mixed and sorted, how many of each, and the size of their images."""


class Sorted(NamedTuple):
    """A pile of digits, sorted: the images, true digits, which stand upright, and the model."""

    images: np.ndarray
    digits: np.ndarray
    upright: np.ndarray
    model: PatternMixture


def demonstrate(
    folder: Path,
    digit: int = 5,
    n_images: int = 30,
    n_atoms: int = 20,
    seed: int = 0,
    say: Callable[[str], object] = print,
    callback: Callable[[Any], object] | None = None,
    kinds: bool = True,
) -> tuple[dict[str, Any], str]:
    """Learn a digit, sort a pile; write pictures, the model and its explorer to a folder.

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
    if kinds:
        say(f"Sorting {PER_KIND * len(KINDS)} unlabelled digits at any angle into kinds:")
        pile = sort_pile(seed)
        strip = pictures.strip(model, images, pile.model, pile.images, pile.upright)
        files.append(_save(strip, folder / "strip.png"))
        values |= {"groups": table(pile), "files": [str(file) for file in files]}
        text += f"\n{_said(pile)}\nStrip: {files[-1]}"
    return values, text


def digit_images(
    digit: int, count: int, seed: int, family: str = "rotation-translation-scaling"
) -> np.ndarray:
    """Transform MNIST images of a digit at random, over the full circle, all but the first one."""
    pictures, labels = load_mnist()
    rng = np.random.default_rng(seed)
    chosen = rng.choice(np.flatnonzero(labels == digit), count, replace=False)
    images = transform_images(pictures[chosen], rng, family)[0]
    images[0] = unit(place_on_canvas(pictures[chosen[:1]], images.shape[1:]))[0]
    return images


def sort_pile(seed: int) -> Sorted:
    """Mix digits of some kinds at any angle, one of each upright, and sort them without labels."""
    pictures, labels = load_mnist()
    rng = np.random.default_rng(seed)
    of_kind = [rng.choice(np.flatnonzero(labels == k), PER_KIND, replace=False) for k in KINDS]
    chosen = rng.permutation(np.concatenate(of_kind))
    images = transform_images(pictures[chosen], rng, "similarity", canvas=CANVAS)[0]
    upright = np.array([np.flatnonzero(labels[chosen] == kind)[0] for kind in KINDS])
    images[upright] = unit(place_on_canvas(pictures[chosen[upright]], CANVAS))
    model = PatternMixture(len(KINDS), transformation="similarity", random_state=0).fit(images)
    return Sorted(images, labels[chosen], upright, model)


def table(pile: Sorted) -> dict[str, list[int]]:
    """How many images of each digit are in each group."""
    count = len(pile.model.patterns_)
    return {
        str(kind): np.bincount(pile.model.labels_[pile.digits == kind], minlength=count).tolist()
        for kind in KINDS
    }


def _said(pile: Sorted) -> str:
    groups = table(pile)
    right = sum(max(column) for column in zip(*groups.values(), strict=True))
    lines = [f"  digit {kind}: {' '.join(f'{n:3}' for n in row)}" for kind, row in groups.items()]
    head = f"{right} of {len(pile.images)} images are in a group with most of their kind:"
    return "\n".join([head, *lines])


def _write(model: PATS, images: np.ndarray, folder: Path, name: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.{ending}" for ending in ("png", "ptm", "html")]
    _save(pictures.growth(model, images), files[0])
    model.save(files[1])
    explorer(model, images, title=f"The digit {name}").save(files[2])
    return files


def _save(figure: Any, path: Path) -> Path:
    with replacing(path) as file:
        figure.savefig(file, dpi=100, format="png")
    return path
