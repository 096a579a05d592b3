"""A run on two grids: a pattern is learned on cells, and corrected on all pixels at the end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from patternfold.learning.coarse import coarsened
from patternfold.learning.frame import fix_frame
from patternfold.learning.observations import Observations
from patternfold.learning.pats import Learned, correct
from patternfold.learning.problem import Problem, Settings
from patternfold.learning.refit.correct import correct_all
from patternfold.learning.retune import retuned
from patternfold.learning.state import (
    ASKED_TO_STOP,
    INTERRUPTED,
    STOPPED,
    Callback,
    Progress,
    Reporter,
    State,
)

STEPS, TOLERANCE = 6, 1e-3
"""Most steps of the correction on all pixels, and the least share of E by which a step lowers it:
what was learned on cells is off by little."""

PART = 16_384
"""Pixels of a part of a large image: derivatives by all atoms' parameters at so many pixels stay in
the cache, which makes the correction five times as fast as on whole images."""


@dataclass(frozen=True)
class Levels:
    """The same images on all pixels and on cells."""

    fine: Problem
    coarse: Problem

    @cached_property
    def within(self) -> float:
        """Share of the images' energy that lies in differences within cells.

        A pattern that is smooth on the scale of a cell leaves all of it: E = E_cells + this.
        """
        cells = self.fine.grid.n_pixels / self.coarse.grid.n_pixels
        return max(0.0, 1 - cells * self.coarse.energy / self.fine.energy)

    def up(self, error: float) -> float:
        """Normalised error on all pixels, to first order, from that on cells."""
        return self.within + (1 - self.within) * error

    def told(self, callback: Callback | None) -> Callback | None:
        """Return the callback with errors as they are on all pixels."""
        if callback is None:
            return None
        height, width = self.coarse.grid.shape

        def tell(line: Progress) -> object:
            stage = f"{line.stage} ({height}×{width})"
            return callback(line._replace(error=self.up(line.error), stage=stage))

        return tell

    def down(self, reference: Any) -> Any:
        """Return a reference, or the state to go on from, on cells."""
        if isinstance(reference, State):
            error = self.coarse.error(reference.pattern, reference.lam)
            return reference._replace(error=error)
        if not isinstance(reference, np.ndarray):
            return reference
        lighting = self.fine.observations.lighting
        alone = coarsened(
            Observations.put(reference.reshape(1, -1), self.fine.grid, lighting=lighting)
        )
        assert alone is not None  # as the other images are
        return alone.image(0)

    def finish(self, settings: Settings, learned: Learned, callback: Callback | None) -> Learned:
        """Correct everything on all pixels, unless somebody has asked to stop."""
        scale = self.fine.energy
        path = [self.up(error / self.coarse.energy) * scale for error in learned.path]
        report = Reporter(callback, len(self.fine.observations), settings.n_atoms)
        state, reason = learned.state, learned.reason
        try:
            fine, state = retuned(self.fine, state)
            state = state._replace(error=fine.error(state.pattern, state.lam))
            if reason not in STOPPED:
                state = _corrected(fine, settings, state)
                if report(state.pattern.n_atoms, state.error / scale, "all pixels"):
                    reason = ASKED_TO_STOP
        except KeyboardInterrupt:
            reason = INTERRUPTED
        if path:
            path[-1] = state.error if state is not learned.state else path[-1]
        return Learned(state, path, reason)


def _corrected(fine: Problem, settings: Settings, state: State) -> State:
    """Improve everything, or the coefficients, as ``refit`` says; E never rises."""
    if settings.refit == "coefficients":
        return correct(fine, settings, state)
    move = settings.projection != "fixed"
    sampling = fine.sampling(parts_of(fine.grid.n_pixels))
    start = fine.equations(*state[:2], sampling, move)
    new = State(*correct_all(start, STEPS, TOLERANCE))
    if move and fine.anchor is not None:
        pattern, lam = fix_frame(fine, *new[:2])
        new = State(pattern, lam, fine.error(pattern, lam))
    return new if new.error < state.error else state


def parts_of(n_pixels: int) -> tuple[np.ndarray, ...]:
    """All pixels in parts, equally many in each if that can be: fewer shapes to compile."""
    least = -(-n_pixels // PART)
    count = next((k for k in range(least, 2 * least) if n_pixels % k == 0), least)
    return tuple(np.array_split(np.arange(n_pixels), count))
