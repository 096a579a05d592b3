"""Where displays draw: axes of their own, or those they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold._text import printable


def pyplot() -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: pip install 'patternfold[plots]'.") from error
    return plt


def single_axes(ax: Any, figsize: tuple[float, float] = (4.8, 3.6)) -> Any:
    """Return ``ax``, or the axes of a new figure."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=figsize, layout="constrained")[1]


def axes_grid(ax: Any, n_rows: int, n_columns: int, size: float = 1.1) -> np.ndarray:
    """Return a grid of axes for small pictures.

    ``ax`` is None for a new figure, axes whose place is divided, or a figure or subfigure.
    """
    pyplot()
    if ax is None:
        figsize = (size * n_columns + 0.6, size * n_rows + 0.5)
        ax = pyplot().figure(figsize=figsize, layout="constrained")
    if hasattr(ax, "get_subplotspec"):
        figure, place = ax.figure, ax.get_subplotspec()
        if place is None:
            raise ValueError("ax was placed by hand; give axes made by subplots, or a figure.")
        ax.set_axis_off()
        grid = place.subgridspec(n_rows, n_columns)
        return np.array(
            [[figure.add_subplot(grid[i, j]) for j in range(n_columns)] for i in range(n_rows)]
        )
    return ax.subplots(n_rows, n_columns, squeeze=False)


def literal(text: str) -> str:
    """Return text that matplotlib draws as it is: no formulas, nothing that fonts can't show."""
    return printable(text).replace("$", r"\$")


def show_image(
    ax: Any, image: np.ndarray, title: str | None = None, cmap: str = "gray", **options: Any
) -> Any:
    """Draw an image without ticks, black at 0 or at the least value."""
    limits = {"vmin": min(0.0, float(image.min()))} | options
    drawn = ax.imshow(image, cmap=cmap, **limits)
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize=9)
    return drawn
