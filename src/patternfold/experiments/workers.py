"""Processes that do steps side by side, those that take longest first."""

from __future__ import annotations

import heapq
import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from types import TracebackType

from patternfold.experiments.base import Done, Values
from patternfold.numerics.interrupts import listening


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


class Pool:
    """Processes that all experiments of a run share; threads may hand in work at the same time.

    Parameters
    ----------
    n_workers : int
        Number of processes. Together they use the cores at hand, each at least one.
    expected : iterable of str
        Nothing begins until each of these has `arrived`, so that the longest work of all comes
        first.

    Attributes
    ----------
    turn : lock
        Held by the one experiment that does something other than wait for its steps.
    """

    def __init__(self, n_workers: int, expected: Iterable[str] = ()) -> None:
        self.n_workers = n_workers
        self.turn = threading.Lock()
        # JAX keeps threads, which do not survive a fork: new processes start afresh.
        start = multiprocessing.get_context("spawn")
        settings = _thread_settings(n_workers) | _cache_settings()
        self._processes = ProcessPoolExecutor(n_workers, start, _prepare, (settings,))
        self._lock = threading.Lock()
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, Future[Done], Callable[[], Values]]] = []
        self._known: dict[str, Future[Done]] = {}
        self._running = 0
        self._stopped = False
        self._expected = set(expected)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.stop()
        self._processes.shutdown(cancel_futures=True)

    def submit(self, name: str, function: Callable[[], Values], weight: float = 0) -> Future[Done]:
        """Hand in a piece of work; one that has been handed in by the same name is not done twice.

        Of those that wait, the one with the greatest ``weight`` begins first.
        """
        with self._lock:
            if name in self._known:
                return self._known[name]
            future = self._known[name] = Future[Done]()
            heapq.heappush(self._waiting, (-weight, next(self._order), future, function))
        self._begin()
        return future

    def wait_for_any(self, futures: Collection[Future[Done]]) -> None:
        """Let other experiments have their turn until one of these is done."""
        self.turn.release()
        try:
            wait(futures, return_when=FIRST_COMPLETED)
        finally:
            self.turn.acquire()

    def arrived(self, name: str) -> None:
        """Say that an experiment has handed in its first work, or will hand in none."""
        with self._lock:
            self._expected.discard(name)
        self._begin()

    def stop(self) -> None:
        """End all processes at once; whatever waits, or is handed in later, fails."""
        with self._lock:
            self._stopped = True
        self._begin()
        for process in list((self._processes._processes or {}).values()):
            process.terminate()

    def _begin(self) -> None:
        """Begin as much as there are processes for."""
        while True:
            with self._lock:
                held = self._expected or self._running >= self.n_workers
                if not self._waiting or (held and not self._stopped):
                    return
                _, _, future, function = heapq.heappop(self._waiting)
                self._running += 1
            if (
                self._stopped
            ):  # a future that is cancelled would leave those who wait for it waiting
                self._end(future, RuntimeError("the processes were ended."))
                continue
            try:
                inner = self._processes.submit(timed, function)
            except RuntimeError as error:  # processes have ended
                self._end(future, error)
            else:
                inner.add_done_callback(lambda done, future=future: self._finish(future, done))

    def _finish(self, future: Future[Done], inner: Future[Done]) -> None:
        if inner.cancelled():
            self._end(future, RuntimeError("the processes were ended."))
        elif (error := inner.exception()) is not None:
            self._end(future, error)
        else:
            self._end(future, inner.result())
        self._begin()

    def _end(self, future: Future[Done], found: Done | BaseException) -> None:
        with self._lock:
            self._running -= 1
        if isinstance(found, BaseException):
            future.set_exception(found)
        else:
            future.set_result(found)


def _thread_settings(n_workers: int) -> dict[str, str]:
    """Threads of each process: as many as there are cores for it."""
    n_threads = max(1, cores() // n_workers)
    names = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    settings: dict[str, str] = {name: str(n_threads) for name in names}
    if n_threads == 1:
        settings["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return settings


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
    """Begin a worker: its threads, the shared cache, and no life after its parent's."""
    os.environ.update(settings)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
