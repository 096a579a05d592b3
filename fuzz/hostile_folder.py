"""A folder of good pictures among everything that is none: those are used, the rest is told.

    python fuzz/hostile_folder.py --good 10000

Without ``skip_unreadable`` the first bad file is named, with what to do; with it every good picture
is read and every bad one left out. It ends with exit status 1 on a finding.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

import numpy as np  # noqa: E402
from account import memory  # noqa: E402
from guard import Hang, Watch, alarmed  # noqa: E402
from PIL import Image  # noqa: E402

from patternfold.files import ImageFileError, Preparation, read_images  # noqa: E402

LONGEST = 5.0
"""Seconds that reading one bad file may take."""

SIDE = 24


def good_pictures(folder: Path, count: int) -> dict[str, bytes]:
    """Ordinary pictures of kinds that are read like any other."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    colour = Image.fromarray(pixels)
    floats = rng.random((SIDE, SIDE), np.float32)
    floats[3:5, 4:9] = np.nan
    exif = Image.Exif()
    exif[0x0112] = 6
    pages = {"save_all": True, "append_images": [colour.convert("P")] * 2}
    made = {
        "palette.png": _encoded(colour.convert("P"), "PNG"),
        "cmyk.jpg": _encoded(colour.convert("CMYK"), "JPEG"),
        "animated.gif": _encoded(colour.convert("P"), "GIF", **pages),
        "turned.jpg": _encoded(colour, "JPEG", exif=exif),
        "gaps.tif": _encoded(Image.fromarray(floats), "TIFF"),
        "renamed.bmp": _encoded(colour, "PNG"),
        "line\nfeed\t\x1b[2J.png": _encoded(colour.convert("L"), "PNG"),
        "n" * 251 + ".png": _encoded(colour.convert("L"), "PNG"),
        "'; rm -rf ~; '.png": _encoded(colour.convert("L"), "PNG"),
    }
    grey = rng.integers(0, 256, (max(count - len(made), 0), SIDE, SIDE), np.uint8)
    made |= {f"{k:06d}.png": _encoded(Image.fromarray(g), "PNG") for k, g in enumerate(grey)}
    _write(folder, made)
    return made


def bad_files(folder: Path) -> list[str]:
    """Write what must be left out, and return the names."""
    png = _encoded(Image.fromarray(np.full((SIDE, SIDE), 9, np.uint8)), "PNG")
    tif = _encoded(Image.fromarray(np.full((SIDE, SIDE), 9, np.uint8)), "TIFF")
    jpg = _encoded(Image.fromarray(np.full((SIDE, SIDE), 9, np.uint8)), "JPEG")
    made = {
        "bomb.png": _png(30_000, 30_000, zlib.compress(bytes(30_000 * 3751))),
        "header.png": _png(2**31 - 1, 2**31 - 1, zlib.compress(bytes(100))),
        "zero.png": _png(0, 0, b""),
        "text.png": b"this is no picture" * 20,
        "empty.png": b"",
        "cut.png": png[: len(png) // 2],
        "cut.jpg": jpg[: len(jpg) // 3],
        "cut.tif": tif[: len(tif) // 2],
        "loop.tif": _tiff({256: SIDE, 257: SIDE, 258: 8, 262: 1, 273: 8, 279: 8}, following=8),
        "header.tif": _tiff({256: 2**31 - 1, 257: 2**31 - 1, 258: 8, 262: 1, 273: 8, 279: 8}),
        "nan.tif": _encoded(Image.fromarray(np.full((4, 4), np.nan, np.float32)), "TIFF"),
        "header.mrc": struct.pack("<4i", 2**31 - 1, 2**31 - 1, 2**31 - 1, 2) + bytes(1008),
        "negative.mrc": struct.pack("<4i", -5, 7, 3, 2) + bytes(1008),
        "mode.mrc": struct.pack("<4i", 7, 9, 3, 99) + bytes(2000),
        "short.mrc": bytes(100),
        "objects.npy": _npy(np.array([{"a": 1}, print], dtype=object)),
        "shape.npy": _npy(np.zeros(9)).replace(b"(9,)", b"(-9,)"),
        "huge.npy": _npy(np.zeros(9)).replace(b"(9,), }         ", b"(99999999999,), "),
        "strings.npy": _npy(np.array([["a", "b"]])),
        "bomb.npz": _bomb(),
        "objects.npz": _npz(np.array([None], object)),
        "zip.npz": b"PK\x05\x06" + bytes(18),
        "header.pgm": b"P5 99999999 99999999 255\n" + bytes(10),
        "header.bmp": b"BM" + struct.pack("<IIIIiiHH", 99, 0, 54, 40, 2**30, 2**30, 1, 24),
        "header.gif": b"GIF89a\xff\xff\xff\xff\x80\0\0" + bytes(40),
    }
    _write(folder, made)
    names = list(made)
    links = {"itself.png": "itself.png", "nowhere.png": "gone.png", "zeros.png": "/dev/zero"}
    os.mkfifo(folder / "pipe")
    links["pipe.png"] = "pipe"
    for name, target in links.items():
        os.symlink(target, folder / name)
    if os.geteuid():  # root may read everything
        (folder / "closed.png").write_bytes(png)
        (folder / "closed.png").chmod(0)
        names.append("closed.png")
    os.symlink(folder, folder / "round")
    (folder / "folder.png").mkdir()
    return [*names, *links]


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _png(width: int, height: int, packed: bytes) -> bytes:
    """A picture of one bit per pixel."""

    def part(kind: bytes, content: bytes) -> bytes:
        sum_ = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", sum_)

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", packed) + part(b"IEND", b"")


def _tiff(tags: dict[int, int], following: int = 0) -> bytes:
    """One directory at byte 8, and the place of the next."""
    rows = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + rows + struct.pack("<I", following)


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def _npz(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, images=array)
    return file.getvalue()


def _bomb() -> bytes:
    """A gigabyte of zeros in a megabyte."""
    file = io.BytesIO()
    head = _npy(np.zeros((1, 1))).replace(b"(1, 1), }          ", b"(1, 11585, 11585),}")
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("images.npy", "w") as member,
    ):
        member.write(head)
        for _ in range(2**10):
            member.write(bytes(2**20))
    return file.getvalue()


def check_each(folder: Path, names: list[str]) -> list[str]:
    """Read bad files one by one; return findings."""
    findings, watch = [], Watch()
    for name in names:
        started = time.process_time()
        try:
            with alarmed(2 * LONGEST):
                watch.on = True
                read_images(folder / name, Preparation(size=(8, 8)))
            findings.append(f"{name}: was read")
        except ImageFileError as error:
            if name not in str(error):
                findings.append(f"{name}: the message does not name it: {error}")
        except Hang:
            findings.append(f"{name}: did not end")
        except Exception as error:
            findings.append(f"{name}: {type(error).__name__}: {error}")
        finally:
            watch.on = False
        if time.process_time() - started > LONGEST:
            findings.append(f"{name}: took {time.process_time() - started:.1f} s")
    return findings + watch.seen


def check_folder(folder: Path, good: list[str], bad: list[str]) -> list[str]:
    """Read all with and without leaving out; return findings."""
    findings = []
    try:
        read_images(folder, Preparation(size=(8, 8)))
        findings.append("bad files were read without a word")
    except ImageFileError as error:
        if "--skip-unreadable" not in str(error):
            findings.append(f"no remedy is named: {error}")
    found = read_images(folder, Preparation(size=(8, 8)), skip_unreadable=True)
    # Pages have their number in brackets behind the name.
    names = {re.sub(r"\[\d+\]$", "", name) for name in found.names}
    findings += [f"{name!r} was not used" for name in good if name not in names]
    findings += [f"{name!r} was used" for name in bad if name in names]
    said = " ".join(found.notes)
    if f"{len(bad)} unreadable file(s) left out" not in said:
        findings.append(f"not said how many were left out: {said}")
    if not np.isfinite(found.images).all():
        findings.append("images that are not finite")
    return findings


def main() -> int:
    """Make the folder, read it, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--good", type=int, default=100, help="pictures to be read")
    parser.add_argument("--memory", type=float, default=1.5, help="GB in all (default: 1.5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        good, bad = list(good_pictures(folder, options.good)), bad_files(folder)
        started = time.perf_counter()
        findings = check_each(folder, bad) + check_folder(folder, good, bad)
        seconds = time.perf_counter() - started
    peak = memory()[1]
    if peak > options.memory:
        findings.append(f"memory: {peak:.2f} GB at the peak")
    print("\n".join(findings))
    print(f"findings: {len(findings)}")
    print(
        f"| `fuzz/hostile_folder.py --good {options.good}` | {len(good):,} good pictures, "
        f"{len(bad)} bad files | {len(findings)} | {seconds:.0f} s in all | {peak * 1e3:.0f} MB |"
    )
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
