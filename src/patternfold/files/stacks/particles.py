"""Stacks of particles: MRC files, and STAR files that list sections of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from patternfold.files.mrc import map_sections
from patternfold.files.stacks.base import FileStack
from patternfold.files.star import read_places
from patternfold.learning.stream.stack import StackError


class MrcStack(FileStack):
    """The sections of an MRC file, mapped into memory."""

    def open(self) -> Any:
        """Map the file."""
        return map_sections(self.path)


class StarStack(FileStack):
    """The particles that a STAR file of RELION lists, in its order."""

    def open(self) -> Any:
        """Read the table; stacks are mapped as they are needed."""
        return _Listed(self.name, *read_places(self.path))


class _Listed:
    """Sections of several files, one after the other."""

    def __init__(self, name: str, files: list[Path], which: np.ndarray, sections: np.ndarray):
        self.name, self.files, self.which, self.sections = name, files, which, sections
        self._maps: dict[int, np.ndarray] = {}
        first = self._map(int(which[0]))
        self.shape, self.dtype = (len(which), *first.shape[1:]), first.dtype

    def _map(self, k: int) -> np.ndarray:
        if k not in self._maps:
            self._maps[k] = map_sections(self.files[k])
        return self._maps[k]

    def __getitem__(self, rows: slice) -> np.ndarray:
        which, sections = self.which[rows], self.sections[rows]
        found = np.empty((len(which), *self.shape[1:]), self.dtype)
        for k in np.unique(which):
            stack, own = self._map(int(k)), which == k
            if stack.shape[1:] != self.shape[1:]:
                raise StackError(
                    f"{self.files[k]} has images of {stack.shape[1:]} pixels, and the first of "
                    f"{self.name} have {self.shape[1:]}. Extract all particles at one size."
                )
            if sections[own].max() >= len(stack):
                raise StackError(
                    f"{self.files[k]} has {len(stack)} sections, and {self.name} names number "
                    f"{sections[own].max() + 1}. Restore the file from a copy."
                )
            found[own] = stack[sections[own]]
        return found
