"""Dictionaries: `patternfold.model.dictionaries` by its public name."""

from patternfold.model.dictionaries import (
    DICTIONARIES,
    AbstractDictionary,
    AtomDictionary,
    CustomDictionary,
    as_dictionary,
)

__all__ = [
    "DICTIONARIES",
    "AbstractDictionary",
    "AtomDictionary",
    "CustomDictionary",
    "as_dictionary",
]
