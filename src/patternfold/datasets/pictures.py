"""Pictures made ready for learning: bright on black, smaller, of unit norm."""

from __future__ import annotations

import numpy as np


def ink(pictures: np.ndarray) -> np.ndarray:
    """Return uint8 pictures as values between 0 and 1, bright on black."""
    bright = np.median(pictures[:, [0, -1]].astype(np.float32)) > 127
    values = pictures.astype(np.float32) / 255
    return 1 - values if bright else values


def shrink(pictures: np.ndarray, factor: int = 2) -> np.ndarray:
    """Average blocks of ``factor`` × ``factor`` pixels."""
    n, height, width = pictures.shape
    if height % factor or width % factor:
        raise ValueError(f"pictures of {height}×{width} pixels cannot be shrunk by {factor}.")
    blocks = pictures.reshape(n, height // factor, factor, width // factor, factor)
    return blocks.mean(axis=(2, 4))


def unit(pictures: np.ndarray) -> np.ndarray:
    """Scale pictures to unit norm, float32; blank ones stay blank."""
    pictures = pictures.astype(np.float32, copy=False)
    norms = np.linalg.norm(pictures, axis=(1, 2), keepdims=True)
    return pictures / np.where(norms > 0, norms, np.float32(1))
