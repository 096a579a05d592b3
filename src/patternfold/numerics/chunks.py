"""Work on many images in chunks: bounded memory and few compilations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CHUNK_BYTES = 64 * 2**20
"""Size of the largest array that a chunk should make; a handful of them exist at a time."""


def chunk_rows(bytes_per_row: int) -> int:
    """Rows per chunk, a power of two, for rows that need this much memory at a time."""
    rows = max(1, CHUNK_BYTES // max(1, bytes_per_row))
    return 2 ** (rows.bit_length() - 1)


def padded_rows(n_rows: int) -> int:
    """Smallest of 1, 2, 3, 4, 6, 8, 12, 16, ... that holds ``n_rows``: few shapes to compile."""
    power = 2 ** max(0, (n_rows - 1).bit_length())
    return 3 * power // 4 if power >= 4 and n_rows <= 3 * power // 4 else power


def rows_at_once(n_rows: int, bytes_per_row: int) -> int:
    """Rows per chunk for this many rows."""
    return min(chunk_rows(bytes_per_row), padded_rows(max(1, n_rows)))


def map_chunks(
    function: Callable[..., Any], arrays: tuple[np.ndarray, ...], bytes_per_row: int
) -> tuple[np.ndarray, ...]:
    """Apply ``function(*rows)`` to chunks of rows and collect its outputs as NumPy arrays.

    The last chunk is padded by repeating its last row, so that sets of similar size share
    compiled code. ``function`` returns an array or a tuple of arrays with one row per input row.
    """
    n_rows = len(arrays[0])
    size = rows_at_once(n_rows, bytes_per_row)
    outputs: tuple[np.ndarray, ...] | None = None
    for start in range(0, max(1, n_rows), size):
        stop = min(start + size, n_rows)
        index = np.minimum(np.arange(start, start + size), n_rows - 1)
        whole = stop - start == size
        rows = [a[start:stop] if whole else a[index] if n_rows else _blank(a, size) for a in arrays]
        results = function(*rows)
        results = results if isinstance(results, tuple) else (results,)
        if outputs is None:
            outputs = tuple(np.empty((n_rows, *r.shape[1:]), r.dtype) for r in results)
        for output, result in zip(outputs, results, strict=True):
            output[start:stop] = np.asarray(result)[: stop - start]
    assert outputs is not None
    return outputs


def _blank(array: np.ndarray, size: int) -> np.ndarray:
    """Rows that stand in where there are none, so that the outputs' shapes are known."""
    return np.ones((size, *array.shape[1:]), array.dtype)
