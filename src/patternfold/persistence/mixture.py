"""A fitted `PatternMixture` as JSON and arrays: all parts, their groups, and the images' places."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from patternfold.estimators.assignment import Assignment
from patternfold.estimators.mixture import PatternMixture
from patternfold.estimators.mixture_options import check_mixture
from patternfold.learning.coarse import coarse_grid
from patternfold.model.grid import Grid
from patternfold.model.pattern import Pattern
from patternfold.persistence.components import (
    build_dictionary,
    build_mother,
    build_transformation,
    describe_pattern,
    describe_transformation,
    require_sensible,
)
from patternfold.persistence.models import Payload, build_options, describe_options
from patternfold.persistence.schema import (
    take,
    take_array,
    take_number,
    take_parameters,
    take_shape,
)

_PER_IMAGE = {
    "labels": "iu",
    "parts": "iu",
    "distances": "f",
    "confidence": "f",
    "runner_up": "iu",
    "gain": "f",
    "offset": "f",
}
"""Arrays with a number for each training image, and the kind of number."""


def pack_mixture(model: PatternMixture) -> Payload:
    """Describe a fitted `PatternMixture`."""
    description = {
        "options": describe_options(model),
        "image_shape": list(model.image_shape_),
        "stacked": model._stacked,
        "stop_reason": model.stop_reason_,
        "temperature": model.temperature_,
        "noise": model.noise_,
        "exponent": model._exponent,
        "outlier_share": model.outlier_share_,
        "transformation": describe_transformation(model.transformation_),
        **describe_pattern(model.parts_[0]),
    }
    limits = model.limits_
    arrays = {
        # All atoms in one array: hundreds of parts would be as many members.
        "coef": np.concatenate([p.coef for p in model.parts_]),
        "gamma": np.concatenate([p.gamma for p in model.parts_]),
        "n_atoms": np.array([p.n_atoms for p in model.parts_]),
        "pictures": model._pictures,
        "part_labels": model.part_labels_,
        "main_parts": np.array([model.parts_.index(p) for p in model.patterns_]),
        "limits": np.where(np.isfinite(limits), limits, -1.0),
        "proportions": model.proportions_,
        "merge_tree": model.merge_tree_,
        "eigenvalues": model.eigenvalues_,
        "error_path": model.error_path_,
        **{f"image_{name}": values for name, values in asdict(model.assignment_).items()},
    }
    return Payload(description, arrays)


def unpack_mixture(payload: Payload) -> PatternMixture:
    """Rebuild a fitted `PatternMixture`."""
    description, arrays = payload
    transformation = build_transformation(take(description, "transformation", dict))
    parts = _parts(description, arrays)
    components = {
        "transformation": transformation,
        "mother": parts[0].mother,
        "dictionary": parts[0].dictionary,
    }
    model = PatternMixture(**(components | build_options(PatternMixture, description)))
    check_mixture(model)
    groups, main = _groups(arrays, len(parts))
    n_groups, path = len(main), take_array(arrays, "error_path", 1)
    shape = take_shape(description, "image_shape")
    assignment = _assignment(arrays, transformation.parameters.dim, len(parts), n_groups)
    noise = description.get("noise")
    vars(model).update(
        parts_=parts,
        part_labels_=groups,
        patterns_=[parts[k] for k in main],
        **_of_groups(arrays, len(parts), n_groups),
        eigenvalues_=_eigenvalues(arrays),
        error_path_=path,
        n_iter_=max(1, len(path)),
        stop_reason_=take(description, "stop_reason", str),
        temperature_=take_number(description, "temperature", 0),
        noise_=None if noise is None else take_number(description, "noise", 0),
        outlier_share_=take_number(description, "outlier_share", 0, 1),
        _exponent=_exponent(description),
        _pictures=_pictures(arrays, len(parts), Grid(*shape)),
        assignment_=assignment,
        labels_=assignment.labels,
        parameters_=assignment.parameters,
        transformation_=transformation,
        image_shape_=shape,
        n_features_in_=shape[0] * shape[1],
        _stacked=take(description, "stacked", bool),
    )
    return model


def _groups(arrays: Mapping[str, np.ndarray], n_parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each part, and the main part of each group."""
    groups = take_array(arrays, "part_labels", 1, "iu")
    main = take_array(arrays, "main_parts", 1, "iu")
    if len(groups) != n_parts or set(groups.tolist()) != set(range(len(main))):
        raise ValueError("its groups of parts do not fit together")
    if not (0 <= main).all() or not (main < n_parts).all():
        raise ValueError("its patterns are none of its parts")
    return groups, main


def _of_groups(
    arrays: Mapping[str, np.ndarray], n_parts: int, n_groups: int
) -> dict[str, np.ndarray]:
    """Return the limits and shares of the groups, and how they were merged."""
    limits = take_array(arrays, "limits", 1)
    if len(limits) != n_groups:
        raise ValueError("its patterns are none of its parts")
    proportions, tree = take_array(arrays, "proportions", 1), take_array(arrays, "merge_tree", 2)
    if len(proportions) != n_groups or not _is_tree(tree, n_parts):
        raise ValueError("its proportions or its tree of parts do not fit its parts")
    limits = np.where(limits < 0, math.inf, limits)
    return {"limits_": limits, "proportions_": proportions, "merge_tree_": tree}


def _eigenvalues(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return those of the graph of parts, of which there is at least one."""
    values = take_array(arrays, "eigenvalues", 1)
    if not len(values):
        raise ValueError("the array 'eigenvalues' is empty")
    return values


def _pictures(arrays: Mapping[str, np.ndarray], n_parts: int, grid: Grid) -> np.ndarray:
    """Return what images are compared with: small pictures of the parts."""
    pictures = take_array(arrays, "pictures", 2)
    if pictures.shape != (n_parts, (coarse_grid(grid) or grid).n_pixels):
        raise ValueError(f"the array 'pictures' has shape {pictures.shape}")
    return pictures


def _exponent(description: dict[str, Any]) -> int:
    """Return the power of two that is the unit of the pictures."""
    exponent = take(description, "exponent", int)
    if abs(exponent) > 2048:
        raise ValueError(f"'exponent' is {exponent}")
    return exponent


def _parts(description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> list[Pattern]:
    """Return the patterns of all parts."""
    coef, gamma = take_array(arrays, "coef", 1), take_array(arrays, "gamma", 2)
    counts = take_array(arrays, "n_atoms", 1, "iu")
    if not len(counts) or (counts < 0).any() or not counts.sum() == len(coef) == len(gamma):
        raise ValueError("the atoms of its parts do not fit together")
    mother = build_mother(take(description, "mother", dict))
    dictionary = build_dictionary(take(description, "dictionary", dict))
    ends = np.cumsum(counts)
    parts = [
        Pattern(coef[end - n : end], gamma[end - n : end], mother, dictionary)
        for end, n in zip(ends, counts, strict=True)
    ]
    for part in parts:
        require_sensible(part)
    return parts


def _is_tree(tree: np.ndarray, n_parts: int) -> bool:
    """Tell whether each row merges two of the parts and merges before it, and each only once."""
    if tree.shape != (n_parts - 1, 4):
        return False
    known, children = n_parts + np.arange(len(tree))[:, None], tree[:, :2]
    inside = ((0 <= children) & (children < known) & (children == np.floor(children))).all()
    once = len(np.unique(children)) == children.size
    return bool(inside and once and np.isfinite(tree).all() and (tree[:, 2] >= 0).all())


def _assignment(
    arrays: Mapping[str, np.ndarray], dim: int, n_parts: int, n_groups: int
) -> Assignment:
    """Return what is known of the training images."""
    lam = take_parameters(arrays, "image_parameters", 2, dim)
    values = {name: take_array(arrays, f"image_{name}", 1, k) for name, k in _PER_IMAGE.items()}
    alike = {len(v) for v in values.values()} == {len(lam)}
    ranges = {"labels": (-1, n_groups), "parts": (0, n_parts), "runner_up": (-1, n_groups)}
    if not alike or any(
        (values[name] < low).any() or (values[name] >= high).any()
        for name, (low, high) in ranges.items()
    ):
        raise ValueError("the places of its images do not fit together")
    return Assignment(parameters=lam, **values)
