"""Pictures brought into the pattern's frame, one after another: the originals or the prepared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from patternfold.files import Placement, read_originals
from patternfold.files.full_size import FullSize
from patternfold.files.kinds import Kind, converted, writable
from patternfold.files.originals import Ground, Sampling, ground_of, warp_counts, warp_original
from patternfold.show.pictures import mean_picture


@dataclass
class Aligned:
    """Aligned pictures, which are made while one goes through them."""

    found: Any
    """The images as they were read and prepared."""
    full: FullSize
    prepared: bool
    """Whether to take the prepared images instead of the originals."""
    interpolation: str = "linear"
    sum: np.ndarray | float = 0.0
    """Of the pictures made so far, in which white is 1."""

    @classmethod
    def of(
        cls,
        found: Any,
        parameters: np.ndarray,
        family: Any,
        expand: bool = False,
        prepared: bool = False,
        interpolation: str = "linear",
    ) -> Aligned:
        """Choose the frame."""
        canvas = found.images.shape[1:]
        if prepared:
            placements, shapes = [Placement(1.0, 0.0, 0.0)] * len(found), [canvas] * len(found)
            scale = None
        else:
            placements, shapes = found.placements, [s.shape[:2] for s in found.sources]
            scale = found.preparation.scale
        full = FullSize.of(family, parameters, canvas, placements, shapes, scale, expand)
        return cls(found, full, prepared, interpolation)

    @property
    def kinds(self) -> list[Kind]:
        """What the pictures are made of."""
        if self.prepared:
            return [Kind(self.found.images.dtype, 1)] * len(self.found)
        return [Kind.named(source.dtype, source.shape) for source in self.found.sources]

    def __iter__(self) -> Iterator[np.ndarray]:
        """Read and warp each picture."""
        maps = self.full.matrices() if self.full.transformation.is_affine else None
        self.sum = 0.0
        for i, values in enumerate(self._sources()):
            sampling = Sampling(
                self.full.frame.shape,
                None if maps is None else maps[i],
                self._places(i) if maps is None else None,
            )
            if self.prepared:
                ground = Ground(np.zeros(1), np.ones(values.shape, bool))
            else:
                ground = ground_of(values)
            picture = warp_original(values, sampling, ground.level, self.interpolation)
            self._add(picture, ground.level, warp_counts(ground.counts, sampling))
            yield picture

    def mean(self) -> np.ndarray:
        """Return the mean of the pictures made, for a file."""
        mean = np.asarray(self.sum) / len(self.found)
        return mean_picture(mean if mean.shape[2] > 1 else mean[..., 0], self.kinds)

    def _sources(self) -> Iterator[np.ndarray]:
        if self.prepared:
            yield from self.found.images
        else:
            for values in read_originals(self.found.sources):
                yield writable(values)

    def _places(self, i: int) -> np.ndarray:
        height, width = self.full.frame.shape
        y, x = np.mgrid[:height, :width].reshape(2, 1, -1).astype(np.float64)
        column, row = self.full.only(i).from_frame(x, y)
        return np.stack([row, column]).reshape(2, height, width)

    def _add(self, picture: np.ndarray, level: np.ndarray, share: np.ndarray) -> None:
        """Add to the sum; bars, frames and what is clear are replaced by the background."""
        kind, background = Kind.of(picture), level / Kind.of(picture).white
        pixels = picture.reshape(*picture.shape[:2], kind.channels) / kind.white
        colour = pixels[..., : kind.channels - kind.has_alpha]
        if kind.has_alpha:
            share = share * pixels[..., -1]
        above = np.where(np.isnan(colour), 0, colour - background)
        self.sum = self.sum + background + share[..., None] * above


def in_one_kind(aligned: Aligned, kind: Kind) -> Iterator[np.ndarray]:
    """Yield the pictures as numbers of one kind, for a stack."""
    for picture in aligned:
        yield converted(picture, kind)
