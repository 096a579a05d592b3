"""Results of finished steps, kept in files so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from patternfold._archives.archive import open_archive, write_archive
from patternfold._archives.arrays import array_members, read_arrays
from patternfold._version import __version__
from patternfold.experiments.base import Done, Values
from patternfold.persistence.schema import take

_KEY = re.compile(r"\w[\w.-]*", re.ASCII)
_MEMBER = "step.json"


def step_path(folder: Path, key: str) -> Path:
    """Return the file of a step."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"key={key!r} must be of letters, digits, '_', '-' and '.'.")
    return folder / f"{key}.npz"


def save_step(path: Path, done: Done, print_: str) -> None:
    """Write a step's arrays and other values, atomically."""
    arrays = {k: v for k, v in done.values.items() if isinstance(v, np.ndarray)}
    others = {k: v for k, v in done.values.items() if k not in arrays}
    head = {
        "fingerprint": print_,
        "seconds": float(done.seconds),
        "values": others,
        "arrays": sorted(arrays),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(head, default=_plain).encode()
    write_archive(path, {_MEMBER: text, **array_members(arrays)})


def read_step(path: Path, print_: str) -> Done | None:
    """Read a step; None if there is none, it is damaged, or it was another piece of work."""
    try:
        with open(path, "rb") as file, open_archive(file) as archive:
            head = json.loads(archive.read(_MEMBER))
            if take(head, "fingerprint", str) != print_:
                return None
            arrays = read_arrays(archive)
            if sorted(arrays) != take(head, "arrays", list):
                return None
            return Done(take(head, "values", dict) | arrays, take(head, "seconds", float))
    except Exception:  # whatever damage leads to: the step is done again, and written anew
        return None


def fingerprint(function: Callable[..., Values]) -> str:
    """Tell pieces of work apart: version, function with its code, and arguments."""
    work = function if isinstance(function, partial) else partial(function)
    digest = hashlib.sha256()
    for part in (__version__, work.func.__module__, work.func.__qualname__):
        digest.update(part.encode())
    digest.update(inspect.getsource(work.func).encode())
    _update(digest, [list(work.args), work.keywords])
    return digest.hexdigest()


def _update(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        _update(digest, [type(value).__name__, asdict(value)])
    elif isinstance(value, dict):
        for key in value:
            _update(digest, [str(key), value[key]])
    elif isinstance(value, (list, tuple)):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            _update(digest, item)
    elif value is None or isinstance(value, (str, bool, int, float, np.generic)):
        digest.update(repr(value).encode())
    else:
        raise TypeError(
            f"an argument of a step is a {type(value).__name__}; give arrays, numbers, strings, "
            "lists, dicts or dataclasses of these."
        )


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a step returned a {type(value).__name__}; return arrays and plain values.")
