"""Checks of what was learned: the pattern, the λ of the training images, the error path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from patternfold.estimators.options import is_auto
from patternfold.estimators.remarks.evidence import angles_of
from patternfold.estimators.remarks.remark import Remark
from patternfold.learning.state import INTERRUPTED
from patternfold.model import manifold
from patternfold.model.box import Box
from patternfold.model.grid import Grid

FEW_IMAGES = 5

AT_BOUND, OFTEN_AT_BOUND = 0.01, 0.1
"""Share of an interval's width that counts as being at its bound; share of the images."""

STILL_FALLING = 0.02
"""Share of the error that the last fifth of the atoms must remove to call it falling."""

IDLE, MOSTLY = 0.02, 0.7
"""Share of the error that atoms must remove to be of use; share of the atoms that do."""

EDGE, MOST_AT_EDGE = 0.1, 0.15
"""Width of the window's edge, in its sides; share of the pattern's contrast that may lie there."""

NEAR_QUARTER, MOSTLY_QUARTER, FEW_ANGLES = np.deg2rad(5), 0.8, 8
"""How near an angle is to a quarter turn; share of the images; images that tell little."""


def remarks_on_learning(model: Any) -> list[Remark]:
    """Return remarks on how a `PATS` was fitted, and on its pattern."""
    checks = (
        _interrupted(model.stop_reason_),
        _at_edge(model),
        # A number that was chosen on held-out images needs no second opinion.
        () if is_auto(model.n_atoms) else _path(np.asarray(model.error_path_)),
        _few(model.parameters_),
    )
    return [remark for check in checks for remark in check]


def remarks_on_poses(family: Any, parameters: np.ndarray) -> list[Remark]:
    """Return remarks on the λ of images; those that are NaN do not count."""
    return [*_at_bounds(family.parameters, parameters), *_angles(angles_of(family, parameters))]


def _interrupted(stop_reason: str) -> Iterator[Remark]:
    if stop_reason == INTERRUPTED:
        text = "Learning was interrupted; fit with warm_start=True goes on from here."
        yield Remark("interrupted", text)


def _few(parameters: np.ndarray) -> Iterator[Remark]:
    if len(parameters) < FEW_IMAGES:
        text = f"Only {len(parameters)} images: the pattern may show their peculiarities."
        yield Remark("few-images", text)


def _at_bounds(box: Box, parameters: np.ndarray) -> Iterator[Remark]:
    """Parameters that many images would move further, if they were allowed to."""
    for k, name in enumerate(box.names):
        if box.periodic[k]:
            continue
        unit = (parameters[:, k] - box.lower[k]) / box.width[k]
        for side, there, bound in (
            ("lower", unit < AT_BOUND, box.lower[k]),
            ("upper", unit > 1 - AT_BOUND, box.upper[k]),
        ):
            if there.mean() > OFTEN_AT_BOUND:
                text = (
                    f"{there.mean():.0%} of the images have {name} at its {side} bound {bound:g}: "
                    f"widen the bounds of {name} if the images vary more, or narrow them if {name} "
                    "imitates something else, such as shading."
                )
                yield Remark("at-bound", text, _indices(there))


def _angles(angles: np.ndarray | None) -> Iterator[Remark]:
    """Angles at quarter turns of one another: a frame, or the grid of pixels, has been aligned."""
    angles = angles if angles is None else angles[np.isfinite(angles)]
    if angles is None or len(angles) < FEW_ANGLES:
        return
    turned = np.exp(4j * angles.astype(np.float64))
    centre = np.angle(turned.mean()) / 4
    away = (angles - centre + np.pi / 4) % (np.pi / 2) - np.pi / 4
    near = np.abs(away) < NEAR_QUARTER
    quarter = np.round((angles[near] - centre) / (np.pi / 2)).astype(int) % 4
    largest = np.bincount(quarter, minlength=4).max(initial=0)
    if near.mean() >= MOSTLY_QUARTER and largest < 0.9 * len(angles):
        text = (
            f"{near.mean():.0%} of the angles are quarter turns of one another, to 5°: the frame "
            "of the pictures may have been aligned instead of what they show. Cut off borders, or "
            "mask them."
        )
        yield Remark("quarter-turns", text)


def _at_edge(model: Any) -> Iterator[Remark]:
    share = contrast_at_edge(model)
    if share > MOST_AT_EDGE:
        text = (
            f"{share:.0%} of the pattern's contrast lies at the edge of its window: it has learned "
            "a border, a background that varies, or something larger than the pictures. Crop or "
            "mask borders, or give pictures with more room around what they show."
        )
        yield Remark("edge", text)


def contrast_at_edge(model: Any) -> float:
    """Return the share of ‖∇p‖² in the outermost tenth on each side of the window."""
    identity = np.asarray(model.transformation_.identity)[None]
    grid = Grid(*model.image_shape_)
    image = np.asarray(manifold.render(model.pattern_, identity, model.transformation_, grid))
    image = image.reshape(model.image_shape_).astype(np.float64)
    if min(image.shape) < 2:
        return 0.0
    along_y, along_x = (np.asarray(part) for part in np.gradient(image))
    energy = np.square(along_x) + np.square(along_y)
    inside = tuple(slice(n, -n) for n in (max(1, round(EDGE * side)) for side in image.shape))
    total = energy.sum()
    return float(1 - energy[inside].sum() / total) if total > 0 else 0.0


def _path(path: np.ndarray) -> Iterator[Remark]:
    """Tell whether more atoms would help, or fewer would do."""
    if len(path) < 5:
        return
    # The last entry also has what the final correction of all atoms has gained, by which the last
    # atoms would seem to be of use: never is more and fewer atoms said of one path.
    enough = int(np.argmax(path <= path[-2] * (1 + IDLE))) + 1
    last = max(1, len(path) // 5)
    before, after = path[-1 - last], path[-1]
    if enough <= MOSTLY * len(path):
        text = (
            f"The error was as low, to {IDLE:.0%}, after {enough} of {len(path)} atoms: the others "
            "may follow noise. Fewer (n_atoms) would do."
        )
        yield Remark("idle-atoms", text)
    elif before > 0 and (before - after) / before > STILL_FALLING:
        text = (
            f"The last {last} atoms lowered the error by {(before - after) / before:.0%}: more "
            "atoms (n_atoms) would probably lower it further."
        )
        yield Remark("error-falling", text)


def _indices(which: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(which).tolist())
