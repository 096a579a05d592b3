"""Several experiments at the same time, their steps on the same processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from patternfold.datasets import MissingData
from patternfold.experiments.context import STEPS
from patternfold.experiments.registry import ENTRIES
from patternfold.experiments.results import Record, run_experiment
from patternfold.experiments.workers import Pool


def run_together(
    names: Sequence[str],
    results: Path,
    jobs: int,
    *,
    data: Path | None = None,
    seed: int = 0,
    quick: bool = False,
    force: bool = False,
    say: Callable[[str], object] = lambda text: None,
) -> Iterator[tuple[str, Record | MissingData]]:
    """Run experiments by name and yield each as it is finished, or what it lacks.

    With ``jobs`` = 1 all is done in this process, one step after the other; otherwise steps of all
    experiments share that many processes. Other parameters are those of `run_experiment`.
    """
    if force:  # before any begins: they share steps
        for name in names:
            shutil.rmtree(results / name / STEPS, ignore_errors=True)

    def run(name: str, pool: Pool | None) -> Record | MissingData:
        def tell(text: str) -> None:
            say(f"  {name}: {text.strip()}" if pool and len(names) > 1 else text)

        say(f"{name}: {ENTRIES[name].title}")
        options: dict[str, Any] = {
            "data": data,
            "seed": seed,
            "quick": quick,
            "say": tell,
            "pool": pool,
        }
        try:
            return run_experiment(name, results, **options)
        except MissingData as error:
            return error
        finally:
            if pool:
                pool.arrived(name)

    if jobs == 1:
        for name in names:
            yield name, run(name, None)
        return
    # The pool ends first: threads that wait for it would not.
    with ThreadPoolExecutor(len(names)) as threads, Pool(jobs, names) as pool:
        futures = {threads.submit(run, name, pool): name for name in names}
        for future in as_completed(futures):
            yield futures[future], future.result()
