"""Images as coarse maps of oriented gradients: strokes count, where exactly matters less."""

from __future__ import annotations

import numpy as np

ORIENTATIONS = 8
"""Directions of the gradient, over the full circle."""

CELLS = 8
"""Places along each axis where gradients are gathered."""

WIDTH = 0.05
"""Standard deviation of a place, as a share of the image's side."""

CHUNK = 256
"""Images worked on at a time, which bounds the memory."""


def n_gradients() -> int:
    """Number of values per image."""
    return ORIENTATIONS * CELLS**2


def oriented_gradients(images: np.ndarray) -> np.ndarray:
    """Return the strength of the gradient in each direction and place, as rows.

    A gradient counts for a direction by the cube of the cosine between them.
    The values of an image have unit norm before the square root is taken, so that neither
    brightness nor a few strong edges dominate.

    Parameters
    ----------
    images : array of shape (N, H, W)

    Returns
    -------
    values : array of shape (N, 512)
        Place by place of each direction, in [0, 1]; zeros for an image without gradients.

    Examples
    --------
    >>> import numpy as np
    >>> ramp = np.tile(np.arange(16.0), (16, 1))
    >>> strength = oriented_gradients(ramp[None]).reshape(8, -1).sum(axis=1)
    >>> int(strength.argmax()), float(strength[4])
    (0, 0.0)
    """
    rows, columns = (_places(side).astype(images.dtype) for side in images.shape[1:])
    chunks = [_gathered(images[i : i + CHUNK], rows, columns) for i in range(0, len(images), CHUNK)]
    return np.concatenate(chunks) if chunks else np.empty((0, n_gradients()), images.dtype)


def _gathered(images: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    down, right = (_slope(images, axis) for axis in (1, 2))
    # No gradient, or one so faint that its square is lost, counts nowhere.
    inverse = 1 / np.maximum(down**2 + right**2, np.finfo(images.dtype).tiny)
    gathered = np.empty((len(images), ORIENTATIONS, CELLS, CELLS), images.dtype)
    for k, angle in enumerate(2 * np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS):
        along = np.maximum(float(np.cos(angle)) * right + float(np.sin(angle)) * down, 0)
        # ‖g‖ cos³: the part of the gradient g along the direction, cubed, over ‖g‖². Products,
        # since NumPy's powers other than squares are slow.
        gathered[:, k] = rows @ (along * along * along * inverse) @ columns.T
    values = gathered.reshape(len(images), -1)
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    return np.sqrt(values / np.where(norms > 0, norms, 1))


def _slope(images: np.ndarray, axis: int) -> np.ndarray:
    """Differences along an axis; an image of one row or column has none."""
    return np.gradient(images, axis=axis) if images.shape[axis] > 1 else np.zeros_like(images)


def _places(side: int) -> np.ndarray:
    """Gaussian weights of the pixels of a row for each place, shape (CELLS, side)."""
    pixels = (np.arange(side) + 0.5) / side
    centres = (np.arange(CELLS) + 0.5) / CELLS
    weights = np.exp(-((pixels - centres[:, None]) ** 2) / (2 * max(WIDTH, 0.5 / side) ** 2))
    return weights / weights.sum(axis=1, keepdims=True)
