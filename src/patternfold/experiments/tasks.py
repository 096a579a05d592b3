"""Pieces of work of one experiment: taken from files, done in turn, or handed to a pool."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from patternfold.experiments.base import Done, Values
from patternfold.experiments.durations import expected_seconds
from patternfold.experiments.steps import fingerprint, read_step, save_step, step_path
from patternfold.experiments.workers import Pool, timed

Work = Callable[[], Values]


class Finished(NamedTuple):
    """A step that is done, now or in an earlier run."""

    key: str
    done: Done
    earlier: bool


class _Left(NamedTuple):
    path: Path
    print_: str
    work: Work
    future: Future[Done] | None


class Tasks:
    """Steps kept in a folder; put them in, and take them out as they are finished.

    Parameters
    ----------
    folder : path
        Where files of finished steps are.
    owner : str
        The experiment that the steps belong to.
    pool : Pool, optional
        What does the work; without one it is done here, in turn.
    """

    def __init__(self, folder: Path, owner: str, pool: Pool | None = None) -> None:
        self._folder, self._owner, self._pool = folder, owner, pool
        self._ready: list[Finished] = []
        self._left: dict[str, _Left] = {}
        self.keys: list[str] = []

    @property
    def n_left(self) -> int:
        """Number of steps that are still to do."""
        return len(self._left)

    def __bool__(self) -> bool:
        return bool(self._ready or self._left)

    def put(self, key: str, work: Work) -> None:
        """Add a step."""
        path, print_ = step_path(self._folder, key), fingerprint(work)
        self.keys.append(key)
        found = read_step(path, print_)
        if found is not None:
            self._ready.append(Finished(key, found, True))
            return
        future = None
        if self._pool is not None:
            weight = expected_seconds(self._owner, key)
            future = self._pool.submit(f"{path} {print_}", work, weight)
        self._left[key] = _Left(path, print_, work, future)

    def take(self) -> Finished:
        """Wait for the next step that is finished, and keep its result."""
        if self._ready:
            return self._ready.pop(0)
        key, done = self._next()
        left = self._left.pop(key)
        save_step(left.path, done, left.print_)
        # What was written and what is read back are alike in every run.
        found = read_step(left.path, left.print_)
        assert found is not None, f"{left.path} can't be read back"
        return Finished(key, found, False)

    def _next(self) -> tuple[str, Done]:
        if self._pool is None:
            key = next(iter(self._left))
            return key, timed(self._left[key].work)
        futures = {left.future: key for key, left in self._left.items() if left.future}
        self._pool.wait_for_any(futures.keys())
        first = next(future for future in futures if future.done())
        return futures[first], first.result()
