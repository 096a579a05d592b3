"""Stacks: images that are read as they are needed, from a file or another program."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from patternfold._validation import as_floats

KEPT = ("bool", "uint8", "uint16", "int8", "int16", "float32", "float64")
"""Types of pixels that go to the device as they are."""

BLOCK_BYTES = {"cpu": 2**25, "gpu": 2**29, "tpu": 2**29}
"""Size that the images of a block have once they are floats: enough to keep the device busy between
two blocks, and little beside the memory of any machine."""

MOST_TOGETHER = 4
"""A block may be so many times as large as it should be where the file stores as many images
together: else each of them would be unpacked several times."""

RUNS = 64
"""Places at which a part of a stack is read: images that follow one another are quickly read, but
often alike."""

N_PRINTED = 16
"""Images that tell one stack from another."""


class StackError(ValueError):
    """A stack that can't be read; the message names it and the way on."""


class Stack(ABC):
    """N images of one size that are read block by block.

    Stacks are sent to other processes: they open what they need where they are.
    """

    name: str
    """What people call it: a path, mostly."""
    shape: tuple[int, int, int]
    """(N, H, W)."""
    dtype: np.dtype
    """Of the pixels as they are stored."""
    together: int = 1
    """Images that are stored, and unpacked, together."""
    notes: tuple[str, ...] = ()
    """What was left out, for people."""

    @abstractmethod
    def read(self, begin: int, end: int) -> np.ndarray:
        """Read images begin ... end − 1, shape (k, H, W)."""

    def __len__(self) -> int:
        """Return the number of images."""
        return self.shape[0]

    @property
    def floats(self) -> np.dtype:
        """What is computed with: float32 for small numbers, float64 for others."""
        small = self.dtype.kind in "bu" or self.dtype.itemsize <= 2 or self.dtype == np.float32
        return np.dtype(np.float32 if small else np.float64)

    def images(self, begin: int, end: int) -> np.ndarray:
        """Read images and check them: numbers of 8 and 16 bits stay so."""
        try:
            found = np.asarray(self.read(begin, end))
        except (StackError, ImportError, KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:  # readers raise whatever a damaged file leads them to
            reason = (str(error) or type(error).__name__).rstrip(".")
            raise StackError(
                f"{self.name}: images {begin} to {end - 1} can't be read: {reason}. Restore that "
                "part of the file from a copy, or leave these images out."
            ) from error
        return checked(self.name, self.shape, (begin, end), found)

    def lazy(self, begin: int, end: int) -> Any:
        """Return images as a collection of Dask, where the stack is one; else None."""
        return None

    def take(self, index: np.ndarray) -> np.ndarray:
        """Read some images by their indices, in ascending order.

        What lies between two of them is read as well where all of it is stored together.
        """
        index = np.asarray(index)
        stored = index // self.together
        breaks = np.flatnonzero((np.diff(index) != 1) & (np.diff(stored) != 0)) + 1
        edges = [0, *breaks.tolist(), len(index)]
        parts = []
        for a, b in pairwise(edges):
            begin = int(index[a])
            parts.append(self.images(begin, int(index[b - 1]) + 1)[index[a:b] - begin])
        return np.concatenate(parts)

    def spans(self) -> list[tuple[int, int]]:
        """Cut the stack into blocks, which depend on the kind of device, not on how many."""
        size = self.block
        return [(begin, min(begin + size, len(self))) for begin in range(0, len(self), size)]

    @property
    def block(self) -> int:
        """Images in a block."""
        each = self.shape[1] * self.shape[2] * self.floats.itemsize
        most = BLOCK_BYTES.get(jax.default_backend(), BLOCK_BYTES["cpu"]) // max(1, each)
        most = 2 ** (max(1, most).bit_length() - 1)
        if self.together <= most:
            return most // self.together * self.together
        return self.together if self.together <= MOST_TOGETHER * most else most

    def part(self, count: int) -> np.ndarray:
        """Indices of about so many images, in runs that are spread over the stack."""
        if count >= len(self):
            return np.arange(len(self))
        length = max(1, count // RUNS)
        starts = np.linspace(0, len(self) - length, max(1, count // length)).astype(int)
        return np.unique(starts[:, None] + np.arange(length))

    @property
    def fingerprint(self) -> str:
        """A digest of size, type and some of the images."""
        digest = hashlib.blake2b(repr((self.shape, self.dtype.str)).encode(), digest_size=16)
        places = np.linspace(0, len(self) - 1, min(N_PRINTED, len(self))).astype(int)
        for i in np.unique(places):
            digest.update(np.ascontiguousarray(self.images(int(i), int(i) + 1)).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        """Say what it is."""
        height, width = self.shape[1:]
        return f"{type(self).__name__}({self.name}: {len(self)} images of {height}×{width})"


class Subset(Stack):
    """Some images of a stack, in ascending order."""

    def __init__(self, stack: Stack, index: np.ndarray):
        self.stack, self.index = stack, np.sort(index)
        self.name, self.dtype = stack.name, stack.dtype
        self.shape = (len(index), *stack.shape[1:])

    def read(self, begin: int, end: int) -> np.ndarray:
        """Read those of the stack."""
        return self.stack.take(self.index[begin:end])


def checked(
    name: str, shape: tuple[int, int, int], span: tuple[int, int], images: Any
) -> np.ndarray:
    """Return images that were read as they go to the device; refuse those of another size."""
    (begin, end), images = span, np.asarray(images)
    if images.shape != (end - begin, *shape[1:]):
        raise StackError(
            f"{name}: images {begin} to {end - 1} have shape {images.shape}, and "
            f"{(end - begin, *shape[1:])} was expected. Bring all images to one size."
        )
    if images.dtype.kind not in "biuf":
        raise StackError(f"{name} holds {images.dtype}, which are no real numbers.")
    return as_kept(images)


def as_kept(images: Any) -> np.ndarray:
    """Return images in the machine's byte order, small numbers as they are, others as floats."""
    native = np.asarray(images, images.dtype.newbyteorder("="))
    if native.dtype == np.bool_:
        return native.astype(np.uint8)
    return native if native.dtype.name in KEPT else as_floats("images", native, finite=False)
