"""Arrays as .npy members: plain numbers and strings, their size checked before they are read."""

from __future__ import annotations

import io
import math
import re
import struct
from collections.abc import Mapping

import numpy as np

from patternfold._archives.archive import Archive, open_archive

# Never objects, whose reading could execute code.
_HEADER = re.compile(
    rb"\{'descr': '([<|][fiubU]\d{1,4})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,10}(?:, ?)?){0,4})\), \} *\n"
)


def array_members(arrays: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    """Return ``arrays/NAME.npy`` members."""
    members = {}
    for name, array in arrays.items():
        file = io.BytesIO()
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        members[f"arrays/{name}.npy"] = file.getvalue()
    return members


def read_arrays(archive: Archive, prefix: str = "arrays/") -> dict[str, np.ndarray]:
    """Read all ``arrays/NAME.npy`` members."""
    suffix, arrays = ".npy", {}
    for member in archive.names:
        if member.startswith(prefix) and member.endswith(suffix):
            name = member.removeprefix(prefix).removesuffix(suffix)
            arrays[name] = _read_array(archive, member)
    return arrays


def read_packed_arrays(archive: Archive, member: str) -> dict[str, np.ndarray]:
    """Read the arrays of an ``.npz`` inside the archive: the first version of the format."""
    with open_archive(io.BytesIO(archive.read(member)), archive.length) as packed:
        return read_arrays(packed, prefix="")


def _read_array(archive: Archive, member: str) -> np.ndarray:
    with archive.open(member) as file:
        shape, fortran, dtype = _read_header(file)
        expected = math.prod(shape) * dtype.itemsize
        if expected != archive.size(member) - file.tell():
            raise ValueError(f"{member} says it has shape {shape}, but its size differs")
        content = file.read()
    array = np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{member} contains NaN or infinity")
    return array.copy()


def _read_header(file: io.BufferedIOBase) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read what NumPy writes before the numbers, and nothing that it doesn't.

    NumPy's own reader evaluates the header as a Python expression and repairs old ones.
    """
    magic, version, length = struct.unpack("<6sHH", file.read(10))
    header = _HEADER.fullmatch(file.read(length))
    if magic != b"\x93NUMPY" or version != 1 or header is None:
        raise ValueError("it has an array of a type that is not allowed, or a damaged one")
    kind, fortran, shape = (part.decode() for part in header.groups())
    return tuple(int(n) for n in re.findall(r"\d+", shape)), fortran == "True", np.dtype(kind)
