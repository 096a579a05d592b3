"""Damage of bytes and of JSON values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

EXTREMES = (0, 1, 2**7 - 1, 2**8 - 1, 2**15 - 1, 2**16 - 1, 2**24, 2**31 - 1, 2**32 - 1)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change some bits, bytes or numbers, or cut, double or exchange some stretch."""
    changed = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4, 16]))):
        kind = _KINDS[int(rng.integers(len(_KINDS)))]
        kind(changed, rng)
    return bytes(changed)


def _place(content: bytearray, rng: np.random.Generator) -> int:
    """Some place, every other time near the beginning, where formats have their numbers."""
    most = len(content) if rng.random() < 0.5 else min(len(content), 128)
    return int(rng.integers(max(most, 1)))


def _flip_bit(content: bytearray, rng: np.random.Generator) -> None:
    if content:
        content[_place(content, rng)] ^= 1 << int(rng.integers(8))


def _set_byte(content: bytearray, rng: np.random.Generator) -> None:
    if content:
        content[_place(content, rng)] = int(rng.integers(256))


def _set_number(content: bytearray, rng: np.random.Generator) -> None:
    place, size = _place(content, rng), int(rng.choice([2, 4]))
    value = int(EXTREMES[int(rng.integers(len(EXTREMES)))]) % 256**size
    order = "little" if rng.random() < 0.5 else "big"
    content[place : place + size] = value.to_bytes(size, order)


def _cut(content: bytearray, rng: np.random.Generator) -> None:
    del content[_place(content, rng) :]


def _remove(content: bytearray, rng: np.random.Generator) -> None:
    place = _place(content, rng)
    del content[place : place + int(rng.integers(1, 64))]


def _double(content: bytearray, rng: np.random.Generator) -> None:
    place, size = _place(content, rng), int(rng.integers(1, 256))
    content[place:place] = content[place : place + size]


def _insert(content: bytearray, rng: np.random.Generator) -> None:
    place = _place(content, rng)
    content[place:place] = rng.bytes(int(rng.integers(1, 64)))


_KINDS = (_flip_bit, _set_byte, _set_number, _cut, _remove, _double, _insert)


# JSON

VALUES: list[object] = [
    *(None, True, False, -1, 0, 1, 2**15, 2**31, 2**53, 2**70, -0.5, 0.0, 1e-9, 1e-300, 1e6, 1e308),
    *("", "x", "../x", "gaussian", "affine", "x" * 5000, "\x1b[2J", "\ud800", "$\\frac$", "NaN"),
    *([], {}, [1], [[]], {"a": 1}, [None] * 5, [1e9, 1e9], [10**9, 10**9], [4096, 4096], [1, 1]),
    *([0.0] * 4, [1e6] * 4, [-1e6] * 5, ["psi"], ["theta"], list(range(1000))),
    *([1, 10**9], [2048, 2048], [1, 2**22], float("nan"), float("inf"), -float("inf"), -0.0),
]


def edited(value: object, rng: np.random.Generator) -> object:
    """Return a copy of JSON values with some of them replaced, removed or nested."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        places = list(_places(value))
        if not places:
            break
        value = _with(value, places[int(rng.integers(len(places)))], rng)
    return value


DEEPEST = 50
"""Levels at which something is changed: lists nested below would be too deep for Python."""


def _places(value: object, before: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    if len(before) == DEEPEST:
        return
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) and len(value) < 100 else items
    for key, inside in items:
        yield (*before, key)
        yield from _places(inside, (*before, key))


def _with(value: object, place: tuple[object, ...], rng: np.random.Generator) -> object:
    if not place:
        if rng.random() < 0.02:
            return _nested(int(rng.choice([5, 20, 200, 900])))
        return VALUES[int(rng.integers(len(VALUES)))]
    assert isinstance(value, (dict, list))
    copy = value.copy()
    if len(place) == 1 and isinstance(copy, dict) and rng.random() < 0.1:
        del copy[place[0]]
    else:
        copy[place[0]] = _with(value[place[0]], place[1:], rng)  # type: ignore[index]
    return copy


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value
