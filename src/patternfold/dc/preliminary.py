"""Preliminary searches that locate a good region before the DC block, section IV-C."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from patternfold.dc.function import Function
from patternfold.dc.result import Result
from patternfold.model.box import Box


def coarse_grid(function: Function, sizes: int | Sequence[int], n_best: int = 1) -> Result:
    """Try the centres of a regular grid of cells over the box.

    Parameters
    ----------
    function : Function
        f on its box.
    sizes : int or sequence of int
        Number of cells along each variable.
    n_best : int
        ``history`` holds the values of so many of the best cells.
    """
    began = time.perf_counter()
    points = grid_points(function.box, sizes)
    values = function.values(points)
    order = np.argsort(values)[:n_best]
    history = [(float(values[i]), -np.inf) for i in order]
    seconds = time.perf_counter() - began
    best = int(order[0])
    return Result(
        points[best], float(values[best]), -np.inf, "searched", len(points), seconds, history
    )


def grid_points(box: Box, sizes: int | Sequence[int]) -> np.ndarray:
    """Centres of the cells of a regular grid, shape (product of the sizes, s)."""
    counts = [sizes] * box.dim if isinstance(sizes, int) else list(sizes)
    axes = [
        low + width * (np.arange(n) + 0.5) / n
        for low, width, n in zip(box.lower, box.width, counts, strict=True)
    ]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, box.dim)


def particle_swarm(
    function: Function,
    rng: np.random.Generator,
    *,
    n_particles: int = 64,
    max_iter: int = 100,
    start: np.ndarray | None = None,
) -> Result:
    """Particle swarm with the usual constants, all particles evaluated at once.

    Each particle keeps its velocity, is drawn to its own best point and to the swarm's, and is
    stopped by the walls of the box; along periodic variables there are none, and it is drawn the
    shorter way.
    """
    began, box = time.perf_counter(), function.box
    periodic = np.array(box.periodic)
    lower, width = np.array(box.lower), box.width
    # Clerc and Kennedy's constriction: the swarm contracts, not too fast.
    inertia, pull = 0.7298, 1.4962
    at = rng.random((n_particles, box.dim))
    if start is not None:
        at[0] = (start - lower) / width
    velocity = 0.1 * rng.normal(size=at.shape)
    best, best_value = at.copy(), function.values(lower + width * at)
    history = []
    for _ in range(max_iter):
        leader = best[best_value.argmin()]
        to_own, to_leader = rng.random((2, *at.shape))
        own_way, leaders_way = (
            np.where(periodic, (way + 0.5) % 1.0 - 0.5, way) for way in (best - at, leader - at)
        )
        velocity = inertia * velocity + pull * (to_own * own_way + to_leader * leaders_way)
        moved = at + velocity
        at = np.where(periodic, moved % 1.0, np.clip(moved, 0.0, 1.0))
        velocity = np.where(periodic | (at == moved), velocity, 0.0)
        values = function.values(lower + width * at)
        better = values < best_value
        best[better], best_value[better] = at[better], values[better]
        history.append((float(best_value.min()), -np.inf))
    winner = int(best_value.argmin())
    point, value = lower + width * best[winner], float(best_value[winner])
    seconds = time.perf_counter() - began
    return Result(point, value, -np.inf, "searched", max_iter, seconds, history)


def differential_evolution(
    function: Function, seed: int = 0, *, population: int = 12, max_iter: int = 100
) -> Result:
    """Run SciPy's differential evolution, the population evaluated at once and not polished."""
    began, box = time.perf_counter(), function.box
    found = optimize.differential_evolution(
        lambda x: function.values(x.T),
        list(zip(box.lower, box.upper, strict=True)),
        popsize=population,
        maxiter=max_iter,
        polish=False,
        vectorized=True,
        updating="deferred",
        rng=seed,
    )
    seconds = time.perf_counter() - began
    return Result(found.x, float(found.fun), -np.inf, "searched", found.nit, seconds)


def narrow(box: Box, point: np.ndarray, share: float | Sequence[float] = 0.2) -> Box:
    """A box around a point, each side the given share of the whole.

    It is moved inwards where it would stick out, except along a periodic variable, where the
    function goes on.
    """
    half = 0.5 * np.asarray(share) * box.width
    periodic = np.array(box.periodic)
    low_end = np.where(periodic, -np.inf, np.array(box.lower) + half)
    high_end = np.where(periodic, np.inf, np.array(box.upper) - half)
    centre = np.clip(point, low_end, np.maximum(low_end, high_end))
    return Box(box.names, list(centre - half), list(centre + half))
