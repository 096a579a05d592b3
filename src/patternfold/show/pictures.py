"""Pictures of any kind as files: one by one, or all in a stack."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from patternfold.files.kinds import Kind
from patternfold.show.png import encode_png

PNG, TIFF, ZARR = ".png", ".tif", ".zarr"
_QUICK = 6  # of 9: zlib's own default; the last percent would take most of the time
_CLASSIC = 2**32 - 2**25
"""Bytes up to which a TIFF file need not be a BigTIFF, which some programs don't read."""


def ending_of(kind: Kind, source: str) -> str:
    """Return the ending of the file that can hold a picture: as the source's, or TIFF, or PNG."""
    as_tiff = source.lower() in (".tif", ".tiff") or not kind.is_picture
    return TIFF if as_tiff else PNG


def encode_picture(values: np.ndarray, ending: str) -> bytes:
    """Return the content of a PNG or TIFF file."""
    if ending == PNG:
        return encode_png(values, _QUICK)
    file = io.BytesIO()
    write_tiff(file, [values], (1, *values.shape[:2]), Kind.of(values))
    return file.getvalue()


def write_tiff(
    file: Any, pictures: Iterable[np.ndarray], shape: tuple[int, int, int], kind: Kind
) -> None:
    """Write pictures of one size and kind as pages of an open TIFF file; shape is (N, H, W)."""
    tifffile = require_writer(TIFF)
    size = int(np.prod(shape)) * kind.channels * kind.dtype.itemsize
    alpha = {"extrasamples": ["unassalpha"]} if kind.has_alpha else {}
    photometric = "rgb" if kind.channels > 2 else "minisblack"
    # Grey with alpha would be taken for a small stack, were it not said that channels come last.
    planar = {"planarconfig": "contig"} if kind.channels > 1 else {}
    with tifffile.TiffWriter(file, bigtiff=size > _CLASSIC) as writer:
        for picture in pictures:
            writer.write(picture, photometric=photometric, metadata=None, **planar, **alpha)


def write_zarr(
    place: Path,
    pictures: Iterable[np.ndarray],
    shape: tuple[int, int, int],
    kind: Kind,
    attributes: dict[str, Any],
) -> None:
    """Write pictures of one size and kind as a zarr array of shape (N, H, W) or (N, H, W, C)."""
    zarr = require_writer(ZARR)
    channels = (kind.channels,) if kind.channels > 1 else ()
    array = zarr.create_array(
        store=str(place),
        shape=(*shape, *channels),
        chunks=(1, *shape[1:], *channels),
        dtype=kind.dtype,
        dimension_names=("picture", "y", "x", "channel")[: 3 + len(channels)],
        attributes=attributes,
        overwrite=True,
    )
    for i, picture in enumerate(pictures):
        array[i] = picture


def is_zarr(path: Path) -> bool:
    """Tell whether a folder is what `write_zarr` writes."""
    return (path / "zarr.json").is_file()


def remove_zarr(path: Path) -> None:
    """Remove an array, and nothing else."""
    if is_zarr(path):
        shutil.rmtree(path)


def mean_picture(mean: np.ndarray, kinds: Sequence[Kind]) -> np.ndarray:
    """Return a mean, in which white is 1, as a picture of 8 bits, or 16 where there are such.

    That of measurements without a natural range runs from its least value to its greatest.
    """
    if not all(kind.is_picture for kind in kinds):
        low, high = float(np.nanmin(mean)), float(np.nanmax(mean))
        mean = (np.nan_to_num(mean, nan=low) - low) / (high - low if high > low else 1.0)
    deep = any(kind.dtype.itemsize > 1 for kind in kinds)
    dtype, white = (np.uint16, 65535) if deep else (np.uint8, 255)
    return np.rint(np.clip(mean, 0, 1) * white).astype(dtype)


def require_writer(ending: str) -> Any:
    """Return the module that writes such files, or say how to get it."""
    module, extra = ("zarr", "zarr") if ending == ZARR else ("tifffile", "cli")
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Writing {ending} files needs {module}: pip install 'patternfold[{extra}]'."
        ) from error
