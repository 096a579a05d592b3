"""Estimators on stacks: learning out of core, and methods that work block by block."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from patternfold._validation import as_floats, require_few_pixels
from patternfold.estimators.fitting import record_run
from patternfold.estimators.images import as_weights
from patternfold.estimators.options import (
    family_of,
    lighting_of,
    make_callback,
    make_settings,
    prior_of,
    transformation_of,
)
from patternfold.estimators.references import asked_reference
from patternfold.files.stacks import Stack, as_stack
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.retune import known_terms
from patternfold.learning.settling import Settled
from patternfold.learning.stream.cluster import active_place
from patternfold.learning.stream.learn import Source, learn_stack, part_size
from patternfold.learning.stream.sweep import Model
from patternfold.learning.stream.times import timed
from patternfold.model.grid import Grid
from patternfold.model.losses import as_loss
from patternfold.model.pattern import Pattern
from patternfold.numerics.precision import precision

Function = TypeVar("Function", bound=Callable[..., Any])


def in_blocks(method: Function) -> Function:
    """Let a method that takes images take a stack as well, of which it sees a block at a time."""
    parameters = inspect.signature(method)

    @wraps(method)
    def run(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        stack = as_stack(X)
        if stack is None:
            return method(self, X, *args, **kwargs)
        options = dict(parameters.bind(self, None, *args, **kwargs).arguments)
        options = {name: options[name] for name in list(options)[2:]}
        options |= options.pop("options", {})
        return joined(list(results(self, method.__name__, stack, options)))

    return cast(Function, run)


def results(
    model: Any, method: str, stack: Stack, options: dict[str, Any], first: int = 0
) -> Iterator[Any]:
    """Yield what a method returns for each block of a stack, from its image ``first`` on."""
    check_is_fitted(model)
    require_same_shape(model, stack)
    model = copy(model)
    if hasattr(model, "callback"):
        model.callback = None  # which need not be something that goes to other processes
    spans, block = [span for span in stack.spans() if span[0] >= first], stack.block
    masks = options.pop("sample_mask", None)
    common = masks is not None and np.ndim(masks) < 3
    task = Method(model, method, options | ({"sample_mask": masks} if common else {}))
    # The last block begins earlier, so that all have one size: code is compiled for each size.
    whole = [(max(0, end - block), end) for _, end in spans]
    found = active_place().run(task, stack, whole, None if common else masks)
    for (begin, end), result in zip(spans, found, strict=True):
        yield mapped(lambda rows, k=end - begin: rows[-k:], result)


@dataclass(frozen=True)
class Method:
    """A task for blocks: call a method of a model."""

    model: Any
    name: str
    options: dict[str, Any]

    def __call__(self, images: np.ndarray, mask: Any = None) -> Any:
        """Call it on images of a block."""
        own = {} if mask is None else {"sample_mask": np.asarray(mask)}
        with timed("work"):
            return getattr(self.model, self.name)(images, **self.options, **own)


def mapped(function: Callable[[np.ndarray], np.ndarray], *results: Any) -> Any:
    """Apply a function to arrays of images, alone or as fields of a record."""
    first = results[0]
    if isinstance(first, np.ndarray):
        return function(*results)
    if not is_dataclass(first) or isinstance(first, type):
        return first
    parts = {
        field.name: mapped(function, *(getattr(result, field.name) for result in results))
        for field in fields(first)
    }
    return replace(first, **parts)


def joined(parts: list[Any]) -> Any:
    """Put the results of blocks together."""
    return mapped(lambda *arrays: np.concatenate(arrays), *parts)


def require_same_shape(model: Any, stack: Stack) -> None:
    """Refuse images of another size than the model's."""
    if stack.shape[1:] != tuple(model.image_shape_):
        raise ValueError(
            f"{stack.name} holds images of shape {stack.shape[1:]}; the model was fitted on images "
            f"of shape {tuple(model.image_shape_)}. Resize them first."
        )


def fit_stack(estimator: Any, stack: Stack, sample_weight: Any, sample_mask: Any) -> None:
    """Learn `PATS` out of core and set its fitted attributes."""
    remember_shape(estimator, stack)
    weights = as_weights(sample_weight, len(stack))
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    settings = make_settings(estimator, estimator.n_atoms, estimator.tol, seed)
    part = _part(estimator, stack)
    amplitude = Amplitude.of_images("X", part)
    family = transformation_of(estimator)
    prior = prior_of(estimator, family)
    model = Model(
        Grid(*estimator.image_shape_),
        family,
        family_of(estimator),
        lighting_of(estimator),
        amplitude,
        loss=amplitude.lowered_loss(as_loss(estimator.loss)),
        prior=prior if isinstance(prior, str) else amplitude.lowered_prior(prior),
        block=stack.block,
    )
    source = Source(stack, model, weights, sample_mask, active_place())
    warm = _warm(estimator, amplitude)
    with precision(stack.floats):
        reference = asked_reference(estimator, len(stack), stack.floats, amplitude)
        found = learn_stack(source, settings, reference, make_callback(estimator), warm)
    _store(estimator, found, model)


def remember_shape(estimator: Any, stack: Stack) -> None:
    """Take the images' shape, as `fit` does for arrays."""
    height, width = stack.shape[1:]
    require_few_pixels("image_shape", (height, width))
    asked = estimator.image_shape
    if asked is not None and tuple(asked) != (height, width):
        raise ValueError(f"image_shape={asked} but {stack.name} holds images {(height, width)}.")
    estimator.image_shape_, estimator._stacked = (height, width), True
    estimator.n_features_in_ = height * width


def _part(estimator: Any, stack: Stack) -> np.ndarray:
    """The images that are looked at first, as floats."""
    part = as_floats("X", stack.take(stack.part(part_size(stack))), finite=False)
    part = np.where(np.isfinite(part), part, 0).reshape(len(part), -1)
    low, high = part.min(axis=1), part.max(axis=1)
    if (high <= low if estimator.offset else (high == 0) & (low == 0)).all():
        raise ValueError(f"All images of {stack.name} that were looked at are blank.")
    return part


def _warm(estimator: Any, amplitude: Amplitude) -> Pattern | None:
    """The pattern to go on from, if there is one."""
    if not estimator.warm_start or not hasattr(estimator, "pattern_"):
        return None
    return amplitude.lowered_pattern(estimator.pattern_)


def _store(estimator: Any, found: Settled, model: Model) -> None:
    learned, last, amplitude = found.learned, found.last, model.amplitude
    estimator.pattern_ = amplitude.raised_pattern(learned.state.pattern)
    estimator.transformation_ = model.transformation
    estimator.parameters_ = last.lam
    loss, prior = known_terms(found.part, found.part.terms)
    estimator.loss_, estimator.prior_ = amplitude.raised_loss(loss), amplitude.raised_prior(prior)
    estimator.gain_, estimator.offset_ = last.gain, amplitude.raised(last.offset)
    record_run(estimator, learned, float(last.energy[0]))
