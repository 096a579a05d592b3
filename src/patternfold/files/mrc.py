"""MRC images and stacks, as electron microscopes write them, by mrcfile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


def read_mrc(path: Path) -> Iterator[np.ndarray]:
    """Read an MRC file section by section; integers are returned as floats.

    The numbers are measurements without a natural range, so unlike those of other formats they
    are not divided by the greatest value of their type.
    """
    # Mapped, so that nothing is unpacked: a compressed file is none to this reader. Permissive,
    # since many programs leave the identifier and the machine stamp out.
    with _mrcfile().mmap(path, mode="r", permissive=True) as file:
        for section in _sections(file):
            if section.dtype.kind == "c":
                raise ValueError("it is a complex transform, no image")
            yield np.asarray(section, np.float32)


def read_section(path: Path, section: int) -> np.ndarray:
    """Read one section, counted from 0."""
    with _mrcfile().mmap(path, mode="r", permissive=True) as file:
        sections = _sections(file)
        if not 0 <= section < len(sections):
            raise ValueError(f"it has {len(sections)} sections, and not number {section + 1}")
        return np.asarray(sections[section], np.float32)


def map_sections(path: Path) -> np.ndarray:
    """Map all sections, (N, H, W), in the kind of numbers that the file holds."""
    file = _mrcfile().mmap(path, mode="r", permissive=True)
    if (sections := _sections(file)).dtype.kind == "c":
        raise ValueError("it is a complex transform, no image")
    return sections


def _sections(file: Any) -> np.ndarray:
    if file.data is None:
        header = file.header
        size = f"{int(header.nx)} × {int(header.ny)} × {int(header.nz)}"
        raise ValueError(
            f"its header says {size} pixels in mode {int(header.mode)}, but the file ends earlier "
            "or has another kind of pixels"
        )
    return file.data.reshape(-1, *file.data.shape[-2:])


def _mrcfile() -> Any:
    try:
        import mrcfile
    except ImportError as error:
        raise ImportError("Reading MRC needs mrcfile: pip install 'patternfold[cli]'.") from error
    return mrcfile
