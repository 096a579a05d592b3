"""Tasks of a benchmark, several at a time in processes that share one device; results are kept."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

Task = tuple[Any, ...]
"""Arguments of a measurement: plain values, which also name its result."""


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the options of `measured`."""
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the device")
    parser.add_argument("--keep", type=Path, help="file .json that keeps results: run it again to "
                        "go on where a run was cut off")  # fmt: skip


def measured(
    measure: Callable[..., Any], tasks: Sequence[Task], options: argparse.Namespace
) -> dict[Task, Any]:
    """Measure all tasks that were not kept; print each as it comes.

    ``measure`` is a function of a module, and its results are what JSON holds.
    """
    kept = _kept(options.keep)
    wanted = list(dict.fromkeys(tasks))
    left = [task for task in wanted if _name(measure, task) not in kept]
    for task, result, seconds in _results(measure, left, options.jobs):
        kept[_name(measure, task)] = result
        if options.keep:
            options.keep.write_text(json.dumps(kept, indent=1))
        print(f"  {' '.join(map(str, task))}: {result} ({seconds:.0f} s)", flush=True)
    return {task: kept[_name(measure, task)] for task in wanted}


def _name(measure: Callable[..., Any], task: Task) -> str:
    return " ".join([measure.__name__, *map(str, task)])


def _kept(path: Path | None) -> dict[str, Any]:
    return json.loads(path.read_text()) if path and path.exists() else {}


def _timed(measure: Callable[..., Any], task: Task) -> tuple[Any, float]:
    started = time.perf_counter()
    return measure(*task), time.perf_counter() - started


def _results(
    measure: Callable[..., Any], tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[Task, Any, float]]:
    """Yield tasks with results and seconds, in the order in which they are done."""
    if jobs <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield task, *_timed(measure, task)
        return
    # Each process takes of the device's memory what it needs, and all share what is compiled.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    folder = Path(tempfile.gettempdir(), "patternfold-benchmarks")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context) as pool:
        futures: dict[Future[Any], Task] = {
            pool.submit(_timed, measure, task): task for task in tasks
        }
        for future in as_completed(futures):
            yield futures[future], *future.result()
