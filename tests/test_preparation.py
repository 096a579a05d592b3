"""Preparation of ordinary pictures: frames, bars, backgrounds, polarity and sizes."""

import tracemalloc

import numpy as np
import pytest
from PIL import Image

from patternfold.datasets import load_mnist, make_brightfield
from patternfold.datasets.things import Thing
from patternfold.files import Placement, Preparation, read_images, read_originals, read_pictures
from patternfold.files.background import find_backdrop
from patternfold.files.borders import Inside, find_inside
from patternfold.files.prepare import prepare
from patternfold.files.raw import Picture, grey
from patternfold.files.sizes import Extent, lay_out


def picture(level=0.5, shape=(90, 100), noise=0.01, seed=0, strength=-0.4, **where):
    """A thing on an even ground."""
    rng = np.random.default_rng(seed)
    thing = Thing.random(rng)
    centre = (shape[1] / 2, shape[0] / 2)
    drawn = thing.draw(shape, where.get("centre", centre), where.get("angle", 20.0), 30.0)
    return (level + strength * drawn + rng.normal(0, noise, shape)).astype(np.float32)


def framed(pixels, value, thick=2):
    out = np.full_like(pixels, value)
    out[thick:-thick, thick:-thick] = pixels[thick:-thick, thick:-thick]
    return out


def inside_of(shape, top, bottom, left, right):
    return Inside(top, shape[0] - bottom, left, shape[1] - right)


# Bars and frames


@pytest.mark.parametrize("level", [0.1, 0.5, 0.85])
@pytest.mark.parametrize("thick", [1, 2, 3])
def test_thin_frames_are_found(level, thick):
    for value in (0.0, 1.0):
        strength = 0.5 if level < 0.3 else -0.4 * level
        found = find_inside(framed(picture(level, strength=strength), value, thick))
        cut = (found.top, 90 - found.bottom, found.left, 100 - found.right)
        assert min(cut) >= thick
        assert max(cut) <= thick + 3


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_bars_are_found(value):
    pixels = np.pad(picture(), [(12, 15), (0, 0)], constant_values=value)
    assert find_inside(pixels) == inside_of(pixels.shape, 13, 16, 0, 0)
    pixels = np.pad(framed(picture(), 0.9), [(0, 0), (20, 20)], constant_values=value)
    found = find_inside(pixels)
    assert found.left >= 22
    assert found.top >= 2
    one_sided = np.pad(picture(), [(0, 14), (0, 0)], constant_values=value)
    assert find_inside(one_sided) == inside_of(one_sided.shape, 0, 15, 0, 0)


@pytest.mark.parametrize("thick", [0, 2, 3])
def test_bars_around_a_frame_after_compression(thick, tmp_path):
    inner = framed(picture(0.45), 0.8, thick) if thick else picture(0.45)
    pixels = np.pad(inner, [(29, 29), (0, 0)])
    Image.fromarray((255 * pixels).astype(np.uint8)).save(tmp_path / "x.jpg", quality=90)
    (seen,) = read_pictures(tmp_path / "x.jpg")[0]
    found = find_inside(seen.pixels)
    assert 29 + thick <= found.top <= 34 + thick
    assert 29 + thick <= 148 - found.bottom <= 34 + thick


def test_pictures_without_frames_are_kept_whole():
    whole = [picture(), picture(0.9), picture(noise=0), picture(centre=(20, 40)), picture() ** 2]
    y, x = np.mgrid[-1:1:90j, -1:1:100j]
    whole.append(picture() * (1 - 0.4 * (x * x + y * y)))  # a vignette
    whole.append(np.tile(np.linspace(0, 1, 40), (40, 1)))  # a slope
    whole.append(np.zeros((40, 40)))
    for pixels in whole:
        assert find_inside(pixels) == inside_of(pixels.shape, 0, 0, 0, 0)


def test_digits_on_black_are_kept_whole():
    digits = load_mnist()[0].reshape(-1, 28, 28)[:300] / 255
    for digit in digits:
        assert find_inside(digit) == Inside(0, 28, 0, 28)
        rows, columns = np.flatnonzero(digit.any(axis=1)), np.flatnonzero(digit.any(axis=0))
        tight = np.kron(
            digit[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1], np.ones((3, 3))
        )
        assert find_inside(tight) == inside_of(tight.shape, 0, 0, 0, 0)


def test_letters_that_touch_the_sides_are_no_frames():
    letter = np.zeros((60, 40))
    letter[:, :10] = letter[:10] = letter[25:35, :30] = letter[-10:] = 1  # an E
    assert find_inside(letter).left == 0
    letter[:, :10] = letter[:10] = letter[25:35] = 0
    letter[:, :3] = letter[-3:] = 1  # an L of thin strokes
    assert find_inside(letter) == Inside(0, 60, 0, 40)


def test_frames_are_not_seen():
    """The same picture with and without a frame and bars is prepared alike where it counts."""
    plain = picture()
    spoiled = np.pad(framed(plain, 1.0), [(10, 10), (0, 0)])
    with_frame = prepare([Picture(spoiled, "a")], Preparation(normalise="none"))
    without = prepare([Picture(plain, "a")], Preparation(normalise="none"))
    assert "bars or frames around 1 picture(s) do not count" in with_frame.notes
    assert with_frame.mask is not None
    mask = with_frame.mask[0, 10:-10]
    assert mask.mean() > 0.85
    np.testing.assert_allclose(
        with_frame.images[0, 10:-10][mask], without.images[0][mask], atol=2e-3
    )
    assert not with_frame.images[~with_frame.mask].any()


# Backgrounds


@pytest.mark.parametrize("level", [0.05, 0.3, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("sign", [-1, 1])
def test_level_and_polarity(level, sign):
    room = 0.9 * (1 - level if sign > 0 else level)
    found = find_backdrop(picture(level, strength=sign * room, noise=0.005))
    assert found.level == pytest.approx(level, abs=0.003)
    assert np.sign(found.polarity) == sign
    assert abs(found.polarity) > 0.7
    assert found.surface is None
    assert found.middle == pytest.approx((50, 45), abs=6)
    assert 20 < found.reach < 40


def test_negative_values_are_kept():
    """Texture on both sides of the background survives."""
    made = prepare([Picture(picture(), "a")] * 2, Preparation())
    assert made.preparation.background == "light"  # most of the thing is darker
    assert made.images.min() < -3 * made.images[:, 0].std()
    np.testing.assert_allclose(np.linalg.norm(made.images[0]), 1, rtol=1e-5)


def test_vignettes_are_removed():
    y, x = np.mgrid[-1:1:90j, -1:1:100j]
    light = 1 - 0.25 * (x * x + y * y) + 0.05 * x
    plain = picture(noise=0.004)
    found = find_backdrop((plain * light).astype(np.float32))
    assert found.surface is not None
    assert found.multiplies
    flat = found.remove((plain * light).astype(np.float32)) / found.level
    expected = plain / 0.5 - 1
    assert np.sqrt(np.mean((flat - expected) ** 2)) < 0.02
    assert find_backdrop(plain).surface is None


def test_faces_have_no_vignette(rng):
    """Smooth scenes that fill their pictures are left as they are."""
    from scipy.ndimage import gaussian_filter

    scenes = [gaussian_filter(rng.normal(size=(60, 50)), 5).astype(np.float32) for _ in range(10)]
    assert sum(find_backdrop(s).surface is not None for s in scenes) == 0


@pytest.mark.parametrize("background", ["dark", "grey", "light"])
def test_what_does_not_belong_is_remarked(background):
    extras = ("blank", "polarity")
    made = make_brightfield(10, background, sizes=(80, 120), extras=extras, seed=4)
    pictures = []
    for values, name in zip(made.pictures, made.names, strict=True):
        pictures.append(Picture(grey(values).pixels, name))
    remarks = prepare(pictures, Preparation()).remarks
    assert len(remarks) == 2
    assert remarks[0] == f"1 picture(s) show nothing but background: {made.names[10]}"
    assert remarks[1].endswith(f": {made.names[11]}")
    assert prepare(pictures[:10], Preparation()).remarks == ()


# Sizes


def test_one_scale_for_all():
    made = lay_out([(300, 200), (150, 600), (80, 90)])
    assert made.scale == pytest.approx(256 / 600)
    assert made.canvas == (128, 256)
    assert {p.scale for p in made.placements} == {made.scale}
    small = made.placements[2]
    assert (small.left, small.top) == (109, 47)


def test_same_sizes_are_kept():
    assert lay_out([(512, 400)] * 3).scale == 1
    made = lay_out([(3000, 4000)] * 3)
    assert made.canvas == (384, 512)
    assert lay_out([(512, 512)] * 5000).canvas[0] < 512  # the memory is not filled


def test_fit_each():
    made = lay_out([(300, 200), (30, 20)], fit_each=True)
    assert made.scale is None
    assert made.canvas == (256, 171)
    assert [round(p.scale, 2) for p in made.placements] == [0.85, 8.53]


def test_large_pictures_are_cut_to_their_things():
    things = [Extent(50, 50, 30), Extent(500, 120, 40), Extent(300, 300, 35)]
    made = lay_out([(100, 100), (200, 700), (600, 600)], things=things)
    assert made.canvas == (125, 125)
    assert made.scale == 1
    assert made.placements[1].left == round(62.5 - 500)
    assert made.placements[1].top == max(125 - 200, round(62.5 - 120))
    assert any("2 picture(s) cut" in note for note in made.notes)
    # New pictures keep the scale, unless what they show is too large.
    again = lay_out(
        [(400, 400), (400, 400)], made.canvas, 1.0, False, [things[0], Extent(9, 9, 125)]
    )
    assert [p.scale for p in again.placements] == [1, 0.5]
    assert any("1 picture(s) shrunk" in note for note in again.notes)


@pytest.mark.parametrize("scale", [0.37, 1.0, 1.6])
def test_placements_are_exact(scale):
    """A blob's centre is found where the placement says."""
    y, x = np.mgrid[:80, :96] + 0.5
    blob = np.exp(-((x - 60.3) ** 2 + (y - 33.8) ** 2) / 60).astype(np.float32)
    side = round(110 * scale)
    option = Preparation(size=(side, side), scale=scale, normalise="none")
    made = prepare([Picture(blob, "a")], option)
    rows, columns = np.indices((side, side)) + 0.5
    total = made.images[0].sum()
    place = made.placements[0]
    assert (columns * made.images[0]).sum() / total == pytest.approx(
        scale * 60.3 + place.left, abs=0.05
    )
    assert (rows * made.images[0]).sum() / total == pytest.approx(
        scale * 33.8 + place.top, abs=0.05
    )
    assert isinstance(place, Placement)


def test_very_long_pictures_take_little_memory():
    tracemalloc.start()
    long = Picture(np.linspace(0, 1, 7 * 50_000, dtype=np.float32).reshape(50_000, 7), "a")
    made = prepare([long, Picture(picture(), "b")], Preparation(size=(8, 8)))
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()
    assert np.isfinite(made.images).all()


# Real files


def test_brightfield_files(tmp_path):
    made = make_brightfield(10, "grey", sizes=(80, 160), seed=2)
    made.save(tmp_path)
    found = read_images(tmp_path)
    assert found.mask is not None
    assert found.names == made.names
    assert found.remarks == ()
    assert found.preparation.background == "light"
    for i, place in enumerate(found.placements):
        thing = np.abs(found.images[i]) > 0.25 * np.abs(found.images[i]).max()
        rows, columns = np.nonzero(thing)
        seen = np.array([columns.mean(), rows.mean()]) + 0.5
        expected = place.scale * made.centres[i] + [place.left, place.top]
        assert np.abs(seen - expected).max() < 0.35 * place.scale * made.radii[i]
    originals = list(read_originals([s for s in found.sources if s is not None]))
    for values, expected in zip(originals, made.pictures, strict=True):
        assert values.dtype == expected.dtype
        assert values.shape == expected.shape
