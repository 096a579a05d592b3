"""Damage of zip files of JSON and arrays, as model files and steps are."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Callable
from functools import cache

import numpy as np
from damage import damaged, edited

KINDS = ("f8", "f4", "f2", "i8", "i1", "u1", "?", "U3", "c16", "M8[s]", "S2", "O", "f8,i4", ">f8")

Members = list[tuple[str, bytes]]

NAMES = (
    *("../../x.npy", "/tmp/x.npy", "arrays/../../x.npy", "C:\\x.npy", "arrays\\..\\x.npy", ""),
    *("arrays/", "arrays/x.npy/", "arrays/\n.npy", "arrays/\u202e.npy", "CON.npy", "x" * 5000),
    *("model.json", "arrays/coef.npy", "arrays.npz", "__init__.py", "arrays/x.npz", ".npy"),
)
"""Names that lead elsewhere, come twice, or mean something somewhere."""

TEXTS = (
    *(b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"9" * 5000, b"0x10", b"\xff\xfe"),
    *(b"[" * 100_000, b'{"a":' * 50_000, b"[" * 900 + b"]" * 900, b"\xef\xbb\xbf{}", b""),
    *(
        b'"\\ud800"',
        b"[1]" * 3,
        b"null",
        b"'x'",
        b"//",
        b"\0",
        b"1" + b"0" * 400,
        b"[" + b"0," * 99,
    ),
)
"""JSON and what is nearly JSON, for the place of a value."""


@cache
def _members_of(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


@cache
def _parsed(content: bytes) -> object:
    return json.loads(content)


def packed(members: Members, method: int = zipfile.ZIP_STORED) -> bytes:
    """Write a zip with correct sums."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # of names that come twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def hurt_zip(
    content: bytes, head: str, rng: np.random.Generator, texts: bool = True
) -> tuple[bytes, str]:
    """Damage a zip or what is inside; return it and what was done.

    ``head`` is a member of JSON, unless ``texts`` says that there is none. Sums of the contents
    reveal only what was done to "bytes" and "cut".
    """
    kind = rng.random()
    if kind < 0.25:
        return damaged(content, rng), "bytes"
    if kind < 0.3:
        return content[: int(rng.integers(len(content)))], "cut"
    ways = _WAYS if texts else [way for way in _WAYS if way[0] not in ("values", "text")]
    mode, hurt = ways[int(rng.integers(len(ways)))]
    members = hurt(_members_of(content), head, rng)
    squeezed = mode == "bomb" or rng.random() < 0.1
    return packed(members, zipfile.ZIP_DEFLATED if squeezed else zipfile.ZIP_STORED), mode


def _with(members: Members, name: str, content: bytes) -> Members:
    return [(n, content if n == name else c) for n, c in members]


def _some(members: Members, rng: np.random.Generator, ending: str = "") -> tuple[str, bytes]:
    fitting = [m for m in members if m[0].endswith(ending)] or members
    return fitting[int(rng.integers(len(fitting)))]


def _inside(members: Members, head: str, rng: np.random.Generator) -> Members:
    name, content = _some(members, rng)
    return _with(members, name, damaged(content, rng))


def _values(members: Members, head: str, rng: np.random.Generator) -> Members:
    text = json.dumps(edited(_parsed(dict(members)[head]), rng))
    return _with(members, head, text.encode())


def _text(members: Members, head: str, rng: np.random.Generator) -> Members:
    """Put what is no value, or a key once more, into the text."""
    text = dict(members)[head]
    breaks = [i for i, byte in enumerate(text) if byte in b":,"]
    place = breaks[int(rng.integers(len(breaks)))] + 1
    if rng.random() < 0.3:
        key = text[: place - 1].rsplit(b'"', 2)[-2]
        return _with(members, head, b'{"' + key + b'": 0, ' + text.lstrip()[1:])
    odd = TEXTS[int(rng.integers(len(TEXTS)))]
    end = next((i for i in breaks if i >= place), len(text) - 1)
    return _with(members, head, text[:place] + odd + text[end:])


def _array(members: Members, head: str, rng: np.random.Generator) -> Members:
    name, content = _some(members, rng, ".npy")
    if name == head or not name.endswith(".npy"):
        return [m for m in members if m[0] != name]
    return _with(members, name, _other_array(content, rng))


def _shape(members: Members, head: str, rng: np.random.Generator) -> Members:
    """Say another shape, of another size, in the header of an array."""
    name, content = _some(members, rng, ".npy")
    sizes = [0, 1, -1, 2**31, 2**62, 10**9, 10**18, 3, 7]
    shape = tuple(int(rng.choice(sizes)) for _ in range(int(rng.integers(5))))
    begin, end = content.find(b"'shape': ("), content.find(b"), }")
    if begin < 0 or end < 0:
        return _with(members, name, b"\x93NUMPY" + content)
    told = content[:begin] + f"'shape': {shape}".encode()[:-1] + content[end:]
    length = struct.pack("<H", len(content[10:]) and told.find(b"\n", 10) - 9)
    return _with(members, name, told[:8] + length + told[10:])


def _objects(members: Members, head: str, rng: np.random.Generator) -> Members:
    """Arrays of objects and of records, which NumPy would unpickle."""
    name, content = _some(members, rng, ".npy")
    file = io.BytesIO()
    kind = int(rng.integers(3))
    if kind == 0:
        np.save(file, np.array([{"a": 1}, print], dtype=object), allow_pickle=True)
        return _with(members, name, file.getvalue())
    word = (b"|O", b"O", b"<f8')] #", b"|V8", b"<c16", b">f8", b"|S8", b"<M8[s]")
    return _with(members, name, content.replace(b"<f8", word[int(rng.integers(len(word)))], 1))


def _names(members: Members, head: str, rng: np.random.Generator) -> Members:
    """Another name for a member, a member more, or one once more."""
    name, content = _some(members, rng)
    other = NAMES[int(rng.integers(len(NAMES)))]
    kind = int(rng.integers(4))
    if kind == 0:
        return [(other if n == name else n, c) for n, c in members]
    if kind == 1:
        return [*members, (other, content)]
    if kind == 2:
        return [*members, (name, content)]
    return [m for m in members if m[0] != name]


def _many(members: Members, head: str, rng: np.random.Generator) -> Members:
    count = int(rng.choice([100, 1000, 5000], p=[0.8, 0.15, 0.05]))
    return [*members, *((f"arrays/a{i}.npy", b"") for i in range(count))]


def _bomb(members: Members, head: str, rng: np.random.Generator) -> Members:
    """Zeros or spaces that shrink to nothing, in an array, in the text or one level below."""
    name, content = _some(members, rng)
    size = int(2 ** rng.uniform(16, 23))
    if name == head:
        return _with(members, head, b" " * size + content)
    if name.endswith(".npz"):
        inner = io.BytesIO()
        np.savez_compressed(inner, coef=np.zeros(size // 8), gamma=np.zeros(size // 8))
        return _with(members, name, inner.getvalue())
    file = io.BytesIO()
    rows = np.zeros((max(size // 40, 1), 5)) if rng.random() < 0.5 else np.zeros(size // 8)
    np.save(file, rows)
    return _with(members, name, file.getvalue())


Way = Callable[[Members, str, np.random.Generator], Members]
_WAYS: tuple[tuple[str, Way], ...] = (
    *((("values", _values),) * 8),
    *((("array", _array),) * 4),
    *((("inside", _inside),) * 4),
    *((("text", _text),) * 2),
    *((("shape", _shape),) * 2),
    *((("names", _names),) * 2),
    *((("objects", _objects),) * 2),
    ("many", _many),
    ("bomb", _bomb),
)
"""What is done, as often as it stands here; bombs and long lists take a hundred times as long."""


def _other_array(content: bytes, rng: np.random.Generator) -> bytes:
    """Return another array: other numbers, another shape or another type."""
    array = np.load(io.BytesIO(content))
    kind = int(rng.integers(5))
    if kind == 0 and array.dtype.kind == "f":
        odd = np.array([0.0, -1.0, 1e-300, 1e300, 1e6, np.nan, np.inf, 1e-9])
        array = np.where(rng.random(array.shape) < 0.3, rng.choice(odd, array.shape), array)
    elif kind == 0 and array.dtype.kind in "iu":
        odd = np.array([0, -1, 2**31 - 1, 10**9, 3])
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
    np.save(file, array, allow_pickle=True)
    return file.getvalue()
