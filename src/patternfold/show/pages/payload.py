"""What a page needs to know of a model, as plain values for JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from patternfold.learning.fitted import FittedManifolds
from patternfold.model import manifold
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.show.pages.formulas import formulas_of
from patternfold.show.plotting.manifold import sweep
from patternfold.show.plotting.pattern import centre_of, fine_shape

VIEW = 256
"""Pixels along the longer side of the picture that the sliders move."""

FRAMES = 41
FRAME_SIZE = 96
"""Frames per parameter, and their size, of models that the browser can't draw itself."""


@dataclass(frozen=True)
class Example:
    """An image to show beside its projection g·U_λ(p) + b."""

    image: np.ndarray
    lam: np.ndarray
    name: str
    label: str = ""
    gain: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Words:
    """What patterns are called: each by ``name`` and its label, all of them by ``title``."""

    name: str = "class"
    title: str = "Classes"
    hint: str = "One pattern per class, all moved together. Choose one to look at it."


CLASSES = Words()


def payload_of(
    view: FittedManifolds,
    examples: Sequence[Example],
    words: Words = CLASSES,
    notes: Sequence[str] = (),
    galleries: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return everything the explorer draws from.

    ``notes`` stand below the patterns; ``galleries`` have a title, a text and ``items``, places of
    their examples. Without them all examples are shown in one.
    """
    formulas = formulas_of(view)
    exact = formulas is not None
    size = VIEW if exact else FRAME_SIZE
    shape = fine_shape(view.image_shape, size)
    data = {
        "shape": list(view.image_shape),
        "view": list(shape),
        "small": list(fine_shape(view.image_shape, 72)),
        "exact": exact,
        "transformation": _describe_transformation(view.transformation),
        "formulas": formulas,
        "patterns": [
            _describe_pattern(pattern, label, path, shape, exact)
            | {"start": _start(pattern if exact else None, view.transformation, shape)}
            for pattern, label, path in zip(
                view.patterns, view.labels, view.error_paths, strict=True
            )
        ],
        "priors": [_describe_prior(prior) for prior in view.priors or ()],
        "examples": [_describe_example(view, example, exact) for example in examples],
        "words": asdict(words),
        "notes": list(notes),
        "galleries": list(galleries)
        or [{"title": "", "text": "", "items": list(range(len(examples)))}],
    }
    if not exact:
        data["frames"] = [_frames(pattern, view.transformation, shape) for pattern in view.patterns]
    return data


def _describe_transformation(transformation: AbstractTransformation) -> dict[str, Any]:
    box = transformation.parameters
    return {
        "names": list(box.names),
        "lower": list(box.lower),
        "upper": list(box.upper),
        "translation": [box.index(name) for name in transformation.translation or ()],
    }


def _start(
    pattern: Pattern | None, transformation: AbstractTransformation, shape: tuple[int, int]
) -> list[float]:
    """λ to begin with: the identity, or where it shows the pattern far off it, in the middle."""
    box = transformation.parameters
    lam = np.array(box.put_inside(transformation.identity), float)
    if transformation.translation is not None and pattern is not None:
        shifts = [box.index(name) for name in transformation.translation]
        lam[shifts] -= centre_of(pattern, shape)
    return np.asarray(box.put_inside(lam)).tolist()


def _describe_prior(prior: Prior) -> list[list[Any]]:
    """Kind, mean and deviation of each parameter, null for the deviation of one without prior."""
    rows = zip(prior.kinds, prior.mean, prior.std, strict=True)
    return [[kind, mean, std if np.isfinite(std) else None] for kind, mean, std in rows]


def _describe_pattern(
    pattern: Pattern, label: str, path: np.ndarray, shape: tuple[int, int], exact: bool
) -> dict[str, Any]:
    picture = pattern.render(shape)
    return {
        "label": label,
        "coef": pattern.coef.tolist(),
        "gamma": pattern.gamma.tolist() if exact else [],
        "error_path": np.asarray(path, float).tolist(),
        "range": {"low": min(0.0, float(picture.min())), "high": float(picture.max())},
    }


def _describe_example(view: FittedManifolds, example: Example, exact: bool) -> dict[str, Any]:
    cls = view.labels.index(example.label) if example.label in view.labels else 0
    described = {
        "name": example.name,
        "label": example.label,
        "cls": cls,
        "lam": np.asarray(example.lam, float).tolist(),
        "light": [float(example.gain), float(example.offset)],
        "pixels": pack(example.image),
    }
    if not exact:
        projected = manifold.render(
            view.patterns[cls], example.lam[None], view.transformation, view.image_shape
        )
        described["projection"] = pack(projected[0])
    return described


def _frames(
    pattern: Pattern, transformation: AbstractTransformation, shape: tuple[int, int]
) -> list[list[dict[str, Any]]]:
    lam, values = sweep(transformation, FRAMES)
    frames = manifold.render(pattern, lam.reshape(-1, lam.shape[-1]), transformation, shape)
    return [[pack(frame) for frame in line] for line in frames.reshape(*values.shape, -1)]


def pack(values: np.ndarray) -> dict[str, Any]:
    """Return values as bytes between the least and the greatest, in base64."""
    low, high = float(values.min()), float(values.max())
    step = (high - low) / 255 or 1.0
    levels = np.round((np.asarray(values, float) - low) / step).astype(np.uint8)
    return {"low": low, "high": high, "data": base64.b64encode(levels.tobytes()).decode()}
