"""How many atoms: grown until further ones bring little, also to images that took no part.

The error of the images that are learned from always falls, in the end by following noise. It is
judged on others, held out, or, where there are too few to spare, corrected for the freedom that
the atoms have. All of it happens along one run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from patternfold.learning.many import GROWN_ON
from patternfold.learning.mean_image import distances_to_mean
from patternfold.learning.pats import update_parameters
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.retune import retuned
from patternfold.learning.state import State

MOST_CHOSEN = 40
"""Most atoms that are chosen."""

WINDOW = 3
"""Atoms over which the error is compared: all is corrected after every third of the later ones."""

WORTH, LEAST = 0.01, 0.0005
"""An atom is worth having if it lowers the error by this share of it, and by the other share of the
images' energy besides, of which nobody asks how it is made up."""

HELD_OUT = 4
"""One image in so many is held out."""

FEWEST = 12
"""Fewer images all take part: one or two held out would say little."""

FREEDOM = 3.0
"""Times its parameters that an atom can follow noise, since it is the best of many."""


class Judge(ABC):
    """Tells the normalised error of a state, as it is or would be where nothing was learned from.

    ``what`` says in a few words which error that is.
    """

    what: ClassVar[str]

    @abstractmethod
    def __call__(self, state: State) -> float:
        """Return the error."""


@dataclass
class HeldOut(Judge):
    """Mean of two errors: of images that took no part, and of those that did.

    The first alone would be right, but a few images are too few to tell by themselves; noise that
    the second follows costs the first as much.
    """

    problem: Problem
    settings: Settings
    energy: float
    """Of the images that take part."""
    lam: np.ndarray | None = None
    what: ClassVar[str] = "held-out images count half"

    def __call__(self, state: State) -> float:
        """Search λ of the images held out over the box, since the frame may have moved."""
        if self.lam is None:
            family = self.problem.transformation.parameters
            self.lam = np.tile(family.centre, (len(self.problem.observations), 1))
        lam = self.lam.astype(self.problem.observations.dtype)
        found = update_parameters(self.problem, self.settings, "global", state.pattern, lam)
        tuned, found = retuned(self.problem, found)
        if tuned.terms is not None:  # costs as those of the images that take part
            found = update_parameters(tuned, self.settings, "local", *found[:2])
        self.lam = found.lam
        return (found.error / self.problem.energy + state.error / self.energy) / 2


@dataclass
class Corrected(Judge):
    """Error of the images themselves, corrected as by generalised cross-validation.

    The correction divides by (1 − f)², f the parameters for each pixel: exact for white noise and
    models that are linear in their parameters.
    """

    problem: Problem
    what: ClassVar[str] = "corrected for the number of parameters"

    def __call__(self, state: State) -> float:
        """Count the parameters of the atoms and λ."""
        n_images, dim = state.lam.shape
        size = state.pattern.gamma.shape[1] + 1
        free = FREEDOM * size * state.pattern.n_atoms + n_images * dim
        share = min(0.9, free / (n_images * self.problem.grid.n_pixels))
        return state.error / self.problem.energy / (1 - share) ** 2


@dataclass
class Choice:
    """Follows a run, tells it when to stop, and chooses the number of atoms."""

    judge: Judge
    states: list[State] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    def __call__(self, state: State) -> bool:
        """Take note of the state after an atom; True where further atoms bring little."""
        self.states.append(state)
        self.errors.append(self.judge(state) + LEAST / WORTH)
        if len(self.errors) <= WINDOW:
            return False
        return min(self.errors[-WINDOW:]) > (1 - WORTH * WINDOW) * min(self.errors[:-WINDOW])

    @property
    def chosen(self) -> State:
        """The smallest pattern such that each atom beyond it is worth less than it takes."""
        errors = np.array(self.errors)
        further = np.arange(len(errors))
        return self.states[int(np.argmin(errors * (1 - WORTH) ** -further))]

    @property
    def reason(self) -> str:
        """Say what was chosen and why."""
        n_atoms = self.chosen.pattern.n_atoms
        more = self.states[-1].pattern.n_atoms - n_atoms
        words = f"{n_atoms} atom{'s were' if n_atoms > 1 else ' was'} chosen"
        if not more:
            return f"{words}, the most that n_atoms='auto' takes or that lower the error"
        return f"{words}: {more} more did too little for the error, {self.judge.what}"


def split(problem: Problem, settings: Settings) -> tuple[np.ndarray, np.ndarray] | None:
    """Images to learn from and images to hold out, as indices; None if all are to take part.

    Both are spread over the images in the order of their distance to the mean, so that the choice
    does not depend on the order in which images are given. The anchor takes part.
    """
    possible = settings.refit == "all" and settings.projection == "global"
    n_images = len(problem.observations)
    if not possible or n_images < FEWEST:
        return None
    order = np.argsort(distances_to_mean(problem.observations), kind="stable")
    held = np.arange(n_images) % HELD_OUT == HELD_OUT // 2
    own = _thinned(order[~held], GROWN_ON)
    if problem.anchor is not None and problem.anchor not in own:
        own = np.append(own, problem.anchor)
    others = order[held & (order != problem.anchor)]
    return own, _thinned(others, GROWN_ON // (HELD_OUT - 1))


def _thinned(index: np.ndarray, most: int) -> np.ndarray:
    """At most so many of them, at even steps."""
    if len(index) <= most:
        return index
    return index[np.linspace(0, len(index) - 1, most).round().astype(int)]
