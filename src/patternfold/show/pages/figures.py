"""Figures for pages: drawn by the displays, see-through, readable on light and dark."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from patternfold.learning.fitted import FittedManifolds
from patternfold.model.symmetry import Symmetry
from patternfold.show.plotting import (
    AlignmentDisplay,
    ContactSheetDisplay,
    ErrorPathDisplay,
    ManifoldDisplay,
    PatternDisplay,
    contact_sheet,
)
from patternfold.show.plotting.canvas import literal, pyplot

INK = "#7c8598"  # stands out from white and from near-black alike
_STYLE = {
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "font.size": 9,
    "axes.prop_cycle": "cycler('color', ['#f0811e', '#2680eb', '#18a558', '#a45ee5'])",
}


def draw(size: tuple[float, float], fill: Callable[[Any], object]) -> str:
    """Let ``fill`` draw on a new figure, and return it as an address for an ``img``."""
    plt = pyplot()
    from matplotlib.figure import Figure

    with plt.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # names that the font can't show become boxes
        figure = Figure(figsize=size, layout="constrained")
        fill(figure)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=130, transparent=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def pattern_figure(view: FittedManifolds, which: int) -> str:
    """The pattern without and with the outlines of its atoms."""
    display = PatternDisplay(view.patterns[which], view.image_shape)

    def fill(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        display.plot(left, centred=True)
        display.plot(right, atoms=_has_outlines(display.pattern), centred=True)

    return draw((6.4, 3.2), fill)


def _has_outlines(pattern: Any) -> bool:
    return pattern.dictionary.ellipses(pattern.gamma) is not None


def growth_figure(view: FittedManifolds, which: int) -> str:
    """The pattern of its first atoms."""
    display = PatternDisplay(view.patterns[which], view.image_shape)
    return draw((9, 1.5), display.plot_growth)


def error_figure(view: FittedManifolds) -> str:
    """The error after each atom, one curve per pattern."""

    def fill(figure: Any) -> None:
        ax = figure.subplots()
        for path, label in zip(view.error_paths, view.labels, strict=True):
            ErrorPathDisplay(path).plot(ax, label=literal(label) or None)

    return draw((6.4, 2.8), fill)


def manifold_figure(view: FittedManifolds, which: int) -> str:
    """Sweeps along each transformation parameter."""
    dim = view.transformation.parameters.dim
    pattern = view.patterns[which]

    def fill(figure: Any) -> None:
        ManifoldDisplay.from_pattern(pattern, view.transformation, (56, 56), ax=figure, n_steps=9)

    return draw((9, 1.05 * dim + 0.2), fill)


def parameters_figure(view: FittedManifolds, parameters: np.ndarray) -> str:
    """Histograms of the images' parameters over their intervals."""
    box = view.transformation.parameters

    def fill(figure: Any) -> None:
        axes = figure.subplots(1, box.dim, squeeze=False)[0]
        limits = zip(axes, box.names, box.lower, box.upper, parameters.T, strict=True)
        for ax, name, low, high, values in limits:
            ax.hist(values, bins=np.linspace(low, high, 21))
            ax.set(title=name, yticks=[])
            ax.spines[["top", "right", "left"]].set_visible(False)

    return draw((9, 1.7), fill)


def symmetry_figure(symmetry: Symmetry) -> str:
    """Correlation of the pattern with itself turned, and mirrored, against the angle."""
    degrees = np.rad2deg(symmetry.angles)

    def fill(figure: Any) -> None:
        turned, mirrored = figure.subplots(1, 2, sharey=True)
        turned.plot(degrees, symmetry.turned)
        for k in range(1, symmetry.order):
            turned.axvline(360 * k / symmetry.order, color=INK, lw=0.8, ls=":")
        mirrored.plot(degrees / 2, symmetry.mirrored)
        for k in range(symmetry.order if symmetry.mirror else 0):
            axis = np.rad2deg(symmetry.axis) + 180 * k / symmetry.order
            mirrored.axvline(axis % 180, color=INK, lw=0.8, ls=":")
        turned.set(xlabel="turned by, °", ylabel="correlation", xticks=range(0, 361, 60))
        mirrored.set(xlabel="mirrored at an axis of, °", xticks=range(0, 181, 30))
        for ax in (turned, mirrored):
            ax.axhline(1, color=INK, lw=0.8)
            ax.spines[["top", "right"]].set_visible(False)

    return draw((9, 2.4), fill)


def sheet_figure(images: Any, mask: Any, names: list[str]) -> str:
    """Prepared pictures in rows, with what does not count hatched."""
    height, width, _ = contact_sheet(images, mask).shape

    def fill(figure: Any) -> None:
        ContactSheetDisplay(images, mask, names).plot(figure.add_subplot())

    return draw((9, 9 * height / width + 0.2), fill)


def alignment_figure(images: np.ndarray, aligned: np.ndarray) -> str:
    """Images as given and aligned, with mean and spread."""
    display = AlignmentDisplay(images, aligned)
    return draw((9, 2.6), display.plot)
