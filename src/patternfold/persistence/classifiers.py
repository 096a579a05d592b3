"""Fitted classifiers as JSON and arrays: the patterns of classes, and what decides between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from patternfold._validation import lookup
from patternfold.estimators import JPATS, AlignedViews, AlignedViewsClassifier
from patternfold.estimators.aligned_views import FEATURES
from patternfold.estimators.kernel_machine import KernelMachine, as_kernel_machine
from patternfold.estimators.options import lighting_of
from patternfold.estimators.view_variants import check_variants
from patternfold.learning.fitted import owners_of
from patternfold.persistence.components import (
    build_pattern,
    build_transformation,
    describe_pattern,
    describe_transformation,
    pattern_arrays,
)
from patternfold.persistence.first_machines import refit_machine
from patternfold.persistence.models import (
    Payload,
    build_options,
    build_terms,
    describe_options,
    describe_terms,
)
from patternfold.persistence.schema import (
    Plain,
    take,
    take_array,
    take_number,
    take_parameters,
    take_shape,
)


def pack_jpats(model: JPATS) -> Payload:
    """Describe a fitted `JPATS`."""
    threshold = model.outlier_threshold_
    description = {
        "options": describe_options(model),
        "stop_reason": model.stop_reason_,
        "outlier_threshold": threshold if math.isfinite(threshold) else None,
        "outlier_label": _plain(model.outlier_label_),
        **_describe_shared(model, model),
    }
    lam = model.cross_parameters_
    known = np.asarray(np.isfinite(lam).all(axis=(1, 2)))  # images without weight have no λ
    arrays = {
        **_shared_arrays(model, model.classes_),
        "cross_parameters": np.where(known[:, None, None], lam, 0),
        "known": known,
        "error_path": model.error_path_,
    }
    return Payload(description, arrays)


def unpack_jpats(payload: Payload) -> JPATS:
    """Rebuild a fitted `JPATS`."""
    description, arrays = payload
    shared = _build_shared(description, arrays)
    options = build_options(JPATS, description)
    model = JPATS(**(_components(shared) | options))
    dim = shared["transformation_"].parameters.dim
    lam = take_parameters(arrays, "cross_parameters", 3, dim)
    known = take_array(arrays, "known", 1, "b")
    if lam.shape[:2] != (len(known), len(shared["patterns_"])):
        raise ValueError(f"the array 'cross_parameters' has shape {lam.shape}")
    path = take_array(arrays, "error_path", 2)
    if not path.shape[1]:
        raise ValueError(f"the array 'error_path' has shape {path.shape}")
    threshold = description.get("outlier_threshold")
    remembered = {
        "cross_parameters_": np.where(known[:, None, None], lam, np.nan),
        "error_path_": path,
        "n_iter_": max(1, len(path) - 1),
        "stop_reason_": take(description, "stop_reason", str),
        "outlier_threshold_": (
            math.inf if threshold is None else take_number(description, "outlier_threshold", 0)
        ),
        "outlier_label_": _plain(description.get("outlier_label")),
        "temperature_": _temperature(description),
    }
    vars(model).update(shared | remembered)
    model._check_options()
    return model


def pack_aligned_views(model: AlignedViewsClassifier) -> Payload:
    """Describe a fitted `AlignedViewsClassifier` with its own classifier, a support vector machine.

    What is kept is what it decides by, so that nothing is fitted, or executed, on loading.
    """
    machine, views = as_kernel_machine(model.classifier_), model.views_
    if machine is None or not _is_default(model):
        raise TypeError(
            "AlignedViewsClassifier with a classifier or a learner of your own can't be saved to "
            "a file that is read without executing code; pickle it instead."
        )
    description = {
        "options": describe_options(model),
        "C": machine.C,
        "gamma": machine.gamma,
        "features": views.features,
        "distance_unit": views.distance_unit_,
        "stop_reason": model.stop_reason_,
        **_describe_shared(model, views),
    }
    labels = np.repeat(np.arange(len(model.classes_)), machine.n_support_)
    arrays = {
        **_shared_arrays(views, model.classes_),
        "support_vectors": machine.support_vectors_,
        "support_labels": labels,
        "dual_coef": machine.dual_coef_,
        "intercept": machine.intercept_,
    }
    return Payload(description, arrays)


def unpack_aligned_views(payload: Payload) -> AlignedViewsClassifier:
    """Rebuild a fitted `AlignedViewsClassifier`."""
    description, arrays = payload
    shared = _build_shared(description, arrays)
    components = _components(shared)
    del components["dictionary"]
    options: dict[str, Any] = build_options(AlignedViewsClassifier, description)
    # The first files say nothing of features: they were pixels.
    options["features"] = take({"features": "pixels"} | description, "features", str)
    lookup("features", options["features"], FEATURES)
    model = AlignedViewsClassifier(**(components | options))
    check_variants(model.n_variants, model.mirror)
    if not _is_default(model):
        raise ValueError("it has a classifier or a learner that no file holds")
    views = AlignedViews(
        features=model.features, distances=model.distances, parameters=model.parameters
    )
    # The first files say nothing of the reason.
    reason = take({"stop_reason": "not known"} | description, "stop_reason", str)
    shared["stop_reason_"] = reason
    classes, patterns = shared["classes_"], shared.pop("patterns_")
    remembered = {"patterns_": patterns, "image_shape": shared["image_shape_"]}
    remembered["n_patterns"] = model.n_patterns
    # Older files do not say it: distances beside gradients were in the unit of the images.
    unit = description.get("distance_unit")
    if unit is not None and not 0 < (unit := take(description, "distance_unit", float)) < np.inf:
        raise ValueError(f"'distance_unit' must be positive, not {unit}")
    remembered |= {"lighting_": lighting_of(model), "distance_unit_": unit}
    vars(views).update(shared | remembered)
    machine = _build_machine(description, arrays, classes)
    if machine.support_vectors_.shape[1] != views._n_features_out:
        raise ValueError(f"the array 'support_vectors' has shape {machine.support_vectors_.shape}")
    fitted = {
        "views_": views,
        "classifier_": machine,
        "temperature_": _temperature(description),
    }
    for name in ("transformation_", "loss_", "prior_", "pattern_labels_"):
        del shared[name]
    vars(model).update(shared | fitted)
    return model


def _build_machine(
    description: dict[str, Any], arrays: Mapping[str, np.ndarray], classes: np.ndarray
) -> KernelMachine:
    vectors = take_array(arrays, "support_vectors", 2)
    labels = take_array(arrays, "support_labels", 1, "iu")
    if len(labels) != len(vectors) or not np.isin(labels, np.arange(len(classes))).all():
        raise ValueError("its support vectors do not fit together")
    penalty, gamma = (take(description, name, float) for name in ("C", "gamma"))
    if "dual_coef" not in arrays:
        return refit_machine(vectors, labels, classes, penalty, gamma)
    if (np.diff(labels) < 0).any():
        raise ValueError("its support vectors are not in the order of the classes")
    return KernelMachine(
        classes,
        vectors,
        np.bincount(labels, minlength=len(classes)),
        take_array(arrays, "dual_coef", 2),
        take_array(arrays, "intercept", 1),
        gamma,
        penalty,
    )


def _is_default(model: AlignedViewsClassifier) -> bool:
    return model.classifier is None and model.manifold_learner is None


def _describe_shared(model: Any, holder: Any) -> dict[str, Any]:
    return {
        "image_shape": list(model.image_shape_),
        "stacked": model._stacked,
        "temperature": getattr(model, "temperature_", None),
        "transformation": describe_transformation(holder.transformation_),
        **describe_pattern(holder.patterns_[0]),
        **describe_terms(holder),
    }


def _temperature(description: dict[str, Any]) -> float | None:
    """Return the temperature of probabilities; models that were not calibrated have none."""
    if description.get("temperature") is None:
        return None
    value = take(description, "temperature", float)
    if not value > 0:
        raise ValueError(f"'temperature' must be positive, not {value}")
    return value


def _shared_arrays(holder: Any, classes: np.ndarray) -> dict[str, np.ndarray]:
    named = np.array(classes.tolist())
    if named.dtype.kind not in "iubU":
        raise TypeError("Only classes named by whole numbers or strings can be saved.")
    arrays = {"classes": named}
    if owners := owners_of(holder):  # the class of each pattern, where some class has several
        arrays["owners"] = np.array(owners)
    for m, pattern in enumerate(holder.patterns_):
        arrays |= {f"{name}_{m}": values for name, values in pattern_arrays(pattern).items()}
    return arrays


def _build_shared(description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the attributes that both classifiers have."""
    classes = take_array(arrays, "classes", 1, "iubU")
    if len(set(classes.tolist())) != len(classes) or not len(classes):
        raise ValueError("its classes are not distinct")
    owners = _owners(arrays, len(classes))
    patterns = [
        build_pattern(
            description,
            {name: take_array(arrays, f"{name}_{m}", ndim) for name, ndim in _PATTERN},
        )
        for m in range(len(owners))
    ]
    shape = take_shape(description, "image_shape")
    family = build_transformation(take(description, "transformation", dict))
    loss, prior = build_terms(description, family, len(owners))
    return {
        "classes_": classes,
        "patterns_": patterns,
        "pattern_labels_": classes[owners],
        "transformation_": family,
        "loss_": loss,
        "prior_": prior,
        "image_shape_": shape,
        "n_features_in_": shape[0] * shape[1],
        "_stacked": take(description, "stacked", bool),
    }


def _owners(arrays: Mapping[str, np.ndarray], n_classes: int) -> np.ndarray:
    """Return the class of each pattern; files that say nothing of it have one for each class."""
    if "owners" not in arrays:
        return np.arange(n_classes)
    owners = take_array(arrays, "owners", 1, "iu")
    if set(owners.tolist()) != set(range(n_classes)) or (np.diff(owners.astype(int)) < 0).any():
        raise ValueError("its patterns do not belong to its classes")
    return owners


_PATTERN = (("coef", 1), ("gamma", 2))


def _components(shared: dict[str, Any]) -> dict[str, Any]:
    pattern = shared["patterns_"][0]
    return {
        "transformation": shared["transformation_"],
        "loss": shared["loss_"].with_scale(None),
        "mother": pattern.mother,
        "dictionary": pattern.dictionary,
    }


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, Plain):
        raise ValueError("the outlier label must be a plain value")
    return value
