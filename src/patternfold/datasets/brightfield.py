"""Generated brightfield pictures: textured things of known pose, and what spoils photographs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from patternfold._validation import lookup
from patternfold.datasets.things import Thing

LEVELS = {"dark": 0.08, "grey": 0.5, "light": 0.85}
"""Backgrounds by name, of the greatest value 1."""

EXTRAS = ("blank", "stranger", "polarity")
"""Pictures that do not belong: without a thing, of another thing, and a negative."""

SCALES = (0.7, 1.4)
"""Range of the things' sizes."""

_FORMATS = ("png", "jpg", "tif", "png16", "tif16")
_MARGIN = 2.5  # shortest side of a picture, in radii of its thing
_WANDER = 0.08  # of the side: how far a thing lies from the middle
_NOISE = 0.012


@dataclass(frozen=True)
class Brightfield:
    """Pictures with their true poses; those of extras are NaN."""

    pictures: tuple[np.ndarray, ...]
    """Shapes (h, w) or (h, w, 3), of 8 or 16 bits."""
    names: tuple[str, ...]
    """Names of files, with the ending of the format that suits."""
    angles: np.ndarray
    """Shape (N,), in degrees, counter-clockwise as seen."""
    centres: np.ndarray
    """Shape (N, 2), of x and y in pixels from the upper left edge."""
    radii: np.ndarray
    """Shape (N,), sizes of the things in pixels."""
    symmetry: int
    """Turns by 360 degrees over this look alike."""

    def save(self, folder: Path) -> None:
        """Write each picture to a file."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, picture in zip(self.names, self.pictures, strict=True):
            _write(folder / name, picture)


def make_brightfield(
    n: int = 30,
    background: str | float = "grey",
    *,
    sizes: tuple[int, int] = (80, 700),
    symmetry: int = 1,
    colour: bool = True,
    vignette: bool = True,
    edges: bool = True,
    letterboxes: bool = True,
    extras: Collection[str] = (),
    seed: int = 0,
) -> Brightfield:
    """Draw one thing in many pictures.

    Parameters
    ----------
    n : int
        Pictures of the thing.
    background : {"dark", "grey", "light"} or float
        Level of the background in [0, 1]; things are darker than it, but on a dark one lighter.
    sizes : (int, int)
        Shortest and longest side of pictures.
    symmetry : int
        Number of turns after which the thing looks alike; 1 for none.
    colour, vignette, edges, letterboxes : bool
        Whether some pictures are in colour, fall off towards their corners, have thin light edges,
        or black bars.
    extras : collection of {"blank", "stranger", "polarity"}
        Pictures to add that do not belong, in files of these names.
    seed : int
        Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    level = lookup("background", background, LEVELS) if isinstance(background, str) else background
    thing, other = Thing.random(rng, symmetry), Thing.random(rng, 1)
    spoils = _Spoils(vignette, edges, letterboxes)
    taken = [_photograph(thing, level, sizes, spoils, rng) for _ in range(n)]
    names = [f"{i:03}" for i in range(n)]
    for extra in extras:
        which = {"blank": None, "stranger": other, "polarity": thing}
        shown = lookup("extras", extra, which)
        taken.append(_photograph(shown, level, sizes, spoils, rng, extra == "polarity"))
        names.append(extra)
    kinds = [_FORMATS[i % len(_FORMATS)] for i in range(len(taken))]
    tint = rng.uniform(0.8, 1.0, 3) if colour else None
    poses = np.array([pose for _, pose in taken])
    poses[n:] = np.nan
    return Brightfield(
        tuple(_digitise(p, k, tint) for (p, _), k in zip(taken, kinds, strict=True)),
        tuple(f"{name}.{kind[:3]}" for name, kind in zip(names, kinds, strict=True)),
        poses[:, 0],
        poses[:, 1:3],
        poses[:, 3],
        symmetry,
    )


@dataclass(frozen=True)
class _Spoils:
    vignette: bool
    edges: bool
    letterboxes: bool


def _photograph(
    thing: Thing | None,
    level: float,
    sizes: tuple[int, int],
    spoils: _Spoils,
    rng: np.random.Generator,
    opposite: bool = False,
) -> tuple[np.ndarray, tuple[float, float, float, float]]:
    """Return grey values, and angle, x, y and radius of the thing."""
    smallest = sizes[0] / _MARGIN
    largest = min(SCALES[1] / SCALES[0] * smallest, sizes[1] / _MARGIN)
    radius = float(np.exp(rng.uniform(np.log(smallest), np.log(largest))))
    shortest = max(sizes[0], _MARGIN * radius)
    side = float(np.exp(rng.uniform(np.log(shortest), np.log(sizes[1]))))
    shape = (round(side), round(max(shortest, side * rng.uniform(0.75, 1.0))))
    angle = rng.uniform(0, 360)
    centre = np.array([shape[1], shape[0]]) * (0.5 + rng.uniform(-_WANDER, _WANDER, 2))
    own = level + rng.uniform(-0.03, 0.03)
    picture = np.full(shape, own)
    # What is dark on a light ground takes light away; on a dark ground things shine.
    sign = 1 if level < 0.3 else -1
    room = min(0.9 - own, 0.5) if sign > 0 else min(own - 0.05, 0.6)
    strength = sign * room * rng.uniform(0.7, 1.0)
    if thing is not None:
        picture += strength * thing.draw(shape, centre, angle, radius)
    if opposite:
        picture = 1 - picture
    picture, (left, top) = _spoil(picture, spoils, rng)
    return picture, (angle, float(centre[0] + left), float(centre[1] + top), radius)


def _spoil(
    picture: np.ndarray, spoils: _Spoils, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[int, int]]:
    """Add what cameras and programs add; return also by how much the picture has moved."""
    height, width = picture.shape
    chances = rng.random(3)
    if spoils.vignette and chances[0] < 0.6:
        y, x = np.mgrid[:height, :width]
        far = ((x / width - 0.5) ** 2 + (y / height - 0.5) ** 2) / 0.5
        picture = picture * (1 - rng.uniform(0.1, 0.35) * far)
    picture = picture + rng.normal(0, _NOISE, picture.shape)
    if spoils.edges and chances[1] < 0.5:
        thick = int(rng.integers(1, 4))
        inner = picture[thick:-thick, thick:-thick].copy()
        picture = np.full_like(picture, min(1.0, float(picture.mean()) + 0.3))
        picture[thick:-thick, thick:-thick] = inner
    if spoils.letterboxes and chances[2] < 0.3:
        bar = int(rng.integers(height // 12, height // 6))
        return np.pad(picture, [(bar, bar), (0, 0)]), (0, bar)
    return picture, (0, 0)


def _digitise(picture: np.ndarray, kind: str, tint: np.ndarray | None) -> np.ndarray:
    """Return whole numbers, in colour where the kind of file has it."""
    values = np.clip(picture, 0, 1)
    if tint is not None and kind in ("jpg", "tif", "tif16"):
        values = values[..., None] * tint
    deep = kind.endswith("16")
    return np.round(values * (65535 if deep else 255)).astype(np.uint16 if deep else np.uint8)


def _write(path: Path, picture: np.ndarray) -> None:
    if path.suffix == ".tif":
        from tifffile import imwrite

        imwrite(path, picture, photometric="rgb" if picture.ndim == 3 else "minisblack")
        return
    from PIL import Image

    Image.fromarray(picture).save(path, quality=92)  # PNG knows no quality
