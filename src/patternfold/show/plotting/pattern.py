"""The pattern: its picture, the outlines of its atoms, its growth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from patternfold.model.grid import Grid
from patternfold.model.pattern import Pattern
from patternfold.show.plotting.canvas import axes_grid, show_image, single_axes

GROWTH = (1, 2, 3, 5, 8, 12, 20, 32, 50, 80)

OFF_CENTRE = 0.2
"""Half sides by which a pattern may be off the middle before it is shown moved there."""


def fine_shape(shape: tuple[int, int], longest: int = 192) -> tuple[int, int]:
    """Return (H, W) of the same aspect whose longer side has ``longest`` pixels."""
    height, width = shape
    scale = longest / max(shape)
    return max(1, round(height * scale)), max(1, round(width * scale))


def centre_of(pattern: Pattern, shape: tuple[int, int]) -> np.ndarray:
    """Mean of (x, y) over a picture of the pattern, by (p − median)², or the origin if near."""
    grid = Grid(*shape)
    values = np.asarray(pattern.render(shape)).ravel()
    mass = (values - np.median(values)) ** 2
    if not mass.sum() > 0:
        return np.zeros(2)
    centre = np.array([mass @ grid.x, mass @ grid.y]) / mass.sum()
    return centre if np.abs(centre).max() > OFF_CENTRE else np.zeros(2)


class PatternDisplay:
    """Picture of a pattern p = Σ_j c_j φ_γj, finer than the images it was learned from.

    Parameters
    ----------
    pattern : Pattern
        The pattern p.
    image_shape : (H, W), default=(64, 64)
        Shape of the images, for the aspect of the picture.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the pattern was drawn last; ``axes_`` for its growth.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from patternfold import Pattern
    >>> from patternfold.show.plotting import PatternDisplay
    >>> bump = Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.25]])
    >>> display = PatternDisplay(bump).plot(atoms=True)
    >>> len(display.ax_.patches)
    1
    """

    ax_: Any
    axes_: np.ndarray
    figure_: Any

    def __init__(self, pattern: Pattern, image_shape: tuple[int, int] = (64, 64)):
        self.pattern = pattern
        self.image_shape = image_shape

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> PatternDisplay:
        """Draw the pattern of a fitted `PATS`; options go to `plot`."""
        check_is_fitted(estimator)
        return cls(estimator.pattern_, estimator.image_shape_).plot(ax=ax, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        atoms: bool = False,
        title: str | None = None,
        cmap: str = "gray",
        resolution: int = 192,
        centred: bool = False,
    ) -> PatternDisplay:
        """Draw the pattern, with ``atoms`` also their outlines at distance σ.

        Atoms that add are orange, atoms that subtract blue; strong lines are large coefficients.
        With ``centred`` the window is moved to where the pattern is, should that be off its middle.
        """
        ax = single_axes(ax, (3.6, 3.6))
        grid = Grid(*fine_shape(self.image_shape, resolution))
        left, right, top, bottom = grid.window
        x, y = centre_of(self.pattern, grid.shape) if centred else (0.0, 0.0)
        image = self.pattern(grid.x + x, grid.y + y).reshape(grid.shape)
        show_image(ax, image, title, cmap, extent=(left + x, right + x, bottom + y, top + y))
        if atoms:
            self._outline(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def plot_growth(
        self,
        ax: Any = None,
        *,
        counts: Sequence[int] | None = None,
        cmap: str = "gray",
        resolution: int = 96,
    ) -> PatternDisplay:
        """Draw the pattern of its first atoms, for several ``counts`` of them."""
        n = self.pattern.n_atoms
        chosen = [k for k in GROWTH if k < n] + [n] if counts is None else list(counts)
        axes = axes_grid(ax, 1, len(chosen))
        shape = fine_shape(self.image_shape, resolution)
        low = min(0.0, float(self.pattern.render(shape).min()))
        for place, k in zip(axes[0], chosen, strict=True):
            image = self.pattern.take(slice(k)).render(shape)
            show_image(place, image, f"{k}", cmap, vmin=low)
        self.axes_, self.figure_ = axes, axes[0, 0].figure
        return self

    def _outline(self, ax: Any) -> None:
        from matplotlib.patches import Ellipse

        dictionary = self.pattern.dictionary
        ellipses = dictionary.ellipses(self.pattern.gamma)
        if ellipses is None:
            raise TypeError(f"Atoms of {type(dictionary).__name__} have no known outlines.")
        strongest = np.abs(self.pattern.coef).max(initial=0) or 1.0
        for coef, (x, y, a, b, angle) in zip(self.pattern.coef, ellipses, strict=True):
            outline = Ellipse(
                (x, y),
                2 * a,
                2 * b,
                angle=np.degrees(angle),
                fill=False,
                edgecolor="tab:orange" if coef > 0 else "tab:blue",
                alpha=0.25 + 0.75 * abs(coef) / strongest,
                linewidth=1.2,
            )
            ax.add_patch(outline)
