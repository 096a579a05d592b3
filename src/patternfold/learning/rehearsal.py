"""Code that a run will need, compiled beside its beginning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from patternfold.learning.axes import final_frame
from patternfold.learning.pats import refine_atom, update_parameters
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.state import State
from patternfold.learning.tidy import in_mean_light
from patternfold.model.pattern import Pattern

CHOSEN_AT_LEAST = 5
"""Atoms to prepare for where their number is chosen."""


@dataclass(frozen=True)
class Rehearsal:
    """Does once what every later step does, with atoms that stand for a pattern: to compile it."""

    problem: Problem
    settings: Settings

    @property
    def lam(self) -> np.ndarray:
        """The identity for every image."""
        family, images = self.problem.transformation, self.problem.observations
        identity = family.parameters.put_inside(family.identity)
        return np.tile(identity, (len(images), 1)).astype(images.dtype)

    def pattern(self, n_atoms: int) -> Pattern:
        """Faint atoms in the middle of the box Γ."""
        gamma = np.tile(self.problem.atom_box.centre, (n_atoms, 1))
        return self.problem.empty.replace(np.full(n_atoms, 1e-3), gamma)

    def project(self) -> None:
        """Update λ."""
        how = self.settings.projection
        if how in ("global", "local"):
            update_parameters(self.problem, self.settings, how, self.pattern(1), self.lam)
        self.end()

    def end(self) -> None:
        """Fix frame and light, early: who interrupts a run does not want to wait for it then."""
        state = State(self.pattern(1), self.lam, self.problem.energy)
        in_mean_light(self.problem, *final_frame(self.problem, self.settings, state)[:2])

    def refine(self) -> None:
        """Improve an atom on Ê."""
        if self.settings.tangent_refinement and self.settings.n_atoms > 1:
            state = State(self.pattern(1), self.lam, self.problem.energy)
            refine_atom(self.problem, self.settings, state, state.pattern.gamma[0], 1e-3)

    def correct(self) -> None:
        """Correct as many atoms as there will be."""
        if self.settings.refit == "all":
            n_atoms = CHOSEN_AT_LEAST if self.settings.choose else self.settings.n_atoms
            pattern, move = self.pattern(n_atoms), self.settings.projection != "fixed"
            self.problem.equations(pattern, self.lam, self.problem.sparse, move).step(1.0)
