"""The merge tree of a mixture as a drawing: parts below, merged from the bottom up."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list

from patternfold.show.plotting.pattern import fine_shape
from patternfold.show.png import encode_png, to_grey

INK = "#7c8598"  # stands out from white and from near-black alike
COLOURS = ("#f0811e", "#2680eb", "#18a558", "#a45ee5", "#d93f6b", "#0aa2a8", "#b58900", "#8d6e63")
"""Of the groups, in turn."""

WIDTH, HEIGHT = 1080.0, 240.0
"""Of the tree, in units of the drawing; pictures and names come below it."""

MOST_PICTURES = 40
"""Parts whose pictures are drawn: with more they would be too small to tell anything."""

LARGEST_PICTURE, PICTURE_PIXELS = 64.0, 48
"""Side of a part's picture in units of the drawing, and in pixels."""


def colour_of(group: int | np.integer) -> str:
    """Return the colour of a group."""
    return COLOURS[group % len(COLOURS)]


def tree_drawing(model: Any) -> str:
    """Draw the merge tree of a fitted mixture; return it as an address for an ``img``."""
    content = base64.b64encode(tree_svg(model).encode()).decode()
    return "data:image/svg+xml;base64," + content


def tree_svg(model: Any) -> str:
    """Return the drawing: merges as brackets in the colour of their group, then the parts."""
    leaves = leaves_list(model.merge_tree_) if len(model.merge_tree_) else np.zeros(1, int)
    step = WIDTH / len(leaves)
    side = min(step - 2, LARGEST_PICTURE) if len(leaves) <= MOST_PICTURES else 0.0
    shapes = [
        *_brackets(model.merge_tree_, model.part_labels_, leaves, step),
        *_pictures(model, leaves, step, side),
        *_bands(model.part_labels_[leaves], step, HEIGHT + side + 10),
    ]
    height = HEIGHT + side + 48
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {WIDTH + 16:g} {height:g}" '
        f'width="{WIDTH + 16:g}" height="{height:g}" font-family="sans-serif" font-size="13">'
    )
    return head + "".join(shapes) + "</svg>"


def _brackets(
    tree: np.ndarray, labels: np.ndarray, leaves: np.ndarray, step: float
) -> Iterator[str]:
    """Yield a bracket for each merge, grey where it joins two groups."""
    x = np.empty(len(leaves) + len(tree))
    x[leaves] = (np.arange(len(leaves)) + 0.5) * step
    # Roots tell small merges from one another beside large ones.
    top = float(tree[:, 2].max()) if len(tree) else 1.0
    y = np.concatenate([np.zeros(len(leaves)), np.sqrt(tree[:, 2] / max(top, 1e-12))])
    y = HEIGHT * (1 - y)
    group = np.concatenate([labels, np.full(len(tree), -1)])
    for k, (a, b) in enumerate(tree[:, :2].astype(int), start=len(leaves)):
        x[k] = (x[a] + x[b]) / 2
        group[k] = group[a] if group[a] == group[b] else -1
        colour = INK if group[k] < 0 else colour_of(group[k])
        places = ((x[a], y[a]), (x[a], y[k]), (x[b], y[k]), (x[b], y[b]))
        points = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


def _pictures(model: Any, leaves: np.ndarray, step: float, side: float) -> Iterator[str]:
    """Yield the pictures of the parts, below their leaves."""
    if not side:
        return
    for place, part in enumerate(leaves):
        picture = model.parts_[part].render(fine_shape(model.image_shape_, PICTURE_PIXELS))
        content = base64.b64encode(encode_png(to_grey(picture))).decode()
        left = (place + 0.5) * step - side / 2
        yield (
            f'<image x="{left:.1f}" y="{HEIGHT + 4:g}" width="{side:.1f}" height="{side:.1f}" '
            f'href="data:image/png;base64,{content}"/>'
        )


def _bands(groups: np.ndarray, step: float, top: float) -> Iterator[str]:
    """Yield a band and a name below each run of parts of one group."""
    ends = np.flatnonzero(np.diff(groups)) + 1
    for begin, end in zip([0, *ends], [*ends, len(groups)], strict=True):
        left, width = begin * step + 1, (end - begin) * step - 2
        colour, name = colour_of(groups[begin]), str(groups[begin] + 1)
        yield (
            f'<rect x="{left:.1f}" y="{top:g}" width="{max(width, 1):.1f}" height="5" '
            f'fill="{colour}"/><text x="{left + width / 2:.1f}" y="{top + 22:g}" '
            f'text-anchor="middle" fill="{INK}">{name}</text>'
        )
