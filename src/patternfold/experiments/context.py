"""What a running experiment is given: its configuration, and steps that survive interruptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patternfold.experiments.base import Done, Values
from patternfold.experiments.steps import fingerprint, read_step, save_step, step_path
from patternfold.experiments.workers import cores, do_all

STEPS = "steps"
"""Folder of an experiment's finished steps."""

Work = Callable[[], Values]


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
    seconds: dict[str, float] = field(default_factory=dict)

    def step(self, key: str, function: Work, of: str | None = None) -> Values:
        """Do one piece of work, or take its result from an earlier run.

        With ``of``, the step of another experiment is shared.
        """
        return self.parallel({key: function}, of)[key]

    def parallel(
        self, steps: Mapping[str, Work], of: str | None = None, n_workers: int | None = None
    ) -> dict[str, Values]:
        """Do pieces of work side by side in processes, one per core; those of a quick look in turn.

        Returns the results by key, in the order of ``steps``.
        """
        folder = self.results / (of or self.name) / STEPS
        prints = {key: fingerprint(function) for key, function in steps.items()}
        done = {key: self._find(folder, key, prints[key]) for key in steps}
        left = {key: steps[key] for key, found in done.items() if found is None}
        if n_workers is None:
            n_workers = 1 if self.quick else cores()
        if len(left) > 1:
            self.say(f"  steps to do: {len(left)}, {min(n_workers, len(left))} at a time")
        for count, (key, result) in enumerate(do_all(left, n_workers), 1):
            save_step(step_path(folder, key), result, prints[key])
            # What was written and what is read back are alike in every run.
            done[key] = read_step(step_path(folder, key), prints[key])
            self.say(f"  {key}: {result.seconds:.1f} s, steps left: {len(left) - count}")
        finished = {key: found for key, found in done.items() if found is not None}
        if of is None:
            self.seconds |= {key: round(found.seconds, 3) for key, found in finished.items()}
        return {key: finished[key].values for key in steps}

    def _find(self, folder: Path, key: str, print_: str) -> Done | None:
        found = read_step(step_path(folder, key), print_)
        if found is not None:
            self.say(f"  {key}: from an earlier run")
        return found
