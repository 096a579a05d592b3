"""What the classification experiments share: methods as steps, errors in percent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from patternfold import JPATS, PATS, AlignedViewsClassifier, Pattern, align, datasets, project
from patternfold.baselines import (
    LocallyLinearClassifier,
    SimultaneousMatchingPursuitClassifier,
    SupervisedAtomSelection,
    SupervisedLLEClassifier,
    discriminant_analyses,
    neural_network,
    with_first_atoms,
)
from patternfold.datasets import Split
from patternfold.experiments.base import Values
from patternfold.experiments.options import Options, family_of
from patternfold.learning.schedules import SigmoidAlpha

PURSUITS = {"SMP": SimultaneousMatchingPursuitClassifier, "SAS": SupervisedAtomSelection}

PUBLISHED = (
    "JPATS and PATS have their published settings, `JPATS.paper()`, except that atoms are found by "
    "our search: the cutting plane would take hours. Their errors with k atoms are those of the "
    "first k atoms of each class of one fit. α of JPATS rises from 0.1 to 2 in units of the mean "
    "|f|, |c| is at most what makes an atom as bright as the images, and the updates of some "
    "classes may stand without those of others: of what was tried on other splits of the same "
    "digits, the choice with the lowest training error. λ of JPATS are searched over Λ, those of "
    "PATS by its line search."
)

VARIANTS: dict[str, dict[str, Any]] = {
    "JPATS": {},
    "JPATS-printed": {"alpha": SigmoidAlpha()},
    "PATS": {"alpha": 0.0, "projection": "line-search"},
    "PATS-global": {"alpha": 0.0},
}
"""Options on top of those of `JPATS.paper`: as it is, with the α of the paper (0.5 to 10), and PATS
class by class, with its line search or with λ over Λ as in JPATS."""


def percent_wrong(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Misclassification in percent."""
    return 100 * float((model.predict(X) != y).mean())


def published(split: Split, variant: str, counts: Sequence[int], options: Options) -> Values:
    """Step: the published JPATS in one of the `VARIANTS`, after each number of atoms."""
    settings = {"solver": "search", "random_state": 0, **options, **VARIANTS[variant]}
    model = JPATS.paper(max(counts), **settings).fit(split.X, split.y)
    return _described(model, split, counts) | {"path": model.error_path_}


def pursued(
    method: str, aligned: np.ndarray, split: Split, counts: Sequence[int], options: Options
) -> Values:
    """Step: SMP or SAS on aligned training images, after each number of atoms."""
    model = PURSUITS[method](max(counts), **options).fit(aligned, split.y)
    return _described(model, split, counts)


def pursued_registered(
    method: str, patterns: Values, split: Split, counts: Sequence[int], options: Options
) -> Values:
    """Step: SMP or SAS on training images that patterns of ours have registered."""
    return pursued(method, registered(split, unpack(patterns), options), split, counts, options)


def ours(split: Split, n_atoms: int, options: Options) -> Values:
    """Step: the default `JPATS`, with its calibrated threshold for outliers."""
    model = JPATS(n_atoms, random_state=0, outlier_threshold="calibrate", **options)
    model.fit(split.X, split.y)
    threshold, model.outlier_threshold_ = model.outlier_threshold_, np.inf
    found = _described(model, split, [n_atoms])
    return found | {"path": model.error_path_, "threshold": threshold}


def views(split: Split, n_atoms: int, options: Options) -> Values:
    """Step: aligned views and their classifier; the patterns register the training images.

    Like all others it learns from the images that there are, without variants of them.
    """
    model = AlignedViewsClassifier(n_atoms, n_variants=0, random_state=0, **options)
    model.fit(split.X, split.y)
    errors = np.array([percent_wrong(model, split.X_test, split.y_test)])
    return pack(model.views_.patterns_) | {"errors": errors}


def pixels(split: Split, n_neighbors: int) -> Values:
    """Step: LLA and SLLE on the images as they are."""
    flat, flat_test = _flat(split.X), _flat(split.X_test)
    models = {
        "LLA": LocallyLinearClassifier(n_neighbors),
        "SLLE": SupervisedLLEClassifier(n_neighbors=min(12, len(flat) - 1)),
    }
    return {
        name: percent_wrong(model.fit(flat, split.y), flat_test, split.y_test)
        for name, model in models.items()
    }


def aligned_pixels(aligned: np.ndarray, aligned_test: np.ndarray, split: Split) -> Values:
    """Step: LDA, the better of linear and quadratic on the test images, and a network."""
    flat, flat_test = _flat(aligned), _flat(aligned_test)
    kinds = {
        kind: percent_wrong(model.fit(flat, split.y), flat_test, split.y_test)
        for kind, model in discriminant_analyses().items()
    }
    network = neural_network(0).fit(flat, split.y)
    return {
        **kinds,
        "LDA": min(kinds.values()),
        "network": percent_wrong(network, flat_test, split.y_test),
    }


def registered(split: Split, patterns: Sequence[Pattern], options: Options) -> np.ndarray:
    """Training images aligned to the pattern of their own class, scaled to unit norm."""
    family, result = family_of(options), np.empty_like(split.X)
    for pattern, label in zip(patterns, np.unique(split.y), strict=True):
        own = split.y == label
        found = project(pattern, split.X[own], family, effort="quick")
        result[own] = align(split.X[own], found.parameters, family)
    return datasets.unit(result)


def register_all(split: Split, n_atoms: int, options: Options) -> Values:
    """Step: training and test images aligned to one pattern of all classes, which none need know.

    The pattern is learned from all training images together.
    """
    model = PATS(n_atoms, n_starts=1, n_exchanges=0, random_state=0, **options).fit(split.X)
    aligned, aligned_test = (datasets.unit(model.align(X)) for X in (split.X, split.X_test))
    return {"aligned": aligned, "aligned_test": aligned_test}


def manifold_distances(
    patterns: Sequence[Pattern], images: np.ndarray, options: Options
) -> np.ndarray:
    """Distances of images to the manifolds of all classes, shape (N, M)."""
    found = project(list(patterns), images, family_of(options), effort="quick")
    return found.distances


def pack(patterns: Sequence[Pattern]) -> Values:
    """Put the patterns of all classes into arrays."""
    return {
        "coef": np.concatenate([p.coef for p in patterns]),
        "gamma": np.concatenate([p.gamma for p in patterns]),
        "n_atoms": [p.n_atoms for p in patterns],
    }


def unpack(values: Values) -> list[Pattern]:
    """Return the patterns that a step found."""
    ends = np.cumsum(values["n_atoms"])[:-1]
    parts = zip(np.split(values["coef"], ends), np.split(values["gamma"], ends), strict=True)
    return [Pattern(coef, gamma) for coef, gamma in parts]


def _described(model: Any, split: Split, counts: Sequence[int]) -> Values:
    """Patterns of a fitted model, and its errors with the first k atoms for all counts."""
    longest = max(p.n_atoms for p in model.patterns_)
    known = {
        k: percent_wrong(with_first_atoms(model, k), split.X_test, split.y_test)
        for k in {min(k, longest) for k in counts}
    }
    errors = np.array([known[min(k, longest)] for k in counts])
    return pack(model.patterns_) | {"errors": errors}


def _flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)
