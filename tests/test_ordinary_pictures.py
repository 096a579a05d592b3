"""From a folder of ordinary pictures to their poses, on the command line."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from patternfold.cli import main
from patternfold.datasets import make_brightfield

CLOCKWISE = 6
"""EXIF's word for pictures that are to be turned by a quarter, clockwise, to be shown."""


def as_bytes(values):
    """The picture in colour, with 8 bits."""
    eight = values if values.dtype == np.uint8 else (values >> 8).astype(np.uint8)
    return eight if eight.ndim == 3 else np.repeat(eight[..., None], 3, axis=2)


def save_turned(path, values):
    """A photograph whose camera was held upright."""
    exif = Image.Exif()
    exif[0x0112] = CLOCKWISE
    stored = np.ascontiguousarray(np.rot90(as_bytes(values)))
    Image.fromarray(stored).save(path, quality=95, exif=exif)


def save_round(path, values, centre, radius):
    """A picture cut to a disc, transparent around it."""
    eight = as_bytes(values)
    y, x = np.mgrid[: len(eight), : eight.shape[1]] + 0.5
    disc = np.hypot(x - centre[0], y - centre[1]) < radius
    Image.fromarray(np.dstack([eight, 255 * disc.astype(np.uint8)])).save(path)


def angles_of(folder, names):
    with open(folder / "poses.csv", newline="", encoding="utf-8") as file:
        found = {line["source"]: float(line["angle_deg"]) for line in csv.DictReader(file)}
    return np.array([found[name] for name in names])


def errors(found, true):
    """Degrees apart, up to one turn for all."""
    apart = found - true
    return min(
        (np.abs((apart - start + 180) % 360 - 180) for start in apart), key=lambda e: np.median(e)
    )


def learn_and_align(folder: Path, place: Path, *options: str) -> Path:
    model, aligned = str(place / "model.ptm"), place / "aligned"
    assert main(["learn", str(folder), "-o", model, *options]) == 0
    assert main(["align", model, str(folder), "-o", str(aligned)]) == 0
    return aligned


def test_a_folder_of_all_kinds(tmp_path, capsys):
    """Colour, 16 bits, alpha, orientation, mixed sizes, frames, bars and vignettes."""
    made = make_brightfield(8, "grey", sizes=(80, 160), seed=3)
    folder = tmp_path / "pictures"
    made.save(folder)
    (folder / made.names[1]).unlink()
    save_turned(folder / made.names[1], made.pictures[1])
    save_round(folder / made.names[0], made.pictures[0], made.centres[0], 1.2 * made.radii[0])
    aligned = learn_and_align(folder, tmp_path, "--size", "16", "--atoms", "3")
    said = capsys.readouterr().err
    assert "transparent parts around 1 picture(s) do not count" in said
    assert "bars or frames around" in said
    apart = errors(angles_of(aligned, made.names), made.angles)
    assert np.median(apart) < 1  # things of eight pixels, three atoms
    assert apart.max() < 5


@pytest.mark.exhaustive
@pytest.mark.parametrize("background", ["dark", "grey", "light"])
def test_no_options(background, tmp_path):
    made = make_brightfield(16, background, seed=5)
    made.save(tmp_path / "pictures")
    aligned = learn_and_align(tmp_path / "pictures", tmp_path)
    apart = errors(angles_of(aligned, made.names), made.angles)
    assert np.median(apart) <= 1
    assert (apart <= 5).mean() >= 0.98
