"""Processes that do steps side by side, one core for each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed

from patternfold.experiments.base import Done, Values
from patternfold.numerics.interrupts import listening

_ONE_THREAD = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def timed(function: Callable[[], Values]) -> Done:
    """Do a piece of work and take the time.

    After Ctrl-C a learner ends with what it has; that is no result of the work, and is not kept.
    """
    started = time.perf_counter()
    with listening() as interrupts:
        values = function()
        interrupts.check()
    return Done(values, time.perf_counter() - started)


def do_all(work: Mapping[str, Callable[[], Values]], n_workers: int) -> Iterator[tuple[str, Done]]:
    """Do pieces of work by name and yield each as it is finished."""
    n_workers = min(n_workers, len(work))
    if n_workers <= 1:
        for key, function in work.items():
            yield key, timed(function)
        return
    # JAX keeps threads, which do not survive a fork: new processes start afresh.
    start = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n_workers, start, _prepare, (_cache_settings(),))
    try:
        names = {pool.submit(timed, function): key for key, function in work.items()}
        for future in as_completed(names):
            yield names[future], future.result()
    except BaseException:
        for process in list(pool._processes.values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _cache_settings() -> dict[str, str]:
    """Return where this process keeps compiled code, so that others use it too."""
    import jax

    folder = getattr(jax.config, "jax_compilation_cache_dir", None)
    if not folder:
        return {}
    return {
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }


def _prepare(settings: Mapping[str, str]) -> None:
    """Begin a worker: one thread, the shared cache, and no life after its parent's."""
    os.environ.update(_ONE_THREAD)
    os.environ.update(settings)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
