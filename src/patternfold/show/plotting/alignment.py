"""Images before and after alignment, with their mean and spread."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from patternfold._validation import as_images
from patternfold.show.plotting.canvas import axes_grid, show_image


class AlignmentDisplay:
    """A few images as given and aligned, and over all of them the mean and standard deviation.

    The sharper the mean and the darker the spread, the better the alignment.

    Parameters
    ----------
    images, aligned : arrays of shape (N, H, W)
        The images as given, and in the pattern's frame.

    Attributes
    ----------
    axes_ : array of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold.show.plotting import AlignmentDisplay
    >>> images = np.random.default_rng(0).random((5, 8, 8))
    >>> AlignmentDisplay(images, images).plot(n_images=3).axes_.shape
    (2, 5)
    """

    axes_: np.ndarray
    figure_: Any

    def __init__(self, images: Any, aligned: Any):
        self.images, self.aligned = np.asarray(images), np.asarray(aligned)
        if self.images.shape != self.aligned.shape or self.images.ndim != 3:
            raise ValueError(
                f"images and aligned have shapes {self.images.shape} and {self.aligned.shape}; "
                "both must be (N, H, W)."
            )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Any = None, **options: Any
    ) -> AlignmentDisplay:
        """Align images with a fitted estimator and draw them; options go to `plot`."""
        rows, shape = as_images(X, estimator.image_shape_)
        display = cls(rows.reshape(-1, *shape), estimator.align(X))
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, *, n_images: int = 6, cmap: str = "gray") -> AlignmentDisplay:
        """Draw two rows, before and after: the first images, the mean and the spread."""
        n_images = min(n_images, len(self.images))
        axes = axes_grid(ax, 2, n_images + 2)
        spread = self.images.std(axis=0).max()
        rows = (("as given", self.images), ("aligned", self.aligned))
        for line, (name, images) in zip(axes, rows, strict=True):
            for place, image in zip(line, images[:n_images], strict=False):
                show_image(place, image, cmap=cmap)
            show_image(line[-2], images.mean(axis=0), "mean", cmap)
            show_image(line[-1], images.std(axis=0), "spread", cmap, vmin=0, vmax=spread)
            line[0].set_ylabel(name, fontsize=9)
        self.axes_, self.figure_ = axes, axes[0, 0].figure
        return self

    def plot_mosaics(
        self, ax: Any = None, *, n_images: int = 30, cmap: str = "gray"
    ) -> AlignmentDisplay:
        """Draw two mosaics side by side: the first images as given, and the same aligned."""
        figure = axes_grid(ax, 1, 2, size=3.2)
        shown = self.images[:n_images]
        titles = (f"{len(self.images)} images as given", "the same, aligned to the pattern")
        for place, images, title in zip(figure[0], (shown, self.aligned), titles, strict=True):
            low, high = min(0.0, float(shown.min())), float(shown.max())
            show_image(place, mosaic(images[:n_images]), title, cmap, vmin=low, vmax=high)
        self.axes_, self.figure_ = figure, figure[0, 0].figure
        return self


def mosaic(images: np.ndarray, gap: int = 2, columns: int | None = None) -> np.ndarray:
    """Lay images of shape (N, H, W) out in a nearly square picture, NaN between them."""
    n, height, width = images.shape
    columns = columns or math.ceil(math.sqrt(n * height / width * 1.2))
    lines = math.ceil(n / columns)
    picture = np.full((lines * (height + gap) - gap, columns * (width + gap) - gap), np.nan)
    for i, image in enumerate(images):
        top, left = i // columns * (height + gap), i % columns * (width + gap)
        picture[top : top + height, left : left + width] = image
    return picture
