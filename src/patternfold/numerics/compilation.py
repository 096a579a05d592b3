"""How kernels are compiled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper, wraps
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
    # XLA's CPU backend cuts a kernel in 32 parts that are compiled beside each other, which takes a
    # fifth more work. Where there are few cores, another kernel is compiled beside it anyway.
    "xla_cpu_parallel_codegen_split_count": min(32, max(1, (os.cpu_count() or 1) // 2)),
}


# XLA's older emitters compile in half the time. What they make of long chains of operations on all
# pixels of many images runs two to three times as long, of other kernels hardly longer. Newer
# versions have no such choice.
_QUICKLY: dict[str, Any] = {}
if jax.__version_info__ < (0, 11):
    _QUICKLY["xla_cpu_use_fusion_emitters"] = False

# Code that LLVM does not optimise compiles in a third of the time. Loops run ten times as long,
# which a few numbers per image do not show. With its first level a fit would run a third longer.
_SMALL: dict[str, Any] = {"xla_backend_optimization_level": 0}


_REPRODUCIBLY: dict[str, Any] = {
    # On GPUs sums of what many threads add to one place come out as the threads happen to come.
    "xla_gpu_exclude_nondeterministic_ops": True,
}


class Compiled:
    """A function as `jax.jit` compiles it, with options that wait for the backend to be known."""

    def __init__(
        self,
        function: Callable[..., Any],
        hot: bool,
        small: bool,
        scatters: bool,
        **options: Any,
    ):
        @wraps(function)
        def precise(*args: Any, **kwargs: Any) -> Any:
            with jax.default_matmul_precision("highest"):
                return function(*args, **kwargs)

        update_wrapper(self, function)
        self._function, self._how, self._options = precise, (hot, small, scatters), options

    @cached_property
    def _jitted(self) -> Any:
        hot, small, scatters = self._how
        how = _OPTIONS | ({} if hot else _QUICKLY) | (_REPRODUCIBLY if scatters else {})
        if small and jax.default_backend() == "cpu":
            how = how | _SMALL
        return jax.jit(self._function, compiler_options=how, **self._options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function; a user's search for NaN goes on outside of it."""
        asked: Any = jax.config  # whose options its annotations do not know
        if asked.jax_debug_nans or asked.jax_debug_infs:
            # Here NaN stands for what there is not, as a second pose, and infinity for its cost.
            with jax.debug_nans(False), jax.debug_infs(False):
                return self._jitted(*args, **kwargs)
        return self._jitted(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Trace without compiling, as that of `jax.jit`."""
        return self._jitted.lower(*args, **kwargs)


def compiled(
    function: Callable[..., Any],
    hot: bool = False,
    small: bool = False,
    scatters: bool = False,
    **options: Any,
) -> Any:
    """`jax.jit` for the outermost function: JAX accepts compiler options nowhere else.

    A first call mostly waits for the compiler. Unless a kernel is ``hot``, one in which programs
    spend much of their time, it is compiled quickly where XLA leaves the choice. A ``small`` one,
    which computes a few numbers per image, is hardly optimised at all. One that ``scatters``, and
    adds values to places told by others, is made to give the same sums every time.

    Matrix products keep the full precision of their operands, which accelerators do only when told
    so; a product that may be rougher says so itself.
    """
    return Compiled(function, hot, small, scatters, **options)


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
