"""Images on the devices: put there once, in chunks; statistics and results travel.

A *stage* is a compiled function of one chunk. It returns per-image results, which `map` collects in
the order of the images, or sums over the chunk's images of a fixed size, which `total` adds in the
order of the chunks. Neither depends on how many devices there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from patternfold.learning.chunk import (
    Chunk,
    are_finite,
    as_float,
    counted_pixels,
    filled,
    image_energies,
    some_images,
    some_pixels,
)
from patternfold.learning.lighting import PLAIN, Lighting
from patternfold.learning.missing import without_missing
from patternfold.model.grid import Grid
from patternfold.numerics.chunks import padded_rows
from patternfold.numerics.forks import require_own_threads
from patternfold.numerics.precision import precision

CHUNK_BYTES = {"cpu": 2**19, "gpu": 2**26, "tpu": 2**26}
"""Size of a chunk's images: on a CPU, enough to keep its cores busy between two calls, and small,
so that few and many images share compiled code; on an accelerator, enough to fill it."""

PASSING_BYTES = CHUNK_BYTES | {"cpu": 2**21}
"""The same for images that are looked at once, not learned from: larger chunks run faster, and
compiling for one more size is all that they cost."""

MOST_BYTES = 2**25
"""Size that a chunk of a few large images may have."""


@dataclass(frozen=True)
class Observations:
    """Images u_i with weights per image or per pixel, on the devices.

    ``counts`` holds, chunk by chunk, how many rows are images; ``weights`` are those of the images.
    """

    chunks: tuple[Chunk, ...]
    counts: tuple[int, ...]
    weights: np.ndarray
    grid: Grid
    dtype: np.dtype
    lighting: Lighting = PLAIN

    @classmethod
    def put(
        cls,
        images: np.ndarray,
        grid: Grid,
        weights: np.ndarray | None = None,
        pixel_weights: np.ndarray | None = None,
        devices: Sequence[Any] | None = None,
        size: int | None = None,
        lighting: Lighting = PLAIN,
    ) -> Observations:
        """Hand images (N, n), floats or small integers, over to the devices in turn.

        ``size`` is the number of images in a chunk, by default what suits the device.
        """
        require_own_threads()
        dtype = images.dtype if images.dtype.kind == "f" else np.dtype(np.float32)
        weights = np.ones(len(images)) if weights is None else np.asarray(weights, np.float64)
        devices = list(devices or jax.local_devices())
        size = size or chunk_size(len(images), grid.n_pixels * dtype.itemsize, devices[0].platform)
        chunks, counts = [], []
        for k, begin in enumerate(range(0, max(1, len(images)), size)):
            rows = slice(begin, begin + size)
            own = np.zeros(size, dtype)
            own[: len(weights[rows])] = weights[rows]
            parts = [images[rows], own]
            if pixel_weights is not None:
                parts.append(np.sqrt(pixel_weights[rows]).astype(dtype))
            counts.append(len(parts[0]))
            padded = [filled(part, size) for part in parts]
            on_device = jax.device_put(padded, devices[k % len(devices)])
            chunks.append(Chunk(as_float(on_device[0], dtype.name), *on_device[1:]))
        return cls(tuple(chunks), tuple(counts), weights, grid, dtype, lighting)

    @classmethod
    def of(
        cls,
        name: str,
        images: np.ndarray,
        grid: Grid,
        sample_mask: Any = None,
        lighting: Lighting = PLAIN,
    ) -> Observations:
        """Put the images of a user on the devices: NaN and masked pixels count nothing."""
        itemsize = images.dtype.itemsize if images.dtype.kind == "f" else 4
        per_image, platform = grid.n_pixels * itemsize, jax.default_backend()
        size = chunk_size(len(images), per_image, platform, PASSING_BYTES)
        if sample_mask is None:
            observations = cls.put(images, grid, size=size, lighting=lighting)
            if observations.finite:
                return observations
        images, counted = without_missing(name, images, sample_mask)
        return cls.put(images, grid, pixel_weights=counted, size=size, lighting=lighting)

    def __len__(self) -> int:
        """Return the number of images."""
        return sum(self.counts)

    @property
    def starts(self) -> list[int]:
        """Index of each chunk's first image."""
        return np.cumsum([0, *self.counts[:-1]]).tolist()

    def map(self, stage: Callable[..., Any], *per_image: Any) -> Any:
        """Call ``stage(chunk, *rows)`` for every chunk and collect the rows that it returns.

        ``per_image`` are arrays with one row per image, None, or what `on_devices` made of one. The
        results, trees of arrays with one row per image, come back as NumPy arrays. All chunks are
        under way before the first result is waited for.
        """
        results = self.each(stage, *per_image)
        collected = [
            jax.tree.map(lambda a, n=count: a[:n], result)
            for result, count in zip(jax.device_get(results), self.counts, strict=True)
        ]
        if len(collected) == 1:
            return collected[0]
        return jax.tree.map(lambda *parts: np.concatenate(parts), *collected)

    def total(self, stage: Callable[..., Any], *per_image: Any) -> Any:
        """Call the stage for every chunk and add the sums that it returns, in float64."""
        results = jax.device_get(self.each(stage, *per_image))
        added: Any = None
        for result in results:
            part = jax.tree.map(lambda a: np.asarray(a, np.float64), result)
            added = part if added is None else jax.tree.map(np.add, added, part)
        return added

    def each(self, stage: Callable[..., Any], *per_image: Any) -> list[Any]:
        """Call the stage for every chunk and leave the results where they are."""
        rows = [self.rows(array) for array in per_image]
        return [stage(chunk, *parts) for chunk, *parts in zip(self.chunks, *rows, strict=True)]

    def rows(self, per_image: Any) -> list[Any]:
        """Split an array with one row per image as the chunks are; None is None for each.

        What `on_devices` returned is split already.
        """
        if per_image is None:
            return [None] * len(self.chunks)
        if isinstance(per_image, list):
            return per_image
        places = zip(self.starts, self.counts, self.chunks, strict=True)
        return [
            filled(np.asarray(per_image[begin : begin + count]), len(chunk.images))
            for begin, count, chunk in places
        ]

    def on_devices(self, per_image: np.ndarray) -> list[Array]:
        """Put the rows of each chunk on its device, for stages that are called many times."""
        rows = self.rows(per_image.astype(self.dtype, copy=False))
        pairs = zip(rows, self.chunks, strict=True)
        return [jax.device_put(part, chunk.images.sharding) for part, chunk in pairs]

    def take(
        self, index: np.ndarray, weights: np.ndarray | None = None, size: int | None = None
    ) -> Observations:
        """Return some of the images, with weights of their own.

        Images of one chunk are gathered on its device; those of several come together here.
        ``size`` is that of the new chunks; by default they are as few as may be.
        """
        weights = self.weights[index] if weights is None else weights
        several = len(self.chunks) > 1
        if several:
            images, pixel_weights = self._fetch(index)
            return Observations.put(
                images, self.grid, weights, pixel_weights, size=size, lighting=self.lighting
            )
        chunk = self.chunks[0]
        bytes_per_image = self.grid.n_pixels * self.dtype.itemsize
        fitting = chunk_size(len(index), bytes_per_image, jax.default_backend())
        size = size or min(fitting, len(chunk.images))
        chunks, counts = [], []
        for begin in range(0, max(1, len(index)), size):
            some = np.asarray(index[begin : begin + size], np.int32)
            own = np.zeros(size, self.dtype)
            own[: len(some)] = weights[begin : begin + size]
            chunks.append(some_images(chunk, filled(some, size), own))
            counts.append(len(some))
        return replace(self, chunks=tuple(chunks), counts=tuple(counts), weights=weights)

    def _fetch(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Bring some images, and the weights of their pixels, back in the order asked for."""
        images = np.empty((len(index), self.grid.n_pixels), self.dtype)
        roots = None if self.chunks[0].roots is None else np.empty_like(images)
        for chunk, begin, count in zip(self.chunks, self.starts, self.counts, strict=True):
            here = np.flatnonzero((index >= begin) & (index < begin + count))
            if not len(here):
                continue
            rows = filled((index[here] - begin).astype(np.int32), padded_rows(len(here)))
            part = some_images(chunk, rows, np.zeros(len(rows), self.dtype))
            images[here] = np.asarray(part.images)[: len(here)]
            if roots is not None and part.roots is not None:
                roots[here] = np.asarray(part.roots)[: len(here)]
        return images, None if roots is None else roots**2

    def join(self, other: Observations) -> Observations:
        """Return these images and then others; none of them moves."""
        weights = np.append(self.weights, other.weights)
        chunks, counts = self.chunks + other.chunks, self.counts + other.counts
        return replace(self, chunks=chunks, counts=counts, weights=weights)

    def with_weights(self, weights: np.ndarray) -> Observations:
        """Return the same images with other weights."""
        chunks = []
        for chunk, begin, count in zip(self.chunks, self.starts, self.counts, strict=True):
            own = np.zeros(len(chunk.images), self.dtype)
            own[:count] = weights[begin : begin + count]
            device = next(iter(chunk.images.devices()))
            chunks.append(Chunk(chunk.images, jax.device_put(own, device), chunk.roots))
        return replace(self, chunks=tuple(chunks), weights=np.asarray(weights, np.float64))

    def at(self, pixels: np.ndarray) -> Observations:
        """Return the images at some of the pixels only; the grid stays that of all pixels."""
        chunks = tuple(some_pixels(chunk, pixels) for chunk in self.chunks)
        return replace(self, chunks=chunks)

    @cached_property
    def squares(self) -> np.ndarray:
        """‖u_i‖² with the pixels' weights, less what an offset makes up for, in float64."""
        with precision(self.dtype):  # also where results are stored, after learning
            return self.map(partial(image_energies, lighting=self.lighting)).astype(np.float64)

    @cached_property
    def counted(self) -> np.ndarray:
        """Number of pixels that count, of each image; at least 1."""
        if self.chunks[0].roots is None:
            return np.full(len(self), float(self.chunks[0].images.shape[1]))
        with precision(self.dtype):
            return self.map(counted_pixels).astype(np.float64)

    @property
    def energy(self) -> float:
        """Σ w_i‖u_i‖², by which errors are divided for people."""
        return float((self.weights * self.squares).sum())

    def image(self, i: int) -> np.ndarray:
        """Return one image, from its device."""
        k = int(np.searchsorted(self.starts, i, side="right")) - 1
        return np.asarray(self.chunks[k].images[i - self.starts[k]])

    @property
    def finite(self) -> bool:
        """Whether all pixels are numbers: told by the devices, which have the images at hand."""
        return all([bool(flag) for flag in [are_finite(chunk) for chunk in self.chunks]])


def chunk_size(
    n_images: int,
    bytes_per_image: int,
    platform: str,
    chunk_bytes: Mapping[str, int] = CHUNK_BYTES,
) -> int:
    """Images per chunk: a power of two, or what a single chunk needs.

    Few images are filled up to 8, 16 or 32: computing on them takes less time than compiling.
    """
    most = chunk_bytes.get(platform, chunk_bytes["cpu"]) // max(1, bytes_per_image)
    # A few images at least, unless these alone are large: dozens of arrays of their size exist.
    most = max(most, min(8, MOST_BYTES // max(1, bytes_per_image)), 1)
    most = 2 ** (most.bit_length() - 1)
    needed = padded_rows(n_images) if n_images > 32 else max(8, 2 ** (n_images - 1).bit_length())
    return min(most, needed)
