"""Fitted estimators as JSON and arrays: one `Codec` for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from patternfold.estimators.pats import PATS
from patternfold.learning.refit.eliminate import Reduced
from patternfold.learning.select.solvers import SOLVERS
from patternfold.model.losses import AbstractLoss, Squared
from patternfold.model.prior import Prior
from patternfold.model.transformations import AbstractTransformation
from patternfold.model.units import Bound, read
from patternfold.persistence.components import (
    build_loss,
    build_pattern,
    build_prior,
    build_transformation,
    describe_loss,
    describe_pattern,
    describe_prior,
    describe_transformation,
    pattern_arrays,
)
from patternfold.persistence.schema import (
    Plain,
    take,
    take_array,
    take_list,
    take_parameters,
    take_shape,
)


class Payload(NamedTuple):
    """What a model file holds: a JSON object and named arrays."""

    description: dict[str, Any]
    arrays: Mapping[str, np.ndarray]


class Codec(NamedTuple):
    """How a kind of estimator becomes a payload, and is made from one."""

    kind: type
    pack: Callable[[Any], Payload]
    unpack: Callable[[Payload], Any]


PAIRS = ("bounds", "prior")
"""Options that hold a pair for each of some parameters."""


def describe_terms(holder: Any) -> dict[str, Any]:
    """Describe the loss and the prior that were learned with a model, if it has any."""
    described: dict[str, Any] = {}
    if holder.loss_ != Squared():
        described["loss"] = describe_loss(holder.loss_)
    if holder.prior_ is not None:
        priors = holder.prior_ if isinstance(holder.prior_, list) else [holder.prior_]
        described["prior"] = [describe_prior(prior) for prior in priors]
    return described


def build_terms(
    description: dict[str, Any], family: AbstractTransformation, count: int
) -> tuple[AbstractLoss, list[Prior] | None]:
    """Return loss and priors; files that say nothing of them have the squared loss and none."""
    loss = Squared()
    if "loss" in description:
        loss = build_loss(take(description, "loss", dict))
    if "prior" not in description:
        return loss, None
    priors = [build_prior(own, family) for own in take_list(description, "prior", dict)]
    if len(priors) != count:
        raise ValueError(f"'prior' holds {len(priors)} priors for {count} patterns")
    return loss, priors


def describe_options(model: Any) -> dict[str, Any]:
    """Return the estimator's options that JSON can hold; others are their defaults on loading."""
    options = {}
    given: Any = model.get_params(deep=False)
    for name, option in (given | _describe_solver(given.get("solver"))).items():
        value: Any = option.known() if isinstance(option, Prior) else option
        value = value.item() if isinstance(value, np.generic) else value
        if name == "image_shape" and value is not None:
            value = [int(v) for v in value]
        elif name in PAIRS and isinstance(value, Mapping):
            value = {key: [_bound(v) for v in pair] for key, pair in value.items()}
        elif name == "solver_options" and isinstance(value, Mapping):
            value = {key: v for key, v in value.items() if isinstance(v, Plain)}
        elif not isinstance(value, Plain):
            continue
        options[name] = value
    return options


def _describe_solver(solver: Any) -> dict[str, Any]:
    """Return a registered solver object as its name and options."""
    for name, kind in SOLVERS.items():
        if type(solver) is kind:
            return {"solver": name, "solver_options": solver.options() or None}
    return {}


def build_options(kind: type, description: dict[str, Any]) -> dict[str, Any]:
    """Return checked options for the constructor of ``kind``."""
    stored, options = take(description, "options", dict), {}
    known = set(kind().get_params(deep=False))
    for name, value in stored.items():
        if name not in known:
            raise ValueError(f"{kind.__name__} has no option {name!r}")
        if name == "image_shape" and value is not None:
            value = take_shape(stored, name)
        elif name in PAIRS and value is not None and not isinstance(value, str):
            pairs = take(stored, name, dict).items()
            value = {key: _pair(pair, name) for key, pair in pairs}
        elif name == "solver_options" and value is not None:
            value = take(stored, name, dict)
        elif not isinstance(value, Plain):
            raise ValueError(f"the option {name!r} must be a plain value")
        options[name] = value
    return options


def _bound(value: Any) -> Bound:
    return value if isinstance(value, str) else float(value)


def _pair(value: Any, name: str) -> tuple[Bound, Bound]:
    """Check the bounds of a parameter, or its prior: numbers, or texts with a unit."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"{name!r} must hold pairs of numbers")
    low, high = (
        str(read(v)) if isinstance(v, str) else take({name: v}, name, float) for v in value
    )
    return low, high


MEMORY = {"memory_diagonal": 1, "memory_matrix": 2, "memory_slope": 1}
"""Arrays of what batches have told, with their number of axes."""


def pack_pats(model: PATS) -> Payload:
    """Describe a fitted `PATS`."""
    description = {
        "options": describe_options(model),
        "image_shape": list(model.image_shape_),
        "stacked": model._stacked,
        "stop_reason": model.stop_reason_,
        "transformation": describe_transformation(model.transformation_),
        **describe_pattern(model.pattern_),
        **describe_terms(model),
    }
    arrays = {
        "parameters": model.parameters_,
        "gain": model.gain_,
        "offset": model.offset_,
        "error_path": model.error_path_,
    }
    if hasattr(model, "memory_"):
        memory = Reduced(*model.memory_)
        arrays |= {name: getattr(memory, name.removeprefix("memory_")) for name in MEMORY}
        arrays["memory_counts"] = np.array([float(memory.cost), float(memory.alone), model.n_seen_])
    return Payload(description, pattern_arrays(model.pattern_) | arrays)


def _recall(model: PATS, arrays: Mapping[str, np.ndarray]) -> None:
    """What batches have told, for `PATS.partial_fit`."""
    size = model.pattern_.coef.size + model.pattern_.gamma.size
    sums = [take_array(arrays, name, rank) for name, rank in MEMORY.items()]
    counts = take_array(arrays, "memory_counts", 1)
    if counts.shape != (3,) or (counts < 0).any():
        raise ValueError("the array 'memory_counts' must hold three numbers of at least 0")
    cost, alone, count = counts
    for part in sums:
        if part.shape != (size,) * part.ndim:
            raise ValueError(f"an array of the memory has shape {part.shape}")
    diagonal, matrix, slope = sums
    scalars = np.asarray(cost), np.asarray(alone)
    model.memory_ = Reduced(scalars[0], diagonal, matrix, slope, scalars[1])
    model.n_seen_ = int(count)


def unpack_pats(payload: Payload) -> PATS:
    """Rebuild a fitted `PATS`."""
    description, arrays = payload
    transformation = build_transformation(take(description, "transformation", dict))
    pattern = build_pattern(description, arrays)
    loss, priors = build_terms(description, transformation, 1)
    components = {
        "loss": loss.with_scale(None),
        "transformation": transformation,
        "mother": pattern.mother,
        "dictionary": pattern.dictionary,
    }
    model = PATS(**(components | build_options(PATS, description)))
    model._check_options()
    model.pattern_ = pattern
    model.transformation_ = transformation
    model.loss_ = loss
    model.prior_ = None if priors is None else priors[0]
    model.parameters_ = take_parameters(arrays, "parameters", 2, transformation.parameters.dim)
    model.error_path_ = take_array(arrays, "error_path", 1)
    model.n_iter_ = max(1, len(model.error_path_))
    model.stop_reason_ = take(description, "stop_reason", str)
    if "gain" not in take(description, "options", dict):  # the first files
        n_images = len(model.parameters_)
        arrays = {**arrays, "gain": np.ones(n_images), "offset": np.zeros(n_images)}
    model.gain_, model.offset_ = (take_array(arrays, name, 1) for name in ("gain", "offset"))
    if not len(model.gain_) == len(model.offset_) == len(model.parameters_):
        raise ValueError(f"the array 'gain' has shape {model.gain_.shape}")
    shape = take_shape(description, "image_shape")
    remembered = {
        "image_shape_": shape,
        "n_features_in_": shape[0] * shape[1],
        "_stacked": take(description, "stacked", bool),
    }
    vars(model).update(remembered)
    if "memory_matrix" in arrays:
        _recall(model, arrays)
    return model
