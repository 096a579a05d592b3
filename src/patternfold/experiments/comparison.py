"""PATS against matching pursuits and planes on one set of images: Figs. 4 and 5 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from patternfold import datasets
from patternfold.experiments import drawing
from patternfold.experiments.approximation import (
    early_end,
    learn_ours,
    learn_published,
    locally_linear,
    pattern_of,
    pursue,
    spread_about_centroid,
)
from patternfold.experiments.base import Claim, Outcome, Picture, Values
from patternfold.experiments.context import Context, Work

MODEL = "rotation-translation-scaling"
CUTTING = "PATS, cutting plane"


@dataclass(frozen=True)
class Configuration:
    """Sizes of a comparison.

    Attributes
    ----------
    n_images : int
        Number of transformed images.
    n_atoms : int
        Most atoms of a pattern.
    counts : sequence of int
        Numbers of atoms at which errors are compared.
    n_cutting_plane : int
        Atoms of the published algorithm that are found by the cutting plane; others by search.
    rotation : str
        Protocol of the random rotations.
    factor : int
        Pixels along an axis that are averaged to one.
    """

    n_images: int
    n_atoms: int = 40
    counts: Sequence[int] = (1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40)
    n_cutting_plane: int = 6
    rotation: str = "full"
    factor: int = 1

    @property
    def canvas(self) -> tuple[int, int]:
        """Shape of the images."""
        return (40 // self.factor, 40 // self.factor)


@dataclass(frozen=True)
class Data:
    """Transformed images, and the same before they were transformed."""

    images: np.ndarray
    aligned: np.ndarray


def transformed(
    pictures: np.ndarray, rng: np.random.Generator, configuration: Configuration
) -> Data:
    """Transform pictures at random, as the configuration says."""
    canvas, bounds = configuration.canvas, datasets.protocol_bounds(configuration.rotation)
    smaller = datasets.shrink(pictures.astype(np.float32), configuration.factor)
    images, _ = datasets.transform_images(smaller, rng, bounds=bounds, canvas=canvas)
    return Data(images, datasets.unit(datasets.place_on_canvas(smaller, canvas)))


def steps(data: Data, configuration: Configuration) -> dict[str, Work]:
    """Return the work on all methods; the longest comes first."""
    counts, n_atoms = list(configuration.counts), configuration.n_atoms
    work: dict[str, Work] = {}
    if configuration.n_cutting_plane:
        few = [k for k in counts if k <= configuration.n_cutting_plane]
        n_few = configuration.n_cutting_plane
        work["cutting-plane"] = partial(learn_published, data.images, n_few, few, {})
    work["ours"] = partial(learn_ours, data.images, n_atoms, counts, {})
    work["published"] = partial(learn_published, data.images, n_atoms, counts, {"solver": "search"})
    return (
        work
        | pursuits(data, configuration)
        | {"locally-linear": partial(locally_linear, data.images, MODEL)}
    )


def pursuits(data: Data, configuration: Configuration) -> dict[str, Work]:
    """Return the work on MP and SMP."""
    counts, n_atoms = list(configuration.counts), configuration.n_atoms
    return {
        method: partial(pursue, method, data.aligned, data.images, n_atoms, counts, {})
        for method in ("MP", "SMP")
    }


def outcome(context: Context, data: Data, what: str, notes: Sequence[str]) -> Outcome:
    """Compare all methods on a set of images."""
    found = context.parallel(steps(data, context.configuration))
    counts = list(context.configuration.counts)
    level = float(found["locally-linear"]["error"])
    lines = curves(found, counts)
    rows = [
        {"method": method, "atoms": k, "error": float(e)}
        for method, (atoms, errors) in lines.items()
        for k, e in zip(atoms, errors, strict=True)
    ]
    rows.append({"method": drawing.LLA, "error": level})
    spread = spread_about_centroid(data.aligned)
    rows.append({"method": "aligned images about their centroid", "error": spread})
    claims = [order_claim(found, counts, what), planes_claim(found, level, what)]
    return Outcome(rows, pictures(data, found, lines, level, what), claims, notes)


def curves(found: dict[str, Values], counts: list[int]) -> dict[str, drawing.Line]:
    """Return errors against atoms by method."""
    names = {"ours": drawing.OURS, "published": drawing.PATS, "SMP": drawing.SMP, "MP": drawing.MP}
    lines: dict[str, drawing.Line] = {
        label: (counts, found[key]["errors"]) for key, label in names.items()
    }
    if "cutting-plane" in found:
        errors = found["cutting-plane"]["errors"]
        lines[CUTTING] = (counts[: len(errors)], errors)
    return lines


def pictures(
    data: Data,
    found: dict[str, Values],
    lines: dict[str, drawing.Line],
    level: float,
    what: str,
) -> dict[str, Picture]:
    """Draw the images, the learned patterns and the errors."""
    shape = data.images.shape[1:]
    learned = {
        "PATS": pattern_of(found["published"]),
        "ours": pattern_of(found["ours"]),
        "MP": pattern_of(found["MP"]),
        "SMP": pattern_of(found["SMP"]),
    }
    shown = {name: pattern.render(shape) for name, pattern in learned.items()}
    rows = {"images": list(data.images[:10]), "untransformed": list(data.aligned[:10])}
    styles: dict[str, Any] = drawing.STYLES | {CUTTING: {"color": "#00798c", "linestyle": ":"}}
    return {
        "images": Picture(drawing.draw_rows(rows), f"Some of the {what}, and as they were before"),
        "patterns": Picture(drawing.draw_pictures(shown), "Patterns of all atoms"),
        "error": Picture(
            drawing.draw_curves(
                lines,
                "atoms",
                "normalised approximation error",
                levels={drawing.LLA: level},
                styles=styles,
            ),
            f"Mean squared distance of the {what} to the manifold, over their mean squared norm",
        ),
    }


def order_claim(found: dict[str, Values], counts: list[int], what: str) -> Claim:
    """PATS comes nearer to the images than MP and SMP."""
    paths = {key: np.asarray(found[key]["errors"]) for key in ("published", "MP", "SMP", "ours")}
    last = {key: float(path[-1]) for key, path in paths.items()}
    behind = np.flatnonzero(paths["published"] >= np.minimum(paths["MP"], paths["SMP"]))
    ahead = counts[(behind[-1] if len(behind) else -1) + 1 :]
    reached = np.flatnonzero(paths["ours"] <= last["published"])
    return Claim(
        f"PATS approximates the {what} better than MP and SMP.",
        f"error with {counts[-1]} atoms: PATS {last['published']:.3f}, SMP {last['SMP']:.3f}, "
        f"MP {last['MP']:.3f}" + (f"; PATS is ahead from {ahead[0]} atoms on" if ahead else ""),
        bool(ahead),
        f"{last['ours']:.3f}, {1 - last['ours'] / last['published']:.0%} below PATS"
        + (f"; as good as all its atoms with {counts[reached[0]]}" if len(reached) else ""),
        early_end(found["published"], counts[-1]),
    )


def planes_claim(found: dict[str, Values], level: float, what: str) -> Claim:
    """The images are too few for planes, and enough for manifolds of patterns."""
    last = {key: float(found[key]["errors"][-1]) for key in ("published", "MP", "SMP", "ours")}
    return Claim(
        f"The locally linear error on the {what} is significantly high, as they are few; methods "
        "with a pattern transformation manifold suffer much less.",
        f"locally linear {level:.3f}; MP, SMP and PATS at most "
        f"{max(last['published'], last['MP'], last['SMP']):.3f}",
        level > max(last["published"], last["MP"], last["SMP"]),
        f"{last['ours']:.3f}, {level / last['ours']:.1f} times below the locally linear error",
    )
