"""Transformations, mother functions, dictionaries and patterns, as JSON and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from patternfold.model.box import Box
from patternfold.model.dictionaries import AbstractDictionary, AtomDictionary
from patternfold.model.mothers import MOTHERS, AbstractMother, InverseMultiquadric, as_mother
from patternfold.model.pattern import Pattern
from patternfold.model.transformations import (
    TRANSFORMATIONS,
    AbstractTransformation,
    as_transformation,
)
from patternfold.persistence.schema import take, take_array, take_list


def describe_transformation(transformation: AbstractTransformation) -> dict[str, Any]:
    """Name a built-in family and give its box."""
    for name, kind in TRANSFORMATIONS.items():
        if type(transformation) is kind:
            return {"name": name, "box": _describe_box(transformation.parameters)}
    raise _own("transformation")


def build_transformation(description: dict[str, Any]) -> AbstractTransformation:
    """Return the family on its box."""
    family = as_transformation(take(description, "name", str))
    box = _build_box(take(description, "box", dict))
    if box.names != family.parameters.names:
        raise ValueError(f"the parameters of the transformation are {box.names}")
    bounds = {
        name: (low, high) for name, low, high in zip(box.names, box.lower, box.upper, strict=True)
    }
    return family.with_bounds(bounds)


def describe_mother(mother: AbstractMother) -> dict[str, Any]:
    """Name a built-in mother function and give its option."""
    for name, kind in MOTHERS.items():
        if type(mother) is kind:
            options = {"mu": mother.mu} if isinstance(mother, InverseMultiquadric) else {}
            return {"name": name, **options}
    raise _own("mother function")


def build_mother(description: dict[str, Any]) -> AbstractMother:
    """Return the mother function."""
    mother = as_mother(take(description, "name", str))
    if isinstance(mother, InverseMultiquadric):
        return InverseMultiquadric(take(description, "mu", float))
    return mother


def describe_dictionary(dictionary: AbstractDictionary) -> dict[str, Any]:
    """Give the box of the built-in dictionary."""
    if isinstance(dictionary, AtomDictionary):
        return _describe_box(dictionary.parameters)
    raise _own("dictionary")


def build_dictionary(description: dict[str, Any]) -> AtomDictionary:
    """Return the built-in dictionary on its box."""
    box = _build_box(description)
    if box.names != AtomDictionary().parameters.names:
        raise ValueError(f"the parameters of the dictionary are {box.names}")
    return AtomDictionary(box)


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
    return Pattern(
        take_array(arrays, "coef", 1),
        take_array(arrays, "gamma", 2),
        build_mother(take(description, "mother", dict)),
        build_dictionary(take(description, "dictionary", dict)),
    )


def _own(what: str) -> TypeError:
    return TypeError(
        f"A model with a {what} of your own can't be saved to a file that is read without "
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
        take_list(description, "names", str),
        take_list(description, "lower", float),
        take_list(description, "upper", float),
        take_list(description, "periodic", str),
    )
