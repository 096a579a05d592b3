"""A generated thing to photograph: a wavy outline with spots, sharp at any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SOFT = 0.03  # of the radius: how wide the outline's transition is
_N_SPOTS = 7


@dataclass(frozen=True)
class Thing:
    """Transmits less light than what is around it, unevenly."""

    waves: np.ndarray
    """Shape (k, 3): order, strength and phase of the outline's waves."""
    spots: np.ndarray
    """Shape (m, 4): x, y, width and strength, in radii."""

    @classmethod
    def random(cls, rng: np.random.Generator, symmetry: int = 1) -> Thing:
        """Draw a thing that looks alike after ``symmetry`` turns."""
        orders = symmetry * np.arange(1, 4)
        strengths = rng.uniform(0.08, 0.2, 3) / np.sqrt(np.arange(1, 4))
        waves = np.column_stack([orders, strengths, rng.uniform(0, 2 * np.pi, 3)])
        n_spots = max(2, _N_SPOTS // symmetry)
        far, around = np.sqrt(rng.uniform(0.02, 0.5, n_spots)), rng.uniform(0, 2 * np.pi, n_spots)
        width = rng.uniform(0.08, 0.2, n_spots)
        strength = rng.choice([-1.0, 1.0], n_spots) * rng.uniform(0.4, 0.9, n_spots)
        spots = [
            np.column_stack([far * np.cos(a), far * np.sin(a), width, strength])
            for a in around + 2 * np.pi * np.arange(symmetry)[:, None] / symmetry
        ]
        return cls(waves, np.concatenate(spots))

    def draw(
        self,
        shape: tuple[int, int],
        centre: Sequence[float] | np.ndarray,
        angle: float,
        radius: float,
    ) -> np.ndarray:
        """Return its density at each pixel: 0 outside, about 0.6 inside, spots from below 0 to 1.5.

        Parameters
        ----------
        centre : (x, y)
            In pixels from the upper left edge.
        angle : float
            In degrees, counter-clockwise as seen.
        radius : float
            In pixels.
        """
        y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
        x, y = (x - centre[0]) / radius, -(y - centre[1]) / radius
        turn = np.deg2rad(angle)
        u = np.cos(turn) * x + np.sin(turn) * y
        v = -np.sin(turn) * x + np.cos(turn) * y
        order, strength, phase = self.waves.T[:, :, None, None]
        outline = 0.8 + (strength * np.cos(order * np.arctan2(v, u) + phase)).sum(axis=0)
        soft = max(_SOFT, 0.7 / radius)
        body = 1 / (1 + np.exp(np.clip((np.hypot(u, v) - outline) / soft, -50, 50)))
        texture = np.full(shape, 0.6)
        for place_u, place_v, width, depth in self.spots:
            texture += depth * np.exp(-((u - place_u) ** 2 + (v - place_v) ** 2) / (2 * width**2))
        return body * texture
