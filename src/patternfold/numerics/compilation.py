"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax

# XLA's CPU backend stops at 256-bit vectors unless told otherwise, which costs 30 % where a core
# has 512-bit ones. Other cores, and other backends, are not affected.
_OPTIONS = {"xla_cpu_prefer_vector_width": 512}


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit` for the outermost function: JAX accepts compiler options nowhere else.

    Matrix products keep the full precision of their operands, which accelerators do only when told
    so; a product that may be rougher says so itself.
    """

    @wraps(function)
    def precise(*args: Any, **kwargs: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return jax.jit(precise, compiler_options=_OPTIONS, **options)
