"""Original pictures of all kinds, aligned at full size, against OpenCV and what was drawn."""

import csv
import json
import sys

import cv2
import numpy as np
import pytest
import tifffile
import zarr
from helpers import SHAPE, small_model, small_pattern
from PIL import Image

from patternfold import Pattern
from patternfold.cli import main
from patternfold.files import Preparation, read_pictures
from patternfold.persistence import save
from patternfold.show.png import encode_png

SIDE = 60
"""Pixels of the largest picture; the canvas shows it in 16."""

CONTRAST = 0.4

KINDS = ("8.png", "16.png", "alpha.png", "16.tif", "turned.jpg", "grey.png", "float.tif")
SIZES = ((60, 48), (48, 60), (56, 56), (40, 52), (60, 60), (50, 58), (44, 44))
TURNS = (-150, -100, -50, 0, 50, 100, 150)  # degrees, clockwise as seen
CLOCKWISE = 6
"""EXIF's word for pictures that are to be turned by a quarter, clockwise, to be shown."""


def level(i):
    """The background's colour in picture i."""
    return np.array([0.3, 0.4, 0.5]) + 0.02 * i


def drawn(i):
    """Return picture i in colour, from 0 to 1: the pattern, turned and shifted, on its level."""
    height, width = SIZES[i]
    x, y = (
        (np.arange(width) - (width - 1) / 2)[None],
        (np.arange(height) - (height - 1) / 2)[:, None],
    )
    x, y = (x - SHIFTS[i][0]) * 2 / SIDE, (y - SHIFTS[i][1]) * 2 / SIDE
    c, s = np.cos(np.deg2rad(TURNS[i])), np.sin(np.deg2rad(TURNS[i]))
    shape = np.asarray(small_pattern()(c * x + s * y, c * y - s * x))
    return np.clip(level(i) + CONTRAST * shape[..., None], 0, 1)


SHIFTS = np.random.default_rng(1).uniform(-4, 4, (len(SIZES), 2)).round(1)


def stored(i):
    """Return picture i as numbers of its file's kind."""
    kind, picture = KINDS[i], drawn(i)
    if kind.startswith("16"):
        return np.rint(65535 * picture).astype(np.uint16)
    if kind.startswith("float"):
        return picture.mean(axis=2).astype(np.float32)
    eight = np.rint(255 * picture).astype(np.uint8)
    if kind.startswith("alpha"):
        y, x = np.mgrid[: SIZES[i][0], : SIZES[i][1]]
        round_window = np.hypot(y - (SIZES[i][0] - 1) / 2, x - (SIZES[i][1] - 1) / 2) < 26
        return np.dstack([np.where(round_window[..., None], eight, 0), 255 * round_window])
    return eight[..., 1] if kind.startswith("grey") else eight


def write(path, i):
    values, kind = stored(i), KINDS[i]
    if kind == "turned.jpg":
        exif = Image.Exif()
        exif[0x0112] = CLOCKWISE
        Image.fromarray(np.ascontiguousarray(np.rot90(values))).save(path, exif=exif, quality=100)
    elif kind.endswith("tif"):
        tifffile.imwrite(path, values, photometric="rgb" if values.ndim == 3 else "minisblack")
    else:
        path.write_bytes(encode_png(values.astype(np.uint8) if "alpha" in kind else values))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures of all kinds."""
    place = tmp_path_factory.mktemp("originals")
    for i, kind in enumerate(KINDS):
        write(place / f"{i}_{kind}", i)
    return place


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of the pattern that was drawn, as if it had been learned from such pictures."""
    known = Preparation(SHAPE, background="dark", normalise="none", scale=SHAPE[0] / SIDE)
    path = tmp_path_factory.mktemp("model") / "model.ptm"
    fitted = small_model(n_images=len(KINDS))[0]
    fitted.pattern_ = Pattern(CONTRAST * fitted.pattern_.coef, fitted.pattern_.gamma)
    save(fitted, path, preparation=known.as_dict())
    return path


def align(model, folder, output, *options):
    arguments = ["align", model, folder, "-o", output, "--effort", "quick", *options]
    assert main([str(a) for a in arguments]) == 0


@pytest.fixture(scope="module")
def aligned(model, folder, tmp_path_factory):
    """The folder that `align` writes."""
    output = tmp_path_factory.mktemp("aligned") / "out"
    align(model, folder, output)
    return output


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def read(path):
    """Read a picture by OpenCV, with red first."""
    values = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    order = {3: [2, 1, 0], 4: [2, 1, 0, 3]}
    return values[..., order[values.shape[2]]] if values.ndim == 3 else values


def matrix_of(row):
    return np.array([float(row[f"m{r}{c}"]) for r in (1, 2) for c in (1, 2, 3)]).reshape(2, 3)


def warped(original, matrix, size, border):
    return cv2.warpAffine(
        original, matrix, size, flags=cv2.INTER_LINEAR, borderValue=[*border, 0, 0, 0][:4]
    )


def assert_same(ours, theirs, grey_level=1):
    assert ours.shape == theirs.shape
    assert ours.std() > 5 * grey_level
    apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    assert (apart <= grey_level).mean() >= 0.99


@pytest.mark.parametrize("i", [0, 1, 3, 5, 6])
def test_opencv_gives_the_same_pictures(i, aligned, folder):
    row = rows_of(aligned / "poses.csv")[i]
    ours, original = read(aligned / row["file"]), read(folder / row["source"])
    assert ours.dtype == original.dtype
    np.testing.assert_array_equal(original, stored(i))
    assert ours.shape[:2] == (60, 60)
    border = {5: level(i)[1:2], 6: [level(i).mean()]}.get(i, level(i))
    whole = original.dtype != np.float32
    if whole:
        border = np.rint(np.iinfo(original.dtype).max * border)
    expected = warped(original, matrix_of(row), (60, 60), border)
    assert_same(ours, expected, 1 if whole else 1 / 255)


def test_orientation_is_applied(aligned, folder):
    row = rows_of(aligned / "poses.csv")[4]
    assert row["file"] == "4_turned.png"  # JPEG would lose what was just gained
    upright = cv2.cvtColor(cv2.imread(str(folder / row["source"])), cv2.COLOR_BGR2RGB)
    assert upright.shape == (*SIZES[4], 3)
    assert np.abs(upright.astype(float) - stored(4)).mean() < 2  # compressed
    ours = read(aligned / row["file"])
    assert_same(ours, warped(upright, matrix_of(row), (60, 60), np.rint(255 * level(4))))


def test_transparency_is_kept(aligned, folder):
    row = rows_of(aligned / "poses.csv")[2]
    ours, original = read(aligned / row["file"]), read(folder / row["source"])
    assert ours.shape == (60, 60, 4)
    # Weighted by their opacity, as colours must be that are blended.
    alpha = original[..., 3:] / np.float32(255)  # in doubles, OpenCV rounds positions
    weighted = np.concatenate([original[..., :3] * alpha, 255 * alpha], axis=2)
    expected = warped(weighted, matrix_of(row), (60, 60), [0, 0, 0, 0])
    blended = np.concatenate([ours[..., :3] * (ours[..., 3:] / 255.0), ours[..., 3:]], axis=2)
    assert_same(blended, expected)
    assert ours[0, 0, 3] == 0
    edge = (ours[..., 3] > 20) & (ours[..., 3] < 235)
    assert edge.sum() > 20
    assert np.abs(ours[edge][:, :3] - 255 * level(2)).max() < 40  # nothing black shines through


def test_poses_are_as_drawn(aligned):
    rows = rows_of(aligned / "poses.csv")
    assert [row["source"] for row in rows] == [f"{i}_{kind}" for i, kind in enumerate(KINDS)]
    for i, row in enumerate(rows):
        turned = (float(row["angle_deg"]) + TURNS[i] + 180) % 360 - 180  # ours is counter-clockwise
        assert abs(turned) < 3
        shift = [float(row["shift_x_px"]), float(row["shift_y_px"])]
        np.testing.assert_allclose(shift, SHIFTS[i], atol=0.7)
        assert float(row["scale"]) == pytest.approx(1, abs=0.05)
        # The matrix says the same: the pattern's origin goes to the middle of the frame.
        middle = np.subtract(SIZES[i][::-1], 1) / 2
        reached = matrix_of(row) @ [*(middle + shift), 1]
        np.testing.assert_allclose(reached, [29.5, 29.5], atol=0.6)
        assert 0 <= float(row["confidence"]) <= 1


def test_the_mean_is_that_of_the_pictures(aligned):
    rows = rows_of(aligned / "poses.csv")
    mean = read(aligned / "mean.png")
    assert mean.shape == (60, 60, 3)
    pattern = small_pattern().render((60, 60))
    assert np.corrcoef(mean.mean(axis=2).ravel(), pattern.ravel())[0, 1] > 0.97
    assert {row["file"] for row in rows} | {"mean.png", "poses.csv"} == {
        path.name for path in aligned.iterdir()
    }


def test_stacks_hold_the_same_pictures(model, folder, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for i in range(len(KINDS)):
        name = ("0_8.png", "1_16.png")[i % 2]
        (source / f"{i // 2}{name}").write_bytes((folder / name).read_bytes())
    align(model, source, tmp_path / "x.tif")
    align(model, source, tmp_path / "y.zarr")
    align(model, source, tmp_path / "x.npz")
    pages = tifffile.imread(tmp_path / "x.tif", key=slice(None))
    assert pages.dtype == np.uint16
    np.testing.assert_array_equal(pages.shape, (len(KINDS), 60, 60, 3))
    with np.load(tmp_path / "x.npz") as arrays:
        np.testing.assert_array_equal(arrays["aligned"], pages)
        rows = rows_of(tmp_path / "x_poses.csv")
        np.testing.assert_allclose(arrays["matrices"][1], matrix_of(rows[1]), rtol=1e-8)
    array = zarr.open_array(tmp_path / "y.zarr", mode="r")
    np.testing.assert_array_equal(array[:], pages)
    assert array.attrs["names"][:2] == ["00_8.png", "01_16.png"]
    assert rows[1]["file"] == "x.tif[1]"
    (tmp_path / "y.zarr" / "old").write_text("of an older array")
    align(model, source, tmp_path / "y.zarr", "--prepared", "--force")
    assert zarr.open_array(tmp_path / "y.zarr", mode="r").shape == (len(KINDS), *SHAPE)
    assert not (tmp_path / "y.zarr" / "old").exists()
    assert read(tmp_path / "x_mean.png").dtype == np.uint16
    assert len(read_pictures(tmp_path / "x.tif")[0]) == len(KINDS)  # ours to read, too


def test_what_was_there_is_replaced_or_refused(model, folder, tmp_path, capsys, monkeypatch):
    mine = tmp_path / "mine.zarr"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    arguments = ["align", model, folder, "-o", mine, "--force"]
    assert main([str(a) for a in arguments]) == 1
    assert "holds no zarr array" in capsys.readouterr().err
    assert (mine / "letter.txt").read_text() == "dear"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "zarr", None)
        assert main(["align", str(model), str(folder), "-o", str(tmp_path / "z.zarr")]) == 1
    assert "pip install 'patternfold[zarr]'" in capsys.readouterr().err
    (tmp_path / "x_poses.csv").write_text("old")
    assert main(["align", str(model), str(folder), "-o", str(tmp_path / "x.tif")]) == 1
    assert "x_poses.csv exists already" in capsys.readouterr().err


def test_an_enlarged_frame_cuts_nothing_off(model, folder, aligned, tmp_path, capsys):
    align(model, folder, tmp_path / "out", "--expand", "--json", "--quiet")
    said = json.loads(capsys.readouterr().out)
    assert said["poses"] == str(tmp_path / "out" / "poses.csv")
    width, height = said["size"]
    before, after = rows_of(aligned / "poses.csv"), rows_of(tmp_path / "out" / "poses.csv")
    moved = np.array([matrix_of(b) - matrix_of(a) for a, b in zip(before, after, strict=True)])
    np.testing.assert_allclose(moved[:, :, :2], 0, atol=1e-9)
    left, top = moved[0, :, 2].round(6)
    assert left == int(left) > 5
    for i, row in enumerate(after):
        h, w = SIZES[i]
        corners = np.array([[-0.5, -0.5, w - 0.5, w - 0.5], [-0.5, h - 0.5] * 2, [1] * 4])
        x, y = matrix_of(row) @ corners
        assert -0.5 - 1e-6 <= x.min() < x.max() <= width - 0.5 + 1e-6
        assert -0.5 - 1e-6 <= y.min() < y.max() <= height - 0.5 + 1e-6
    small, large = read(aligned / "0_8.png"), read(tmp_path / "out" / "0_8.png")
    part = large[int(top) : int(top) + 60, int(left) : int(left) + 60]
    np.testing.assert_allclose(small.astype(int), part, atol=1)


def test_prepared_pictures_are_there_too(model, folder, tmp_path):
    align(model, folder, tmp_path / "out", "--prepared")
    row = rows_of(tmp_path / "out" / "poses.csv")[1]
    assert row["file"] == "1_16.png"
    assert read(tmp_path / "out" / row["file"]).shape == SHAPE
    assert read(tmp_path / "out" / "mean.png").shape == SHAPE


def test_a_spread_that_grew_is_a_warning(model, folder, tmp_path, capsys, monkeypatch):
    evidence = "patternfold.estimators.remarks.evidence.Evidence"
    monkeypatch.setattr(f"{evidence}.spread_ratio", 1.48)
    align(model, folder, tmp_path / "out", "--quiet")
    assert "remark: The spread of the images grew to 148% by alignment" in capsys.readouterr().err
