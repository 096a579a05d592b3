"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Event, Thread
from typing import Any

import jax

from patternfold.numerics.precision import precision

_OPTIONS = {
    # XLA's CPU backend stops at 256-bit vectors unless told otherwise, which costs 30 % where a
    # core has 512-bit ones. Other cores are not affected.
    "xla_cpu_prefer_vector_width": 512,
    # On GPUs, trying many kernels for each matrix product takes three times as long as all other
    # compiling, and gains nothing that was measured.
    "xla_gpu_enable_triton_gemm": False,
}


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


@contextmanager
def warm_up(work: Callable[[], object], dtype: Any) -> Iterator[None]:
    """Do some work beside the block, only for what it compiles; wait for it at the end.

    Compiling takes one core: what is needed later may as well be compiled on another. Errors are
    not reported; they come again where the work is done for its result. Where the block fails, or
    the waiting is interrupted, the work ends by itself.
    """
    done = Event()

    def run() -> None:
        try:
            with precision(dtype):
                work()
        except Exception:
            return
        finally:
            done.set()

    # No daemon: Python waits for it at the end of the program. Compiling while everything is taken
    # down around it ends in a segmentation fault.
    Thread(target=run, daemon=False).start()
    yield
    done.wait()  # an interrupted Thread.join would take the thread for finished
