"""Damage of zip files of JSON and arrays, as model files and steps are."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
from harness import damaged, edited

KINDS = ("f8", "f4", "f2", "i8", "i1", "u1", "?", "U3", "c16", "M8[s]", "S2")


def members_of(content: bytes) -> dict[str, bytes]:
    """Read all members of a zip."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Write a zip with correct sums."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def hurt_zip(content: bytes, head: str, rng: np.random.Generator) -> tuple[bytes, bool]:
    """Damage a zip, or what is inside with correct sums; tell whether sums can reveal it."""
    kind = int(rng.integers(5))
    if kind <= 1:
        return damaged(content, rng), True
    members = members_of(content)
    names = list(members)
    name = names[int(rng.integers(len(names)))]
    if kind == 2:
        members[name] = damaged(members[name], rng)
    elif kind == 3:
        text = json.dumps(edited(json.loads(members[head]), rng))
        members[head] = text.encode()
    elif name != head and name.endswith(".npy"):
        members[name] = _other_array(members[name], rng)
    else:
        del members[name]
    method = zipfile.ZIP_DEFLATED if rng.random() < 0.2 else zipfile.ZIP_STORED
    return packed(members, method), False


def _other_array(content: bytes, rng: np.random.Generator) -> bytes:
    """Return another array: other numbers, another shape or another type."""
    array = np.load(io.BytesIO(content))
    kind = int(rng.integers(5))
    if kind == 0 and array.dtype.kind == "f":
        odd = np.array([0.0, -1.0, 1e-300, 1e300, 1e6, np.nan, np.inf, 1e-9])
        array = np.where(rng.random(array.shape) < 0.3, rng.choice(odd, array.shape), array)
    elif kind == 1:
        array = array[: int(rng.integers(len(array) + 1))] if array.ndim else array
    elif kind == 2:
        array = np.repeat(array, int(rng.choice([2, 100])), axis=0) if array.ndim else array
    elif kind == 3:
        array = np.zeros(rng.integers(0, 5, size=int(rng.integers(4))), array.dtype)
    else:
        array = np.zeros(array.shape, np.dtype(KINDS[int(rng.integers(len(KINDS)))]))
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()
