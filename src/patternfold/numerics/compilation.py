"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Event, Thread
from typing import Any

import jax

from patternfold.numerics.interrupts import check_interrupts
from patternfold.numerics.precision import precision

_OPTIONS: dict[str, Any] = {
    # XLA's CPU backend stops at 256-bit vectors unless told otherwise, which costs 30 % where a
    # core has 512-bit ones. Other cores are not affected.
    "xla_cpu_prefer_vector_width": 512,
    # On GPUs, trying many kernels for each matrix product takes three times as long as all other
    # compiling, and gains nothing that was measured.
    "xla_gpu_enable_triton_gemm": False,
}


_QUICKLY: dict[str, Any] = {}
if jax.__version_info__ < (0, 11):
    # XLA's older emitters compile in half the time. What they make of long chains of operations on
    # all pixels of many images runs two to three times as long, of other kernels hardly longer.
    _QUICKLY["xla_cpu_use_fusion_emitters"] = False


def compiled(function: Callable[..., Any], hot: bool = False, **options: Any) -> Any:
    """`jax.jit` for the outermost function: JAX accepts compiler options nowhere else.

    A first call mostly waits for the compiler. Unless a kernel is ``hot``, one in which programs
    spend much of their time, it is compiled quickly where XLA leaves the choice.

    Matrix products keep the full precision of their operands, which accelerators do only when told
    so; a product that may be rougher says so itself.
    """

    @wraps(function)
    def precise(*args: Any, **kwargs: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    how = _OPTIONS if hot else _OPTIONS | _QUICKLY
    return jax.jit(precise, compiler_options=how, **options)


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
    check_interrupts()  # who ends with what there is does not wait for what comes next
    done.wait()  # an interrupted Thread.join would take the thread for finished
