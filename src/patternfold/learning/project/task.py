"""What one call of `project` asks for, whichever images are at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from patternfold.learning.effort import Effort
from patternfold.learning.lighting import Lighting
from patternfold.learning.observations import Observations
from patternfold.learning.project.expected import expected_terms
from patternfold.learning.project.found import BLANK, EMPTY, Found
from patternfold.learning.project.locate import locate, locate_by_lines
from patternfold.learning.project.uncertainty import covariances
from patternfold.learning.terms import Terms
from patternfold.model.grid import Grid
from patternfold.model.losses import AbstractLoss
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation

METHODS = ("levenberg-marquardt", "line-search")
"""How λ is refined: by least squares, or along one parameter at a time as in the paper."""


@dataclass
class Task:
    """Patterns in the unit of the computation, known λ, and how to search.

    ``starts`` and ``mask`` are those of all images. From known λ the bank is left out unless
    ``with_bank`` says otherwise; ``all_poses`` asks for a look at what else is as good.
    """

    patterns: list[Pattern]
    family: AbstractTransformation
    grid: Grid
    lighting: Lighting
    loss: AbstractLoss
    priors: list[Prior | None]
    method: str
    effort: Effort
    starts: np.ndarray | None
    mask: np.ndarray | None
    with_bank: bool
    all_poses: bool
    used: list[list[Terms | None] | None] = field(default_factory=list)
    """The terms of each search that was made; `covariances` are told at those of the first."""

    def observed(self, images: np.ndarray, some: Any) -> Observations:
        """Put some of the images on the devices."""
        own = None if self.mask is None else self.mask[some]
        return Observations.of("images", images, self.grid, own, self.lighting)

    def search(self, images: np.ndarray, some: Any) -> Found:
        """Project some of the images on all patterns."""
        start = None if self.starts is None else self.starts[some]
        here = self.observed(images, some)
        terms = expected_terms(
            here, self.patterns, self.family, self.loss, self.priors, self.effort
        )
        self.used.append(terms)
        everywhere = start is None or self.with_bank
        found = self._found(here, self.method, self.effort, start, everywhere, terms)
        if not self.all_poses:
            return found
        # λ* stays that of the search without error bars: every door gives the same.
        every = (METHODS[0], self.effort.for_all_poses(), found.lam, everywhere, terms)
        return found.with_modes(self._found(here, *every), self.family.parameters)

    def covariances(self, images: np.ndarray, found: Found) -> np.ndarray:
        """The covariance of each λ* of all images, whose search came first."""
        told = ~np.isin(found.status, (BLANK, EMPTY))
        here = self.observed(images, slice(None))
        return covariances(here, self.patterns, self.family, found.lam, told, self.used[0])

    def _found(
        self,
        observations: Observations,
        method: str,
        effort: Effort,
        start: np.ndarray | None,
        everywhere: bool,
        terms: list[Terms | None] | None,
    ) -> Found:
        """Project on all patterns, those of one kind together."""
        kinds = [(p.mother, p.dictionary) for p in self.patterns]
        parts: list[Any] = [None] * len(kinds)
        for kind in kinds:
            alike = [m for m, other in enumerate(kinds) if other == kind and parts[m] is None]
            if not alike:
                continue
            own = None if start is None else start[:, alike]
            where = (observations, [self.patterns[m] for m in alike], self.family, effort, own)
            own_terms = terms and [terms[m] for m in alike]
            if method == "line-search":
                found = locate_by_lines(*where, own_terms)
            else:
                found = locate(*where, everywhere, everywhere, terms=own_terms)
            for k, m in enumerate(alike):
                parts[m] = Found(*(part[:, k] for part in found))
        return Found(*(np.stack(part, axis=1) for part in zip(*parts, strict=True)))
