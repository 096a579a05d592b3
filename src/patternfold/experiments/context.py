"""What a running experiment is given: its configuration, and steps that survive interruptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patternfold.experiments.base import Values
from patternfold.experiments.tasks import Finished, Tasks, Work
from patternfold.experiments.workers import Pool

STEPS = "steps"
"""Folder of an experiment's finished steps."""

Then = Callable[[Mapping[str, Values]], Mapping[str, Work]]
"""Which steps can be done, given what those that are finished have found."""


@dataclass
class Context:
    """Configuration, data folder, seed, and cached steps of one run.

    A step is a function of a module, or a `functools.partial` of one with arrays, numbers, strings
    or dataclasses, that returns a dict of arrays and plain values. Its result is kept in a file and
    reused as long as the function and its arguments are the same.

    Attributes
    ----------
    name : str
        Of the experiment.
    configuration : dataclass
        The experiment's own.
    results : path
        Folder of all results; steps are kept in ``results/NAME/steps``.
    data : path, optional
        Folder with image sets, for ``datasets.load_...(context.data)``.
    seed : int
        Of all random numbers.
    quick : bool
        Whether this is a quick look instead of the full run.
    say : callable
        Told how far the run has come.
    pool : Pool, optional
        Processes that do the steps, side by side; without them steps are done in turn.
    seconds : dict
        Seconds that each of the experiment's own steps took.
    """

    name: str
    configuration: Any
    results: Path
    data: Path | None = None
    seed: int = 0
    quick: bool = False
    say: Callable[[str], object] = lambda text: None
    pool: Pool | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def step(self, key: str, function: Work, of: str | None = None) -> Values:
        """Do one piece of work, or take its result from an earlier run.

        With ``of``, the step of another experiment is shared.
        """
        return self.parallel({key: function}, of)[key]

    def parallel(
        self, steps: Mapping[str, Work], of: str | None = None, then: Then | None = None
    ) -> dict[str, Values]:
        """Do pieces of work, side by side if there is a pool, or take their results from files.

        ``then`` is asked after each step for those that can be done now; steps it named before
        don't count. Returns the results by key, in the order of ``steps``.
        """
        owner = of or self.name
        tasks = Tasks(self.results / owner / STEPS, owner, self.pool)
        found: dict[str, Values] = {}
        due: Mapping[str, Work] = steps
        while due or tasks:
            for key, work in due.items():
                tasks.put(key, work)
            if due is steps:
                self._begin(tasks.n_left)
            if not tasks:
                break
            finished = tasks.take()
            found[finished.key] = finished.done.values
            self._tell(finished, tasks.n_left, own=of is None)
            more = then(found) if then else {}
            due = {key: work for key, work in more.items() if key not in tasks.keys}
        return {key: found[key] for key in tasks.keys}

    def _begin(self, n_left: int) -> None:
        n_workers = self.pool.n_workers if self.pool else 1
        if n_left > 1:
            self.say(f"  steps to do: {n_left}, {min(n_workers, n_left)} at a time")
        if self.pool:
            self.pool.arrived(self.name)

    def _tell(self, finished: Finished, n_left: int, own: bool) -> None:
        if own:
            self.seconds[finished.key] = round(finished.done.seconds, 3)
        if finished.earlier:
            self.say(f"  {finished.key}: from an earlier run")
        else:
            self.say(f"  {finished.key}: {finished.done.seconds:.1f} s, steps left: {n_left}")
