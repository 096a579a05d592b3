"""Model files: one zip of JSON and arrays, read without executing code."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from patternfold._version import __version__
from patternfold.box import Box
from patternfold.dictionary import AbstractDictionary, AtomDictionary
from patternfold.estimators.pats import PATS
from patternfold.mothers import MOTHERS, AbstractMother, InverseMultiquadric, as_mother
from patternfold.pattern import Pattern
from patternfold.transformations import (
    TRANSFORMATIONS,
    AbstractTransformation,
    as_transformation,
)

FORMAT = 1
_LARGEST_MEMBER = 2**30
_PLAIN = (str, int, float, bool, type(None))


def save(model: PATS, path: str | Path) -> None:
    """Write a fitted model, atomically: a file of that name is replaced only when all is well."""
    path = Path(path)
    description = {
        "format": FORMAT,
        "patternfold": __version__,
        "estimator": "PATS",
        "options": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in model.get_params(deep=False).items()
            if isinstance(value, _PLAIN) or name == "image_shape"
        },
        "image_shape": list(model.image_shape_),
        "stacked": model._stacked,
        "stop_reason": model.stop_reason_,
        "transformation": _describe_transformation(model.transformation_),
        "mother": _describe_mother(model.pattern_.mother),
        "dictionary": _describe_dictionary(model.pattern_.dictionary),
    }
    arrays = {
        "coef": model.pattern_.coef,
        "gamma": model.pattern_.gamma,
        "parameters": model.parameters_,
        "error_path": model.error_path_,
    }
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr("model.json", json.dumps(description, indent=1))
            archive.writestr("arrays.npz", packed.getvalue())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: str | Path) -> PATS:
    """Read a model written by `PATS.save`."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(_read(archive, "model.json"))
            packed = io.BytesIO(_read(archive, "arrays.npz"))
            with np.load(packed, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        return _rebuild(description, arrays)
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a patternfold model, or is damaged: {error}") from error


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a member of reasonable size."""
    size = archive.getinfo(name).file_size
    if size > _LARGEST_MEMBER:
        raise ValueError(f"{name} would unpack to {size} bytes")
    return archive.read(name)


def _rebuild(description: dict[str, Any], arrays: dict[str, np.ndarray]) -> PATS:
    if description["format"] > FORMAT:
        raise ValueError(
            f"it was written by patternfold {description['patternfold']}; upgrade to read it"
        )
    transformation = _build_transformation(description["transformation"])
    mother = _build_mother(description["mother"])
    dictionary = AtomDictionary(_build_box(description["dictionary"]))
    options = dict(description["options"])
    if options.get("image_shape") is not None:
        options["image_shape"] = tuple(options["image_shape"])
    components = {"transformation": transformation, "mother": mother, "dictionary": dictionary}
    model = PATS(**(components | options))
    model.pattern_ = Pattern(arrays["coef"], arrays["gamma"], mother, dictionary)
    model.transformation_ = transformation
    model.parameters_ = arrays["parameters"]
    model.error_path_ = arrays["error_path"]
    model.n_iter_ = max(1, len(model.error_path_))
    model.stop_reason_ = description["stop_reason"]
    height, width = (int(v) for v in description["image_shape"])
    remembered = {
        "image_shape_": (height, width),
        "n_features_in_": height * width,
        "_stacked": bool(description["stacked"]),
    }
    vars(model).update(remembered)
    return model


def _describe_transformation(transformation: AbstractTransformation) -> dict[str, Any]:
    for name, kind in TRANSFORMATIONS.items():
        if type(transformation) is kind:
            return {"name": name, "box": _describe_box(transformation.parameters)}
    raise TypeError(
        "A model with a transformation of your own can't be saved to a file that is read without "
        "executing code; pickle it instead."
    )


def _build_transformation(description: dict[str, Any]) -> AbstractTransformation:
    family = as_transformation(description["name"])
    box = _build_box(description["box"])
    bounds = {
        name: (low, high) for name, low, high in zip(box.names, box.lower, box.upper, strict=True)
    }
    return family.with_bounds(bounds)


def _describe_mother(mother: AbstractMother) -> dict[str, Any]:
    for name, kind in MOTHERS.items():
        if type(mother) is kind:
            options = {"mu": mother.mu} if isinstance(mother, InverseMultiquadric) else {}
            return {"name": name, **options}
    raise TypeError(
        "A model with a mother function of your own can't be saved to a file that is read "
        "without executing code; pickle it instead."
    )


def _build_mother(description: dict[str, Any]) -> AbstractMother:
    if "mu" in description:
        return InverseMultiquadric(description["mu"])
    return as_mother(description["name"])


def _describe_dictionary(dictionary: AbstractDictionary) -> dict[str, Any]:
    if isinstance(dictionary, AtomDictionary):
        return _describe_box(dictionary.parameters)
    raise TypeError(
        "A model with a dictionary of your own can't be saved to a file that is read without "
        "executing code; pickle it instead."
    )


def _describe_box(box: Box) -> dict[str, Any]:
    return {
        "names": box.names,
        "lower": box.lower,
        "upper": box.upper,
        "periodic": [n for n, p in zip(box.names, box.periodic, strict=True) if p],
    }


def _build_box(description: dict[str, Any]) -> Box:
    return Box(
        description["names"],
        description["lower"],
        description["upper"],
        description["periodic"],
    )
