"""Projection of observations on manifolds: a search of all chunks, and again where it misfits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import numpy as np

from patternfold.learning.coarse import coarsened
from patternfold.learning.distance import Distance
from patternfold.learning.effort import Effort
from patternfold.learning.observations import Observations
from patternfold.learning.project.bank import make_bank
from patternfold.learning.project.found import EMPTY, UNFINISHED, Found
from patternfold.learning.project.line_search import line_search
from patternfold.learning.project.search import Scope, search
from patternfold.learning.terms import Terms, stacked
from patternfold.model.atoms import Atoms, stack_atoms
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import AbstractTransformation

MOST_STEPS = 2**30
"""No limit but that of the effort."""

ONE_BY_ONE = ("cpu",)
"""Where patterns are searched for one after the other: code for one pattern, compiled while they
were learned, serves any number. Elsewhere a product of all images and patterns is what is fast."""

AT_ONCE_AGAIN = {"cpu": 8, "gpu": 1024}
"""Images in a chunk of the second search: always as many, so that it is compiled once. All their
candidates together keep the device busy."""

ROOM_FOR_FINALISTS = 2
"""Finalists that code has room for at least: a quick search and a normal one are the same code."""

MORE_ROUNDS = 6
"""Most times that a search which is not done goes on. Where residuals have so little structure that
no second search is called for, steps bring nearly as much as if they had none; where they have
more, this is one way down among many optima, and the second search has others."""

LAST_STEPS = 4
"""Most steps on all pixels of large images, from what was found on cells."""


def locate(
    observations: Observations,
    patterns: Sequence[Pattern],
    transformation: AbstractTransformation,
    effort: Effort,
    start: np.ndarray | None = None,
    everywhere: bool = True,
    with_bank: bool = True,
    describe: bool = True,
    steps: int = MOST_STEPS,
    terms: Sequence[Terms | None] | None = None,
) -> Found:
    """Find the point of every manifold that is nearest to each image.

    Large images are searched for on averages over cells, and λ then improved on all pixels.

    Parameters
    ----------
    observations : Observations
        u_i.
    patterns : sequence of Pattern
        p^m, made of the same mother function and dictionary.
    transformation : transformation
        The family with its box Λ.
    effort : Effort
        How hard to search.
    start : array of shape (N, M, d), optional
        Known λ, to be improved.
    everywhere : bool
        Search over the whole box; otherwise only near ``start``.
    with_bank : bool
        Whether the code that searches the whole box is compiled in. A local search takes less
        compiling without it, none at all where global ones come before or after.
    describe : bool
        Whether to tell how searches ended, and the misfit.
    steps : int
        Most steps on all pixels, if that is less than ``effort`` allows.
    terms : sequence of Terms, optional
        Loss and prior of each pattern, all with the same parts.

    Returns
    -------
    Found
        NumPy arrays with one row per image.
    """
    if everywhere and start is None and (coarse := coarsened(observations)) is not None:
        share = coarse.grid.n_pixels / observations.grid.n_pixels
        on_cells = None if terms is None else [None if t is None else t.on(share) for t in terms]
        found = locate(coarse, patterns, transformation, effort, describe=describe, terms=on_cells)
        last = replace(effort, max_iter=LAST_STEPS, newton_after=LAST_STEPS, again=None)
        how = (last, found.lam, False, False, describe)
        return locate(observations, patterns, transformation, *how, terms=terms)
    terms = [None] * len(patterns) if terms is None else terms
    places = [[m] for m in range(len(patterns))]
    if jax.default_backend() not in ONE_BY_ONE:
        places = [list(range(len(patterns)))]
    parts = []
    for some in places:
        own = None if start is None else start[:, some]
        where = (observations, [patterns[m] for m in some], transformation, effort, own)
        own_terms = stacked([terms[m] for m in some])
        parts.append(_locate_once(*where, everywhere, with_bank, describe, steps, own_terms))
    found = Found(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))
    if effort.again is not None and everywhere and len(observations):
        where = (observations, patterns, transformation, effort)
        found = Found(*(np.array(part) for part in found))
        for some in places:
            _go_on(*where, found, terms, some)
        _again(*where, found, terms)
    return _with_empty(observations, patterns, transformation, found)


def distance_to(
    atoms: Atoms,
    transformation: AbstractTransformation,
    observations: Observations,
    terms: Terms | None = None,
) -> Distance:
    """The distance on all pixels."""
    grid, dtype = observations.grid, observations.dtype
    x, y = grid.x.astype(dtype), grid.y.astype(dtype)
    return Distance(atoms, transformation, x, y, observations.lighting, terms=terms)


def locate_by_lines(
    observations: Observations,
    patterns: Sequence[Pattern],
    transformation: AbstractTransformation,
    effort: Effort,
    start: np.ndarray | None,
    terms: Sequence[Terms | None] | None = None,
) -> Found:
    """The paper's projection: the best template or ``start``, then line searches."""
    atoms = stack_atoms(patterns, observations.dtype)
    bank = None
    if start is None:
        bank = make_bank(atoms, transformation, observations.grid, effort, observations.lighting)
    own_terms = None if terms is None else stacked(terms)
    distance = distance_to(atoms, transformation, observations, own_terms)
    stage = partial(line_search, bank=bank, distance=distance, max_iter=effort.max_iter)
    lam, square, status = observations.map(stage, start)
    found = Found.undescribed(lam, square)._replace(status=status)
    return _with_empty(observations, patterns, transformation, found)


def _locate_once(
    observations: Observations,
    patterns: Sequence[Pattern],
    transformation: AbstractTransformation,
    effort: Effort,
    start: np.ndarray | None,
    everywhere: bool,
    with_bank: bool = True,
    describe: bool = True,
    steps: int = MOST_STEPS,
    terms: Terms | None = None,
) -> Found:
    grid, dtype = observations.grid, observations.dtype
    atoms = stack_atoms(patterns, dtype)
    where = (atoms, transformation, grid, effort, observations.lighting, terms)
    stage = partial(
        search,
        bank=make_bank(*where) if with_bank else None,
        distance=distance_to(atoms, transformation, observations, terms),
        scope=Scope(
            np.asarray(everywhere),
            np.asarray(start is not None),
            np.asarray(steps, np.int32),
            np.asarray(effort.n_finalists, np.int32),
        ),
        effort=_as_compiled(effort),
        grid=grid,
        describe=describe,
    )
    if start is None:
        middle = transformation.parameters.centre.astype(dtype)
        start = np.broadcast_to(middle, (len(observations), len(patterns), len(middle)))
    found = observations.map(stage, start.astype(dtype, copy=False))
    return found if describe else Found.undescribed(*found)


def _as_compiled(effort: Effort) -> Effort:
    """The effort as it shapes compiled code.

    What follows is no part of a search and must not make it compile again; nor must a finalist
    less, for which efforts of one shape have room.
    """
    room = max(effort.n_finalists, ROOM_FOR_FINALISTS)
    return replace(effort, again=None, misfit=0.0, unfinished=0.0, n_finalists=room)


def _again(
    observations: Observations,
    patterns: Sequence[Pattern],
    transformation: AbstractTransformation,
    effort: Effort,
    found: Found,
    terms: Sequence[Terms | None],
) -> None:
    """Search at length for the images that a pattern does not fit; ``found`` changes in place."""
    for m, pattern in enumerate(patterns):
        misfit = np.flatnonzero(found.misfit[:, m] > effort.misfit)
        if not len(misfit) or not pattern.n_atoms or effort.again is None:
            continue
        part = observations.take(misfit, size=_size_again(observations))
        start, own = found.lam[misfit, m : m + 1], stacked([terms[m]])
        how = (effort.again, start, True)
        again = _locate_once(part, [pattern], transformation, *how, terms=own)
        better = again.square[:, 0] <= found.square[misfit, m]
        for whole, new in zip(found, again, strict=True):
            whole[misfit[better], m] = new[better, 0]


def _go_on(
    observations: Observations,
    patterns: Sequence[Pattern],
    transformation: AbstractTransformation,
    effort: Effort,
    found: Found,
    terms: Sequence[Terms | None],
    some: list[int],
) -> None:
    """Go on from λ with searches that are not done; ``found`` changes in place.

    The code that began them takes them on, with as many steps in every round.
    """
    size, own_terms = len(observations.chunks[0].images), stacked([terms[m] for m in some])
    own = [patterns[m] for m in some]
    for _ in range(MORE_ROUNDS):
        going = found.misfit[:, some] > effort.unfinished
        going &= found.status[:, some] == UNFINISHED
        index = np.flatnonzero(going.any(axis=1))
        if not len(index):
            return
        part, start = observations.take(index, size=size), found.lam[index][:, some]
        new = _locate_once(part, own, transformation, effort, start, False, terms=own_terms)
        better = going[index] & (new.square <= found.square[index][:, some])
        row, column = np.nonzero(better)
        place = (index[row], np.asarray(some)[column])
        for name in ("lam", "square", "status", "misfit", "gain", "offset"):
            getattr(found, name)[place] = getattr(new, name)[row, column]
        # Other poses stay what the search over the box came upon.
        found.modes[(*place, 0)] = new.lam[row, column]
        found.mode_squares[(*place, 0)] = new.square[row, column]


def _size_again(observations: Observations) -> int | None:
    """Images per chunk in the second search, None for as many as there are."""
    at_once = AT_ONCE_AGAIN.get(jax.default_backend())
    return None if at_once is None else min(at_once, len(observations.chunks[0].images))


def _with_empty(
    observations: Observations,
    patterns: Sequence[Pattern],
    transformation: AbstractTransformation,
    found: Found,
) -> Found:
    """Every pose is as good for a pattern without atoms: the identity is given."""
    empty = [m for m, pattern in enumerate(patterns) if not pattern.n_atoms]
    if not empty:
        return found
    found = Found(*(np.array(part) for part in found))
    identity = transformation.parameters.put_inside(transformation.identity)
    for m in empty:
        found.lam[:, m] = identity
        found.square[:, m] = observations.squares
        found.status[:, m] = EMPTY
    return found
