"""Bars and frames around a picture, which are no part of what it shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

THIN = 4
"""Lines at a side that a thin frame may take, its soft edge among them."""

_FLAT = 0.02  # of the picture's range: within it a bar's values are one
_STEP = 0.04  # of the range: least step from a frame or bar to what it surrounds
_SURE = 0.8  # share of a side's positions at which a frame must show
_CORE = 0.35  # share of each side that must remain
_SAMPLES = 512  # pixels of a line that are looked at, evenly spread
_BLOCK = 8  # pixels along a block of JPEG's
_ROUNDS = 3  # bars may lie around a frame, and a frame around bars


@dataclass(frozen=True)
class Inside:
    """The rows and columns of a picture that are within bars and frames."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def rows(self) -> slice:
        """The rows inside."""
        return slice(self.top, self.bottom)

    @property
    def columns(self) -> slice:
        """The columns inside."""
        return slice(self.left, self.right)

    @property
    def height(self) -> int:
        """How many rows there are inside."""
        return self.bottom - self.top

    @property
    def width(self) -> int:
        """How many columns there are inside."""
        return self.right - self.left

    def without(self, top: int, bottom: int, left: int, right: int) -> Inside:
        """Cut off more lines."""
        return Inside(self.top + top, self.bottom - bottom, self.left + left, self.right - right)

    def counts(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return True for pixels inside."""
        counts = np.zeros(shape, bool)
        counts[self.rows, self.columns] = True
        return counts


def find_inside(pixels: np.ndarray, counts: np.ndarray | None = None) -> Inside:
    """Find what is within bars and frames; lines that look like the background beside are kept.

    A bar is of one value and ends in a step. A thin frame differs from the lines behind it nearly
    everywhere along the side, and lies at opposite sides: a stroke that touches one side is none.
    """
    height, width = pixels.shape
    whole = Inside(0, height, 0, width)
    if min(height, width) < 4 * THIN:
        return whole
    shown = pixels if counts is None else np.where(counts, pixels, np.nan)
    some = shown[:: max(1, height // _SAMPLES), :: max(1, width // _SAMPLES)]
    low, high = _levels(some.reshape(1, -1), (0.001, 0.999))
    if not high > low:
        return whole
    inside = whole
    for _ in range(_ROUNDS):
        more = _cuts(shown[inside.rows, inside.columns], float((high - low)[0]))
        if not any(more):
            break
        inside = inside.without(*more)
        if min(inside.height / height, inside.width / width) < _CORE:
            return whole
    return inside


def _cuts(core: np.ndarray, contrast: float) -> list[int]:
    """Lines to cut off at top, bottom, left and right."""
    if min(core.shape) < 4 * THIN:
        return [0, 0, 0, 0]
    views = [view[:, :: max(1, view.shape[1] // _SAMPLES)] for view in (core, core.T)]
    views = [views[0], views[0][::-1], views[1], views[1][::-1]]
    bars = [_bar(view, contrast) for view in views]
    frames = [_frame(view, contrast) for view in views]
    cuts = []
    for side, opposite in ((0, 1), (1, 0), (2, 3), (3, 2)):
        bar, frame = bars[side], frames[side]
        if bar and not bars[opposite] and not _is_strange(views[side], bar, contrast):
            bar = 0
        if frame and not (frames[opposite] or bars[opposite]):
            frame = 0
        cuts.append(max(bar, frame))
    return cuts


def _levels(lines: np.ndarray, shares: tuple[float, ...]) -> list[np.ndarray]:
    """Return the values below which these shares of each line's pixels lie, NaN left out."""
    ordered = np.sort(lines, axis=1)  # NaN come last
    last = np.count_nonzero(ordered == ordered, axis=1) - 1
    rows = np.arange(len(lines))
    return [ordered[rows, np.maximum(np.rint(share * last).astype(int), 0)] for share in shares]


def _median(values: np.ndarray) -> float:
    return float(_levels(values.reshape(1, -1), (0.5,))[0][0])


def _bar(view: np.ndarray, contrast: float) -> int:
    """Lines of a bar along the first row, with the one its step is smeared over; 0 if none."""
    reach = view[: int((1 - _CORE) * len(view))]
    low, middle, high = _levels(reach, (0.02, 0.5, 0.98))
    # One speck of dirt must not hide a bar, nor compression that leaves it slightly uneven.
    even = (high - low <= _FLAT * contrast) & (np.abs(middle - middle[0]) <= _FLAT * contrast)
    lines = len(even) if even.all() else int(np.argmin(even))
    if not 0 < lines < len(even) - _BLOCK:
        return 0
    exact = float(high[:lines].max() - low[:lines].min()) == 0 and lines > 1
    if exact and np.mean(view[lines : lines + 3] == middle[0]) < 0.2:
        return lines + 1
    # Compression lets a step ring across its block; the bar goes on to where its middle changes.
    left = np.abs(middle[lines : lines + _BLOCK] - middle[0]) > _FLAT * contrast
    lines += int(np.argmax(left))
    if lines > len(even) - _BLOCK:
        return 0
    behind = view[lines + 1 : lines + 4]  # one line further, where a soft step has ended
    apart = np.abs(behind - middle[0]) > _STEP * contrast
    return lines + 1 if apart.mean() > _SURE and _is_a_step(view, lines) else 0


def _is_a_step(view: np.ndarray, lines: int) -> bool:
    """Tell a step from a slope: behind it, or behind a frame there, brightness changes less."""
    before = _median(view[max(0, lines - 2) : lines])
    levels = [_median(view[lines + k : lines + k + 2]) for k in range(1, 9, 2)]
    return any(
        abs(after - before) > 4 * abs(deeper - after)
        for after, deeper in ((levels[0], levels[1]), (levels[2], levels[3]))
    )


def _is_strange(view: np.ndarray, lines: int, contrast: float) -> bool:
    """Tell whether a bar's value hardly occurs elsewhere: at one side only it may be a stroke."""
    value = _median(view[: max(1, lines - 1)])
    alike = np.abs(view[lines:] - value) <= _FLAT * contrast
    return bool(alike.mean() < 0.02)


def _frame(view: np.ndarray, contrast: float) -> int:
    """Lines of a thin frame along the first row; 0 if none."""
    depth = min(3 * THIN, len(view) // 2)
    behind = np.sort(view[THIN + 1 : THIN + 4], axis=0)[1]  # the median of three
    steps = view[:depth] - behind
    (levels,) = _levels(steps, (0.5,))
    # What the lines behind do among themselves: noise, texture, the slope of a vignette.
    usual = np.abs(levels[THIN + 1 :]).max() * (THIN + 2) / (depth - THIN)
    lines = 0
    for k in range(THIN):
        if abs(levels[k]) > max(3 * usual, _STEP * contrast):
            same = np.sign(levels[k]) * steps[k] > 0.5 * abs(levels[k])
            lines = k + 1 if same.mean() > _SURE else lines
    return min(lines + 1, THIN) if lines else 0
