"""Results of a model on a stack, written block by block."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from patternfold._validation import unknown_name
from patternfold.estimators.streams import results
from patternfold.files.sinks import Columns, Sink, open_sink
from patternfold.files.stacks import open_stack
from patternfold.learning.fitted import fitted_manifolds
from patternfold.learning.project import STATUS, Projection

METHODS = (
    "transform",
    "project",
    "distances",
    "align",
    "predict",
    "decision_function",
    "predict_proba",
)
"""What may be written."""

Told = Callable[[int, int, float], object]
"""Called with the images done, all of them, and images per second."""


def stream(
    model: Any,
    images: Any,
    output: str | Path,
    method: str = "transform",
    *,
    resume: bool = False,
    callback: Told | None = None,
    **options: Any,
) -> int:
    """Write what a method of a fitted model returns for images that need not fit into memory.

    Parameters
    ----------
    model : PATS, JPATS, AlignedViews or AlignedViewsClassifier
        Fitted.
    images : path, array or Stack
        What `patternfold.files.open_stack` takes.
    output : path
        An ``.npy``, ``.zarr``, ``.csv`` or ``.parquet`` file. Images, as ``align`` returns them, go
        to the first two; ``project``, which returns several things, to the others.
    method : str
        "transform", "project", "distances", "align", "predict", "decision_function" or
        "predict_proba".
    resume : bool
        Go on behind what an earlier run, with the same model and images, has left in ``output``.
    callback : callable, optional
        Called after each block with the images done, the number of all, and images per second.
    **options
        Those of the method, such as ``effort="quick"``.

    Returns
    -------
    int
        Number of images whose results are in the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import patternfold as pf
    >>> truth = pf.Pattern([1.0, -0.7], [[0.3, 0.2, 0.0, 0.3, 0.15], [0.0, -0.3, 0.2, 0.2, 0.2]])
    >>> images, _ = pf.datasets.random_images(truth, 8, np.random.default_rng(0), "translation",
    ...                                       shape=(16, 16))
    >>> model = pf.PATS(n_atoms=2, transformation="translation").fit(images)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pf.stream(model, images, f"{folder}/poses.npy")
    ...     bool(np.array_equal(np.load(f"{folder}/poses.npy"), model.transform(images)))
    8
    True
    """
    if method not in METHODS or not hasattr(model, method):
        raise unknown_name("method", method, [m for m in METHODS if hasattr(model, m)])
    stack = open_stack(images)
    sink = open_sink(output, len(stack), stack.block, resume)
    began, first = time.perf_counter(), sink.rows
    try:
        for result in results(model, method, stack, options, first):
            sink.append(_columns(model, method, result, sink))
            if callback is not None:
                rate = (sink.rows - first) / max(1e-9, time.perf_counter() - began)
                callback(sink.rows, len(stack), rate)
    finally:
        sink.close()
    return sink.rows


def _columns(model: Any, method: str, result: Any, sink: Sink) -> Columns:
    """Name what a method returned, one column for each number where the file holds tables."""
    parts = _record(result) if isinstance(result, Projection) else {method: result}
    if sink.takes_images:
        return parts
    columns: Columns = {}
    for name, rows in parts.items():
        columns |= _flat(model, name, rows, sink)
    return columns


def _record(found: Projection) -> Columns:
    words = list(STATUS)
    codes = {word: k for k, word in enumerate(words)}
    status = np.vectorize(lambda word: codes.get(word, -1), otypes=[np.int8])(found.status)
    record = {
        "transform": found.parameters,
        "distances": found.distances,
        "status": status,
        "gain": found.gain,
        "offset": found.offset,
        "std": found.std,
        "n_modes": found.n_modes,
    }
    return {name: rows for name, rows in record.items() if rows is not None}


def _flat(model: Any, name: str, rows: np.ndarray, sink: Sink) -> Columns:
    singular = {"distances": "distance", "predict": "class", "align": "aligned"}.get(name, name)
    if rows.ndim == 1:
        return {singular: rows}
    if rows.ndim == 2:
        return dict(zip(_names(model, singular, rows.shape[1]), rows.T, strict=True))
    if name in ("transform", "std"):  # of λ on each of several manifolds
        names = _names(model, name, rows.shape[2])
        subjects = _subjects(model, rows.shape[1])
        columns = [f"{parameter}_{label}" for label in subjects for parameter in names]
        return dict(zip(columns, rows.reshape(len(rows), -1).T, strict=True))
    raise ValueError(
        f"{sink.path} is a table, and {name} returns images of shape {rows.shape[1:]}. Write to an "
        ".npy or .zarr file."
    )


def _names(model: Any, name: str, count: int) -> list[str]:
    if name in ("transform", "std"):
        names = model.transformation_.parameters.names
        if name == "transform" and hasattr(model, "get_feature_names_out"):
            names = model.get_feature_names_out()  # λ, views, or distances to groups
        return [f"std_{known}" if name == "std" else str(known) for known in names]
    return [f"{name}_{label}" for label in _subjects(model, count)]


def _subjects(model: Any, count: int) -> list[str]:
    """What columns are about: classes, or the patterns of classes that have several."""
    labels = [str(c) for c in getattr(model, "classes_", range(count))]
    return labels if len(labels) == count else list(fitted_manifolds(model).labels)
