"""What the benchmarks of the projection share."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import jax
import numpy as np
from _timing import add_parts, chosen_parts, machine, verdict

from patternfold import RotationTranslationScaling

FAMILY = RotationTranslationScaling()
SHAPE = (40, 40)
N_ATOMS = 16


def add_noise(images: np.ndarray, snr: float, rng: np.random.Generator) -> np.ndarray:
    """Add white noise, ``snr`` decibels below the energy of each image."""
    level = np.sqrt((images**2).mean(axis=(1, 2), keepdims=True) * 10 ** (-snr / 10))
    return images + level.astype(images.dtype) * rng.standard_normal(images.shape, images.dtype)


def norms(images: np.ndarray) -> np.ndarray:
    """‖u‖ of each image."""
    return np.linalg.norm(images, axis=(1, 2))


def run_parts(parts: dict[str, Callable[[], bool]], title: str) -> int:
    """Run the parts named on the command line, or all; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=title)
    add_parts(parser, parts)
    chosen = chosen_parts(parser, parser.parse_args(), parts)
    print(f"{machine()}, NumPy {np.__version__}, JAX {jax.__version__} on {jax.default_backend()}")
    passed = all([parts[name]() for name in chosen])
    print(f"\n{verdict(passed)}")
    return 0 if passed else 1
