"""Small work stays on the CPU, whatever the accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import jax


@contextmanager
def on_host() -> Iterator[None]:
    """Run what follows on the CPU, if JAX has been set up with one beside the accelerator."""
    try:
        device = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        device = None
    with nullcontext() if device is None else jax.default_device(device):
        yield
