"""How the cost grows with images, pixels, atoms, classes and the dictionary: Section V."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from patternfold import JPATS, PATS, AtomDictionary, Box, Grid, datasets
from patternfold.baselines import SimultaneousMatchingPursuit
from patternfold.dc import ByRules, frozen_error
from patternfold.dc.decompositions import VARIABLES
from patternfold.experiments import drawing
from patternfold.experiments.base import Claim, Experiment, Outcome, Picture, Values
from patternfold.experiments.context import Context, Work

AT_MOST = 0.15
"""What an exponent may exceed a whole number by: the largest sizes leave the processor's caches."""

N_POINTS = 8
"""Atoms at which the decomposition is evaluated."""

NOTES = (
    "Warm times, without compilation, the best of two calls, on images of synthetic patterns, "
    "those of JPATS for each iteration, each on a core of its own where several are measured at a "
    "time; exponents are slopes of straight lines through logarithms of sizes and times. Fixed "
    "costs make them smaller than they are for large sizes.",
)
AXES = {
    "images": ("images N", "published", "ours", "decomposition", "SMP"),
    "pixels": ("pixels n", "published", "ours", "decomposition", "SMP"),
    "atoms": ("atoms K", "published", "ours"),
    "classes": ("classes M", "JPATS", "JPATS-ours"),
    "dictionary": ("centres of sampled atoms, in proportion to D", "SMP"),
}
LABELS = {
    "published": "PATS, atoms by search",
    "ours": "ours (default)",
    "decomposition": "DC decomposition of Ẽ",
    "SMP": "SMP",
    "JPATS": "JPATS, atoms by search",
    "JPATS-ours": "ours (default JPATS)",
}


@dataclass(frozen=True)
class Configuration:
    """Sizes that are timed; those of the other axes stay at the middle ones.

    Attributes
    ----------
    images, sides, atoms, classes : sequence of int
        Numbers of images, pixels along a side, atoms, and classes of ``per_class`` images.
    steps : sequence of float
        Pixels between the centres of sampled atoms.
    per_class : int
        Images of each class.
    """

    images: Sequence[int] = (40, 80, 160, 320)
    sides: Sequence[int] = (24, 32, 48, 64)
    atoms: Sequence[int] = (4, 8, 16)
    classes: Sequence[int] = (2, 3, 5)
    steps: Sequence[float] = (4.0, 3.0, 2.0, 1.5)
    per_class: int = 30


@dataclass(frozen=True)
class Size:
    """One point that is timed."""

    images: int
    side: int
    atoms: int = 4
    classes: int = 1
    step: float = 2.0


def sizes_of(axis: str, configuration: Configuration) -> dict[float, Size]:
    """Return what is timed along an axis, by its place there."""
    n, side, c = configuration.images[0], configuration.sides[0], configuration
    if axis == "images":
        return {k: Size(k, side) for k in c.images}
    if axis == "pixels":
        return {s * s: Size(n, s) for s in c.sides}
    if axis == "atoms":
        return {k: Size(n, side, atoms=k) for k in c.atoms}
    if axis == "classes":
        return {m: Size(c.per_class, side, classes=m) for m in c.classes}
    return {round((side / s) ** 2): Size(n, side, step=s) for s in c.steps}


def measure(method: str, size: Size) -> Values:
    """Step: the best of two warm calls."""
    rng = np.random.default_rng(0)
    shape = (size.side, size.side)
    parts = [
        datasets.random_images(
            datasets.random_pattern(6, rng), size.images, rng, shape=shape, noise=0.01
        )[0]
        for _ in range(size.classes)
    ]
    images, labels = np.concatenate(parts), np.repeat(np.arange(size.classes), size.images)
    fit = fits(size)[method]
    times = []
    for _ in range(3):
        started = time.perf_counter()
        found = fit(images, labels)
        # Joint learning may end early; what one of its iterations takes does not depend on that.
        n = max(1, getattr(found, "n_iter_", 1)) if size.classes > 1 else 1
        times.append((time.perf_counter() - started) / n)
    return {"seconds": min(times[1:]), "first": times[0]}


def fits(size: Size) -> Mapping[str, Callable[[np.ndarray, np.ndarray], object]]:
    """Return what each method does with images and labels."""
    k = size.atoms
    models = {
        "published": PATS.paper(k, solver="search", random_state=0),
        "ours": PATS(k, tol=0, random_state=0),
        "SMP": SimultaneousMatchingPursuit(k, step=size.step),
        "JPATS": JPATS.paper(k, solver="search", random_state=0),
        "JPATS-ours": JPATS(k, random_state=0),
    }
    return {name: model.fit for name, model in models.items()} | {"decomposition": decompose}


def decompose(images: np.ndarray, labels: np.ndarray) -> None:
    """Evaluate both parts of the paper's decomposition of Ẽ, for the first atom, at some atoms."""
    grid = Grid(*images.shape[1:])
    gamma = AtomDictionary().parameters
    box = Box(VARIABLES, [*gamma.lower, -0.5], [*gamma.upper, 0.5], periodic=["psi"])
    x, y = np.tile(grid.x, len(images)), np.tile(grid.y, len(images))
    error = frozen_error(x, y, images.ravel(), np.ones(images.size), box)
    ByRules(error, "paper").g(box.sample(np.random.default_rng(0), N_POINTS))


def run(context: Context) -> Outcome:
    """Time all methods along all axes."""
    configuration: Configuration = context.configuration
    places = {axis: sizes_of(axis, configuration) for axis in AXES}
    work: dict[str, Work] = {
        f"{axis}-{method}-{place}": partial(measure, method, size)
        for axis, (_, *methods) in AXES.items()
        for method in methods
        for place, size in places[axis].items()
    }
    found = context.parallel(work)
    times = {
        axis: {
            method: np.array([found[f"{axis}-{method}-{p}"]["seconds"] for p in places[axis]])
            for method in methods
        }
        for axis, (_, *methods) in AXES.items()
    }
    power = {
        axis: {method: exponent(list(places[axis]), line) for method, line in lines.items()}
        for axis, lines in times.items()
    }
    rows = [
        {"axis": axis, "method": LABELS[method], "size": place, "seconds": float(seconds)}
        for axis, lines in times.items()
        for method, line in lines.items()
        for place, seconds in zip(places[axis], line, strict=True)
    ]
    rows += [
        {"axis": axis, "method": LABELS[method], "exponent": value}
        for axis, part in power.items()
        for method, value in part.items()
    ]
    drawn = {axis: (list(places[axis]), lines) for axis, lines in times.items()}
    caption = "Warm times in seconds on logarithmic scales, with the exponents of fitted lines"
    return Outcome(rows, {"times": Picture(draw(drawn, power), caption)}, claims(power), NOTES)


def exponent(sizes: Sequence[float], seconds: np.ndarray) -> float:
    """Slope of a straight line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def draw(
    drawn: dict[str, tuple[list[float], dict[str, np.ndarray]]],
    power: dict[str, dict[str, float]],
) -> Any:
    """Draw times against sizes, a panel for each axis."""
    figure = drawing.new_figure(10.5, 6.0)
    axes = figure.subplots(2, 3).ravel()
    axes[-1].set_axis_off()
    for ax, (axis, (places, lines)) in zip(axes, drawn.items(), strict=False):
        for method, line in lines.items():
            label = f"{LABELS[method]}: {power[axis][method]:.2f}"
            ax.plot(places, line, marker="o", markersize=4, label=label)
        ax.set(xscale="log", yscale="log", xlabel=AXES[axis][0])
        ax.set_ylabel("seconds per iteration" if axis == "classes" else "seconds")
        ax.set_xticks(places, [f"{place:g}" for place in places])
        ax.xaxis.minorticks_off()
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, fontsize=8)
    return figure


def claims(power: dict[str, dict[str, float]]) -> list[Claim]:
    """Put the exponents beside the paper's formulas."""
    images, pixels, classes = power["images"], power["pixels"], power["classes"]
    return [
        Claim(
            "The cost of PATS is linear in the number of images N: O(s d n² N).",
            f"exponent {images['published']:.2f}",
            images["published"] <= 1 + AT_MOST,
            f"exponent {images['ours']:.2f}",
        ),
        Claim(
            "The cost of PATS is at most quadratic in the number of pixels n: O(s d n² N).",
            f"exponent {pixels['published']:.2f}",
            pixels["published"] <= 2 + AT_MOST,
            f"exponent {pixels['ours']:.2f}",
            "The n² of the paper comes from an n×n projection, which need not be formed: the d "
            "tangents are made orthogonal instead, at a cost linear in n.",
        ),
        Claim(
            "Computing the DC decomposition of Ẽ is linear in n and N.",
            f"exponents {images['decomposition']:.2f} in N and {pixels['decomposition']:.2f} in n"
            f" at {N_POINTS} atoms",
            max(images["decomposition"], pixels["decomposition"]) <= 1 + AT_MOST,
        ),
        Claim(
            "JPATS costs O(N_J (s d n² + d n M)): with classes of equal size at most M².",
            f"exponent {classes['JPATS']:.2f}",
            classes["JPATS"] <= 2 + AT_MOST,
            f"exponent {classes['JPATS-ours']:.2f}",
        ),
        Claim(
            "Selecting an atom with SMP costs O(N_J n D): it is linear in the dictionary's size D.",
            f"exponent {power['dictionary']['SMP']:.2f} in D, {images['SMP']:.2f} in N, "
            f"{pixels['SMP']:.2f} in n, where D grows with n",
            power["dictionary"]["SMP"] <= 1 + AT_MOST,
        ),
    ]


EXPERIMENT = Experiment(
    full=Configuration(),
    quick=Configuration((8, 16), (16, 24), (1, 2), (2, 3), (4.0, 2.0), 6),
    run=run,
)
