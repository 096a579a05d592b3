"""Checkpoints of fits: what a run must have in common with the one that is gone on with."""

from __future__ import annotations

import hashlib
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from patternfold._version import __version__
from patternfold.files.stacks import as_stack
from patternfold.learning.journal import journalled

SILENT = ("callback", "verbose")
"""Options that change nothing of what is learned."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def checkpointing(
    estimator: Any, path: str | Path | None, X: Any, **data: Any
) -> AbstractContextManager[None]:
    """Keep a checkpoint within the block, and go on from it if it is there.

    It is refused if it comes from other options, images or labels.
    """

    def about() -> dict[str, Any]:
        options = {
            name: _ADDRESS.sub("", repr(value))
            for name, value in estimator.get_params(deep=True).items()
            if name.split("__")[-1] not in SILENT
        }
        digests = {name: digest(value) for name, value in data.items()}
        if getattr(estimator, "warm_start", False) and hasattr(estimator, "pattern_"):
            digests["pattern_"] = digest(estimator.pattern_.coef)
        kind = type(estimator).__name__
        return {"version": __version__, "kind": kind, "X": digest(X), **digests, **options}

    return journalled(path, about)


def digest(values: Any) -> str:
    """Tell one array, or stack, from another."""
    if values is None:
        return "none"
    if (stack := as_stack(values)) is not None:
        return f"a stack, {stack.fingerprint}"
    array = np.ascontiguousarray(values)
    what = repr((array.shape, array.dtype.str)).encode()
    content = array.tobytes() if array.dtype != object else repr(array.tolist()).encode()
    return hashlib.blake2b(what + content, digest_size=16).hexdigest()
