"""Model files: one zip of JSON and arrays, read without executing code.

Version 2 holds ``model.json`` and ``arrays/*.npy``; version 1, with one ``arrays.npz``, is still
read. Sizes are checked before anything is unpacked, and everything that is wrong with a file is
reported as a `ModelFileError`.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from patternfold._archives.archive import Archive, open_archive, write_archive
from patternfold._archives.arrays import array_members, read_arrays, read_packed_arrays
from patternfold._version import __version__
from patternfold.estimators import JPATS, PATS, AlignedViewsClassifier, PatternMixture
from patternfold.model.transformations import AbstractTransformation
from patternfold.persistence.classifiers import (
    pack_aligned_views,
    pack_jpats,
    unpack_aligned_views,
    unpack_jpats,
)
from patternfold.persistence.mixture import pack_mixture, unpack_mixture
from patternfold.persistence.models import Codec, Payload, pack_pats, unpack_pats
from patternfold.persistence.schema import LARGEST_JSON, parse, take, take_array, take_list

__all__ = [
    "CODECS",
    "FORMAT",
    "Codec",
    "Examples",
    "ModelFile",
    "ModelFileError",
    "Payload",
    "load",
    "read_model_file",
    "save",
]

FORMAT = 3

CODECS: dict[str, Codec] = {
    "PATS": Codec(PATS, pack_pats, unpack_pats),
    "JPATS": Codec(JPATS, pack_jpats, unpack_jpats),
    "AlignedViewsClassifier": Codec(
        AlignedViewsClassifier, pack_aligned_views, unpack_aligned_views
    ),
    "PatternMixture": Codec(PatternMixture, pack_mixture, unpack_mixture),
}
"""The estimators that can be written, by the name that stands in the file."""


class ModelFileError(ValueError):
    """A file that is no model, is damaged, or is too large; the message says which."""


class Examples(NamedTuple):
    """Some training images, kept in the file for pictures."""

    images: np.ndarray
    """Shape (n, H, W), as the estimator saw them."""
    parameters: np.ndarray
    """Their λ on the pattern's manifold (that of their class), shape (n, d)."""
    names: tuple[str, ...]
    """File names, or whatever tells them apart."""
    labels: tuple[str, ...] = ()
    """Their classes, if there are any."""


class ModelFile(NamedTuple):
    """Everything a model file holds."""

    model: Any
    preparation: dict[str, Any] | None = None
    """How images were prepared before learning, so that new ones are prepared alike."""
    examples: Examples | None = None


def save(
    model: Any,
    path: str | Path,
    *,
    preparation: dict[str, Any] | None = None,
    examples: Examples | None = None,
) -> None:
    """Write a fitted model, atomically: a file of that name is replaced only when all is well."""
    name, codec = _codec_of(model)
    description, arrays = codec.pack(model)
    head = {"format": FORMAT, "patternfold": __version__, "estimator": name}
    if preparation is not None:
        head["preparation"] = preparation
    if examples is not None:
        head["example_names"] = list(examples.names)
        head["example_labels"] = list(examples.labels)
        arrays = {
            **arrays,
            "example_images": np.asarray(examples.images, np.float32),
            "example_parameters": np.asarray(examples.parameters, np.float64),
        }
    content = json.dumps(head | description, indent=1, allow_nan=False).encode()
    write_archive(Path(path), {"model.json": content, **array_members(arrays)})


def load(path: str | Path) -> Any:
    """Read a model written by its ``save`` method; nothing in the file is executed.

    Raises
    ------
    ModelFileError
        If the file is no model, is damaged, or is too large.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from patternfold import PATS, load
    >>> images = np.eye(8, dtype=np.float32)[None]
    >>> model = PATS(1, transformation="translation", n_starts=1).fit(images)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = model.save(f"{folder}/pattern.ptm")
    ...     same = load(f"{folder}/pattern.ptm")
    >>> bool((same.pattern_.gamma == model.pattern_.gamma).all())
    True
    """
    return read_model_file(path).model


def read_model_file(path: str | Path) -> ModelFile:
    """Read a model with what was kept beside it."""
    path = Path(path)
    with open(path, "rb") as file:
        try:
            with open_archive(file) as archive:
                return _rebuild(archive)
        except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError) as error:
            raise _damaged(path, error) from error
        except (ValueError, TypeError, NotImplementedError, OverflowError) as error:
            raise _damaged(path, error) from error
        except (AttributeError, LookupError) as error:  # an option's own check met another type
            raise _damaged(path, error) from error


def transformation_of(model: Any) -> AbstractTransformation:
    """Return the family of a fitted model, which classifiers on aligned views keep inside."""
    return model.views_.transformation_ if hasattr(model, "views_") else model.transformation_


def _damaged(path: Path, error: Exception) -> ModelFileError:
    return ModelFileError(f"{path} is not a patternfold model, or is damaged: {error}")


def _codec_of(model: Any) -> tuple[str, Codec]:
    for name, codec in CODECS.items():
        if type(model) is codec.kind:
            return name, codec
    raise TypeError(f"{type(model).__name__} can't be saved; pickle it instead.")


def _rebuild(archive: Archive) -> ModelFile:
    description = parse(archive.read("model.json", LARGEST_JSON))
    version = take(description, "format", int)
    if version > FORMAT:
        writer = str(description.get("patternfold"))[:20]
        raise ValueError(f"it was written by patternfold {writer}; upgrade to read it")
    arrays = read_arrays(archive) if version > 1 else read_packed_arrays(archive, "arrays.npz")
    name = take(description, "estimator", str)
    if name not in CODECS:
        raise ValueError(f"it holds an unknown estimator, {name[:40]!r}")
    preparation = description.get("preparation")
    if preparation is not None:
        preparation = take(description, "preparation", dict)
    model = CODECS[name].unpack(Payload(description, arrays))
    return ModelFile(model, preparation, _examples(model, description, arrays))


def _examples(
    model: Any, description: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Examples | None:
    if "example_names" not in description:
        return None
    names = tuple(take_list(description, "example_names", str))
    labels = tuple(take_list(description, "example_labels", str))
    images = take_array(arrays, "example_images", 3)
    lam = take_array(arrays, "example_parameters", 2)
    lengths = {len(images), len(lam), len(names), len(labels or names)}
    if len(lengths) > 1 or images.shape[1:] != model.image_shape_:
        raise ValueError("its example images do not fit together")
    if lam.shape[1] != transformation_of(model).parameters.dim:
        raise ValueError(f"the array 'example_parameters' has shape {lam.shape}")
    return Examples(images, lam, names, labels)
