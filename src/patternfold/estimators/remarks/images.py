"""Checks that look at the images: whether they fit, are of one kind, and have one pose."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from patternfold.estimators.remarks.evidence import Evidence, angles_of
from patternfold.estimators.remarks.groups import two_groups
from patternfold.estimators.remarks.remark import Remark

GREW = 1.02
"""Spread after alignment over that before from which it has grown, beyond interpolation."""

NO_BETTER = 0.9
"""Share of the error of the mean image, unaligned, from which a pattern explains hardly more."""

NEARLY_EQUAL, OFTEN_AMBIGUOUS = 1.05, 0.1
"""Distance of the second pose over that of the first; share of the images."""

FAR, FAR_IN_SPREADS, TELLING = 1.5, 6.0, 5
"""Misfit over the median misfit, and beyond it in robust standard deviations, from which an image
is a stranger; images that are needed to tell."""

NOTHING_EXPLAINED = 0.9
"""Misfit at which an image is a stranger in any case."""

RATHER_INVERTED = 0.7
"""Distance of the negative over that of the picture below which light and dark are exchanged."""


def remarks_on_images(evidence: Evidence) -> list[Remark]:
    """Return remarks on images and their poses."""
    checks = (_spread, _baseline, _poses, _blank, _strangers, _groups)
    return [remark for check in checks for remark in check(evidence)]


def _spread(evidence: Evidence) -> Iterator[Remark]:
    ratio = evidence.spread_ratio
    if ratio is not None and ratio > GREW:
        text = (
            f"The spread of the images grew to {ratio:.0%} by alignment: they agree less than "
            "before. Look at the prepared pictures; borders, backgrounds or several kinds of "
            "pictures mislead the search."
        )
        yield Remark("spread-grew", text)


def _baseline(evidence: Evidence) -> Iterator[Remark]:
    if evidence.error > NO_BETTER * evidence.baseline and evidence.error > 0.01:
        text = (
            f"The error, {evidence.error:.3f}, is hardly below that of the mean image without "
            f"alignment, {evidence.baseline:.3f}: more atoms, other pictures or another family of "
            "transformations are needed."
        )
        yield Remark("no-better", text)


def _poses(evidence: Evidence) -> Iterator[Remark]:
    ambiguous = ambiguous_poses(evidence)
    if ambiguous.mean() <= OFTEN_AMBIGUOUS:
        return
    text = (
        f"{int(ambiguous.sum())} of {len(ambiguous)} images fit a second pose nearly as well as "
        f"the first{_apart(evidence, ambiguous)}: {evidence.named(ambiguous)}. What they show is "
        "nearly symmetric, or they show too little of it; bounds may rule the second pose out."
    )
    yield Remark("two-poses", text, tuple(np.flatnonzero(ambiguous).tolist()))


def ambiguous_poses(evidence: Evidence) -> np.ndarray:
    """Tell which images have a second pose at nearly the same distance."""
    # Two exact fits are told apart by their difference from the image, not from one another.
    first = np.maximum(evidence.found.distances, 1e-3 * evidence.norms)
    return (evidence.found.second_distances <= NEARLY_EQUAL * first) & ~evidence.blank


def _apart(evidence: Evidence, which: np.ndarray) -> str:
    """Say how far apart the angles of two poses are, if the images agree on it."""
    family = evidence.model.transformation_
    first, second = evidence.angles, angles_of(family, evidence.found.second[which])
    if first is None or second is None:
        return ""
    apart = np.rad2deg(np.abs((second - first[which] + np.pi) % (2 * np.pi) - np.pi))
    middle = np.median(apart)
    agree = np.median(np.abs(apart - middle)) < 5
    return f", turned by {middle:.0f}°" if agree and middle > 10 else ""


def _blank(evidence: Evidence) -> Iterator[Remark]:
    if evidence.blank.any():
        number = int(evidence.blank.sum())
        text = f"{number} image(s) show nothing: {evidence.named(evidence.blank)}. Leave them out."
        yield Remark("blank", text, tuple(np.flatnonzero(evidence.blank).tolist()))


def _strangers(evidence: Evidence) -> Iterator[Remark]:
    """Images that fit much worse than the others: negatives, or something else."""
    strange = strangers(evidence)
    if not strange.any():
        return
    inverted = _inverted(evidence, strange)
    for code, which, words in (
        ("polarity", inverted, "with light and dark exchanged, they would fit: invert them"),
        ("strangers", strange & ~inverted, "they may show something else: look at them"),
    ):
        if which.any():
            number = int(which.sum())
            text = (
                f"{number} image(s) fit much worse than the others; {words}. "
                f"{evidence.named(evidence.by_misfit(which))}."
            )
            yield Remark(code, text, tuple(np.flatnonzero(which).tolist()))


def strangers(evidence: Evidence) -> np.ndarray:
    """Tell which images lie far outside the distribution of misfits."""
    misfit, seen = evidence.misfit, ~evidence.blank
    if seen.sum() < TELLING:
        return np.zeros(len(misfit), bool)
    middle = np.median(misfit[seen])
    width = 1.4826 * np.median(np.abs(misfit[seen] - middle))
    far = (misfit > FAR * middle) & (misfit > middle + FAR_IN_SPREADS * width)
    hopeless = (misfit > NOTHING_EXPLAINED) & (middle < NOTHING_EXPLAINED / FAR)
    # A perfect fit of the others leaves no width; some misfit is allowed to everybody.
    return seen & ((far & (misfit > 0.05)) | hopeless)


def _inverted(evidence: Evidence, strange: np.ndarray) -> np.ndarray:
    """Tell which strangers fit far better as negatives; without an offset there are none."""
    if not evidence.offset:
        return np.zeros(len(strange), bool)
    # As many images as before: the search is compiled for them.
    rows = np.where(strange[:, None], -evidence.rows, evidence.rows)
    options = {} if evidence.mask is None else {"sample_mask": evidence.mask}
    negative = evidence.model.project(rows, **options).distances
    return strange & (negative < RATHER_INVERTED * evidence.found.distances)


def _groups(evidence: Evidence) -> Iterator[Remark]:
    if evidence.spread_ratio is None:
        return
    smaller = two_groups(evidence)
    if smaller is not None:
        text = (
            f"The images form two groups; {len(smaller)} of {len(evidence.some)} differ from the "
            f"others: {evidence.named(smaller)}. If they show different things, learn each by "
            "itself, give each a sub-folder and use 'classify', or have them sorted by "
            "'patternfold cluster'."
        )
        yield Remark("two-groups", text, tuple(smaller.tolist()))
