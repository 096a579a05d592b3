"""Make pictures ready for learning: a background of 0, one canvas, comparable strength."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from patternfold.files.background import Backdrop, find_backdrop
from patternfold.files.borders import find_inside
from patternfold.files.first_preparation import first_is_light, first_white, prepare_first
from patternfold.files.placement import Placement, resample
from patternfold.files.preparation import BACKGROUNDS, FIRST, Preparation
from patternfold.files.raw import Picture, few
from patternfold.files.sizes import Extent, Layout, lay_out

_DECIDED = 0.3
"""Polarity from which a picture's things are clearly lighter, or below minus this darker."""

_FEW = 0.2
"""Largest share of pictures that are called wrong, rather than different."""

_BLANK, _FAINT = 0.1, 0.35
"""Of the area that usually stands out, and its strength: with less of both a picture is blank."""


@dataclass(frozen=True)
class Prepared:
    """Pictures that are ready."""

    images: np.ndarray
    """Shape (N, H, W), float32; 0 where nothing counts."""
    mask: np.ndarray | None
    """Shape (N, H, W), True where pixels count; None where all do."""
    placements: tuple[Placement, ...]
    """Where each picture lies on its image."""
    preparation: Preparation
    """With all choices made: it treats new pictures as these."""
    notes: tuple[str, ...]
    """What was done, in words."""
    remarks: tuple[str, ...] = ()
    """What looks wrong, in words, with the pictures' names."""


def prepare(pictures: Sequence[Picture], preparation: Preparation) -> Prepared:
    """Make pictures ready, each by what it shows itself: frame, background and strength."""
    shapes = [(p.pixels.shape[0], p.pixels.shape[1]) for p in pictures]
    if preparation.version == FIRST:
        layout = lay_out(shapes, preparation.size, None, True)
        return _prepare_first(pictures, preparation, layout)
    given = preparation.background == "none"
    counts, framed = _counting(pictures, look_for_frames=not given)
    found = None if given else _find_backdrops(pictures, counts)
    light = BACKGROUNDS[preparation.background]
    if light is None:
        light = are_darker(found or [])
    layout = lay_out(
        shapes,
        preparation.size,
        preparation.scale,
        preparation.fit_each,
        None if found is None else [_thing(backdrop) for backdrop in found],
    )
    images, mask = _lay(pictures, counts, found, layout)
    if light:
        np.negative(images, out=images)
    if preparation.subtract_background:
        np.maximum(images, 0, out=images)
    notes = [*_traits(pictures), *_say(framed, "bars or frames around {} picture(s) do not count")]
    notes += _say_background(preparation, found or [], light)
    word = "none" if given else "light" if light else "dark"
    made = replace(preparation, size=layout.canvas, scale=layout.scale, background=word)
    more = _normalise(images, preparation.normalise)
    remarks = _remarks(pictures, found or [], light)
    return Prepared(
        images, mask, layout.placements, made, (*notes, *layout.notes, *more), tuple(remarks)
    )


def _thing(backdrop: Backdrop) -> Extent | None:
    return None if backdrop.middle is None else Extent(*backdrop.middle, backdrop.reach)


def _find_backdrops(
    pictures: Sequence[Picture], counts: Sequence[np.ndarray | None]
) -> list[Backdrop]:
    return [find_backdrop(p.pixels, own) for p, own in zip(pictures, counts, strict=True)]


def _counting(
    pictures: Sequence[Picture], look_for_frames: bool
) -> tuple[list[np.ndarray | None], int]:
    """Return which pixels of each picture count, None for all, and how many have frames."""
    counts, framed = [], 0
    for picture in pictures:
        own, shape = picture.counts, picture.pixels.shape
        inside = find_inside(picture.pixels, own).counts(shape) if look_for_frames else True
        if not np.all(inside):
            framed += 1
            own = inside if own is None else own & inside
        counts.append(own)
    return counts, framed


def _say_background(
    preparation: Preparation, backdrops: Sequence[Backdrop], light: bool
) -> list[str]:
    notes = []
    if light:
        notes.append("things darker than their background: inverted (--background dark keeps them)")
    uneven = sum(backdrop.surface is not None for backdrop in backdrops)
    notes += _say(uneven, "uneven background of {} picture(s) evened out")
    if preparation.subtract_background:
        notes.append("what is darker than the background cut off")
    return notes


def are_darker(backdrops: Sequence[Backdrop]) -> bool:
    """Tell whether most pictures show things darker than their background."""
    return bool(np.mean([b.polarity for b in backdrops]) < -0.1)


def _remarks(pictures: Sequence[Picture], backdrops: Sequence[Backdrop], light: bool) -> list[str]:
    """Name the pictures that show nothing, or things of the opposite polarity."""
    if not backdrops:
        return []
    blank = _blank(backdrops)
    sign = -1 if light else 1
    polarity = np.array(
        [0 if empty else sign * b.polarity for b, empty in zip(backdrops, blank, strict=True)]
    )
    wrong = polarity < -_DECIDED
    # Where many differ, as under oblique light, polarity tells nothing.
    if wrong.mean() > _FEW or np.median(polarity) < _DECIDED:
        wrong[:] = False
    usually, here = ("darker", "lighter") if light else ("lighter", "darker")
    found = [
        (blank, "show nothing but background"),
        (wrong, f"show things {here} than their background, where the others show {usually} ones"),
    ]
    names = np.array([picture.name for picture in pictures])
    return [
        f"{np.sum(marked)} picture(s) {text}: {few(list(names[marked]))}"
        for marked, text in found
        if np.any(marked)
    ]


def _blank(backdrops: Sequence[Backdrop]) -> list[bool]:
    """Tell which pictures show nothing: little stands out, and that faintly."""
    share = float(np.median([b.share for b in backdrops]))
    strength = float(np.median([b.strength for b in backdrops]))
    return [
        (b.noise == 0 and b.share == 0)
        or (b.share <= _BLANK * share and b.strength < _FAINT * strength)
        for b in backdrops
    ]


def _lay(
    pictures: Sequence[Picture],
    counts: Sequence[np.ndarray | None],
    backdrops: Sequence[Backdrop] | None,
    layout: Layout,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Bring pictures to the canvas, one after the other, their backgrounds removed."""
    shape = (len(pictures), *layout.canvas)
    images, mask = np.empty(shape, np.float32), np.empty(shape, bool)
    for i, (picture, own) in enumerate(zip(pictures, counts, strict=True)):
        pixels = picture.pixels if backdrops is None else backdrops[i].remove(picture.pixels)
        known = np.ones(pixels.shape, bool) if own is None else own
        images[i], mask[i] = resample(pixels, known, layout.placements[i], layout.canvas)
    return images, None if mask.all() else mask


def _prepare_first(
    pictures: Sequence[Picture], preparation: Preparation, layout: Layout
) -> Prepared:
    """Prepare as patternfold 0.1 did."""
    light = BACKGROUNDS[preparation.background]
    if light is None:
        light = first_is_light(pictures)
    white = preparation.white
    if light and white is None:
        white = first_white(pictures)
    images, placements = prepare_first(
        pictures, layout.canvas, white if light else None, preparation.subtract_background
    )
    more = _normalise(images, preparation.normalise)
    notes = [*_traits(pictures), "prepared as by patternfold 0.1", *layout.notes, *more]
    word = "light" if light else "dark"
    made = replace(preparation, size=layout.canvas, background=word, white=white)
    return Prepared(images, None, placements, made, tuple(notes))


def _traits(pictures: Sequence[Picture]) -> list[str]:
    count = Counter(trait for picture in pictures for trait in picture.traits)
    said = {
        "colour": "{} colour picture(s) turned grey",
        "transparent": "transparent parts of {} picture(s) set on white",
        "cut out": "transparent parts around {} picture(s) do not count",
        "gaps": "pixels of {} picture(s) that are no numbers do not count",
    }
    return [note for trait, text in said.items() for note in _say(count[trait], text)]


def _say(count: int, text: str) -> list[str]:
    return [text.format(count)] if count else []


def _normalise(images: np.ndarray, how: str) -> list[str]:
    """Scale images in place; what does not count is 0 in them."""
    if how == "none":
        return []
    if how == "unit":
        # Squares of large numbers are beyond float32.
        square = np.einsum("nhw,nhw->n", images, images, dtype=np.float64)
        size, text = np.sqrt(square), "each image scaled to unit norm"
    else:
        size, text = np.abs(images).max(axis=(1, 2)), "each image scaled to greatest value 1"
    notes = [text, *_say(int((size == 0).sum()), "{} blank image(s) left as they are")]
    scale = np.where(size > 0, size, 1)[:, None, None]
    np.divide(images, scale, out=images, casting="same_kind")
    return notes
