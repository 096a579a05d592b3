"""Learning from a stream of batches: each is seen once, and what was seen is remembered as sums.

Near a minimum E of all images seen so far is ½ (x − x₀)ᵀ S (x − x₀) in the parameters x of the
atoms, with the λ_i eliminated. Adding a batch moves the minimum by (ρ S + S')⁻¹ g', where S' and
the slope g' are the batch's own: a step that grows shorter as S grows. How much of S is kept, ρ, is
told by two halves of the batch. Where their slopes agree, the pattern is off for both, and the past
misled it; where they do not, they are noise, which only many batches average out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from patternfold.learning.passes import Look, Seen, added, stepped
from patternfold.learning.problem import Problem
from patternfold.learning.refit.eliminate import Reduced
from patternfold.learning.stream.sweep import Model
from patternfold.model.pattern import Pattern

FIRST_DAMPING, MORE, TRIALS = 1e-4, 30.0, 3
"""Damping of a step, how much more a step gets that raised E, and how often that is tried."""


class Moved(NamedTuple):
    """The pattern after a batch, what is remembered, and the batch's λ and errors."""

    pattern: Pattern
    memory: Reduced
    seen: Seen
    error: float
    kept: float
    """ρ, the share of the past that was kept."""


def move(
    model: Model, pattern: Pattern, memory: Reduced | None, images: np.ndarray, weights: Any
) -> Moved:
    """Take a batch (B, H, W) into account."""
    halves = [_half(model, images, weights, slice(k, None, 2)) for k in range(min(2, len(images)))]
    seen = [Look(pattern)(problem, None) for problem in halves]
    parts = [one.sums for one in seen if one.sums is not None]
    batch = added(parts)
    kept = 1 - agreement(parts, batch) if len(parts) == 2 else 1.0
    whole = batch if memory is None else added([_scaled(memory, kept), batch])
    # The past is at its minimum: only the batch has a slope.
    equations = whole._replace(slope=batch.slope)
    before = _error(halves, seen)
    damping, best = FIRST_DAMPING, (pattern, seen, before)
    for _ in range(TRIALS):
        trial = stepped(equations, pattern, halves[0], damping)
        near = Look(trial, everywhere=False, equations=False)
        tried = [near(problem, one.lam) for problem, one in zip(halves, seen, strict=True)]
        error = _error(halves, tried)
        if error < best[2]:
            best = (trial, tried, error)
            break
        damping *= MORE
    return Moved(best[0], whole, _interleaved(best[1]), best[2], kept)


def agreement(halves: list[Reduced], batch: Reduced) -> float:
    """How much the steps of two halves are one: 1 where they agree, 0 where they are noise."""
    ridge = 1e-6 * batch.diagonal + 1e-12 * batch.diagonal.max(initial=0) + 1e-300
    matrix = batch.matrix + np.diag(ridge)
    one, other = (half.slope for half in halves)
    try:
        factor = linalg.cho_factor(matrix)
    except linalg.LinAlgError:
        return 0.0
    first, second = linalg.cho_solve(factor, one), linalg.cho_solve(factor, other)
    size = (one @ first + other @ second) / 2
    return float(np.clip(one @ second / size, 0, 1)) if size > 0 else 0.0


def remembered(
    model: Model, pattern: Pattern, images: np.ndarray, weights: Any, lam: Any
) -> Reduced:
    """The sums of images from which a pattern was learned."""
    problem = _half(model, images, weights, slice(None))
    sums = Look(pattern, everywhere=False)(problem, lam).sums
    assert sums is not None
    return sums


def _half(model: Model, images: np.ndarray, weights: np.ndarray, some: slice) -> Problem:
    """Every other image, on the devices."""
    count = len(range(*some.indices(len(images))))
    return replace(model, block=count).put(images[some], weights[some])


def _scaled(sums: Reduced, share: float) -> Reduced:
    return Reduced(*(share * part for part in sums))


def _error(halves: list[Problem], seen: list[Seen]) -> float:
    pairs = zip(halves, seen, strict=True)
    return float(sum((problem.weights * one.square).sum() for problem, one in pairs))


def _interleaved(parts: list[Seen]) -> Seen:
    """What was seen in both halves, in the order of the images."""
    if len(parts) == 1:
        return parts[0]
    count = sum(len(part.square) for part in parts)

    def together(name: str) -> np.ndarray:
        arrays = [getattr(part, name) for part in parts]
        whole = np.empty((count, *arrays[0].shape[1:]), arrays[0].dtype)
        whole[0::2], whole[1::2] = arrays
        return whole

    lam, square, gain, offset = (together(n) for n in ("lam", "square", "gain", "offset"))
    energy, error = (sum(getattr(part, n) for part in parts) for n in ("energy", "error"))
    return Seen(lam, square, gain, offset, np.asarray(energy), np.asarray(error))
