"""What the explorer shows of a mixture: patterns with sizes, galleries, the merge tree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from patternfold.learning.fitted import FittedManifolds
from patternfold.learning.lighting import Lighting
from patternfold.show.pages.kinds import BETWEEN, Kinds, group_name
from patternfold.show.pages.payload import Example, Words
from patternfold.show.pages.tree import tree_drawing

MOST_PARTS = 36
"""Parts that are shown beside those of the images: all are drawn anew when one is moved."""

GROUPS = Words(
    name="",
    title="Groups",
    hint="The largest part of each group, then its other parts, with their images. All are moved "
    "together. Choose one to look at it.",
)


class KindsView(NamedTuple):
    """What is shown: parts as patterns, notes on them, images and their galleries."""

    view: FittedManifolds
    notes: list[str]
    examples: list[Example]
    galleries: list[dict[str, Any]]


def view_of_kinds(model: Any, kinds: Kinds | None) -> KindsView:
    """Return what the explorer shows of a mixture and some images."""
    parts = shown_parts(model, () if kinds is None else kinds.found.parts)
    labels = _labels(model, parts)
    view = FittedManifolds(
        [model.parts_[k] for k in parts],
        labels,
        model.transformation_,
        (int(model.image_shape_[0]), int(model.image_shape_[1])),
        [np.empty(0)] * len(parts),
        Lighting(bool(model.gain), bool(model.offset)),
    )
    place = {part: label for part, label in zip(parts, labels, strict=True)}
    shown = [] if kinds is None else _examples(kinds, place)
    galleries = [] if kinds is None else galleries_of(model, kinds)
    return KindsView(view, _notes(model, parts), shown, galleries)


def shown_parts(model: Any, needed: Any) -> list[int]:
    """Return parts group by group, the largest first: of every group one, and those needed."""
    sizes = part_sizes(model)
    order = np.lexsort([-sizes, model.part_labels_])
    first = [model.parts_.index(pattern) for pattern in model.patterns_]
    largest = np.argsort(-sizes, kind="stable")[:MOST_PARTS]
    kept = {*first, *np.asarray(needed, int).tolist(), *largest.tolist()}
    listed = [int(k) for k in order if k in kept]
    # The pattern of a group comes before its other parts, whatever their sizes.
    return sorted(listed, key=lambda k: (model.part_labels_[k], k not in first))


def part_sizes(model: Any) -> np.ndarray:
    """Return how many training images each part has."""
    inside = model.labels_ >= 0
    return np.bincount(model.assignment_.parts[inside], minlength=len(model.parts_))


def tree_section(model: Any) -> dict[str, str] | None:
    """Return the merge tree as a section of a page, None where there was nothing to merge."""
    if not len(model.merge_tree_):
        return None
    return {
        "title": "How parts were merged",
        "text": "Parts, each the mean of its images, from left to right. The higher two branches "
        "meet, the less they share; groups have colours and numbers.",
        "image": tree_drawing(model),
    }


def galleries_of(model: Any, kinds: Kinds) -> list[dict[str, Any]]:
    """Return the images of each group by fit, those of none, and those between two groups."""
    found: list[dict[str, Any]] = []
    for g in range(-1, len(model.patterns_)):
        own = kinds.gallery(g)
        if len(own):
            share = model.outlier_share_ if g < 0 else model.proportions_[g]
            title = f"{group_name(g).capitalize()}, {share:.1%} of the training images"
            text = "From the image that fits best to the one that fits worst."
            found.append({"title": title, "text": text, "items": own.tolist()})
    between = kinds.between()
    if len(between):
        text = f"Less than {BETWEEN:.0%} of each belongs to its group; the least certain first."
        found.append({"title": "Between two groups", "text": text, "items": between.tolist()})
    strangers = [part for part in found if part["title"].startswith("No group")]
    return [part for part in found if part not in strangers] + strangers


def _labels(model: Any, parts: list[int]) -> list[str]:
    labels, seen = [], dict.fromkeys(range(len(model.patterns_)), 0)
    for k in parts:
        group = int(model.part_labels_[k])
        seen[group] += 1
        number = seen[group]
        labels.append(group_name(group) if number == 1 else f"{group + 1}, part {number}")
    return labels


def _notes(model: Any, parts: list[int]) -> list[str]:
    """Say how many images a group has, and each of its parts."""
    sizes, first = part_sizes(model), [model.parts_.index(p) for p in model.patterns_]
    return [
        f"{model.proportions_[model.part_labels_[k]]:.0%} of all"
        if k in first
        else f"{sizes[k]} images"
        for k in parts
    ]


def _examples(kinds: Kinds, label: dict[int, str]) -> list[Example]:
    found = kinds.found
    rows = zip(kinds.images, found.parameters, kinds.names, strict=True)
    return [
        Example(image, lam, name, label[int(part)], float(gain), float(offset))
        for (image, lam, name), part, gain, offset in zip(
            rows, found.parts, found.gain, found.offset, strict=True
        )
    ]
