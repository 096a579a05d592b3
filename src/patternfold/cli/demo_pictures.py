"""The pictures of the demonstration."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold import PATS, PatternMixture, align, project, warp
from patternfold.model import manifold
from patternfold.show.plotting import AlignmentDisplay, ErrorPathDisplay, PatternDisplay
from patternfold.show.plotting.alignment import mosaic
from patternfold.show.plotting.canvas import show_image

COLUMNS, LINES, FINE = 10, 3, 96
"""Images in a row of the strip, its rows, and the size at which patterns are drawn."""


def strip(
    model: PATS, images: np.ndarray, kinds: PatternMixture, pile: np.ndarray, upright: np.ndarray
) -> Any:
    """Images of one kind as given, aligned, and their pattern; below, a pile sorted into kinds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.1), layout="constrained", facecolor="white")
    widths = [COLUMNS, COLUMNS, LINES + 0.4]
    axes: Any = figure.subplots(2, 3, gridspec_kw={"width_ratios": widths})
    groups = [in_one_frame(kinds, pile, k, upright) for k in range(len(kinds.patterns_))]
    aligned = [_filled(some[:COLUMNS]) for some, _ in groups]
    patterns = np.stack([_bright(pattern) for _, pattern in groups])
    rows = (
        (images, model.align(images)[: COLUMNS * LINES], model.pattern_.render((FINE, FINE))),
        (pile, np.concatenate(aligned), mosaic(patterns, columns=1)),
    )
    titles = (
        (f"{len(images)} handwritten fives, as they came", "aligned", "their pattern"),
        (f"{len(pile)} digits, unsorted", "sorted into kinds, and aligned", "patterns"),
    )
    for line, (given, found, pattern), names in zip(axes, rows, titles, strict=True):
        shown = (mosaic(_bright(given[: COLUMNS * LINES]), columns=COLUMNS), pattern)
        pictures = (shown[0], mosaic(_bright(found), columns=COLUMNS), shown[1])
        for ax, picture, name in zip(line, pictures, names, strict=True):
            show_image(ax, picture, name, vmin=0.0)
    return figure


def in_one_frame(
    kinds: PatternMixture, pile: np.ndarray, group: int, upright: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Images of a group and its pattern, as the one of them stands that came upright."""
    family, pattern = kinds.transformation_, kinds.patterns_[group]
    own = np.flatnonzero(kinds.labels_ == group)
    first = np.flatnonzero(np.isin(own, upright)).tolist() or [0]
    lam = project(pattern, pile[own], family, gain=True).parameters
    as_first = np.repeat(lam[first[:1]], len(own), axis=0)
    images = warp(align(pile[own], lam, family), as_first, family)
    return images, manifold.render(pattern, lam[first[:1]], family, (FINE, FINE))[0].reshape(
        FINE, FINE
    )


def growth(model: PATS, images: np.ndarray) -> Any:
    """The images, the same aligned, the pattern growing, and the error."""
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


def _bright(images: np.ndarray) -> np.ndarray:
    """Each image scaled to the same greatest value."""
    most = images.max(axis=(-2, -1), keepdims=True)
    return images / np.where(most > 0, most, 1)


def _filled(images: np.ndarray) -> np.ndarray:
    """Up to a whole row of images, blank ones at its end."""
    missing = COLUMNS - len(images)
    return np.concatenate([images, np.zeros((missing, *images.shape[1:]), images.dtype)])
