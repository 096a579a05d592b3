"""How kernels are compiled."""

from __future__ import annotations

from functools import partial

import jax

# XLA's CPU backend stops at 256-bit vectors unless told otherwise, which costs 30 % where a core
# has 512-bit ones. Other cores, and other backends, are not affected.
compiled = partial(jax.jit, compiler_options={"xla_cpu_prefer_vector_width": 512})
"""`jax.jit` for the outermost function: JAX accepts compiler options nowhere else."""
