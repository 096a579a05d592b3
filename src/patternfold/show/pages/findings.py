"""What is worth a second look in a learned model, in sentences with a remedy."""

from __future__ import annotations

import numpy as np

from patternfold.model.box import Box

AT_BOUND = 0.01
"""Share of an interval's width that counts as being at its bound."""

STILL_FALLING = 0.02
"""Share of the error that the last fifth of the atoms must remove to call it falling."""


def findings(
    box: Box, parameters: np.ndarray, error_path: np.ndarray, stop_reason: str
) -> list[str]:
    """Return remarks on the λ of the training images and on the error path."""
    said = []
    if stop_reason == "interrupted":
        said.append("Learning was interrupted; fit with warm_start=True goes on from here.")
    said += [*_at_bounds(box, parameters), *_falling(np.asarray(error_path))]
    if len(parameters) < 5:
        said.append(f"Only {len(parameters)} images: the pattern may show their peculiarities.")
    return said


def _at_bounds(box: Box, parameters: np.ndarray) -> list[str]:
    """Parameters that many images would move further, if they were allowed to."""
    said = []
    for k, name in enumerate(box.names):
        if box.periodic[k]:
            continue
        unit = (parameters[:, k] - box.lower[k]) / box.width[k]
        for side, share, bound in (
            ("lower", (unit < AT_BOUND).mean(), box.lower[k]),
            ("upper", (unit > 1 - AT_BOUND).mean(), box.upper[k]),
        ):
            if share > 0.1:
                said.append(
                    f"{share:.0%} of the images have {name} at its {side} bound {bound:g}: widen "
                    f"bounds={{{name!r}: ...}} if the images vary more, or narrow it if {name} "
                    "imitates something else, such as shading."
                )
    return said


def _falling(path: np.ndarray) -> list[str]:
    """Tell whether more atoms would help."""
    if len(path) < 5:
        return []
    last = max(1, len(path) // 5)
    before, after = path[-1 - last], path[-1]
    if before > 0 and (before - after) / before > STILL_FALLING:
        return [
            f"The last {last} atoms lowered the error by {(before - after) / before:.0%}: more "
            "atoms (n_atoms) would probably lower it further."
        ]
    return []
