"""A sheet of prepared pictures: what is learned from, and which pixels count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from patternfold.show.plotting.canvas import literal, single_axes

TINT = (178, 58, 48)
"""Colour of stripes over pixels that do not count."""

_STRIPE = 7  # pixels of the sheet from one stripe to the next
_CELL = 112  # pixels of the sheet along a picture's longer side
_GAP = 4
_SHADE = 235  # grey between pictures


class ContactSheetDisplay:
    """Prepared pictures in rows; pixels that do not count are hatched.

    Parameters
    ----------
    images : array of shape (N, H, W)
    mask : bool array of shape (N, H, W), optional
        True where pixels count.
    names : sequence of str, optional
        Written below the pictures.
    columns : int, default=8
        Pictures in a row.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from patternfold.show.plotting import ContactSheetDisplay
    >>> images = np.random.default_rng(0).random((5, 8, 8))
    >>> display = ContactSheetDisplay(images, images > 0.1, names=list("abcde")).plot()
    >>> len(display.ax_.texts)
    5
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, images: Any, mask: Any = None, names: Sequence[str] | None = None, columns: int = 8
    ):
        self.images = np.asarray(images)
        self.mask = None if mask is None else np.asarray(mask, bool)
        self.names, self.columns = names, columns
        if self.mask is not None and self.mask.shape != self.images.shape:
            raise ValueError(
                f"mask has shape {self.mask.shape}, but the images {self.images.shape}."
            )

    def plot(self, ax: Any = None) -> ContactSheetDisplay:
        """Draw the sheet on axes, by default on new ones as large as needed."""
        sheet = contact_sheet(self.images, self.mask, self.columns)
        if ax is None:
            ax = single_axes(None, (sheet.shape[1] / 100, sheet.shape[0] / 100))
        ax.imshow(sheet, interpolation="none")
        ax.set_axis_off()
        cells = _cells(self.images.shape, self.columns)
        for (top, left), name in zip(cells, self.names or (), strict=False):
            height, width = _cell_shape(self.images.shape)
            place = (left + width / 2, top + height + 1)
            ax.text(*place, _short(literal(name)), fontsize=5.5, ha="center", va="top")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def contact_sheet(images: np.ndarray, mask: np.ndarray | None = None, columns: int = 8) -> Any:
    """Return the sheet as a picture in colour, shape (H, W, 3), 8 bits, with room for names."""
    height, width = _cell_shape(images.shape)
    columns = min(columns, max(1, len(images)))
    lines = math.ceil(len(images) / columns)
    size = (lines * (height + _line_gap()) + _GAP, columns * (width + _GAP) + _GAP, 3)
    sheet = np.full(size, _SHADE, np.uint8)
    for i, (top, left) in enumerate(_cells(images.shape, columns)):
        counts = np.ones(images[i].shape, bool) if mask is None else mask[i]
        sheet[top : top + height, left : left + width] = _cell(images[i], counts, (height, width))
    return sheet


def _line_gap() -> int:
    return _GAP + 12


def _cell_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    scale = _CELL / max(shape[1:])
    return max(1, round(shape[1] * scale)), max(1, round(shape[2] * scale))


def _cells(shape: tuple[int, ...], columns: int) -> list[tuple[int, int]]:
    """Return the upper left corner of each picture."""
    height, width = _cell_shape(shape)
    columns = min(columns, max(1, shape[0]))
    return [
        (_GAP + i // columns * (height + _line_gap()), _GAP + i % columns * (width + _GAP))
        for i in range(shape[0])
    ]


def _cell(image: np.ndarray, counts: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    rows, columns = (
        np.minimum((np.arange(n) + 0.5) * old / n, old - 1).astype(int)
        for n, old in zip(shape, image.shape, strict=True)
    )
    shown = image[counts]
    low, high = (min(0.0, float(shown.min())), float(shown.max())) if shown.size else (0.0, 1.0)
    unit = (image - low) / (high - low if high > low else 1.0)
    grey = np.round(255 * np.clip(unit, 0, 1)).astype(np.uint8)[np.ix_(rows, columns)]
    cell = np.repeat(grey[..., None], 3, axis=2)
    hidden = ~counts[np.ix_(rows, columns)]
    y, x = np.indices(shape)
    cell[hidden] = 225
    cell[hidden & ((x + y) % _STRIPE < 2)] = TINT
    return cell


def _short(name: str, most: int = 22) -> str:
    """Return the end of a long name."""
    return name if len(name) <= most else f"…{name[1 - most :]}"
