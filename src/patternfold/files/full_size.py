"""Poses found on small prepared images, as maps between the full pictures and one frame for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from patternfold.files.placement import Placement
from patternfold.model.grid import Grid
from patternfold.model.matrices import matrices
from patternfold.model.transformations import AbstractTransformation
from patternfold.numerics.compilation import compiled
from patternfold.numerics.precision import precision

LARGEST_FRAME = 2**27
"""Most pixels of the frame."""

_OUTLINE = 33  # points along each side of a picture that its outline is followed by


@dataclass(frozen=True)
class Frame:
    """The window of the aligned pictures."""

    height: int
    width: int
    placement: Placement
    """Where it lies on the pattern's canvas."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.height, self.width


@dataclass(frozen=True)
class FullSize:
    """How full pictures lie in the frame that all of them share.

    Points of pictures and of the frame are columns and rows, with pixel centres at integers.
    """

    transformation: AbstractTransformation
    parameters: np.ndarray
    """λ of the prepared images, shape (N, d)."""
    canvas: Grid
    """That of the prepared images."""
    placements: tuple[Placement, ...]
    """Where the pictures lie on them."""
    shapes: tuple[tuple[int, int], ...]
    """Rows and columns of the pictures."""
    frame: Frame

    @classmethod
    def of(
        cls,
        transformation: AbstractTransformation,
        parameters: Any,
        canvas: tuple[int, int],
        placements: Sequence[Placement],
        shapes: Sequence[tuple[int, int]],
        scale: float | None = None,
        expand: bool = False,
    ) -> FullSize:
        """Choose the frame: what the unmoved pictures cover, at the resolution of the finest.

        Where a common ``scale`` of the pictures on the canvas is given, the resolution is theirs.

        With ``expand``, the frame is enlarged so that nothing of the aligned pictures is cut off.
        """
        covered = _covered(placements, shapes, canvas)
        frame = _frame(covered, scale or min(p.scale for p in placements))
        lam = np.asarray(parameters, np.float64)
        known = cls(transformation, lam, Grid(*canvas), tuple(placements), tuple(shapes), frame)
        return replace(known, frame=_enlarged(known)) if expand else known

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.placements)

    def matrices(self, parameters: np.ndarray | None = None) -> np.ndarray:
        """Return the matrices from each picture to the frame, shape (N, 2, 3); affine families.

        Other λ for the same pictures may be given.
        """
        lam = self.parameters if parameters is None else parameters
        small = _homogeneous(matrices(lam, self.transformation, self.canvas))
        into = np.stack([_from_centres(p) for p in self.placements])
        out = np.linalg.inv(_from_centres(self.frame.placement))
        return (out @ small @ into)[:, :2]

    def to_frame(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Map points of the pictures to the frame, whatever the family; arrays of shape (N, P)."""
        return self._map(False, x, y, self._places(), self._window())

    def from_frame(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Map points of the frame to each picture, whatever the family; arrays of shape (N, P)."""
        return self._map(True, x, y, self._window(), self._places())

    def only(self, i: int) -> FullSize:
        """Return the same with one picture."""
        one = slice(i, i + 1)
        return replace(
            self,
            parameters=self.parameters[one],
            placements=self.placements[one],
            shapes=self.shapes[one],
        )

    def origins(self) -> np.ndarray:
        """Return where the pattern's origin lies in each picture, from its middle, shape (N, 2)."""
        centre = np.array([self.canvas.width, self.canvas.height]) / 2
        window = self.frame.placement
        point = (centre - (window.left, window.top)) / window.scale - 0.5
        x, y = (np.full((len(self), 1), v) for v in point)
        points = np.concatenate(self.from_frame(x, y), axis=1)
        middles = np.array([(width - 1, height - 1) for height, width in self.shapes]) / 2
        return points - middles

    def _places(self) -> np.ndarray:
        return np.array([(p.scale, p.left, p.top) for p in self.placements])

    def _window(self) -> np.ndarray:
        window = self.frame.placement
        return np.array([(window.scale, window.left, window.top)])

    def _map(
        self, back: bool, x: np.ndarray, y: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Go from one placement to the canvas, there by the family's map, and to the other."""
        pixel, half = self.canvas.pixel, np.array([self.canvas.width, self.canvas.height]) / 2
        (scale, left, top), (new_scale, new_left, new_top) = before.T[..., None], after.T[..., None]
        across = (scale * (x + 0.5) + left - half[0]) * pixel
        down = (scale * (y + 0.5) + top - half[1]) * pixel
        with precision(np.dtype(np.float64)):
            known = (jnp.asarray(v) for v in (self.parameters, across, down))
            moved = _moved(*known, family=self.transformation, back=back)
            across, down = (np.asarray(v) for v in moved)
        x = (across / pixel + half[0] - new_left) / new_scale - 0.5
        return x, (down / pixel + half[1] - new_top) / new_scale - 0.5


@partial(compiled, static_argnames="back")
def _moved(
    lam: Float[Array, "N d"],
    x: Float[Array, "N P"],
    y: Float[Array, "N P"],
    family: AbstractTransformation,
    back: bool,
) -> tuple[Float[Array, "N P"], Float[Array, "N P"]]:
    return jax.vmap(family.inverse_coordinates if back else family.coordinates)(lam, x, y)


def _covered(
    placements: Sequence[Placement], shapes: Sequence[tuple[int, int]], canvas: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of what the pictures cover on the canvas.

    What of large pictures lies beyond it is not asked for: they were cut to where something is.
    """
    corners = [
        (p.left, p.top, p.left + p.scale * width, p.top + p.scale * height)
        for p, (height, width) in zip(placements, shapes, strict=True)
    ]
    left, top, right, bottom = zip(*corners, strict=True)
    height, width = canvas
    beyond = 0.5  # by rounding, a picture that fits may stand out so far
    return (
        min(left) if min(left) > -beyond else 0.0,
        min(top) if min(top) > -beyond else 0.0,
        max(right) if max(right) < width + beyond else float(width),
        max(bottom) if max(bottom) < height + beyond else float(height),
    )


def _frame(covered: tuple[float, float, float, float], scale: float) -> Frame:
    """A frame of whole pixels, in the middle of what it must hold."""
    left, top, right, bottom = covered
    # What is whole but for rounding, as where all pictures have one size, stays so.
    width, height = (max(1, math.ceil(n / scale - 1e-6)) for n in (right - left, bottom - top))
    x, y = (left + right - scale * width) / 2, (top + bottom - scale * height) / 2
    return Frame(height, width, Placement(scale, x, y))


def _enlarged(known: FullSize) -> Frame:
    """The frame with as many pixels more on each side as the aligned pictures need."""
    outlines = np.stack([_outline(shape) for shape in known.shapes], axis=1)
    x, y = (v + 0.5 for v in known.to_frame(*outlines))
    frame, slack = known.frame, 1e-6
    left, top = (min(0, math.floor(v.min() + slack)) for v in (x, y))
    width = max(frame.width, math.ceil(x.max() - slack)) - left
    height = max(frame.height, math.ceil(y.max() - slack)) - top
    if height * width > LARGEST_FRAME:
        raise ValueError(
            f"the frame would be enlarged to {width} × {height} pixels, and at most "
            f"{LARGEST_FRAME} are allowed; leave out the pictures that are magnified most, or "
            "don't enlarge it."
        )
    place = frame.placement
    moved = replace(place, left=place.left + place.scale * left, top=place.top + place.scale * top)
    return Frame(height, width, moved)


def _outline(shape: tuple[int, int]) -> np.ndarray:
    """Points along the edge of a picture, its corners among them, shape (2, P)."""
    along = np.linspace(0, 1, _OUTLINE)
    low, high = np.zeros_like(along), np.ones_like(along)
    x = np.concatenate([along, along, low, high]) * shape[1] - 0.5
    y = np.concatenate([low, high, along, along]) * shape[0] - 0.5
    return np.stack([x, y])


def _homogeneous(maps: np.ndarray) -> np.ndarray:
    """Append the row (0, 0, 1), and move points from pixel centres to pixel edges."""
    below = np.broadcast_to(np.array([0.0, 0.0, 1.0]), (len(maps), 1, 3))
    half = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    return half @ np.concatenate([maps, below], axis=1) @ np.linalg.inv(half)


def _from_centres(place: Placement) -> np.ndarray:
    """From columns and rows to the canvas, in pixel edges."""
    half = place.scale / 2
    return np.array(
        [[place.scale, 0.0, place.left + half], [0.0, place.scale, place.top + half], [0, 0, 1.0]]
    )
