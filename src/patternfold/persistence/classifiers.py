"""Fitted classifiers as JSON and arrays: one pattern per class, and what decides between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.svm import SVC

from patternfold._validation import lookup
from patternfold.estimators import JPATS, AlignedViews, AlignedViewsClassifier
from patternfold.estimators.aligned_views import FEATURES
from patternfold.model.pattern import Pattern
from patternfold.persistence.components import (
    build_pattern,
    build_transformation,
    describe_pattern,
    describe_transformation,
    pattern_arrays,
)
from patternfold.persistence.models import Payload, build_options, describe_options
from patternfold.persistence.schema import Plain, take, take_array, take_shape


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
        **_shared_arrays(model.patterns_, model.classes_),
        "cross_parameters": np.where(known[:, None, None], lam, 0),
        "known": known,
        "error_path": model.error_path_,
    }
    return Payload(description, arrays)


def unpack_jpats(payload: Payload) -> JPATS:
    """Rebuild a fitted `JPATS`."""
    description, arrays = payload
    shared = _build_shared(description, arrays)
    model = JPATS(**(_components(shared) | build_options(JPATS, description)))
    lam = take_array(arrays, "cross_parameters", 3)
    known = take_array(arrays, "known", 1, "b")
    dim = shared["transformation_"].parameters.dim
    if lam.shape != (len(known), len(shared["classes_"]), dim):
        raise ValueError(f"the array 'cross_parameters' has shape {lam.shape}")
    path = take_array(arrays, "error_path", 2)
    threshold = description.get("outlier_threshold")
    remembered = {
        "cross_parameters_": np.where(known[:, None, None], lam, np.nan),
        "error_path_": path,
        "n_iter_": max(1, len(path) - 1),
        "stop_reason_": take(description, "stop_reason", str),
        "outlier_threshold_": (
            math.inf if threshold is None else take(description, "outlier_threshold", float)
        ),
        "outlier_label_": _plain(description.get("outlier_label")),
    }
    vars(model).update(shared | remembered)
    model._check_options()
    return model


def pack_aligned_views(model: AlignedViewsClassifier) -> Payload:
    """Describe a fitted `AlignedViewsClassifier` with its own classifier, a support vector machine.

    Only the support vectors are kept; the machine is fitted again on them, which gives the same
    decision, so that no code has to be stored.
    """
    machine, views = model.classifier_, model.views_
    if type(machine) is not SVC or not _is_default(model) or machine.kernel != "rbf":
        raise TypeError(
            "AlignedViewsClassifier with a classifier or a learner of your own can't be saved to "
            "a file that is read without executing code; pickle it instead."
        )
    description = {
        "options": describe_options(model),
        "C": float(machine.C),
        "gamma": float(machine._gamma),
        "features": views.features,
        "stop_reason": model.stop_reason_,
        **_describe_shared(model, views),
    }
    labels = np.repeat(np.arange(len(model.classes_)), machine.n_support_)
    arrays = {
        **_shared_arrays(views.patterns_, model.classes_),
        "support_vectors": machine.support_vectors_,
        "support_labels": labels,
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
    views = AlignedViews(
        features=model.features, distances=model.distances, parameters=model.parameters
    )
    # The first files say nothing of the reason.
    reason = take({"stop_reason": "not known"} | description, "stop_reason", str)
    shared["stop_reason_"] = reason
    classes, patterns = shared["classes_"], shared.pop("patterns_")
    vectors = take_array(arrays, "support_vectors", 2)
    labels = take_array(arrays, "support_labels", 1, "iu")
    vars(views).update(shared | {"patterns_": patterns, "image_shape": shared["image_shape_"]})
    if len(labels) != len(vectors) or set(labels.tolist()) != set(range(len(classes))):
        raise ValueError("its support vectors do not fit together")
    if vectors.shape[1] != views._n_features_out:
        raise ValueError(f"the array 'support_vectors' has shape {vectors.shape}")
    machine = SVC(C=take(description, "C", float))
    machine.set_params(gamma=take(description, "gamma", float))
    fitted = {"views_": views, "classifier_": machine.fit(vectors, classes[labels])}
    del shared["transformation_"]
    vars(model).update(shared | fitted)
    return model


def _is_default(model: AlignedViewsClassifier) -> bool:
    return model.classifier is None and model.manifold_learner is None


def _describe_shared(model: Any, holder: Any) -> dict[str, Any]:
    return {
        "image_shape": list(model.image_shape_),
        "stacked": model._stacked,
        "transformation": describe_transformation(holder.transformation_),
        **describe_pattern(holder.patterns_[0]),
    }


def _shared_arrays(patterns: Sequence[Pattern], classes: np.ndarray) -> dict[str, np.ndarray]:
    named = np.array(classes.tolist())
    if named.dtype.kind not in "iubU":
        raise TypeError("Only classes named by whole numbers or strings can be saved.")
    arrays = {"classes": named}
    for m, pattern in enumerate(patterns):
        arrays |= {f"{name}_{m}": values for name, values in pattern_arrays(pattern).items()}
    return arrays


def _build_shared(description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the attributes that both classifiers have."""
    classes = take_array(arrays, "classes", 1, "iubU")
    if len(set(classes.tolist())) != len(classes) or not len(classes):
        raise ValueError("its classes are not distinct")
    patterns = [
        build_pattern(
            description,
            {name: take_array(arrays, f"{name}_{m}", ndim) for name, ndim in _PATTERN},
        )
        for m in range(len(classes))
    ]
    shape = take_shape(description, "image_shape")
    return {
        "classes_": classes,
        "patterns_": patterns,
        "transformation_": build_transformation(take(description, "transformation", dict)),
        "image_shape_": shape,
        "n_features_in_": shape[0] * shape[1],
        "_stacked": take(description, "stacked", bool),
    }


_PATTERN = (("coef", 1), ("gamma", 2))


def _components(shared: dict[str, Any]) -> dict[str, Any]:
    pattern = shared["patterns_"][0]
    return {
        "transformation": shared["transformation_"],
        "mother": pattern.mother,
        "dictionary": pattern.dictionary,
    }


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, Plain):
        raise ValueError("the outlier label must be a plain value")
    return value
