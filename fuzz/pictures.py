"""Damaged pictures: reading gives images or an ImageFileError, soon and in little room."""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

import numpy as np  # noqa: E402
import tifffile  # noqa: E402
from damage import damaged  # noqa: E402
from harness import Finding, Made, run  # noqa: E402
from PIL import Image  # noqa: E402

from patternfold.files import ImageFileError, Preparation, read_images  # noqa: E402

PREPARATION = Preparation(size=(8, 8))

MOST_MEMORY = 4.0
"""GB: a picture of few bytes may have `LARGEST` pixels, which are made before they are scaled."""


def _encode(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _pictures() -> list[tuple[bytes, str]]:
    """Small files of every kind that pillow reads."""
    rng = np.random.default_rng(0)
    grey = Image.fromarray(rng.integers(0, 256, (9, 7), np.uint8))
    colour = Image.fromarray(rng.integers(0, 256, (9, 7, 3), np.uint8))
    clear = Image.fromarray(rng.integers(0, 256, (9, 7, 4), np.uint8))
    deep = Image.fromarray(rng.integers(0, 2**16, (9, 7), np.uint16))
    real = Image.fromarray(rng.random((9, 7), np.float32))
    pages = {"save_all": True, "append_images": [grey, grey]}
    exif = Image.Exif()
    exif[0x0112] = 6
    palette = colour.convert("P")
    files = [
        *((_encode(image, "PNG"), ".png") for image in (grey, colour, clear, deep, palette)),
        (_encode(grey, "PNG", transparency=3), ".png"),
        (_encode(palette, "PNG", transparency=b"\0\x7f"), ".png"),
        (_encode(grey, "PNG", **pages), ".png"),
        (_encode(grey.convert("1"), "PNG", exif=exif), ".png"),
        *((_encode(image, "JPEG", exif=exif), ".jpg") for image in (grey, colour)),
        (_encode(colour, "JPEG", progressive=True), ".jpeg"),
        (_encode(colour.convert("CMYK"), "JPEG"), ".jpg"),
        *((_encode(image, "TIFF"), ".tif") for image in (grey, colour, deep, real, palette)),
        *(
            (_encode(colour, "TIFF", compression=packing), ".tiff")
            for packing in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg")
        ),
        (_encode(grey.convert("1"), "TIFF", compression="group4"), ".tif"),
        (_encode(grey, "TIFF", **pages), ".tif"),
        (_encode(grey, "GIF", **pages), ".gif"),
        (_encode(palette, "GIF", transparency=0), ".gif"),
        *((_encode(image, "BMP"), ".bmp") for image in (grey, colour, palette, clear)),
        *((_encode(image, "PPM"), ".pgm") for image in (grey, colour, deep, grey.convert("1"))),
    ]
    return files


def _stacks() -> list[tuple[bytes, str]]:
    """Stacks as microscopes and ImageJ write them."""
    rng = np.random.default_rng(2)
    stack = rng.random((4, 9, 7)).astype(np.float32).reshape(2, 2, 9, 7)
    grey = {"photometric": "minisblack"}
    colour = rng.integers(0, 2**16, (9, 7, 3), np.uint16)
    small = rng.integers(0, 256, (9, 7), np.uint8)
    files = []
    for values, options in (
        (stack, {"ome": True, "metadata": {"axes": "TCYX"}, **grey}),
        (stack, {"imagej": True, "metadata": {"axes": "TCYX"}, **grey}),
        (stack, {"truncate": True, **grey}),
        *((stack, {"compression": packing, **grey}) for packing in ("zlib", "lzw", "zstd")),
        (colour, {"photometric": "rgb", "compression": "lzw", "predictor": True}),
        (np.moveaxis(colour, 2, 0), {"photometric": "rgb", "planarconfig": "separate"}),
        (small, {"photometric": "miniswhite", "tile": (16, 16)}),
        (small, {"compression": "jpeg", **grey}),
    ):
        file = io.BytesIO()
        tifffile.imwrite(file, values, **options)
        files.append((file.getvalue(), ".tif"))
    return files


def _arrays() -> list[tuple[bytes, str]]:
    """Small arrays and stacks."""
    rng = np.random.default_rng(1)
    stack, labels = rng.random((3, 9, 7)), np.array(["a", "b", "a"])
    header = struct.pack("<4i", 7, 9, 3, 2) + bytes(1024 - 16)
    files = [(header + stack.astype("<f4").tobytes(), ".mrcs")]
    for values in (stack, stack.astype(np.int64), (stack > 0.5), np.asfortranarray(stack)):
        file = io.BytesIO()
        np.save(file, values)
        files.append((file.getvalue(), ".npy"))
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, x=stack, y=labels)
        files.append((file.getvalue(), ".npz"))
        file = io.BytesIO()
        save(file, images=stack[..., None], target=[0, 1, 0], class_names=["a", "b"])
        files.append((file.getvalue(), ".npz"))
    return files


SEEDS = _pictures() + _stacks() + _arrays()
ENDINGS = sorted({ending for _, ending in SEEDS})


def make(rng: np.random.Generator) -> Made:
    """Damage one of the files, rarely splice two, and rarely give it another's ending."""
    content, ending = SEEDS[int(rng.integers(len(SEEDS)))]
    if rng.random() < 0.05:
        other, _ = SEEDS[int(rng.integers(len(SEEDS)))]
        content = (
            content[: int(rng.integers(len(content)))] + other[int(rng.integers(len(other))) :]
        )
    if rng.random() < 0.05:
        ending = ENDINGS[int(rng.integers(len(ENDINGS)))]
    return Made(damaged(content, rng), ending)


def check(path: Path) -> str:
    """Read and prepare."""
    try:
        found = read_images(path, PREPARATION)
    except ImageFileError:
        return "refused"
    if not np.isfinite(found.images).all() or found.images.shape[1:] != (8, 8):
        raise Finding(f"images of shape {found.images.shape}, or not finite")
    return "read"


if __name__ == "__main__":
    sys.exit(run(make, check, __doc__, MOST_MEMORY))
