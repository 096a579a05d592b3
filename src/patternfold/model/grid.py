"""The sampling window and its pixel centres."""

from __future__ import annotations

import equinox as eqx
import numpy as np


class Grid(eqx.Module):
    """Regular grid of pixel centres on a rectangular window.

    x points right and y down; the longer side of the image spans [-1, 1], so that a pixel is
    ``2 / max(height, width)`` wide and images that are not square keep their aspect.

    Parameters
    ----------
    height, width : int
        Number of rows and columns.

    Examples
    --------
    >>> grid = Grid(2, 4)
    >>> grid.pixel
    0.5
    >>> grid.x.tolist()
    [-0.75, -0.25, 0.25, 0.75, -0.75, -0.25, 0.25, 0.75]
    >>> grid.window
    (-1.0, 1.0, -0.5, 0.5)
    """

    height: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        """Refuse empty grids."""
        for name in ("height", "width"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name}={value!r} must be a positive integer.")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns (H, W)."""
        return (self.height, self.width)

    @property
    def n_pixels(self) -> int:
        """Number of pixels n = H·W."""
        return self.height * self.width

    @property
    def pixel(self) -> float:
        """Width of a pixel in the units of x and y."""
        return 2.0 / max(self.height, self.width)

    @property
    def window(self) -> tuple[float, float, float, float]:
        """Edges (left, right, top, bottom) of the window, pixel borders included."""
        half_width, half_height = self.width * self.pixel / 2, self.height * self.pixel / 2
        return (-half_width, half_width, -half_height, half_height)

    @property
    def columns(self) -> np.ndarray:
        """The x of each column, shape (W,)."""
        return (np.arange(self.width) - (self.width - 1) / 2) * self.pixel

    @property
    def rows(self) -> np.ndarray:
        """The y of each row, shape (H,)."""
        return (np.arange(self.height) - (self.height - 1) / 2) * self.pixel

    @property
    def x(self) -> np.ndarray:
        """The x of every pixel in row-major order, shape (n,)."""
        return np.tile(self.columns, self.height)

    @property
    def y(self) -> np.ndarray:
        """The y of every pixel in row-major order, shape (n,)."""
        return np.repeat(self.rows, self.width)


def as_grid(shape: tuple[int, int] | Grid) -> Grid:
    """Return the grid of an image of ``shape`` (H, W), or the grid itself."""
    if isinstance(shape, Grid):
        return shape
    try:
        height, width = shape
    except (TypeError, ValueError) as error:
        raise ValueError(f"shape={shape!r} must be a pair (height, width).") from error
    return Grid(height, width)
