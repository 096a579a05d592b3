"""Floating-point precision: results follow the input, the global JAX setting is left as found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from patternfold.numerics.forks import require_own_threads


def working_dtype(*arrays: Any) -> np.dtype:
    """Return float64 if any of the arrays is float64, else float32."""
    double = any(getattr(a, "dtype", None) == np.float64 for a in arrays)
    return np.dtype(np.float64 if double else np.float32)


@contextmanager
def precision(dtype: np.dtype) -> Iterator[None]:
    """Run JAX code in ``dtype``: float64 needs its 64-bit mode, for this block only.

    In a process where JAX would wait forever this is refused.
    """
    require_own_threads()
    with jax.enable_x64(np.dtype(dtype) == np.float64):
        yield
