"""Images as scikit-learn sees them: rows of pixels, or a stack; and their weights."""

from __future__ import annotations

import hashlib
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from patternfold._validation import as_floats, image_shape_of, require_few_pixels
from patternfold._version import __version__
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.missing import require_some, without_missing

_VERSION = "_patternfold_version"


class ImageEstimator(BaseEstimator):
    """An estimator that takes images as rows of pixels or as a stack."""

    takes_missing: ClassVar[bool] = False
    """Whether pixels may be NaN: they count nothing then."""

    image_shape_: tuple[int, int]
    _stacked: bool

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self.takes_missing
        return tags

    def __getstate__(self) -> Any:
        """Name the version with what is pickled."""
        state: Any = super().__getstate__()
        return {**state, _VERSION: __version__}

    def __setstate__(self, state: Any) -> None:
        """Take what was pickled by this version; attributes of others have other meanings."""
        version = state.get(_VERSION, "0.1 or older")
        if version != __version__:
            raise ValueError(
                f"This {type(self).__name__} was pickled by patternfold {version} and cannot be "
                f"used by {__version__}. Unpickle it with that version and write it with save; "
                "files that save writes are read by later versions."
            )
        super().__setstate__({name: value for name, value in state.items() if name != _VERSION})


class Pixels(NamedTuple):
    """Images as rows (N, n), 0 where a pixel does not count; and which count, None where all do."""

    rows: np.ndarray
    counted: np.ndarray | None = None

    def take(self, index: Any) -> Pixels:
        """Some of the images."""
        return Pixels(self.rows[index], None if self.counted is None else self.counted[index])

    def lowered(self, amplitude: Amplitude) -> Pixels:
        """The images in another unit."""
        return self._replace(rows=amplitude.lowered(self.rows))

    def blank(self, offset: bool) -> np.ndarray:
        """Tell images that hold nothing: zeros, or with offsets of their own anything constant."""
        if not offset:
            return np.asarray((self.rows == 0).all(axis=1))
        known: Any = True if self.counted is None else self.counted
        low = self.rows.min(axis=1, where=known, initial=np.inf)
        high = self.rows.max(axis=1, where=known, initial=-np.inf)
        return np.asarray(high <= low)


def distinct_rows(
    pixels: Pixels, weights: np.ndarray, labels: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find rows that are equal, in an order of their own, and leave out those without weight.

    The result then depends neither on their order nor on whether a row is given twice or has
    weight 2. Rows with different labels stay apart. Returns the indices of one of each kind that is
    left, their weights, and for each row given its place among them, −1 where it has none.
    """
    rows, counted = pixels
    if labels is None:
        labels = np.zeros(len(rows), np.int64)
    masks = [b""] * len(rows) if counted is None else [row.tobytes() for row in counted]
    # Digests order rows as well as their pixels would, at a fraction of the time. Labels come last:
    # images of a class stand in the same order whatever it is called.
    digests = np.array(
        [
            hashlib.blake2b(row.tobytes() + mask, digest_size=16).hexdigest() + f"{label:08d}"
            for row, mask, label in zip(rows, masks, labels.tolist(), strict=True)
        ],
        dtype=str,
    )
    _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    summed = np.bincount(inverse, weights, len(first))
    kept = summed > 0
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return first[kept], summed[kept], place[inverse]


def pixels_of(estimator: Any, X: Any, sample_mask: Any, reset: bool) -> Pixels:
    """Check images and which of their pixels count; in ``fit`` (reset) some of each must."""
    rows, counted = without_missing("X", rows_of(estimator, X, reset), sample_mask)
    if reset:
        require_some("X", counted)
    return Pixels(rows, counted)


def pixels_to_project(estimator: Any, X: Any, sample_mask: Any) -> Pixels:
    """Check images that are only projected: numbers of 8 and 16 bits stay so up to the device."""
    small = isinstance(X, np.ndarray) and X.dtype in (np.uint8, np.uint16)
    if small and sample_mask is None and X.shape[1:] == estimator.image_shape_:
        return Pixels(X.reshape(len(X), -1))
    return pixels_of(estimator, X, sample_mask, reset=False)


def rows_of(estimator: Any, X: Any, reset: bool) -> np.ndarray:
    """Check images of shape (N, H, W) or (N, H·W) and return them as rows.

    In ``fit`` (reset) the estimator remembers their shape as ``image_shape_``, and whether they
    came as a stack; later they must have the same.
    """
    ndim = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
    stacked = ndim == 3
    shape = estimator.image_shape
    if stacked:
        X = np.asarray(X)
        shape, X = X.shape[1:], X.reshape(len(X), math.prod(X.shape[1:]))
    if getattr(X, "dtype", None) is not None and X.dtype.kind in "bu":
        X = as_floats("X", X)
    finite = "allow-nan" if estimator.takes_missing else True
    kinds = [np.float64, np.float32]
    rows: Any = validate_data(estimator, X, reset=reset, dtype=kinds, ensure_all_finite=finite)
    if reset:
        estimator.image_shape_ = _shape(shape, estimator.image_shape, rows.shape[1])
        estimator._stacked = stacked
    elif stacked and shape != estimator.image_shape_:
        raise ValueError(
            f"X holds images of shape {shape}; the model was fitted on images of shape "
            f"{estimator.image_shape_}. Resize them first."
        )
    return rows


def _shape(shape: Any, asked: Any, n_pixels: int) -> tuple[int, int]:
    """Return (H, W): that of a stack, the one asked for, or a guess."""
    if shape is None:
        shape = image_shape_of(n_pixels)
    height, width = (int(v) for v in shape)
    require_few_pixels("image_shape", (height, width))
    if asked is not None and tuple(asked) != (height, width):
        raise ValueError(f"image_shape={asked} but X holds images of shape {(height, width)}.")
    if math.prod((height, width)) != n_pixels:
        raise ValueError(
            f"image_shape={(height, width)} has {height * width} pixels but X has {n_pixels} "
            "features."
        )
    return height, width


def as_targets(estimator: Any, y: Any, n: int) -> np.ndarray:
    """Check class labels, remember them as ``classes_``, and return their indices 0 ... M−1."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    if len(y) != n:
        raise ValueError(f"y has {len(y)} labels for {n} images.")
    estimator.classes_, labels = np.unique(y, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ValueError(
            f"y holds only one class, {estimator.classes_[0]!s}; at least two are needed. "
            "Learn a single pattern with PATS."
        )
    return labels.reshape(-1)


def as_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return weights as a float64 array of length n."""
    if sample_weight is None:
        return np.ones(n)
    weights = as_floats("sample_weight", sample_weight).astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}; expected ({n},).")
    if (weights < 0).any():
        raise ValueError("sample_weight must not be negative.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every image; give at least one a weight.")
    return weights
