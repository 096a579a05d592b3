"""The background of a picture: its level, a vignette, and whether things are darker than it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIDE = 96
"""Pixels along the longer side from which a background is estimated, in means over blocks."""

_RING = 0.12  # of the shorter side: how deep the ring of pixels along the edge is
_CLEAR = 0.6  # share of the ring's variance that a vignette must explain
_HIGH = 0.03  # of the picture's range: how much a vignette must rise
_LEFT = 0.05  # of the range: what may remain of an uneven background
_BRIGHT = 0.3  # of the greatest value: backgrounds from here on multiply what they light
_MOST = 0.98  # of the energy that stands out: specks of dirt far away are left out
_GAUSSIAN = 1.4826  # from the median absolute deviation to the standard deviation


@dataclass(frozen=True)
class Backdrop:
    """What a picture would show without its things."""

    level: float
    """The background, or its median where it is uneven."""
    surface: np.ndarray | None
    """Coefficients of the uneven background, see `Places.terms`, or None where it is even."""
    multiplies: bool
    """Whether an uneven background is light that falls on things, rather than light added."""
    noise: float
    """Standard deviation of the background around it."""
    polarity: float
    """From -1, all things darker than the background, to 1, all lighter."""
    share: float
    """Share of pixels that stand out."""
    strength: float
    """Their root mean square."""
    middle: tuple[float, float] | None
    """Middle x and y of what stands out, in pixels from the upper left edge, if anything does."""
    reach: float
    """How far it goes from there, along x or y."""

    def remove(self, pixels: np.ndarray) -> np.ndarray:
        """Return the picture on a background of 0, neither cut off nor scaled."""
        if self.surface is None:
            return pixels - np.float32(self.level)
        surface = Places.of(pixels.shape).evaluate(self.surface)
        if self.multiplies:
            light = np.maximum(surface, np.float32(0.01 * self.level))  # beyond what counts: any
            return pixels * (np.float32(self.level) / light) - np.float32(self.level)
        return pixels - surface


def find_backdrop(pixels: np.ndarray, counts: np.ndarray | None = None) -> Backdrop:
    """Estimate the background from the pixels along the edge of what counts."""
    values, known, step = _blocks(pixels, counts)
    if not known.any():
        return Backdrop(0.0, None, False, 0.0, 0.0, 0.0, 0.0, None, 0.0)
    ring = known & (_depth(known) <= max(1.5, _RING * min(values.shape)))
    level, noise = _middle(values[ring])
    surface, fitted, multiplies = None, level, False
    if noise > 0 and ring.sum() > 40:
        places = Places.of(pixels.shape, step)
        uneven = _vignette(values, known, ring, places, noise)
        if uneven is not None:
            surface, fitted, noise = uneven
            level = float(np.median(fitted[known]))
            multiplies = bool(fitted[known].min() > _BRIGHT * values[known].max())
    out = _stand_out(np.where(known, values - fitted, 0), noise)
    return Backdrop(
        level,
        surface,
        multiplies,
        noise,
        _polarity(out),
        float((out != 0).sum() / known.sum()),
        float(np.sqrt((out * out).sum() / max(1, (out != 0).sum()))),
        *_extent(out * out, step),
    )


def _stand_out(residuals: np.ndarray, noise: float) -> np.ndarray:
    """Return residuals that noise does not explain, and 0 for others."""
    least = max(4 * noise, 1e-6 * float(np.abs(residuals).max()))
    return np.where(np.abs(residuals) > least, residuals, 0)


def _polarity(out: np.ndarray) -> float:
    total = float((out * out).sum())
    return float((np.sign(out) * out * out).sum() / total) if total else 0.0


def _extent(energy: np.ndarray, step: int) -> tuple[tuple[float, float] | None, float]:
    """Return where the middle of energy is, and how far nearly all of it goes."""
    total = float(energy.sum())
    if total == 0:
        return None, 0.0
    y, x = np.indices(energy.shape) + 0.5
    middle = float((x * energy).sum() / total), float((y * energy).sum() / total)
    far = np.maximum(np.abs(x - middle[0]), np.abs(y - middle[1])).ravel()
    order = np.argsort(far)
    most = np.searchsorted(np.cumsum(energy.ravel()[order]), _MOST * total)
    reach = float(far[order[min(most, len(order) - 1)]]) + 0.5
    return (step * middle[0], step * middle[1]), step * reach


def _blocks(pixels: np.ndarray, counts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Return means over blocks of ``step`` pixels, and which blocks hold pixels that count."""
    step = max(1, -(-max(pixels.shape) // SIDE))
    known = np.ones(pixels.shape, bool) if counts is None else counts
    if step == 1:
        return pixels.astype(np.float64), known, step
    weights = _block_sums(known.astype(np.float64), step)
    sums = _block_sums(np.where(known, pixels, 0).astype(np.float64), step)
    area = _block_sums(np.ones_like(known, np.float64), step)  # less at the ends
    return sums / np.maximum(weights, 1), weights >= 0.5 * area, step


def _block_sums(values: np.ndarray, step: int) -> np.ndarray:
    for axis, n in enumerate(values.shape):
        values = np.add.reduceat(values, np.arange(0, n, step), axis=axis)
    return values


def _depth(known: np.ndarray) -> np.ndarray:
    """Distance of pixels from the nearest that does not count; the outermost have 1."""
    from scipy.ndimage import distance_transform_edt

    if known.all():
        height, width = known.shape
        y, x = np.arange(height)[:, None], np.arange(width)
        return np.minimum(np.minimum(y, height - 1 - y), np.minimum(x, width - 1 - x)) + 1.0
    return np.asarray(distance_transform_edt(np.pad(known, 1)))[1:-1, 1:-1]


def _middle(values: np.ndarray) -> tuple[float, float]:
    """Return the median and standard deviation, of things that reach into the ring unmoved."""
    level, noise = _spread(values)
    for _ in range(2):
        values = values[np.abs(values - level) <= 3 * noise]
        level, noise = _spread(values)
    return level, noise


def _spread(values: np.ndarray) -> tuple[float, float]:
    level = float(np.median(values))
    return level, _GAUSSIAN * float(np.median(np.abs(values - level)))


def _vignette(
    values: np.ndarray,
    known: np.ndarray,
    ring: np.ndarray,
    places: Places,
    noise: float,
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Fit an uneven background; None unless it is clearly there.

    The ring alone decides at first, with weights that fall to 0 for what lies far from the fit;
    then the background within joins, which ties the fit down in the middle.
    """
    terms = np.stack([np.broadcast_to(t, values.shape) for t in places.terms()], axis=-1)
    surface = np.zeros(terms.shape[-1])
    used, scale, few = ring, noise, 6  # of the terms: the last one needs pixels everywhere
    surface[:few] = _fit(terms[ring][:, :few], values[ring], np.ones(ring.sum()))
    for turn in range(10):
        residuals = values - terms @ surface
        _, scale = _middle(residuals[ring])
        if turn == 4:
            used, few = known, terms.shape[-1]
        weights = np.clip(1 - (residuals[used] / (4.7 * scale + 1e-12)) ** 2, 0, None) ** 2
        if (weights > 0).sum() < 4 * few:
            return None
        surface[:few] = _fit(terms[used][:, :few], values[used], weights)
    fitted = terms @ surface
    rise = np.ptp(fitted[known])
    contrast = np.ptp(np.percentile(values[known], [0.5, 99.5]))
    clear = scale**2 < (1 - _CLEAR) * noise**2 and rise > max(_HIGH * contrast, 4 * scale)
    # A scene without a background leaves more, and most of the ring far from the fit.
    near = np.abs((values - fitted)[ring]) < 3 * scale
    clear = clear and scale < _LEFT * contrast and near.mean() > _CLEAR
    return (surface, fitted, scale) if clear else None


def _fit(terms: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    weighted = terms * weights[:, None]
    normal = terms.T @ weighted
    ridge = 1e-9 * np.trace(normal) * np.eye(len(normal))
    return np.linalg.solve(normal + ridge, weighted.T @ values)


@dataclass(frozen=True)
class Places:
    """Coordinates of pixels or blocks: 0 in the middle of the picture, ±1 at its longer sides."""

    y: np.ndarray
    x: np.ndarray

    @classmethod
    def of(cls, shape: tuple[int, ...], step: int = 1) -> Places:
        """Centres of blocks of ``step`` pixels of a picture."""
        half = max(shape) / 2
        y, x = (((np.arange(-(-n // step)) + 0.5) * step - n / 2) / half for n in shape)
        return cls(y[:, None], x[None, :])

    def terms(self) -> list[np.ndarray]:
        """Polynomials of the second degree, and the fourth power of the distance."""
        y, x = self.y, self.x
        return [np.ones_like(x), x, y, x * x, x * y, y * y, (x * x + y * y) ** 2]

    def evaluate(self, surface: np.ndarray) -> np.ndarray:
        """Return the surface at these places, in float32."""
        places = Places(self.y.astype(np.float32), self.x.astype(np.float32))
        parts = zip(surface.astype(np.float32), places.terms(), strict=True)
        total = np.zeros((self.y.size, self.x.size), np.float32)
        for coefficient, term in parts:
            total += coefficient * term
        return total
