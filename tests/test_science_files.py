"""Files of microscopes and cameras, written by the libraries of their field."""

import mrcfile
import numpy as np
import pandas as pd
import pytest
import starfile
import tifffile
from PIL import Image

from patternfold.cli import main
from patternfold.files import ImageFileError, Preparation, read_images, read_originals
from patternfold.files.orientation import as_shown
from patternfold.files.read import read_pictures

KEEP = Preparation(background="none", normalise="none")


@pytest.fixture
def stack(rng):
    return rng.random((4, 20, 24)).astype(np.float32)


def write_mrc(path, values):
    with mrcfile.new(path) as file:
        file.set_data(values)
    return path


# TIFF


@pytest.mark.parametrize("packing", [None, "zlib", "lzw", "packbits", "zstd"])
def test_tiff_stacks(packing, stack, tmp_path):
    tifffile.imwrite(tmp_path / "x.tif", stack, compression=packing, photometric="minisblack")
    found = read_images(tmp_path / "x.tif", KEEP)
    assert found.names[3] == "x.tif[3]"
    np.testing.assert_array_equal(found.images, stack)


def test_ome_imagej_and_single_headers(stack, tmp_path):
    planes = stack.reshape(2, 2, 20, 24)
    options = {"photometric": "minisblack"}
    tifffile.imwrite(tmp_path / "a.ome.tif", planes, metadata={"axes": "TCYX"}, **options)
    tifffile.imwrite(tmp_path / "b.tif", planes, imagej=True, metadata={"axes": "TCYX"}, **options)
    tifffile.imwrite(tmp_path / "c.tif", stack, truncate=True, **options)
    for name in ("a.ome.tif", "b.tif", "c.tif"):
        np.testing.assert_array_equal(read_images(tmp_path / name, KEEP).images, stack)


def test_depths_and_colours_of_tiff(rng, tmp_path):
    deep = rng.integers(0, 2**16, (20, 24, 3), np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", deep, photometric="rgb")
    planes = np.moveaxis(deep, 2, 0)
    options = {"photometric": "rgb", "planarconfig": "separate"}
    tifffile.imwrite(tmp_path / "b.tif", planes, **options)
    wide = rng.integers(0, 2**31, (20, 24), np.uint32)
    tifffile.imwrite(tmp_path / "c.tif", wide)
    light = np.array([0.299, 0.587, 0.114])
    for name in ("a.tif", "b.tif"):
        found = read_images(tmp_path / name, KEEP)
        np.testing.assert_allclose(found.images[0], deep / 65535 @ light, atol=1e-6)
        (original,) = read_originals(found.sources)
        np.testing.assert_array_equal(original, deep)
    np.testing.assert_allclose(read_images(tmp_path / "c.tif", KEEP).images[0], wide, rtol=1e-6)


def test_white_is_zero_palettes_and_alpha(rng, tmp_path):
    values = rng.integers(0, 256, (20, 24), np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="miniswhite")
    colours = rng.integers(0, 2**16, (3, 256), np.uint16)
    tifffile.imwrite(tmp_path / "b.tif", values, photometric="palette", colormap=colours)
    alpha = np.zeros((20, 24, 4), np.uint8)
    alpha[4:-4, 4:-4] = 200, 200, 200, 255
    tifffile.imwrite(tmp_path / "c.tif", alpha, photometric="rgb", extrasamples=["unassalpha"])
    negative, palette, clear = (read_images(tmp_path / f"{name}.tif", KEEP) for name in "abc")
    np.testing.assert_allclose(negative.images[0], 1 - values / 255, atol=1e-6)
    expected = np.tensordot([0.299, 0.587, 0.114], colours[:, values] / 65535, 1)
    np.testing.assert_allclose(palette.images[0], expected, atol=1e-6)
    assert clear.mask is not None
    np.testing.assert_array_equal(clear.mask[0], alpha[..., 3] > 0)


def test_nan_in_floats_does_not_count(stack, tmp_path):
    stack[0, 3:7, 5:9] = np.nan
    stack[1, 0, 0] = np.inf
    tifffile.imwrite(tmp_path / "x.tif", stack, photometric="minisblack")
    found = read_images(tmp_path / "x.tif")
    assert found.mask is not None
    np.testing.assert_array_equal(found.mask[:2], np.isfinite(stack[:2]))
    assert np.isfinite(found.images).all()
    assert "pixels of 2 picture(s) that are no numbers do not count" in found.notes


def test_thumbnails_are_left_out(stack, tmp_path):
    with tifffile.TiffWriter(tmp_path / "x.tif") as file:
        file.write(stack[0], metadata=None)
        file.write(stack[0, ::4, ::4], subfiletype=1, metadata=None)
    assert read_images(tmp_path / "x.tif", KEEP).images.shape == (1, 20, 24)


def test_other_files_are_not_opened(stack, tmp_path):
    """An OME file may name others that hold its pages."""
    import xml.sax.saxutils as saxutils

    tifffile.imwrite(tmp_path / "secret.tif", stack, photometric="minisblack")
    description = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'
        '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="float" SizeX="24" '
        'SizeY="20" SizeC="1" SizeZ="1" SizeT="4"><Channel ID="Channel:0:0"/>'
        f"<TiffData><UUID FileName={saxutils.quoteattr('secret.tif')}>urn:uuid:1</UUID></TiffData>"
        "</Pixels></Image></OME>"
    )
    tifffile.imwrite(tmp_path / "x.ome.tif", stack[0], description=description, metadata=None)
    try:
        pictures, _ = read_pictures(tmp_path / "x.ome.tif")
    except ImageFileError:
        return
    assert len(pictures) == 1


@pytest.mark.parametrize("code", range(1, 9))
def test_orientation(code, rng, tmp_path):
    from PIL import ImageOps

    values = rng.integers(0, 256, (18, 24), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = code
    Image.fromarray(values).save(tmp_path / "x.png", exif=exif)
    with Image.open(tmp_path / "x.png") as image:
        shown = np.asarray(ImageOps.exif_transpose(image))
    np.testing.assert_array_equal(as_shown(values, code), shown)
    tifffile.imwrite(tmp_path / "x.tif", values, extratags=[(274, 3, 1, code, True)])
    for name in ("x.png", "x.tif"):
        found = read_images(tmp_path / name, KEEP)
        np.testing.assert_allclose(found.images[0], shown / 255, atol=1e-6)


# MRC and STAR


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint16, np.float16, np.float32])
def test_mrc_by_its_library(kind, rng, tmp_path):
    values = rng.integers(0, 100, (3, 6, 8)).astype(kind)
    write_mrc(tmp_path / "x.mrcs", values)
    found = read_images(tmp_path / "x.mrcs", KEEP)
    np.testing.assert_array_equal(found.images, values.astype(np.float32))
    write_mrc(tmp_path / "one.mrc", values[0])
    assert read_images(tmp_path / "one.mrc", KEEP).names == ("one.mrc",)


def test_transforms_and_packed_mrc_are_refused(stack, tmp_path):
    write_mrc(tmp_path / "x.mrc", stack[0].astype(np.complex64))
    with pytest.raises(ImageFileError, match="complex"):
        read_images(tmp_path / "x.mrc")
    with mrcfile.new(tmp_path / "x.mrcs", compression="gzip") as file:
        file.set_data(stack)
    with pytest.raises(ImageFileError, match="can't be read"):
        read_images(tmp_path / "x.mrcs")


def particles(path, names, classes=None):
    table = {"rlnImageName": names}
    if classes is not None:
        table["rlnClassNumber"] = classes
    optics = pd.DataFrame({"rlnOpticsGroup": [1], "rlnImagePixelSize": [1.2]})
    starfile.write({"optics": optics, "particles": pd.DataFrame(table)}, path)
    return path


def test_star_files(stack, tmp_path):
    folder = tmp_path / "Extract" / "job1"
    folder.mkdir(parents=True)
    write_mrc(folder / "a.mrcs", stack)
    names = [f"{i:06}@Extract/job1/a.mrcs" for i in (3, 1, 4)]
    table = particles(folder / "particles.star", names, [1, 2, 1])
    found = read_images(table, KEEP)
    assert found.names == tuple(names)
    assert found.labels == ("1", "2", "1")
    np.testing.assert_array_equal(found.images, stack[[2, 0, 3]])
    originals = np.stack(list(read_originals(found.sources)))
    np.testing.assert_array_equal(originals, stack[[2, 0, 3]])
    assert len(read_images(tmp_path, KEEP)) == 4  # in a folder, the stacks alone count


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["000001@gone.mrcs"], "neither in"),
        (["000009@a.mrcs"], "4 sections, and not number 9"),
        (["x@a.mrcs"], "invalid literal"),
        (["/etc/passwd"], "no MRC stack"),
    ],
)
def test_wrong_star_files(names, match, stack, tmp_path):
    write_mrc(tmp_path / "a.mrcs", stack)
    with pytest.raises(ImageFileError, match=match):
        read_images(particles(tmp_path / "x.star", names))


def test_star_files_can_not_fill_the_memory(stack, tmp_path, monkeypatch):
    monkeypatch.setattr("patternfold.files.raw.LARGEST", 3000)
    write_mrc(tmp_path / "a.mrcs", stack)
    with pytest.raises(ImageFileError, match="pixels, more than"):
        read_images(particles(tmp_path / "x.star", ["000001@a.mrcs"] * 40))
    (tmp_path / "y.star").write_text("data_\n\nloop_\n_rlnMicrographName #1\nx.mrc\n")
    with pytest.raises(ImageFileError, match="rlnImageName"):
        read_images(tmp_path / "y.star")


# Several files


def test_several_files_and_patterns(rng, tmp_path):
    for name in ("cat/1.png", "cat/2.png", "dog/1.png", "dog/a.tif"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        values = rng.integers(0, 256, (16, 16), np.uint8)
        (tifffile.imwrite if path.suffix == ".tif" else save_png)(path, values)
    (tmp_path / "cat" / "notes.txt").write_text("a cat")
    everything = ("cat/1.png", "cat/2.png", "dog/1.png", "dog/a.tif")
    assert read_images(tmp_path, KEEP).names == everything
    both = read_images([tmp_path / "cat", tmp_path / "dog"], KEEP)
    assert both.names == everything
    assert both.labels == ("cat", "cat", "dog", "dog")
    assert "1 other file(s) ignored: cat/notes.txt" in both.notes
    found = read_images([tmp_path / "dog" / "1.png", tmp_path / "cat" / "*.png"], KEEP)
    assert found.names == ("dog/1.png", "cat/1.png", "cat/2.png")
    one = read_images(str(tmp_path / "cat" / "*"), KEEP)
    assert one.names == ("1.png", "2.png")
    assert one.labels is None
    deep = read_images(str(tmp_path / "**" / "*.png"), KEEP)
    assert len(deep) == 3
    twice = read_images([tmp_path / "cat", tmp_path / "cat" / "1.png"], KEEP)
    assert len(twice) == 2
    with pytest.raises(ImageFileError, match=r"\*\.gif matches no pictures"):
        read_images(str(tmp_path / "*.gif"))
    with pytest.raises(ImageFileError, match="does not exist"):
        read_images([tmp_path / "cat", tmp_path / "bird"])


def save_png(path, values):
    Image.fromarray(values).save(path)


def test_preview_of_several_files(tmp_path, capsys, monkeypatch):
    """The sheet is drawn before learning begins."""
    rng = np.random.default_rng(0)
    for i in range(3):
        save_png(tmp_path / f"{i}.png", rng.integers(0, 256, (20, 20 + 4 * i), np.uint8))
    learned = []

    def fit(options, found, console):
        learned.append(found)
        raise KeyboardInterrupt

    monkeypatch.setattr("patternfold.cli.commands.learn._fit", fit)
    files = [str(tmp_path / "0.png"), str(tmp_path / "[12].png")]
    sheet = tmp_path / "sheet.png"
    main(["learn", *files, "-o", str(tmp_path / "x.ptm"), "--preview", str(sheet)])
    assert len(learned[0]) == 3
    with Image.open(sheet) as image:
        values = np.asarray(image.convert("RGB")).astype(int)
    red = (values[..., 0] > 140) & (values[..., 1] < 90)
    assert red.any()  # the padding of the smaller pictures is hatched
    said = capsys.readouterr().err
    assert "sheet.png shows them" in said
    arguments = ["learn", *files, "-o", str(tmp_path / "x.ptm"), "--preview", "sheet.jpg"]
    assert main(arguments) == 1
    assert "must end in .png" in capsys.readouterr().err
