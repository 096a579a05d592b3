"""Generated worms: thin bodies bent along an arc, with a head, somewhere in the picture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from patternfold.datasets.pictures import unit
from patternfold.model.grid import Grid

LENGTH, WIDTH = 0.6, 0.09
"""Half the length of a body and half its greatest width, where the image spans 2."""

EDGE = 0.03
"""How soft its outline is."""

RANGES = {
    "theta": (-np.pi, np.pi),
    "tx": (-0.2, 0.2),
    "ty": (-0.2, 0.2),
    "s": (0.85, 1.15),
    "bend": (-1.4, 1.4),
}
"""From what poses and bends are drawn: at the largest bend, a body turns by a quarter."""


class Worms(NamedTuple):
    """Images (N, H, W) of unit norm, float32, and λ (N, 5) as ``"similarity+bend"`` reads them."""

    images: np.ndarray
    parameters: np.ndarray

    def body(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where points along each body are in its image, from −1, the tail, to 1, the head.

        Returns x and y of shape (N, len(shares)).
        """
        theta, tx, ty, s, bend = self.parameters.T[:, :, None]
        turn = bend * LENGTH * np.asarray(shares)[None]
        # Along a circle through the origin; np.sinc(t/π) is sin(t)/t.
        along = LENGTH * np.asarray(shares)[None] * np.sinc(turn / 2 / np.pi)
        x, y = along * np.cos(turn / 2), along * np.sin(turn / 2)
        c, n = np.cos(theta), np.sin(theta)
        return s * (c * x - n * y) + tx, s * (n * x + c * y) + ty


def make_worms(
    n: int = 60,
    rng: np.random.Generator | int = 0,
    shape: tuple[int, int] = (40, 40),
    noise: float = 0.0,
) -> Worms:
    """Draw worms of one kind, each with a pose and a bend of its own.

    Parameters
    ----------
    n : int, default=60
        Number of images.
    rng : Generator or int, default=0
        Random numbers, or their seed.
    shape : (H, W), default=(40, 40)
        Size of the images.
    noise : float, default=0
        Standard deviation of noise, as a share of a pixel's root mean square.
    """
    rng = np.random.default_rng(rng)
    low, high = np.array(list(RANGES.values())).T
    lam = rng.uniform(low, high, (n, len(low)))
    grid = Grid(*shape)
    images = np.stack([_worm(row, grid.x, grid.y) for row in lam]).reshape(n, *shape)
    size = np.sqrt((images**2).mean(axis=(1, 2), keepdims=True))
    images = images + noise * size * rng.normal(size=images.shape)
    return Worms(unit(images).astype(np.float32), lam)


def _worm(lam: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Brightness of a body at points, from their place along the arc and across it."""
    theta, tx, ty, s, bend = lam
    c, n = np.cos(theta), np.sin(theta)
    right, down = (c * (x - tx) + n * (y - ty)) / s, (c * (y - ty) - n * (x - tx)) / s
    centre = 1 / bend
    along = np.arctan2(right * np.sign(bend), (centre - down) * np.sign(bend)) / bend
    across = centre - np.sign(bend) * np.hypot(right, centre - down)
    share = along / LENGTH
    inside = np.clip(1 - share**2, 0, None)
    taper = WIDTH * np.sqrt(inside) * (1 + 0.25 * share)
    body = 1 / (1 + np.exp((np.abs(across) - taper) / EDGE))
    head = np.exp(-(((along - 0.8 * LENGTH) / 0.1) ** 2) - (across / 0.06) ** 2)
    return np.where(inside > 0, body, 0) * (0.7 + 0.3 * share) + 0.8 * head
