"""Values from JSON, checked as they are taken: a wrong one is named."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from patternfold._validation import require_few_pixels

T = TypeVar("T")
Plain = str | int | float | bool | None

LARGEST_JSON = 2**22
DEEPEST_JSON = 16

LARGEST_PARAMETER = 1e6
"""Of λ: families refuse bounds long before."""


def parse(content: bytes) -> dict[str, Any]:
    """Parse a JSON object; NaN, infinity and keys that come twice are refused."""
    try:
        value = json.loads(
            content, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_distinct
        )
    except RecursionError as error:
        raise ValueError("model.json is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("model.json must hold an object")
    _require_shallow(value)
    return value


def _require_shallow(value: Any, levels: int = DEEPEST_JSON) -> None:
    """Refuse what can be parsed but neither shown nor written again, for Python's own limit."""
    if levels < 0:
        raise ValueError("model.json is nested too deeply")
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inside:
        _require_shallow(item, levels - 1)


def _refuse(constant: str) -> Any:
    raise ValueError(f"model.json contains {constant}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Readers differ in which of two values counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("model.json has a key twice")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"model.json contains {text}")
    return value


def take(description: Mapping[str, Any], key: str, kind: type[T]) -> T:
    """Return ``description[key]``, which must be of the given kind."""
    if key not in description:
        raise ValueError(f"{key!r} is missing")
    value = description[key]
    if kind is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if type(value) is not kind:
        raise ValueError(f"{key!r} must be a {kind.__name__}, not {_show(value)}")
    return value


def take_list(description: Mapping[str, Any], key: str, kind: type[T]) -> list[T]:
    """Return a list whose elements are all of the given kind."""
    values = take(description, key, list)
    return [take({key: value}, key, kind) for value in values]


def take_shape(description: Mapping[str, Any], key: str) -> tuple[int, int]:
    """Return the shape (H, W) of an image."""
    values = take_list(description, key, int)
    if len(values) != 2 or not all(1 <= v <= 2**15 for v in values):
        raise ValueError(f"{key!r} must be the height and width of an image, not {_show(values)}")
    height, width = values
    require_few_pixels(key, (height, width))
    return height, width


def take_array(
    arrays: Mapping[str, np.ndarray], name: str, ndim: int, kinds: str = "f"
) -> np.ndarray:
    """Return an array of the expected rank and kind of numbers."""
    if name not in arrays:
        raise ValueError(f"the array {name!r} is missing")
    array = arrays[name]
    if array.ndim != ndim or array.dtype.kind not in kinds:
        raise ValueError(
            f"the array {name!r} has shape {array.shape} and type {array.dtype}; "
            f"expected {ndim} dimensions"
        )
    return array


def take_parameters(arrays: Mapping[str, np.ndarray], name: str, ndim: int, dim: int) -> np.ndarray:
    """Return λ of images: ``dim`` numbers each, none of them absurd."""
    lam = take_array(arrays, name, ndim)
    if lam.shape[-1] != dim:
        raise ValueError(f"the array {name!r} has shape {lam.shape}")
    if (np.abs(lam.astype(np.float64)) > LARGEST_PARAMETER).any():
        raise ValueError(f"the array {name!r} holds values above {LARGEST_PARAMETER:g}")
    return lam


def take_number(
    description: Mapping[str, Any], key: str, least: float, most: float = math.inf
) -> float:
    """Return a number from ``least`` to ``most``."""
    value = take(description, key, float)
    if not least <= value <= most:
        raise ValueError(f"{key!r} must be from {least:g} to {most:g}, not {value:g}")
    return value


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
