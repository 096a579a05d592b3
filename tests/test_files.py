"""Reading images: real files of every kind, and wrong ones."""

import struct

import numpy as np
import pytest
from PIL import Image

from patternfold.files import ImageFileError, Preparation, read_images, read_pictures
from patternfold.files.placement import Placement
from patternfold.files.prepare import prepare
from patternfold.files.raw import Picture

KEEP = Preparation(background="none", normalise="none")


@pytest.fixture
def ramp():
    """A picture whose corners all differ, dark at the border."""
    pixels = np.zeros((12, 10), np.uint8)
    pixels[2:9, 2:8] = np.arange(42).reshape(7, 6) * 5 + 40
    return pixels


@pytest.mark.parametrize("ending", ["png", "bmp", "pgm", "tif", "gif"])
def test_exact_formats(ending, ramp, tmp_path):
    path = tmp_path / f"ramp.{ending.upper()}"
    Image.fromarray(ramp).save(path, format="PPM" if ending == "pgm" else None)
    found = read_images(path, KEEP)
    assert found.names == (path.name,)
    assert found.labels is None
    np.testing.assert_allclose(found.images[0], ramp / 255, atol=1e-7)


def test_jpeg(ramp, tmp_path):
    Image.fromarray(ramp).save(tmp_path / "ramp.jpg", quality=98)
    np.testing.assert_allclose(
        read_images(tmp_path / "ramp.jpg", KEEP).images[0],
        ramp / 255,
        atol=0.06,  # compression
    )


@pytest.mark.parametrize("ending", ["png", "tif", "pgm"])
def test_sixteen_bits_keep_their_precision(ending, ramp, tmp_path):
    deep = ramp.astype(np.uint16) * 257 - (ramp > 0)
    path = tmp_path / f"deep.{ending}"
    Image.fromarray(deep).save(path, format="PPM" if ending == "pgm" else None)
    np.testing.assert_allclose(read_images(path, KEEP).images[0], deep / 65535, atol=1e-7)


def test_float_tiff_and_pages(ramp, tmp_path):
    pages = [Image.fromarray(ramp * np.float32(k)) for k in (1, 2, 3)]
    pages[0].save(tmp_path / "stack.tif", save_all=True, append_images=pages[1:])
    found = read_images(tmp_path / "stack.tif", KEEP)
    assert found.names == ("stack.tif[0]", "stack.tif[1]", "stack.tif[2]")
    np.testing.assert_array_equal(found.images[2], 3.0 * ramp)


def test_colour_and_transparency_are_said(ramp, tmp_path):
    alpha = np.where(ramp > 0, 255, 0).astype(np.uint8)
    rgba = np.stack([ramp, ramp, ramp, alpha], axis=2)
    Image.fromarray(rgba).save(tmp_path / "a.png")
    Image.fromarray(rgba[..., :3]).save(tmp_path / "b.png")
    Image.fromarray(rgba[..., :3]).quantize(64).save(tmp_path / "c.png")
    found = read_images(tmp_path, KEEP)
    notes = " ".join(found.notes)
    assert "3 colour picture(s) turned grey" in notes
    assert "transparent parts around 1 picture(s) do not count" in notes
    transparent, grey, _ = found.images
    np.testing.assert_allclose(grey, ramp / 255, atol=1e-6)
    np.testing.assert_allclose(transparent, ramp / 255, atol=1e-6)
    assert found.mask is not None
    np.testing.assert_array_equal(found.mask[0], ramp > 0)
    assert found.mask[1:].all()


def test_things_cut_out_are_set_on_white(ramp, tmp_path):
    """A shape that isn't convex is the thing itself: its outline counts."""
    values = np.zeros((24, 24, 2), np.uint8)
    values[4:20, 4:8, 1] = values[16:20, 4:20, 1] = 255  # an L
    Image.fromarray(values, "LA").save(tmp_path / "x.png")
    found = read_images(tmp_path / "x.png", KEEP)
    assert "transparent parts of 1 picture(s) set on white" in found.notes
    assert found.mask is None
    np.testing.assert_allclose(found.images[0], 1 - values[..., 1] / 255)


def test_luminance(tmp_path):
    Image.new("RGB", (4, 4), (255, 0, 0)).save(tmp_path / "red.png")
    assert read_images(tmp_path / "red.png", KEEP).images == pytest.approx(0.299)


def test_sub_folders_are_classes(ramp, tmp_path):
    for name in ("cat", "dog/young"):
        (tmp_path / name).mkdir(parents=True)
        Image.fromarray(ramp).save(tmp_path / name / "1.png")
    (tmp_path / "dog" / "notes.txt").write_text("a dog")
    (tmp_path / ".hidden.png").write_text("no picture")
    found = read_images(tmp_path, KEEP)
    assert found.names == ("cat/1.png", "dog/young/1.png")
    assert found.labels == ("cat", "dog")
    assert "1 other file(s) ignored: dog/notes.txt" in found.notes


def test_arrays(ramp, tmp_path, rng):
    images = rng.random((4, 8, 8))
    np.save(tmp_path / "x.npy", images)
    np.testing.assert_allclose(read_images(tmp_path / "x.npy", KEEP).images, images, atol=1e-7)
    np.savez(tmp_path / "x.npz", x=np.stack([ramp] * 3), y=[1, 0, 1], class_names=["cat", "dog"])
    found = read_images(tmp_path / "x.npz", KEEP)
    assert found.labels == ("dog", "cat", "dog")
    np.testing.assert_allclose(found.images[1], ramp / 255, atol=1e-7)


def mrc(values, mode, order="<", extended=b"", stamp=True):
    header = bytearray(1024)
    struct.pack_into(f"{order}4i", header, 0, *values.shape[::-1], mode)
    struct.pack_into(f"{order}i", header, 92, len(extended))
    header[208:212] = b"MAP "
    if stamp:
        header[212:214] = b"\x44\x44" if order == "<" else b"\x11\x11"
    return bytes(header) + extended + values.tobytes()


@pytest.mark.parametrize(
    ("mode", "kind", "order", "stamp"),
    [(0, "i1", "<", True), (1, "i2", ">", True), (2, "f4", "<", False), (6, "u2", ">", False)],
)
def test_mrc_stacks(mode, kind, order, stamp, tmp_path, rng):
    values = rng.integers(0, 100, (3, 6, 5)).astype(order + kind)
    path = tmp_path / "particles.mrcs"
    path.write_bytes(mrc(values, mode, order, b"extended header.", stamp))
    np.testing.assert_array_equal(read_images(path, KEEP).images, values.astype(float))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"short", "enough bytes for MRC header"),
        (mrc(np.zeros((2, 4, 4), "<f4"), 2)[:-1], "the file ends earlier"),
        (mrc(np.zeros((1, 4, 4), "<f4"), 4), "in mode 4, but"),
        (mrc(np.zeros((0, 4, 4), "<f4"), 2), "holds no images"),
        (mrc(np.full((1, 4, 4), np.nan, "<f4"), 2), "all of its pixels are NaN"),
    ],
)
def test_wrong_mrc(content, match, tmp_path):
    (tmp_path / "x.mrc").write_bytes(content)
    with pytest.raises(ImageFileError, match=match):
        read_images(tmp_path / "x.mrc")


# Wrong input


def test_absent_and_empty(tmp_path):
    with pytest.raises(ImageFileError, match="does not exist"):
        read_images(tmp_path / "nowhere")
    with pytest.raises(ImageFileError, match="holds no images; known endings: bmp"):
        read_images(tmp_path)
    (tmp_path / "x.txt").write_text("text")
    with pytest.raises(ImageFileError, match=r"'\.txt' are not known"):
        read_images(tmp_path / "x.txt")


def test_text_called_png(ramp, tmp_path):
    Image.fromarray(ramp).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_text("This is no picture.")
    with pytest.raises(ImageFileError, match=r"b\.png can't be read: .*--skip-unreadable"):
        read_images(tmp_path)
    found = read_images(tmp_path, KEEP, skip_unreadable=True)
    assert len(found) == 1
    assert "1 unreadable file(s) left out: b.png" in found.notes


@pytest.mark.parametrize("ending", ["png", "tif", "jpg", "gif", "bmp", "pgm", "npy", "npz"])
def test_damaged_files(ending, ramp, tmp_path, rng):
    path = tmp_path / f"ramp.{ending}"
    if ending == "npy":
        np.save(path, ramp)
    elif ending == "npz":
        np.savez(path, x=ramp)
    else:
        Image.fromarray(ramp).save(path, format="PPM" if ending == "pgm" else None)
    content = path.read_bytes()
    outcomes = set()
    for cut in range(0, len(content), max(1, len(content) // 40)):
        changed = bytearray(content)
        changed[int(rng.integers(len(content)))] ^= 0xFF
        for version in (content[:cut], bytes(changed)):
            path.write_bytes(version)
            try:
                outcomes.add(read_pictures(path)[0][0].pixels.ndim)
            except ImageFileError:
                outcomes.add("refused")
    assert "refused" in outcomes
    assert outcomes <= {2, "refused"}


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4, 5), (0, 4, 4), (2, 0, 4)])
def test_arrays_of_other_shapes(shape, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(shape))
    with pytest.raises(ImageFileError, match=r"has shape|holds no images|no pixels"):
        read_images(tmp_path / "x.npy")


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(ImageFileError):
        read_images(tmp_path / "x.npy")


def test_labels_of_another_length(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 4, 4)), y=[0, 1])
    with pytest.raises(ImageFileError, match="3 images but labels of shape"):
        read_images(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", other=np.zeros((3, 4, 4)))
    with pytest.raises(ImageFileError, match="none of"):
        read_images(tmp_path / "y.npz")


# Preparation


def pictures(*arrays):
    return [Picture(np.asarray(a, np.float32), f"{i}") for i, a in enumerate(arrays)]


def test_mixed_sizes_share_a_scale(ramp):
    mixed = pictures(ramp / 255, ramp.T / 255)
    made = prepare(mixed, Preparation(normalise="none"))
    assert made.preparation.size == (12, 12)
    assert made.placements == (Placement(1, 1, 0), Placement(1, 0, 1))
    np.testing.assert_allclose(made.images[0, :, 1:11], ramp / 255, atol=1e-6)
    assert made.mask is not None
    assert not made.mask[0, :, [0, 11]].any()
    assert made.mask.sum() == 240
    assert any("pictures of 2 sizes" in note and "on 12×12" in note for note in made.notes)
    made = prepare(mixed, Preparation(size=(16, 20), normalise="none"))
    assert made.images.shape == (2, 16, 20)
    assert made.preparation.scale == pytest.approx(16 / 12)
    # The aspect is kept, and so is what is larger.
    assert made.images[0].sum() == pytest.approx((16 / 12) ** 2 * ramp.sum() / 255, rel=0.02)
    assert made.images[1].sum() == pytest.approx(made.images[0].sum(), rel=0.02)


def test_light_backgrounds_are_inverted(ramp):
    paper = pictures(1 - ramp / 255, 1 - ramp / 255)
    made = prepare(paper, Preparation(normalise="none"))
    np.testing.assert_allclose(made.images[0], ramp / 255, atol=1e-6)
    assert made.preparation.background == "light"
    assert any("inverted (--background dark keeps them)" in note for note in made.notes)
    kept = prepare(paper, KEEP)
    np.testing.assert_allclose(kept.images[0], 1 - ramp / 255, atol=1e-6)
    dark = prepare(paper, Preparation(background="dark", normalise="none"))
    np.testing.assert_allclose(dark.images[0], -(ramp / 255), atol=1e-6)
    # New pictures are inverted too, about their own level.
    option = Preparation.from_dict(made.preparation.as_dict())
    again = prepare(pictures(0.6 - ramp / 510), option)
    np.testing.assert_allclose(again.images[0], ramp / 510, atol=1e-6)


def test_backgrounds_are_subtracted(ramp):
    raised = pictures(0.2 + 0.5 * ramp / 255, 0.4 + 0.5 * ramp / 255)
    made = prepare(raised, Preparation(normalise="none"))
    np.testing.assert_allclose(made.images, [0.5 * ramp / 255] * 2, atol=1e-6)
    spot = ramp.astype(float)
    spot[1, 1] = -100
    option = Preparation(subtract_background=True, normalise="none")
    assert prepare(pictures(spot), Preparation(normalise="none")).images.min() == -100
    assert prepare(pictures(spot), option).images.min() == 0


def test_normalisation(ramp):
    made = prepare(pictures(ramp, 0 * ramp), Preparation())
    assert np.linalg.norm(made.images[0]) == pytest.approx(1)
    assert not made.images[1].any()
    assert "each image scaled to unit norm" in made.notes
    assert "1 blank image(s) left as they are" in made.notes
    assert made.remarks == ("1 picture(s) show nothing but background: 1",)
    assert prepare(pictures(ramp), Preparation(normalise="range")).images.max() == 1


@pytest.mark.parametrize(
    "options",
    [
        {"background": "blue"},
        {"normalise": "max"},
        {"size": (0, 5)},
        {"size": (5, 5, 5)},
        {"scale": 0.0},
        {"version": 3},
    ],
)
@pytest.mark.usefixtures("as_users_run")
def test_unknown_preparations(options):
    with pytest.raises(ValueError, match=r"not known|must be"):
        Preparation(**options)
    with pytest.raises(ImageFileError, match="can't be used"):
        Preparation.from_dict({"color": 1})


def test_preparations_of_the_first_version(ramp):
    """Model files of 0.1 were learned from pictures prepared so."""
    stored = {"size": [12, 12], "background": "light", "subtract_background": False}
    option = Preparation.from_dict({**stored, "normalise": "none", "white": 1.0})
    made = prepare(pictures(1 - ramp / 255, np.zeros((12, 12))), option)
    np.testing.assert_allclose(made.images[0, :, 1:11], ramp / 255, atol=1e-6)
    assert made.images[1].min() == 1  # whatever its own border
    assert made.mask is None
    option = Preparation.from_dict({**stored, "background": "dark", "subtract_background": True})
    made = prepare(pictures(0.3 - (ramp == 40) + ramp / 255), option)
    assert made.images.min() == 0
    assert Preparation.from_dict(made.preparation.as_dict()) == made.preparation
