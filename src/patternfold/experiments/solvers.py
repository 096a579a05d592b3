"""The paper's cutting plane for all atoms, beside our search, which other experiments use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from patternfold import datasets
from patternfold.experiments import comparison, digits_approximation, drawing
from patternfold.experiments.approximation import learn_published
from patternfold.experiments.base import Claim, Experiment, Outcome, Picture, Values
from patternfold.experiments.classification import published
from patternfold.experiments.context import Context, Work

SOLVERS = {"cutting-plane": "cutting plane", "search": "our search"}
VARIANTS = ("PATS", "JPATS")
APART, POINTS = 0.05, 3.0
"""How far curves that lie together are apart in the mean: a share of the error, and points of
misclassification."""

FIRST_SPLIT = 50
NOTES = (
    "Few and small images to learn from, and few atoms, since one by the cutting plane takes "
    "seconds; it ends after as many cuts as `PATS.paper()` allows. Both solvers minimise the same "
    "Ẽ over the same box, on the same images and with the same random numbers; all else is the "
    "published algorithm, except that joint selection has a patience of 2, for both.",
    "Learning goes from atom to atom and counts misclassified images, so that a small difference "
    "early on can lead elsewhere: curves are means over splits, and many test images are counted.",
)


@dataclass(frozen=True)
class Configuration:
    """Sizes of the experiment.

    Attributes
    ----------
    n_images : int
        Digits of one class that are approximated, of half their size.
    n_train, n_test : int
        Images per class that is told from others.
    classes : sequence of int
        Digits.
    n_repeats : int
        Sets of digits to approximate, and splits to classify.
    counts : sequence of int
        Numbers of atoms at which curves are compared.
    canvas : (int, int)
        Size of images that are classified.
    """

    n_images: int = 20
    n_train: int = 40
    n_test: int = 400
    classes: Sequence[int] = (3, 8)
    n_repeats: int = 3
    counts: Sequence[int] = (1, 2, 3, 4)
    canvas: tuple[int, int] = (32, 32)


def steps(context: Context) -> dict[str, Work]:
    """Return the work: both tasks with both solvers."""
    settings: Configuration = context.configuration
    counts, n_atoms = list(settings.counts), max(settings.counts)
    small = comparison.Configuration(settings.n_images, n_atoms, factor=2)
    jointly = {"bounds": datasets.search_box("moderate"), "patience": 2}
    work: dict[str, Work] = {}
    for r in range(settings.n_repeats):
        images = digits_approximation.load(context.data, context.seed + r, small).images
        split = datasets.split_digits(
            "moderate",
            settings.n_train,
            FIRST_SPLIT + context.seed + r,
            settings.n_test,
            digits=settings.classes,
            canvas=settings.canvas,
            data=context.data,
        )
        for solver in SOLVERS:
            alone: dict[str, Any] = {"solver": solver}
            work[f"approximation-{solver}-{r}"] = partial(
                learn_published, images, n_atoms, counts, alone
            )
            for variant in VARIANTS:
                work[f"{variant}-{solver}-{r}"] = partial(
                    published, split, variant, counts, alone | jointly
                )
    return work


def run(context: Context) -> Outcome:
    """Learn with both solvers and compare the curves."""
    settings: Configuration = context.configuration
    found = context.parallel(steps(context))
    tables = {
        task: {solver: _table(found, task, solver, settings.n_repeats) for solver in SOLVERS}
        for task in ("approximation", *VARIANTS)
    }
    rows = [
        {"task": task, "solver": SOLVERS[solver], "atoms": k, "error": float(error)}
        for task, by_solver in tables.items()
        for solver, table in by_solver.items()
        for k, error in zip(settings.counts, table.mean(axis=0), strict=True)
    ]
    claims = [approximation_claim(tables["approximation"])]
    claims += [classification_claim(variant, tables[variant]) for variant in VARIANTS]
    return Outcome(rows, pictures(tables, settings), claims, NOTES)


def _table(found: dict[str, Values], task: str, solver: str, n_repeats: int) -> np.ndarray:
    """Errors: repetitions (rows) × numbers of atoms."""
    return np.array([found[f"{task}-{solver}-{r}"]["errors"] for r in range(n_repeats)])


def apart(table: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean curves: the cutting plane's, and how much our search lies above it."""
    plane, search = (table[solver].mean(axis=0) for solver in SOLVERS)
    return plane, search - plane


def approximation_claim(table: dict[str, np.ndarray]) -> Claim:
    """Both solvers approximate alike."""
    plane, above = apart(table)
    share = float(np.abs(above / plane).mean())
    return Claim(
        "Approximation of digits by PATS: the curves of the cutting plane and of our search lie "
        "together.",
        f"{share:.1%} apart in the mean; with all atoms {plane[-1]:.3f} by the cutting plane, "
        f"{plane[-1] + above[-1]:.3f} by our search",
        share <= APART,
    )


def classification_claim(variant: str, table: dict[str, np.ndarray]) -> Claim:
    """Both solvers classify alike."""
    plane, above = apart(table)
    points = float(np.abs(above).mean())
    return Claim(
        f"Classification of digits by {variant}: the curves of the cutting plane and of our search "
        "lie together.",
        f"{points:.1f} points apart in the mean; with all atoms {plane[-1]:.1f} % by the cutting "
        f"plane, {plane[-1] + above[-1]:.1f} % by our search",
        points <= POINTS,
    )


def pictures(
    tables: dict[str, dict[str, np.ndarray]], settings: Configuration
) -> dict[str, Picture]:
    """Draw the curves of both solvers."""
    counts = list(settings.counts)
    plain = {"our search": {"marker": "o"}, "cutting plane": {"marker": "s", "linestyle": ":"}}
    lines: dict[str, dict[str, drawing.Line]] = {
        task: {
            SOLVERS[solver]: (counts, table.mean(axis=0).tolist())
            for solver, table in by_solver.items()
        }
        for task, by_solver in tables.items()
    }
    near = drawing.draw_curves(
        lines.pop("approximation"), "atoms", "normalised approximation error", styles=plain
    )
    wrong = drawing.draw_panels(
        lines, "atoms per class", "misclassified test images (%)", styles=plain
    )
    return {
        "approximation": Picture(near, "Approximation error, by solver"),
        "classification": Picture(wrong, "Misclassified test images, by solver"),
    }


EXPERIMENT = Experiment(
    full=Configuration(),
    quick=Configuration(6, 6, 10, (3, 8), 1, (1, 2)),
    run=run,
)
