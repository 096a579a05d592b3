"""Transformations, mother functions, dictionaries and patterns, as JSON and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from patternfold.model.box import Box
from patternfold.model.component import Component, Family, option_names
from patternfold.model.dictionaries import DICTIONARIES, AbstractDictionary
from patternfold.model.losses import LOSSES, AbstractLoss
from patternfold.model.mothers import MOTHERS, AbstractMother
from patternfold.model.pattern import Pattern
from patternfold.model.prior import Prior, as_prior, no_prior
from patternfold.model.transformations import TRANSFORMATIONS, AbstractTransformation, sum_of
from patternfold.persistence.schema import Plain, take, take_array, take_list

LARGEST_COEFFICIENT = 1e300
"""Of an atom: the brightest images to learn from have 1e180, and float64 ends at 1e308."""


def describe_transformation(transformation: AbstractTransformation) -> dict[str, Any]:
    """Name a registered family, with its options and its box; those of a sum each by itself."""
    if len(transformation.parts) == 1:
        return _describe("transformation", TRANSFORMATIONS, transformation)
    parts = [describe_transformation(part) for part in transformation.parts]
    box = _describe_box(transformation.parameters)
    return {"name": "+".join(part["name"] for part in parts), "parts": parts, "box": box}


def build_transformation(description: dict[str, Any]) -> AbstractTransformation:
    """Return the family on its box."""
    if "parts" not in description:
        return _build("transformation", TRANSFORMATIONS, description)
    parts = take_list(description, "parts", dict)
    if len(parts) < 2:
        raise ValueError(f"its transformation is a sum of {len(parts)} families; two are the least")
    # Each of a sum is a family alone: a description that holds sums in turn might go on for ever.
    members = [_build("transformation", TRANSFORMATIONS, part) for part in parts]
    return sum_of(members).on(_build_box(take(description, "box", dict)))


def describe_mother(mother: AbstractMother) -> dict[str, Any]:
    """Name a registered mother function, with its options."""
    return _describe("mother function", MOTHERS, mother)


def build_mother(description: dict[str, Any]) -> AbstractMother:
    """Return the mother function."""
    if "mu" in description:  # older files give the inverse multiquadric's only option like this
        description = description | {"options": {"mu": take(description, "mu", float)}}
    return _build("mother function", MOTHERS, description)


def describe_dictionary(dictionary: AbstractDictionary) -> dict[str, Any]:
    """Name a registered dictionary, with its options and its box."""
    return _describe("dictionary", DICTIONARIES, dictionary)


def build_dictionary(description: dict[str, Any]) -> AbstractDictionary:
    """Return the dictionary on its box."""
    if "name" not in description:  # older files give the box of the only dictionary they know
        description = {"name": "atoms", "box": description}
    return _build("dictionary", DICTIONARIES, description)


def describe_loss(loss: AbstractLoss) -> dict[str, Any]:
    """Name a registered loss, with its options."""
    return _describe("loss", LOSSES, loss)


def build_loss(description: dict[str, Any]) -> AbstractLoss:
    """Return the loss."""
    return _build("loss", LOSSES, description)


def describe_prior(prior: Prior) -> dict[str, Any]:
    """Return mean and deviation of the parameters that have a prior, and the noise."""
    known = {name: list(pair) for name, pair in prior.known().items()}
    return {"parameters": known, "noise": prior.noise}


def build_prior(description: dict[str, Any], family: AbstractTransformation) -> Prior:
    """Return the prior on the parameters of a family."""
    pairs = {
        name: tuple(take_list({"prior": pair}, "prior", float))
        for name, pair in take(description, "parameters", dict).items()
    }
    prior = as_prior(pairs, family) or no_prior(family)
    if description.get("noise") is None:
        return prior
    noise = take(description, "noise", float)
    if not noise >= 0:
        raise ValueError(f"'noise' must not be negative, but is {noise}")
    return prior.with_noise(noise)


def _describe(what: str, registry: Mapping[str, type], component: Component) -> dict[str, Any]:
    names = [name for name, kind in registry.items() if type(component) is kind]
    if not names:
        raise TypeError(
            f"A model with a {what} of your own can't be saved to a file that is read without "
            "executing code; register its class under a name, or pickle it instead."
        )
    description: dict[str, Any] = {"name": names[0]}
    options = component.options()
    if options:
        description["options"] = options
    if isinstance(component, Family):
        description["box"] = _describe_box(component.parameters)
    return description


def _build(what: str, registry: Mapping[str, Any], description: dict[str, Any]) -> Any:
    """Make a component whose class is registered; a file names it, and nothing more."""
    name = take(description, "name", str)
    if name not in registry:
        known = ", ".join(sorted(registry))
        raise ValueError(
            f"its {what} {name[:40]!r} is not registered here (known: {known}); import what "
            "registers it before loading"
        )
    kind = registry[name]
    component = kind(**_build_options(kind, description))
    if not issubclass(kind, Family):
        return component
    return component.on(_build_box(take(description, "box", dict)))


def _build_options(kind: type[Component], description: dict[str, Any]) -> dict[str, Any]:
    stored = take({"options": {}} | description, "options", dict)
    known, options = option_names(kind), {}
    for name, value in stored.items():
        if name not in known:
            raise ValueError(f"{kind.__name__} has no option {name[:40]!r}")
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(v, Plain) for v in values):
            raise ValueError(f"the option {name!r} of {kind.__name__} must be a plain value")
        options[name] = tuple(value) if isinstance(value, list) else value
    return options


def describe_pattern(pattern: Pattern) -> dict[str, Any]:
    """Describe what the atoms are made of; their numbers are in `pattern_arrays`."""
    return {
        "mother": describe_mother(pattern.mother),
        "dictionary": describe_dictionary(pattern.dictionary),
    }


def pattern_arrays(pattern: Pattern) -> dict[str, np.ndarray]:
    """Return the atoms."""
    return {"coef": pattern.coef, "gamma": pattern.gamma}


def build_pattern(description: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Pattern:
    """Return the pattern from its description and atoms."""
    pattern = Pattern(
        take_array(arrays, "coef", 1),
        take_array(arrays, "gamma", 2),
        build_mother(take(description, "mother", dict)),
        build_dictionary(take(description, "dictionary", dict)),
    )
    require_sensible(pattern)
    return pattern


def require_sensible(pattern: Pattern) -> None:
    """Refuse numbers that can be computed with in principle only: no learned atom has them."""
    if (np.abs(pattern.coef) > LARGEST_COEFFICIENT).any():
        raise ValueError(f"a coefficient is above {LARGEST_COEFFICIENT:g}")
    names = pattern.dictionary.parameters.names
    for name, (least, most) in pattern.dictionary.limits.items():
        values = pattern.gamma[:, names.index(name)]
        wrong = values[(values < least) | (values > most)]
        if len(wrong):
            raise ValueError(
                f"an atom has {name}={wrong[0]:g}; it must be between {least:g} and {most:g}"
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
        take_list(description, "names", str),
        take_list(description, "lower", float),
        take_list(description, "upper", float),
        take_list(description, "periodic", str),
    )
