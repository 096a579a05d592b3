"""Pictures made to do harm, and odd ones that were lost unsaid."""

import io
import os
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
import tifffile
from PIL import EpsImagePlugin, Image

from patternfold.files import ImageFileError, Preparation, read_images
from patternfold.files.prepare import prepare
from patternfold.files.raw import Picture, grey
from patternfold.files.read import read_pictures
from patternfold.files.stacks import StackError, open_stack

KEEP = Preparation(background="none", normalise="none")


def refused(path, match):
    with pytest.raises(ImageFileError, match=match):
        read_pictures(path)


def test_no_program_is_started(tmp_path, monkeypatch):
    def start(*_, **__):
        raise AssertionError("Ghostscript was started")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", start)
    head = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n"
    (tmp_path / "x.png").write_bytes(head + b"showpage\n%%EOF\n")
    refused(tmp_path / "x.png", "not that of a picture")


def frames(count, size):
    return [Image.fromarray(np.full(size, i, np.uint8)) for i in range(count)]


@pytest.mark.parametrize("ending", ["gif", "tif", "png"])
def test_pixels_of_all_pages_count(ending, tmp_path, monkeypatch):
    first, *others = frames(20, (40, 50))
    path = tmp_path / f"x.{ending}"
    packing = {"compression": "tiff_lzw"} if ending == "tif" else {}
    first.save(path, save_all=True, append_images=others, **packing)
    assert len(read_pictures(path)[0]) == 20
    monkeypatch.setattr("patternfold.files.raw.LARGEST", 30_000)
    monkeypatch.setattr(Image.Image, "load", None)  # nothing is decoded
    refused(path, "it has 40000 pixels, more than 30000")


@pytest.mark.parametrize("big", [False, True])
def test_pages_in_a_circle(big, tmp_path):
    """The last page names an earlier one as the next: whoever follows never comes to an end."""
    path, size = tmp_path / "circle.tif", 8 if big else 4
    pages = np.ones((3, 4, 4), np.uint8)
    with tifffile.TiffWriter(path, bigtiff=big) as file:
        for page in pages:
            file.write(page, contiguous=False)
    assert len(read_pictures(path)[0]) == 3
    with tifffile.TiffFile(path) as file:
        second, last = file.pages[1], file.pages[2]
        tags = len(last.tags) * (20 if big else 12)
        place = last.offset + (8 if big else 2) + tags
    content = bytearray(path.read_bytes())
    content[place : place + size] = second.offset.to_bytes(size, "little")
    path.write_bytes(content)
    refused(path, "in a circle")
    with pytest.raises(StackError, match="in a circle"):
        open_stack(path)


@pytest.mark.parametrize("ending", ["tif", "bmp", "pgm"])
def test_pixels_that_are_not_in_the_file(ending, tmp_path):
    """Pillow fills up what a header promises, which takes seconds and gigabytes."""
    path = tmp_path / f"x.{ending}"
    kind = {"tif": "TIFF", "bmp": "BMP", "pgm": "PPM"}[ending]
    Image.fromarray(np.zeros((16, 12), np.uint8)).save(path, kind)
    content = path.read_bytes()
    old, new = {
        "tif": (struct.pack("<HHII", 257, 4, 1, 16), struct.pack("<HHII", 257, 4, 1, 60_000)),
        "bmp": (struct.pack("<II", 12, 16), struct.pack("<II", 12, 60_000)),
        "pgm": (b"12 16", b"12 60000"),
    }[ending]
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    refused(path, "12 × 60000 pixels, but the file ends earlier")
    path.write_bytes(content.replace(old, new[:-4] + struct.pack("<I", 70_000)))
    if ending != "pgm":
        refused(path, "a side beyond 65536 pixels")


@pytest.mark.parametrize("kind", ["PNG", "GIF", "JPEG"])
def test_more_pixels_than_any_packing_holds(kind, tmp_path):
    """A header of 80 million pixels before a few hundred bytes: seconds to fill up with nothing."""
    path = tmp_path / f"x.{kind.lower()}"
    Image.fromarray(np.zeros((9, 7), np.uint8)).save(path, kind)
    content = path.read_bytes()
    if kind == "PNG":
        head = content[12:16] + struct.pack(">II", 9000, 9000) + content[24:29]
        content = content[:12] + head + struct.pack(">I", zlib.crc32(head)) + content[33:]
    elif kind == "GIF":
        content = content.replace(struct.pack("<HH", 7, 9), struct.pack("<HH", 9000, 9000))
    else:
        content = content.replace(struct.pack(">HH", 9, 7), struct.pack(">HH", 9000, 9000))
    path.write_bytes(content)
    refused(path, "9000 × 9000 pixels, but the file ends earlier")


@pytest.mark.parametrize("kind", ["PNG", "GIF", "JPEG"])
def test_packings_hold_no_more_pixels_than_assumed(kind, tmp_path):
    """Nothing packs better than a blank picture: all of it is read."""
    path = tmp_path / f"x.{kind.lower()}"
    Image.new("1" if kind == "PNG" else "L", (3000, 3000)).save(path, kind, optimize=True)
    assert 9e6 / path.stat().st_size > 200
    assert read_images(path, Preparation(size=(8, 8))).images.shape == (1, 8, 8)


def test_large_files_may_have_as_many_pixels_as_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("patternfold.files.raw.LARGEST", 100)
    monkeypatch.setattr("patternfold.files.raw.LARGEST_ARRAY", 100)
    Image.fromarray(np.zeros((20, 20), np.uint8)).save(tmp_path / "x.bmp")
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 9, 9)))
    assert len(read_images(tmp_path, Preparation(size=(8, 8)))) == 4


def test_arrays_are_measured_before_they_are_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("patternfold.files.raw.LARGEST_ARRAY", 2**22)
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.zeros((300, 100, 100)))
    tracemalloc.start()
    refused(path, "it unpacks to 24000000 bytes")
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_a_folder_of_large_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr("patternfold.files.read.MOST_PIXELS", 9000)
    for i in range(3):
        Image.fromarray(np.zeros((60, 60), np.uint8)).save(tmp_path / f"{i}.png")
    refused(tmp_path, r"more than 9000 pixels up to 2\.png.*shrink")


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int64])
def test_grey_takes_little_memory(kind):
    values = np.full((2048, 1024, 3), 100, kind)
    tracemalloc.start()
    pixels = grey(values).pixels
    # The result, and a block at a time beside it.
    assert tracemalloc.get_traced_memory()[1] < 4 * pixels.nbytes
    tracemalloc.stop()
    assert pixels.dtype == np.float32


# Contrast


def light(kind, white=255):
    """A dark dot on white paper."""
    values = np.full((16, 16), white, kind)
    values[6:9, 5:8] = white // 5
    return values


@pytest.mark.parametrize("kind", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_wide_integers_keep_their_contrast(kind, tmp_path):
    np.save(tmp_path / "x.npy", np.stack([light(kind)] * 2))
    found = read_images(tmp_path / "x.npy", Preparation(normalise="range"))
    assert found.preparation.background == "light"
    np.testing.assert_allclose(found.images[0], light(float) == 51, atol=1e-6)


def test_wide_integers_are_kept(tmp_path):
    np.save(tmp_path / "x.npy", np.stack([255 - light(np.int64)] * 2))
    found = read_images(tmp_path / "x.npy", KEEP)
    np.testing.assert_array_equal(found.images[0], 255 - light(np.float32))


def test_first_version_inverts_new_pictures_about_the_same_white():
    dim = [Picture(np.float32(light(float) / 1e4), "x")] * 2
    found = prepare(dim, Preparation(normalise="none", version=1))
    assert found.images.min() == 0
    assert found.images.max() == pytest.approx(0.0204)
    made = found.preparation
    again = prepare([Picture(np.full((16, 16), 0.01, np.float32), "y")], made)
    assert again.images.max() == pytest.approx(0.0155)
    assert Preparation.from_dict(made.as_dict()) == made
    for white in (1e300, float("nan"), "x"):
        with pytest.raises(ImageFileError, match="can't be used"):
            Preparation.from_dict({"white": white})


# What decoders raise


def npz(method=zipfile.ZIP_STORED, flags=0):
    file, array = io.BytesIO(), io.BytesIO()
    np.save(array, np.zeros((2, 4, 4)))
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", array.getvalue())
    content = bytearray(file.getvalue())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.index(signature) + offset
        struct.pack_into("<HH", content, place, flags, method)
    return bytes(content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("encrypted.npz", npz(flags=1)),
        ("method.npz", npz(method=99)),
        ("named.npy", npz()),
        ("empty.npz", b""),
        ("empty.gif", b"GIF89a"),
    ],
)
def test_whatever_decoders_raise_can_be_skipped(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "sound.png")
    refused(tmp_path, f"{name} can't be read: .+skip-unreadable")
    pictures, notes = read_pictures(tmp_path, skip_unreadable=True)
    assert [p.name for p in pictures] == ["sound.png"]
    assert notes == [f"1 unreadable file(s) left out: {name}"]


def test_any_error_of_a_decoder_is_ours(tmp_path, monkeypatch):
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "x.gif")
    for kind in (IndexError, RuntimeError, AttributeError, AssertionError, RecursionError):

        def load(*_, kind=kind):
            raise kind

        monkeypatch.setattr(Image.Image, "load", load)
        monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
        refused(tmp_path / "x.gif", f"can't be read: {kind.__name__}")


# Transparency


def png(values, clear, bits=8):
    """A grey or colour PNG with one value declared transparent, as few programs write it."""
    height, width = values.shape[:2]
    kind = 2 if values.ndim == 3 else 0
    lines = values.astype(">u2" if bits == 16 else np.uint8).reshape(height, -1)
    if bits < 8:
        single = lines[:, :, None] >> np.arange(bits - 1, -1, -1) & 1
        lines = np.packbits(single.reshape(height, -1).astype(np.uint8), axis=1)
    data = b"".join(b"\0" + line.tobytes() for line in lines)

    def chunk(name, content):
        return (
            struct.pack(">L", len(content))
            + name
            + content
            + struct.pack(">L", zlib.crc32(name + content))
        )

    head = struct.pack(">2L5B", width, height, bits, kind, 0, 0, 0)
    hidden = struct.pack(f">{len(clear)}H", *clear)
    parts = [(b"IHDR", head), (b"tRNS", hidden), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@pytest.mark.parametrize("case", ["grey", "grey16", "colour"])
def test_one_transparent_value(case, tmp_path):
    values = np.zeros((4, 6), int)
    values[1:3, 2:4] = 100
    if case == "colour":
        content = png(np.stack([values, values, values + 7], axis=2), (0, 0, 7))
    else:
        content = png(values, (0,), 16 if case == "grey16" else 8)
    (tmp_path / "x.png").write_bytes(content)
    (picture,) = read_pictures(tmp_path / "x.png")[0]
    assert "cut out" in picture.traits  # what remains is a rectangle
    np.testing.assert_array_equal(picture.counts, values > 0)
    np.testing.assert_allclose(picture.pixels[values == 0], 1)
    assert picture.pixels[values > 0].max() < 0.5


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_one_transparent_value_of_few_bits(bits, tmp_path):
    """Pillow stretches the pixels to bytes, but not that value."""
    values = np.full((4, 6), 2**bits - 1)
    values[1:3, 2:4] = 0
    (tmp_path / "x.png").write_bytes(png(values, (2**bits - 1,), bits))
    (picture,) = read_pictures(tmp_path / "x.png")[0]
    assert "cut out" in picture.traits
    np.testing.assert_array_equal(picture.counts, values == 0)


# Folders


def test_linked_and_closed_folders_are_said(tmp_path, monkeypatch):
    folder = tmp_path / "set"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(folder / name / "x.png")
    (folder / "c").symlink_to(folder / "a")
    notes = read_pictures(folder)[1]
    assert notes == ["1 linked sub-folder(s) not followed: c"]
    (folder / "a" / "gone.png").symlink_to(tmp_path / "nothing")
    refused(folder, r"gone\.png can't be read")
    (folder / "a" / "gone.png").unlink()
    scan = os.scandir

    def closed(place):
        if os.fspath(place).endswith("b"):
            raise PermissionError(13, "Permission denied", os.fspath(place))
        return scan(place)

    monkeypatch.setattr(os, "scandir", closed)
    refused(folder, r"b can't be opened: Permission denied.*skip-unreadable")
    pictures, notes = read_pictures(folder, skip_unreadable=True)
    assert len(pictures) == 1
    assert "1 sub-folder(s) that can't be opened left out: b" in notes


def test_names_that_are_not_utf8(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(folder / os.fsdecode(b"\xff.png"))
    (picture,) = read_pictures(tmp_path)[0]
    assert picture.name == r"caf\xe9/\xff.png"
    assert picture.label == r"caf\xe9"
