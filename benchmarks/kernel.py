"""The kernel for GPUs against XLA: the same sums with every loss and with weights, and their times.

    python benchmarks/kernel.py              sums, projection and noise
    python benchmarks/kernel.py sums         one evaluation of cost, slope and metric
    python benchmarks/kernel.py projection   λ and distances of whole projections
    python benchmarks/kernel.py noise        what it takes to estimate a loss's scale

Without a GPU, PATTERNFOLD_FUSED=interpret and --images 64 try whether it runs; times then mean
nothing. The exit status is 1 if kernel and XLA differ by more than rounding.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import robust
from _timing import add_parts, chosen_parts, machine, median_time, print_table, verdict

from patternfold import Huber, StudentT, project
from patternfold.learning.distance import Distance
from patternfold.learning.effort import as_effort
from patternfold.learning.observations import Observations
from patternfold.learning.project import fused
from patternfold.learning.project.expected import noise_of
from patternfold.learning.project.locate import distance_to
from patternfold.learning.project.refine import single
from patternfold.learning.terms import Terms
from patternfold.model.atoms import stack_atoms
from patternfold.model.grid import Grid
from patternfold.numerics.compilation import compiled
from patternfold.numerics.least_squares import Model

LOSSES: dict[str, Any] = {"squared": None, "huber": Huber(), "student-t": StudentT()}

ROUNDING = 1e-4
"""Most that sums may differ, as a share of what they are made of."""

SAME, APART = 1e-3, 1e-3
"""Distances that differ by less than this share are the same; others may be so large a share of
all: where two paths are as good, rounding chooses."""


def noisy(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images with a tenth of the pixels wrong, λ, and weights of pixels, some of them 0."""
    rng = np.random.default_rng(0)
    clean, lam = robust.rendered(robust.TRUTH, n, rng)
    sigma = robust.NOISE * np.sqrt((clean**2).mean())
    images = clean + sigma * rng.standard_normal(clean.shape)
    images[rng.random(images.shape) < 0.1] = 3 * sigma
    weights = np.maximum(rng.uniform(-0.3, 1, images.shape), 0)
    return images.astype(np.float32), lam.astype(np.float32), weights.astype(np.float32)


def differences(own: Model, other: Model) -> list[float]:
    """Largest differences of cost, slope and metric over the rows."""
    size = jnp.sqrt((other.metric**2).sum(axis=(1, 2)))
    cost = jnp.abs(own.cost - other.cost) / other.cost
    slope = jnp.linalg.norm(own.slope - other.slope, axis=1) / jnp.sqrt(other.cost * size)
    metric = jnp.sqrt(((own.metric - other.metric) ** 2).sum(axis=(1, 2))) / size
    return [float(part.max()) for part in (cost, slope, metric)]


def sums(n: int) -> list[tuple[str, bool]]:
    """One evaluation near λ, images on the device."""
    images, lam, weights = noisy(n)
    flat, grid = (a.reshape(n, -1) for a in (images, weights)), Grid(*robust.SHAPE)
    observations = Observations.put(next(flat), grid, pixel_weights=next(flat), size=n)
    atoms, chunk = stack_atoms([robust.TRUTH], np.float32), observations.chunks[0]
    near, index = jnp.asarray(lam + np.float32(0.02)), jnp.arange(n)
    kernel, xla = (compiled(part) for part in (fused.first_order, Distance.first_order))
    rows, worst, base = [], 0.0, 0.0
    for name, loss in LOSSES.items():
        terms = None if loss is None else Terms(loss, np.array([0.05], np.float32))
        distance = single(distance_to(atoms, robust.FAMILY, observations, terms))
        if not fused.is_covered(distance, np.float32):
            raise SystemExit("The kernel needs a GPU, or PATTERNFOLD_FUSED=interpret.")
        for roots in (None, chunk.roots):
            by_kernel = (distance, chunk.images, roots, index, None, near, jnp.ones(n, bool))
            by_xla = (distance, chunk.images, roots, near)
            gaps = differences(kernel(*by_kernel), xla(*by_xla))
            times = [
                median_time(lambda f=f, a=a: jax.block_until_ready(f(*a)), 9)
                for f, a in ((kernel, by_kernel), (xla, by_xla))
            ]
            base, worst = base or times[0], max(worst, *gaps)
            cells = [f"{1e3 * times[0]:.2f}", f"{times[0] / base:.2f}", f"{1e3 * times[1]:.2f}"]
            cells += [f"{gap:.1e}" for gap in gaps]
            rows.append([name, "no" if roots is None else "yes", *cells])
    columns = ["loss", "weights", "kernel, ms", "times squares", "XLA, ms"]
    print_table([*columns, "cost differs", "slope", "metric"], rows)
    return [(f"sums differ by {worst:.1e} <= {ROUNDING:g}", worst <= ROUNDING)]


def projection(n: int) -> list[tuple[str, bool]]:
    """Whole projections with the kernel and without."""
    images, _, weights = noisy(n)
    where = (robust.TRUTH, images, robust.FAMILY)
    switch, claims, rows = os.environ.get(fused.SWITCH, "on"), [], []
    for name, mask in (*((loss, None) for loss in LOSSES), ("huber", weights > 0)):
        found, times = [], []
        for value in (switch, "off"):
            os.environ[fused.SWITCH] = value
            jax.clear_caches()  # what is compiled has chosen its way already
            call = partial(project, *where, loss=name, sample_mask=mask)
            found.append(call())
            times.append(median_time(call, 3))
        own, other = (part.distances for part in found)
        apart = float((np.abs(own - other) > SAME * other).mean())
        better = float((own < (1 - SAME) * other).mean())
        cells = [f"{n / t:.0f}" for t in times] + [f"{apart:.1e}", f"{better:.1e}"]
        rows.append([name, "no" if mask is None else "yes", *cells])
        what = f"{name}{'' if mask is None else ', masked'}: other distances"
        claims.append((f"{what} for {apart:.1e} <= {APART:g} of the images", apart <= APART))
    os.environ[fused.SWITCH] = switch
    columns = ["loss", "mask", "images/s", "XLA, images/s", "other distances", "lower ones"]
    print_table(columns, rows)
    return claims


def noise(n: int) -> list[tuple[str, bool]]:
    """The estimate of the scale, beside the whole projection at a known one."""
    images = noisy(n)[0]
    here = Observations.of("images", images.reshape(n, -1), Grid(*robust.SHAPE))
    where = (here, [robust.TRUTH], robust.FAMILY)
    rows = []
    for name, loss in LOSSES.items():
        if loss is None:
            continue
        estimate = partial(noise_of, *where, loss, [None], as_effort("normal"))
        scale = estimate().scale
        known = loss.with_scale(scale)
        call = partial(project, robust.TRUTH, images, robust.FAMILY, loss=known)
        call()
        times = [median_time(estimate, 5), median_time(call, 3)]
        rows.append([name, f"{scale:.4f}", *(f"{1e3 * t:.1f}" for t in times)])
    print_table(["loss", "scale", "its estimate, ms", "projection without, ms"], rows)
    return []


def main() -> int:
    """Run the chosen parts; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts: dict[str, Any] = {"sums": sums, "projection": projection, "noise": noise}
    add_parts(parser, tuple(parts))
    parser.add_argument("--images", type=int, default=65_536)
    options = parser.parse_args()
    print(machine())
    claims: list[tuple[str, bool]] = []
    for name in chosen_parts(parser, options, tuple(parts), list(parts)):
        print(f"\n{name}")
        claims += parts[name](options.images)
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
